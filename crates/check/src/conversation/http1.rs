//! HTTP/1.0 and 1.1.

use super::flight::{Answered, InFlight};
use crate::request::Request;
use intact_client::{Arrival, ResponseError};
use intact_ledger::{Failure, Nanos, Protocol, Side};
use intact_wire::http1::{
    Eof, Framing, Limits, Persistence, ResponseEvent, ResponseParser, Version,
};

/// The conversation.
pub(crate) struct Http1 {
    version: Protocol,
    parser: ResponseParser,
    pub(super) flight: Option<InFlight>,
    pub(super) announced_by: Option<Side>,
    /// Nothing more may be sent.
    pub(super) over: bool,
    /// The status of an answer that nobody had asked for.
    pub(super) unsolicited_status: Option<u16>,
}

impl Http1 {
    pub(super) fn new(version: Protocol) -> Http1 {
        Http1 {
            version,
            parser: ResponseParser::new(Limits::default()),
            flight: None,
            announced_by: None,
            over: false,
            unsolicited_status: None,
        }
    }

    pub(super) fn begin(&mut self, request: &Request, mut flight: InFlight, out: &mut Vec<u8>) {
        let bytes = request.http1(self.version);
        let body = request.body.map_or(0, str::len);
        flight.exchange.bytes.request_head = (bytes.len() - body) as u64;
        out.extend_from_slice(&bytes);
        self.parser.expect(request.kind());
        self.flight = Some(flight);
    }

    pub(super) fn receive(&mut self, mut bytes: &[u8], arrival: Arrival) -> Option<Answered> {
        if let Some(flight) = &mut self.flight {
            flight.hear(arrival);
        }
        loop {
            let step = match self.parser.parse(bytes) {
                Ok(step) => step,
                Err(error) => return self.fail(ResponseError::http1(error, bytes), arrival.read),
            };
            bytes = &bytes[step.consumed..];
            let event = step.event?;
            let Some(flight) = &mut self.flight else {
                // what comes unasked is noted, and the connection not trusted any more
                self.over = true;
                if let ResponseEvent::Head(head) = event {
                    self.unsolicited_status.get_or_insert(head.status());
                }
                continue;
            };
            let exchange = &mut flight.exchange;
            match event {
                ResponseEvent::Interim(head) => {
                    exchange.bytes.head += head.as_bytes().len() as u64;
                }
                ResponseEvent::Head(head) => {
                    exchange.bytes.head += head.as_bytes().len() as u64;
                    exchange.terms.timeout_s = head.keep_alive.timeout_s;
                    exchange.terms.max = head.keep_alive.max;
                    if let Framing::Length(length) = head.framing {
                        exchange.body.announced = Some(length);
                    }
                    if !head.persistent() {
                        self.announced_by.get_or_insert(Side::Server);
                        exchange.close_sent_by = Some(Side::Server);
                    }
                    flight.reply.response_version = Some(match head.version {
                        Version::Http10 => Protocol::Http10,
                        Version::Http11 => Protocol::Http11,
                    });
                    for (name, value) in head.headers() {
                        flight.reply.note(name, value);
                    }
                    flight.head(head.status(), arrival);
                }
                ResponseEvent::Body(piece) => {
                    exchange.bytes.body += piece.len() as u64;
                    flight.body(piece.len(), arrival);
                    flight.read_refusal(piece);
                }
                ResponseEvent::Trailers(_) => {}
                ResponseEvent::End(after) => {
                    let keeps = after == Persistence::Reuse && self.announced_by.is_none();
                    flight.reply.keeps = keeps;
                    self.over = !keeps || !bytes.is_empty();
                    return self.flight.take().map(|flight| flight.complete(arrival));
                }
            }
        }
    }

    fn fail(&mut self, broken: ResponseError, at: Nanos) -> Option<Answered> {
        self.over = true;
        let mut flight = self.flight.take()?;
        flight.exchange.detail = Some(broken.words);
        Some(flight.fail(broken.kind, at))
    }

    pub(super) fn end(&mut self, failure: Option<Failure>, at: Nanos) -> Option<Answered> {
        self.over = true;
        let flight = self.flight.take()?;
        if failure.is_none() && self.parser.finish() == Eof::Complete {
            return Some(flight.complete(Arrival::new(None, at)));
        }
        let kind = flight.cut_off(failure);
        Some(flight.fail(kind, at))
    }
}
