//! HTTP/1.0 and 1.1 on one connection, one exchange at a time.

use super::connection_life::ConnectionLife;
use super::exchange_record::{self, NewExchange};
use super::stream_connection::HttpState;
use super::transport_end::TransportEnd;
use super::{Detail, ResponseInfo, State};
use crate::{Arrival, BodyCheck, Request, ResponseError, Stopwatch, judge, names_tls_port};
use intact_ledger::{
    ClosePoint, Event, Exchange, ExchangeBytes, Failure, Nanos, Protocol, Side, Sink,
};
use intact_wire::http1::{
    Eof, Framing, Headers, Persistence, ResponseEvent, ResponseParser, Version,
};
use std::sync::Arc;

/// The state of the connection, and the exchange in flight.
#[derive(Default)]
pub(super) struct Http1 {
    parser: ResponseParser,
    /// The request of the last exchange.
    request: Option<Arc<Request>>,
    exchange: Exchange,
    watch: Stopwatch,
    in_flight: bool,
    /// Bytes that the connection had accepted before the request in flight.
    sent_before: u64,
    /// The body of a 400 names a TLS port.
    is_tls_port: bool,
    /// The body so far, where it is checked.
    body: Vec<u8>,
    /// A response without a request has begun.
    is_unsolicited: bool,
    life: ConnectionLife,
}

impl Http1 {
    /// The state of a new connection. `blank` holds the fields that its exchanges share.
    pub(super) fn new(blank: Exchange, detail: Detail) -> Http1 {
        Http1 {
            exchange: blank,
            life: ConnectionLife::new(detail),
            ..Http1::default()
        }
    }

    /// Reads a response without a request, or bytes after a complete one: the connection cannot be
    /// trusted any more.
    #[cold]
    fn receive_unsolicited(&mut self, mut bytes: &[u8]) {
        let Some(first) = bytes.first() else { return };
        self.life.over = true;
        // the first letter of a status line
        self.is_unsolicited |= self.life.excess == 0 && (*first == b'H' || self.life.begun == 0);
        if !self.is_unsolicited {
            self.life.excess += bytes.len() as u64;
            return;
        }
        while let Ok(step) = self.parser.parse(bytes) {
            bytes = &bytes[step.consumed..];
            match step.event {
                None => return,
                Some(ResponseEvent::Head(head)) => {
                    self.life.unsolicited_status.get_or_insert(head.status());
                }
                Some(_) => {}
            }
        }
    }

    fn complete(&mut self, arrival: Arrival, sink: &mut impl Sink) {
        let exchange = &mut self.exchange;
        exchange.bytes.decoded = Some(*exchange.body.read.get_or_insert(0));
        self.watch.complete(exchange, arrival);
        let is_tls_port = std::mem::take(&mut self.is_tls_port);
        let request = self.request.as_deref();
        let expect = request.and_then(|request| request.expected(exchange.status));
        judge(exchange, expect, is_tls_port);
        if let Some(check) = request.and_then(|request| request.check.as_deref()) {
            check.judge(exchange, &self.body);
        }
        self.in_flight = false;
        self.life.moment = ClosePoint::AfterExchange;
        sink.record(Event::Exchange(exchange));
    }

    fn fail(&mut self, kind: Failure, at: Nanos, sink: &mut impl Sink) {
        self.life.over = true;
        self.in_flight = false;
        Stopwatch::fail(&mut self.exchange, kind, at);
        sink.record(Event::Exchange(&self.exchange));
    }
}

impl HttpState for Http1 {
    #[inline]
    fn begin(&mut self, new: &NewExchange<'_>, out: &mut Vec<u8>) {
        let request = new.request;
        let exchange = &mut self.exchange;
        if !request.is(&self.request) {
            self.request = Some(request.clone());
            request.describe(exchange);
        }
        self.life.begun += 1;
        self.in_flight = true;
        self.sent_before = new.sent_before;
        self.watch = exchange_record::begin(exchange, new, self.life.begun);
        let (head, body) = (request.http1_head_len(), request.body.len());
        exchange.bytes = ExchangeBytes {
            request_head: head as u64,
            request_body: body as u64,
            ..ExchangeBytes::default()
        };
        if let Some(response) = &mut self.life.response {
            **response = ResponseInfo::default();
        }
        self.body.clear();
        self.parser.expect(request.kind);
        self.life.moment = ClosePoint::MidExchange;
        if request.closes {
            exchange.close_sent_by = Some(Side::Client);
            self.life.announced_by = Some(Side::Client);
        }
        out.extend_from_slice(request.http1_bytes());
    }

    #[inline]
    fn sent(&mut self, at: Nanos, _held_back: bool) {
        Stopwatch::sent(&mut self.exchange, at);
    }

    fn note_retransmissions(&mut self, more: u32) {
        *self.exchange.retransmissions.get_or_insert(0) += more;
    }

    fn note_acknowledgement(&mut self, nanos: u64) {
        self.exchange.acknowledged_after = Some(nanos);
    }

    #[inline]
    fn receive(
        &mut self,
        mut bytes: &[u8],
        arrival: Arrival,
        sink: &mut impl Sink,
        _out: &mut Vec<u8>,
    ) {
        if !self.in_flight {
            return self.receive_unsolicited(bytes);
        }
        self.watch.hear(&mut self.exchange, arrival);
        loop {
            let step = match self.parser.parse(bytes) {
                Ok(step) => step,
                Err(error) => {
                    let broken = ResponseError::http1(error, bytes);
                    return self.break_off(&broken, arrival.read, sink);
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
                    if !head.persistent() && self.life.announced_by.is_none() {
                        self.life.announced_by = Some(Side::Server);
                        exchange.close_sent_by = Some(Side::Server);
                    }
                    if let Some(response) = &mut self.life.response {
                        response.status = Some(head.status());
                        note_fields(response, head.version, head.headers());
                    }
                }
                Some(ResponseEvent::Body(piece)) => {
                    self.watch.body(arrival);
                    if exchange.status == Some(400) {
                        self.is_tls_port |= names_tls_port(piece);
                    }
                    *exchange.body.read.get_or_insert(0) += piece.len() as u64;
                    exchange.bytes.body += piece.len() as u64;
                    if self.request.as_ref().is_some_and(|one| one.check.is_some())
                        && let Err(broken) = BodyCheck::keep(&mut self.body, piece)
                    {
                        return self.break_off(&broken, arrival.read, sink);
                    }
                }
                Some(ResponseEvent::Trailers(_)) => {}
                Some(ResponseEvent::End(after)) => {
                    let keeps = after == Persistence::Reuse && self.life.announced_by.is_none();
                    self.life.over = !keeps;
                    if let Some(response) = &mut self.life.response {
                        response.keeps = keeps;
                    }
                    self.complete(arrival, sink);
                    if !bytes.is_empty() {
                        self.receive_unsolicited(bytes);
                    }
                    return;
                }
            }
        }
    }

    fn end(&mut self, end: &TransportEnd, sink: &mut impl Sink) {
        if !self.in_flight {
            self.life.over = true;
            return;
        }
        let (begun, is_reused) = (self.watch.begun(), self.life.begun > 1);
        let exchange = &mut self.exchange;
        let kind = match end.kind(exchange, begun, is_reused, self.sent_before) {
            Some(kind) => kind,
            None if self.parser.finish() == Eof::Complete => {
                self.life.over = true;
                self.complete(Arrival::new(None, end.at), sink);
                return;
            }
            None => Failure::Truncated,
        };
        if kind == Failure::Stale {
            self.life.moment = ClosePoint::Stale;
        }
        self.fail(kind, end.at, sink);
    }

    fn break_off(&mut self, broken: &ResponseError, at: Nanos, sink: &mut impl Sink) {
        self.life.over = true;
        if self.in_flight {
            self.exchange.detail = Some(broken.words.clone());
            self.fail(broken.kind, at, sink);
        }
    }

    #[inline]
    fn life(&self) -> &ConnectionLife {
        &self.life
    }

    fn life_mut(&mut self) -> &mut ConnectionLife {
        &mut self.life
    }

    #[inline]
    fn state(&self) -> State {
        if self.in_flight {
            State::Busy
        } else if self.life.over {
            State::Over
        } else {
            State::Ready
        }
    }

    #[inline]
    fn oldest(&self) -> Option<Nanos> {
        self.in_flight.then_some(self.exchange.at)
    }
}

/// Receives the parts of a header section, because a reference to it would make the fast path copy
/// it.
#[cold]
fn note_fields(response: &mut ResponseInfo, version: Version, fields: Headers<'_>) {
    response.response_version = Some(match version {
        Version::Http10 => Protocol::Http10,
        Version::Http11 => Protocol::Http11,
    });
    for (name, value) in fields {
        response.note(name, value);
    }
}
