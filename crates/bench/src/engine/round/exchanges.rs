//! Exchanges on open connections: what is sent, what is read, how connections end.

use super::{Round, token_of};
use crate::engine::backend::{Backend, Hint};
use crate::engine::slot::{Phase, next_generation};
use crate::recorder::Seen;
use intact_client::clock::TimestampConverter;
use intact_client::{Due, HttpConnection, Received, State};
use intact_ledger::{Event, Exchange, Nanos, Sink};
use mio::Token;
use std::io;

/// How often in a row a connection that waits for the server is read, before it is closed.
const UNSOLICITED: u32 = 16;
/// Reads of one connection in a turn of the loop. Then the other connections, the deadlines and
/// Ctrl-C have their turn.
const READS_PER_TURN: u32 = 4;
/// Events in a row on a connection that moved no byte and changed nothing: more are a fault, not a
/// late wake-up.
pub(super) const MOST_IDLE_TURNS: u32 = 10_000;

impl<B: Backend> Round<'_, B> {
    pub(super) fn record_exchange(&mut self, exchange: &Exchange) {
        self.engine.recorder.record(Event::Exchange(exchange));
    }

    /// Whether exchanges are in flight on the slot's connection.
    pub(super) fn is_busy(&self, index: usize) -> bool {
        match &self.slots[index].phase {
            Phase::Open(open) => open.oldest().is_some(),
            Phase::Dialing(..) | Phase::Vacant | Phase::Done => false,
        }
    }

    /// Begins an exchange on the slot's open connection; [`Round::send`] sends it.
    #[inline]
    pub(super) fn exchange(&mut self, index: usize, due: Due) {
        let id = self.engine.id();
        let warmup = self.task.round == 0;
        let slot = &mut self.slots[index];
        if let Phase::Open(open) = &mut slot.phase {
            open.begin(
                &slot.variant_plan.next_request(&mut self.turn, warmup),
                id,
                due,
                warmup,
            );
        }
    }

    /// Sends what has gathered on the slot's connection. Returns the time after it; `now` if there
    /// was nothing to send.
    #[inline]
    pub(super) fn send(&mut self, index: usize, now: Nanos) -> Nanos {
        let slot = &mut self.slots[index];
        let Phase::Open(open) = &mut slot.phase else {
            return now;
        };
        let sent = open.send(&self.engine.clock);
        if open.has_unsent() {
            let token = token_of(index, slot.generation);
            self.backend.watch_unsent(token, open);
        }
        let error = match sent {
            Ok(at) => {
                // the next request on it waits for a client that was slow to send this one
                slot.late += at.map_or(0, |at| at.since(now));
                return at.unwrap_or(now);
            }
            Err(error) => error,
        };
        let now = self.engine.clock.now();
        // the answer to why may still be there to be read; if not, the next event ends it
        if error.kind() != io::ErrorKind::BrokenPipe {
            open.end_by_reset(now, &mut self.engine.recorder);
        }
        now
    }

    /// Reads what has arrived and starts the next exchange. If the peer sends as fast as the engine
    /// reads, the rest waits for the next turn.
    pub(super) fn drive_open(&mut self, index: usize, closed: Hint, bridge: &TimestampConverter) {
        self.count();
        let token = self.token(index);
        let slot = &mut self.slots[index];
        let Phase::Open(open) = &mut slot.phase else {
            return;
        };
        let engine = &mut *self.engine;
        let before = open.moved();
        let was_busy = open.state() == State::Busy;
        open.flush();
        let (mut reads, mut has_ended) = (0, false);
        let more = loop {
            let received =
                self.backend
                    .receive(token, open, &engine.clock, bridge, &mut engine.recorder);
            let (count, read) = match received {
                Received::Bytes { count, at } => (count, at),
                Received::Nothing => break false,
                Received::Ended => {
                    has_ended = true;
                    break false;
                }
            };
            let has_more = self.backend.may_have_more(open, count);
            match closed {
                Hint::Open if !has_more => break false,
                Hint::Fin if !has_more => {
                    open.end_by_fin(read, &mut engine.recorder);
                    break false;
                }
                Hint::Open | Hint::Fin | Hint::Unclear => {}
            }
            reads += 1;
            if reads >= READS_PER_TURN {
                break true;
            }
        };
        // TLS may have something to say of its own
        open.flush();
        if open.has_unsent() {
            self.backend.watch_unsent(token, open);
        }
        if has_ended || open.moved() > before {
            slot.idle_turns = 0;
        } else {
            slot.idle_turns += 1;
            if slot.idle_turns > MOST_IDLE_TURNS {
                let now = engine.clock.now();
                open.give_up_idle_turns(slot.idle_turns, now, &mut engine.recorder);
            }
        }
        let seen = engine.recorder.take_seen();
        if seen.exchanges > 0
            && let Some(cache) = &slot.variant_plan.cache
        {
            cache.store(&slot.variant_plan.request, &open.take_response());
        }
        if let Some(end) = seen.last_end.filter(|_| was_busy) {
            slot.free_since = end;
        }
        if was_busy && seen.exchanges > 0 && slot.variant_plan.life.pause.is_some() {
            slot.pauses_since = Some(engine.clock.now());
        }
        self.add(seen);
        if more {
            let generation = self.slots[index].generation;
            self.unfinished.push((index, generation, closed));
        }
        self.received.push(index);
    }

    /// Goes on with the connections that had more to read than one turn takes.
    pub(super) fn continue_reading(&mut self, bridge: &TimestampConverter) {
        for (index, generation, closed) in std::mem::take(&mut self.unfinished) {
            // a connection that was put away meanwhile has no use for its bytes
            if self.slots[index].generation == generation {
                self.drive_open(index, closed, bridge);
            }
        }
    }

    /// Counts what was recorded since the last call.
    pub(super) fn count(&mut self) {
        let seen = self.engine.recorder.take_seen();
        self.add(seen);
    }

    fn add(&mut self, seen: Seen) {
        self.exchanges += seen.exchanges;
        if let (Some(span), Some(end)) = (&mut self.measured, seen.last_end) {
            span.end = span.end.max(end);
        }
    }

    /// Takes a connection out of its slot: closed at once, or left to wait for the server.
    pub(super) fn put_away(&mut self, index: usize, now: Nanos) {
        let token = self.token(index);
        let slot = &mut self.slots[index];
        let Phase::Open(mut open) = std::mem::replace(&mut slot.phase, Phase::Vacant) else {
            return;
        };
        slot.generation = next_generation(slot.generation);
        slot.timer = None;
        if open.awaits_server() {
            // QUIC ends its handshake; if that fails, the next event of the connection shows it
            let _ = open.send(&self.engine.clock);
            self.lingering.insert(token, (open, now));
        } else {
            self.close(token, *open, now);
        }
    }

    pub(super) fn close(&mut self, token: Token, open: HttpConnection, now: Nanos) {
        self.backend.forget(token);
        if self.task.variant_plan.plan.socket.fast_open {
            self.with_syn += u64::from(open.sent_with_syn() == Some(true));
        }
        // one that failed in its handshake never was open
        let has_failed = open.connection().failed.is_some();
        let closed = open.close(now);
        if !has_failed {
            self.engine.recorder.record(Event::Closed(&closed));
        }
    }

    pub(super) fn drive_lingering(&mut self, token: Token, bridge: &TimestampConverter) {
        let Some((open, _)) = self.lingering.get_mut(&token) else {
            return;
        };
        let engine = &mut *self.engine;
        for _ in 0..UNSOLICITED {
            // nothing is in flight, so nothing is recorded
            let recorder = &mut engine.recorder;
            let received = self
                .backend
                .receive(token, open, &engine.clock, bridge, recorder);
            match received {
                // it may have waited for a session only
                Received::Bytes { .. } if !open.awaits_server() => break,
                Received::Bytes { .. } => {}
                Received::Nothing => return,
                Received::Ended => break,
            }
        }
        if let Some((open, _)) = self.lingering.remove(&token) {
            let now = self.engine.clock.now();
            self.close(token, *open, now);
        }
    }
}
