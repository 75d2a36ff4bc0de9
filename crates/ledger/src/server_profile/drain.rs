//! The behaviour of a server from the signal to the end of its process: connections, requests, the
//! process.
//!
//! Facts only. Times are on the run's clock; [`Drain::at`] is the time of the signal.

use super::Ended;
use crate::connection::Protocol;
use crate::failure::{Failure, Outcome};
use crate::time::Nanos;
use serde::{Deserialize, Serialize};

/// The end of a server's process while connections are kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Drain {
    /// The signal that was sent, such as `SIGTERM`.
    pub signal: String,
    /// When it was sent.
    pub at: Nanos,
    /// Time limit after which the process was killed, in nanoseconds.
    pub limit_ns: u64,
    /// Every connection that was open at the signal or was tried after it.
    pub connections: Vec<DrainConnection>,
    /// Every request that was in flight at the signal or was sent after it, in the order of their
    /// ends.
    pub requests: Vec<DrainRequest>,
    /// The end of the process.
    pub process: ServerEnd,
    /// When the measurement ended.
    pub over_at: Nanos,
}

/// The purpose of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DrainRole {
    /// Idle since its first response.
    Idle,
    /// Kept since its first response, with occasional requests after the signal.
    Used,
    /// With a request in flight at the signal.
    InFlight,
    /// Tried after the signal.
    New,
}

/// One connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DrainConnection {
    /// Its purpose.
    pub role: DrainRole,
    /// Its protocol.
    pub http: Protocol,
    /// When it was dialled.
    pub at: Nanos,
    /// Why it could not be opened.
    pub failed: Option<Failure>,
    /// When the server announced its end: `Connection: close`, or GOAWAY.
    pub announced_at: Option<Nanos>,
    /// The last stream of the last GOAWAY.
    pub last_stream: Option<u32>,
    /// When and how the server ended it; absent: it did not.
    pub ended: Option<(Nanos, Ended)>,
}

/// One request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DrainRequest {
    /// Index of its connection in [`Drain::connections`].
    pub connection: usize,
    /// When it was sent; before [`Drain::at`] if it was in flight at the signal.
    pub sent_at: Nanos,
    /// When it ended.
    pub ended_at: Nanos,
    /// How it ended.
    pub outcome: Outcome,
    /// The status of the response.
    pub status: Option<u16>,
    /// Whether the response announced the end of the connection.
    pub announced: bool,
}

/// The end of a server's process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServerEnd {
    /// When the command ended; absent: it was killed.
    pub command_at: Option<Nanos>,
    /// How the command ended, such as `exit code 0` or `signal 15`.
    pub status: Option<String>,
    /// When the command's process group became empty; absent if that took SIGKILL.
    pub group_at: Option<Nanos>,
    /// When SIGKILL was sent; absent: it was not needed.
    pub killed_at: Option<Nanos>,
}
