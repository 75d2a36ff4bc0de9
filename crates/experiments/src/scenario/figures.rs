//! The figures of one session, and of one tag in it. Must not know other sessions.

use super::{Clients, connections};
use crate::bench::{Mode, modes};
use intact_document::figures::{Latency, PhaseTime, Requests, TrafficCounts, embeds, share};
use intact_ledger::{Cell, Failure, Group, Phase, TagCell, Variant};
use serde::Serialize;
use std::collections::BTreeMap;

/// The figures of some requests.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RequestFigures {
    /// Requests.
    pub requests: Requests,
    /// Requests on a connection that an earlier request of the same client had used.
    pub reused: u64,
    /// Their share of the requests whose state is known.
    pub reuse: Option<f64>,
    /// Latency of complete requests, setup included; a percentile counts timeouts as longer than
    /// all others.
    pub latency_ms: Latency,
    /// The same without the setup that was waited for.
    pub latency_without_setup_ms: Latency,
}

impl RequestFigures {
    pub(super) fn of_cell(cell: &Cell) -> RequestFigures {
        let ok = cell.merged(|key| key.outcome.is_ok());
        RequestFigures::new(&cell.groups, &cell.status, ok.as_ref())
    }

    fn new(groups: &[Group], status: &BTreeMap<u16, u64>, ok: Option<&Group>) -> RequestFigures {
        let mut requests = Requests {
            status: status.clone(),
            ..Requests::default()
        };
        let reused = groups.iter().map(|group| requests.add_group(group)).sum();
        let known = groups.iter().filter(|group| group.key.reuse.is_some());
        let known = known.map(Group::count).sum();
        let unfinished = requests.failed_with(Failure::Timeout);
        let latency = |pick: fn(&Group) -> &intact_ledger::Histogram| {
            ok.map_or_else(Latency::default, |ok| Latency::beyond(pick(ok), unfinished))
        };
        RequestFigures {
            reused,
            reuse: share(reused, known),
            latency_ms: latency(|group| &group.latency),
            latency_without_setup_ms: latency(|group| &group.without_setup),
            requests,
        }
    }
}

/// One tag of one session.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TagFacts {
    /// The tag; without one, method and path.
    pub tag: String,
    /// Its requests.
    #[serde(flatten)]
    pub figures: RequestFigures,
    /// Phases of complete requests.
    pub phases_ms: BTreeMap<&'static str, Option<PhaseTime>>,
}

embeds!(TagFacts, figures: RequestFigures);

impl TagFacts {
    fn new(cell: &TagCell) -> TagFacts {
        let ok = cell.merged(|key| key.outcome.is_ok());
        TagFacts {
            tag: cell.tag.to_string(),
            figures: RequestFigures::new(&cell.groups, &cell.status, ok.as_ref()),
            phases_ms: phases(ok.as_ref()),
        }
    }
}

fn phases(ok: Option<&Group>) -> BTreeMap<&'static str, Option<PhaseTime>> {
    let time = |phase: Phase| ok.and_then(|ok| PhaseTime::of(ok.phase(phase)));
    Phase::ALL
        .iter()
        .map(|&phase| (phase.id(), time(phase)))
        .collect()
}

/// One session.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionFacts {
    /// Its name.
    pub name: String,
    /// Its weight, as the plan has it; absent where the record does not say.
    pub weight: Option<f64>,
    /// Its clients; absent where their number is unknown.
    pub clients: Option<Clients>,
    /// Its requests and connections.
    #[serde(flatten)]
    pub counts: TrafficCounts,
    /// Mean exchanges per connection that ended.
    pub requests_per_connection: Option<f64>,
    /// Latency of complete requests, setup included.
    pub latency_ms: Latency,
    /// The same without the setup that was waited for.
    pub latency_without_setup_ms: Latency,
    /// New and reused connections where both occur, else the two modes of the histogram if it has
    /// two.
    pub modes: Vec<Mode>,
    /// Its tags, in the order in which they appeared.
    pub tags: Vec<TagFacts>,
}

embeds!(SessionFacts, counts: TrafficCounts);

impl SessionFacts {
    pub(super) fn new(variant: &Variant, cell: &Cell) -> SessionFacts {
        let figures = RequestFigures::of_cell(cell);
        let weight = variant.axes.get("weight");
        SessionFacts {
            name: variant.name.clone(),
            weight: weight.and_then(|weight| weight.parse().ok()),
            clients: cell.clients.map(Clients::from),
            requests_per_connection: cell.connections.exchanges.mean(),
            modes: modes(cell),
            tags: cell.tags.iter().map(TagFacts::new).collect(),
            counts: TrafficCounts {
                connections: connections(cell),
                requests: figures.requests,
                reused: figures.reused,
                reuse: figures.reuse,
            },
            latency_ms: figures.latency_ms,
            latency_without_setup_ms: figures.latency_without_setup_ms,
        }
    }
}
