//! The stopwatch of one exchange: when its parts were sent and received, and the resulting spans.
//!
//! All HTTP versions and all clients of this product use it, so each phase has one meaning.

use intact_ledger::{Exchange, Failure, Nanos, Outcome, Reuse, Setup, Span};

/// When bytes arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    /// When the kernel received them, or when they were read if it records no timestamp.
    pub(crate) at: Nanos,
    /// When they were read.
    pub(crate) read: Nanos,
    /// Whether `at` is the kernel's.
    pub(crate) stamped: bool,
}

impl Arrival {
    /// The arrival of bytes that were `read` then, and that the kernel received `at`, if it
    /// recorded that.
    #[inline]
    pub(crate) fn new(at: Option<Nanos>, read: Nanos) -> Arrival {
        Arrival {
            at: at.unwrap_or(read),
            read,
            stamped: at.is_some(),
        }
    }
}

/// Records the times of one exchange.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stopwatch {
    begun: bool,
    head_at: Option<Nanos>,
    body_at: Option<Nanos>,
}

impl Stopwatch {
    /// Starts an exchange that is due at `exchange.at` and begins after `blocked`, at the position
    /// `exchange.ordinal` on its connection. `setup` is the setup of the new connection that it
    /// waits for.
    #[inline]
    pub(crate) fn start(exchange: &mut Exchange, setup: Option<&Setup>) -> Stopwatch {
        let at = exchange.at;
        let waited = setup.is_some_and(|setup| exchange.spans.wait_for_setup(setup, at));
        exchange.reuse = Reuse::of(waited, exchange.ordinal);
        let begun = exchange.spans.blocked.map_or(at, |blocked| blocked.end);
        // the request leaves in the moment that the setup ends
        let from = setup
            .and_then(|setup| setup.ssl.or(setup.connect))
            .map_or(begun, |span| span.end.max(begun));
        exchange.spans.send = Some(Span::new(from, from));
        Stopwatch::default()
    }

    /// Whether the first byte of the response has arrived.
    #[inline]
    pub(crate) fn begun(&self) -> bool {
        self.begun
    }

    /// Records that the request is with the kernel.
    #[inline]
    pub(crate) fn sent(exchange: &mut Exchange, at: Nanos) {
        if let Some(send) = &mut exchange.spans.send {
            send.end = send.end.max(at);
        }
    }

    /// Records that bytes of the response arrived.
    #[inline]
    pub(crate) fn hear(&mut self, exchange: &mut Exchange, arrival: Arrival) {
        if self.begun {
            return;
        }
        self.begun = true;
        let spans = &mut exchange.spans;
        if let Some(send) = &mut spans.send {
            // on loopback the response may arrive before our send returns
            send.end = send.end.min(arrival.at).max(send.start);
            spans.wait = Some(Span::new(send.end, arrival.at));
        }
    }

    /// Records that the final header section is complete.
    #[inline]
    pub(crate) fn head(&mut self, arrival: Arrival) {
        self.head_at = Some(arrival.at);
    }

    /// Records bytes of the body.
    #[inline]
    pub(crate) fn body(&mut self, arrival: Arrival) {
        if self.body_at.is_none() {
            self.body_at = Some(arrival.at);
        }
    }

    /// Records that the response is complete, and computes the spans.
    #[inline]
    pub(crate) fn complete(&self, exchange: &mut Exchange, arrival: Arrival) {
        let spans = &mut exchange.spans;
        let first = spans.wait.map_or(arrival.at, |wait| wait.end);
        let end = arrival.at.max(first);
        match (self.head_at, self.body_at) {
            (Some(head), Some(body)) if body > head => {
                // the wait lasts to the end of a header section that arrived in pieces
                if let Some(wait) = &mut spans.wait {
                    wait.end = head;
                }
                spans.headers_to_body = Some(Span::new(head, body));
                spans.receive = Some(Span::new(body, end));
            }
            _ => spans.receive = Some(Span::new(first, end)),
        }
        exchange.end = end;
        if arrival.stamped {
            exchange.client_delay = Some(Span::new(end, arrival.read));
        }
    }

    /// Records that the exchange failed.
    pub(crate) fn fail(exchange: &mut Exchange, kind: Failure, at: Nanos) {
        exchange.outcome = Outcome::Failed(kind);
        exchange.end = at.max(exchange.at);
    }
}
