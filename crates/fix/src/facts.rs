//! What was measured of one variant of a client. Every field is written by the harness (`cargo xtask clients`), none by hand.
//!
//! Absent always means "not measured, or cannot be with this client"; it never means no.

use crate::faults::UnderFaults;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// One variant as it was measured once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Measurement {
    /// The client's id.
    pub client: String,
    /// The variant's id within the client.
    pub variant: String,
    /// What ran, runtime included, as the program itself reported it.
    pub versions: BTreeMap<String, String>,
    /// The day, `2026-11-21`.
    pub date: String,
    /// The lines of the measured program that make the difference.
    pub snippet: String,
    /// The findings.
    pub facts: ClientFacts,
}

/// What one variant does.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ClientFacts {
    /// The request's `Connection` field over plain HTTP; empty when it sent none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection_field: Option<String>,
    /// Over plain HTTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plain: Option<Load>,
    /// Over TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Load>,
    /// The fate of an idle connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<Idle>,
    /// Whether `Keep-Alive: timeout=` of the server is obeyed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_alive_header: Option<KeepAliveHeader>,
    /// Requests on connections that are dead or dying.
    #[serde(default, skip_serializing_if = "Stale::is_empty")]
    pub stale: Stale,
    /// Ten responses of 100 bytes whose bodies were not read. If any connection was reused, five times ten: reuse is a matter of timing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread_small: Option<Count>,
    /// The same with responses of 1 MB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread_large: Option<Count>,
    /// Ten answers with status 404, handled as one does with this client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_found: Option<Count>,
    /// TCP keep-alive probes on its connections, seen as it sets them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp_keepalive: Option<TcpKeepalive>,
    /// Whether a cookie that the server set came back with the next request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cookies: Option<Cookies>,
    /// How often it looks its server's name up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lookups: Option<Lookups>,
    /// How long a connection is used that is never idle for long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub life: Option<LifetimeFacts>,
    /// Requests on connections that failed under them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub faults: Option<UnderFaults>,
}

/// Lookups of the server's name, counted by the name server. Questions for IPv4 and for IPv6 addresses are one lookup.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Lookups {
    /// For ten requests in turn at a server that keeps connections.
    pub kept: u64,
    /// For ten whose answers each say `Connection: close`.
    pub closed: u64,
    /// How long an address with a TTL of one second is used; absent if each connection looks it up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dns_cached: Option<DnsCaching>,
}

/// How long a client that opens connections all the time goes on with a name's address.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum DnsCaching {
    /// It asked again after so long.
    Until {
        /// Seconds after the first question.
        after_s: f64,
    },
    /// It had not asked again when we stopped watching.
    Throughout {
        /// Seconds for which it was watched.
        for_s: f64,
    },
}

/// How long a connection is used that carries a request every half second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum LifetimeFacts {
    /// The client took a new one after so long.
    Ended {
        /// Seconds after its first request.
        after_s: f64,
    },
    /// It was still in use when we stopped watching.
    Unlimited {
        /// Seconds for which it was watched.
        for_s: f64,
    },
}

/// Whether a client has the system send TCP keep-alive probes. They find dead peers; they do not keep a server from closing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum TcpKeepalive {
    /// It does not.
    Off,
    /// It does.
    On {
        /// Seconds without data before the first probe.
        after_s: u32,
    },
}

/// What becomes of a cookie that the server set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Cookies {
    /// The next request carried it: callers that share this client share its cookies.
    Kept,
    /// The next request came without it.
    Dropped,
}

/// Ten requests one after the other, and three rounds of ten at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// Ten, one after the other.
    pub sequential: Count,
    /// Three rounds of ten at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrent: Option<Count>,
}

/// Requests and the connections that they took, counted by the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Count {
    /// Requests made.
    pub requests: u64,
    /// Of those, the ones that the client reported as failed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed: u64,
    /// Connections opened; if repetitions differed, the fewest of them.
    pub connections: u64,
    /// The most connections that a repetition opened; absent if all opened as many, or if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections_at_most: Option<u64>,
    /// TLS handshakes that resumed a session; absent without TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed: Option<u64>,
    /// The HTTP version spoken.
    pub http: String,
}

impl Count {
    /// The fewest and the most connections that a repetition opened.
    pub fn range(&self) -> RangeInclusive<u64> {
        self.connections..=self.connections_at_most.unwrap_or(self.connections)
    }

    /// Takes in the same requests made again.
    pub fn repeated(self, again: &Count) -> Count {
        let fewest = *self.range().start().min(again.range().start());
        let most = *self.range().end().max(again.range().end());
        Count {
            failed: self.failed.max(again.failed),
            connections: fewest,
            connections_at_most: (most > fewest).then_some(most),
            ..self
        }
    }

    /// Whether requests one after the other share connections. Two are allowed: some clients use two by design.
    pub fn is_reused(&self) -> bool {
        self.requests > 2 && self.connections <= 2
    }
}

/// What becomes of an idle connection.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Idle {
    /// The client closes it right after the answer: there is nothing to reuse.
    NotKept,
    /// The client closes it after this number of seconds.
    Closed {
        /// Seconds after the answer.
        after_s: f64,
    },
    /// The client leaves it open and never uses it again, however soon.
    Abandoned,
    /// The client leaves it open, but takes a new one for a request that comes so long after, or later.
    DiscardedAtNextUse {
        /// The shortest of the pauses tried for which that was so, in seconds.
        within_s: f64,
    },
    /// It was still open when we stopped watching, and used again.
    Kept {
        /// Seconds for which it was watched.
        for_s: f64,
    },
}

/// What `Keep-Alive: timeout=3` of a server changes, asked again 3.4 s later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum KeepAliveHeader {
    /// A new connection is used after it; without the field the old one is.
    Obeyed,
    /// The old connection is used all the same.
    Ignored,
}

/// Requests on dead connections, by how they died.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Stale {
    /// The server's FIN came while it idled, a second ago.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fin: Option<RequestOutcomes>,
    /// The server's RST came while it idled, a second ago.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rst: Option<RequestOutcomes>,
    /// The server's FIN comes in place of the answer, as when it closes while the request is on its way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub race_fin: Option<RequestOutcomes>,
    /// The same with a RST.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub race_rst: Option<RequestOutcomes>,
}

impl Stale {
    fn is_empty(&self) -> bool {
        *self == Stale::default()
    }
}

/// What becomes of a GET and of a POST.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RequestOutcomes {
    /// The GET.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub get: Option<RequestOutcome>,
    /// The POST.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub post: Option<RequestOutcome>,
}

/// What becomes of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RequestOutcome {
    /// Answered; the server saw it once.
    Fine,
    /// Answered, and the server saw it more than once. For a POST that is a risk.
    SentTwice,
    /// The program got an error; the server saw it at most once.
    Error,
    /// The program got an error although the server saw it more than once.
    SentTwiceInVain,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}
