//! Parses and writes the protocols that `intact` uses and observes, without sockets, clocks or
//! threads.
//!
//! Each module is a push parser. Each call takes any bytes, and returns the number of consumed
//! bytes and at most one event. So the events do not depend on how the bytes are split. Time comes
//! from the caller. All bytes are foreign input: memory is bounded, and no input causes a panic.

pub mod dns;
mod error_codes;
pub mod exchange;
pub mod grpc;
pub mod h2;
pub mod h3;
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
        self.pick(Side::Server, Side::Client)
    }

    /// What belongs to this end.
    pub fn pick<T>(self, client: T, server: T) -> T {
        let (own, _) = self.order(client, server);
        own
    }

    /// What belongs to this end, then what belongs to its peer.
    pub fn order<T>(self, client: T, server: T) -> (T, T) {
        match self {
            Side::Client => (client, server),
            Side::Server => (server, client),
        }
    }
}

/// The result of one call of a parser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParseStep<E> {
    /// Number of consumed bytes; pass the rest again.
    pub consumed: usize,
    /// The event. `None` ends the caller's loop: the whole input was consumed, or the rest belongs
    /// to a tunnel.
    pub event: Option<E>,
}
