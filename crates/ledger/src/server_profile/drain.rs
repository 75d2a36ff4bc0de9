//! What a server did between the signal that ends its process and the end of the process: connections, requests, the process.
//!
//! Facts only. Times are those of the run's clock; [`Drain::at`] is the signal.

use super::Ended;
use crate::connection::Protocol;
use crate::failure::{Failure, Outcome};
use crate::time::Nanos;
use serde::{Deserialize, Serialize};

/// The end of a server's process under kept connections.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Drain {
    /// The signal that was sent, such as `SIGTERM`.
    pub signal: String,
    /// When it was sent.
    pub at: Nanos,
    /// How long after it the process was killed at the latest, in nanoseconds.
    pub limit_ns: u64,
    /// Every connection that was open at the signal or was tried after it.
    pub connections: Vec<DrainConnection>,
    /// Every request that was in flight at the signal or was sent after it, in the order of their ends.
    pub requests: Vec<DrainRequest>,
    /// The end of the process.
    pub process: ServerEnd,
    /// When the measurement was over.
    pub over_at: Nanos,
}

/// What a connection was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum DrainRole {
    /// Idle since its first response, and left so.
    Idle,
    /// Kept since its first response, with a request now and then after the signal.
    Used,
    /// With a request in flight at the signal.
    InFlight,
    /// Tried after the signal.
    New,
}

/// One connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DrainConnection {
    /// What it was for.
    pub role: DrainRole,
    /// What was spoken.
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DrainRequest {
    /// The place of its connection in [`Drain::connections`].
    pub connection: usize,
    /// When it was sent; before [`Drain::at`] where it was in flight at the signal.
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServerEnd {
    /// When the command ended; absent: it did not before it was killed.
    pub command_at: Option<Nanos>,
    /// How the command ended, such as `exit code 0` or `signal 15`.
    pub status: Option<String>,
    /// When no process that the command had started was left in its process group; absent: one was left until it was killed.
    pub group_at: Option<Nanos>,
    /// When SIGKILL was sent; absent: it was not needed.
    pub killed_at: Option<Nanos>,
}
