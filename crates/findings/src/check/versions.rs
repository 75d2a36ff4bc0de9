//! The card's plain parts in the units of a report: target, names, versions, TLS, methods, HTTP/2.

use intact_ledger::server_profile::{
    DnsQuery, EarlyData, FirstRequest, Found, Http2Seen, Http3Seen, MethodResult, Names,
    OldTlsResult, Redirect, TlsResult, VersionResult,
};
use intact_ledger::{Failure, Span, TlsVersion};
use serde::Serialize;
use std::collections::BTreeMap;
use std::net::IpAddr;

const NANOS_PER_MS: f64 = 1e6;

fn ms(span: Span) -> f64 {
    span.nanos() as f64 / NANOS_PER_MS
}

/// The first request and where it led.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Target {
    /// The URL that was probed in the end, without its query.
    pub url: String,
    /// The status; absent when there was no response.
    pub status: Option<u16>,
    /// How the request failed.
    pub failed: Option<&'static str>,
    /// The failure in the library's or kernel's own words.
    pub detail: Option<String>,
    /// `Server`, as sent.
    pub server: Option<String>,
    /// Bytes of the body.
    pub body: u64,
    /// Whether later probes used HEAD because the body is large.
    pub by_head: bool,
    /// Redirects that were followed.
    pub followed: Vec<Redirect>,
    /// A redirect that was not followed.
    pub redirect: Option<Redirect>,
    /// Whether the port speaks the other of TLS and plain HTTP; absent where that was not looked at.
    pub other_scheme: Option<bool>,
    #[serde(skip)]
    pub(super) failure: Option<Failure>,
}

impl Target {
    /// Whether the response was complete, whatever its status.
    pub fn is_complete(&self) -> bool {
        let unwanted = matches!(
            self.failure,
            Some(Failure::UnexpectedStatus | Failure::NotPlain)
        );
        self.failure.is_none() || unwanted && self.status.is_some()
    }

    pub(super) fn of(contact: &FirstRequest) -> Target {
        let failure = contact.outcome.failure();
        Target {
            url: contact.url.clone(),
            status: contact.status,
            failed: failure.map(|kind| kind.id()),
            detail: contact.detail.clone(),
            server: contact.server.clone(),
            body: contact.body,
            by_head: contact.by_head,
            followed: contact.followed.clone(),
            redirect: contact.redirect.clone(),
            other_scheme: contact.other_scheme,
            failure,
        }
    }
}

/// What a name leads to.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NamesFacts {
    /// The name.
    pub name: String,
    /// The system's own lookup (getaddrinfo), in milliseconds.
    pub lookup_ms: Option<f64>,
    /// Its addresses, in its order.
    pub addresses: Vec<IpAddr>,
    /// Its error in words.
    pub error: Option<String>,
    /// Our own questions to the name server.
    pub asked: Vec<Address>,
}

/// One question to a name server.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Address {
    /// `A` or `AAAA`.
    pub kind: String,
    /// Who was asked.
    pub server: String,
    /// How long it took, in milliseconds.
    pub lookup_ms: f64,
    /// The addresses.
    pub addresses: Vec<IpAddr>,
    /// The smallest TTL on the way to them, in seconds.
    pub ttl_s: Option<u32>,
    /// The names on the way, the one asked for left out.
    pub aliases: Vec<String>,
    /// The error in words.
    pub error: Option<String>,
}

impl NamesFacts {
    pub(super) fn of(names: &Names) -> NamesFacts {
        let (addresses, error) = match &names.addresses {
            Found::Value(addresses) => (addresses.clone(), None),
            Found::Error(words) => (Vec::new(), Some(words.clone())),
        };
        NamesFacts {
            name: names.name.clone(),
            lookup_ms: names.system.map(ms),
            addresses,
            error,
            asked: names.asked.iter().map(Address::of).collect(),
        }
    }
}

impl Address {
    fn of(asked: &DnsQuery) -> Address {
        let (answer, error) = match &asked.answer {
            Found::Value(answer) => (answer.clone(), None),
            Found::Error(words) => (
                intact_ledger::server_profile::NameAnswer::default(),
                Some(words.clone()),
            ),
        };
        Address {
            kind: asked.kind.clone(),
            server: asked.server.clone(),
            lookup_ms: ms(asked.span),
            addresses: answer.addresses,
            ttl_s: answer.ttl_s,
            aliases: answer.aliases,
            error,
        }
    }
}

/// One HTTP version over one TLS version, or plain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VersionFacts {
    /// `1.0`, `1.1`, `2`.
    pub http: &'static str,
    /// `1.2`, `1.3`; absent: plain.
    pub tls: Option<&'static str>,
    /// Whether `Connection: keep-alive` was sent.
    pub keep_alive_requested: bool,
    /// Whether the first request was answered.
    pub supported: bool,
    /// Whether a second request was answered on the same connection.
    pub reused: Option<bool>,
    /// What curl would print about the connection after the first response: `left intact` or `closing`.
    pub curl: Option<&'static str>,
    /// The status of the first response.
    pub status: Option<u16>,
    /// The version in the response's status line.
    pub response_version: Option<&'static str>,
    /// The cipher suite.
    pub cipher: Option<String>,
    /// The protocol that the server chose by ALPN.
    pub alpn: Option<String>,
    /// `Connection`, as sent.
    pub connection: Option<String>,
    /// `Keep-Alive`, as sent.
    pub keep_alive: Option<String>,
    /// Fields that HTTP/2 forbids and the response had (RFC 9113 section 8.2.2).
    pub forbidden: Vec<String>,
    /// How the request failed.
    pub failed: Option<&'static str>,
    /// The failure in the library's or kernel's own words.
    pub detail: Option<String>,
}

impl VersionFacts {
    pub(super) fn of(tried: &VersionResult) -> VersionFacts {
        VersionFacts {
            http: tried.http.as_str(),
            tls: tried.tls.map(|version| version.as_str()),
            keep_alive_requested: tried.asks,
            supported: tried.outcome.is_ok(),
            reused: tried.reused,
            curl: tried
                .says_kept
                .map(|kept| if kept { "left intact" } else { "closing" }),
            status: tried.status,
            response_version: tried.response_version.map(|version| version.as_str()),
            cipher: tried.cipher.clone(),
            alpn: tried.alpn.clone(),
            connection: tried.connection.clone(),
            keep_alive: tried.keep_alive.clone(),
            forbidden: tried.forbidden.clone(),
            failed: tried.outcome.failure().map(|kind| kind.id()),
            detail: tried.detail.clone(),
        }
    }

    /// What a table calls it.
    pub fn name(&self) -> String {
        let asks = if self.keep_alive_requested {
            " + keep-alive"
        } else {
            ""
        };
        format!("{}{asks}", self.http)
    }
}

/// One TLS version, looked at closely.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TlsFacts {
    /// `1.2`, `1.3`.
    pub version: &'static str,
    /// The cipher suite.
    pub cipher: Option<String>,
    /// The full handshake, in milliseconds.
    pub handshake_ms: f64,
    /// Of that, until the first bytes of the server's response came: a round trip and the server's part of the key exchange.
    pub to_first_response_ms: Option<f64>,
    /// Of that, the rest: our checks of the chain, and with TLS 1.2 another round trip.
    pub rest_ms: Option<f64>,
    /// Bytes of the server's part of the handshake.
    pub received: u64,
    /// Certificates that the server sent.
    pub certificates: u32,
    /// Their bytes.
    pub chain_bytes: u64,
    /// Tickets until the first response was complete; absent for TLS 1.2, where they are not counted.
    pub tickets: Option<u32>,
}

impl TlsFacts {
    pub(super) fn of(seen: &TlsResult) -> TlsFacts {
        let handshake_ms = ms(seen.full);
        let to_first_response_ms = seen.to_first_answer.map(ms);
        TlsFacts {
            version: seen.version.as_str(),
            cipher: seen.cipher.clone(),
            handshake_ms,
            to_first_response_ms,
            rest_ms: to_first_response_ms.map(|first| (handshake_ms - first).max(0.0)),
            received: seen.received,
            certificates: seen.certificates,
            chain_bytes: seen.chain_bytes,
            tickets: seen.tickets,
        }
    }
}

/// A TLS version before 1.2, offered and not spoken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OldTls {
    /// `1.0`, `1.1`.
    pub version: &'static str,
    /// Whether the server took it; absent when it did not respond in time.
    pub accepted: Option<bool>,
    /// What it said instead.
    pub detail: Option<String>,
}

impl OldTls {
    pub(super) fn of(offered: &OldTlsResult) -> OldTls {
        OldTls {
            version: offered.version.as_str(),
            accepted: offered.accepted,
            detail: offered.detail.clone(),
        }
    }
}

/// Resumption in one TLS version.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Resumption {
    /// `1.2`, `1.3`.
    pub version: &'static str,
    /// Whether the second connection resumed the first one's session.
    pub accepted: bool,
    /// Its handshake, in milliseconds.
    pub handshake_ms: f64,
    /// The full handshake before it, in milliseconds.
    pub full_handshake_ms: f64,
    /// A request in the first flight (0-RTT); absent when it was not tried.
    pub early_data: Option<EarlyData>,
}

impl Resumption {
    pub(super) fn of(seen: &TlsResult) -> Option<Resumption> {
        let (span, accepted) = seen.second?;
        Some(Resumption {
            version: seen.version.as_str(),
            accepted,
            handshake_ms: ms(span),
            full_handshake_ms: ms(seen.full),
            early_data: seen
                .early_data
                .filter(|_| seen.version == TlsVersion::Tls13),
        })
    }
}

/// Whether a connection survived a method or a status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MethodFacts {
    /// What was asked.
    pub what: String,
    /// The status.
    pub status: Option<u16>,
    /// How it failed.
    pub failed: Option<&'static str>,
    /// Whether the next request on the connection was answered.
    pub kept: Option<bool>,
}

impl MethodFacts {
    pub(super) fn of(tried: &MethodResult) -> MethodFacts {
        MethodFacts {
            what: tried.what.clone(),
            status: tried.status,
            failed: tried.outcome.failure().map(|kind| kind.id()),
            kept: tried.kept,
        }
    }
}

/// HTTP/3, where the server announces it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Http3Facts {
    /// `Alt-Svc`, as sent.
    pub announced: String,
    /// The host that is named, where it is another one.
    pub host: Option<String>,
    /// The UDP port.
    pub port: u16,
    /// Whether a request got a response; absent where none was tried, because this build has no HTTP/3.
    pub works: Option<bool>,
    /// Whether the packets got no response at all.
    pub is_blocked: Option<bool>,
    /// How the dial or the first request failed.
    pub failed: Option<&'static str>,
    /// The failure in the library's or kernel's own words.
    pub detail: Option<String>,
    /// The status of the first response.
    pub status: Option<u16>,
    /// Transport and TLS together, in milliseconds.
    pub setup_ms: Option<f64>,
    /// Whether a second request reused the connection.
    pub reused: Option<bool>,
    /// Whether a second connection resumed the session.
    pub resumed: Option<bool>,
}

impl Http3Facts {
    pub(super) fn of(seen: &Http3Seen) -> Http3Facts {
        let tried = seen.tried.as_ref();
        let failure = tried.and_then(|tried| tried.outcome.failure());
        let no_response = [
            Failure::ConnectTimeout,
            Failure::Refused,
            Failure::Unreachable,
        ];
        Http3Facts {
            announced: seen.announced.clone(),
            host: seen.host.clone(),
            port: seen.port,
            works: tried.map(|tried| tried.outcome.is_ok()),
            is_blocked: tried.map(|_| failure.is_some_and(|kind| no_response.contains(&kind))),
            failed: failure.map(Failure::id),
            detail: tried.and_then(|tried| tried.detail.clone()),
            status: tried.and_then(|tried| tried.status),
            setup_ms: tried.and_then(|tried| tried.setup).map(ms),
            reused: tried.and_then(|tried| tried.reused),
            resumed: tried.and_then(|tried| tried.resumed),
        }
    }
}

/// What HTTP/2 showed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Http2Facts {
    /// The server's SETTINGS by name, as sent.
    pub settings: BTreeMap<String, u32>,
    /// From the end of HEADERS to the first DATA, for each response, in milliseconds; 0: together; absent: no body.
    pub headers_to_data_ms: Vec<Option<f64>>,
    /// Bytes of the header block of each request.
    pub request_head_bytes: Vec<u64>,
    /// Bytes of the header block of each response.
    pub response_header_bytes: Vec<u64>,
}

impl Http2Facts {
    pub(super) fn of(seen: &Http2Seen) -> Http2Facts {
        Http2Facts {
            settings: seen.settings.clone(),
            headers_to_data_ms: seen
                .headers_to_data_ns
                .iter()
                .map(|gap| gap.map(|nanos| nanos as f64 / NANOS_PER_MS))
                .collect(),
            request_head_bytes: seen.request_heads.clone(),
            response_header_bytes: seen.answer_heads.clone(),
        }
    }
}
