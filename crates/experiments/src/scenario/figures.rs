//! The figures of one session, and of one tag in it. Must not know other sessions.

use super::connections;
use crate::bench::{Mode, modes};
use crate::traffic::{avoidable, of_client};
use intact_document::figures::{Latency, PhaseTime, PhaseTimes, Requests, TrafficCounts, share};
use intact_document::traffic_readings::{RequestReadings, TrafficReadings};
use intact_document::unobserved::Unobserved;
use intact_ledger::{Cell, ClientCounts, Failure, Group, Histogram, TagCell, Variant};
use intact_reading::{Reading, Why};
use serde::Serialize;
use std::collections::BTreeMap;

/// Requests, and how long they took.
pub(super) struct MeasuredRequests {
    /// Without connections.
    pub(super) counted: TrafficCounts,
    pub(super) latency_ms: Latency,
    pub(super) latency_without_setup_ms: Latency,
    ok: Option<Group>,
}

impl MeasuredRequests {
    pub(super) fn of_cell(cell: &Cell) -> MeasuredRequests {
        let ok = cell.merged(|key| key.outcome.is_ok());
        MeasuredRequests::new(&cell.groups, &cell.status, ok)
    }

    fn new(groups: &[Group], status: &BTreeMap<u16, u64>, ok: Option<Group>) -> MeasuredRequests {
        let mut requests = Requests {
            status: status.clone(),
            ..Requests::default()
        };
        let reused = groups.iter().map(|group| requests.add_group(group)).sum();
        let known = groups.iter().filter(|group| group.key.reuse.is_some());
        let known = known.map(Group::count).sum();
        // a percentile counts timeouts as longer than all others
        let unfinished = requests.failed_with(Failure::Timeout);
        let latency = |of: fn(&Group) -> &Histogram| {
            let latency = ok.as_ref().map(|ok| Latency::beyond(of(ok), unfinished));
            latency.unwrap_or_default()
        };
        MeasuredRequests {
            latency_ms: latency(|group| &group.latency),
            latency_without_setup_ms: latency(|group| &group.without_setup),
            counted: TrafficCounts {
                requests,
                reused,
                reuse: share(reused, known),
                ..TrafficCounts::default()
            },
            ok,
        }
    }
}

/// The readings of counts of which this is `missing`.
pub(super) fn traffic(counts: &TrafficCounts, missing: &Unobserved) -> TrafficReadings {
    of_client(counts, avoidable(counts), 0, missing)
}

/// The requests of one tag: of a session, or of a variant whose targets take turns.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TagFacts {
    /// The tag; without one, method and path.
    pub tag: String,
    /// Its requests.
    pub requests: RequestReadings,
    /// Requests on a connection that an earlier request of the same client had used.
    pub reused: Reading,
    /// Their share of all requests.
    pub reuse: Reading,
    /// What was counted, whatever is missing; connections are counted by session.
    #[serde(skip)]
    pub counted: TrafficCounts,
    /// Latency of complete requests, setup included; a percentile counts timeouts as longer than
    /// all others.
    pub latency_ms: Latency,
    /// The same without connection setup.
    pub latency_without_setup_ms: Latency,
    /// Phases of complete requests.
    pub phases_ms: PhaseTimes,
    /// Of its requests and no connections.
    #[serde(skip)]
    pub(crate) traffic: TrafficReadings,
}

impl TagFacts {
    pub(crate) fn new(cell: &TagCell, missing: &Unobserved) -> TagFacts {
        let ok = cell.merged(|key| key.outcome.is_ok());
        let measured = MeasuredRequests::new(&cell.groups, &cell.status, ok);
        let traffic = TrafficReadings::default();
        let mut facts = TagFacts {
            tag: cell.tag.to_string(),
            requests: traffic.requests.clone(),
            reused: traffic.reused.clone(),
            reuse: traffic.reuse.clone(),
            traffic,
            latency_ms: measured.latency_ms,
            latency_without_setup_ms: measured.latency_without_setup_ms,
            phases_ms: PhaseTime::all(measured.ok.as_ref()),
            counted: measured.counted,
        };
        facts.read(missing);
        facts
    }

    /// Makes the readings, of which this is missing.
    pub(crate) fn read(&mut self, missing: &Unobserved) {
        self.traffic = traffic(&self.counted, missing);
        self.requests = self.traffic.requests.clone();
        self.reused = self.traffic.reused.clone();
        self.reuse = self.traffic.reuse.clone();
        self.latency_ms = self.latency_ms.observed(missing);
        self.latency_without_setup_ms = self.latency_without_setup_ms.observed(missing);
    }
}

/// One session.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SessionFacts {
    /// Its name.
    pub name: String,
    /// Its weight, as the plan has it; absent where the record does not say.
    pub weight: Option<f64>,
    /// Its clients; absent where their number is unknown.
    pub clients: Option<ClientCounts>,
    /// Its requests and connections.
    #[serde(flatten)]
    pub traffic: TrafficReadings,
    /// What was counted of them, whatever is missing.
    #[serde(skip)]
    pub counted: TrafficCounts,
    /// Mean exchanges per connection that ended.
    pub requests_per_connection: Reading,
    /// New connections a second.
    pub churn_per_s: Reading,
    /// Latency of complete requests, setup included.
    pub latency_ms: Latency,
    /// The same without connection setup.
    pub latency_without_setup_ms: Latency,
    /// New and reused connections where both occur, else the two modes of the histogram if it has
    /// two.
    pub modes: Vec<Mode>,
    /// Its tags, in the order in which they appeared.
    pub tags: Vec<TagFacts>,
}

impl SessionFacts {
    /// `seconds`: the time measured.
    pub(super) fn new(
        variant: &Variant,
        cell: &Cell,
        seconds: Option<f64>,
        missing: &Unobserved,
    ) -> SessionFacts {
        let measured = MeasuredRequests::of_cell(cell);
        let counted = TrafficCounts {
            connections: connections(cell),
            ..measured.counted.clone()
        };
        let weight = variant.axes.get("weight");
        SessionFacts {
            name: variant.name.clone(),
            weight: weight.and_then(|weight| weight.parse().ok()),
            clients: cell.clients,
            requests_per_connection: missing.ratio(cell.connections.exchanges.mean()),
            churn_per_s: churn(&counted, seconds, missing),
            modes: modes(cell),
            tags: cell
                .tags
                .iter()
                .map(|tag| TagFacts::new(tag, missing))
                .collect(),
            traffic: traffic(&counted, missing),
            counted,
            latency_ms: measured.latency_ms.observed(missing),
            latency_without_setup_ms: measured.latency_without_setup_ms.observed(missing),
        }
    }
}

/// New connections a second.
pub(super) fn churn(
    counted: &TrafficCounts,
    seconds: Option<f64>,
    missing: &Unobserved,
) -> Reading {
    let churn = seconds.map(|seconds| counted.connections.opened as f64 / seconds);
    churn.map_or(Reading::unknown(Why::NothingHappened), |churn| {
        missing.at_least_connections(churn)
    })
}
