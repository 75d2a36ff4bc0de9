//! The outcomes of dials and exchanges: a network failure is data, counted by kind.

use serde::{Deserialize, Serialize};

/// How an exchange ended.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// A complete response with any status; to a call of gRPC, with the `grpc-status` 0.
    #[default]
    Ok,
    /// No complete response, for this reason.
    Failed(Failure),
    /// No complete response when the recording ended: the request was still waiting.
    Pending,
    /// The end was not observed: it may be a complete response or a failure.
    Unknown,
}

impl Outcome {
    /// Whether the response is complete.
    pub fn is_ok(self) -> bool {
        self == Outcome::Ok
    }

    /// Its stable id: `ok`, the kind of failure, `pending` or `unknown`.
    pub fn id(self) -> &'static str {
        match self {
            Outcome::Ok => "ok",
            Outcome::Failed(kind) => kind.id(),
            Outcome::Pending => "pending",
            Outcome::Unknown => "unknown",
        }
    }

    /// Whether the recording does not show how the exchange ended.
    pub fn is_undecided(self) -> bool {
        matches!(self, Outcome::Pending | Outcome::Unknown)
    }

    /// Whether the response is complete, or may be complete by what the recording shows.
    pub fn may_be_ok(self) -> bool {
        matches!(self, Outcome::Ok | Outcome::Unknown)
    }

    /// Whether the whole response came, whatever it says.
    pub fn is_whole(self) -> bool {
        match self {
            Outcome::Ok => true,
            Outcome::Failed(kind) => {
                matches!(
                    kind,
                    Failure::UnexpectedStatus | Failure::UnexpectedBody | Failure::GrpcStatus
                )
            }
            Outcome::Pending | Outcome::Unknown => false,
        }
    }

    /// Whether the server refused to process the request (RFC 9113 sections 6.8 and 8.7).
    pub fn is_refusal(self) -> bool {
        self == Outcome::Failed(Failure::Refusal)
    }

    /// The kind of failure, if it failed.
    pub fn failure(self) -> Option<Failure> {
        match self {
            Outcome::Failed(kind) => Some(kind),
            Outcome::Ok | Outcome::Pending | Outcome::Unknown => None,
        }
    }
}

/// A step of a connection's setup.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum SetupPhase {
    /// Name lookup.
    Dns,
    /// Transport handshake (TCP; for QUIC the whole setup), including a proxy's CONNECT.
    Connect,
    /// TLS handshake.
    Ssl,
}

kinds! {
    json
    /// The kinds of failure. Their ids are stable: they are JSON keys and `failed.KIND`
    /// metrics.
    #[non_exhaustive]
    pub enum Failure, id, words {
        Lookup = "lookup", "the name could not be resolved";
        Refused = "refused", "the connection was refused: nothing listens there";
        Unreachable = "unreachable", "no route to the host or network";
        NoFreePort = "no-free-port", "no free local port (EADDRNOTAVAIL): too many connections in TIME_WAIT";
        NoFreeFd = "no-free-fd", "the process ran out of file descriptors";
        ConnectTimeout = "connect-timeout", "the connection was not established in time";
        ConnectReset = "connect-reset", "the connection was reset while it was set up";
        Proxy = "proxy", "the proxy refused the tunnel";
        NotTls = "not-tls", "the peer does not speak TLS on this port";
        TlsVersion = "tls-version", "no TLS version or cipher in common";
        TlsAlpn = "tls-alpn", "the server did not choose the requested HTTP version";
        CertificateName = "certificate-name", "the certificate is for another name";
        CertificateExpired = "certificate-expired", "the certificate has expired or is not valid yet";
        CertificateUnknown = "certificate-unknown", "the certificate's issuer is not trusted";
        Certificate = "certificate", "the certificate is not acceptable";
        TlsAlert = "tls-alert", "the peer ended the TLS handshake with an alert";
        Tls = "tls", "the TLS stream is broken";
        Stale = "stale", "the peer closed this reused connection before the first byte of the response";
        Closed = "closed", "the connection was closed after the request was sent, before the first byte of the response";
        Reset = "reset", "the connection was reset before the response was complete";
        Truncated = "truncated", "the connection was closed in the middle of the response";
        Timeout = "timeout", "no complete response in time";
        NotPlain = "not-plain", "the server on this port speaks TLS, not plain HTTP: use https://";
        Malformed = "malformed", "the response is not HTTP";
        TooLarge = "too-large", "a part of the response is larger than the limit";
        NoProgress = "no-progress", "the peer sent bytes that are no part of a response";
        Refusal = "refused-stream", "the server refused the stream (HTTP/2 REFUSED_STREAM or GOAWAY)";
        StreamReset = "stream-reset", "the server reset the stream";
        UnexpectedStatus = "unexpected-status", "a complete response, but not one that --expect or a check allows";
        UnexpectedBody = "unexpected-body", "a complete response whose body does not have what a check asks for";
        GrpcStatus = "grpc-status", "a complete response of gRPC with a status other than OK, or without one";
        ClientClosed = "client-closed", "the client closed the connection or reset the stream before the response was complete";
        Aborted = "aborted", "intact cut it off when the run was stopped";
        UnknownKind = "unknown-kind", "the input reports a failure in words that are not known here";
    }
}

/// The delay with which an observer may notice the end of a connection, in addition to the time on
/// the path. Nanoseconds.
const NOTICED_LATE: u64 = 1_000_000;

impl Failure {
    /// Whether it is a failure of the setup: no byte of the request was sent.
    pub fn precedes_the_request(self) -> bool {
        self.setup_phase().is_some()
    }

    /// The step of the setup that this kind ends.
    pub fn setup_phase(self) -> Option<SetupPhase> {
        match self {
            Failure::Lookup => Some(SetupPhase::Dns),
            kind if kind < Failure::NotTls => Some(SetupPhase::Connect),
            kind if kind < Failure::Stale => Some(SetupPhase::Ssl),
            _ => None,
        }
    }
}

/// The detail of an exchange whose request the peer had received.
const RECEIVED: &str =
    "the server had received the request when it ended the connection: it may have executed it";

/// A request without a response, and the order of that request and the peer's end of the
/// connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnansweredRequest {
    /// An earlier exchange used the connection.
    pub is_reused: bool,
    /// The peer ended the connection by a RST.
    pub by_reset: bool,
    /// Nanoseconds from the first byte of the request to the end; absent if the end came first.
    pub end_after: Option<u64>,
    /// Whether the peer's TCP acknowledged a byte of the request, at the latest with its end;
    /// absent if that is unknown. A RST of a TCP that does not know the connection acknowledges
    /// nothing.
    pub is_acknowledged: Option<bool>,
    /// Duration of the transport handshake in nanoseconds; absent if it was not observed.
    pub round_trip: Option<u64>,
}

impl UnansweredRequest {
    /// How the exchange failed, and its detail.
    ///
    /// It is `stale` only on a reused connection that the peer can have closed before the request
    /// reached it (RFC 9112 section 9.5). Otherwise the peer had received the request, and may have
    /// executed it.
    pub fn failure(self) -> (Failure, Option<&'static str>) {
        let is_received = self.is_received();
        let kind = if self.is_reused && !is_received {
            Failure::Stale
        } else if self.by_reset {
            Failure::Reset
        } else {
            Failure::Closed
        };
        (kind, (self.is_reused && is_received).then_some(RECEIVED))
    }

    /// Whether the peer may have received a byte of the request before it ended the connection.
    fn is_received(self) -> bool {
        let Some(end_after) = self.end_after else {
            return false;
        };
        match self.is_acknowledged {
            Some(is_acknowledged) => is_acknowledged,
            // the end can have crossed the request
            None => end_after > self.round_trip.unwrap_or(0).saturating_add(NOTICED_LATE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn unanswered(by_reset: bool, after_ms: u64, is_acknowledged: Option<bool>) -> Failure {
        let request = UnansweredRequest {
            is_reused: true,
            by_reset,
            end_after: Some(after_ms * MS),
            is_acknowledged,
            round_trip: Some(30 * MS),
        };
        request.failure().0
    }

    #[test]
    fn a_close_that_cannot_have_preceded_the_request_is_not_stale() {
        assert_eq!(unanswered(true, 0, None), Failure::Stale);
        assert_eq!(
            unanswered(false, 31, None),
            Failure::Stale,
            "it crossed the FIN"
        );
        assert_eq!(unanswered(false, 32, None), Failure::Closed);
        assert_eq!(unanswered(true, 32, None), Failure::Reset);
        let fresh = UnansweredRequest {
            end_after: Some(0),
            ..UnansweredRequest::default()
        };
        assert_eq!(fresh.failure(), (Failure::Closed, None));
        let without = UnansweredRequest {
            is_reused: true,
            end_after: Some(2 * MS),
            ..fresh
        };
        let (kind, detail) = without.failure();
        assert_eq!(kind, Failure::Closed, "an unknown path proves nothing");
        assert_eq!(detail, Some(RECEIVED));
    }

    #[test]
    fn an_acknowledgement_decides_before_the_time() {
        // executed, and closed immediately
        assert_eq!(unanswered(false, 0, Some(true)), Failure::Closed);
        assert_eq!(unanswered(true, 0, Some(true)), Failure::Reset);
        // the request was lost on its way, and the server closed while idle
        assert_eq!(unanswered(false, 900, Some(false)), Failure::Stale);
        assert_eq!(unanswered(true, 1, Some(false)), Failure::Stale);
        // a NAT or a balancer had forgotten the connection
        assert_eq!(unanswered(true, 900, Some(false)), Failure::Stale);
        let after_the_end = UnansweredRequest {
            is_reused: true,
            // a server that lingers acknowledges what it never reads
            is_acknowledged: Some(true),
            ..UnansweredRequest::default()
        };
        assert_eq!(after_the_end.failure(), (Failure::Stale, None));
    }

    #[test]
    fn a_failure_reads_back_from_its_id() {
        for outcome in [Outcome::Pending, Outcome::Unknown] {
            let json = serde_json::to_string(&outcome).unwrap();
            assert_eq!(serde_json::from_str::<Outcome>(&json).unwrap(), outcome);
            assert!(!outcome.is_ok() && !outcome.is_whole() && outcome.failure().is_none());
        }
        for kind in Failure::ALL {
            let json = serde_json::to_string(&Outcome::Failed(kind)).unwrap();
            assert_eq!(json, format!("{{\"failed\":\"{}\"}}", kind.id()));
            assert_eq!(
                serde_json::from_str::<Outcome>(&json).unwrap(),
                Outcome::Failed(kind)
            );
        }
    }
}
