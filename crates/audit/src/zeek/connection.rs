//! One connection of Zeek's logs while they are joined: what each log tells of it, and its entries in the ledger.

use super::conn_state::{self, ConnState};
use super::record::{Field, Record};
use super::request::Request;
use super::service::{PORTS, Service};
use crate::event_writer::EventWriter;
use crate::fields;
use intact_ledger::{
    Close, CloseKind, ClosePoint, Connection, ConnectionBytes, DialFailure, Event, Exchange,
    Failure, Handshake, Origin, Probes, Protocol, Reuse, Scheme, SetupPhase, Side, Tls, Transport,
};
use intact_observe::authority::host_of;
use intact_observe::user_agent::product;
use std::net::SocketAddr;

/// No request is taken to last longer than this: `http.log` does not tell. Nanoseconds.
const LONGEST: u64 = 1_000_000_000;
/// The end of a connection, or of what Zeek saw of it.
#[derive(Clone, Copy, Debug)]
struct End {
    at: u64,
    by: Option<Side>,
    how: Option<CloseKind>,
    is_open: bool,
}

/// A connection.
#[derive(Debug)]
pub(super) struct ZeekConnection {
    pub(super) start: u64,
    ends: Option<(SocketAddr, SocketAddr)>,
    pub(super) service: Service,
    late: bool,
    end: Option<End>,
    failed: Option<DialFailure>,
    bytes: [Option<u64>; 2],
    /// Bytes that Zeek did not see.
    pub(super) missed: u64,
    tls: Option<Box<(Tls, Option<Protocol>)>>,
    told: Option<Box<Connection>>,
    carried: u64,
    pub(super) seen_at: u64,
    /// The last request, until its end is known.
    pending: Option<Box<Exchange>>,
    last_end: u64,
    /// When its end is asked for next; not once a request, of which a client may pipeline any number.
    asked_at: Option<u64>,
}

impl ZeekConnection {
    /// One of which nothing is known but that something came on it.
    pub(super) fn begun(at: u64, ends: Option<(SocketAddr, SocketAddr)>) -> ZeekConnection {
        ZeekConnection {
            start: at,
            ends,
            service: Service::Unknown,
            late: false,
            end: None,
            failed: None,
            bytes: [None; 2],
            missed: 0,
            tls: None,
            told: None,
            carried: 0,
            seen_at: at,
            pending: None,
            last_end: at,
            asked_at: None,
        }
    }

    /// One as a line of `conn.log` tells it.
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
            by: None,
            how: None,
            is_open: false,
        };
        if talk.service == Service::Quic {
            let unanswered = record.text(Field::State) == Some("S0") || talk.bytes[1] == Some(0);
            talk.failed = unanswered.then_some(DialFailure {
                phase: SetupPhase::Connect,
                kind: Failure::ConnectTimeout,
                detail: None,
            });
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

    /// When it ended, as far as it is known.
    pub(super) fn ended_at(&self) -> Option<u64> {
        self.end.map(|end| end.at)
    }

    /// Its server.
    pub(super) fn server(&self) -> Option<SocketAddr> {
        self.ends.map(|(_, server)| server)
    }

    /// Whether it may carry HTTP, `served` being whether others to the same server did.
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

    /// Takes what `ssl.log` tells.
    pub(super) fn secure(&mut self, record: &Record<'_>) {
        let resumed = record.flag(Field::Resumed);
        let alpn = record.text(Field::Alpn);
        let protocol = alpn.and_then(fields::protocol);
        let name = record.text(Field::ServerName);
        let name = name.and_then(|name| host_of(name.as_bytes()));
        let tls = Tls {
            version: record.text(Field::Version).and_then(fields::tls_version),
            cipher: record.text(Field::Cipher).map(Into::into),
            server_name: name,
            alpn_chosen: alpn.map(Into::into),
            handshake: resumed.map(|resumed| match resumed {
                true => Handshake::Resumed,
                false => Handshake::Full,
            }),
            ..Tls::default()
        };
        self.tls = Some(Box::new((tls, protocol)));
        if self.service == Service::Unknown {
            self.service = Service::Tls;
        }
        if let (Some(alert), Some(false)) =
            (record.text(Field::Alert), record.flag(Field::Established))
        {
            self.failed = Some(DialFailure {
                phase: SetupPhase::Ssl,
                kind: Failure::TlsAlert,
                detail: Some(alert.into()),
            });
        }
    }

    /// Whether it has been told of.
    pub(super) fn is_told(&self) -> bool {
        self.told.is_some()
    }

    /// Whether what it carried cannot be seen.
    pub(super) fn is_blind(&self) -> bool {
        self.carried == 0 && !self.is_silent() && self.failed.is_none()
    }

    fn is_silent(&self) -> bool {
        self.bytes == [Some(0); 2] && self.service != Service::Quic
    }

    /// Tells that it was opened.
    pub(super) fn open(&mut self, scope: &mut EventWriter<'_>) {
        let mut connection = Connection::new(scope.next_connection(), scope.nanos(self.start));
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
        scope.record(Event::Opened(&connection));
        self.told = Some(Box::new(connection));
    }

    /// Takes a request; when to ask for its end, if that is not known yet and nobody asks before.
    pub(super) fn carry(&mut self, request: Request, scope: &mut EventWriter<'_>) -> Option<u64> {
        self.answer(request.at, scope);
        let connection = self.told.as_deref_mut()?;
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
            scope.record(Event::Revised(connection));
        }
        self.carried += 1;
        self.seen_at = self.seen_at.max(request.at);
        let mut one = request.one;
        one.id = scope.next_exchange();
        one.connection = Some(connection.id);
        // of a connection that Zeek joined later it counts what it saw; without conn.log it is not known whether it did
        one.ordinal = request.nth.filter(|_| !self.late);
        let is_first = request.nth.map_or(self.carried == 1, |nth| nth <= 1);
        let may_be_later = self.late || (request.nth.is_none() && self.end.is_none());
        one.reuse = match (is_first, may_be_later) {
            (true, true) => None,
            (true, false) => Some(Reuse::Fresh),
            (false, _) => Some(Reuse::Reused),
        };
        let Some(end) = self.end else {
            // nothing bounds its end
            self.last_end = request.at;
            scope.record(Event::Exchange(&one));
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

    /// Tells of the last request, which was over at `by` at the latest.
    pub(super) fn answer(&mut self, by: u64, scope: &mut EventWriter<'_>) {
        if let Some(mut one) = self.pending.take() {
            self.last_end = self.last_end.min(by);
            one.end = scope.nanos(self.last_end).max(one.at);
            scope.record(Event::Exchange(&one));
        }
    }

    /// Asks whether the last request is over at this time, and tells of it if so; if not, when to ask again.
    pub(super) fn ask_at(&mut self, at: u64, scope: &mut EventWriter<'_>) -> Option<u64> {
        if self.asked_at == Some(at) {
            self.asked_at = None;
        }
        self.pending.as_ref()?;
        if self.last_end <= at {
            self.answer(at, scope);
            return None;
        }
        self.ask()
    }

    /// Tells of its end, where that is known.
    pub(super) fn close(mut self, scope: &mut EventWriter<'_>) {
        let Some(end) = self.end else {
            return;
        };
        self.answer(end.at, scope);
        let (Some(connection), None) = (&self.told, &self.failed) else {
            return;
        };
        if end.is_open {
            return;
        }
        let (moment, exchanges) = match self.carried {
            0 if self.is_silent() => (Some(ClosePoint::Unused), Some(0)),
            0 => (None, None),
            // at what it was ended is told by who did
            carried if end.by.is_none() => (None, Some(carried)),
            carried => {
                let idle = end.at.saturating_sub(self.last_end);
                (Some(ClosePoint::after(idle, false)), Some(carried))
            }
        };
        let close = Close {
            at: scope.nanos(end.at),
            by: end.by,
            how: end.how,
            other_end: None,
            announced_by: None,
            moment,
            exchanges,
            bytes: ConnectionBytes {
                sent: self.bytes[0].unwrap_or(0),
                received: self.bytes[1].unwrap_or(0),
            },
            probes: Probes::default(),
        };
        scope.close(connection.id, close);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_many_requests_come_one_question_for_an_end_is_due() {
        let mut talk = ZeekConnection::begun(0, None);
        let mut due = Vec::new();
        for last_end in [10, 20, 30, 5] {
            talk.last_end = last_end;
            due.extend(talk.ask());
        }
        // again only for an end that comes before
        assert_eq!(due, [10, 5]);
    }
}
