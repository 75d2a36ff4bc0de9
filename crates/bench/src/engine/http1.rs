//! HTTP/1 on one connection, one exchange at a time.

use super::conversation::{Arrival, Life, State};
use crate::recipe::{Expect, Recipe};
use ledger::{
    Body, Event, Exchange, ExchangeBytes, Failure, Moment, Nanos, Outcome, Setup, Side, Sink, Span,
    Spans, Terms,
};
use wire::http1::{After, Eof, Error, Framing, Kind, Limits, ResponseEvent, ResponseParser};

/// The conversation, and the exchange that is in flight.
pub(crate) struct Http1 {
    parser: ResponseParser,
    exchange: Exchange,
    in_flight: bool,
    answering: bool,
    /// When the head was complete and when the first body byte came.
    head_at: Option<Nanos>,
    body_at: Option<Nanos>,
    until_close: bool,
    served: u32,
    announced_by: Option<Side>,
    /// Nothing more may be sent.
    over: bool,
    moment: Moment,
    kind: Kind,
    expect: Expect,
    request_closes: bool,
    request_head: u64,
    request_body: u64,
}

impl Http1 {
    /// A conversation on connection `id`; `blank` holds what its exchanges have in common.
    pub(crate) fn new(recipe: &Recipe, blank: Exchange) -> Http1 {
        let request = &recipe.request;
        Http1 {
            parser: ResponseParser::new(Limits::default()),
            exchange: blank,
            in_flight: false,
            answering: false,
            head_at: None,
            body_at: None,
            until_close: false,
            served: 0,
            announced_by: None,
            over: false,
            moment: Moment::Unused,
            kind: request.kind,
            expect: recipe.expect,
            request_closes: request.closes,
            request_head: request.head as u64,
            request_body: (request.bytes.len() - request.head) as u64,
        }
    }

    /// Begins an exchange that was wanted `at`; the caller sends the request. `setup` is what a new connection took.
    #[inline]
    pub(crate) fn begin(&mut self, id: u64, at: Nanos, warmup: bool, setup: Option<&Setup>) {
        self.served += 1;
        self.in_flight = true;
        self.answering = false;
        self.head_at = None;
        self.body_at = None;
        self.until_close = false;
        let exchange = &mut self.exchange;
        exchange.id = id;
        exchange.at = at;
        exchange.warmup = warmup;
        exchange.ordinal = Some(self.served);
        exchange.spans = Spans::default();
        exchange.fresh = Some(setup.is_some_and(|setup| exchange.spans.wait_for_setup(setup, at)));
        exchange.status = None;
        exchange.own_queue = None;
        exchange.bytes = ExchangeBytes {
            request_head: self.request_head,
            request_body: self.request_body,
            ..ExchangeBytes::default()
        };
        exchange.body = Body::default();
        exchange.terms = Terms::default();
        exchange.close_sent_by = self.request_closes.then_some(Side::Client);
        exchange.outcome = Outcome::Ok;
        exchange.detail = None;
        self.parser.expect(self.kind);
        self.moment = Moment::MidExchange;
        if self.request_closes {
            self.announced_by = Some(Side::Client);
        }
    }

    /// Notes when the request was sent.
    #[inline]
    pub(crate) fn sent(&mut self, span: Span) {
        self.exchange.spans.send = Some(span);
    }

    /// See [`super::Conversation::receive`].
    #[inline]
    pub(crate) fn receive(&mut self, mut bytes: &[u8], arrival: Arrival, sink: &mut impl Sink) {
        if !self.in_flight {
            // an answer that nobody asked for, or what follows one that was complete: not to be trusted any more
            self.over = true;
            return;
        }
        if !self.answering {
            self.answering = true;
            let spans = &mut self.exchange.spans;
            if let Some(send) = &mut spans.send {
                // on loopback the answer may be there before our send returns
                send.end = send.end.min(arrival.at).max(send.start);
                spans.wait = Some(Span::new(send.end, arrival.at));
            }
        }
        loop {
            let step = match self.parser.parse(bytes) {
                Ok(step) => step,
                Err(error) => {
                    self.exchange.detail = Some(error.to_string().into());
                    self.fail(failure_of(&error), arrival.read, sink);
                    return;
                }
            };
            bytes = &bytes[step.consumed..];
            match step.event {
                None => return,
                Some(ResponseEvent::Interim(head)) => {
                    self.exchange.bytes.head += head.as_bytes().len() as u64;
                }
                Some(ResponseEvent::Head(head)) => {
                    self.head_at = Some(arrival.at);
                    let exchange = &mut self.exchange;
                    exchange.status = Some(head.status);
                    exchange.bytes.head += head.as_bytes().len() as u64;
                    exchange.terms.timeout_s = head.keep_alive.timeout_s;
                    exchange.terms.max = head.keep_alive.max;
                    match head.framing {
                        Framing::Length(length) => exchange.body.announced = Some(length),
                        Framing::UntilClose => self.until_close = true,
                        Framing::None | Framing::Chunked | Framing::Tunnel => {}
                    }
                    if !head.persistent() && self.announced_by.is_none() {
                        self.announced_by = Some(Side::Server);
                        exchange.close_sent_by = Some(Side::Server);
                    }
                }
                Some(ResponseEvent::Body(piece)) => {
                    if self.body_at.is_none() {
                        self.body_at = Some(arrival.at);
                    }
                    *self.exchange.body.read.get_or_insert(0) += piece.len() as u64;
                }
                Some(ResponseEvent::Trailers(_)) => {}
                Some(ResponseEvent::End(after)) => {
                    self.over =
                        after != After::Reuse || self.announced_by.is_some() || !bytes.is_empty();
                    self.complete(arrival, sink);
                    return;
                }
            }
        }
    }

    fn complete(&mut self, arrival: Arrival, sink: &mut impl Sink) {
        let exchange = &mut self.exchange;
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
        let read = exchange.body.read.unwrap_or(0);
        exchange.body.read = Some(read);
        exchange.bytes.body = read;
        exchange.bytes.decoded = Some(read);
        if let Some(status) = exchange.status
            && !self.expect.allows(status)
        {
            exchange.outcome = Outcome::Failed(Failure::Unexpected);
        }
        self.in_flight = false;
        self.moment = Moment::AfterExchange;
        sink.record(Event::Exchange(exchange));
    }

    fn fail(&mut self, kind: Failure, at: Nanos, sink: &mut impl Sink) {
        self.over = true;
        self.in_flight = false;
        let exchange = &mut self.exchange;
        exchange.outcome = Outcome::Failed(kind);
        exchange.end = at.max(exchange.at);
        sink.record(Event::Exchange(exchange));
    }

    /// See [`super::Conversation::end`].
    pub(crate) fn end(&mut self, failure: Option<Failure>, at: Nanos, sink: &mut impl Sink) {
        if !self.in_flight {
            self.over = true;
            return;
        }
        let kind = match failure {
            Some(Failure::Reset) | None if !self.answering => {
                if self.served > 1 {
                    self.moment = Moment::Stale;
                    Failure::Stale
                } else if failure.is_none() {
                    Failure::Closed
                } else {
                    Failure::Reset
                }
            }
            Some(kind) => kind,
            None => match self.parser.finish() {
                Eof::Complete => {
                    self.over = true;
                    let arrival = Arrival {
                        at,
                        read: at,
                        stamped: false,
                    };
                    self.complete(arrival, sink);
                    return;
                }
                _ => Failure::Truncated,
            },
        };
        self.fail(kind, at, sink);
    }

    /// See [`super::Conversation::state`].
    #[inline]
    pub(crate) fn state(&self) -> State {
        if self.in_flight {
            State::Busy
        } else if self.over {
            State::Over
        } else {
            State::Ready(1)
        }
    }

    /// When the exchange in flight was wanted.
    #[inline]
    pub(crate) fn oldest(&self) -> Option<Nanos> {
        self.in_flight.then_some(self.exchange.at)
    }

    /// Whether the server, or the request, said that the connection ends here, and the answer came.
    pub(crate) fn awaits_fin(&self) -> bool {
        self.announced_by.is_some() && self.moment == Moment::AfterExchange
    }

    /// What it knows of its life.
    pub(crate) fn life(&self) -> Life {
        Life {
            announced_by: self.announced_by,
            moment: self.moment,
            exchanges: u64::from(self.served),
        }
    }
}

/// The kind of an answer that is not HTTP/1.
fn failure_of(error: &Error) -> Failure {
    match error {
        Error::TooLong { .. } | Error::TooManyInterim { .. } => Failure::TooLarge,
        Error::Syntax { .. } | Error::Version { .. } | Error::Framing { .. } => Failure::Malformed,
    }
}
