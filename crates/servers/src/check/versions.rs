//! The profile's plain parts in the units of a report: target, names, versions, TLS, methods,
//! HTTP/2.

use super::limits::{CloseFacts, limit, silent_s};
use intact_document::figures::NANOS_PER_MS;
use intact_ledger::server_profile::{
    DnsQuery, EarlyData, FirstRequest, Found, Http2Seen, Http3Connection, Http3Seen, IdleWait,
    MethodResult, Names, QuicParameters, Redirect, TlsResult, VersionResult,
};
use intact_ledger::{Failure, Handshake, Span, TlsVersion};
use intact_reading::Reading;
use serde::Serialize;
use std::collections::BTreeMap;
use std::net::IpAddr;

fn ms(span: Span) -> f64 {
    span.nanos() as f64 / NANOS_PER_MS
}

/// The first request and where it led.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
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
    /// Whether the port speaks the other of TLS and plain HTTP; absent where that was not looked
    /// at.
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
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
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
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
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
    /// What curl would print about the connection after the first response: `left intact` or
    /// `closing`.
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
    /// Bytes after the response that belong to no response: the client has to close.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub excess_bytes: Option<u64>,
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
            excess_bytes: tried.excess,
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
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TlsFacts {
    /// `1.2`, `1.3`.
    pub version: &'static str,
    /// The cipher suite.
    pub cipher: Option<String>,
    /// The full handshake, in milliseconds.
    pub handshake_ms: f64,
    /// Of that, until the first bytes of the server's response came: a round trip and the server's
    /// part of the key exchange.
    pub to_first_response_ms: Option<f64>,
    /// Of that, the rest: our checks of the chain, and with TLS 1.2 another round trip.
    pub rest_ms: Option<f64>,
    /// Bytes of the server's part of the handshake.
    pub received: u64,
    /// Certificates that the server sent.
    pub certificates: u32,
    /// Their bytes.
    pub chain_bytes: u64,
    /// Tickets until the first response was complete; absent for TLS 1.2, where they are not
    /// counted.
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

/// Resumption in one TLS version.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
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

/// HTTP/3, where the server announces it or the check used it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Http3Facts {
    /// `Alt-Svc`, as sent; absent if the server sent none.
    pub announced: Option<String>,
    /// The host that is named, where it is another one.
    pub host: Option<String>,
    /// The UDP port.
    pub port: u16,
    /// Whether a request got a response; absent where none was tried, because this build has no
    /// HTTP/3.
    pub works: Option<bool>,
    /// Whether the packets got no response at all.
    pub is_blocked: Option<bool>,
    /// How the dial or the first request failed.
    pub failed: Option<&'static str>,
    /// The failure in the library's or kernel's own words.
    pub detail: Option<String>,
    /// The status of the first response.
    pub status: Option<u16>,
    /// Whether a second request got a response on the first connection.
    pub reused: Option<bool>,
    /// Complete responses on the first connection.
    pub responses: Option<u32>,
    /// Requests that were to be sent on it.
    pub wanted: Option<u32>,
    /// Whether a second connection resumed the session; absent where none was set up.
    pub resumed: Option<bool>,
    /// Early data (0-RTT) on a third connection; absent where it was not tried.
    pub early_data: Option<EarlyData>,
    /// The connections that were set up: new, with resumption offered, with early data allowed.
    pub connections: Vec<Http3ConnectionFacts>,
    /// How long an idle connection is kept.
    pub idle_timeout: Option<Http3Idle>,
    /// Requests at once that the server announces for a new connection
    /// (`initial_max_streams_bidi`).
    pub max_request_streams: Option<u64>,
}

/// One connection of HTTP/3.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Http3ConnectionFacts {
    /// `full`, `resumed` or `early-data`.
    pub handshake: Handshake,
    /// Transport and TLS together, in milliseconds; absent with early data, where no request waits
    /// for the setup.
    pub setup_ms: Option<f64>,
    /// From the first packet to the server's first bytes, in milliseconds.
    pub to_first_response_ms: Option<f64>,
    /// Round trips that the setup needed: more than one after Retry or HelloRetryRequest, or where
    /// the server's flight is above three times the client's.
    pub round_trips: Option<u32>,
    /// The first request with the setup, in milliseconds.
    pub first_request_ms: Option<f64>,
}

/// The idle limit of a QUIC connection. At the announced time both sides drop the connection and
/// send nothing.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Http3Idle {
    /// `max_idle_timeout`, in seconds; absent: the server announces none.
    pub announced_s: Option<f64>,
    /// From the last response to the end, in seconds.
    pub measured_s: Reading,
    /// The idle time after which a request got no response, in seconds, although the connection
    /// showed no end.
    pub no_response_s: Option<f64>,
    /// How it ended; `silent`: by the idle timeout of both sides.
    pub ended: Option<CloseFacts>,
}

impl Http3Idle {
    fn of(announced: Option<&QuicParameters>, waited: Option<IdleWait>) -> Option<Http3Idle> {
        if announced.is_none() && waited.is_none() {
            return None;
        }
        let limit_ms = announced.map_or(0, |sent| sent.max_idle_timeout_ms);
        Some(Http3Idle {
            announced_s: (limit_ms > 0).then(|| limit_ms as f64 / 1e3),
            measured_s: limit(waited),
            no_response_s: waited.and_then(silent_s),
            ended: waited.and_then(|waited| waited.ended).map(CloseFacts::of),
        })
    }
}

impl Http3Facts {
    pub(super) fn of(seen: &Http3Seen) -> Http3Facts {
        let announced = Http3Facts {
            announced: seen.announced.clone(),
            host: seen.host.clone(),
            port: seen.port,
            ..Http3Facts::default()
        };
        let Some(tried) = &seen.tried else {
            return announced;
        };
        let failure = tried.outcome.failure();
        let no_response = [
            Failure::ConnectTimeout,
            Failure::Refused,
            Failure::Unreachable,
        ];
        let second = tried.connections.get(1);
        Http3Facts {
            works: Some(tried.outcome.is_ok()),
            is_blocked: Some(failure.is_some_and(|kind| no_response.contains(&kind))),
            failed: failure.map(Failure::id),
            detail: tried.detail.clone(),
            status: tried.status,
            reused: (tried.answered > 0).then_some(tried.answered > 1),
            responses: Some(tried.answered),
            wanted: Some(tried.wanted),
            resumed: second.map(|second| second.handshake != Handshake::Full),
            early_data: tried.early_data,
            connections: tried.connections.iter().map(connection).collect(),
            idle_timeout: Http3Idle::of(tried.parameters.as_ref(), tried.idle),
            max_request_streams: tried.parameters.map(|sent| sent.max_request_streams),
            ..announced
        }
    }
}

fn connection(seen: &Http3Connection) -> Http3ConnectionFacts {
    Http3ConnectionFacts {
        handshake: seen.handshake,
        setup_ms: seen.setup.map(ms),
        to_first_response_ms: seen.to_first_answer.map(ms),
        round_trips: seen.round_trips,
        first_request_ms: seen.first_request.map(ms),
    }
}

/// What HTTP/2 showed.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Http2Facts {
    /// The server's SETTINGS by name, as sent.
    pub settings: BTreeMap<String, u32>,
    /// From the end of HEADERS to the first DATA, for each response, in milliseconds; 0: together;
    /// absent: no body.
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
