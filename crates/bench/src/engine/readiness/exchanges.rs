//! Exchanges on open connections: what is sent, what is read, how connections end.

use super::Round;
use super::counting_sink::{CountingSink, Seen};
use crate::engine::channel::ReadResult;
use crate::engine::conversation::Ended;
use crate::engine::slot::Phase;
use intact_client::Arrival;
use intact_client::clock::TimestampConverter;
use intact_ledger::{CloseKind, Event, Exchange, Failure, Nanos, Side, Sink};
use std::io;

/// How often in a row is read on although nothing was asked, before the connection is given up.
const UNASKED: u32 = 16;

/// What an event says of the peer's side of a connection.
#[derive(Clone, Copy)]
pub(super) enum Hint {
    /// Nothing of an end.
    Open,
    /// A FIN has come behind what is there to be read.
    Fin,
    /// An end, and only reading tells which.
    Unclear,
}

impl Hint {
    pub(super) fn of(event: &mio::event::Event) -> Hint {
        match event.is_read_closed() {
            false => Hint::Open,
            // EPOLLRDHUP alone; elsewhere an error is not told as surely
            true if cfg!(target_os = "linux") && !event.is_error() && !event.is_write_closed() => {
                Hint::Fin
            }
            true => Hint::Unclear,
        }
    }
}

impl Round<'_> {
    pub(super) fn record_exchange(&mut self, exchange: &Exchange) {
        self.exchanges += 1;
        if let Some(span) = &mut self.measured
            && !exchange.warmup
        {
            span.end = span.end.max(exchange.end);
        }
        self.engine.recorder.record(Event::Exchange(exchange));
    }

    /// Whether exchanges are in flight on the slot's connection.
    pub(super) fn is_busy(&self, index: usize) -> bool {
        match &self.slots[index].phase {
            Phase::Open(open) => open.conversation.oldest().is_some(),
            Phase::Dialing(..) | Phase::Vacant | Phase::Done => false,
        }
    }

    /// Begins an exchange on the slot's open connection; [`Round::send`] sends it.
    #[inline]
    pub(super) fn exchange(&mut self, index: usize, at: Nanos) {
        let id = self.engine.id();
        let warmup = self.round == 0;
        let Phase::Open(open) = &mut self.slots[index].phase else {
            return;
        };
        let (conversation, out) = (&mut open.conversation, &mut open.out);
        conversation.begin(&self.recipe, id, at, warmup, None, out);
    }

    /// Sends what has gathered on the slot's connection.
    #[inline]
    pub(super) fn send(&mut self, index: usize) {
        let Phase::Open(open) = &mut self.slots[index].phase else {
            return;
        };
        if open.out.is_empty() {
            return;
        }
        let sent = open.channel.send(&open.out);
        open.out.clear();
        let now = self.engine.clock.now();
        open.conversation.sent(now);
        if let Err(error) = sent {
            // the answer to why may still be there to be read; if not, the next event ends it
            if error.kind() != io::ErrorKind::BrokenPipe {
                self.end_by_error(index, now);
            }
        }
    }

    fn end_by_error(&mut self, index: usize, now: Nanos) {
        let Phase::Open(open) = &mut self.slots[index].phase else {
            return;
        };
        open.ended = Some(Ended {
            by: Some(Side::Server),
            how: Some(CloseKind::Rst),
        });
        let mut tap = CountingSink::new(&mut self.engine.recorder);
        open.conversation.end(Some(Failure::Reset), now, &mut tap);
        let seen = tap.seen;
        self.count(seen);
    }

    /// Reads what is there and goes on with the next exchange.
    pub(super) fn drive_open(&mut self, index: usize, closed: Hint, bridge: &TimestampConverter) {
        let Phase::Open(open) = &mut self.slots[index].phase else {
            return;
        };
        let engine = &mut *self.engine;
        let mut tap = CountingSink::new(&mut engine.recorder);
        if open.channel.has_unsent() && open.channel.flush().is_err() {
            // the reads below find out why
        }
        let mut unasked = 0;
        loop {
            let heard = open.channel.receive(&mut engine.buffer);
            let read = engine.clock.now();
            match heard {
                Ok(ReadResult::Bytes(count, stamp)) => {
                    let at = stamp.and_then(|stamp| bridge.convert(stamp, read));
                    let arrival = Arrival::new(at, read);
                    let bytes = &engine.buffer[..count];
                    if open.channel.is_plain() {
                        open.conversation
                            .receive(bytes, arrival, &mut tap, &mut open.out);
                    } else {
                        let (conversation, out) = (&mut open.conversation, &mut open.out);
                        let broken = open.channel.decrypt(bytes, |plaintext| {
                            conversation.receive(plaintext, arrival, &mut tap, out);
                        });
                        if let Err(failure) = broken {
                            open.conversation.end(Some(failure), read, &mut tap);
                            break;
                        }
                    }
                    // a short read has emptied the socket, and what comes later is a new edge
                    match closed {
                        Hint::Open if count < engine.buffer.len() => break,
                        Hint::Fin if count < engine.buffer.len() => {
                            open.end_by_fin(read, &mut tap);
                            break;
                        }
                        Hint::Open | Hint::Fin | Hint::Unclear => {}
                    }
                    // a peer that sends as fast as we read must not keep us here
                    let Some(oldest) = open.conversation.oldest() else {
                        unasked += 1;
                        if unasked < UNASKED {
                            continue;
                        }
                        open.conversation.end(None, read, &mut tap);
                        break;
                    };
                    if read.since(oldest) >= self.recipe.timeout {
                        open.conversation
                            .end(Some(Failure::Timeout), read, &mut tap);
                        break;
                    }
                }
                Ok(ReadResult::Nothing) => break,
                Ok(ReadResult::End) => {
                    open.end_by_fin(read, &mut tap);
                    break;
                }
                Err(_) => {
                    open.ended = Some(Ended {
                        by: Some(Side::Server),
                        how: Some(CloseKind::Rst),
                    });
                    open.conversation.end(Some(Failure::Reset), read, &mut tap);
                    break;
                }
            }
        }
        // TLS may have something to say of its own
        if open.channel.has_unsent() {
            let _ = open.channel.flush();
        }
        let seen = tap.seen;
        self.count(seen);
        self.advance(index);
    }

    pub(super) fn count(&mut self, seen: Seen) {
        self.exchanges += seen.exchanges;
        if let (Some(span), Some(end)) = (&mut self.measured, seen.last_end) {
            span.end = span.end.max(end);
        }
    }

    /// Takes a connection out of its slot: closed at once, or left to wait for the FIN that was announced.
    pub(super) fn put_away(&mut self, index: usize, now: Nanos) {
        let token = self.token(index).0;
        let slot = &mut self.slots[index];
        let Phase::Open(open) = std::mem::replace(&mut slot.phase, Phase::Vacant) else {
            return;
        };
        slot.generation = slot.generation.wrapping_add(1);
        if open.ended.is_none() && open.conversation.awaits_fin() {
            self.lingering.insert(token, (open, now));
        } else {
            open.close(now, &mut self.engine.recorder);
        }
    }

    pub(super) fn drive_lingering(&mut self, token: usize) {
        let Some((open, _)) = self.lingering.get_mut(&token) else {
            return;
        };
        let ended = loop {
            match open.channel.receive(&mut self.engine.buffer) {
                Ok(ReadResult::Bytes(..)) => {}
                Ok(ReadResult::Nothing) => return,
                Ok(ReadResult::End) => break CloseKind::Fin,
                Err(_) => break CloseKind::Rst,
            }
        };
        if let Some((mut open, _)) = self.lingering.remove(&token) {
            open.ended = Some(Ended {
                by: Some(Side::Server),
                how: Some(ended),
            });
            let now = self.engine.clock.now();
            open.close(now, &mut self.engine.recorder);
        }
    }
}
