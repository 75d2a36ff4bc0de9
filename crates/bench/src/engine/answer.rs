//! The times of one answer, and the spans that follow from them; the same for every HTTP version.

use super::conversation::Arrival;
use crate::recipe::Expect;
use ledger::{Exchange, Failure, Nanos, Outcome, Setup, Span, Spans};

/// When the parts of an answer came.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Answer {
    /// Its first byte has come.
    pub(crate) begun: bool,
    /// When the final head was complete.
    head_at: Option<Nanos>,
    /// When the first byte of the body came.
    body_at: Option<Nanos>,
}

impl Answer {
    /// Begins an exchange that was wanted `at`: everything of the last one is forgotten. `setup` is what a new connection took.
    #[inline]
    pub(crate) fn start(exchange: &mut Exchange, at: Nanos, setup: Option<&Setup>) -> Answer {
        exchange.at = at;
        exchange.spans = Spans::default();
        exchange.fresh = Some(setup.is_some_and(|setup| exchange.spans.wait_for_setup(setup, at)));
        // the request leaves in the moment that the set-up ends
        let from = setup
            .and_then(|setup| setup.ssl.or(setup.connect))
            .map_or(at, |span| span.end.max(at));
        exchange.spans.send = Some(Span::new(from, from));
        exchange.status = None;
        exchange.own_queue = None;
        exchange.body = ledger::Body::default();
        exchange.terms = ledger::Terms::default();
        exchange.close_sent_by = None;
        exchange.outcome = Outcome::Ok;
        exchange.detail = None;
        Answer::default()
    }

    /// Notes that the request is with the kernel.
    #[inline]
    pub(crate) fn sent(exchange: &mut Exchange, at: Nanos) {
        if let Some(send) = &mut exchange.spans.send {
            send.end = send.end.max(at);
        }
    }

    /// Notes bytes of the answer, the first ones or later.
    #[inline]
    pub(crate) fn hear(&mut self, exchange: &mut Exchange, arrival: Arrival) {
        if self.begun {
            return;
        }
        self.begun = true;
        let spans = &mut exchange.spans;
        if let Some(send) = &mut spans.send {
            // on loopback the answer may be there before our send returns
            send.end = send.end.min(arrival.at).max(send.start);
            spans.wait = Some(Span::new(send.end, arrival.at));
        }
    }

    /// Notes that the final head is complete.
    #[inline]
    pub(crate) fn head(&mut self, arrival: Arrival) {
        self.head_at = Some(arrival.at);
    }

    /// Notes bytes of the body.
    #[inline]
    pub(crate) fn body(&mut self, arrival: Arrival) {
        if self.body_at.is_none() {
            self.body_at = Some(arrival.at);
        }
    }

    /// The answer is complete: works out the spans and the outcome.
    #[inline]
    pub(crate) fn complete(&self, exchange: &mut Exchange, arrival: Arrival, expect: Expect) {
        let spans = &mut exchange.spans;
        let first = spans.wait.map_or(arrival.at, |wait| wait.end);
        let end = arrival.at.max(first);
        match (self.head_at, self.body_at) {
            (Some(head), Some(body)) if body > head => {
                // a head that came in pieces belongs to the wait for it
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
            exchange.own_queue = Some(Span::new(end, arrival.read));
        }
        if let Some(status) = exchange.status
            && !expect.allows(status)
        {
            exchange.outcome = Outcome::Failed(Failure::Unexpected);
        }
    }

    /// The exchange failed.
    pub(crate) fn fail(exchange: &mut Exchange, kind: Failure, at: Nanos) {
        exchange.outcome = Outcome::Failed(kind);
        exchange.end = at.max(exchange.at);
    }
}
