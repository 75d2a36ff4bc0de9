//! Messages of clients about failed requests: Go, Java and Python. One table, because the words of
//! a system call are the same in all of them. Must not decide whether a request failed.

use intact_ledger::Failure;

use Failure as F;

/// Words in a message, in the order in which they are tried: what is specific comes first.
const WORDS: [(&str, Failure); 38] = [
    ("no such host", F::Lookup),
    ("lookup ", F::Lookup),
    ("UnknownHost", F::Lookup),
    ("Name or service not known", F::Lookup),
    ("NameResolutionError", F::Lookup),
    ("gaierror", F::Lookup),
    ("connection refused", F::Refused),
    ("Connection refused", F::Refused),
    ("HttpHostConnectException", F::Refused),
    ("Connect call failed", F::Refused),
    ("ConnectTimeout", F::ConnectTimeout),
    ("connection timed out", F::ConnectTimeout),
    ("Connection timed out", F::ConnectTimeout),
    ("connect timed out", F::ConnectTimeout),
    ("cannot assign requested address", F::NoFreePort),
    ("Cannot assign requested address", F::NoFreePort),
    ("too many open files", F::NoFreeFd),
    ("Too many open files", F::NoFreeFd),
    ("No route to host", F::Unreachable),
    ("NoRouteToHost", F::Unreachable),
    ("unreachable", F::Unreachable),
    ("x509:", F::Certificate),
    ("CertificateException", F::Certificate),
    ("CERTIFICATE_VERIFY_FAILED", F::Certificate),
    ("PKIX path", F::Certificate),
    ("tls:", F::Tls),
    ("SSLHandshakeException", F::Tls),
    ("SSLException", F::Tls),
    ("SSLError", F::Tls),
    ("connection reset", F::Reset),
    ("Connection reset", F::Reset),
    ("unexpected EOF", F::Truncated),
    ("Premature end", F::Truncated),
    ("NoHttpResponse", F::Closed),
    ("Premature close", F::Closed),
    ("Remote end closed", F::Closed),
    ("EOF", F::Closed),
    ("closed", F::Closed),
];

/// Words of a limit of time, after which the kind depends on the phase.
const TIMEOUTS: [&str; 6] = [
    "Client.Timeout",
    "deadline exceeded",
    "SocketTimeout",
    "Read timed out",
    "Request timeout",
    "TimeoutException",
];

/// The failure that a message describes; an unknown kind if it has no known words.
pub(crate) fn in_words(message: &str) -> Failure {
    if message.contains("dial tcp") && message.contains("timeout") {
        return F::ConnectTimeout;
    }
    let known = WORDS.iter().find(|(words, _)| message.contains(words));
    let is_timeout = || TIMEOUTS.iter().any(|words| message.contains(words));
    match known {
        Some((_, kind)) => *kind,
        None if is_timeout() => F::Timeout,
        None => F::UnknownKind,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_each_language_have_their_kind() {
        for (message, kind) in [
            (
                "Get \"http://a\": dial tcp 127.0.0.1:1: connect: connection refused",
                F::Refused,
            ),
            ("dial tcp 192.0.2.1:80: i/o timeout", F::ConnectTimeout),
            (
                "Get \"http://a\": context deadline exceeded (Client.Timeout exceeded while awaiting headers)",
                F::Timeout,
            ),
            ("Get \"http://a\": EOF", F::Closed),
            (
                "Non HTTP response code: org.apache.http.NoHttpResponseException",
                F::Closed,
            ),
            (
                "Non HTTP response code: java.net.SocketTimeoutException",
                F::Timeout,
            ),
            (
                "i.n.c.ConnectTimeoutException: connection timed out",
                F::ConnectTimeout,
            ),
            (
                "j.u.c.TimeoutException: Request timeout to a after 60000 ms",
                F::Timeout,
            ),
            (
                "HTTPSConnectionPool: Max retries exceeded (SSLError)",
                F::Tls,
            ),
            ("anything else", F::UnknownKind),
        ] {
            assert_eq!(in_words(message), kind, "{message}");
        }
    }
}
