//! A socket or a QUIC session of a NetLog, and its connection.

use super::constants::Constants;
use super::event::Params;
use crate::event_writer::EventWriter;
use crate::fields;
use crate::lenient::Lenient;
use intact_ledger::{
    Certainty, Close, CloseKind, ClosePoint, Connection, ConnectionBytes, ConnectionId,
    DialFailure, Event, Failure, Handshake, KeepAliveTerms, Origin, Protocol, Reuse, Scheme, Setup,
    SetupPhase, Side, Span, Tls, Transport,
};
use std::sync::Arc;

/// A first request that starts this long after the setup did not wait for it, so the connection was
/// opened ahead. Nanoseconds.
const AHEAD: u64 = intact_ledger::OPENED_AHEAD;
/// Bytes that a client may send after its TLS handshake ended: the last flight and a
/// `close_notify`.
const LAST_FLIGHT: u64 = 256;

/// The facts about a socket so far. Times in nanoseconds since 1970.
#[derive(Default)]
pub(super) struct Socket {
    /// The connection, after it was recorded.
    pub(super) recorded: Option<ConnectionId>,
    pub(super) at: u64,
    /// The socket was open when the log began.
    is_from_before: bool,
    /// Start of the job that made the socket, before the lookup, if the file has it.
    pub(super) job_at: Option<u64>,
    pub(super) origin: Option<Origin>,
    pub(super) is_quic: bool,
    tcp: (Option<u64>, Option<u64>),
    ssl: (Option<u64>, Option<u64>),
    local: Option<Box<str>>,
    remote: Option<Box<str>>,
    failed: Option<DialFailure>,
    tls: Option<Tls>,
    pub(super) protocol: Option<Protocol>,
    pub(super) terms: KeepAliveTerms,
    pub(super) agent: Option<Arc<str>>,
    pub(super) server: Option<Arc<str>>,
    pub(super) announced_by: Option<Side>,
    /// When the server sent GOAWAY without an error.
    shutdown_at: Option<u64>,
    closed_by: (Option<Side>, Option<CloseKind>),
    /// Number of requests assigned to it, and of those that are open.
    pub(super) given: u32,
    pub(super) in_flight: u32,
    last_end: u64,
    bytes: ConnectionBytes,
    /// Bytes sent after the setup.
    sent_ready: u64,
    gone_at: Option<u64>,
}

impl Socket {
    pub(super) fn begin(at: u64) -> Socket {
        Socket {
            at,
            ..Socket::default()
        }
    }

    /// A socket that was open when the log began, and is used at `at`.
    pub(super) fn from_before(at: u64, protocol: Option<Protocol>) -> Socket {
        Socket {
            is_from_before: true,
            is_quic: protocol == Some(Protocol::Http3),
            protocol,
            ..Socket::begin(at)
        }
    }

    /// The position of request `nth` on the socket; `None` if the log began after the socket
    /// opened.
    pub(super) fn ordinal(&self, nth: u32) -> Option<u32> {
        (!self.is_from_before).then_some(nth)
    }

    /// Whether request `nth` reused the socket. `None` for its first request in the log, if the log
    /// began after the socket opened.
    pub(super) fn reuse(&self, waited: bool, nth: u32) -> Option<Reuse> {
        match (self.is_from_before, nth) {
            (true, 0..=1) => None,
            (true, _) => Some(Reuse::Reused),
            (false, _) => Reuse::of(waited, Some(nth)),
        }
    }

    /// Starts the TCP handshake.
    pub(super) fn dial(&mut self, at: u64) {
        self.tcp.0.get_or_insert(at);
    }

    /// Ends the TCP handshake.
    pub(super) fn dialled(&mut self, params: &Params, at: u64, constants: &Constants) {
        self.tcp.1.get_or_insert(at);
        let either = |one: &Lenient, other: &Lenient| one.text().or(other.text()).map(Into::into);
        self.local = either(&params.local_address, &params.source_address);
        self.remote = either(&params.remote_address, &params.peer_address);
        self.fail(params, SetupPhase::Connect, constants);
    }

    /// Starts the TLS handshake.
    pub(super) fn secure(&mut self, at: u64) {
        self.ssl.0.get_or_insert(at);
    }

    /// Ends the TLS handshake.
    pub(super) fn secured(&mut self, params: &Params, at: u64, constants: &Constants) {
        self.ssl.1.get_or_insert(at);
        let mut tls = Tls::default();
        let version = params.version.text().unwrap_or_default();
        tls.version = fields::tls_version(&version);
        let suite = params.cipher_suite.count();
        let suite = suite.and_then(|suite| u16::try_from(suite).ok());
        tls.cipher = suite.map(|suite| intact_wire::tls::suite_name(suite).into());
        if self.failed.is_none() && params.net_error.number().is_none() {
            tls.handshake = Some(Handshake::of(params.is_resumed.is_set()));
        }
        let chosen = params.next_proto.text();
        self.protocol = chosen.as_deref().and_then(fields::protocol);
        tls.alpn_chosen = chosen.as_deref().map(Into::into);
        self.tls = Some(tls);
        self.fail(params, SetupPhase::Ssl, constants);
    }

    fn fail(&mut self, params: &Params, phase: SetupPhase, constants: &Constants) {
        let Some(name) = constants.error(params) else {
            return;
        };
        let unknown = match phase {
            SetupPhase::Ssl => Failure::Tls,
            _ => Failure::Unreachable,
        };
        self.failed.get_or_insert(DialFailure {
            phase,
            kind: fields::failure(name).unwrap_or(unknown),
            detail: (!name.is_empty()).then(|| name.into()),
        });
    }

    pub(super) fn sent(&mut self, params: &Params) {
        let count = params.byte_count.count().unwrap_or(0);
        self.bytes.sent += count;
        let is_ready = self.ssl.1.is_some() || (self.ssl.0.is_none() && self.tcp.1.is_some());
        self.sent_ready += if is_ready { count } else { 0 };
    }

    pub(super) fn received(&mut self, params: &Params) {
        self.bytes.received += params.byte_count.count().unwrap_or(0);
    }

    /// Records a read error, which shows the side that closed.
    pub(super) fn broke(&mut self, params: &Params, constants: &Constants) {
        let how = match constants.error(params) {
            Some("ERR_CONNECTION_CLOSED") => CloseKind::Fin,
            Some("ERR_CONNECTION_RESET") => CloseKind::Rst,
            _ => return,
        };
        self.closed_by = (Some(Side::Server), Some(how));
    }

    /// Records that the pool closes the socket, and the reason.
    pub(super) fn closing(&mut self, reason: &str) {
        if self.closed_by.0.is_some() {
            return;
        }
        let by = match reason {
            "Remote side closed connection" => (Some(Side::Server), Some(CloseKind::Fin)),
            // this reason shows only that the socket could not be reused
            "Connection was closed when it was returned to the pool" => (None, None),
            _ => (Some(Side::Client), None),
        };
        self.closed_by = by;
    }

    /// Records a GOAWAY of the server. `0 (NO_ERROR)` is a shutdown.
    pub(super) fn going_away(&mut self, params: &Params, at: u64) {
        self.announced_by = Some(Side::Server);
        let code = params.error_code.text();
        let is_shutdown = code.is_some_and(|code| code == "0" || code.starts_with("0 "));
        if is_shutdown {
            self.shutdown_at.get_or_insert(at);
        }
    }

    /// When the server announced a shutdown, if that was before `at`.
    pub(super) fn shutdown_before(&self, at: u64) -> Option<u64> {
        self.shutdown_at.filter(|&announced_at| announced_at <= at)
    }

    pub(super) fn gone(&mut self, at: u64) {
        self.gone_at.get_or_insert(at);
    }

    pub(super) fn is_gone(&self) -> bool {
        self.gone_at.is_some()
    }

    /// Whether all phases of its setup ended.
    pub(super) fn is_set_up(&self) -> bool {
        let scheme = self.origin.as_ref().map(|origin| origin.scheme);
        match scheme {
            _ if self.failed.is_some() => true,
            Some(Scheme::Http | Scheme::Tcp) => self.tcp.1.is_some(),
            Some(Scheme::Https) => self.ssl.1.is_some(),
            None => false,
        }
    }

    fn set_up_at(&self) -> u64 {
        self.ssl.1.or(self.tcp.1).unwrap_or(self.at)
    }

    /// Whether a request that asked for a connection at `wanted` waited for the setup; `nth` from
    /// 1.
    pub(super) fn is_awaited(&self, wanted: u64, nth: u32) -> bool {
        let ready = self.set_up_at();
        let is_early = wanted < ready || (nth == 1 && wanted <= ready.saturating_add(AHEAD));
        is_early && !self.is_from_before
    }

    /// The phases of its setup on the run's clock.
    pub(super) fn setup(&self, writer: &EventWriter<'_>) -> Setup {
        let span = |from: Option<u64>, to: Option<u64>| {
            let (from, to) = (from?, to?);
            Some(Span::new(
                writer.nanos(from),
                writer.nanos(to).max(writer.nanos(from)),
            ))
        };
        let dns = span(self.job_at, self.tcp.0).filter(|span| span.nanos() > 0);
        Setup {
            dns,
            connect: span(self.tcp.0, self.tcp.1),
            ssl: span(self.ssl.0, self.ssl.1),
        }
    }

    /// Records the connection if it is not recorded yet. Returns its id.
    pub(super) fn record(&mut self, writer: &mut EventWriter<'_>) -> ConnectionId {
        if let Some(id) = self.recorded {
            return id;
        }
        let id = writer.next_connection();
        self.recorded = Some(id);
        writer.record(Event::Opened(&self.connection(id, writer)));
        id
    }

    /// Records the connection again, with the facts that were learnt since.
    pub(super) fn revise(&self, writer: &mut EventWriter<'_>) {
        if let Some(id) = self.recorded {
            writer.record(Event::Revised(&self.connection(id, writer)));
        }
    }

    fn connection(&self, id: ConnectionId, writer: &EventWriter<'_>) -> Connection {
        let setup = self.setup(writer);
        let steps = [setup.dns, setup.connect, setup.ssl];
        let first = steps.iter().flatten().map(|span| span.start).min();
        let mut connection = Connection::new(id, first.unwrap_or(writer.nanos(self.at)));
        connection.origin = self.origin.clone();
        let address = |text: &Option<Box<str>>| text.as_deref()?.parse().ok();
        connection.local = address(&self.local);
        connection.peer = address(&self.remote);
        if self.is_quic {
            connection.transport = Transport::Quic;
        }
        connection.protocol = self.protocol;
        let is_secure = matches!(&self.origin, Some(origin) if origin.scheme == Scheme::Https);
        connection.tls = self.tls.clone().or(is_secure.then(Tls::default));
        connection.setup = setup;
        connection.failed = self.failed.clone();
        connection.terms = self.terms;
        connection.agent.clone_from(&self.agent);
        connection.server.clone_from(&self.server);
        connection.certainty = Certainty::Exact;
        connection.open_before = self.is_from_before;
        connection
    }

    /// Whether the client sent data other than requests. It may send the last flight of TLS after
    /// the setup, and HTTP/2 and QUIC have data of their own.
    fn is_opaque(&self) -> bool {
        let is_h1 = !self.is_quic && self.protocol != Some(Protocol::Http2);
        let own = if self.tls.is_some() { LAST_FLIGHT } else { 0 };
        self.given == 0 && is_h1 && self.sent_ready > own
    }

    /// Records that a request on it ended.
    pub(super) fn carried(&mut self, end: u64) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.last_end = self.last_end.max(end);
    }

    /// Records the end of the connection, if the connection was recorded.
    pub(super) fn record_end(&self, writer: &mut EventWriter<'_>) {
        let (Some(connection), Some(gone_at), None) = (self.recorded, self.gone_at, &self.failed)
        else {
            return;
        };
        let (by, how) = self.closed_by;
        let given = u64::from(self.given);
        let close = Close {
            at: writer.nanos(gone_at.max(self.last_end)),
            by,
            how,
            announced_by: self.announced_by,
            moment: (given == 0 && !self.is_opaque()).then_some(ClosePoint::Unused),
            exchanges: (!self.is_opaque()).then_some(given),
            bytes: self.bytes,
            ..Close::default()
        };
        writer.close(connection, close);
    }
}
