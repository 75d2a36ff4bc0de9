//! The card of a server: what the probes of `check` measured, as plain data beside the events that they caused.
//!
//! Facts only: what a server did, and for how long it was watched. What they mean (advice, warnings) is worked out by whoever
//! reads it. A probe that did not run leaves its part `None` and an entry in [`ServerProfile::skipped`].

use crate::connection::{CloseKind, Protocol, Side, TlsVersion};
use crate::expected::ExpectedStatus;
use crate::failure::{Failure, Outcome};
use crate::time::Span;
pub use drain::{Drain, DrainConnection, DrainRequest, DrainRole, ServerEnd};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;

mod drain;

/// The tag of exchanges that the waterfall is made from.
pub const WATERFALL: &str = "waterfall";

/// Everything that was measured of one server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ServerProfile {
    /// The first request, and where it was led.
    pub contact: Option<FirstRequest>,
    /// The name.
    pub names: Option<Names>,
    /// What is spoken: HTTP versions by TLS versions.
    pub versions: Vec<VersionResult>,
    /// Versions of TLS before 1.2, offered by a hello only.
    pub old_tls: Vec<OldTlsResult>,
    /// TLS, one entry for each version.
    pub tls: Vec<TlsResult>,
    /// Whether connections survive other methods and statuses.
    pub methods: Vec<MethodResult>,
    /// What ties clients to a connection or a server.
    pub state: Option<State>,
    /// HTTP/2.
    pub h2: Option<Http2Seen>,
    /// Requests per connection.
    pub requests: Option<RequestLimit>,
    /// Idle limits.
    pub idle: Option<IdleLimits>,
    /// Requests around the moment of the idle limit.
    pub race: Option<Race>,
    /// The idle limit while other connections idle too.
    pub idle_under_load: Option<IdleUnderLoad>,
    /// A connection that is used now and then.
    pub age: Option<MaxAge>,
    /// The end of the server's process under kept connections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drain: Option<Drain>,
    /// Probes that did not run, and why.
    pub skipped: Vec<Skipped>,
    /// Requests that the probes sent.
    pub requests_sent: u32,
}

/// The first request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FirstRequest {
    /// The URL that was probed in the end, without its query.
    pub url: String,
    /// What became of the request.
    pub outcome: Outcome,
    /// The failure in the library's or kernel's own words.
    pub detail: Option<String>,
    /// The status.
    pub status: Option<u16>,
    /// `Server`, as sent.
    pub server: Option<String>,
    /// Bytes of the body that were read.
    pub body: u64,
    /// Whether the later probes use HEAD because the body is large.
    pub by_head: bool,
    /// Redirects that were followed, without queries.
    pub followed: Vec<Redirect>,
    /// A redirect that was not followed, without its query.
    pub redirect: Option<Redirect>,
    /// Looked at when the request failed: whether the port speaks the other of TLS and plain HTTP.
    pub other_scheme: Option<bool>,
    /// The statuses that count as ok, where the user named them (`--expect`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<ExpectedStatus>,
}

/// One redirect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Redirect {
    /// Its status.
    pub status: u16,
    /// Where it leads, without query.
    pub to: String,
}

/// What the name leads to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Names {
    /// The name that was looked up.
    pub name: String,
    /// The system's own lookup (getaddrinfo), as programs do it.
    pub system: Option<Span>,
    /// The addresses in the system's order, or its error in words.
    pub addresses: Found<Vec<IpAddr>>,
    /// Our own questions to the name server, one for each family.
    pub asked: Vec<DnsQuery>,
}

/// A value or an error in words, with a name for each in JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Found<T> {
    /// It worked.
    Value(T),
    /// It did not.
    Error(String),
}

impl<T: Default> Default for Found<T> {
    fn default() -> Self {
        Found::Value(T::default())
    }
}

/// One question to a name server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DnsQuery {
    /// `A` or `AAAA`.
    pub kind: String,
    /// Who was asked.
    pub server: String,
    /// When, and how long it took.
    pub span: Span,
    /// What came.
    pub answer: Found<NameAnswer>,
}

/// What a name server answered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NameAnswer {
    /// The addresses.
    pub addresses: Vec<IpAddr>,
    /// The smallest TTL on the way to them, in seconds.
    pub ttl_s: Option<u32>,
    /// The names on the way, the one asked for left out.
    pub aliases: Vec<String>,
}

/// One HTTP version over one TLS version, or over none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VersionResult {
    /// What was spoken.
    pub http: Protocol,
    /// The one TLS version that was offered; absent: plain.
    pub tls: Option<TlsVersion>,
    /// Whether `Connection: keep-alive` was sent (HTTP/1.0 needs it).
    pub asks: bool,
    /// What became of the first request.
    pub outcome: Outcome,
    /// The failure in the library's or kernel's own words.
    pub detail: Option<String>,
    /// The status of the first answer.
    pub status: Option<u16>,
    /// The version in the answer's status line.
    pub response_version: Option<Protocol>,
    /// Whether that answer leaves the connection open for another, by what it says (RFC 9112 section 9.3).
    pub says_kept: Option<bool>,
    /// Whether a second request was answered on the same connection; absent when the first was not.
    pub reused: Option<bool>,
    /// The cipher suite.
    pub cipher: Option<String>,
    /// The protocol that the server chose by ALPN.
    pub alpn: Option<String>,
    /// `Connection`, as sent.
    pub connection: Option<String>,
    /// `Keep-Alive`, as sent.
    pub keep_alive: Option<String>,
    /// Fields that HTTP/2 forbids and the answer had (RFC 9113 section 8.2.2).
    pub forbidden: Vec<String>,
}

/// A TLS version that was offered in a hello and not spoken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OldTlsResult {
    /// The version.
    pub version: TlsVersion,
    /// Whether the server took it; absent when it did not answer in time.
    pub accepted: Option<bool>,
    /// What it said instead.
    pub detail: Option<String>,
}

/// One TLS version, looked at closely.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TlsResult {
    /// The version.
    pub version: TlsVersion,
    /// The cipher suite.
    pub cipher: Option<String>,
    /// The full handshake.
    pub full: Span,
    /// From our hello to the first bytes of the answer: a round trip and the server's part of the key exchange.
    pub to_first_answer: Option<Span>,
    /// Bytes of the server's part of the handshake.
    pub received: u64,
    /// Certificates that the server sent.
    pub certificates: u32,
    /// Their bytes.
    pub chain_bytes: u64,
    /// Tickets (TLS 1.3) until the first answer was complete; absent for TLS 1.2, where they are not told.
    pub tickets: Option<u32>,
    /// The handshake of a second connection that offered to resume, and whether the server did.
    pub second: Option<(Span, bool)>,
    /// Early data (0-RTT); absent when it was not tried.
    pub early_data: Option<EarlyData>,
}

/// What became of a request in the first flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum EarlyData {
    /// The server's tickets do not allow it.
    NotOffered,
    /// The server took it.
    Accepted,
    /// The server's ticket allowed it, the server did not take it.
    Rejected,
}

/// Whether a connection survived a method or a status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MethodResult {
    /// What was asked, such as `HEAD` or `GET of a path that is not there`.
    pub what: String,
    /// The status.
    pub status: Option<u16>,
    /// What became of it.
    pub outcome: Outcome,
    /// Whether the next request on the connection was answered; absent when this one was not.
    pub kept: Option<bool>,
}

/// What ties clients to a connection or to a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct State {
    /// Names of the cookies that answers set.
    pub cookies: Vec<String>,
    /// Schemes of `WWW-Authenticate` and `Proxy-Authenticate`.
    pub authentication: Vec<String>,
    /// Fields whose value stayed the same on each connection and differed between connections.
    pub affinity: Vec<String>,
    /// Connections that were compared.
    pub compared: u32,
}

/// What HTTP/2 showed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Http2Seen {
    /// The server's SETTINGS by name.
    pub settings: BTreeMap<String, u32>,
    /// From the end of HEADERS to the first DATA, for each answer, in nanoseconds; absent for an answer without a body.
    pub headers_to_data_ns: Vec<Option<u64>>,
    /// Bytes of each request's header block with its frame heads.
    pub request_heads: Vec<u64>,
    /// Bytes of each answer's header block with its frame heads.
    pub answer_heads: Vec<u64>,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ended {
    /// Who closed first; absent when it cannot be told.
    pub by: Option<Side>,
    /// What was seen.
    pub how: CloseKind,
    /// Whether the last answer had announced it.
    pub announced: bool,
    /// The status of an answer that nobody had asked for (408, for example).
    pub unsolicited_status: Option<u16>,
}

/// Requests on one connection until the server ended it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RequestLimit {
    /// What was spoken.
    pub http: Protocol,
    /// Complete answers.
    pub answered: u32,
    /// Requests that were to be sent.
    pub wanted: u32,
    /// `max=` of the first answer.
    pub announced: Option<u32>,
    /// Whether the last answer said that it is the last.
    pub last_announced: bool,
    /// How the server ended it; absent: it did not, or said so and left the closing to us.
    pub ended: Option<Ended>,
    /// Why a request failed, if one did.
    pub failed: Option<Failure>,
}

/// The idle limits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IdleLimits {
    /// What was spoken.
    pub http: Protocol,
    /// `timeout=` of the answer, in seconds.
    pub announced_s: Option<u32>,
    /// After an answer: of all samples the one that ended first.
    pub between: Option<IdleWait>,
    /// After an answer, one on each of several connections, in the order of their last answers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<IdleWait>,
    /// Before any request.
    pub before_first: Option<IdleWait>,
    /// Whether a request was answered while other connections idled; absent when that was not looked at.
    pub answers_others: Option<bool>,
}

/// How long an idle connection was watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IdleWait {
    /// From the last sign of activity to the end, or to when we stopped.
    pub span: Span,
    /// How the server ended it; absent: it did not, and the span is a lower bound.
    pub ended: Option<Ended>,
}

/// The idle limit of one connection while others idle beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IdleUnderLoad {
    /// The others, as many as the server took.
    pub connections: u32,
    /// How long the one was watched after its answer; absent when it could not be opened beside them.
    pub waited: Option<IdleWait>,
}

/// A connection that carried a request now and then, so that no idle limit ended it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MaxAge {
    /// From the end of the setup to the end, or to when we stopped.
    pub span: Span,
    /// Complete answers.
    pub answered: u32,
    /// Whether the last answer said that it is the last.
    pub last_announced: bool,
    /// How the server ended it; absent: it did not, or said so and left the closing to us.
    pub ended: Option<Ended>,
}

/// Requests sent around the idle limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Race {
    /// The limit that was aimed at, in nanoseconds.
    pub limit_ns: u64,
    /// The requests, in order of time.
    pub attempts: Vec<RaceAttempt>,
}

/// One request meant for a moment near the idle limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RaceAttempt {
    /// How long the connection had idled then, in nanoseconds.
    pub idle_ns: u64,
    /// What became of the request; absent: the end of the connection was there already, and nothing was sent.
    pub outcome: Option<Outcome>,
    /// How long the connection had idled when its end came, in nanoseconds, where that was before the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ns: Option<u64>,
    /// How the connection ended, if it did.
    pub ended: Option<Ended>,
}

/// A probe that did not run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Skipped {
    /// Its name.
    pub probe: String,
    /// Why.
    pub why: String,
    /// Whether the check ended before the probe came to its end: by its time, its budget, or a signal.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut_off: bool,
}
