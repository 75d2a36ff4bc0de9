//! The outcomes of dials and exchanges: a network failure is data, counted by kind.

use serde::{Deserialize, Serialize};
use std::fmt;

/// How an exchange ended.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// A complete response of any status.
    #[default]
    Ok,
    /// No complete response, for this reason.
    Failed(Failure),
}

impl Outcome {
    /// Whether a complete response came.
    pub fn is_ok(self) -> bool {
        self == Outcome::Ok
    }

    /// The kind of failure, if it failed.
    pub fn failure(self) -> Option<Failure> {
        match self {
            Outcome::Ok => None,
            Outcome::Failed(kind) => Some(kind),
        }
    }
}

/// A step of setting up a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SetupPhase {
    /// Name lookup.
    Dns,
    /// Transport handshake (TCP; for QUIC all of it), a proxy's CONNECT included.
    Connect,
    /// TLS handshake.
    Ssl,
}

macro_rules! failures {
    ($($variant:ident $id:literal $words:literal,)*) => {
        /// The kinds of failure. Their ids are stable: they are JSON keys and `failed.KIND` metrics.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(rename_all = "kebab-case")]
        #[non_exhaustive]
        pub enum Failure {
            $(#[doc = concat!("`", $id, "`: ", $words, ".")] #[serde(rename = $id)] $variant,)*
        }

        impl Failure {
            /// Every kind, in the order of the path that a request takes.
            pub const ALL: &[Failure] = &[$(Failure::$variant,)*];

            /// The stable kebab-case id.
            pub fn id(self) -> &'static str {
                match self { $(Failure::$variant => $id,)* }
            }

            /// What happened, in words for a person.
            pub fn words(self) -> &'static str {
                match self { $(Failure::$variant => $words,)* }
            }
        }
    };
}

failures! {
    Lookup "lookup" "the name could not be resolved",
    Refused "refused" "the connection was refused: nothing listens there",
    Unreachable "unreachable" "no route to the host or network",
    NoFreePort "no-free-port" "no free local port (EADDRNOTAVAIL): too many connections in TIME_WAIT",
    NoFreeFd "no-free-fd" "the process ran out of file descriptors",
    ConnectTimeout "connect-timeout" "the connection was not established in time",
    ConnectReset "connect-reset" "the connection was reset while it was set up",
    Proxy "proxy" "the proxy refused the tunnel",
    NotTls "not-tls" "the peer does not speak TLS on this port",
    TlsVersion "tls-version" "no TLS version or cipher in common",
    TlsAlpn "tls-alpn" "the server did not choose the HTTP version that was asked for",
    CertificateName "certificate-name" "the certificate is for another name",
    CertificateExpired "certificate-expired" "the certificate has expired or is not valid yet",
    CertificateUnknown "certificate-unknown" "the certificate's issuer is not trusted",
    Certificate "certificate" "the certificate is not acceptable",
    TlsAlert "tls-alert" "the peer ended the TLS handshake with an alert",
    Tls "tls" "the TLS stream is broken",
    Stale "stale" "the peer closed this reused connection before the first byte of the response",
    Closed "closed" "the connection was closed after the request was sent, before the first byte of the response",
    Reset "reset" "the connection was reset during the response",
    Truncated "truncated" "the connection was closed in the middle of the response",
    Timeout "timeout" "no complete response in time",
    NotPlain "not-plain" "the server on this port speaks TLS, not plain HTTP: use https://",
    Malformed "malformed" "the response is not HTTP",
    TooLarge "too-large" "the header section of the response is larger than the limit",
    Refusal "refused-stream" "the server refused the stream (HTTP/2 REFUSED_STREAM or GOAWAY)",
    StreamReset "stream-reset" "the server reset the stream",
    UnexpectedStatus "unexpected-status" "a complete response, but not one that --expect allows",
    ClientClosed "client-closed" "the client closed the connection or reset the stream before the response was complete",
    Aborted "aborted" "intact cut it off when the run was stopped",
}

/// Nanoseconds by which the end of a connection may be noticed late, in addition to its way to the observer.
const NOTICED_LATE: u64 = 1_000_000;

impl Failure {
    /// Whether it is a failure of the setup: no byte of the request was sent.
    pub fn precedes_the_request(self) -> bool {
        self < Failure::Stale
    }

    /// The kind of a request whose connection the peer ended, `by_reset` or not, before the first byte of the response.
    ///
    /// It is `stale` only where the peer can have closed a reused connection before the request reached it (RFC 9112 section
    /// 9.5): the end came `after_request` nanoseconds after the request was sent, at most a `round_trip` of nanoseconds later.
    /// Otherwise the peer had received the request, and may have executed it.
    pub fn without_response(
        is_reused: bool,
        by_reset: bool,
        after_request: u64,
        round_trip: Option<u64>,
    ) -> Failure {
        let crossing = round_trip.unwrap_or(0).saturating_add(NOTICED_LATE);
        if is_reused && after_request <= crossing {
            Failure::Stale
        } else if by_reset {
            Failure::Reset
        } else {
            Failure::Closed
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_close_that_cannot_have_preceded_the_request_is_not_stale() {
        const MS: u64 = 1_000_000;
        let kind = |reused, reset, after| {
            Failure::without_response(reused, reset, after * MS, Some(30 * MS))
        };
        assert_eq!(kind(true, true, 0), Failure::Stale);
        assert_eq!(kind(true, false, 31), Failure::Stale, "it crossed the FIN");
        assert_eq!(kind(true, false, 32), Failure::Closed);
        assert_eq!(kind(true, true, 32), Failure::Reset);
        assert_eq!(kind(false, false, 0), Failure::Closed);
        let without = Failure::without_response(true, false, 2 * MS, None);
        assert_eq!(without, Failure::Closed, "an unknown path proves nothing");
    }

    #[test]
    fn a_failure_reads_back_from_its_id() {
        for &kind in Failure::ALL {
            let json = serde_json::to_string(&Outcome::Failed(kind)).unwrap();
            assert_eq!(json, format!("{{\"failed\":\"{}\"}}", kind.id()));
            assert_eq!(
                serde_json::from_str::<Outcome>(&json).unwrap(),
                Outcome::Failed(kind)
            );
        }
    }
}
