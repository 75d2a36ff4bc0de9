//! The back end on completions: io_uring. One receive per connection is started once; the kernel
//! then fills buffers as data arrives, with receive timestamps, and an exchange costs one send.
//!
//! A ring belongs to one thread, and each round has threads of its own: so a ring lives as long as
//! its round.

use super::backend::{Backend, Hint, Occurrence, RESOLVER, Wait};
use intact_client::clock::TimestampConverter;
use intact_client::{Clock, Dial, HttpConnection, Received, Stream};
use intact_ledger::Sink;
use intact_sys::uring::{Batch, Completion as Completed, KEY_BITS, Ring, Sizes};
use mio::{Events, Interest, Poll, Registry, Token};
use std::io;
use std::os::fd::AsRawFd;
use std::time::Duration;

/// Bytes that one completion carries at most: a TLS record.
const BUFFER: usize = 16 * 1024 + 256;
/// Receive buffers for each connection, and their bounds: too few make receives pause, too many do
/// not fit into the cache.
const BUFFERS_EACH: usize = 2;
const LEAST_BUFFERS: usize = 64;
const MOST_BUFFERS: usize = 512;
/// Completions that fit, for each connection.
const COMPLETIONS_EACH: usize = 2;
/// The key of the resolver's waker.
const RESOLVER_KEY: u64 = (1 << KEY_BITS) - 1;

/// The data that the last occurrence brought, until it is received.
#[derive(Clone, Copy)]
enum Arrived {
    Data { continues: bool },
    Paused,
    End,
    Failed,
}

/// A ring, and the poll that the resolver's waker wakes up.
pub(crate) struct Completion<'a> {
    ring: Ring,
    waker: &'a mut Poll,
    woken: Events,
    arrived: Option<Arrived>,
    /// What failed since the last wait.
    error: Option<io::Error>,
}

impl<'a> Completion<'a> {
    /// A ring for `connections`.
    ///
    /// # Errors
    /// If there is none here, which the start of the bench would have found out.
    pub(crate) fn new(connections: usize, waker: &'a mut Poll) -> io::Result<Completion<'a>> {
        let buffers = (connections * BUFFERS_EACH).clamp(LEAST_BUFFERS, MOST_BUFFERS);
        let sizes = Sizes {
            completions: (connections * COMPLETIONS_EACH).next_power_of_two() as u32,
            buffers: buffers as u16,
            buffer: BUFFER,
        };
        let mut completion = Completion {
            ring: Ring::new(sizes).map_err(io::Error::other)?,
            waker,
            woken: Events::with_capacity(1),
            arrived: None,
            error: None,
        };
        completion.watch_waker();
        Ok(completion)
    }

    fn watch_waker(&mut self) {
        let descriptor = self.waker.as_raw_fd();
        let polled = self.ring.poll(descriptor, READABLE, RESOLVER_KEY);
        self.note(polled);
    }

    /// Keeps a failure for the next wait, which can report it.
    fn note(&mut self, done: io::Result<()>) {
        if let Err(error) = done {
            self.error.get_or_insert(error);
        }
    }

    fn watch(&mut self, token: Token, stream: &Stream, interest: Interest) {
        let mut events = 0;
        if interest.is_readable() {
            events |= READABLE;
        }
        if interest.is_writable() {
            events |= WRITABLE;
        }
        let polled = self.ring.poll(stream.as_raw_fd(), events, key_of(token));
        self.note(polled);
    }

    fn resume(&mut self, token: Token, connection: &HttpConnection) {
        let stream = connection.stream().ok_or_else(no_stream);
        let begun = stream.and_then(|stream| self.ring.resume(stream, key_of(token)));
        self.note(begun);
    }
}

impl Backend for Completion<'_> {
    fn wait(&mut self, wait: Wait) -> io::Result<()> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        let mut limit = wait.limit;
        let batch = match wait.pause {
            Some(pause) if self.ring.can_batch() => Some(Batch {
                completions: wait.batch,
                pause,
            }),
            Some(pause) => {
                std::thread::sleep(pause);
                limit = limit.saturating_sub(pause);
                None
            }
            None => None,
        };
        self.ring.wait(limit, batch)
    }

    fn counts_a_batch(&self) -> bool {
        self.ring.can_batch()
    }

    #[inline]
    fn next_occurrence(&mut self) -> Option<Occurrence> {
        let mut is_connected = false;
        self.arrived = None;
        let key = match self.ring.next_completion()? {
            Completed::Received { key, continues } => {
                self.arrived = Some(Arrived::Data { continues });
                key
            }
            Completed::Paused { key } => {
                self.arrived = Some(Arrived::Paused);
                key
            }
            Completed::End { key } => {
                self.arrived = Some(Arrived::End);
                key
            }
            Completed::Failed { key, .. } => {
                self.arrived = Some(Arrived::Failed);
                key
            }
            Completed::Ready { key, events } => {
                is_connected = events & WRITABLE != 0 && events & FAILED == 0;
                key
            }
        };
        if key == RESOLVER_KEY {
            // takes the event out of the poll, which would be ready at once otherwise
            let polled = self.waker.poll(&mut self.woken, Some(Duration::ZERO));
            self.note(polled);
            self.watch_waker();
        }
        Some(Occurrence {
            token: token_of(key),
            is_connected,
            closed: Hint::Open,
        })
    }

    fn registry(&self) -> Option<&Registry> {
        None
    }

    fn watch_dial(&mut self, token: Token, dial: &Dial) {
        if let Some((stream, interest)) = dial.awaited() {
            self.watch(token, stream, interest);
        }
    }

    fn open(&mut self, token: Token, connection: &HttpConnection) {
        let stream = connection.stream().ok_or_else(no_stream);
        let begun = stream.and_then(|stream| self.ring.receive(stream, key_of(token)));
        self.note(begun);
    }

    #[inline]
    fn receive(
        &mut self,
        token: Token,
        connection: &mut HttpConnection,
        clock: &Clock,
        bridge: &TimestampConverter,
        sink: &mut impl Sink,
    ) -> Received {
        match self.arrived.take() {
            None => Received::Nothing,
            Some(Arrived::Data { continues }) => {
                let (bytes, stamp) = self.ring.payload().unwrap_or_default();
                let received = connection.take_received(bytes, stamp, clock, bridge, sink);
                if !continues {
                    self.resume(token, connection);
                }
                received
            }
            Some(Arrived::Paused) => {
                self.resume(token, connection);
                Received::Nothing
            }
            Some(Arrived::End) => {
                connection.end_by_fin(clock.now(), sink);
                Received::Ended
            }
            Some(Arrived::Failed) => {
                connection.end_by_reset(clock.now(), sink);
                Received::Ended
            }
        }
    }

    /// The next data is another occurrence.
    #[inline]
    fn may_have_more(&self, _: &HttpConnection, _: usize) -> bool {
        false
    }

    fn watch_unsent(&mut self, token: Token, connection: &HttpConnection) {
        if !self.ring.is_polling(key_of(token))
            && let Some(stream) = connection.stream()
        {
            self.watch(token, stream, Interest::WRITABLE);
        }
    }

    fn forget(&mut self, token: Token) {
        let forgotten = self.ring.forget(key_of(token));
        self.note(forgotten);
    }
}

/// The choice of the back end has let QUIC through.
fn no_stream() -> io::Error {
    let words = "io_uring got a QUIC connection: this is a bug of intact, please report it";
    io::Error::new(io::ErrorKind::Unsupported, words)
}

// the bits of poll(2)
const READABLE: u32 = 0x1;
const WRITABLE: u32 = 0x4;
/// POLLERR, POLLHUP.
const FAILED: u32 = 0x8 | 0x10;

/// Tokens of slots fit: their generations have fewer bits.
fn key_of(token: Token) -> u64 {
    token.0 as u64
}

fn token_of(key: u64) -> Token {
    match key {
        RESOLVER_KEY => RESOLVER,
        key => Token(key as usize),
    }
}
