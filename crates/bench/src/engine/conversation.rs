//! What is spoken on one connection, without I/O: bytes and their times in, finished exchanges and bytes to send out.

use super::http1::Http1;
use super::http2::Http2;
use crate::variant_plan::VariantPlan;
use intact_client::Arrival;
use intact_ledger::{
    Close, CloseKind, ClosePoint, ConnectionBytes, Exchange, Failure, Nanos, Protocol, Setup, Side,
    Sink,
};

/// What a conversation can do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Exchanges are in flight, and no more fit.
    Busy,
    /// Another exchange may begin.
    Ready,
    /// It is over: nothing more may begin and nothing is in flight.
    Over,
}

/// What was learnt of the end of a conversation.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ended {
    /// Who closed first.
    pub(crate) by: Option<Side>,
    /// What was seen.
    pub(crate) how: Option<CloseKind>,
}

/// What a conversation knows of its life.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionStats {
    /// Who announced the end.
    pub(crate) announced_by: Option<Side>,
    /// Where in its life it is.
    pub(crate) moment: ClosePoint,
    /// Exchanges begun.
    pub(crate) exchanges: u64,
}

/// HTTP/1 or HTTP/2 on one connection.
pub(crate) enum BenchConnection {
    /// HTTP/1.0 and 1.1.
    Http1(Box<Http1>),
    /// HTTP/2.
    Http2(Box<Http2>),
}

impl BenchConnection {
    /// A conversation by the recipe's protocol; `blank` holds what its exchanges have in common. What has to be said first goes to `out`.
    pub(crate) fn new(recipe: &VariantPlan, blank: Exchange, out: &mut Vec<u8>) -> BenchConnection {
        match recipe.plan.protocol {
            Protocol::Http2 => BenchConnection::Http2(Box::new(Http2::new(recipe, blank, out))),
            _ => BenchConnection::Http1(Box::new(Http1::new(recipe, blank))),
        }
    }

    /// Begins an exchange that was wanted `at`; what has to be sent goes to `out`. `setup` is what a new connection took.
    #[inline]
    pub(crate) fn begin(
        &mut self,
        recipe: &VariantPlan,
        id: u64,
        at: Nanos,
        warmup: bool,
        setup: Option<&Setup>,
        out: &mut Vec<u8>,
    ) {
        match self {
            BenchConnection::Http1(http1) => {
                http1.begin(id, at, warmup, setup);
                out.extend_from_slice(&recipe.request.bytes);
            }
            BenchConnection::Http2(http2) => http2.begin(recipe, id, at, warmup, setup, out),
        }
    }

    /// Notes that what was begun so far is with the kernel.
    #[inline]
    pub(crate) fn sent(&mut self, at: Nanos) {
        match self {
            BenchConnection::Http1(http1) => http1.sent(at),
            BenchConnection::Http2(http2) => http2.sent(at),
        }
    }

    /// Takes bytes; exchanges that they complete are recorded, what the protocol wants answered goes to `out`.
    #[inline]
    pub(crate) fn receive(
        &mut self,
        bytes: &[u8],
        arrival: Arrival,
        sink: &mut impl Sink,
        out: &mut Vec<u8>,
    ) {
        match self {
            BenchConnection::Http1(http1) => http1.receive(bytes, arrival, sink),
            BenchConnection::Http2(http2) => http2.receive(bytes, arrival, sink, out),
        }
    }

    /// What can be done next.
    #[inline]
    pub(crate) fn state(&self) -> State {
        match self {
            BenchConnection::Http1(http1) => http1.state(),
            BenchConnection::Http2(http2) => http2.state(),
        }
    }

    /// Takes the end of the stream, or its failure: whatever is in flight ends.
    pub(crate) fn end(&mut self, failure: Option<Failure>, at: Nanos, sink: &mut impl Sink) {
        match self {
            BenchConnection::Http1(http1) => http1.end(failure, at, sink),
            BenchConnection::Http2(http2) => http2.end(failure, at, sink),
        }
    }

    /// When the oldest exchange in flight was wanted.
    #[inline]
    pub(crate) fn oldest(&self) -> Option<Nanos> {
        match self {
            BenchConnection::Http1(http1) => http1.oldest(),
            BenchConnection::Http2(http2) => http2.oldest(),
        }
    }

    /// What it knows of its life.
    #[inline]
    pub(crate) fn life(&self) -> ConnectionStats {
        match self {
            BenchConnection::Http1(http1) => http1.life(),
            BenchConnection::Http2(http2) => http2.life(),
        }
    }

    /// Whether the end was announced in a way that makes the server close, and all is well.
    pub(crate) fn awaits_fin(&self) -> bool {
        let life = self.life();
        let server_closes = match self {
            BenchConnection::Http1(_) => life.announced_by.is_some(),
            BenchConnection::Http2(_) => life.announced_by == Some(Side::Server),
        };
        server_closes && life.moment == ClosePoint::AfterExchange
    }

    /// What is said before we close.
    pub(crate) fn goodbye(&self, out: &mut Vec<u8>) {
        if let BenchConnection::Http2(http2) = self {
            http2.goodbye(out);
        }
    }

    /// How the connection ended, for the ledger.
    pub(crate) fn close(&self, ended: Ended, at: Nanos, bytes: ConnectionBytes) -> Close {
        let life = self.life();
        Close {
            at,
            by: ended.by,
            how: ended.how,
            announced_by: life.announced_by,
            moment: Some(life.moment),
            exchanges: Some(life.exchanges),
            bytes,
            probes: intact_ledger::Probes::default(),
        }
    }
}
