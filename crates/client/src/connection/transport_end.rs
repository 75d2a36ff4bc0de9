//! The end of a connection as its transport shows it: which requests the server had received before
//! it.
//!
//! Must not decide what that means: [`UnansweredRequest`] does, for all producers.

use intact_ledger::{Exchange, Failure, Nanos, UnansweredRequest};
use std::sync::Arc;

/// The facts about the transport when exchanges end without a response.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TransportEnd {
    /// When the end was read.
    pub(super) read_at: Nanos,
    /// Bytes that the kernel accepted from us.
    pub(super) sent: u64,
    /// Bytes that the peer's TCP acknowledged, if that is known.
    pub(super) acknowledged: Option<u64>,
    /// Duration of the transport handshake in nanoseconds.
    pub(super) round_trip: Option<u64>,
}

impl TransportEnd {
    /// The failure of an exchange in flight, with its detail; `None` if the connection ended
    /// within its response. `failure` ended the connection, if it was no orderly end. `begun`: a
    /// byte of the response has arrived. The request followed `sent_before` bytes.
    pub(super) fn kind(
        &self,
        failure: Option<Failure>,
        exchange: &mut Exchange,
        begun: bool,
        is_reused: bool,
        sent_before: u64,
    ) -> Option<Failure> {
        match failure {
            Some(Failure::Reset) | None if !begun => {
                let by_reset = failure.is_some();
                let (kind, detail) = self.unanswered(exchange, is_reused, by_reset, sent_before);
                exchange.detail = detail.map(Arc::from);
                Some(kind)
            }
            failure => failure,
        }
    }

    /// The failure and the detail of an exchange without any byte of a response.
    fn unanswered(
        &self,
        exchange: &Exchange,
        is_reused: bool,
        by_reset: bool,
        sent_before: u64,
    ) -> (Failure, Option<&'static str>) {
        let sent_at = exchange.spans.send.map_or(exchange.at, |send| send.end);
        // an end that was read earlier came earlier, as did an end before the kernel accepted a
        // byte of the request
        let is_earlier = self.read_at <= sent_at || self.sent <= sent_before;
        let request = UnansweredRequest {
            is_reused,
            by_reset,
            end_after: (!is_earlier).then(|| self.read_at.since(sent_at)),
            is_acknowledged: self.acknowledged.map(|bytes| bytes > sent_before),
            round_trip: self.round_trip,
        };
        request.failure()
    }
}
