//! Folds the events of a run into the values of its metrics: one pass, bounded memory. Must not
//! know an output format.

use crate::attributes::{self, Attributes};
use crate::connections::{ConnectionTable, TimedConnection};
use crate::series::Families;
use crate::table::{Metric, PHASE};
use intact_ledger::{
    Closed, Connection, Event, Evidence, Exchange, Failure, Nanos, Producer, Run, Setup, Sink,
    Spans,
};
use opentelemetry_semantic_conventions::attribute;

/// Receives the events of a run.
pub struct Fold {
    run: Run,
    families: Families,
    connections: ConnectionTable,
}

/// The complete metrics of a run.
pub struct Measured {
    /// The run.
    pub run: Run,
    /// The values.
    pub families: Families,
}

impl Fold {
    /// A fold without events.
    pub fn new(run: &Run) -> Fold {
        Fold {
            run: run.clone(),
            families: Families::new(run.vantage),
            connections: ConnectionTable::default(),
        }
    }

    /// Counts the connections that are still open, and ends the fold.
    pub fn finish(mut self) -> Measured {
        for open in self.connections.take_open() {
            self.level(&open, None);
            self.count(open);
        }
        Measured {
            run: self.run,
            families: self.families,
        }
    }

    fn opened(&mut self, connection: &Connection) {
        if let Some(failure) = &connection.failed
            && !connection.is_opened()
        {
            let attributes = attributes::of_connection(&self.run, connection);
            self.connections.remember(connection.id, attributes.clone());
            self.fail(failure.kind, attributes, connection.at);
            return;
        }
        let timed = self.timed(connection);
        if let Some(oldest) = self.connections.open(connection.id, timed) {
            self.count(oldest);
        }
    }

    fn revised(&mut self, connection: &Connection) {
        let timed = self.timed(connection);
        self.connections.revise(connection.id, timed);
    }

    fn closed(&mut self, closed: &Closed) {
        let at = closed.close.at;
        let Some(connection) = self.connections.close(closed.connection) else {
            return;
        };
        if self.has_life(&connection) {
            let life = whole(at.since(connection.at));
            let attributes = connection.attributes.clone();
            self.families.add(Metric::Lives, attributes, at, life);
        }
        self.level(&connection, Some(at));
        self.count(connection);
    }

    fn exchange(&mut self, exchange: &Exchange) {
        let end = exchange.end;
        let known = exchange
            .connection
            .and_then(|id| self.connections.attributes(id));
        let attributes = known
            .cloned()
            .unwrap_or_else(|| attributes::of_variant(&self.run, exchange.variant));
        let attributes = attributes::with_exchange(attributes, self.run.vantage, exchange);
        let untimed = exchange.latency() == 0 && exchange.spans == Spans::default();
        if self.run.sees(Evidence::Durations) && !untimed {
            let took = whole(exchange.latency());
            self.families
                .add(Metric::Requests, attributes.clone(), end, took);
        }
        if let Some(bytes) = exchange.body.read {
            self.families
                .add(Metric::Bodies, attributes.clone(), end, whole(bytes));
        }
        self.families.add(Metric::Seen, attributes, end, 1);
    }

    fn timed(&self, connection: &Connection) -> TimedConnection {
        TimedConnection {
            at: connection.at,
            setup: connection.setup,
            is_http: attributes::is_http(&self.run, connection),
            failed: connection.failed.as_ref().map(|failure| failure.kind),
            attributes: attributes::of_connection(&self.run, connection),
        }
    }

    /// Counts a connection whose facts are final.
    fn count(&mut self, connection: TimedConnection) {
        let Setup { dns, connect, ssl } = connection.setup;
        for (phase, span) in [("dns", dns), ("connect", connect), ("ssl", ssl)] {
            if let Some(span) = span {
                let attributes = attributes::with(connection.attributes.clone(), PHASE, phase);
                let took = whole(span.nanos());
                self.families
                    .add(Metric::Setups, attributes, span.end, took);
            }
        }
        if let Some(kind) = connection.failed {
            self.fail(kind, connection.attributes.clone(), connection.at);
        }
        self.families
            .add(Metric::Opened, connection.attributes, connection.at, 1);
    }

    fn fail(&mut self, kind: Failure, attributes: Attributes, at: Nanos) {
        let attributes = attributes::with(attributes, attribute::ERROR_TYPE, kind.id());
        self.families.add(Metric::Failed, attributes, at, 1);
    }

    /// Whether it carries HTTP, and its start and end can be observed.
    fn has_life(&self, connection: &TimedConnection) -> bool {
        connection.is_http && connection.failed.is_none() && self.run.sees(Evidence::Ends)
    }

    /// Adds it to the open connections, from its start to its end.
    fn level(&mut self, connection: &TimedConnection, closed: Option<Nanos>) {
        if !self.has_life(connection) {
            return;
        }
        for (at, change) in [(Some(connection.at), 1), (closed, -1)] {
            if let Some(at) = at {
                let attributes = connection.attributes.clone();
                self.families.add(Metric::Open, attributes, at, change);
            }
        }
    }

    /// Whether the event is a warm-up, or belongs to a round that is not counted.
    fn is_warm_up(&self, event: Event<'_>) -> bool {
        // the page of a bench leaves them out; that of observed traffic has every request
        let is_bench = self.run.producer == Producer::Bench;
        let round = match event {
            Event::Opened(connection) | Event::Revised(connection) => connection.round,
            Event::Exchange(exchange) if exchange.warmup && is_bench => return true,
            Event::Exchange(exchange) => exchange.round,
            Event::Closed(closed) => closed.round,
            _ => None,
        };
        round == Some(0) && !self.run.variants.is_empty()
    }
}

impl Sink for Fold {
    fn record(&mut self, event: Event<'_>) {
        if self.is_warm_up(event) {
            return;
        }
        match event {
            Event::Opened(connection) => self.opened(connection),
            Event::Revised(connection) => self.revised(connection),
            Event::Exchange(exchange) => self.exchange(exchange),
            Event::Closed(closed) => self.closed(closed),
            _ => {}
        }
    }
}

fn whole(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
