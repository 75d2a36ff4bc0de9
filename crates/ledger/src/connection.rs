//! Connections: what was opened, what it cost to open, how it ended.

use crate::certainty::Certainty;
use crate::failure::{Failure, SetupPhase};
use crate::origin::Origin;
use crate::time::{Nanos, Span};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

/// The number of a connection, unique within its run.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct ConnectionId(pub u64);

/// What carries the bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// TCP.
    #[default]
    Tcp,
    /// QUIC over UDP.
    Quic,
    /// A Unix domain socket.
    Unix,
}

/// What is spoken on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Protocol {
    /// HTTP/0.9: no head, ends with the connection.
    #[serde(rename = "0.9")]
    Http09,
    /// HTTP/1.0.
    #[serde(rename = "1.0")]
    Http10,
    /// HTTP/1.1.
    #[serde(rename = "1.1")]
    Http11,
    /// HTTP/2.
    #[serde(rename = "2")]
    Http2,
    /// HTTP/3.
    #[serde(rename = "3")]
    Http3,
    /// A protocol after an upgrade or CONNECT.
    #[serde(rename = "tunnel")]
    Tunnel,
    /// Redis (RESP).
    #[serde(rename = "redis")]
    Redis,
    /// PostgreSQL.
    #[serde(rename = "postgresql")]
    Postgresql,
    /// MySQL.
    #[serde(rename = "mysql")]
    Mysql,
    /// AMQP.
    #[serde(rename = "amqp")]
    Amqp,
}

impl Protocol {
    /// `1.1`, `2`, `redis`: the word used in axes, JSON and tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Protocol::Http09 => "0.9",
            Protocol::Http10 => "1.0",
            Protocol::Http11 => "1.1",
            Protocol::Http2 => "2",
            Protocol::Http3 => "3",
            Protocol::Tunnel => "tunnel",
            Protocol::Redis => "redis",
            Protocol::Postgresql => "postgresql",
            Protocol::Mysql => "mysql",
            Protocol::Amqp => "amqp",
        }
    }
}

/// A TLS protocol version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum TlsVersion {
    /// SSL 3.0.
    #[serde(rename = "ssl3")]
    Ssl3,
    /// TLS 1.0.
    #[serde(rename = "1.0")]
    Tls10,
    /// TLS 1.1.
    #[serde(rename = "1.1")]
    Tls11,
    /// TLS 1.2.
    #[serde(rename = "1.2")]
    Tls12,
    /// TLS 1.3.
    #[serde(rename = "1.3")]
    Tls13,
}

impl TlsVersion {
    /// The version of this number on the wire (0x0304 is 1.3); `None` for none that is known.
    pub fn numbered(number: u16) -> Option<TlsVersion> {
        Some(match number {
            0x0300 => TlsVersion::Ssl3,
            0x0301 => TlsVersion::Tls10,
            0x0302 => TlsVersion::Tls11,
            0x0303 => TlsVersion::Tls12,
            0x0304 => TlsVersion::Tls13,
            _ => return None,
        })
    }

    /// `1.3` and the like.
    pub fn as_str(self) -> &'static str {
        match self {
            TlsVersion::Ssl3 => "ssl3",
            TlsVersion::Tls10 => "1.0",
            TlsVersion::Tls11 => "1.1",
            TlsVersion::Tls12 => "1.2",
            TlsVersion::Tls13 => "1.3",
        }
    }
}

/// How a TLS session came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Handshake {
    /// A full handshake with a certificate.
    Full,
    /// Resumed from a ticket, session id or pre-shared key.
    Resumed,
    /// Resumed, and the request went with the first flight (0-RTT), accepted by the server.
    EarlyData,
}

/// The TLS side of a connection. What was not visible is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tls {
    /// The negotiated version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<TlsVersion>,
    /// The cipher suite by its IANA name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cipher: Option<Arc<str>>,
    /// The name asked for (SNI).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_name: Option<Arc<str>>,
    /// The application protocols offered, in order; absent when not seen, empty when none were offered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alpn_offered: Option<Arc<[Arc<str>]>>,
    /// The application protocol chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alpn_chosen: Option<Arc<str>>,
    /// Full, resumed or with early data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handshake: Option<Handshake>,
    /// Whether the client offered to resume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumption_offered: Option<bool>,
    /// Tickets that the server sent on this connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tickets: Option<u32>,
    /// What the hello tells about the client library, as a JA4-like string.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_hint: Option<Arc<str>>,
}

/// The steps of setting up a connection; a step that did not happen or was not seen is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setup {
    /// Name lookup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dns: Option<Span>,
    /// Transport handshake (TCP only; QUIC has only this), a proxy's CONNECT included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect: Option<Span>,
    /// TLS handshake, until the client may send its request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssl: Option<Span>,
}

impl Setup {
    /// The sum of the steps in nanoseconds; `None` when no step was seen.
    pub fn nanos(&self) -> Option<u64> {
        let steps = [self.dns, self.connect, self.ssl];
        steps
            .iter()
            .any(Option::is_some)
            .then(|| steps.iter().flatten().map(|span| span.nanos()).sum())
    }
}

/// A dial that did not lead to a usable connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DialFailure {
    /// The step that failed.
    pub phase: SetupPhase,
    /// What happened.
    pub kind: Failure,
    /// The library's or kernel's own words, redacted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Arc<str>>,
}

/// What the server said about keeping the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeepAliveTerms {
    /// `Keep-Alive: timeout=`, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_s: Option<u32>,
    /// `Keep-Alive: max=`, in requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<u32>,
    /// HTTP/2 SETTINGS_MAX_CONCURRENT_STREAMS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_streams: Option<u32>,
}

impl KeepAliveTerms {
    /// Whether nothing was announced.
    pub fn is_empty(&self) -> bool {
        *self == KeepAliveTerms::default()
    }
}

/// One of the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// Who opened the connection.
    Client,
    /// Who accepted it.
    Server,
}

/// What ended a connection on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CloseKind {
    /// A FIN.
    Fin,
    /// A TLS close_notify, then a FIN.
    CloseNotify,
    /// An HTTP/2 or HTTP/3 GOAWAY, or a QUIC CONNECTION_CLOSE.
    Goaway,
    /// A RST.
    Rst,
    /// Nothing on the wire: an end found out by a timeout.
    Silent,
}

/// When in the life of a connection it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClosePoint {
    /// Before it carried anything.
    Unused,
    /// Right after a complete exchange, or as announced.
    AfterExchange,
    /// While nothing was in flight.
    Idle,
    /// In the middle of an exchange.
    MidExchange,
    /// A request was sent onto it after the other side had closed.
    Stale,
}

/// Nanoseconds from the end of the last exchange up to which a close counts as right after it. More than a round trip of most
/// paths, so that it does not matter on which side of the path the close is observed; less than any idle timeout in use.
pub const RIGHT_AFTER: u64 = 200_000_000;

impl ClosePoint {
    /// The point of a close that was `announced` or not, `idle` nanoseconds after the end of the last exchange.
    pub fn after(idle: u64, announced: bool) -> ClosePoint {
        if announced || idle <= RIGHT_AFTER {
            ClosePoint::AfterExchange
        } else {
            ClosePoint::Idle
        }
    }
}

/// The end of a connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Close {
    /// When it was seen.
    pub at: Nanos,
    /// Who closed first; absent when it cannot be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Side>,
    /// What was seen on the wire; absent when nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub how: Option<CloseKind>,
    /// Who announced it (`Connection: close`, GOAWAY) beforehand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub announced_by: Option<Side>,
    /// When in its life.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moment: Option<ClosePoint>,
    /// Exchanges that it carried, failed ones included; absent when they cannot be counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exchanges: Option<u64>,
    /// Bytes over its life.
    pub bytes: ConnectionBytes,
    /// Signs of life that are not reuse.
    #[serde(default, skip_serializing_if = "Probes::is_empty")]
    pub probes: Probes,
}

/// Bytes that a connection carried, as seen at the vantage point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionBytes {
    /// Client to server.
    pub sent: u64,
    /// Server to client.
    pub received: u64,
}

/// Signs of life that keep a connection open without carrying an exchange.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probes {
    /// Whether SO_KEEPALIVE was set, and its interval in seconds where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp_keepalive_s: Option<u32>,
    /// HTTP/2 PING frames seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pings: Option<u32>,
}

impl Probes {
    /// Whether none were seen.
    pub fn is_empty(&self) -> bool {
        *self == Probes::default()
    }
}

/// The process that owns the client end.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Owner {
    /// Process id.
    pub pid: u32,
    /// The command's name.
    pub command: Arc<str>,
}

/// A connection, or a dial that failed. *Opened* means that the transport was established.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connection {
    /// Unique within the run.
    pub id: ConnectionId,
    /// Index into the run's variants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<u32>,
    /// The round that opened it; 0 is the preflight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round: Option<u32>,
    /// The execution environment of a function that opened it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<u64>,
    /// Where it leads, as far as it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// Our address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local: Option<SocketAddr>,
    /// The other side's address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<SocketAddr>,
    /// The process that opened it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Owner>,
    /// What the client calls itself: the product of its first `User-Agent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Arc<str>>,
    /// What carries the bytes.
    #[serde(default)]
    pub transport: Transport,
    /// What is spoken; absent until known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Protocol>,
    /// TLS, if it is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
    /// When the first setup step began.
    pub at: Nanos,
    /// The setup steps.
    #[serde(default)]
    pub setup: Setup,
    /// Addresses tried before, or beside, the one that answered (happy eyeballs, RFC 8305).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub other_attempts: u32,
    /// Why the dial failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<DialFailure>,
    /// What the server said about keeping it.
    #[serde(default, skip_serializing_if = "KeepAliveTerms::is_empty")]
    pub terms: KeepAliveTerms,
    /// How it ended; absent while it is open. Stored apart, as an event of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed: Option<Close>,
    /// Seen or worked out.
    #[serde(default, skip_serializing_if = "Certainty::is_exact")]
    pub certainty: Certainty,
}

impl Connection {
    /// A connection about which nothing is known but its number and when it began.
    pub fn new(id: ConnectionId, at: Nanos) -> Connection {
        Connection {
            id,
            variant: None,
            round: None,
            environment: None,
            origin: None,
            local: None,
            peer: None,
            owner: None,
            agent: None,
            transport: Transport::Tcp,
            protocol: None,
            tls: None,
            at,
            setup: Setup::default(),
            other_attempts: 0,
            failed: None,
            terms: KeepAliveTerms::default(),
            closed: None,
            certainty: Certainty::Exact,
        }
    }

    /// Whether the transport was established: it did not fail, or failed only in TLS.
    pub fn is_opened(&self) -> bool {
        match &self.failed {
            None => true,
            Some(failure) => failure.phase == SetupPhase::Ssl,
        }
    }
}

/// Why connections ended, in the few words that tables and JSON use (`connections.ended_by`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EndedBy {
    /// We, or the watched client, closed it.
    Client,
    /// The server closed it as it had announced.
    ServerAnnounced,
    /// The server closed it without a word.
    Server,
    /// The server reset it.
    ServerReset,
    /// It ended, and who ended it cannot be told.
    Unknown,
}

impl EndedBy {
    /// The stable id.
    pub fn id(self) -> &'static str {
        match self {
            EndedBy::Client => "client",
            EndedBy::ServerAnnounced => "server-announced",
            EndedBy::Server => "server",
            EndedBy::ServerReset => "server-reset",
            EndedBy::Unknown => "unknown",
        }
    }
}

impl fmt::Display for EndedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

impl Close {
    /// The class that this end is counted in.
    pub fn ended_by(&self) -> EndedBy {
        match (self.by, self.how) {
            (Some(Side::Client), _) => EndedBy::Client,
            (Some(Side::Server), Some(CloseKind::Rst)) => EndedBy::ServerReset,
            (Some(Side::Server), _) if self.announced_by == Some(Side::Server) => {
                EndedBy::ServerAnnounced
            }
            (Some(Side::Server), _) => EndedBy::Server,
            (None, _) => EndedBy::Unknown,
        }
    }
}

/// For serde: a count that need not be written.
fn is_zero(count: &u32) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dial_that_failed_in_tls_had_opened_its_transport() {
        let mut one = Connection::new(ConnectionId(1), Nanos(0));
        assert!(one.is_opened());
        for (phase, opened) in [
            (SetupPhase::Dns, false),
            (SetupPhase::Connect, false),
            (SetupPhase::Ssl, true),
        ] {
            one.failed = Some(DialFailure {
                phase,
                kind: Failure::Timeout,
                detail: None,
            });
            assert_eq!(one.is_opened(), opened);
        }
    }

    #[test]
    fn absent_fields_are_not_written() {
        let json = serde_json::to_string(&Connection::new(ConnectionId(7), Nanos(3))).unwrap();
        assert_eq!(json, r#"{"id":7,"transport":"tcp","at":3,"setup":{}}"#);
    }
}
