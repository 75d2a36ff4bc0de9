//! One TCP connection of a capture: segments in, its entry in the ledger out.
//!
//! Owns the reassembly and the layers above it; tells what the packets alone show: setup, end, failure.

use super::coverage::{Coverage, Lacks};
use super::ladder::{Ladder, LadderBuilder};
use super::protocol_stack::ProtocolStack;
use super::record::{End, Record, side};
use crate::event_writer::EventWriter;
use intact_ledger::{
    CloseKind, Connection, ConnectionBytes, ConnectionId, DialFailure, Failure, SetupPhase, Span,
};
use intact_wire::Side;
use intact_wire::tcp::{Flow, Limits, Run, Segment, TcpCloseKind};
use intact_wire::tls::decrypt::KeyLog;
use std::net::SocketAddr;

/// What may wait for a hole to be filled, per direction.
const LIMITS: Limits = Limits {
    bytes: 1 << 20,
    pieces: 1024,
    patience: 200_000_000,
};
/// A SYN that stayed alone for this long was not answered in time. Nanoseconds.
const UNANSWERED: u64 = 1_000_000_000;

/// One TCP connection.
pub(super) struct TcpConnection {
    flow: Flow,
    coverage: Coverage,
    layers: ProtocolStack,
    record: Record,
    client: SocketAddr,
    begun_at: u64,
    established_at: Option<u64>,
    seen_at: u64,
}

/// What became of a conversation.
pub(super) enum ConnectionState {
    /// A connection.
    Connection {
        /// Exchanges whose end is not in the capture.
        unseen: u64,
        /// Why it cannot be seen inside, if it cannot.
        blind: Option<OpaqueReason>,
        /// Exchanges that it carried.
        carried: u64,
        /// What the capture lacks of it.
        lacks: Lacks,
        /// Its packets, where they were wanted.
        ladder: Option<Box<Ladder>>,
    },
    /// A first SYN, so late in the capture that its answer may come after it.
    TooLate,
}

/// Why nothing is known of what a connection carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OpaqueReason {
    /// It is encrypted, and there is no key.
    Tls,
    /// Bytes that belong to no protocol that is read.
    Unknown,
}

impl TcpConnection {
    /// A connection whose first packet came at `at`; `late` if that was not a SYN.
    pub(super) fn new(
        client: SocketAddr,
        server: SocketAddr,
        at: u64,
        late: bool,
        scope: &mut EventWriter<'_>,
    ) -> TcpConnection {
        let mut connection = Connection::new(scope.next_connection(), scope.nanos(at));
        connection.local = Some(client);
        connection.peer = Some(server);
        TcpConnection {
            flow: Flow::new(LIMITS),
            coverage: Coverage::default(),
            layers: ProtocolStack::new(late),
            record: Record::new(connection, late),
            client,
            begun_at: at,
            established_at: None,
            seen_at: at,
        }
    }

    /// The side that sends from this address.
    pub(super) fn side_of(&self, source: SocketAddr) -> Side {
        if source == self.client {
            Side::Client
        } else {
            Side::Server
        }
    }

    /// Its number.
    pub(super) fn id(&self) -> ConnectionId {
        self.record.connection.id
    }

    /// When the last packet came, in nanoseconds since 1970.
    pub(super) fn seen_at(&self) -> u64 {
        self.seen_at
    }

    /// Bytes that wait for a hole to be filled.
    pub(super) fn waiting(&self) -> usize {
        self.flow.waiting()
    }

    /// Whether a segment opens another connection between the same addresses.
    pub(super) fn is_reopened_by(&self, from: Side, segment: &Segment<'_>) -> bool {
        self.flow.is_reopened_by(from, segment)
    }

    /// Whether both sides have said their last word.
    pub(super) fn is_over(&self) -> bool {
        let [client, server] =
            [Side::Client, Side::Server].map(|side| self.flow.stream(side).facts());
        client.rst_at.is_some()
            || server.rst_at.is_some()
            || (client.fin_at.is_some() && server.fin_at.is_some())
    }

    /// Takes a segment.
    pub(super) fn take(
        &mut self,
        from: Side,
        segment: &Segment<'_>,
        keys: &KeyLog,
        scope: &mut EventWriter<'_>,
    ) {
        let Self {
            flow,
            layers,
            record,
            ..
        } = self;
        self.seen_at = self.seen_at.max(segment.at);
        self.coverage.take(from, segment);
        if let Some(climb) = &mut record.climb {
            climb.packet(from, segment);
        }
        let repeated = flow.stream(from).facts().repeated;
        if from == Side::Client {
            record.hear_client(segment.len > 0);
        }
        // before the payload is taken: a handshake's last packet may carry the first request
        let syns = [Side::Client, Side::Server].map(|side| flow.stream(side).facts().syn_at);
        if let (Some(syn), Some(_), None) = (syns[0], syns[1], self.established_at)
            && from == Side::Client
            && segment.ack.is_some()
        {
            self.established_at = Some(segment.at);
            record.connection.setup.connect =
                Some(Span::new(scope.nanos(syn), scope.nanos(segment.at)));
        }
        let mut emit = |side, run: Run<'_>| match run {
            Run::Bytes { bytes, at } => layers.read(side, bytes, at, keys, record, scope),
            Run::Gap { len, .. } => layers.lose(side, len, record, scope),
        };
        flow.push(from, segment, &mut emit);
        if let Some(climb) = &mut record.climb
            && flow.stream(from).facts().repeated > repeated
        {
            climb.was_again();
        }
    }

    /// Begins to keep its packets; to be asked for before the first one.
    pub(super) fn climb(&mut self, client: SocketAddr, server: SocketAddr) {
        let id = self.record.connection.id;
        self.record.climb = Some(Box::new(LadderBuilder::new(id, client, server)));
    }

    /// Ends the entry. `complete`: the capture goes on for long enough, so what did not come never came.
    pub(super) fn finish(
        mut self,
        complete: bool,
        now: u64,
        keys: &KeyLog,
        scope: &mut EventWriter<'_>,
    ) -> ConnectionState {
        let end = self.end();
        if let Some(end) = end {
            self.record.note_end(end, scope);
        }
        let closed_at = end.map_or(self.seen_at, |end| end.at);
        let Self {
            flow,
            coverage,
            layers,
            record,
            ..
        } = &mut self;
        flow.finish(|side, run| match run {
            Run::Bytes { bytes, at } => layers.read(side, bytes, at, keys, record, scope),
            Run::Gap { len, .. } => layers.lose(side, len, record, scope),
        });
        let lacks = coverage.lacks(flow);
        // an answer that is not in the capture did not fail
        layers.end(
            end.is_some() && lacks.is_nothing(),
            closed_at,
            record,
            scope,
        );
        // the other side may have closed before, in a packet that is not there
        let end = end.map(|end| End {
            by: end.by.filter(|by| {
                let other = match by {
                    intact_ledger::Side::Client => Side::Server,
                    intact_ledger::Side::Server => Side::Client,
                };
                !coverage.lacks_end_of(other, flow)
            }),
            ..end
        });
        if let Some(failed) = self.dial_failure(complete, now) {
            let Some(failed) = failed else {
                return ConnectionState::TooLate;
            };
            self.record.connection.closed = None;
            self.record.connection.failed = Some(failed);
            self.record.tell(scope);
            return ConnectionState::Connection {
                unseen: 0,
                blind: None,
                carried: 0,
                lacks,
                ladder: self.record.ladder(),
            };
        }
        let carried = |side| {
            let facts = self.flow.stream(side).facts();
            facts.bytes + facts.lost
        };
        let bytes = ConnectionBytes {
            sent: carried(Side::Client),
            received: carried(Side::Server),
        };
        let blind = self.blind(&bytes, lacks);
        let record = &mut self.record;
        // a handshake whose end is not in the capture did not fail
        if end.is_some()
            && lacks.is_nothing()
            && let Some(tls) = &self.layers.tls
        {
            record.connection.failed = tls.failure();
        }
        match end {
            Some(end) if record.connection.failed.is_none() => record.close(end, bytes, scope),
            _ => {
                record.connection.closed = None;
                record.tell(scope);
            }
        }
        ConnectionState::Connection {
            unseen: record.unseen(),
            blind,
            carried: record.carried(),
            lacks,
            ladder: record.ladder(),
        }
    }

    /// Why what it carried is not known, where all of it is there.
    fn blind(&self, bytes: &ConnectionBytes, lacks: Lacks) -> Option<OpaqueReason> {
        let carried = bytes.sent + bytes.received > 0;
        let is_named = !self.record.readable && self.record.connection.protocol.is_some();
        if self.record.is_read() || !carried || is_named {
            None
        } else if self.layers.tls.is_some() && !self.record.readable {
            Some(OpaqueReason::Tls)
        } else {
            lacks.is_nothing().then_some(OpaqueReason::Unknown)
        }
    }

    /// The first FIN or RST.
    fn end(&self) -> Option<End> {
        let close = self.flow.close()?;
        let tls = self.layers.tls.as_ref();
        let goodbye_at = |by: Side| tls.and_then(|tls| tls.goodbye_at(by));
        // a server answers a close_notify with its FIN, which may come before the client's
        let first = first_goodbye([Side::Client, Side::Server].map(goodbye_at));
        if let Some((at, by)) = first.filter(|(at, by)| *at <= close.at && *by != close.by) {
            return Some(End {
                at,
                by: Some(side(by)),
                how: CloseKind::CloseNotify,
            });
        }
        let how = match close.how {
            TcpCloseKind::Rst => CloseKind::Rst,
            TcpCloseKind::Fin if self.layers.went_away(close.by) => CloseKind::Goaway,
            TcpCloseKind::Fin if goodbye_at(close.by).is_some() => CloseKind::CloseNotify,
            TcpCloseKind::Fin => CloseKind::Fin,
        };
        Some(End {
            at: close.at,
            by: Some(side(close.by)),
            how,
        })
    }

    /// `None`: it was established. `Some(None)`: that cannot be told, the capture ends too soon.
    fn dial_failure(&self, complete: bool, now: u64) -> Option<Option<DialFailure>> {
        let client = self.flow.stream(Side::Client).facts();
        let server = self.flow.stream(Side::Server).facts();
        let heard =
            server.syn_at.is_some() || server.bytes > 0 || self.coverage.acknowledges(Side::Client);
        if client.syn_at.is_none() || heard || self.established_at.is_some() {
            return None;
        }
        // with one direction in the capture the client goes on talking to an answer that is not
        if client.bytes > 0 || client.fin_at.is_some() {
            return None;
        }
        let kind = if server.rst_at.is_some() {
            Failure::Refused
        } else if complete || client.repeated > 0 || now.saturating_sub(self.begun_at) >= UNANSWERED
        {
            Failure::ConnectTimeout
        } else {
            return Some(None);
        };
        Some(Some(DialFailure {
            phase: SetupPhase::Connect,
            kind,
            detail: None,
        }))
    }
}

/// Who said goodbye first, of client and server: the other one's is an answer.
fn first_goodbye([client, server]: [Option<u64>; 2]) -> Option<(u64, Side)> {
    let client = client.map(|at| (at, Side::Client));
    let server = server.map(|at| (at, Side::Server));
    client.into_iter().chain(server).min_by_key(|(at, _)| *at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goodbye_that_answers_another_is_not_who_closed() {
        assert_eq!(first_goodbye([Some(5), Some(6)]), Some((5, Side::Client)));
        assert_eq!(first_goodbye([Some(5), Some(4)]), Some((4, Side::Server)));
        assert_eq!(first_goodbye([None, Some(4)]), Some((4, Side::Server)));
        assert_eq!(first_goodbye([None, None]), None);
    }
}
