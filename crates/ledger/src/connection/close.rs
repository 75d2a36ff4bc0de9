//! The end of a connection: when, by which side and how, with what it carried.

use super::Side;
use crate::time::Nanos;
use serde::{Deserialize, Serialize};

/// What ended a connection on the wire.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
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
    /// Nothing on the wire: a timeout detected the end. At the idle timeout of QUIC both sides drop
    /// the connection (RFC 9000 section 10.1).
    Silent,
}

kinds! {
    json
    /// The point in the life of a connection at which it ended.
    #[derive(Default)]
    pub enum ClosePoint, as_str {
        /// Before any exchange.
        #[default]
        Unused = "unused",
        /// Right after a complete exchange, or as announced.
        AfterExchange = "after-exchange",
        /// After bytes of the server behind a complete response that belong to no response: the
        /// client has to close.
        AfterExcess = "after-excess",
        /// While no exchange was in flight.
        Idle = "idle",
        /// Within an exchange.
        MidExchange = "mid-exchange",
        /// The other side had closed it, or may have, before a request was sent on it.
        Stale = "stale",
        /// It was open when the recording ended, or a gap of it began.
        Gap = "gap",
    }
}

/// Nanoseconds from the end of the last exchange up to which a close counts as right after it. This
/// is more than the round trip of most paths, so the point of observation does not matter. It is
/// less than any idle timeout in use.
pub const RIGHT_AFTER: u64 = 200_000_000;

impl ClosePoint {
    /// The point of a close that was `announced` or not, `idle` nanoseconds after the end of the
    /// last exchange.
    pub fn after(idle: u64, announced: bool) -> ClosePoint {
        if announced || idle <= RIGHT_AFTER {
            ClosePoint::AfterExchange
        } else {
            ClosePoint::Idle
        }
    }
}

/// The client's end of a connection that the server closed first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OtherEnd {
    /// It was closed at this moment.
    ClosedAt(Nanos),
    /// It was open when the recording ended: the client is in CLOSE_WAIT.
    Open,
}

/// The end of a connection.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Close {
    /// When it was observed.
    pub at: Nanos,
    /// The side that closed first; absent if unknown.
    pub by: Option<Side>,
    /// The kind of close on the wire; absent if there was none.
    pub how: Option<CloseKind>,
    /// What the client did after the server's end; absent if the client closed first, or if that
    /// was not observed.
    pub other_end: Option<OtherEnd>,
    /// The side that announced the end before (`Connection: close`, GOAWAY).
    pub announced_by: Option<Side>,
    /// The point in the connection's life.
    pub moment: Option<ClosePoint>,
    /// Number of exchanges, including failed ones, without those that the server refused to
    /// process; absent if they cannot be counted.
    pub exchanges: Option<u64>,
    /// Bytes over the connection's life.
    pub bytes: ConnectionBytes,
    /// Signs of life other than exchanges.
    #[serde(default, skip_serializing_if = "Probes::is_empty")]
    pub probes: Probes,
}

/// Bytes of a connection, as observed at the vantage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConnectionBytes {
    /// Client to server.
    pub sent: u64,
    /// Server to client.
    pub received: u64,
    /// Bytes of responses that were in the client's socket, unread, when the client closed it;
    /// absent if there were none, or if that was not observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread: Option<u64>,
}

/// Means that keep a connection open without an exchange, or detect that its peer is gone.
#[serde_with::skip_serializing_none]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Probes {
    /// Interval of SO_KEEPALIVE in seconds, if it was set and is known.
    pub tcp_keepalive_s: Option<u32>,
    /// TCP_USER_TIMEOUT in milliseconds, if it was set: unacknowledged bytes end the connection
    /// after this time.
    pub user_timeout_ms: Option<u32>,
    /// Number of HTTP/2 PING frames.
    pub pings: Option<u32>,
}

impl Probes {
    /// Whether none were observed.
    pub fn is_empty(&self) -> bool {
        *self == Probes::default()
    }
}

kinds! {
    json
    /// Why connections ended: the classes of tables and JSON (`connections.ended_by`).
    pub enum EndedBy, id {
        /// We, or the watched client, closed it.
        Client = "client",
        /// We, or the watched client, closed it because the server sent bytes after a response that
        /// belong to no response.
        ExcessBytes = "excess-bytes",
        /// The server closed it after an announcement.
        ServerAnnounced = "server-announced",
        /// The server closed it without an announcement.
        Server = "server",
        /// The server reset it.
        ServerReset = "server-reset",
        /// It ended, and the side that ended it is unknown.
        Unknown = "unknown",
    }
}

impl Close {
    /// The class that this end is counted in.
    pub fn ended_by(&self) -> EndedBy {
        match (self.by, self.how) {
            (Some(Side::Client), _) if self.moment == Some(ClosePoint::AfterExcess) => {
                EndedBy::ExcessBytes
            }
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
