//! The measured facts of one variant of a client. The harness (`cargo xtask clients`) writes every
//! field.
//!
//! An absent field means "not measured, or impossible with this client". It never means no.

use crate::faults::UnderFaults;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// One variant as it was measured once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Measurement {
    /// The client's id.
    pub client: String,
    /// The variant's id within the client.
    pub variant: String,
    /// The versions of library and runtime, as the program reported them.
    pub versions: BTreeMap<String, String>,
    /// The day, `2026-11-21`.
    pub date: String,
    /// The lines of the measured program that make the difference.
    pub snippet: String,
    /// The findings.
    pub facts: ClientFacts,
}

/// What one variant does.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientFacts {
    /// The request's `Connection` field over plain HTTP; empty when it sent none.
    pub connection_field: Option<String>,
    /// Over plain HTTP.
    pub plain: Option<Load>,
    /// Over TLS.
    pub tls: Option<Load>,
    /// The fate of an idle connection.
    pub idle: Option<Idle>,
    /// Whether `Keep-Alive: timeout=` of the server is obeyed.
    pub keep_alive_header: Option<KeepAliveHeader>,
    /// Requests on connections that are dead or dying.
    #[serde(default, skip_serializing_if = "Stale::is_empty")]
    pub stale: Stale,
    /// Ten responses of 100 bytes whose bodies were not read. If any connection was reused, the
    /// ten requests were made five times, because reuse depends on timing.
    pub unread_small: Option<Count>,
    /// The same with responses of 1 MB.
    pub unread_large: Option<Count>,
    /// Ten responses with status 404, handled as is usual with this client.
    pub not_found: Option<Count>,
    /// TCP keep-alive probes, by the socket options that the client sets.
    pub tcp_keepalive: Option<TcpKeepalive>,
    /// Whether a cookie that the server set came back with the next request.
    pub cookies: Option<Cookies>,
    /// How often it looks its server's name up.
    pub lookups: Option<Lookups>,
    /// How long the client uses a connection that is never idle for long.
    pub life: Option<LifetimeFacts>,
    /// Requests whose connection failed.
    pub faults: Option<UnderFaults>,
}

/// Lookups of the server's name, counted by the name server. Questions for IPv4 and for IPv6
/// addresses are one lookup.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Lookups {
    /// For ten requests in turn at a server that keeps connections.
    pub kept: u64,
    /// For ten requests whose responses have `Connection: close`.
    pub closed: u64,
    /// How long an address with a TTL of one second is used; absent if each connection looks it
    /// up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dns_cached: Option<DnsCaching>,
}

/// How long a client that keeps opening connections uses a name's address.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum DnsCaching {
    /// The client looked the name up again.
    Until {
        /// Seconds after the first question.
        after_s: f64,
    },
    /// The client had not looked the name up again when the measurement ended.
    Throughout {
        /// Seconds for which it was watched.
        for_s: f64,
    },
}

/// How long a connection is used that carries a request every half second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum LifetimeFacts {
    /// The client took a new connection.
    Ended {
        /// Seconds after its first request.
        after_s: f64,
    },
    /// The connection was still in use when the measurement ended.
    Unlimited {
        /// Seconds for which it was watched.
        for_s: f64,
    },
}

/// Whether a client enables TCP keep-alive probes. They detect dead peers. They do not prevent a
/// server from closing idle connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

/// The client's use of a cookie that the server set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cookies {
    /// The next request carried it: callers that share this client share its cookies.
    Kept,
    /// The next request came without it.
    Dropped,
}

/// Ten requests one after the other, and three rounds of ten at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// Ten, one after the other.
    pub sequential: Count,
    /// Three rounds of ten at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrent: Option<Count>,
}

/// Requests and the connections that they took, counted by the server.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Count {
    /// Requests made.
    pub requests: u64,
    /// Of those, the ones that the client reported as failed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed: u64,
    /// Connections opened; if repetitions differed, the fewest of them.
    pub connections: u64,
    /// The largest number of connections of a repetition; absent if all opened the same number, or
    /// without repetitions.
    pub connections_at_most: Option<u64>,
    /// TLS handshakes that resumed a session; absent without TLS.
    pub resumed: Option<u64>,
    /// The HTTP version spoken.
    pub http: String,
}

impl Count {
    /// The fewest and the most connections that a repetition opened.
    pub fn range(&self) -> RangeInclusive<u64> {
        self.connections..=self.connections_at_most.unwrap_or(self.connections)
    }

    /// Adds a repetition of the same requests.
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

    /// Whether requests one after the other share connections. Two are allowed: some clients use
    /// two by design. One that waits for ever on two shares none.
    pub fn is_reused(&self) -> bool {
        self.requests > 2 && self.connections <= 2 && self.failed == 0
    }
}

/// The state of an idle connection.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Idle {
    /// The client closes it right after the response.
    NotKept,
    /// The client closes it after this number of seconds.
    Closed {
        /// Seconds after the response.
        after_s: f64,
    },
    /// The client leaves it open and never uses it again, however soon.
    Abandoned,
    /// The client leaves it open, but uses a new connection for a request after this time.
    DiscardedAtNextUse {
        /// The shortest tested pause after which the client used a new connection, in seconds.
        within_s: f64,
    },
    /// The connection was open until the end of the measurement, and then used again.
    Kept {
        /// Seconds for which it was watched.
        for_s: f64,
    },
}

/// The effect of a server's `Keep-Alive: timeout=3` on a request 3.4 s later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum KeepAliveHeader {
    /// With the field the client uses a new connection, without it the old one.
    Obeyed,
    /// The client uses the old connection despite the field.
    Ignored,
}

/// Requests on closed connections, by the kind of close.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stale {
    /// The server's FIN arrived a second before the request, on the idle connection.
    pub fin: Option<RequestOutcomes>,
    /// The server's RST arrived a second before the request, on the idle connection.
    pub rst: Option<RequestOutcomes>,
    /// The server's FIN arrives instead of the response, as if it crossed the request.
    pub race_fin: Option<RequestOutcomes>,
    /// The same with a RST.
    pub race_rst: Option<RequestOutcomes>,
}

impl Stale {
    fn is_empty(&self) -> bool {
        *self == Stale::default()
    }
}

/// The outcomes of a GET and of a POST.
#[serde_with::skip_serializing_none]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RequestOutcomes {
    /// The GET.
    pub get: Option<RequestOutcome>,
    /// The POST.
    pub post: Option<RequestOutcome>,
}

/// The outcome of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RequestOutcome {
    /// The client got a response; the server received the request once.
    Fine,
    /// The client got a response, and the server received the request more than once. For a POST
    /// this is a risk.
    SentTwice,
    /// The client got an error; the server received the request at most once.
    Error,
    /// The client got an error although the server received the request more than once.
    SentTwiceInVain,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}
