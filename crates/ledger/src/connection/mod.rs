//! Connections: their setup, its duration, and their end.

mod close;
mod tls;

pub use close::{
    Close, CloseKind, ClosePoint, ConnectionBytes, EndedBy, OtherEnd, Probes, RIGHT_AFTER,
};
pub use tls::{Handshake, Tls, TlsVersion};

use crate::certainty::Certainty;
use crate::failure::{Failure, SetupPhase};
use crate::origin::Origin;
use crate::stack::StackId;
use crate::time::{Nanos, Span};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::sync::Arc;

/// The number of a connection, unique within its run.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(transparent)]
pub struct ConnectionId(pub u64);

/// The transport of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
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

kinds! {
    json
    /// The protocol of a connection.
    #[derive(Default)]
    pub enum Protocol, as_str {
        /// HTTP/0.9: no header section; ends with the connection.
        Http09 = "0.9",
        /// HTTP/1.0.
        Http10 = "1.0",
        /// HTTP/1.1.
        #[default]
        Http11 = "1.1",
        /// HTTP/2.
        Http2 = "2",
        /// HTTP/3.
        Http3 = "3",
        /// A protocol after an upgrade or CONNECT.
        Tunnel = "tunnel",
        /// Redis (RESP).
        Redis = "redis",
        /// PostgreSQL.
        Postgresql = "postgresql",
        /// MySQL.
        Mysql = "mysql",
        /// AMQP.
        Amqp = "amqp",
    }
}

impl Protocol {
    /// Whether exchanges of one connection overlap, each on a stream of its own.
    pub fn has_streams(self) -> bool {
        matches!(self, Protocol::Http2 | Protocol::Http3)
    }

    /// Whether it is that of a data base, cache or queue, whose content is not read.
    pub fn is_for_data(self) -> bool {
        use Protocol::{Amqp, Mysql, Postgresql, Redis};
        matches!(self, Redis | Postgresql | Mysql | Amqp)
    }
}

/// The steps of a connection's setup; a step that did not happen or was not observed is absent.
#[serde_with::skip_serializing_none]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Setup {
    /// Name lookup.
    pub dns: Option<Span>,
    /// Transport handshake (TCP only; QUIC has only this), including a proxy's CONNECT.
    pub connect: Option<Span>,
    /// TLS handshake, until the client may send its request.
    pub ssl: Option<Span>,
}

impl Setup {
    /// Sum of the steps in nanoseconds; `None` if no step was observed.
    pub fn nanos(&self) -> Option<u64> {
        let steps = [self.dns, self.connect, self.ssl];
        let seen = steps.iter().flatten().map(|span| span.nanos());
        seen.reduce(u64::saturating_add)
    }
}

/// A dial that did not result in a usable connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DialFailure {
    /// The step that failed.
    pub phase: SetupPhase,
    /// The kind of failure.
    pub kind: Failure,
    /// The message of the library or the kernel, redacted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Arc<str>>,
}

impl DialFailure {
    /// A failure without a message.
    pub fn new(phase: SetupPhase, kind: Failure) -> DialFailure {
        DialFailure {
            phase,
            kind,
            detail: None,
        }
    }

    /// A failure with the message of the library or the kernel.
    pub fn with_detail(phase: SetupPhase, kind: Failure, detail: impl Into<Arc<str>>) -> Self {
        DialFailure {
            detail: Some(detail.into()),
            ..DialFailure::new(phase, kind)
        }
    }
}

/// The terms that the server announced for keeping the connection.
#[serde_with::skip_serializing_none]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeepAliveTerms {
    /// `Keep-Alive: timeout=`, in seconds.
    pub timeout_s: Option<u32>,
    /// `Keep-Alive: max=`, in requests.
    pub max: Option<u32>,
    /// HTTP/2 SETTINGS_MAX_CONCURRENT_STREAMS.
    pub max_streams: Option<u32>,
}

impl KeepAliveTerms {
    /// Whether nothing was announced.
    pub fn is_empty(&self) -> bool {
        *self == KeepAliveTerms::default()
    }
}

/// One of the two ends.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// The side that opened the connection.
    Client,
    /// The side that accepted it.
    Server,
}

/// The process that owns the client end.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Owner {
    /// Process id.
    pub pid: u32,
    /// The command's name.
    pub command: Arc<str>,
}

/// What a program dialled.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Dialled {
    /// An address that it had looked up by this name.
    Name(Arc<str>),
    /// An address that no lookup had given it.
    Address,
}

/// A connection, or a dial that failed. *Opened* means that the transport was established.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Connection {
    /// Unique within the run.
    pub id: ConnectionId,
    /// Index into the run's variants.
    pub variant: Option<u32>,
    /// The round that opened it; 0 is the preflight.
    pub round: Option<u32>,
    /// The execution environment of a function that opened it.
    pub environment: Option<u64>,
    /// The origin, if it is known.
    pub origin: Option<Origin>,
    /// What the program dialled to reach it; absent where lookups are not observed, or if another
    /// one led to it (a tunnel).
    pub dialled: Option<Dialled>,
    /// Our address.
    pub local: Option<SocketAddr>,
    /// The other side's address.
    pub peer: Option<SocketAddr>,
    /// The process that opened it.
    pub owner: Option<Owner>,
    /// Where in the code it was opened; absent where that is not known.
    pub stack: Option<StackId>,
    /// The client's name: the product of its first `User-Agent`.
    pub agent: Option<Arc<str>>,
    /// The name of the server or of the last proxy before the client: the product of `Via`, or of
    /// `Server`. In observed runs, only the first connection to an origin with this product has
    /// it.
    pub server: Option<Arc<str>>,
    /// The transport.
    #[serde(default)]
    pub transport: Transport,
    /// The protocol; absent until known.
    pub protocol: Option<Protocol>,
    /// TLS, if it is used.
    pub tls: Option<Tls>,
    /// When the first setup step began; for a connection that was open before, when it was first
    /// observed.
    pub at: Nanos,
    /// It was open before the recording began, so it does not count as opened.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub open_before: bool,
    /// The recording had a gap: this is the rest of a connection that has a row from before it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_rest: bool,
    /// The setup steps.
    #[serde(default)]
    pub setup: Setup,
    /// Addresses that were tried before, or concurrently with, the one that answered (happy
    /// eyeballs, RFC 8305).
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub other_attempts: u32,
    /// Why the dial failed.
    pub failed: Option<DialFailure>,
    /// The terms that the server announced.
    #[serde(default, skip_serializing_if = "KeepAliveTerms::is_empty")]
    pub terms: KeepAliveTerms,
    /// How it ended; absent while it is open. Stored separately, as an event of its own.
    pub closed: Option<Close>,
    /// Measured or inferred.
    #[serde(default, skip_serializing_if = "Certainty::is_exact")]
    pub certainty: Certainty,
}

impl Connection {
    /// A connection of which only the id and the start are known.
    pub fn new(id: ConnectionId, at: Nanos) -> Connection {
        Connection {
            id,
            at,
            ..Connection::default()
        }
    }

    /// Whether the transport was established during the recording: it did not fail, or failed only
    /// in TLS.
    pub fn is_opened(&self) -> bool {
        match &self.failed {
            None => !self.open_before,
            Some(failure) => failure.phase == SetupPhase::Ssl,
        }
    }
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
            one.failed = Some(DialFailure::new(phase, Failure::Timeout));
            assert_eq!(one.is_opened(), opened);
        }
    }

    #[test]
    fn absent_fields_are_not_written() {
        let json = serde_json::to_string(&Connection::new(ConnectionId(7), Nanos(3))).unwrap();
        assert_eq!(json, r#"{"id":7,"transport":"tcp","at":3,"setup":{}}"#);
    }
}
