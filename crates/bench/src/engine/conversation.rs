//! What is spoken on one connection, without I/O: bytes and their times in, finished exchanges and bytes to send out.

use super::http1::Http1;
use crate::recipe::Recipe;
use ledger::{
    Close, ConnectionBytes, Ending, Exchange, Failure, Moment, Nanos, Setup, Side, Sink, Span,
};

/// When bytes reached us.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    /// When the kernel received them, or when they were read where it does not say.
    pub(crate) at: Nanos,
    /// When they were read.
    pub(crate) read: Nanos,
    /// Whether `at` is the kernel's.
    pub(crate) stamped: bool,
}

/// What a conversation can do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Exchanges are in flight, and no more fit.
    Busy,
    /// So many more exchanges may start.
    Ready(usize),
    /// It is over: nothing more may start and nothing is in flight.
    Over,
}

/// What was learnt of the end of a conversation.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ended {
    /// Who closed first.
    pub(crate) by: Option<Side>,
    /// What was seen.
    pub(crate) how: Option<Ending>,
}

/// HTTP/1 or HTTP/2 on one connection.
pub(crate) enum Conversation {
    /// HTTP/1.0 and 1.1.
    Http1(Box<Http1>),
}

impl Conversation {
    /// A conversation by the recipe's protocol; `blank` holds what its exchanges have in common.
    pub(crate) fn new(recipe: &Recipe, blank: Exchange) -> Conversation {
        Conversation::Http1(Box::new(Http1::new(recipe, blank)))
    }

    /// Begins an exchange that was wanted `at` and gives the bytes to send. `setup` is what a new connection took.
    #[inline]
    pub(crate) fn begin<'a>(
        &'a mut self,
        recipe: &'a Recipe,
        id: u64,
        at: Nanos,
        warmup: bool,
        setup: Option<&Setup>,
    ) -> &'a [u8] {
        match self {
            Conversation::Http1(http1) => {
                http1.begin(id, at, warmup, setup);
                &recipe.request.bytes
            }
        }
    }

    /// Notes when the request that was begun last was sent.
    #[inline]
    pub(crate) fn sent(&mut self, span: Span) {
        match self {
            Conversation::Http1(http1) => http1.sent(span),
        }
    }

    /// Bytes that the protocol itself wants sent (acknowledgements).
    #[inline]
    pub(crate) fn take_answer(&mut self) -> Vec<u8> {
        match self {
            Conversation::Http1(_) => Vec::new(),
        }
    }

    /// Exchanges begun so far.
    #[inline]
    pub(crate) fn exchanges(&self) -> u64 {
        match self {
            Conversation::Http1(http1) => http1.life().exchanges,
        }
    }

    /// Takes bytes; exchanges that they complete are recorded.
    #[inline]
    pub(crate) fn receive(&mut self, bytes: &[u8], arrival: Arrival, sink: &mut impl Sink) {
        match self {
            Conversation::Http1(http1) => http1.receive(bytes, arrival, sink),
        }
    }

    /// What can be done next.
    #[inline]
    pub(crate) fn state(&self) -> State {
        match self {
            Conversation::Http1(http1) => http1.state(),
        }
    }

    /// Takes the end of the stream, or its failure: whatever is in flight ends.
    pub(crate) fn end(&mut self, failure: Option<Failure>, at: Nanos, sink: &mut impl Sink) {
        match self {
            Conversation::Http1(http1) => http1.end(failure, at, sink),
        }
    }

    /// When the oldest exchange in flight was wanted.
    #[inline]
    pub(crate) fn oldest(&self) -> Option<Nanos> {
        match self {
            Conversation::Http1(http1) => http1.oldest(),
        }
    }

    /// Whether the end was announced and all is well, so that the peer is expected to close.
    pub(crate) fn awaits_fin(&self) -> bool {
        match self {
            Conversation::Http1(http1) => http1.awaits_fin(),
        }
    }

    /// How the connection ended, for the ledger.
    pub(crate) fn close(&self, ended: Ended, at: Nanos, bytes: ConnectionBytes) -> Close {
        let life = match self {
            Conversation::Http1(http1) => http1.life(),
        };
        Close {
            at,
            by: ended.by,
            how: ended.how,
            announced_by: life.announced_by,
            moment: Some(life.moment),
            exchanges: Some(life.exchanges),
            bytes,
            probes: ledger::Probes::default(),
        }
    }
}

/// What a conversation knows of its life.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Life {
    /// Who announced the end.
    pub(crate) announced_by: Option<Side>,
    /// Where in its life it is.
    pub(crate) moment: Moment,
    /// Exchanges started.
    pub(crate) exchanges: u64,
}
