//! A part of a run as if it were a run of its own: from a moment on, next to the analysis of the
//! whole.
//!
//! A connection from before counts from the first exchange that ends on it in the window: it was
//! not opened in the window, and fewer connections are needed there. Connections that the window
//! does not use are left out, so that its verdict is the same whatever ran before. Lookups have no
//! value: they are recorded too late to belong to a window.

use super::{ObservedFacts, OpenConnection, PoolOwner, TrafficAnalysis};
use intact_ledger::{Connection, ConnectionId, Event, Evidence, Nanos, Sink};
use std::collections::HashMap;

/// The analysis of a part of a run.
pub struct Window {
    began: Nanos,
    analysis: TrafficAnalysis,
    /// Connections that were open before and have carried nothing since.
    unused: HashMap<ConnectionId, OpenConnection>,
}

impl Window {
    /// A window from `began` on, `whole` being the analysis of the run so far.
    pub fn begin(whole: &TrafficAnalysis, began: Nanos) -> Window {
        let mut run = whole.tracker.run().clone();
        run.evidence = run.evidence.without(Evidence::Lookups);
        let mut analysis = TrafficAnalysis::new(&run);
        let caveats = whole.tracker.caveats();
        for caveat in caveats.iter().filter(|caveat| caveat.incomplete) {
            analysis.record(Event::Caveat(caveat));
        }
        analysis.tracker.know_stacks(&whole.tracker);
        let open = whole.tracker.open();
        let unused = open.map(|live| (live.connection.id, live.clone()));
        Window {
            began,
            analysis,
            unused: unused.collect(),
        }
    }

    /// What was found out so far.
    pub fn facts(&self) -> ObservedFacts {
        let mut facts = self.analysis.facts();
        facts.know_openings();
        facts
    }

    /// Enters a connection from before, with what it had carried.
    fn enter(&mut self, before: OpenConnection) {
        let connection = self.opened_before(&before.connection);
        self.analysis.record(Event::Opened(&connection));
        self.analysis.tracker.restore(connection.id, before);
    }

    /// The connection as one that was open before.
    fn opened_before(&self, connection: &Connection) -> Connection {
        Connection {
            at: self.began,
            open_before: true,
            ..connection.clone()
        }
    }

    fn is_from_before(&self, id: ConnectionId) -> bool {
        let live = self.analysis.tracker.live(id);
        live.is_some_and(|live| live.connection.open_before)
    }
}

impl Sink for Window {
    fn record(&mut self, event: Event<'_>) {
        match event {
            Event::Lookup(_) => {}
            // recorded with its first request, or later
            Event::Opened(connection)
                if connection.at < self.began && connection.failed.is_none() =>
            {
                let before = OpenConnection::new(connection.clone(), 0, PoolOwner::Unknown);
                self.unused.insert(connection.id, before);
            }
            Event::Revised(connection) => {
                if let Some(before) = self.unused.get_mut(&connection.id) {
                    before.connection.clone_from(connection);
                } else if self.is_from_before(connection.id) {
                    let revised = self.opened_before(connection);
                    self.analysis.record(Event::Revised(&revised));
                } else {
                    self.analysis.record(event);
                }
            }
            Event::Exchange(exchange) if exchange.end < self.began => {}
            Event::Exchange(exchange) => {
                let id = exchange.connection;
                if let Some(before) = id.and_then(|id| self.unused.remove(&id)) {
                    self.enter(before);
                }
                self.analysis.record(event);
            }
            Event::Closed(closed) if self.unused.remove(&closed.connection).is_some() => {}
            _ => self.analysis.record(event),
        }
    }
}
