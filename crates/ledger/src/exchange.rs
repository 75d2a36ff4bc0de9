//! Exchanges: one request and its response, with a span for each phase.

use crate::certainty::Certainty;
use crate::connection::{ConnectionId, KeepAliveTerms, Setup, Side};
use crate::failure::{Failure, Outcome};
use crate::fingerprint::Fingerprint;
use crate::grpc::GrpcCall;
use crate::origin::{Method, Target};
use crate::reuse::Reuse;
use crate::time::{Nanos, Span};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

kinds! {
    json
    /// The disjoint phases of an exchange, in the order in which they happen.
    pub enum Phase, id {
        /// Waiting for a name lookup.
        Dns = "dns",
        /// Waiting for the transport handshake.
        Connect = "connect",
        /// Waiting for the TLS handshake.
        Ssl = "ssl",
        /// Waiting for anything else before the request could be sent.
        Blocked = "blocked",
        /// Sending the request.
        Send = "send",
        /// From the last byte sent to the first byte of the response.
        Wait = "wait",
        /// From the end of the response's header section to the first byte of its body, if they
        /// arrived separately.
        HeadersToBody = "headers_to_body",
        /// The rest of the response.
        Receive = "receive",
    }
}

impl Phase {
    /// Whether it is a phase of a connection's setup.
    pub fn is_setup(self) -> bool {
        matches!(self, Phase::Dns | Phase::Connect | Phase::Ssl)
    }
}

/// The spans of one exchange. The setup spans are the parts of the connection's setup that it
/// waited for. So all spans are disjoint, and those of an exchange that was never idle add up to
/// its latency.
#[serde_with::skip_serializing_none]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Spans {
    /// See [`Phase::Dns`].
    pub dns: Option<Span>,
    /// See [`Phase::Connect`].
    pub connect: Option<Span>,
    /// See [`Phase::Ssl`].
    pub ssl: Option<Span>,
    /// See [`Phase::Blocked`].
    pub blocked: Option<Span>,
    /// See [`Phase::Send`].
    pub send: Option<Span>,
    /// See [`Phase::Wait`].
    pub wait: Option<Span>,
    /// See [`Phase::HeadersToBody`].
    pub headers_to_body: Option<Span>,
    /// See [`Phase::Receive`].
    pub receive: Option<Span>,
}

impl Spans {
    /// The span of one phase.
    #[inline]
    pub fn of(&self, phase: Phase) -> Option<Span> {
        match phase {
            Phase::Dns => self.dns,
            Phase::Connect => self.connect,
            Phase::Ssl => self.ssl,
            Phase::Blocked => self.blocked,
            Phase::Send => self.send,
            Phase::Wait => self.wait,
            Phase::HeadersToBody => self.headers_to_body,
            Phase::Receive => self.receive,
        }
    }

    /// The spans of the phases that are known.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Span> {
        let all = [
            &mut self.dns,
            &mut self.connect,
            &mut self.ssl,
            &mut self.blocked,
            &mut self.send,
            &mut self.wait,
            &mut self.headers_to_body,
            &mut self.receive,
        ];
        all.into_iter().flatten()
    }

    /// Limits all spans to `from` to `to`, for captures whose times decrease.
    pub fn keep_within(&mut self, from: Nanos, to: Nanos) {
        for span in self.iter_mut() {
            *span = span.within(from, to);
        }
    }

    /// Copies the parts of the connection's setup that an exchange that began `at` waited for.
    /// Returns whether it waited for any, that is, whether it is *fresh*.
    pub fn wait_for_setup(&mut self, setup: &Setup, at: Nanos) -> bool {
        let clip = |span: Option<Span>| span.and_then(|span| span.clip_from(at));
        self.dns = clip(setup.dns);
        self.connect = clip(setup.connect);
        self.ssl = clip(setup.ssl);
        self.dns.is_some() || self.connect.is_some() || self.ssl.is_some()
    }

    /// Time spent waiting for the setup, in nanoseconds.
    #[inline]
    pub fn setup_nanos(&self) -> u64 {
        [self.dns, self.connect, self.ssl]
            .iter()
            .flatten()
            .map(|span| span.nanos())
            .fold(0, u64::saturating_add)
    }
}

/// Bytes of one exchange.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExchangeBytes {
    /// Request header section as sent (in HTTP/2 the compressed header block with its frame
    /// headers).
    pub request_head: u64,
    /// Request body as sent.
    pub request_body: u64,
    /// Response header section as received.
    pub head: u64,
    /// Response body as received, including framing (chunk sizes, frame headers).
    pub body: u64,
    /// Response body without framing; absent if it was not decoded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decoded: Option<u64>,
}

impl ExchangeBytes {
    /// Bytes of the request's header section: none of one that failed before it was sent; unknown
    /// where there are none of another.
    pub fn request_head_known(&self, outcome: Outcome) -> Option<u64> {
        let is_unsent = outcome.failure().is_some_and(Failure::precedes_the_request);
        (is_unsent || self.request_head > 0).then_some(self.request_head)
    }

    /// Bytes of the response's header section: unknown where there are none of one with a status.
    pub fn head_known(&self, status: Option<u16>) -> Option<u64> {
        (status.is_none() || self.head > 0).then_some(self.head)
    }
}

/// The announced length of the response body, and the part that the client read.
#[serde_with::skip_serializing_none]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Body {
    /// `Content-Length`, if there was one.
    pub announced: Option<u64>,
    /// Bytes that the client read; absent if that is unknown.
    pub read: Option<u64>,
    /// When its last bytes came, if the client ended the response before it was complete; absent
    /// if that was not observed.
    pub left_after: Option<Nanos>,
}

/// Parts of an exchange that tie a connection to a user. Never written: hashes in memory, for the
/// rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The scheme of `Authorization` (`Bearer`, `NTLM`, ...).
    pub scheme: Option<Arc<str>>,
    /// Salted hash of what names the user in the credential; absent where nothing does.
    pub credential: Option<u64>,
    /// Salted hash of the `Cookie` field.
    pub cookie: Option<u64>,
}

/// One request and its response.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Exchange {
    /// Unique within the run.
    pub id: u64,
    /// The connection that carried it; absent if there was none, or if it is unknown.
    pub connection: Option<ConnectionId>,
    /// Index into the run's variants.
    pub variant: Option<u32>,
    /// The round; 0 is the preflight.
    pub round: Option<u32>,
    /// Whether it is excluded from steady-state figures: the first exchange on each connection
    /// that was opened at a round's start.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub warmup: bool,
    /// The scenario's name for it.
    pub tag: Option<Arc<str>>,
    /// When it was due: before the setup, if it waited for one.
    pub at: Nanos,
    /// When it ended: the arrival of the last byte according to the kernel's timestamp if there is
    /// one, or the failure.
    pub end: Nanos,
    /// Its position on the connection, from 1.
    pub ordinal: Option<u32>,
    /// Whether it waited for the setup of its connection; absent if unknown.
    pub reuse: Option<Reuse>,
    /// HTTP/2 or HTTP/3 stream.
    pub stream: Option<u64>,
    /// The method; absent if it is not visible.
    pub method: Option<Method>,
    /// The path; absent if it is not visible.
    pub target: Option<Target>,
    /// Identifies a retry.
    pub fingerprint: Option<Fingerprint>,
    /// The final status.
    pub status: Option<u16>,
    /// The call of gRPC that it carries; absent if it is none, or if that is not visible.
    pub grpc: Option<GrpcCall>,
    /// The phases.
    #[serde(default)]
    pub spans: Spans,
    /// From the kernel's receive timestamp of the last byte to our read: the client delay.
    pub client_delay: Option<Span>,
    /// In an open loop: from the time when the request was due and a connection was free to its
    /// start. Before this span it waited for a connection. `at` is the scheduled time.
    pub scheduling_error: Option<Span>,
    /// In an open loop: the most, in nanoseconds, that the client's lateness may have added to the
    /// latency: its own, and that of requests shortly before, which were sent with it. In memory
    /// only.
    #[serde(skip)]
    pub late_at_most: Option<u64>,
    /// Retransmitted segments: by the client's kernel before the response; in a capture, by both
    /// sides. Absent if the kernel was not queried, as for fast responses.
    pub retransmissions: Option<u32>,
    /// Number of late acknowledgements that the sender of the next data waited for, in either
    /// direction; absent if packets were not observed.
    pub delayed_acks: Option<u32>,
    /// From the sending of the request to its acknowledgement by the peer's TCP, in nanoseconds, by
    /// the client's kernel. Absent if the kernel was not queried, as for fast responses, or if more
    /// than one segment was sent meanwhile.
    pub acknowledged_after: Option<u64>,
    /// Bytes on the wire.
    #[serde(default)]
    pub bytes: ExchangeBytes,
    /// The response body.
    #[serde(default)]
    pub body: Body,
    /// The terms that this response announced.
    #[serde(default, skip_serializing_if = "KeepAliveTerms::is_empty")]
    pub terms: KeepAliveTerms,
    /// The side that announced in this exchange that the connection will close.
    pub close_sent_by: Option<Side>,
    /// When the server announced the end of the connection (`Connection: close`, or a GOAWAY
    /// without an error). Present only if this exchange was cut or refused later.
    pub close_announced_at: Option<Nanos>,
    /// Complete, or the kind of failure.
    pub outcome: Outcome,
    /// The message of the library or the kernel for the failure, redacted.
    pub detail: Option<Arc<str>>,
    /// The exchange that this one repeats.
    pub retry_of: Option<u64>,
    /// Number of processes that have its connection open, since several used it at the same time; 0
    /// where that was not observed.
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub sharers: u32,
    /// For rules; in memory only.
    #[serde(skip)]
    pub identity: Identity,
    /// Measured or inferred.
    #[serde(default, skip_serializing_if = "Certainty::is_exact")]
    pub certainty: Certainty,
}

impl Exchange {
    /// An exchange of which only the id and the due time are known.
    pub fn new(id: u64, at: Nanos) -> Exchange {
        Exchange {
            id,
            at,
            end: at,
            ..Exchange::default()
        }
    }

    /// Nanoseconds from the due time to the end, including the setup.
    #[inline]
    pub fn latency(&self) -> u64 {
        self.end.since(self.at)
    }

    /// The same; absent where the recording shows neither a duration nor a phase.
    pub fn measured_latency(&self) -> Option<u64> {
        let has_phase = || {
            Phase::ALL
                .into_iter()
                .any(|one| self.spans.of(one).is_some())
        };
        let is_timed = self.end != self.at || has_phase();
        is_timed.then(|| self.latency())
    }

    /// When it took its connection. All but the first request of a connection may have waited in
    /// the client for it, or for a stream.
    pub fn taken(&self) -> Nanos {
        let waited = self.spans.blocked;
        let waited = waited.filter(|_| self.ordinal != Some(1));
        waited.map_or(self.at, |span| span.end)
    }

    /// Whether the client ended a streamed response: its header section and a part of its body had
    /// come, and no length was announced. What it wanted of the stream may have been complete.
    pub fn is_left_stream(&self) -> bool {
        let has_begun = self.status.is_some() && self.bytes.body > 0;
        has_begun
            && self.body.announced.is_none()
            && self.outcome == Outcome::Failed(Failure::ClientClosed)
    }

    /// Whether the client had stopped to read the response long before it closed the connection.
    /// The exchange ended when the last bytes came.
    pub fn is_unread(&self) -> bool {
        self.outcome == Outcome::Failed(Failure::ClientClosed)
            && self.status.is_some()
            && self.body.left_after == Some(self.end)
    }

    /// Whether the client closed the connection as soon as the response had begun: it dropped the
    /// rest. A log does not show when a response began.
    pub fn is_dropped(&self) -> bool {
        let begun = self.spans.wait.filter(|_| self.status.is_some());
        self.outcome == Outcome::Failed(Failure::ClientClosed)
            && begun.is_some_and(|wait| self.end > wait.end && self.end.since(wait.end) < AT_ONCE)
    }

    /// Nanoseconds without the setup that it waited for.
    #[inline]
    pub fn latency_without_setup(&self) -> u64 {
        self.latency().saturating_sub(self.spans.setup_nanos())
    }
}

/// Nanoseconds from the begin of a response within which a client that closes the connection did
/// not wait for the rest: no limit of time is as short.
const AT_ONCE: u64 = 200_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exchange_is_fresh_if_it_waited_for_any_part_of_the_setup() {
        let setup = Setup {
            dns: None,
            connect: Some(Span::new(Nanos(0), Nanos(30))),
            ssl: Some(Span::new(Nanos(30), Nanos(90))),
        };
        let mut spans = Spans::default();
        assert!(spans.wait_for_setup(&setup, Nanos(40)));
        assert_eq!(spans.connect, None);
        assert_eq!(spans.setup_nanos(), 50);
        assert!(!Spans::default().wait_for_setup(&setup, Nanos(90)));
    }

    #[test]
    fn latency_is_computed_with_and_without_setup() {
        let mut one = Exchange::new(1, Nanos(10));
        one.spans.connect = Some(Span::new(Nanos(10), Nanos(40)));
        one.end = Nanos(70);
        assert_eq!((one.latency(), one.latency_without_setup()), (60, 30));
    }

    #[test]
    fn a_response_is_dropped_by_a_close_right_after_it_began() {
        let mut one = Exchange::new(1, Nanos(0));
        one.outcome = Outcome::Failed(Failure::ClientClosed);
        one.spans.wait = Some(Span::new(Nanos(0), Nanos(1_000_000)));
        one.end = Nanos(3_000_000);
        assert!(!one.is_dropped(), "no response");
        one.status = Some(200);
        assert!(one.is_dropped());
        one.end = Nanos(1_000_000_000);
        assert!(!one.is_dropped(), "it waited for the rest");
        one.end = Nanos(1_000_000);
        assert!(!one.is_dropped(), "a log has one time");
    }

    #[test]
    fn a_stream_is_left_by_its_client_after_a_part_of_a_body_without_a_length() {
        let mut left = Exchange::new(1, Nanos(0));
        left.outcome = Outcome::Failed(Failure::ClientClosed);
        assert!(!left.is_left_stream(), "no response");
        left.status = Some(200);
        assert!(!left.is_left_stream(), "no body");
        left.bytes.body = 7;
        assert!(left.is_left_stream());
        let mut download = left.clone();
        download.body.announced = Some(9);
        assert!(!download.is_left_stream());
        left.outcome = Outcome::Failed(Failure::Truncated);
        assert!(!left.is_left_stream(), "the server ended it");
    }

    #[test]
    fn an_identity_is_never_written() {
        let mut one = Exchange::new(1, Nanos(0));
        one.identity.credential = Some(42);
        let json = serde_json::to_string(&one).unwrap();
        assert!(!json.contains("42"), "{json}");
    }
}
