//! The end of a connection at the transport layer, and the requests that the server had received
//! before it.
//!
//! Must not decide what that means: [`UnansweredRequest`] does, for all producers.

use intact_ledger::{Exchange, Failure, Nanos, UnansweredRequest};
use std::sync::Arc;

/// The facts about the transport when exchanges end without a response.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TransportEnd {
    /// Why the connection ended; `None` for an orderly end.
    pub(super) failure: Option<Failure>,
    /// When its exchanges end.
    pub(super) at: Nanos,
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
    /// The failure of an exchange in flight, and its detail. `begun`: a byte of the response has
    /// arrived. `sent_before`: bytes sent before the request. Returns `None` if an orderly end cut
    /// the response.
    pub(super) fn kind(
        &self,
        exchange: &mut Exchange,
        begun: bool,
        is_reused: bool,
        sent_before: u64,
    ) -> Option<Failure> {
        match self.failure {
            Some(Failure::Reset) | None if !begun => {
                let by_reset = self.failure.is_some();
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
            // the kernel's count lacks what a RST acknowledges
            is_acknowledged: (self.acknowledged)
                .map(|bytes| bytes > sent_before)
                .filter(|is_acknowledged| *is_acknowledged || !by_reset),
            round_trip: self.round_trip,
        };
        request.failure()
    }
}
