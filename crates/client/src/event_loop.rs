//! An event loop for callers outside the load engine: the probes of `check`, calls before a run,
//! and the outgoing calls of `serve`. `bench` has a loop of its own, for many connections at once.

use crate::clock::TimestampConverter;
use crate::{
    Clock, Dial, Established, HttpConnection, LookupResult, Plan, Progress, Received, Resolver,
};
use intact_ledger::{Connection, ConnectionId, Failure, Lookup, Nanos, Sink};
use mio::{Events, Poll, Token, Waker};
use std::io;
use std::iter;
use std::sync::Arc;

/// The size of the read buffer, in bytes.
const BUFFER: usize = 64 * 1024;
/// The token of the resolver's waker.
const RESOLVER: Token = Token(usize::MAX);
/// Reads of a connection in one call.
const READS_PER_TURN: u32 = 4;

/// The loop, with the resolver and the buffer that its connections share.
pub struct EventLoop {
    clock: Clock,
    poll: Poll,
    events: Events,
    resolver: Resolver,
    buffer: Vec<u8>,
}

/// A dial in progress.
pub struct PendingDial {
    dial: Dial,
    progress: Progress,
    id: u64,
}

impl EventLoop {
    /// A loop without connections.
    ///
    /// # Errors
    /// If the kernel has no room for it.
    pub fn new(clock: Clock) -> io::Result<EventLoop> {
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), RESOLVER)?;
        Ok(EventLoop {
            clock,
            events: Events::with_capacity(64),
            resolver: Resolver::new(waker),
            buffer: vec![0; BUFFER],
            poll,
        })
    }

    /// Opens a connection, and waits until it is open or its dial failed, until this time at most.
    /// The inner error is the record of a failed dial.
    ///
    /// # Errors
    /// Those of [`EventLoop::wait`].
    pub fn open(
        &mut self,
        plan: &Arc<Plan>,
        id: u64,
        until: Nanos,
    ) -> io::Result<Result<Box<Established>, Box<Connection>>> {
        let mut pending = self.dial(plan, id);
        loop {
            match pending.take_progress() {
                Progress::Pending => {}
                Progress::Established(established) => return Ok(Ok(established)),
                Progress::Failed(connection) => return Ok(Err(connection)),
            }
            if self.clock.now() >= until {
                return Ok(Err(pending.give_up(Failure::Timeout)));
            }
            self.wait(pending.timer().map_or(until, |timer| timer.min(until)))?;
            self.advance([&mut pending]);
        }
    }

    /// Starts a dial. `id` becomes that of the connection; no other dial of this loop has it.
    pub fn dial(&mut self, plan: &Arc<Plan>, id: u64) -> PendingDial {
        let (dial, progress) = Dial::start(
            plan,
            ConnectionId(id),
            Token(id as usize),
            &mut self.resolver,
            Some(self.poll.registry()),
            &self.clock,
        );
        PendingDial { dial, progress, id }
    }

    /// Advances dials by the events of the last wait and by their timers.
    pub fn advance<'a>(&mut self, dials: impl IntoIterator<Item = &'a mut PendingDial>) {
        // lookups of abandoned dials also end here
        let mut answers: Vec<LookupResult> = iter::from_fn(|| self.resolver.answer()).collect();
        let registry = Some(self.poll.registry());
        for pending in dials {
            let token = Token(pending.id as usize);
            let is_due = |timer| timer <= self.clock.now();
            let has_event = self.events.iter().any(|event| event.token() == token);
            if has_event || pending.dial.timer().is_some_and(is_due) {
                pending.progress = pending.dial.ready(registry);
            }
            let place = answers.iter().position(|answer| answer.key == pending.id);
            if let Some(answer) = place.map(|place| answers.swap_remove(place)) {
                pending.progress = pending.dial.resolved(answer, registry);
            }
        }
    }

    /// Waits for the next event, until this time at most.
    ///
    /// # Errors
    /// Those of epoll_wait(2), without EINTR.
    pub fn wait(&mut self, until: Nanos) -> io::Result<()> {
        let timeout = self.clock.until(until);
        match self.poll.poll(&mut self.events, Some(timeout)) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
            _ => Ok(()),
        }
    }

    /// Ids of the dials and connections that the last wait had events of.
    pub fn ready(&self) -> Vec<u64> {
        let tokens = self.events.iter().map(|event| event.token().0 as u64);
        tokens.collect()
    }

    /// Ends a wait from another thread.
    pub fn waker(&self) -> Arc<Waker> {
        self.resolver.waker()
    }

    /// Sends the bytes that wait. An error shows in the next read, after the bytes that the server
    /// sent before.
    pub fn send(&self, http: &mut HttpConnection) {
        let _ = http.send(&self.clock);
        http.flush();
    }

    /// Reads and sends without waiting. Reads a limited number of times, so that the caller can
    /// look at its deadline: a server may never stop sending. Returns whether there may be more.
    pub fn read(&mut self, http: &mut HttpConnection, sink: &mut impl Sink) -> bool {
        http.flush();
        http.receive_buffered(&self.clock, sink);
        let mut reads = 0;
        while reads < READS_PER_TURN && (http.ended().is_none() || http.awaits_server()) {
            let timestamps = TimestampConverter::read(&self.clock);
            match http.receive(&mut self.buffer, &self.clock, &timestamps, sink) {
                Received::Bytes { .. } => reads += 1,
                Received::Nothing | Received::Ended => break,
            }
        }
        self.send(http);
        if http.ended().is_some() {
            http.give_up(None, self.clock.now(), sink);
        }
        reads == READS_PER_TURN
    }
}

impl PendingDial {
    /// The progress since the last call.
    pub fn take_progress(&mut self) -> Progress {
        std::mem::replace(&mut self.progress, Progress::Pending)
    }

    /// The lookup of the dial; returned once.
    pub fn take_lookup(&mut self) -> Option<Lookup> {
        self.dial.take_lookup()
    }

    /// When [`EventLoop::advance`] has to be called without an event.
    pub fn timer(&mut self) -> Option<Nanos> {
        self.dial.timer()
    }

    /// Abandons the dial, and returns its record.
    pub fn give_up(mut self, kind: Failure) -> Box<Connection> {
        self.dial.give_up(kind)
    }
}
