//! What `watch`, `audit` and every other observer found out, from the events as they come: totals,
//! destinations, findings.
//!
//! [`TrafficAnalysis`] is a [`Sink`]: feed it live, or replay a stored ledger. Its facts can be
//! read at any time. One pass, bounded memory. Producers record `Opened` before what the connection
//! carries, `Closed` after it, and events roughly in the order of their ends. Observing gives no
//! causal interval: only experiments do.

#[cfg(not(feature = "schema"))]
#[macro_use]
extern crate intact_schema;
#[cfg(feature = "schema")]
#[macro_use]
extern crate schemars;

mod answered;
mod batches;
mod caveats;
mod charts;
mod destination;
mod destinations;
mod distributions;
mod ended;
mod facts;
mod figures;
mod history;
mod inputs;
mod level_shift;
mod lookups;
mod loss;
mod next_steps;
mod open_connection;
mod open_connections;
mod open_reason;
mod over_time;
mod overlap;
mod pool_bursts;
mod pool_cause;
mod pool_full;
mod pool_renewal;
mod pool_replay;
mod pool_rests;
pub mod rules;
mod subjects;
pub mod timeline;
mod tracker;
mod verdict;
mod window;

pub use charts::{Charts, GapPanel};
pub use destination::{Counts, Detail, Sum};
pub use destinations::{DestinationKey, Destinations};
pub use distributions::{Gaps, PerConnection, at_least, danger_from, server_limit};
pub use facts::{Destination, ObservedFacts, TlsFigures};
pub use figures::{Figures, LookupFigures, Phases, SetupMeans};
pub use inputs::{InputFacts, UpstreamFacts};
pub use intact_document::first_calls::{FirstCallTier, FirstCallTiers, TierCause};
pub use level_shift::{LevelShift, Shifted, StepSide};
pub use lookups::{LookupCounts, Lookups};
pub use loss::Loss;
pub use next_steps::{NextStep, next_steps};
pub(crate) use open_connection::HAND_BACK;
pub use open_connection::{Last, OpenConnection, PoolOwner};
pub use open_reason::OpenReason;
pub use over_time::Period;
pub use tracker::{Context, Tracker};
pub use window::Window;

use crate::timeline::Timeline;
use batches::Batches;
use intact_document::{Claim, ClaimKind};
use intact_ledger::{ConnectionId, Event, Evidence, Histogram, Producer, Run, Sink};
use over_time::OverTime;
use rules::Rule;
use std::cell::OnceCell;
use std::time::Duration;
use tracker::Judged;

/// A fold over the events of a run.
pub struct TrafficAnalysis {
    tracker: Tracker,
    rules: Vec<Rule>,
    timeline: Timeline,
    over_time: OverTime,
    batches: Batches,
    /// The last judgement, until the next event.
    judged: OnceCell<Judged>,
}

impl TrafficAnalysis {
    /// An observer that has seen nothing yet.
    pub fn new(run: &Run) -> TrafficAnalysis {
        TrafficAnalysis {
            tracker: Tracker::new(run),
            rules: rules::of_run(run),
            timeline: Timeline::of_destinations(run.vantage),
            over_time: OverTime::new(run.sees(Evidence::Durations)),
            batches: Batches::default(),
            judged: OnceCell::new(),
        }
    }

    /// What was found out so far.
    pub fn facts(&self) -> ObservedFacts {
        let changes = |needed| self.changes_of(needed);
        let mut facts = ObservedFacts::new(&self.tracker, self.judged(), &self.rules, &changes);
        // a program under watch is judged as a whole first
        let kind = match self.tracker.run().producer {
            Producer::Watch => ClaimKind::Note,
            _ => ClaimKind::Changed,
        };
        let changes = self.changes_of(facts.totals.counted.connections.least());
        let changes = changes
            .iter()
            .map(|one| Claim::new(kind, 1.0, one.sentence()));
        facts.verdict = facts.verdict.with(changes);
        facts
    }

    /// The idle times before connections were used again, the requests, and the time up to the last
    /// event.
    pub fn idle_gaps(&self) -> (Histogram, u64, Duration) {
        let all = &self.tracker.destinations.all;
        let gaps = all.detail.as_ref().map(|detail| detail.gaps.clone());
        let length = Duration::from_nanos(self.tracker.now.0);
        (gaps.unwrap_or_default(), all.requests, length)
    }

    /// The lasting changes of reuse or of latency, those of reuse first, then by size.
    pub fn changes(&self) -> Vec<LevelShift> {
        let needs = self.judged().needs.iter();
        self.changes_of(needs.map(|need| need.least()).sum())
    }

    /// What the openings so far were for.
    fn judged(&self) -> &Judged {
        self.judged.get_or_init(|| self.tracker.judge())
    }

    /// The same where the number of connections is known that are needed from the beginning.
    fn changes_of(&self, needed: u64) -> Vec<LevelShift> {
        LevelShift::find(&self.batches, self.tracker.run(), needed)
    }
}

impl Sink for TrafficAnalysis {
    fn expect(&mut self, connections: &[ConnectionId]) {
        self.tracker.expect(connections);
    }

    fn record(&mut self, event: Event<'_>) {
        self.judged.take();
        self.timeline.record(event);
        match event {
            Event::Opened(connection) => {
                self.over_time.opened(connection);
                self.batches.opened(connection);
            }
            Event::Exchange(exchange) => {
                self.over_time.exchange(exchange);
                self.batches.exchange(exchange);
            }
            _ => {}
        }
        let tracker = &mut self.tracker;
        let closed;
        let context = match event {
            Event::Opened(connection) => {
                let id = tracker.opened(connection);
                tracker.context(id)
            }
            Event::Revised(connection) => {
                let id = tracker.revised(connection);
                tracker.context(id)
            }
            Event::Exchange(exchange) => {
                let (destination, id, gap) = tracker.exchange(exchange);
                Context {
                    destination: Some(destination),
                    live: id.and_then(|id| tracker.live(id)),
                    gap,
                    ..Context::default()
                }
            }
            Event::Closed(end) => {
                closed = tracker.closed(end);
                Context {
                    destination: closed.as_ref().map(|live| live.destination),
                    live: closed.as_deref(),
                    ..Context::default()
                }
            }
            Event::Lookup(lookup) => {
                tracker.lookup(lookup);
                Context::default()
            }
            Event::Stack(stack) => {
                tracker.stack(stack);
                Context::default()
            }
            Event::Sockets(sockets) => {
                tracker.sockets(*sockets);
                Context::default()
            }
            Event::Caveat(caveat) => {
                tracker.caveat(caveat);
                Context::default()
            }
            Event::Round(_) | Event::Invocation(_) | Event::Fault(_) => Context::default(),
        };
        for rule in &mut self.rules {
            rule.observe(event, &context);
        }
    }
}
