//! One connection while Zeek's logs are joined: its facts from each log, and its rows in the
//! ledger.

use super::conn_state::{self, ConnState};
use super::record::{Field, Record};
use super::request::Request;
use super::service::{PORTS, Service};
use crate::event_writer::EventWriter;
use crate::fields;
use intact_ledger::{
    Close, CloseKind, ClosePoint, Connection, ConnectionBytes, DialFailure, Event, Exchange,
    Failure, Handshake, Origin, Protocol, Reuse, Scheme, SetupPhase, Side, Tls, Transport,
};
use intact_observe::authority::host_of;
use intact_observe::user_agent::product;
use std::net::SocketAddr;

/// Longest assumed duration of a request, because `http.log` has none. Nanoseconds.
const LONGEST: u64 = 1_000_000_000;
/// The end of a connection, or of Zeek's observation.
#[derive(Clone, Copy, Debug, Default)]
struct End {
    at: u64,
    by: Option<Side>,
    how: Option<CloseKind>,
    is_open: bool,
}

/// A connection.
#[derive(Debug, Default)]
pub(super) struct ZeekConnection {
    pub(super) start: u64,
    ends: Option<(SocketAddr, SocketAddr)>,
    pub(super) service: Service,
    late: bool,
    end: Option<End>,
    failed: Option<DialFailure>,
    bytes: [Option<u64>; 2],
    /// Number of bytes that Zeek did not see.
    pub(super) missed: u64,
    tls: Option<Box<(Tls, Option<Protocol>)>>,
    recorded: Option<Box<Connection>>,
    carried: u64,
    pub(super) seen_at: u64,
    /// The last request, until its end is known.
    pending: Option<Box<Exchange>>,
    last_end: u64,
    /// Time of the next check for its end. There is one check at a time, although a client may
    /// pipeline any number of requests.
    asked_at: Option<u64>,
}

impl ZeekConnection {
    /// A connection of which only some traffic is known.
    pub(super) fn begun(at: u64, ends: Option<(SocketAddr, SocketAddr)>) -> ZeekConnection {
        ZeekConnection {
            start: at,
            ends,
            seen_at: at,
            last_end: at,
            ..ZeekConnection::default()
        }
    }

    /// A connection as a line of `conn.log` describes it.
    pub(super) fn of(record: &Record<'_>) -> Option<ZeekConnection> {
        let at = record.start()?;
        let mut talk = ZeekConnection::begun(at, Some(record.ends()?));
        talk.service = Service::of(record);
        talk.bytes = [Field::Sent, Field::Received].map(|field| record.number(field));
        talk.missed = record.number(Field::Missed).unwrap_or(0);
        let took = record
            .number(Field::Duration)
            .map(|seconds: f64| seconds * 1e9);
        let took = took.and_then(fields::whole).unwrap_or(0);
        let mut end = End {
            at: at.saturating_add(took),
            ..End::default()
        };
        if talk.service == Service::Quic {
            let unanswered = record.text(Field::State) == Some("S0") || talk.bytes[1] == Some(0);
            let timeout = DialFailure::new(SetupPhase::Connect, Failure::ConnectTimeout);
            talk.failed = unanswered.then_some(timeout);
        } else {
            let state = record.text(Field::State)?;
            let history = record.text(Field::History).unwrap_or("");
            talk.late = conn_state::is_late(state, history);
            match conn_state::fate(state, history) {
                ConnState::Failed(failed) => talk.failed = Some(failed),
                ConnState::Ended { by, how } => (end.by, end.how) = (by, how),
                ConnState::Open => end.is_open = true,
            }
        }
        talk.end = Some(end);
        Some(talk)
    }

    /// The end of the connection, if it is known.
    pub(super) fn ended_at(&self) -> Option<u64> {
        self.end.map(|end| end.at)
    }

    /// The server's address.
    pub(super) fn server(&self) -> Option<SocketAddr> {
        self.ends.map(|(_, server)| server)
    }

    /// Whether it may carry HTTP. `served`: other connections to the same server did.
    pub(super) fn concerns_us(&self, served: bool) -> bool {
        match self.service {
            Service::Http | Service::Tls | Service::Quic => true,
            Service::Unknown => {
                let usual = |server: SocketAddr| PORTS.contains(&server.port());
                served || self.tls.is_some() || self.server().is_some_and(usual)
            }
            Service::Other => false,
        }
    }

    /// Adds the facts of a line of `ssl.log`.
    pub(super) fn secure(&mut self, record: &Record<'_>) {
        let alpn = record.text(Field::Alpn);
        let protocol = alpn.and_then(fields::protocol);
        let name = record.text(Field::ServerName);
        let name = name.and_then(|name| host_of(name.as_bytes()));
        let tls = Tls {
            version: record.text(Field::Version).and_then(fields::tls_version),
            cipher: record.text(Field::Cipher).map(Into::into),
            server_name: name,
            alpn_chosen: alpn.map(Into::into),
            handshake: record.flag(Field::Resumed).map(Handshake::of),
            ..Tls::default()
        };
        self.tls = Some(Box::new((tls, protocol)));
        if self.service == Service::Unknown {
            self.service = Service::Tls;
        }
        if let (Some(alert), Some(false)) =
            (record.text(Field::Alert), record.flag(Field::Established))
        {
            let failed = DialFailure::with_detail(SetupPhase::Ssl, Failure::TlsAlert, alert);
            self.failed = Some(failed);
        }
    }

    /// Whether the connection is recorded.
    pub(super) fn is_recorded(&self) -> bool {
        self.recorded.is_some()
    }

    /// Whether its content cannot be read.
    pub(super) fn is_blind(&self) -> bool {
        self.carried == 0 && !self.is_silent() && self.failed.is_none()
    }

    fn is_silent(&self) -> bool {
        self.bytes == [Some(0); 2] && self.service != Service::Quic
    }

    /// Records that the connection was opened.
    pub(super) fn open(&mut self, writer: &mut EventWriter<'_>) {
        let mut connection = Connection::new(writer.next_connection(), writer.nanos(self.start));
        connection.open_before = self.late;
        connection.local = self.ends.map(|(client, _)| client);
        connection.peer = self.server();
        connection.failed.clone_from(&self.failed);
        if self.service == Service::Quic {
            connection.transport = Transport::Quic;
        }
        if let Some((tls, protocol)) = self.tls.as_deref() {
            connection.protocol = *protocol;
            connection.tls = Some(tls.clone());
            if let (Some(name), Some(server)) = (&tls.server_name, self.server()) {
                connection.origin = Some(Origin {
                    scheme: Scheme::Https,
                    host: name.clone(),
                    port: server.port(),
                });
            }
        } else if self.service == Service::Tls {
            connection.tls = Some(Tls::default());
        }
        writer.record(Event::Opened(&connection));
        self.recorded = Some(Box::new(connection));
    }

    /// Adds a request. Returns when to check for its end, if the end is unknown and no check is due
    /// before.
    pub(super) fn carry(&mut self, request: Request, writer: &mut EventWriter<'_>) -> Option<u64> {
        self.answer(request.at, writer);
        let connection = self.recorded.as_deref_mut()?;
        let before = connection.clone();
        if connection.origin.is_none() {
            connection.origin = self
                .ends
                .and_then(|(_, server)| request.origin(server.port()));
        }
        if connection.agent.is_none() {
            connection.agent = request.agent.as_deref().and_then(product);
        }
        connection.protocol = connection.protocol.or(request.protocol);
        if *connection != before {
            writer.record(Event::Revised(connection));
        }
        self.carried += 1;
        self.seen_at = self.seen_at.max(request.at);
        let mut one = request.one;
        one.id = writer.next_exchange();
        one.connection = Some(connection.id);
        // if Zeek observed the connection from a later time on, it counts only later requests;
        // conn.log shows this
        one.ordinal = request.nth.filter(|_| !self.late);
        let is_first = request.nth.map_or(self.carried == 1, |nth| nth <= 1);
        let may_be_later = self.late || (request.nth.is_none() && self.end.is_none());
        one.reuse = match (is_first, may_be_later) {
            (true, true) => None,
            (true, false) => Some(Reuse::Fresh),
            (false, _) => Some(Reuse::Reused),
        };
        let Some(end) = self.end else {
            // no later event limits its end
            self.last_end = request.at;
            writer.record(Event::Exchange(&one));
            return None;
        };
        self.pending = Some(Box::new(one));
        self.last_end = end.at.min(request.at.saturating_add(LONGEST));
        self.ask()
    }

    fn ask(&mut self) -> Option<u64> {
        let is_asked = self.asked_at.is_some_and(|at| at <= self.last_end);
        if is_asked {
            return None;
        }
        self.asked_at = Some(self.last_end);
        self.asked_at
    }

    /// Records the last request, which ended at `by` at the latest.
    pub(super) fn answer(&mut self, by: u64, writer: &mut EventWriter<'_>) {
        if let Some(mut one) = self.pending.take() {
            self.last_end = self.last_end.min(by);
            one.end = writer.nanos(self.last_end).max(one.at);
            writer.record(Event::Exchange(&one));
        }
    }

    /// Records the last request if it has ended at `at`. Otherwise returns when to check again.
    pub(super) fn ask_at(&mut self, at: u64, writer: &mut EventWriter<'_>) -> Option<u64> {
        if self.asked_at == Some(at) {
            self.asked_at = None;
        }
        self.pending.as_ref()?;
        if self.last_end <= at {
            self.answer(at, writer);
            return None;
        }
        self.ask()
    }

    /// Records the end of the connection, if it is known.
    pub(super) fn close(mut self, writer: &mut EventWriter<'_>) {
        let Some(end) = self.end else {
            return;
        };
        self.answer(end.at, writer);
        let (Some(connection), None) = (&self.recorded, &self.failed) else {
            return;
        };
        if end.is_open {
            return;
        }
        let (moment, exchanges) = match self.carried {
            0 if self.is_silent() => (Some(ClosePoint::Unused), Some(0)),
            0 => (None, None),
            // how the connection ended depends on the side that ended it
            carried if end.by.is_none() => (None, Some(carried)),
            carried => {
                let idle = end.at.saturating_sub(self.last_end);
                (Some(ClosePoint::after(idle, false)), Some(carried))
            }
        };
        let close = Close {
            at: writer.nanos(end.at),
            by: end.by,
            how: end.how,
            moment,
            exchanges,
            bytes: ConnectionBytes {
                sent: self.bytes[0].unwrap_or(0),
                received: self.bytes[1].unwrap_or(0),
                ..ConnectionBytes::default()
            },
            ..Close::default()
        };
        writer.close(connection.id, close);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_check_for_an_end_is_due_for_any_number_of_requests() {
        let mut talk = ZeekConnection::begun(0, None);
        let mut due = Vec::new();
        for last_end in [10, 20, 30, 5] {
            talk.last_end = last_end;
            due.extend(talk.ask());
        }
        // a second check only for an earlier end
        assert_eq!(due, [10, 5]);
    }
}
