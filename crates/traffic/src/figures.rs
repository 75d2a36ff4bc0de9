//! The figures of all destinations together, and of each of them. Must not conclude.

use super::destination::{Counts, Detail, Sum};
use super::distributions::{Gaps, PerConnection};
use super::facts::Destination;
use super::lookups::Lookups;
use crate::rules::cost_ms;
use intact_document::figures::{
    Connections, Latency, NANOS_PER_MS, ObservedCounts, PhaseTime, Requests, TrafficCounts, embeds,
    is_zero, resumed_range, share,
};
use intact_document::unobserved::Unobserved;
use intact_ledger::Evidence;
use intact_ledger::{Failure, Group, Handshake, Histogram, Phase, Reuse};
use serde::Serialize;
use std::collections::BTreeMap;

/// The figures that all destinations together and each of them have.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Figures {
    /// Counts of requests and connections; `needed` is for the peak overlap of requests.
    #[serde(flatten)]
    pub counts: ObservedCounts,
    /// Lower and upper end of `reuse` over all requests; present where the state of some is
    /// unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reuse_range: Option<[f64; 2]>,
    /// Connections inside which nothing could be seen.
    pub opaque: u64,
    /// Connections that were open before the recording began: they are not in `opened`.
    #[serde(skip_serializing_if = "is_zero")]
    pub open_before: u64,
    /// Requests for each connection opened.
    pub requests_per_connection: Option<f64>,
    /// Connections opened a second, between the first and the last event.
    pub churn_per_s: Option<f64>,
    /// Sum of the latencies of all requests, setup included.
    pub outbound_ms: Option<f64>,
    /// `outbound_ms`, and the setup that no request waited for.
    #[serde(skip)]
    pub(crate) time_ms: Option<f64>,
    /// Sum of all setups.
    pub setup_ms: Option<f64>,
    /// Mean lookup, transport handshake and TLS handshake of a connection that had them.
    pub setup_mean_ms: SetupMeans,
    /// `wasted_ms` as a share of `outbound_ms` and the setup that no request waited for.
    pub wasted_share: Option<f64>,
    /// Time that requests without a complete response took, such as aborted ones and those that
    /// timed out.
    pub lost_ms: Option<f64>,
    /// `lost_ms` as a share of `outbound_ms`.
    pub lost_share: Option<f64>,
    /// Setup that requests waited for, of needed and of avoidable connections.
    pub setup_wait_ms: Option<f64>,
    /// `setup_wait_ms` as a share of `outbound_ms`.
    pub setup_wait_share: Option<f64>,
    /// `setup_wait_ms` without that of avoidable connections.
    #[serde(skip)]
    pub(crate) needed_setup_ms: Option<f64>,
    /// Reuses within 5 ms of the last response on a connection that carries one request at a time:
    /// these requests may have waited in the client for a connection. Absent where no idle
    /// time is known.
    pub back_to_back: Option<u64>,
    /// `back_to_back` as a share of all such reuses.
    pub back_to_back_share: Option<f64>,
    /// TLS handshakes that resumed a session, as a share of those whose kind was seen.
    pub resumed_share: Option<f64>,
    /// The range of `resumed_share` over all handshakes.
    #[serde(skip)]
    pub(crate) resumed_range: Option<[f64; 2]>,
    /// Lookups.
    pub lookups: LookupFigures,
    /// Latency of complete requests, setup included.
    pub latency_ms: Latency,
    /// The same without the setup that was waited for.
    pub latency_without_setup_ms: Latency,
    /// Phases; absent where there was no room for histograms.
    pub phases_ms: Option<Phases>,
    /// Idle time before a connection was used again.
    pub idle_gaps: Option<Gaps>,
    /// Requests on connections that ended.
    pub per_connection: Option<PerConnection>,
}

/// Means of the setup steps in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetupMeans {
    /// Lookup.
    pub dns: Option<f64>,
    /// Transport.
    pub connect: Option<f64>,
    /// TLS.
    pub ssl: Option<f64>,
    /// All steps.
    pub total: Option<f64>,
}

/// Lookups of names.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LookupFigures {
    /// All.
    pub total: u64,
    /// Those that failed.
    pub failed: u64,
    /// Those of them that a request waited for.
    #[serde(skip)]
    pub in_vain: u64,
    /// Those that failed, by their error (`NXDOMAIN`, `SERVFAIL`, `no answer`).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub errors: BTreeMap<&'static str, u64>,
    /// The time that they took together, in milliseconds.
    pub ms: Option<f64>,
    /// Lookups for each connection opened; absent without lookups seen or connections.
    pub per_connection: Option<f64>,
}

/// Phases of complete requests, those that waited for setup apart.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Phases {
    /// Requests that waited for setup.
    pub fresh: BTreeMap<&'static str, Option<PhaseTime>>,
    /// Requests on a connection that was there already.
    pub reused: BTreeMap<&'static str, Option<PhaseTime>>,
}

embeds!(Figures, counts: ObservedCounts);

impl Figures {
    /// `open_opaque`: open connections whose content could not be read so far.
    pub(super) fn of(counts: &Counts, needed: u64, open_opaque: u64, lookups: Lookups) -> Figures {
        let opaque = counts.opaque + open_opaque;
        let known = counts.first + counts.reused;
        let has_no_reuse = counts.requests > 0 && known == 0;
        let has_no_setup = counts.setup_total.count < counts.opened;
        let lacking = [
            (Evidence::Reuse, has_no_reuse),
            (Evidence::Setup, has_no_setup),
        ];
        let avoidable = counts.opened.saturating_sub(needed);
        let timed_ms = |nanos: u64| (counts.timed > 0).then(|| nanos as f64 / NANOS_PER_MS);
        let outbound_ms = timed_ms(counts.outbound);
        let time_ms = counts.time().map(|nanos| nanos as f64 / NANOS_PER_MS);
        let lost_ms = timed_ms(counts.lost.nanos);
        let setup_wait_ms = timed_ms(counts.setup_waited);
        let wasted_ms = cost_ms(counts, avoidable);
        let readable = (counts.opened + counts.open_before).saturating_sub(opaque);
        let detail = counts.detail.as_deref();
        let ok = detail.and_then(|detail| detail.cell.merged(|key| key.outcome.is_ok()));
        // what the client did not wait for to the end took longer
        let given_up = [Failure::Timeout, Failure::ClientClosed];
        let given_up = given_up.iter().filter_map(|kind| counts.failed.get(kind));
        let given_up: u64 = given_up.sum();
        let latency = |of: fn(&Group) -> &Histogram| {
            let histogram = ok.as_ref().map(of);
            let latency = histogram.map(|all| Latency::beyond(all, given_up));
            latency.unwrap_or_default()
        };
        let setup = counts.setup_total;
        let (resumed_share, resumed_range) = resumed(counts);
        Figures {
            counts: ObservedCounts {
                counts: TrafficCounts {
                    requests: requests(counts),
                    connections: connections(counts, needed),
                    reused: counts.reused,
                    reuse: share(counts.reused, known),
                },
                avoidable,
                reuse_known: known,
                unobserved: Unobserved {
                    opaque,
                    without_connection: counts.without_connection,
                    guessed: counts.guessed,
                    spare: counts.spare(needed),
                    without_client: counts.without_client,
                    open_before: counts.open_before,
                    lacking: lacking
                        .into_iter()
                        .filter_map(|(evidence, lacks)| lacks.then_some(evidence))
                        .collect(),
                    ..Unobserved::default()
                },
                inferred: counts.inferred.iter().map(ToString::to_string).collect(),
                wasted_ms,
            },
            reuse_range: reuse_range(counts, known),
            opaque,
            open_before: counts.open_before,
            requests_per_connection: (readable > 0 && counts.requests > 0)
                .then(|| counts.requests as f64 / readable as f64),
            churn_per_s: counts
                .seconds()
                .map(|seconds| counts.opened as f64 / seconds),
            outbound_ms,
            setup_ms: (setup.count > 0).then(|| setup.nanos as f64 / NANOS_PER_MS),
            setup_mean_ms: SetupMeans::of(counts),
            wasted_share: share_of(wasted_ms, time_ms),
            time_ms,
            lost_ms,
            lost_share: share_of(lost_ms, outbound_ms),
            setup_wait_ms,
            setup_wait_share: share_of(setup_wait_ms, outbound_ms),
            needed_setup_ms: setup_wait_ms.map(|ms| (ms - wasted_ms.unwrap_or(0.0)).max(0.0)),
            back_to_back: (counts.single_reuses > 0).then_some(counts.back_to_back),
            back_to_back_share: share(counts.back_to_back, counts.single_reuses),
            resumed_share,
            resumed_range,
            lookups: LookupFigures::of(lookups, counts.opened),
            latency_ms: latency(|group| &group.latency),
            latency_without_setup_ms: latency(|group| &group.without_setup),
            phases_ms: detail.map(Phases::of),
            idle_gaps: detail.and_then(|detail| Gaps::of(&detail.gaps, counts)),
            per_connection: detail.and_then(|detail| PerConnection::of(&detail.per_connection)),
        }
    }

    /// The fewest and the most connections that were needed; present where coarse times do not show
    /// which exchanges overlapped, or connections do not show their client.
    pub fn needed_range(&self) -> Option<[u64; 2]> {
        let most = self.connections.needed;
        let spare = self.unobserved.spare;
        (spare > 0).then(|| [most.saturating_sub(spare), most])
    }

    /// What the whole has only as the sum of its parts: waste is paid per destination, idle limits
    /// are each server's.
    pub(super) fn sum_up(&mut self, destinations: &[Destination]) {
        let figures = || destinations.iter().map(|one| &one.figures);
        self.counts.avoidable = figures().map(|one| one.avoidable).sum();
        self.counts.unobserved.spare = figures().map(|one| one.unobserved.spare).sum();
        let costs: Vec<f64> = figures().filter_map(|one| one.wasted_ms).collect();
        self.counts.wasted_ms = (!costs.is_empty()).then(|| costs.iter().sum());
        // the setup of connections that cannot be seen inside is no part of the requests' time
        let seen = || figures().filter(|one| one.requests.total > 0);
        let needed_setup: f64 = seen().filter_map(|one| one.needed_setup_ms).sum();
        self.needed_setup_ms = self.setup_wait_ms.map(|_| needed_setup);
        let (wasted, time): (Vec<_>, Vec<_>) =
            seen().map(|one| (one.wasted_ms, one.time_ms)).unzip();
        let of_requests: f64 = wasted.into_iter().flatten().sum();
        self.time_ms = self.outbound_ms.map(|_| time.into_iter().flatten().sum());
        self.wasted_share = share_of(self.wasted_ms.map(|_| of_requests), self.time_ms);
        if let Some(gaps) = &mut self.idle_gaps {
            gaps.server_limit_s = None;
            gaps.danger_from_s = None;
            let each = figures().filter_map(|one| one.idle_gaps.as_ref());
            gaps.in_danger = each.map(|gaps| gaps.in_danger).sum();
            gaps.danger_share = Some(gaps.in_danger as f64 / gaps.count as f64);
        }
    }
}

impl SetupMeans {
    fn of(counts: &Counts) -> SetupMeans {
        let mean = |sum: Sum| sum.mean().map(|nanos| nanos / NANOS_PER_MS);
        let [dns, connect, ssl] = counts.setup.map(mean);
        SetupMeans {
            dns,
            connect,
            ssl,
            total: mean(counts.setup_total),
        }
    }
}

impl LookupFigures {
    fn of(lookups: Lookups, opened: u64) -> LookupFigures {
        let Lookups {
            total,
            failed,
            nanos,
            ..
        } = lookups;
        LookupFigures {
            total,
            failed,
            in_vain: failed,
            errors: lookups.errors(),
            ms: (total > 0).then(|| nanos as f64 / NANOS_PER_MS),
            per_connection: (total > 0 && opened > 0).then(|| total as f64 / opened as f64),
        }
    }
}

impl Phases {
    fn of(detail: &Detail) -> Phases {
        let of = |reuse: Reuse| {
            let group = detail
                .cell
                .merged(|key| key.outcome.is_ok() && key.reuse == Some(reuse));
            Phase::ALL
                .iter()
                .map(|&phase| {
                    let time = group.as_ref().map(|group| group.phase(phase));
                    (phase.id(), time.and_then(PhaseTime::of))
                })
                .collect()
        };
        Phases {
            fresh: of(Reuse::Fresh),
            reused: of(Reuse::Reused),
        }
    }
}

fn requests(counts: &Counts) -> Requests {
    let failed = counts.failed.iter();
    Requests {
        total: counts.requests,
        ok: counts.ok,
        failed: failed.map(|(kind, &count)| (kind.id(), count)).collect(),
        status: counts.status.clone(),
    }
}

fn connections(counts: &Counts, needed: u64) -> Connections {
    let failed = counts.dials_failed.iter();
    let ended_by = counts.ended_by.iter();
    Connections {
        opened: counts.opened,
        unusable: counts.unusable,
        failed: failed.map(|(kind, &count)| (kind.id(), count)).collect(),
        ended_by: ended_by.map(|(by, &count)| (by.id(), count)).collect(),
        needed,
    }
}

/// Where reuse is unknown for some requests: its smallest and its largest value.
fn reuse_range(counts: &Counts, known: u64) -> Option<[f64; 2]> {
    let unknown = counts.requests.saturating_sub(known);
    let share = |count: u64| count as f64 / counts.requests as f64;
    (known > 0 && unknown > 0).then(|| [share(counts.reused), share(counts.reused + unknown)])
}

fn share_of(part: Option<f64>, whole: Option<f64>) -> Option<f64> {
    let whole = whole.filter(|whole| *whole > 0.0)?;
    Some(part? / whole)
}

/// The share of resumed handshakes among those of a known kind, and its range over all.
fn resumed(counts: &Counts) -> (Option<f64>, Option<[f64; 2]>) {
    let of = |which: &dyn Fn(Option<Handshake>) -> bool| -> u64 {
        let kinds = counts.tls.iter();
        kinds
            .filter(|((_, handshake), _)| which(*handshake))
            .map(|(_, count)| count)
            .sum()
    };
    let (all, unknown) = (of(&|_| true), of(&|kind| kind.is_none()));
    let resumed = of(&|kind| kind.is_some_and(|kind| kind != Handshake::Full));
    (
        share(resumed, all - unknown),
        resumed_range(resumed, unknown, all),
    )
}
