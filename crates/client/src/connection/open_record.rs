//! The ledger's record of an open connection, up to its end at the transport layer.

use super::Ended;
use super::connection_life::ConnectionLife;
use super::transport_end::TransportEnd;
use intact_ledger::{
    Close, CloseKind, ClosePoint, Closed, Connection, ConnectionBytes, DialFailure, Event, Failure,
    Nanos, Probes, SetupPhase, Side, Sink, Span,
};

/// A connection, and how it ended.
pub(super) struct OpenRecord {
    pub(super) connection: Connection,
    pub(super) ended: Option<Ended>,
    /// When the end was read, or found before a request.
    pub(super) end_read_at: Option<Nanos>,
    /// The connection was recorded. One whose first request is sent early is recorded after the
    /// handshake.
    pub(super) is_recorded: bool,
}

impl OpenRecord {
    /// The record of a connection that is open.
    pub(super) fn new(connection: Connection, is_recorded: bool) -> OpenRecord {
        OpenRecord {
            connection,
            ended: None,
            end_read_at: None,
            is_recorded,
        }
    }

    /// Records a connection whose first request was sent before the end of the handshake.
    pub(super) fn complete_handshake(&mut self, sink: &mut impl Sink) {
        self.is_recorded = true;
        sink.record(Event::Opened(&self.connection));
    }

    /// Records a connection that ends before its handshake is complete. Returns the kind of its end
    /// for the requests that were sent early; `None` if the handshake is complete.
    pub(super) fn fail_handshake(
        &mut self,
        (phase, kind): (SetupPhase, Failure),
        words: &str,
        sink: &mut impl Sink,
    ) -> Option<Failure> {
        if self.is_recorded {
            return None;
        }
        self.connection.failed = Some(DialFailure::with_detail(phase, kind, words));
        self.complete_handshake(sink);
        Some(kind)
    }

    /// Notes the end, which was read at `read_at`. The first one counts.
    pub(super) fn note_end(&mut self, (how, by, at): (CloseKind, Side, Nanos), read_at: Nanos) {
        self.ended.get_or_insert(Ended { at, by, how });
        self.end_read_at.get_or_insert(read_at);
    }

    /// The end of the transport for exchanges that end at `at`, after `sent` bytes of ours.
    pub(super) fn transport_end(
        &self,
        failure: Option<Failure>,
        at: Nanos,
        sent: u64,
        acknowledged: Option<u64>,
    ) -> TransportEnd {
        TransportEnd {
            failure,
            at,
            read_at: self.end_read_at.unwrap_or(at),
            sent,
            acknowledged,
            round_trip: self.connection.setup.connect.map(Span::nanos),
        }
    }

    /// The end for the ledger: `ended`, after this life.
    pub(super) fn close(
        &self,
        ended: Ended,
        life: &ConnectionLife,
        bytes: ConnectionBytes,
    ) -> Closed {
        let moment = match life.moment {
            _ if self.ended.is_none() && life.excess > 0 => ClosePoint::AfterExcess,
            ClosePoint::AfterExchange if life.announced_by.is_none() => ClosePoint::Idle,
            moment => moment,
        };
        Closed {
            connection: self.connection.id,
            variant: self.connection.variant,
            round: self.connection.round,
            close: Close {
                at: ended.at,
                by: Some(ended.by),
                how: Some(ended.how),
                other_end: None,
                announced_by: life.announced_by,
                moment: Some(moment),
                exchanges: Some(life.exchanges()),
                bytes,
                probes: Probes::default(),
            },
        }
    }
}
