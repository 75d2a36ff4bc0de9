//! What the tools of clients have in common: how they write times, URLs, versions and failures.

use intact_ledger::{Failure, KeepAliveTerms, Origin, Outcome, Protocol, Scheme, SetupPhase};

const NANOS_PER_MS: f64 = 1e6;
/// Longer timings are nonsense: a week, in milliseconds.
const LONGEST_MS: f64 = 604_800_000.0;

/// A time as ISO 8601, in nanoseconds since 1970.
pub(crate) fn nanos(text: &str) -> Option<u64> {
    let time: jiff::Timestamp = text.trim().parse().ok()?;
    u64::try_from(time.as_nanosecond()).ok()
}

/// Milliseconds in nanoseconds, within reason.
pub(crate) fn nanos_of_ms(ms: f64) -> u64 {
    (ms.clamp(0.0, LONGEST_MS) * NANOS_PER_MS) as u64
}

/// Seconds in nanoseconds, within reason; `None` for what is no time.
pub(crate) fn nanos_of_seconds(seconds: f64) -> Option<u64> {
    (seconds >= 0.0).then(|| nanos_of_ms(seconds * 1e3))
}

/// Origin and the rest of a URL; `None` for a scheme that needs no network.
pub(crate) fn split(url: &str) -> Option<(Origin, String)> {
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

/// The version as tools write it.
pub(crate) fn protocol(version: &str) -> Option<Protocol> {
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

/// What Chromium's words mean; `None` for a request that was never sent.
pub(crate) fn failure(error: &str) -> Option<(Outcome, Option<SetupPhase>)> {
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
        "ABORTED" => (F::ClientClosed, None),
        name if name.starts_with("CERT_") => (F::Certificate, Some(Ssl)),
        // blocked by the browser, missing in a cache and the like
        _ => return None,
    };
    Some((Outcome::Failed(kind), phase))
}

/// Whether a `Connection` field announces the end.
pub(crate) fn closes(value: &str) -> bool {
    value
        .split(',')
        .any(|word| word.trim().eq_ignore_ascii_case("close"))
}

/// What a `Keep-Alive` field announces.
pub(crate) fn add_terms(terms: &mut KeepAliveTerms, value: &str) {
    for parameter in value.split(',') {
        match parameter.trim().split_once('=') {
            Some(("timeout", number)) => terms.timeout_s = number.parse().ok(),
            Some(("max", number)) => terms.max = number.parse().ok(),
            _ => {}
        }
    }
}
