//! The end of a connection: when, by which side and how, with what it carried.

use super::Side;
use crate::time::Nanos;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What ended a connection on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// A request was sent on it when the other side had closed it already, or may have.
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

/// The client's end of a connection that the server closed first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum OtherEnd {
    /// It was closed at this moment.
    ClosedAt(Nanos),
    /// It was open when the recording ended: the client is in CLOSE_WAIT.
    Open,
}

/// The end of a connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Close {
    /// When it was seen.
    pub at: Nanos,
    /// Who closed first; absent when it cannot be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Side>,
    /// What was seen on the wire; absent when nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub how: Option<CloseKind>,
    /// What the client did after the server's end; absent where it closed first, or where that was not observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_end: Option<OtherEnd>,
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConnectionBytes {
    /// Client to server.
    pub sent: u64,
    /// Server to client.
    pub received: u64,
}

/// What keeps a connection open without an exchange, or finds out that its peer is gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Probes {
    /// Whether SO_KEEPALIVE was set, and its interval in seconds where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp_keepalive_s: Option<u32>,
    /// TCP_USER_TIMEOUT in milliseconds where it was set: sent bytes without an acknowledgement end the connection after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_timeout_ms: Option<u32>,
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

/// Why connections ended, in the few words that tables and JSON use (`connections.ended_by`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
