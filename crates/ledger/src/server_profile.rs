//! The server profile: the results of the probes of `check`, in addition to the events of the
//! probes.
//!
//! Facts only: what a server did, and how long it was observed. The reader derives their meaning
//! (advice, warnings). A probe that did not run leaves its part `None` and an entry in
//! [`ServerProfile::skipped`].

use crate::connection::{CloseKind, Handshake, Protocol, Side, TlsVersion};
use crate::expected::ExpectedStatus;
use crate::failure::{Failure, Outcome};
use crate::time::{Nanos, Span};
pub use drain::{Drain, DrainConnection, DrainRequest, DrainRole, ServerEnd};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;

mod drain;

/// The tag of the exchanges in the waterfall.
pub const WATERFALL: &str = "waterfall";

/// The results of all probes of one server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ServerProfile {
    /// The first request and its redirects.
    pub contact: Option<FirstRequest>,
    /// The lookup of the name.
    pub names: Option<Names>,
    /// The supported protocols: HTTP versions by TLS versions.
    pub versions: Vec<VersionResult>,
    /// Versions of TLS before 1.2, tested with a hello only.
    pub old_tls: Vec<OldTls>,
    /// TLS, one entry per version.
    pub tls: Vec<TlsResult>,
    /// Whether connections survive other methods and statuses.
    pub methods: Vec<MethodResult>,
    /// State that ties clients to a connection or a server.
    pub state: Option<State>,
    /// HTTP/2.
    pub h2: Option<Http2Seen>,
    /// HTTP/3, if the server announces it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub h3: Option<Http3Seen>,
    /// Requests per connection.
    pub requests: Option<RequestLimit>,
    /// Idle limits.
    pub idle: Option<IdleLimits>,
    /// Requests close to the idle limit.
    pub race: Option<Race>,
    /// The idle limit while other connections are idle, too.
    pub idle_under_load: Option<IdleUnderLoad>,
    /// A connection that is used occasionally.
    pub age: Option<MaxAge>,
    /// The end of the server's process while connections are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drain: Option<Drain>,
    /// Times in which the server accepted no connection, after the first request had a response.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outages: Vec<Outage>,
    /// Probes that did not run, with the reasons.
    pub skipped: Vec<Skipped>,
    /// Number of requests that the probes sent.
    pub requests_sent: u32,
}

/// The first request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FirstRequest {
    /// The probed URL after redirects, without its query.
    pub url: String,
    /// The outcome of the request.
    pub outcome: Outcome,
    /// The message of the library or the kernel for the failure.
    pub detail: Option<String>,
    /// The status.
    pub status: Option<u16>,
    /// `Server`, as sent.
    pub server: Option<String>,
    /// Number of bytes of the body that were read.
    pub body: u64,
    /// Whether the later probes use HEAD because the body is large.
    pub by_head: bool,
    /// Redirects that were followed, without queries.
    pub followed: Vec<Redirect>,
    /// A redirect that was not followed, without its query.
    pub redirect: Option<Redirect>,
    /// After a failure: whether the port uses TLS instead of plain HTTP, or the reverse.
    pub other_scheme: Option<bool>,
    /// The statuses that count as ok, if the user named them (`--expect`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<ExpectedStatus>,
}

/// One redirect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Redirect {
    /// Its status.
    pub status: u16,
    /// The target, without query.
    pub to: String,
}

/// The results of the lookups.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Names {
    /// The resolved name.
    pub name: String,
    /// The system's own lookup (getaddrinfo), as programs do it.
    pub system: Option<Span>,
    /// The addresses in the system's order, or the text of its error.
    pub addresses: Found<Vec<IpAddr>>,
    /// Our own questions to the name server, one per address family.
    pub asked: Vec<DnsQuery>,
}

/// A value or an error text, each with a name in JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Found<T> {
    /// The value.
    Value(T),
    /// The error.
    Error(String),
}

impl<T: Default> Default for Found<T> {
    fn default() -> Self {
        Found::Value(T::default())
    }
}

/// One question to a name server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DnsQuery {
    /// `A` or `AAAA`.
    pub kind: String,
    /// The name server.
    pub server: String,
    /// Start and end.
    pub span: Span,
    /// The answer.
    pub answer: Found<NameAnswer>,
}

/// The answer of a name server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NameAnswer {
    /// The addresses.
    pub addresses: Vec<IpAddr>,
    /// Smallest TTL of the records on the way to them, in seconds.
    pub ttl_s: Option<u32>,
    /// The names on the way, without the requested one.
    pub aliases: Vec<String>,
}

/// One HTTP version over one TLS version, or over none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VersionResult {
    /// The HTTP version.
    pub http: Protocol,
    /// The only TLS version that was offered; absent: plain.
    pub tls: Option<TlsVersion>,
    /// Whether `Connection: keep-alive` was sent (HTTP/1.0 needs it).
    pub asks: bool,
    /// The outcome of the first request.
    pub outcome: Outcome,
    /// The message of the library or the kernel for the failure.
    pub detail: Option<String>,
    /// The status of the first response.
    pub status: Option<u16>,
    /// The version in the response's status line.
    pub response_version: Option<Protocol>,
    /// Whether that response announces that the connection stays open (RFC 9112 section 9.3).
    pub says_kept: Option<bool>,
    /// Whether a second request on the same connection got a response; absent if the first did
    /// not.
    pub reused: Option<bool>,
    /// The cipher suite.
    pub cipher: Option<String>,
    /// The protocol that the server chose by ALPN.
    pub alpn: Option<String>,
    /// `Connection`, as sent.
    pub connection: Option<String>,
    /// `Keep-Alive`, as sent.
    pub keep_alive: Option<String>,
    /// Fields in the response that HTTP/2 forbids (RFC 9113 section 8.2.2).
    pub forbidden: Vec<String>,
    /// Number of bytes after the response that belong to no response; absent if there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excess: Option<u64>,
}

/// A TLS version before 1.2, offered and not spoken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OldTls {
    /// `1.0`, `1.1`.
    #[schemars(with = "String")]
    pub version: TlsVersion,
    /// Whether the server took it; absent when it did not respond in time.
    pub accepted: Option<bool>,
    /// What it said instead.
    pub detail: Option<String>,
}

/// The results for one TLS version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TlsResult {
    /// The version.
    pub version: TlsVersion,
    /// The cipher suite.
    pub cipher: Option<String>,
    /// The full handshake.
    pub full: Span,
    /// From the ClientHello to the first bytes of the response: a round trip and the server's part
    /// of the key exchange.
    pub to_first_answer: Option<Span>,
    /// Bytes of the server in the handshake.
    pub received: u64,
    /// Number of certificates that the server sent.
    pub certificates: u32,
    /// Size of the certificates in bytes.
    pub chain_bytes: u64,
    /// Number of tickets (TLS 1.3) until the first response was complete; absent for TLS 1.2,
    /// where they are not counted.
    pub tickets: Option<u32>,
    /// The handshake of a second connection that offered resumption, and whether the server
    /// resumed.
    pub second: Option<(Span, bool)>,
    /// Early data (0-RTT); absent if it was not tested.
    pub early_data: Option<EarlyData>,
}

/// The outcome of a request in the first flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EarlyData {
    /// The server's tickets do not allow it.
    NotOffered,
    /// The server accepted it.
    Accepted,
    /// The server's ticket allowed it, but the server did not accept it.
    Rejected,
}

/// Whether a connection survived a method or a status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MethodResult {
    /// The request, such as `HEAD` or `GET of a path that is not there`.
    pub what: String,
    /// The status.
    pub status: Option<u16>,
    /// The outcome.
    pub outcome: Outcome,
    /// Whether the next request on the connection got a response; absent if this one did not.
    pub kept: Option<bool>,
}

/// State that ties clients to a connection or to a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct State {
    /// Names of the cookies in responses.
    pub cookies: Vec<String>,
    /// Schemes of `WWW-Authenticate` and `Proxy-Authenticate`.
    pub authentication: Vec<String>,
    /// Fields whose value was constant on each connection and differed between connections.
    pub affinity: Vec<String>,
    /// Number of connections that were compared.
    pub compared: u32,
}

/// The results for HTTP/2.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Http2Seen {
    /// The server's SETTINGS by name.
    pub settings: BTreeMap<String, u32>,
    /// From the end of HEADERS to the first DATA of each response, in nanoseconds; absent for a
    /// response without a body.
    pub headers_to_data_ns: Vec<Option<u64>>,
    /// Size of each request's header block with its frame headers, in bytes.
    pub request_heads: Vec<u64>,
    /// Size of each response's header block with its frame headers, in bytes.
    pub answer_heads: Vec<u64>,
}

/// Where HTTP/3 is spoken: by `Alt-Svc` (RFC 7838), or at the URL itself if the check was to use
/// HTTP/3. And its test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Http3Seen {
    /// `Alt-Svc`, as sent; absent if the server sent none.
    pub announced: Option<String>,
    /// The host that is named, if it is another one.
    pub host: Option<String>,
    /// The UDP port.
    pub port: u16,
    /// The result; absent if no connection was tried.
    pub tried: Option<Http3Result>,
}

/// Connections of HTTP/3: a new one, one that resumes its session, and one that sends early data.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Http3Result {
    /// The outcome of the dial, or of the first request.
    pub outcome: Outcome,
    /// The message of the failure.
    pub detail: Option<String>,
    /// The status of the first response.
    pub status: Option<u16>,
    /// Number of complete responses on the first connection.
    #[serde(default)]
    pub answered: u32,
    /// Number of requests that were to be sent on it.
    #[serde(default)]
    pub wanted: u32,
    /// The connections, in this order: nothing to resume; resumption offered; early data allowed.
    #[serde(default)]
    pub connections: Vec<Http3Connection>,
    /// Early data (0-RTT); absent if it was not tested.
    pub early_data: Option<EarlyData>,
    /// The server's transport parameters on the first connection.
    pub parameters: Option<QuicParameters>,
    /// A connection that was idle after a response, observed together with those of the idle
    /// probe.
    pub idle: Option<IdleWait>,
}

/// One connection of HTTP/3 that was set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Http3Connection {
    /// The kind of the handshake.
    pub handshake: Handshake,
    /// The setup, transport and TLS together; absent with early data, where nothing waits for it.
    pub setup: Option<Span>,
    /// From the first packet to the server's first bytes, with the setup only.
    pub to_first_answer: Option<Span>,
    /// Round trips that the setup needed.
    pub round_trips: Option<u32>,
    /// From the start of the connection to the end of the first response.
    pub first_request: Option<Span>,
}

/// Limits that a server of QUIC announces (RFC 9000 section 18.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuicParameters {
    /// `max_idle_timeout` in milliseconds; 0: no limit.
    pub max_idle_timeout_ms: u64,
    /// `initial_max_streams_bidi`: requests at once.
    pub max_request_streams: u64,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ended {
    /// The side that closed first; absent if unknown.
    pub by: Option<Side>,
    /// The kind of close.
    pub how: CloseKind,
    /// Whether the last response had announced it.
    pub announced: bool,
    /// The status of an unsolicited response (408, for example).
    pub unsolicited_status: Option<u16>,
    /// The response with an error status that the end came with: such an end is no limit of
    /// connections. Absent in old ledgers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorClose>,
}

/// An error response after which the server closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ErrorCloseFacts")]
pub struct ErrorClose {
    /// Its status.
    pub status: u16,
    /// Requests that the check had sent before.
    pub requests: u32,
}

/// Requests on one connection until the server ended it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RequestLimit {
    /// The HTTP version.
    pub http: Protocol,
    /// Number of complete responses.
    pub answered: u32,
    /// Number of planned requests.
    pub wanted: u32,
    /// Number of requests that the server announced: `max=` of the first response, and the first
    /// request if `max=` counts down.
    pub announced: Option<u32>,
    /// Whether the last response announced the end.
    pub last_announced: bool,
    /// How the server ended the connection; absent if it did not, or only announced the end.
    pub ended: Option<Ended>,
    /// The failure of a request, if there was one.
    pub failed: Option<Failure>,
    /// From the end of the setup to the last response; absent in old ledgers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lasted: Option<Span>,
    /// The last rest: from a response to the next request, or to the end; absent in old ledgers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rested: Option<Span>,
}

impl RequestLimit {
    /// How long a connection lived that the server ended, or announced to end. Absent if the end
    /// came with an error response.
    pub fn ended_after(&self) -> Option<Span> {
        let is_limited = self.last_announced || self.ended.is_some() || self.failed.is_some();
        let is_error = self.ended.is_some_and(|ended| ended.error.is_some());
        self.lasted.filter(|_| is_limited && !is_error)
    }
}

/// The idle limits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IdleLimits {
    /// The HTTP version.
    pub http: Protocol,
    /// `timeout=` of the response, or `max_idle_timeout` of QUIC, in seconds.
    pub announced_s: Option<u32>,
    /// After a response: the sample that ended first.
    pub between: Option<IdleWait>,
    /// After a response, one sample per connection, in the order of their last responses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<IdleWait>,
    /// Before any request.
    pub before_first: Option<IdleWait>,
    /// Whether a request got a response while other connections were idle; absent if that was not
    /// tested.
    pub answers_others: Option<bool>,
}

/// How long an idle connection was observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IdleWait {
    /// From the last activity to the end, or to the end of the observation.
    pub span: Span,
    /// How it ended; absent: it did not, and the span is a lower bound.
    pub ended: Option<Ended>,
    /// The request that followed an observation without an end; absent if none was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<NextRequest>,
}

/// A request on a connection that was idle and seemed open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NextRequest {
    /// Its outcome. Only a response shows that the connection was open.
    pub outcome: Outcome,
    /// Whether its response announced the end of the connection.
    pub is_last: bool,
}

/// The idle limit of one connection while others are idle, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IdleUnderLoad {
    /// Number of the others: all that the server accepted.
    pub connections: u32,
    /// How long the connection was observed after its response; absent if it could not be opened
    /// while the others were open.
    pub waited: Option<IdleWait>,
}

/// A connection with occasional requests, so that no idle limit ended it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MaxAge {
    /// From the end of the setup to the end, or to the end of the observation.
    pub span: Span,
    /// Number of complete responses.
    pub answered: u32,
    /// Whether the last response announced the end.
    pub last_announced: bool,
    /// How the server ended the connection; absent if it did not, or only announced the end.
    pub ended: Option<Ended>,
}

impl MaxAge {
    /// Whether the server ended the connection, or announced to end it.
    pub fn is_over(&self) -> bool {
        self.last_announced || self.ended.is_some()
    }
}

/// Requests sent close to the idle limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Race {
    /// The limit in nanoseconds.
    pub limit_ns: u64,
    /// The requests, in order of time.
    pub attempts: Vec<RaceAttempt>,
}

/// One request close to the idle limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RaceAttempt {
    /// Idle time of the connection before it, in nanoseconds.
    pub idle_ns: u64,
    /// The outcome of the request; absent: the connection had ended, and nothing was sent.
    pub outcome: Option<Outcome>,
    /// Idle time of the connection when it ended, in nanoseconds, if that was before the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ns: Option<u64>,
    /// How the connection ended, if it did.
    pub ended: Option<Ended>,
}

/// A time in which dials were refused by a server that had responded before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Outage {
    /// Number of requests that the probes had sent before.
    pub requests: u32,
    /// How the first dial failed.
    pub failure: Failure,
    /// The message of the library or the kernel for it.
    pub detail: Option<String>,
    /// From the last connection that the server accepted to the first dial that it refused.
    pub began: Span,
    /// When the server accepted a connection again; absent: not while the check tried.
    pub over_at: Option<Nanos>,
}

impl Outage {
    /// Whether what happened at this time may be an effect of the outage.
    pub fn covers(&self, at: Nanos) -> bool {
        let until = self.over_at.unwrap_or(Nanos(u64::MAX));
        self.began.start < at && at <= until
    }
}

/// A probe that did not run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Skipped {
    /// Its name.
    pub probe: String,
    /// The reason.
    pub why: String,
    /// Whether the check ended before the probe did: by its time limit, its budget, or a signal.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut_off: bool,
}
