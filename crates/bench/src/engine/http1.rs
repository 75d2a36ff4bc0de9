//! HTTP/1 on one connection, one exchange at a time.

use super::answer;
use super::conversation::{ConnectionStats, State};
use crate::variant_plan::VariantPlan;
use intact_client::{Arrival, ResponseError, Stopwatch, judge, names_tls_port};
use intact_ledger::{
    ClosePoint, Event, Exchange, ExchangeBytes, ExpectedStatus, Failure, Nanos, Setup, Side, Sink,
};
use intact_wire::http1::{Eof, Framing, Kind, Limits, Persistence, ResponseEvent, ResponseParser};

/// The conversation, and the exchange that is in flight.
pub(crate) struct Http1 {
    parser: ResponseParser,
    exchange: Exchange,
    watch: Stopwatch,
    in_flight: bool,
    served: u32,
    announced_by: Option<Side>,
    /// Nothing more may be sent.
    over: bool,
    moment: ClosePoint,
    kind: Kind,
    expect: Option<ExpectedStatus>,
    /// The body of a 400 says that the port speaks TLS.
    is_tls_port: bool,
    request_closes: bool,
    request_bytes: ExchangeBytes,
}

impl Http1 {
    /// A conversation; `blank` holds what its exchanges have in common.
    pub(crate) fn new(recipe: &VariantPlan, blank: Exchange) -> Http1 {
        let request = &recipe.request;
        Http1 {
            parser: ResponseParser::new(Limits::default()),
            exchange: blank,
            watch: Stopwatch::default(),
            in_flight: false,
            served: 0,
            announced_by: None,
            over: false,
            moment: ClosePoint::Unused,
            kind: request.kind,
            expect: recipe.expect,
            is_tls_port: false,
            request_closes: request.closes,
            request_bytes: ExchangeBytes {
                request_head: request.head as u64,
                request_body: (request.bytes.len() - request.head) as u64,
                ..ExchangeBytes::default()
            },
        }
    }

    /// See [`super::Conversation::begin`].
    #[inline]
    pub(crate) fn begin(&mut self, id: u64, at: Nanos, warmup: bool, setup: Option<&Setup>) {
        self.served += 1;
        self.in_flight = true;
        let exchange = &mut self.exchange;
        exchange.ordinal = Some(self.served);
        self.watch = answer::begin(exchange, at, setup);
        exchange.id = id;
        exchange.warmup = warmup;
        exchange.bytes = self.request_bytes;
        self.parser.expect(self.kind);
        self.moment = ClosePoint::MidExchange;
        if self.request_closes {
            exchange.close_sent_by = Some(Side::Client);
            self.announced_by = Some(Side::Client);
        }
    }

    /// See [`super::Conversation::sent`].
    #[inline]
    pub(crate) fn sent(&mut self, at: Nanos) {
        Stopwatch::sent(&mut self.exchange, at);
    }

    /// See [`super::Conversation::receive`].
    #[inline]
    pub(crate) fn receive(&mut self, mut bytes: &[u8], arrival: Arrival, sink: &mut impl Sink) {
        if !self.in_flight {
            // an answer that nobody asked for, or what follows one that was complete: not to be trusted any more
            self.over = true;
            return;
        }
        self.watch.hear(&mut self.exchange, arrival);
        loop {
            let step = match self.parser.parse(bytes) {
                Ok(step) => step,
                Err(error) => {
                    let ResponseError { kind, words } = ResponseError::http1(error, bytes);
                    self.exchange.detail = Some(words);
                    self.fail(kind, arrival.read, sink);
                    return;
                }
            };
            bytes = &bytes[step.consumed..];
            let exchange = &mut self.exchange;
            match step.event {
                None => return,
                Some(ResponseEvent::Interim(head)) => {
                    exchange.bytes.head += head.as_bytes().len() as u64;
                }
                Some(ResponseEvent::Head(head)) => {
                    self.watch.head(arrival);
                    exchange.status = Some(head.status());
                    exchange.bytes.head += head.as_bytes().len() as u64;
                    exchange.terms.timeout_s = head.keep_alive.timeout_s;
                    exchange.terms.max = head.keep_alive.max;
                    if let Framing::Length(length) = head.framing {
                        exchange.body.announced = Some(length);
                    }
                    if !head.persistent() && self.announced_by.is_none() {
                        self.announced_by = Some(Side::Server);
                        exchange.close_sent_by = Some(Side::Server);
                    }
                }
                Some(ResponseEvent::Body(piece)) => {
                    self.watch.body(arrival);
                    if exchange.status == Some(400) {
                        self.is_tls_port |= names_tls_port(piece);
                    }
                    *exchange.body.read.get_or_insert(0) += piece.len() as u64;
                }
                Some(ResponseEvent::Trailers(_)) => {}
                Some(ResponseEvent::End(after)) => {
                    self.over = after != Persistence::Reuse
                        || self.announced_by.is_some()
                        || !bytes.is_empty();
                    self.complete(arrival, sink);
                    return;
                }
            }
        }
    }

    fn complete(&mut self, arrival: Arrival, sink: &mut impl Sink) {
        let exchange = &mut self.exchange;
        let read = *exchange.body.read.get_or_insert(0);
        exchange.bytes.body = read;
        exchange.bytes.decoded = Some(read);
        self.watch.complete(exchange, arrival);
        let is_tls_port = std::mem::take(&mut self.is_tls_port);
        judge(exchange, self.expect, is_tls_port);
        self.in_flight = false;
        self.moment = ClosePoint::AfterExchange;
        sink.record(Event::Exchange(exchange));
    }

    fn fail(&mut self, kind: Failure, at: Nanos, sink: &mut impl Sink) {
        self.over = true;
        self.in_flight = false;
        Stopwatch::fail(&mut self.exchange, kind, at);
        sink.record(Event::Exchange(&self.exchange));
    }

    /// See [`super::Conversation::end`].
    pub(crate) fn end(&mut self, failure: Option<Failure>, at: Nanos, sink: &mut impl Sink) {
        if !self.in_flight {
            self.over = true;
            return;
        }
        let kind = match failure {
            Some(Failure::Reset) | None if !self.watch.begun() => {
                if self.served > 1 {
                    self.moment = ClosePoint::Stale;
                    Failure::Stale
                } else if failure.is_none() {
                    Failure::Closed
                } else {
                    Failure::Reset
                }
            }
            Some(kind) => kind,
            None if self.parser.finish() == Eof::Complete => {
                self.over = true;
                self.complete(Arrival::new(None, at), sink);
                return;
            }
            None => Failure::Truncated,
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
            State::Ready
        }
    }

    /// See [`super::Conversation::oldest`].
    #[inline]
    pub(crate) fn oldest(&self) -> Option<Nanos> {
        self.in_flight.then_some(self.exchange.at)
    }

    /// What it knows of its life.
    #[inline]
    pub(crate) fn life(&self) -> ConnectionStats {
        ConnectionStats {
            announced_by: self.announced_by,
            moment: self.moment,
            exchanges: u64::from(self.served),
        }
    }
}
