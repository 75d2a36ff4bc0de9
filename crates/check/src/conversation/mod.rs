//! What is spoken on one connection, without I/O: bytes and their times in, answers and bytes to send out. One exchange at a time.

mod flight;
mod http1;
mod http2;

#[cfg(test)]
pub(crate) use flight::Reply;
pub(crate) use flight::{Answered, Arrival, Flight};
pub(crate) use http2::Settings;

use crate::request::Request;
use http1::Http1;
use http2::Http2;
use ledger::{Failure, Nanos, Protocol, Side};

/// HTTP/1 or HTTP/2.
pub(crate) enum Conversation {
    Http1(Box<Http1>),
    Http2(Box<Http2>),
}

impl Conversation {
    /// A conversation; what has to be said first goes to `out`.
    pub(crate) fn new(protocol: Protocol, out: &mut Vec<u8>) -> Conversation {
        match protocol {
            Protocol::Http2 => Conversation::Http2(Box::new(Http2::new(out))),
            version => Conversation::Http1(Box::new(Http1::new(version))),
        }
    }

    /// Begins an exchange; what has to be sent goes to `out`.
    pub(crate) fn begin(&mut self, request: &Request, flight: Flight, out: &mut Vec<u8>) {
        match self {
            Conversation::Http1(one) => one.begin(request, flight, out),
            Conversation::Http2(two) => two.begin(request, flight, out),
        }
    }

    /// Notes that the request is with the kernel.
    pub(crate) fn sent(&mut self, at: Nanos) {
        let flight = match self {
            Conversation::Http1(one) => &mut one.flight,
            Conversation::Http2(two) => &mut two.flight,
        };
        if let Some(flight) = flight {
            flight.sent(at);
        }
    }

    /// Takes bytes that arrived; the answer, if they completed one.
    pub(crate) fn receive(
        &mut self,
        bytes: &[u8],
        arrival: Arrival,
        out: &mut Vec<u8>,
    ) -> Option<Answered> {
        match self {
            Conversation::Http1(one) => one.receive(bytes, arrival),
            Conversation::Http2(two) => two.receive(bytes, arrival, out),
        }
    }

    /// The stream ended, with or without an error; what became of the exchange in flight.
    pub(crate) fn end(&mut self, failure: Option<Failure>, at: Nanos) -> Option<Answered> {
        match self {
            Conversation::Http1(one) => one.end(failure, at),
            Conversation::Http2(two) => two.end(failure, at),
        }
    }

    /// Whether an exchange is in flight.
    pub(crate) fn is_busy(&self) -> bool {
        match self {
            Conversation::Http1(one) => one.flight.is_some(),
            Conversation::Http2(two) => two.flight.is_some(),
        }
    }

    /// Whether it is over: nothing more may begin.
    pub(crate) fn is_over(&self) -> bool {
        match self {
            Conversation::Http1(one) => one.over,
            Conversation::Http2(two) => two.over,
        }
    }

    /// Who announced the end.
    pub(crate) fn announced_by(&self) -> Option<Side> {
        match self {
            Conversation::Http1(one) => one.announced_by,
            Conversation::Http2(two) => two.goaway_at.map(|_| Side::Server),
        }
    }

    /// When GOAWAY came.
    pub(crate) fn goaway_at(&self) -> Option<Nanos> {
        match self {
            Conversation::Http1(_) => None,
            Conversation::Http2(two) => two.goaway_at,
        }
    }

    /// The status of an answer that nobody had asked for.
    pub(crate) fn unasked(&self) -> Option<u16> {
        match self {
            Conversation::Http1(one) => one.unasked,
            Conversation::Http2(_) => None,
        }
    }

    /// The server's SETTINGS as sent, if it is HTTP/2.
    pub(crate) fn settings(&self) -> Option<&Settings> {
        match self {
            Conversation::Http1(_) => None,
            Conversation::Http2(two) => Some(&two.told),
        }
    }

    /// The last words before we close.
    pub(crate) fn goodbye(&self, out: &mut Vec<u8>) {
        if let Conversation::Http2(_) = self {
            http2::goodbye(out);
        }
    }
}
