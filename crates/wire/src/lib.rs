//! Bytes in, events out: the protocols that `intact` speaks and observes, without sockets, clocks or threads.
//!
//! Each module is a push parser: the caller hands over whatever bytes it has, is told how many were used and gets
//! at most one event a call, so any split of the bytes gives the same events. Time enters only where a caller
//! supplies it. Every byte is foreign: memory is bounded, and no input panics.

pub mod dns;
pub mod exchange;
pub mod h2;
pub mod http1;
pub mod pcapng;
pub mod quic;
pub mod tcp;
pub mod tls;

/// One end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// The end that opened it.
    Client,
    /// The end that accepted it.
    Server,
}

impl Side {
    /// The peer of this end.
    pub fn other(self) -> Side {
        match self {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        }
    }
}

/// What one call of a parser did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParseStep<E> {
    /// How many bytes of the input were used; hand the rest in again.
    pub consumed: usize,
    /// What they meant. `None` ends the caller's loop: the whole input was used, or the rest belongs to a tunnel.
    pub event: Option<E>,
}

impl<E> ParseStep<E> {
    fn map_into<F: From<E>>(self) -> ParseStep<F> {
        ParseStep {
            consumed: self.consumed,
            event: self.event.map(F::from),
        }
    }
}
