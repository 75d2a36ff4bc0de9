//! What `watch`, `audit` and every other observer found out, from the events as they come: totals, destinations, findings.
//!
//! ```text
//! let mut observed = Observed::new(&run);     // a intact_ledger::Sink: feed it live, or replay a stored ledger
//! observed.record(Event::Opened(&connection));
//! let facts = observed.facts();               // at any time; a live view calls it as often as it likes
//! ```
//! One pass, bounded memory. Producers tell `Opened` before what the connection carries, `Closed` after it, and events roughly in
//! the order of their ends. Observing gives no causal interval: only experiments do.

pub(crate) mod asked;
mod books;
mod destination;
mod facts;
mod live;
mod over_time;
mod pictures;
mod verdict;
mod why;

pub use books::{Books, Context, Lookups};
pub use destination::{Counts, Detail, Place, Sum};
pub use facts::{
    Destination, Figures, Gaps, LookupFigures, ObservedFacts, PerConnection, Phases, SetupMeans,
    TlsFigures,
};
pub(crate) use facts::{at_least, danger_from, server_limit};
pub use live::{Last, Live, Party};
pub use over_time::{Period, Step, StepSide};
pub use pictures::{GapPanel, Pictures};
pub use why::Why;

use crate::rules::{self, Rule};
use crate::timeline::Timeline;
use intact_ledger::{Event, Run, Sink};
use over_time::OverTime;

/// A fold over the events of a run.
pub struct Observed {
    books: Books,
    rules: Vec<Box<dyn Rule>>,
    timeline: Timeline,
    over_time: OverTime,
}

impl Observed {
    /// An observer that has seen nothing yet.
    pub fn new(run: &Run) -> Observed {
        Observed {
            books: Books::new(run),
            rules: rules::all(),
            timeline: Timeline::of_destinations(run.vantage),
            over_time: OverTime::new(run.durations_seen),
        }
    }

    /// What was found out so far.
    pub fn facts(&self) -> ObservedFacts {
        ObservedFacts::new(&self.books, &self.rules)
    }

    /// What changed over time, if latency changed its level.
    pub fn step(&self) -> Option<Step> {
        self.over_time.step()
    }
}

impl Sink for Observed {
    fn record(&mut self, event: Event<'_>) {
        self.timeline.record(event);
        match event {
            Event::Opened(connection) => self.over_time.opened(connection),
            Event::Exchange(exchange) => self.over_time.exchange(exchange),
            _ => {}
        }
        let books = &mut self.books;
        let closed;
        let context = match event {
            Event::Opened(connection) => {
                let id = books.opened(connection);
                books.context(id)
            }
            Event::Revised(connection) => {
                let id = books.revised(connection);
                books.context(id)
            }
            Event::Exchange(exchange) => {
                let (destination, id, gap) = books.exchange(exchange);
                Context {
                    destination: Some(destination),
                    live: id.and_then(|id| books.live(id)),
                    gap,
                }
            }
            Event::Closed(end) => {
                closed = books.closed(end);
                Context {
                    destination: closed.map(|live| live.destination),
                    live: closed,
                    gap: None,
                }
            }
            Event::Lookup(lookup) => {
                books.lookup(lookup);
                Context::default()
            }
            Event::Sockets(sockets) => {
                books.sockets.truncate(1);
                books.sockets.push(*sockets);
                Context::default()
            }
            Event::Caveat(caveat) => {
                books.caveat(caveat);
                Context::default()
            }
            Event::Round(_) | Event::Invocation(_) => Context::default(),
        };
        for rule in &mut self.rules {
            rule.observe(event, &context);
        }
    }
}
