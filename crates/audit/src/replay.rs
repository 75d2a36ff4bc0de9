//! A stored ledger as an input: its events, with the clock and the ids of this run. So several
//! ledgers can be read as one.

use crate::error::AuditError;
use crate::event_writer::EventWriter;
use crate::input::Input;
use crate::input_summary::{InputSummary, Unit};
use crate::timestamp;
use intact_ledger::store::Reader;
use intact_ledger::{
    Closed, Connection, ConnectionId, Event, Exchange, Lookup, Nanos, Row, Rows, Setup, Span,
    StackId,
};

/// Number of events between two calls of `go_on`.
const BREATH: u64 = 4096;

/// Start of a ledger, in nanoseconds since 1970.
pub(crate) fn begins_at(reader: &Reader) -> Option<u64> {
    timestamp::nanos(&reader.run().started)
}

/// Reads a ledger to its end, or to where it was cut off.
pub(crate) fn read(
    input: &Input,
    reader: &Reader,
    writer: &mut EventWriter<'_>,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<InputSummary, AuditError> {
    let events = reader.events();
    let mut events = events.map_err(|error| input.broken(error.to_string()))?;
    let moved = Moved {
        by: begins_at(reader)
            .unwrap_or(writer.run.base)
            .saturating_sub(writer.run.base),
        connections: writer.run.connections,
        exchanges: writer.run.exchanges,
    };
    let mut count = 0;
    for row in events.by_ref() {
        count += 1;
        moved.record(row, writer);
        if count % BREATH == 0 && !go_on() {
            break;
        }
    }
    for caveat in events.caveats() {
        writer.record(Event::Caveat(&caveat));
    }
    if reader.run().rows == Rows::Sample {
        writer.incomplete(
            "sampled-rows",
            format!(
                "{} holds a sample of its exchanges: counts and findings are of the sample",
                input.path.display()
            ),
        );
    }
    let summary = input.account(Unit::Events, count, 0);
    Ok(summary.with_evidence(format!("recorded by intact {}", reader.run().producer)))
}

/// The shift of a ledger's times and ids.
struct Moved {
    /// Nanoseconds that are added to times.
    by: u64,
    /// Number that is added to connection ids.
    connections: u64,
    exchanges: u64,
}

impl Moved {
    fn record(&self, mut row: Row, writer: &mut EventWriter<'_>) {
        match &mut row {
            Row::Opened(connection) | Row::Revised(connection) => {
                self.connection(connection, writer);
            }
            Row::Exchange(exchange) => self.exchange(exchange, writer),
            Row::Closed(closed) => self.closed(closed),
            Row::Lookup(lookup) => self.lookup(lookup),
            Row::Stack(stack) => stack.id = self.stack(stack.id),
            Row::Caveat(_) => {}
            // facts about the recording machine and the rounds, which do not apply to this run
            Row::Sockets(_) | Row::Round(_) | Row::Invocation(_) | Row::Fault(_) => return,
        }
        writer.record(row.as_event());
    }

    fn nanos(&self, at: &mut Nanos) {
        *at = at.after(self.by);
    }

    fn span(&self, span: &mut Span) {
        *span = Span::new(span.start.after(self.by), span.end.after(self.by));
    }

    fn id(&self, id: ConnectionId) -> ConnectionId {
        ConnectionId(id.0.saturating_add(self.connections))
    }

    /// There are no more stacks than connections, so their ids can be moved by as much.
    fn stack(&self, id: StackId) -> StackId {
        StackId(id.0.saturating_add(self.connections))
    }

    fn connection(&self, one: &mut Connection, writer: &mut EventWriter<'_>) {
        one.id = self.id(one.id);
        one.stack = one.stack.map(|id| self.stack(id));
        writer.run.connections = writer.run.connections.max(one.id.0);
        (one.variant, one.round) = (None, None);
        self.nanos(&mut one.at);
        let Setup { dns, connect, ssl } = &mut one.setup;
        for span in [dns, connect, ssl].into_iter().flatten() {
            self.span(span);
        }
        if let Some(close) = &mut one.closed {
            self.nanos(&mut close.at);
        }
    }

    fn exchange(&self, one: &mut Exchange, writer: &mut EventWriter<'_>) {
        one.id = one.id.saturating_add(self.exchanges);
        writer.run.exchanges = writer.run.exchanges.max(one.id);
        one.retry_of = one.retry_of.map(|id| id.saturating_add(self.exchanges));
        one.connection = one.connection.map(|id| self.id(id));
        (one.variant, one.round) = (None, None);
        self.nanos(&mut one.at);
        self.nanos(&mut one.end);
        for span in one.spans.iter_mut().chain(&mut one.client_delay) {
            self.span(span);
        }
    }

    fn closed(&self, one: &mut Closed) {
        one.connection = self.id(one.connection);
        (one.variant, one.round) = (None, None);
        self.nanos(&mut one.close.at);
    }

    fn lookup(&self, one: &mut Lookup) {
        (one.variant, one.round) = (None, None);
        self.span(&mut one.span);
    }
}
