//! Values that several formats share: durations, URLs, versions and failures.

use intact_ledger::{Failure, KeepAliveTerms, Origin, Outcome, Protocol, Scheme, TlsVersion};

const NANOS_PER_MS: f64 = 1e6;
/// Longest accepted duration, in milliseconds: a week.
const LONGEST_MS: f64 = 604_800_000.0;

/// A status as HTTP has it (RFC 9110 section 15): three digits. Other numbers say that there is
/// none, or were cut.
pub(crate) fn status(number: u64) -> Option<u16> {
    let status = u16::try_from(number).ok()?;
    (100..1000).contains(&status).then_some(status)
}

/// Converts milliseconds to nanoseconds, limited to `LONGEST_MS`.
pub(crate) fn nanos_of_ms(ms: f64) -> u64 {
    (ms.clamp(0.0, LONGEST_MS) * NANOS_PER_MS) as u64
}

/// Converts seconds to nanoseconds; `None` for a value that is no duration.
pub(crate) fn nanos_of_seconds(seconds: f64) -> Option<u64> {
    (seconds >= 0.0).then(|| nanos_of_ms(seconds * 1e3))
}

/// The scheme of a URL; `None` for one that needs no network.
pub(crate) fn scheme(name: &str) -> Option<Scheme> {
    match name.to_ascii_lowercase().as_str() {
        "http" | "ws" => Some(Scheme::Http),
        "https" | "wss" => Some(Scheme::Https),
        _ => None,
    }
}

/// Splits a URL into the origin and the rest; `None` for a scheme that needs no network.
pub(crate) fn split(url: &str) -> Option<(Origin, String)> {
    let (name, rest) = url.split_once("://")?;
    let scheme = scheme(name)?;
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

/// Rounds nanoseconds that are not negative and at most a month; `None` for others.
pub(crate) fn whole(nanos: f64) -> Option<u64> {
    (0.0..2.7e15)
        .contains(&nanos)
        .then_some(nanos.round() as u64)
}

/// Parses the version of HTTP: `HTTP/1.1`, `HTTP/2.0`, `h2`.
pub(crate) fn protocol(version: &str) -> Option<Protocol> {
    // a log has millions of these
    if version == "HTTP/1.1" {
        return Some(Protocol::Http11);
    }
    let version = version.trim();
    let number = match version.split_at_checked(5) {
        Some((name, number)) if name.eq_ignore_ascii_case("http/") => number,
        _ => version,
    };
    Some(match number {
        "0.9" => Protocol::Http09,
        "1.0" => Protocol::Http10,
        "1.1" => Protocol::Http11,
        "2" | "2.0" => Protocol::Http2,
        "3" | "3.0" => Protocol::Http3,
        name => match name.to_ascii_lowercase().as_str() {
            "h2" | "h2c" => Protocol::Http2,
            name if name == "h3" || name.starts_with("h3-") || name.contains("quic") => {
                Protocol::Http3
            }
            _ => return None,
        },
    })
}

/// Parses the version of TLS: `TLSv1.3`, `tls1.3`, `TLSv1_2`, `TLSv12`, or the number of the
/// protocol (772 is 1.3).
pub(crate) fn tls_version(text: &str) -> Option<TlsVersion> {
    let number = text.trim_start_matches(|letter: char| !letter.is_ascii_digit());
    Some(match number {
        "1.3" | "1_3" | "13" | "772" => TlsVersion::Tls13,
        "1.2" | "1_2" | "12" | "771" => TlsVersion::Tls12,
        "1.1" | "1_1" | "11" | "770" => TlsVersion::Tls11,
        "1" | "1.0" | "10" | "769" => TlsVersion::Tls10,
        "3" | "768" => TlsVersion::Ssl3,
        _ => return None,
    })
}

/// What an error text of a HAR says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HarError {
    /// The browser sent no request.
    NotSent,
    /// The browser did not use the response: its status, if there is one, is that of the server.
    AfterResponse,
    /// The page or the user cancelled the request.
    Cancelled,
    /// The request ended so.
    Outcome(Outcome),
}

impl HarError {
    /// The outcome of a request, with or without a response; `None` if it was not sent. Whether a
    /// request was sent that was cancelled before its response is unknown.
    pub(crate) fn outcome(self, has_response: bool) -> Option<Outcome> {
        match (self, has_response) {
            (HarError::NotSent, _) => None,
            (HarError::AfterResponse, true) => Some(Outcome::Ok),
            (HarError::Cancelled, true) => Some(Outcome::Failed(Failure::ClientClosed)),
            (HarError::AfterResponse | HarError::Cancelled, false) => Some(Outcome::Unknown),
            (HarError::Outcome(outcome), _) => Some(outcome),
        }
    }
}

/// What an error text means, of Chromium or of any program.
pub(crate) fn har_error(error: &str) -> HarError {
    let name = chromium_name(error);
    match name {
        "BLOCKED_BY_ADMINISTRATOR"
        | "BLOCKED_BY_CLIENT"
        | "BLOCKED_BY_CSP"
        | "BLOCKED_BY_PRIVATE_NETWORK_ACCESS_CHECKS"
        | "BLOCKED_IN_INCOGNITO_BY_ADMINISTRATOR"
        | "CACHE_MISS"
        | "DISALLOWED_URL_SCHEME"
        | "FILE_NOT_FOUND"
        | "INVALID_URL"
        | "UNKNOWN_URL_SCHEME"
        | "UNSAFE_PORT"
        | "UNSAFE_REDIRECT"
        | "UPLOAD_FILE_CHANGED" => HarError::NotSent,
        "BLOCKED_BY_ORB" | "BLOCKED_BY_RESPONSE" | "HTTP_RESPONSE_CODE_FAILURE" => {
            HarError::AfterResponse
        }
        "ABORTED" | "NS_BINDING_ABORTED" => HarError::Cancelled,
        // our own exports
        "pending" => HarError::Outcome(Outcome::Pending),
        "unknown" => HarError::Outcome(Outcome::Unknown),
        name if name.starts_with("BLOCKED_BY_RESPONSE") => HarError::AfterResponse,
        _ => HarError::Outcome(Outcome::Failed(
            failure(error).unwrap_or(Failure::UnknownKind),
        )),
    }
}

fn chromium_name(error: &str) -> &str {
    let name = error.trim();
    name.trim_start_matches("net::").trim_start_matches("ERR_")
}

/// The kind of failure of an error name of Chromium; `None` for other names.
pub(crate) fn failure(error: &str) -> Option<Failure> {
    use Failure as F;
    Some(match chromium_name(error) {
        "NAME_NOT_RESOLVED" | "NAME_RESOLUTION_FAILED" => F::Lookup,
        "CONNECTION_REFUSED" => F::Refused,
        "CONNECTION_TIMED_OUT" => F::ConnectTimeout,
        "ADDRESS_UNREACHABLE" | "INTERNET_DISCONNECTED" | "NETWORK_CHANGED" => F::Unreachable,
        "PROXY_CONNECTION_FAILED" | "TUNNEL_CONNECTION_FAILED" => F::Proxy,
        "CERT_COMMON_NAME_INVALID" => F::CertificateName,
        "CERT_DATE_INVALID" => F::CertificateExpired,
        "CERT_AUTHORITY_INVALID" => F::CertificateUnknown,
        "SSL_VERSION_OR_CIPHER_MISMATCH" | "SSL_OBSOLETE_VERSION" => F::TlsVersion,
        "SSL_PROTOCOL_ERROR" => F::Tls,
        "CONNECTION_RESET" => F::Reset,
        "CONNECTION_CLOSED" | "EMPTY_RESPONSE" => F::Closed,
        "INCOMPLETE_CHUNKED_ENCODING" | "CONTENT_LENGTH_MISMATCH" => F::Truncated,
        "TIMED_OUT" => F::Timeout,
        "INVALID_HTTP_RESPONSE" | "INVALID_RESPONSE" => F::Malformed,
        "HTTP2_SERVER_REFUSED_STREAM" => F::Refusal,
        "HTTP2_PROTOCOL_ERROR" | "QUIC_PROTOCOL_ERROR" => F::StreamReset,
        "ABORTED" => F::ClientClosed,
        name if name.starts_with("CERT_") => F::Certificate,
        // one of our own exports
        name => return name.parse().ok(),
    })
}

/// Whether the value of a `Connection` field announces the close.
pub(crate) fn closes(value: &str) -> bool {
    value
        .split(',')
        .any(|word| word.trim().eq_ignore_ascii_case("close"))
}

/// Adds the terms of a `Keep-Alive` field.
pub(crate) fn add_terms(terms: &mut KeepAliveTerms, value: &str) {
    for parameter in value.split(',') {
        match parameter.trim().split_once('=') {
            Some(("timeout", number)) => terms.timeout_s = number.parse().ok(),
            Some(("max", number)) => terms.max = number.parse().ok(),
            _ => {}
        }
    }
}
