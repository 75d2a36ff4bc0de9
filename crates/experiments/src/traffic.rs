//! Traffic as readings, of our own client and of programs that were observed in several runs; and
//! what the documents about our own client have in common. Must not compare.

use intact_document::figures::{Connections, ObservedCounts, TrafficCounts, by_id, share};
use intact_document::traffic_readings::{CountedTraffic, TrafficReadings};
use intact_document::unobserved::Unobserved;
use intact_ledger::{Caveat, Connections as ConnectionCounts, EndedBy, Failure};
use intact_reading::Reading;
use serde::Serialize;

/// The sum of what several were counted.
pub(crate) fn sum<'a>(all: impl IntoIterator<Item = &'a TrafficCounts>) -> TrafficCounts {
    let mut sum = TrafficCounts::default();
    for one in all {
        sum.requests.add(&one.requests);
        sum.connections.add(&one.connections);
        sum.reused += one.reused;
    }
    sum
}

/// The connections of these counts, of which `at_once` were needed at the same time.
pub(crate) fn connections(counts: &ConnectionCounts, at_once: u64) -> Connections {
    let by_client = [EndedBy::Client, EndedBy::Unknown];
    let ended = counts.ended_by.iter();
    let by_server = ended.filter(|(side, _)| !by_client.contains(side));
    let by_server: u64 = by_server.map(|(_, count)| count).sum();
    let by_server = by_server.min(counts.opened.saturating_sub(at_once));
    Connections {
        opened: counts.opened,
        unusable: counts.unusable,
        failed: by_id(&counts.failed, Failure::id),
        ended_by: by_id(&counts.ended_by, EndedBy::id),
        needed: at_once + by_server,
        by_server,
    }
}

/// Connections that were opened beyond those needed.
pub(crate) fn avoidable(counts: &TrafficCounts) -> u64 {
    let connections = &counts.connections;
    connections.opened.saturating_sub(connections.needed)
}

/// The readings of what our own client did, of which this is `missing`: the reuse state of every
/// request is known, except of `unsent` ones.
pub(crate) fn of_client(
    counts: &TrafficCounts,
    avoidable: u64,
    unsent: u64,
    missing: &Unobserved,
) -> TrafficReadings {
    TrafficReadings::of(CountedTraffic {
        counts,
        unobserved: missing,
        avoidable,
        reuse_known: counts.requests.total - unsent,
        lookups_in_vain: 0,
        has_dials: false,
    })
}

/// What the caveats report as missing, or all where there was no success for this reason.
pub(crate) fn missing(caveats: &[Caveat], no_success: Option<&str>) -> Unobserved {
    let mut all = Unobserved::by_caveats(caveats);
    if let Some(why) = no_success {
        all.add(&Unobserved::because(why));
    }
    all
}

/// Requests and connections: the sum over runs, or the mean of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct ObservedTraffic {
    /// Requests and connections; `needed` is that of each run.
    #[serde(flatten)]
    pub traffic: TrafficReadings,
    /// The sum over all runs, whatever is missing.
    #[serde(skip)]
    pub counted: ObservedCounts,
    /// Requests for each connection opened.
    pub requests_per_connection: Reading,
    /// Why figures are inferred; empty when all were observed.
    pub inferred: Vec<String>,
    /// Sum of the setups of avoidable connections, each taken as the destination's mean.
    pub wasted_ms: Reading,
}

impl ObservedTraffic {
    /// The mean of this number of runs, of which this is missing. `lookups_in_vain`: failed lookups
    /// that a request waited for.
    pub(crate) fn of(
        counted: ObservedCounts,
        lookups_in_vain: u64,
        missing: &Unobserved,
        runs: f64,
    ) -> ObservedTraffic {
        let all = CountedTraffic::observed(&counted, missing, lookups_in_vain);
        let all = TrafficReadings::of(all);
        let wasted_ms = all.cost(counted.wasted_ms, counted.spared());
        let per_connection = share(counted.requests.total, counted.connections.opened);
        ObservedTraffic {
            traffic: all.per_run(runs),
            requests_per_connection: missing.ratio(per_connection),
            inferred: counted.inferred.clone(),
            wasted_ms: wasted_ms.times(1.0 / runs),
            counted,
        }
    }
}
