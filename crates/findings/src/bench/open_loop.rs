//! What an open loop adds to the figures of a variant: requested and achieved rate, waiting for a connection, and how late the client
//! was. Must not compare variants.

use super::measured_rounds::MeasuredRounds;
use crate::figures::{Latency, Requests, share};
use intact_experiment::OpenLoop;
use intact_ledger::{Failure, OpenLoopTimes};
use serde::Serialize;

/// The share of the requested rate from which on it is reached.
const REACHED: f64 = 0.98;
/// The share of the latency from which the client's own lateness distorts it.
const LATE: f64 = 0.25;

/// The schedule of a variant, and what became late or waited.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OpenLoopFacts {
    /// The rate as requested, such as `500/s` or `100/s..2000/s`.
    pub rate: String,
    /// How requests were spaced: `constant` or `poisson`.
    pub arrivals: &'static str,
    /// What requests did that were due while every connection was busy: `queue` or `open`.
    pub when_busy: &'static str,
    /// Requests that fell due; each is in `requests`.
    pub due: u64,
    /// Requests a second that fell due.
    pub requested_per_s: Option<f64>,
    /// Complete requests a second as a share of those that fell due.
    pub achieved: Option<f64>,
    /// Requests that were never sent, because no connection was free until the time limit.
    pub unsent: u64,
    /// Requests that waited because every connection was busy.
    pub queued: u64,
    /// How long these waited, in milliseconds.
    pub queued_ms: Latency,
    /// From the moment a request was due and a connection was free to its start, in milliseconds: the client's own lateness.
    pub scheduling_error_ms: Latency,
    /// Its sum as a share of the sum of latencies.
    pub scheduling_error_share: Option<f64>,
    /// From the moment a request was due to the client's reading the end of the response, in milliseconds; `latency_ms` ends at the
    /// kernel's receive timestamp. Absent without these timestamps.
    pub until_read_ms: Latency,
}

impl OpenLoopFacts {
    pub(super) fn new(
        open: &OpenLoop,
        measured: &MeasuredRounds,
        requests: &Requests,
    ) -> OpenLoopFacts {
        let mut times = OpenLoopTimes::default();
        let mut latencies = 0u64;
        let mut unsent = 0;
        for group in measured.all.groups.iter().filter(|one| !one.key.warmup) {
            if let Some(more) = &group.open_loop {
                times.merge(more);
                latencies = latencies.saturating_add(group.latency.sum());
            } else if group.key.reuse.is_none() {
                unsent += group.count();
            }
        }
        let requested = measured.requested_per_s(requests.total);
        let completed = measured
            .seconds()
            .map(|seconds| requests.ok as f64 / seconds);
        OpenLoopFacts {
            rate: open.rate.to_string(),
            arrivals: open.arrivals.as_str(),
            when_busy: open.when_busy.as_str(),
            due: requests.total,
            requested_per_s: requested,
            achieved: completed
                .zip(requested.filter(|rate| *rate > 0.0))
                .map(|(completed, requested)| completed / requested),
            unsent,
            queued: times.queued.count() + unsent,
            queued_ms: Latency::of(&times.queued),
            scheduling_error_share: share(times.scheduling_error.sum(), latencies),
            scheduling_error_ms: Latency::of(&times.scheduling_error),
            until_read_ms: Latency::beyond(&times.until_read, requests.failed_with(Failure::Timeout)),
        }
    }

    /// Requests that waited for a connection or never had one, as a share of those that fell due.
    pub fn queued_share(&self) -> Option<f64> {
        share(self.queued, self.due)
    }

    /// Whether requests were completed about as fast as they fell due.
    pub(super) fn is_reached(&self) -> bool {
        self.achieved.is_none_or(|achieved| achieved >= REACHED)
    }

    /// Whether the client's own lateness is a large part of the latency.
    pub(super) fn client_is_late(&self) -> bool {
        self.scheduling_error_share.is_some_and(|share| share > LATE)
    }
}
