//! Observes both directions of an HTTP/1 connection: requests paired with their responses.
//!
//! Bytes must arrive in order of time, a request before its response. After a gap or an error a
//! direction is out of step until a read starts with a header section. A message that was open at
//! the gap is partial; it ends with the last byte before the next message. Its exchange is reported
//! as unobserved, unless only the request was partial.

mod out_of_step;

use std::collections::VecDeque;

use super::error::Error;
use super::message::{Eof, Persistence};
use super::partial;
use super::request::{RequestEvent, RequestParser};
use super::response::{Kind, ResponseEvent, ResponseParser};
use crate::Side;
use crate::exchange::{Event, Exchange, Outcome, Request, Response};

/// Reads both directions of one connection.
#[derive(Debug, Default)]
pub struct Http1Observer {
    requests: RequestParser,
    responses: ResponseParser,
    request_side: Http1Flow,
    response_side: Http1Flow,
    /// Oldest first. The current response belongs to the first, the current request is the last.
    open: VecDeque<Open>,
    switched_at: Option<u64>,
}

/// The state of a direction in addition to its parser.
#[derive(Debug, Default)]
struct Http1Flow {
    /// Nothing is parsed until a read starts with a header section.
    out_of_step: bool,
    /// When the first byte of the current header section arrived.
    started_at: Option<u64>,
    error: Option<Error>,
    /// Bytes followed a message of unknown length: its body, or other messages.
    has_left_out: bool,
}

#[derive(Debug)]
struct Open {
    exchange: Exchange,
    kind: Kind,
    /// The client sends the body only if the server asks for it.
    expects_continue: bool,
}

/// Limit of requests without a response; a client with more is not followed.
const MAX_OPEN: usize = 1024;

impl Http1Observer {
    /// An observer of a connection whose start was not observed.
    pub fn mid_stream() -> Self {
        let lost = || Http1Flow {
            out_of_step: true,
            ..Http1Flow::default()
        };
        Self {
            request_side: lost(),
            response_side: lost(),
            ..Self::default()
        }
    }

    /// When the connection left HTTP/1 (101, or CONNECT), in nanoseconds; later bytes are ignored.
    pub fn switched_at(&self) -> Option<u64> {
        self.switched_at
    }

    /// The last error in the bytes of that side.
    pub fn error(&self, side: Side) -> Option<Error> {
        side.pick(self.request_side.error, self.response_side.error)
    }

    /// Whether bytes of the client were not read that may hold requests. They follow a message of
    /// unknown length.
    pub fn has_left_out_requests(&self) -> bool {
        self.request_side.has_left_out
    }

    /// Number of requests whose exchange has not ended.
    pub fn outstanding(&self) -> usize {
        self.open.len()
    }

    /// Responses that have begun and have not ended.
    pub fn responses_under_way(&self) -> impl Iterator<Item = &Response> {
        let open = self.open.iter();
        open.filter_map(|open| open.exchange.response.as_ref())
            .filter(|response| response.ended_at.is_none())
    }

    /// Reads the next bytes of one direction. Returns those that are not HTTP/1 because the
    /// protocol was switched.
    pub fn read<'a>(
        &mut self,
        from: Side,
        bytes: &'a [u8],
        at: u64,
        mut visit: impl FnMut(Event<'_>),
    ) -> &'a [u8] {
        match from {
            _ if self.switched_at.is_some() => bytes,
            Side::Client => {
                self.read_requests(bytes, at, &mut visit);
                &[]
            }
            Side::Server => self.read_responses(bytes, at, &mut visit),
        }
    }

    /// Records that bytes are missing; the next ones arrived at `at`. Within a body of known length
    /// they are counted. Elsewhere the direction is out of step.
    pub fn lose(&mut self, from: Side, len: u64, at: u64, mut visit: impl FnMut(Event<'_>)) {
        match from {
            Side::Client if self.request_side.out_of_step => self.extend_request(at),
            Side::Server if self.response_side.out_of_step => self.extend_response(at),
            Side::Client if !self.requests.skip(len) => {
                let started_at = self.request_side.started_at.unwrap_or(at);
                let cut = partial::request(self.requests.partial_head(), started_at, at);
                self.lose_requests(None);
                self.begin_partial(cut, &mut visit);
            }
            Side::Server if !self.responses.skip(len) => {
                let started_at = self.response_side.started_at.unwrap_or(at);
                let cut = partial::response(self.responses.partial_head(), started_at, at);
                self.lose_responses(None, cut, at, &mut visit);
            }
            _ => {
                if let Some(exchange) = self.under_way(from) {
                    exchange.add_body(from, len, None);
                }
                // the missing bytes may be the end of the body
                match from {
                    Side::Client => self.read_requests(&[], at, &mut visit),
                    Side::Server => {
                        self.read_responses(&[], at, &mut visit);
                    }
                }
            }
        }
    }

    /// Records that a direction ended. The end of the server's direction ends every exchange.
    pub fn end(&mut self, from: Side, at: u64, mut visit: impl FnMut(Event<'_>)) {
        if from == Side::Client {
            return;
        }
        let eof = self.responses.finish();
        for (place, mut open) in std::mem::take(&mut self.open).into_iter().enumerate() {
            let outcome = match &mut open.exchange.response {
                Some(response) if response.is_partial => Outcome::Unseen,
                Some(response) if response.ended_at.is_some() => Outcome::Complete,
                Some(response) if eof == Eof::Complete => {
                    response.ended_at = Some(at);
                    Outcome::UntilClose
                }
                Some(_) => Outcome::Cut,
                None if self.response_side.out_of_step => Outcome::Unseen,
                None if eof == Eof::InHead && place == 0 => Outcome::Cut,
                None => Outcome::Unanswered,
            };
            visit(Event::Done(&open.exchange, outcome));
        }
    }

    fn read_requests(&mut self, mut input: &[u8], at: u64, visit: &mut impl FnMut(Event<'_>)) {
        if self.request_side.out_of_step {
            if !starts_a_request(input) {
                self.request_side.leave_out(input);
                return self.extend_request(at);
            }
            self.request_side.out_of_step = false;
        } else if starts_a_request(input) && self.has_no_body_to_come() {
            self.leave_out_body(visit);
        }
        loop {
            self.request_side.started_at.get_or_insert(at);
            let collected = self.requests.partial_head().len();
            let step = match self.requests.parse(input) {
                Ok(step) => step,
                Err(error) => match self.take_refused(error, collected, input, at, visit) {
                    Some(rest) => {
                        input = rest;
                        continue;
                    }
                    None => return,
                },
            };
            input = &input[step.consumed..];
            match step.event {
                Some(RequestEvent::Head(_)) if self.open.len() >= MAX_OPEN => {
                    return self.lose_requests(None);
                }
                Some(RequestEvent::Head(head)) => {
                    let started_at = self.request_side.started_at.take().unwrap_or(at);
                    let (request, kind) = (head.seen(started_at, at), head.kind());
                    let expects_continue = head.expects_continue;
                    self.begin_request(request, kind, visit);
                    if let Some(open) = self.open.back_mut() {
                        open.expects_continue = expects_continue;
                    }
                }
                Some(RequestEvent::Body(bytes)) => {
                    self.request_side.started_at = None;
                    take_body(self.open.back_mut(), Side::Client, bytes, at, visit);
                }
                Some(RequestEvent::Trailers(_)) => self.request_side.started_at = None,
                Some(RequestEvent::End(_)) => {
                    self.request_side.started_at = None;
                    if let Some(exchange) = self.under_way(Side::Client) {
                        exchange.end(Side::Client, at);
                        // the server may have responded completely before it received the whole
                        // request
                        if exchange.is_over() {
                            report(self.open.pop_back(), Outcome::Complete, visit);
                        }
                    }
                }
                None => {
                    if self.requests.finish() != Eof::InHead {
                        self.request_side.started_at = None;
                    }
                    return;
                }
            }
        }
    }

    /// Starts a request, which ends a response that could not be followed.
    fn begin_request(&mut self, request: Request, kind: Kind, visit: &mut impl FnMut(Event<'_>)) {
        self.end_partial_response(visit);
        let is_answered = |open: &Open| {
            let response = open.exchange.response.as_ref();
            response.is_some_and(|response| response.ended_at.is_some())
        };
        let exchange = Exchange {
            request: Some(request),
            pipelined: self.open.back().is_some_and(|open| !is_answered(open)),
            ..Exchange::default()
        };
        self.responses.expect(kind);
        visit(Event::Opened(&exchange));
        self.open.push_back(Open {
            exchange,
            kind,
            expects_continue: false,
        });
    }

    /// Whether the client need not send the body of its request: it waited for an interim response,
    /// and received a final one (RFC 9110 section 10.1.1).
    fn has_no_body_to_come(&self) -> bool {
        self.open.back().is_some_and(|open| {
            let exchange = &open.exchange;
            let request = exchange.request.as_ref();
            let is_unsent = request.is_some_and(|one| one.ended_at.is_none() && one.body_len == 0);
            open.expects_continue && exchange.interims == 0 && exchange.is_answered() && is_unsent
        })
    }

    /// Ends a request without its body.
    fn leave_out_body(&mut self, visit: &mut impl FnMut(Event<'_>)) {
        self.requests = RequestParser::default();
        self.request_side.started_at = None;
        if let Some(exchange) = self.under_way(Side::Client) {
            let head_at = exchange.request.as_ref().map(|request| request.head_at);
            exchange.end(Side::Client, head_at.unwrap_or_default());
        }
        report(self.open.pop_back(), Outcome::Complete, visit);
    }

    /// Returns the bytes after a switch of protocols.
    fn read_responses<'a>(
        &mut self,
        mut input: &'a [u8],
        at: u64,
        visit: &mut impl FnMut(Event<'_>),
    ) -> &'a [u8] {
        if self.response_side.out_of_step {
            if !input.starts_with(b"HTTP/1.") {
                self.extend_response(at);
                return &[];
            }
            self.resume_responses(visit);
        }
        loop {
            self.response_side.started_at.get_or_insert(at);
            let step = match self.responses.parse(input) {
                Ok(step) => step,
                Err(error) => {
                    let started_at = self.response_side.started_at.unwrap_or(at);
                    let partial = partial::response(self.responses.refused_head(), started_at, at);
                    self.lose_responses(Some(error), partial, at, visit);
                    return &[];
                }
            };
            input = &input[step.consumed..];
            match step.event {
                Some(ResponseEvent::Interim(_)) => {
                    self.response_side.started_at = None;
                    if let Some(open) = self.open.front_mut() {
                        open.exchange.interims += 1;
                    }
                }
                Some(ResponseEvent::Head(head)) => {
                    let started_at = self.response_side.started_at.take().unwrap_or(at);
                    let response = head.seen(started_at, at);
                    self.begin_response(response);
                }
                Some(ResponseEvent::Body(bytes)) => {
                    self.response_side.started_at = None;
                    take_body(self.open.front_mut(), Side::Server, bytes, at, visit);
                }
                Some(ResponseEvent::Trailers(_)) => self.response_side.started_at = None,
                Some(ResponseEvent::End(after)) => {
                    self.response_side.started_at = None;
                    self.end_response(after, at, visit);
                    if after == Persistence::Tunnel {
                        return input;
                    }
                }
                None => {
                    if self.responses.finish() != Eof::InHead {
                        self.response_side.started_at = None;
                    }
                    return &[];
                }
            }
        }
    }

    /// Starts a response: to the first request, or to none.
    fn begin_response(&mut self, response: Response) {
        match self.open.front_mut() {
            Some(open) if open.exchange.response.is_none() => {
                open.exchange.response = Some(response);
            }
            _ => {
                let exchange = Exchange {
                    response: Some(response),
                    ..Exchange::default()
                };
                self.open.push_front(Open {
                    exchange,
                    kind: Kind::Plain,
                    expects_continue: false,
                });
            }
        }
    }

    /// The exchange whose message that side is sending.
    fn under_way(&mut self, from: Side) -> Option<&mut Exchange> {
        let open = match from {
            Side::Client => self.open.back_mut(),
            Side::Server => self.open.front_mut(),
        };
        open.map(|open| &mut open.exchange)
    }

    fn end_response(&mut self, after: Persistence, at: u64, visit: &mut impl FnMut(Event<'_>)) {
        if after == Persistence::Tunnel {
            self.switched_at = Some(at);
        }
        let Some(open) = self.open.front_mut() else {
            return;
        };
        open.exchange.end(Side::Server, at);
        if open.kind == Kind::Connect && after != Persistence::Tunnel {
            self.requests.resume();
        }
        if open.exchange.is_over() || after == Persistence::Tunnel {
            report(self.open.pop_front(), Outcome::Complete, visit);
        }
    }
}

fn take_body(
    open: Option<&mut Open>,
    from: Side,
    bytes: &[u8],
    at: u64,
    visit: &mut impl FnMut(Event<'_>),
) {
    if let Some(open) = open {
        open.exchange.add_body(from, bytes.len() as u64, Some(at));
    }
    visit(Event::Body {
        from,
        stream: None,
        bytes,
    });
}

/// Reports the end of an exchange.
fn report(open: Option<Open>, outcome: Outcome, visit: &mut impl FnMut(Event<'_>)) {
    if let Some(open) = open {
        visit(Event::Done(&open.exchange, outcome));
    }
}

/// Whether bytes within a stream start a request. Only the usual methods count, because a body may
/// start with any word.
fn starts_a_request(bytes: &[u8]) -> bool {
    const METHODS: [&[u8]; 9] = [
        b"GET ",
        b"HEAD ",
        b"POST ",
        b"PUT ",
        b"DELETE ",
        b"OPTIONS ",
        b"PATCH ",
        b"CONNECT ",
        b"TRACE ",
    ];
    METHODS.iter().any(|method| bytes.starts_with(method))
}
