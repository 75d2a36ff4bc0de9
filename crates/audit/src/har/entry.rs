//! One entry of a HAR file: as it stands there, and as what it tells.

use super::loose::Loose;
use ledger::{Failure, Method, Origin, Outcome, Protocol, Scheme, SetupPhase, Target, Terms};
use serde::Deserialize;
use std::net::IpAddr;

const NANOS_PER_MS: f64 = 1e6;
/// Longer timings are nonsense: a week, in milliseconds.
const LONGEST_MS: f64 = 604_800_000.0;

/// An entry as it stands in the file.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawEntry {
    started_date_time: Loose,
    time: Loose,
    #[serde(deserialize_with = "or_nothing")]
    request: RawRequest,
    #[serde(deserialize_with = "or_nothing")]
    response: RawResponse,
    #[serde(deserialize_with = "or_nothing")]
    timings: RawTimings,
    connection: Loose,
    #[serde(rename = "_socket")]
    socket: Loose,
    #[serde(rename = "serverIPAddress")]
    server_ip_address: Loose,
    #[serde(rename = "_fromCache")]
    from_cache: Loose,
    #[serde(rename = "_fetchedViaServiceWorker")]
    by_service_worker: Loose,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawRequest {
    method: Loose,
    url: Loose,
    http_version: Loose,
    headers_size: Loose,
    body_size: Loose,
    #[serde(deserialize_with = "or_nothing")]
    headers: Vec<RawHeader>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawResponse {
    status: Loose,
    http_version: Loose,
    headers_size: Loose,
    body_size: Loose,
    #[serde(deserialize_with = "or_nothing")]
    headers: Vec<RawHeader>,
    #[serde(rename = "_error")]
    error: Loose,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RawTimings {
    blocked: Loose,
    dns: Loose,
    connect: Loose,
    ssl: Loose,
    send: Loose,
    wait: Loose,
    receive: Loose,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RawHeader {
    name: Loose,
    value: Loose,
}

/// `null` for something that need not be there.
fn or_nothing<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Nanoseconds of each phase; `None` for what did not apply or is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Timings {
    pub(super) blocked: Option<u64>,
    pub(super) dns: Option<u64>,
    /// Without TLS.
    pub(super) connect: Option<u64>,
    pub(super) ssl: Option<u64>,
    pub(super) send: Option<u64>,
    pub(super) wait: Option<u64>,
    pub(super) receive: Option<u64>,
}

impl Timings {
    /// Nanoseconds before the request could be sent.
    pub(super) fn before_send(&self) -> u64 {
        [self.blocked, self.dns, self.connect, self.ssl]
            .iter()
            .flatten()
            .sum()
    }

    /// Nanoseconds from sending on.
    pub(super) fn in_flight(&self) -> u64 {
        [self.send, self.wait, self.receive].iter().flatten().sum()
    }

    /// Whether a connection was set up for this request.
    pub(super) fn has_setup(&self) -> bool {
        self.connect.or(self.ssl).is_some()
    }
}

/// What an entry tells.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// Nanoseconds since 1970.
    pub(super) at: u64,
    pub(super) timings: Timings,
    /// Whole time in nanoseconds, where the phases are not told.
    pub(super) time: u64,
    pub(super) origin: Origin,
    pub(super) method: Method,
    pub(super) target: Target,
    /// Method, URL and no body: what a retry is recognised by.
    pub(super) full_target: Box<str>,
    pub(super) protocol: Option<Protocol>,
    pub(super) status: Option<u16>,
    pub(super) outcome: Outcome,
    /// The step of a dial that failed.
    pub(super) dial: Option<SetupPhase>,
    pub(super) address: Option<IpAddr>,
    /// What the file calls the connection.
    pub(super) id: Option<Box<str>>,
    pub(super) client_closes: bool,
    pub(super) server_closes: bool,
    pub(super) terms: Terms,
    pub(super) request_head: u64,
    pub(super) request_body: Option<u64>,
    pub(super) head: u64,
    pub(super) body: Option<u64>,
}

impl Entry {
    /// `None` for an entry that did not go over a network, or that has no time or no URL.
    pub(super) fn new(raw: &RawEntry) -> Option<Entry> {
        let at = nanos(&raw.started_date_time.text()?)?;
        let url = raw.request.url.text()?;
        let (origin, full_target) = split(&url)?;
        if raw.from_cache.is_set() || raw.by_service_worker.is_set() {
            return None;
        }
        let timings = timings(&raw.timings);
        let time = raw.time.number().map_or(0, nanos_of_ms);
        let id = raw.connection.text().or(raw.socket.text());
        let address = raw
            .server_ip_address
            .text()
            .and_then(|text| text.trim_matches(['[', ']']).parse().ok());
        let status = raw.response.status.count();
        let status = status.and_then(|status| u16::try_from(status).ok());
        let status = status.filter(|&status| status > 0);
        let error = raw.response.error.text();
        let (outcome, dial) = match (&error, status) {
            (Some(error), _) => failure(error)?,
            (None, Some(_)) => (Outcome::Ok, None),
            // blocked, or cancelled before it was sent
            (None, None) => return None,
        };
        // what took no time, from nowhere, on no connection came from a cache
        let took = time.max(timings.before_send() + timings.in_flight());
        if outcome.is_ok() && took == 0 && address.is_none() && id.is_none() {
            return None;
        }
        let version = raw.response.http_version.text();
        let version = version.filter(|text| protocol(text).is_some());
        let version = version.or(raw.request.http_version.text());
        let method = raw.request.method.text().unwrap_or_default();
        let mut entry = Entry {
            at,
            timings,
            time,
            origin,
            target: Target::new(&full_target),
            method: Method::new(&method),
            full_target: full_target.into(),
            protocol: version.and_then(|text| protocol(&text)),
            status,
            outcome,
            dial,
            address,
            id: id.map(|id| egress(&id).into()),
            client_closes: false,
            server_closes: false,
            terms: Terms::default(),
            request_head: raw.request.headers_size.count().unwrap_or(0),
            request_body: raw.request.body_size.count(),
            head: raw.response.headers_size.count().unwrap_or(0),
            body: raw.response.body_size.count(),
        };
        entry.client_closes =
            fields(&raw.request.headers, "connection").any(|value| closes(&value));
        entry.server_closes =
            fields(&raw.response.headers, "connection").any(|value| closes(&value));
        for value in fields(&raw.response.headers, "keep-alive") {
            for parameter in value.split(',') {
                match parameter.trim().split_once('=') {
                    Some(("timeout", number)) => entry.terms.timeout_s = number.parse().ok(),
                    Some(("max", number)) => entry.terms.max = number.parse().ok(),
                    _ => {}
                }
            }
        }
        Some(entry)
    }

    /// When the request was sent.
    pub(super) fn sent_at(&self) -> u64 {
        self.at.saturating_add(self.timings.before_send())
    }

    /// When it was over.
    pub(super) fn ended_at(&self) -> u64 {
        let phases = self.timings.before_send() + self.timings.in_flight();
        self.at
            .saturating_add(if phases > 0 { phases } else { self.time })
    }
}

/// A time as ISO 8601, in nanoseconds since 1970.
pub(super) fn nanos(text: &str) -> Option<u64> {
    let time: jiff::Timestamp = text.trim().parse().ok()?;
    u64::try_from(time.as_nanosecond()).ok()
}

fn nanos_of_ms(ms: f64) -> u64 {
    (ms.clamp(0.0, LONGEST_MS) * NANOS_PER_MS) as u64
}

/// -1 stands for what did not apply; 0 is how some say the same of a set-up.
fn timings(raw: &RawTimings) -> Timings {
    let phase = |value: &Loose| value.number().filter(|ms| *ms >= 0.0).map(nanos_of_ms);
    let step = |value: &Loose| phase(value).filter(|&nanos| nanos > 0);
    let ssl = step(&raw.ssl);
    // HAR 1.2: connect includes ssl. HAR 1.1 and Firefox tell them apart, so that ssl may be the longer one
    let connect = step(&raw.connect).map(|both| match ssl {
        Some(ssl) if ssl <= both => both - ssl,
        _ => both,
    });
    Timings {
        blocked: step(&raw.blocked),
        dns: step(&raw.dns),
        connect,
        ssl,
        send: phase(&raw.send),
        wait: phase(&raw.wait),
        receive: phase(&raw.receive),
    }
}

/// Origin and the rest of a URL; `None` for a scheme that needs no network.
fn split(url: &str) -> Option<(Origin, String)> {
    let (scheme, rest) = url.split_once("://")?;
    let scheme = match scheme.to_ascii_lowercase().as_str() {
        "http" | "ws" => Scheme::Http,
        "https" | "wss" => Scheme::Https,
        _ => return None,
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let authority = authority.rsplit('@').next().unwrap_or(authority);
    let (host, port) = match authority.strip_prefix('[') {
        Some(v6) => {
            let (host, port) = v6.split_once(']')?;
            (host, port.strip_prefix(':'))
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let port = match port {
        Some(port) if !port.is_empty() => port.parse().ok()?,
        _ => scheme.default_port()?,
    };
    let clean = |byte: u8| byte.is_ascii_graphic() || byte >= 0x80;
    if host.is_empty() || host.len() > 253 || !host.bytes().all(clean) {
        return None;
    }
    let origin = Origin {
        scheme,
        host: host.to_ascii_lowercase().into(),
        port,
    };
    let path = if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("/{path}")
    };
    Some((origin, path))
}

fn protocol(version: &str) -> Option<Protocol> {
    let version = version.trim().to_ascii_lowercase();
    Some(match version.trim_start_matches("http/") {
        "0.9" => Protocol::Http09,
        "1.0" => Protocol::Http10,
        "1.1" => Protocol::Http11,
        "2" | "2.0" | "h2" | "h2c" => Protocol::Http2,
        "3" | "3.0" => Protocol::Http3,
        other if other == "h3" || other.starts_with("h3-") || other.contains("quic") => {
            Protocol::Http3
        }
        _ => return None,
    })
}

/// Fiddler names both of its sides; what reaches the server is the second.
fn egress(id: &str) -> &str {
    id.split_once("EgressPort:").map_or(id, |(_, port)| port)
}

/// What Chromium's words mean; `None` for a request that was never sent.
fn failure(error: &str) -> Option<(Outcome, Option<SetupPhase>)> {
    use Failure as F;
    use SetupPhase::{Connect, Dns, Ssl};
    let name = error
        .trim()
        .trim_start_matches("net::")
        .trim_start_matches("ERR_");
    let (kind, phase) = match name {
        "NAME_NOT_RESOLVED" | "NAME_RESOLUTION_FAILED" => (F::Lookup, Some(Dns)),
        "CONNECTION_REFUSED" => (F::Refused, Some(Connect)),
        "CONNECTION_TIMED_OUT" => (F::ConnectTimeout, Some(Connect)),
        "ADDRESS_UNREACHABLE" | "INTERNET_DISCONNECTED" | "NETWORK_CHANGED" => {
            (F::Unreachable, Some(Connect))
        }
        "PROXY_CONNECTION_FAILED" | "TUNNEL_CONNECTION_FAILED" => (F::Proxy, Some(Connect)),
        "CERT_COMMON_NAME_INVALID" => (F::CertificateName, Some(Ssl)),
        "CERT_DATE_INVALID" => (F::CertificateExpired, Some(Ssl)),
        "CERT_AUTHORITY_INVALID" => (F::CertificateUnknown, Some(Ssl)),
        "SSL_VERSION_OR_CIPHER_MISMATCH" => (F::TlsVersion, Some(Ssl)),
        "SSL_PROTOCOL_ERROR" => (F::Tls, Some(Ssl)),
        "CONNECTION_RESET" => (F::Reset, None),
        "CONNECTION_CLOSED" | "EMPTY_RESPONSE" => (F::Closed, None),
        "INCOMPLETE_CHUNKED_ENCODING" | "CONTENT_LENGTH_MISMATCH" => (F::Truncated, None),
        "TIMED_OUT" => (F::Timeout, None),
        "INVALID_HTTP_RESPONSE" | "INVALID_RESPONSE" => (F::Malformed, None),
        "HTTP2_SERVER_REFUSED_STREAM" => (F::Refusal, None),
        "HTTP2_PROTOCOL_ERROR" | "QUIC_PROTOCOL_ERROR" => (F::StreamReset, None),
        "ABORTED" => (F::Aborted, None),
        name if name.starts_with("CERT_") => (F::Certificate, Some(Ssl)),
        // blocked by the browser, missing in a cache and the like
        _ => return None,
    };
    Some((Outcome::Failed(kind), phase))
}

fn fields<'a>(headers: &'a [RawHeader], name: &'a str) -> impl Iterator<Item = String> + 'a {
    headers.iter().filter_map(move |header| {
        let matches = header.name.text()?.eq_ignore_ascii_case(name);
        matches.then(|| header.value.text()).flatten()
    })
}

fn closes(value: &str) -> bool {
    value
        .split(',')
        .any(|word| word.trim().eq_ignore_ascii_case("close"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(json: &str) -> Option<Entry> {
        Entry::new(&serde_json::from_str(json).unwrap())
    }

    #[test]
    fn types_that_nobody_agrees_on_are_read() {
        let one = entry(
            r#"{"startedDateTime":"2024-01-01T00:00:00.5+01:00","time":"12.5","connection":443,"serverIPAddress":"[::1]",
            "request":{"method":"GET","url":"https://u:p@A.example:8443/x?token=1","headers":null},
            "response":{"status":"200","httpVersion":"h2","headers":[{"name":"Keep-Alive","value":"timeout=5, max=9"}]},
            "timings":{"blocked":-1,"connect":10,"ssl":4,"send":0,"wait":"1","receive":1}}"#,
        )
        .unwrap();
        assert_eq!(one.origin.to_string(), "https://a.example:8443");
        assert_eq!(one.target.as_str(), "/x");
        assert_eq!(one.timings.connect, Some(6_000_000));
        assert_eq!((one.terms.timeout_s, one.terms.max), (Some(5), Some(9)));
        assert_eq!(one.id.as_deref(), Some("443"));
        assert_eq!(one.protocol, Some(Protocol::Http2));
    }

    #[test]
    fn what_did_not_go_over_a_network_is_left_out() {
        let with = |url: &str, time: u32, rest: &str| {
            let at = r#""startedDateTime":"2024-01-01T00:00:00Z""#;
            entry(&format!(
                r#"{{{at},"time":{time},"request":{{"method":"GET","url":"{url}"}},"response":{{"status":200}}{rest}}}"#
            ))
        };
        assert!(with("http://a/", 1, "").is_some());
        assert!(with("http://a/", 0, "").is_none());
        assert!(with("data:text/plain,x", 1, "").is_none());
        assert!(with("http://a/", 1, r#","_fromCache":"disk""#).is_none());
    }
}
