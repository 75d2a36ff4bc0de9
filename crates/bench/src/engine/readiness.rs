//! The back end on readiness: epoll (or kqueue) through `mio`. Sockets are registered once,
//! edge-triggered; an exchange costs one receive and one send.

use super::backend::{Backend, Hint, Occurrence, RESOLVER, Wait};
use crate::machine;
use intact_client::clock::TimestampConverter;
use intact_client::{Clock, Dial, HttpConnection, Received};
use intact_ledger::Sink;
use mio::event::Event;
use mio::{Events, Poll, Registry, Token, Waker};
use std::io;
use std::time::Duration;

/// Bytes read at once.
const BUFFER: usize = 256 * 1024;

/// A poll, its events, and the buffer that all connections of the thread are read into.
pub(crate) struct Readiness {
    poll: Poll,
    events: Events,
    occurred: Vec<Occurrence>,
    next: usize,
    buffer: Vec<u8>,
}

impl Readiness {
    pub(crate) fn new() -> io::Result<Readiness> {
        Ok(Readiness {
            poll: Poll::new()?,
            events: Events::with_capacity(1024),
            occurred: Vec::with_capacity(1024),
            next: 0,
            buffer: vec![0; BUFFER],
        })
    }

    /// Wakes the poll up from another thread; [`RESOLVER`] is its token.
    pub(crate) fn waker(&self) -> io::Result<Waker> {
        Waker::new(self.poll.registry(), RESOLVER)
    }

    /// The poll, for a back end that waits for its waker only.
    #[cfg(target_os = "linux")]
    pub(crate) fn poll_mut(&mut self) -> &mut Poll {
        &mut self.poll
    }

    fn poll_once(&mut self, limit: Duration, is_precise: bool) -> io::Result<()> {
        if is_precise && !limit.is_zero() {
            if !machine::wait_readable(&self.poll, limit)? {
                self.events.clear();
                return Ok(());
            }
            return self.poll.poll(&mut self.events, Some(Duration::ZERO));
        }
        self.poll.poll(&mut self.events, Some(limit))
    }
}

impl Backend for Readiness {
    fn wait(&mut self, wait: Wait) -> io::Result<()> {
        let mut limit = wait.limit;
        if let Some(pause) = wait.pause {
            std::thread::sleep(pause);
            limit = limit.saturating_sub(pause);
        }
        self.poll_once(limit, wait.is_precise)?;
        self.occurred.clear();
        self.next = 0;
        self.occurred.extend(self.events.iter().map(occurrence));
        Ok(())
    }

    fn counts_a_batch(&self) -> bool {
        false
    }

    #[inline]
    fn next_occurrence(&mut self) -> Option<Occurrence> {
        let next = self.occurred.get(self.next).copied();
        self.next += 1;
        next
    }

    fn registry(&self) -> Option<&Registry> {
        Some(self.poll.registry())
    }

    // the registry of the dial watches for all that follows, on the open connection too

    fn watch_dial(&mut self, _: Token, _: &Dial) {}

    fn open(&mut self, _: Token, _: &HttpConnection) {}

    fn watch_unsent(&mut self, _: Token, _: &HttpConnection) {}

    /// Closing the descriptor takes it out of the poll.
    fn forget(&mut self, _: Token) {}

    #[inline]
    fn receive(
        &mut self,
        _: Token,
        connection: &mut HttpConnection,
        clock: &Clock,
        bridge: &TimestampConverter,
        sink: &mut impl Sink,
    ) -> Received {
        connection.receive(&mut self.buffer, clock, bridge, sink)
    }

    /// A short read of a stream has emptied the socket, and what comes later is a new edge. On
    /// Windows `mio` watches a socket again only after a read that found nothing.
    #[inline]
    fn may_have_more(&self, connection: &HttpConnection, count: usize) -> bool {
        cfg!(windows) || !connection.has_read_all(count, self.buffer.len())
    }
}

fn occurrence(event: &Event) -> Occurrence {
    let has_error = event.is_error() || event.is_write_closed();
    Occurrence {
        token: event.token(),
        is_connected: event.is_writable() && !has_error,
        closed: match event.is_read_closed() {
            false => Hint::Open,
            // EPOLLRDHUP alone; other systems do not report an error as reliably
            true if cfg!(target_os = "linux") && !has_error => Hint::Fin,
            true => Hint::Unclear,
        },
    }
}
