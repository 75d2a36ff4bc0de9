//! The observer out of step: after a gap, or after a header section that the parser refused.
//!
//! The rest of a message counts, and the next message at the start of a read is followed again.

use super::{Http1Flow, Http1Observer, MAX_OPEN, report};
use crate::exchange::{Event, Outcome, Response};
use crate::http1::error::Error;
use crate::http1::partial::{self, PartialRequest};
use crate::http1::request::RequestParser;
use crate::http1::response::ResponseParser;

impl Http1Observer {
    pub(super) fn begin_partial(
        &mut self,
        partial: Option<PartialRequest>,
        visit: &mut impl FnMut(Event<'_>),
    ) {
        if let Some(PartialRequest { request, kind, .. }) = partial
            && self.open.len() < MAX_OPEN
        {
            self.begin_request(request, kind, visit);
        }
    }

    /// Records a request that the parser refused. Returns the bytes after it if its end is known.
    /// `collected` bytes of its header section came before `input`.
    pub(super) fn take_refused<'a>(
        &mut self,
        error: Error,
        collected: usize,
        input: &'a [u8],
        at: u64,
        visit: &mut impl FnMut(Event<'_>),
    ) -> Option<&'a [u8]> {
        let started_at = self.request_side.started_at.unwrap_or(at);
        let refused = self.requests.refused_head();
        let is_held = !refused.is_empty();
        let head = if is_held { refused } else { input };
        let partial = partial::request(head, started_at, at);
        let is_complete = is_held && partial.as_ref().is_some_and(|partial| partial.is_complete);
        let is_end_of_line = |byte: &&u8| matches!(byte, b'\r' | b'\n');
        let blank = match collected {
            0 => input.iter().take_while(is_end_of_line).count(),
            _ => 0,
        };
        let consumed = (blank + head.len()).saturating_sub(collected);
        self.lose_requests(Some(error));
        self.begin_partial(partial, visit);
        self.request_side.out_of_step = !is_complete;
        if !is_complete {
            let after_head = match error {
                Error::Framing { .. } => memchr::memmem::find(input, b"\r\n\r\n"),
                _ => None,
            };
            let from = after_head.map_or(0, |end| end + 4);
            self.request_side.leave_out(&input[from..]);
        }
        input.get(consumed..).filter(|_| is_complete)
    }

    /// Stops parsing requests until a read starts with one.
    pub(super) fn lose_requests(&mut self, error: Option<Error>) {
        self.request_side.lose(error);
        self.requests = RequestParser::default();
    }

    /// Counts bytes of the client that could not be parsed.
    pub(super) fn extend_request(&mut self, at: u64) {
        let open = self.open.back_mut().map(|open| &mut open.exchange);
        if let Some(exchange) = open
            && exchange.response.is_none()
            && let Some(request) = &mut exchange.request
            && request.is_partial
        {
            request.ended_at = Some(at);
        }
    }

    /// Counts bytes of the server that could not be parsed.
    pub(super) fn extend_response(&mut self, at: u64) {
        let open = self.open.front_mut().map(|open| &mut open.exchange);
        if let Some(response) = open.and_then(|exchange| exchange.response.as_mut())
            && response.is_partial
        {
            response.ended_at = Some(at);
        }
    }

    /// Ends a response that could not be followed, because another message begins.
    pub(super) fn end_partial_response(&mut self, visit: &mut impl FnMut(Event<'_>)) {
        let response = self
            .open
            .front()
            .and_then(|open| open.exchange.response.as_ref());
        if response.is_some_and(|response| response.is_partial) {
            report(self.open.pop_front(), Outcome::Unseen, visit);
        }
    }

    /// Stops following the current response. `cut` is the response whose header section is partial.
    pub(super) fn lose_responses(
        &mut self,
        error: Option<Error>,
        cut: Option<Response>,
        at: u64,
        visit: &mut impl FnMut(Event<'_>),
    ) {
        self.response_side.lose(error);
        if let Some(response) = cut {
            self.end_partial_response(visit);
            self.begin_response(response);
        } else if let Some(open) = self.open.front_mut()
            && let Some(response) = &mut open.exchange.response
        {
            response.is_partial = true;
            response.ended_at = Some(at);
        }
    }

    /// Starts a response after a gap, and assigns it to the last request. Few clients pipeline, and
    /// nothing shows which of several requests it answers.
    pub(super) fn resume_responses(&mut self, visit: &mut impl FnMut(Event<'_>)) {
        self.response_side.out_of_step = false;
        self.responses = ResponseParser::default();
        self.end_partial_response(visit);
        while self.open.len() > 1 {
            report(self.open.pop_front(), Outcome::Unseen, visit);
        }
        if let Some(open) = self.open.front() {
            self.responses.expect(open.kind);
        }
    }
}

impl Http1Flow {
    /// Passes over bytes of a direction that is out of step.
    pub(super) fn leave_out(&mut self, bytes: &[u8]) {
        let is_hidden = self.error.is_some_and(|error| error.hides_the_end());
        self.has_left_out |= is_hidden && !bytes.trim_ascii().is_empty();
    }

    pub(super) fn lose(&mut self, error: Option<Error>) {
        self.out_of_step = true;
        self.started_at = None;
        self.error = error.or(self.error);
    }
}
