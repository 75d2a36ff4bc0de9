//! The back end on readiness: epoll (or kqueue) through `mio`. Sockets are registered once, edge-triggered; an exchange costs one
//! receive and one send.

use super::channel::{Channel, Heard};
use super::conversation::{Ended, State};
use super::gather::Gather;
use super::slot::{Granted, Open, Phase, Slot};
use super::{Assignment, Conversation, Done, Engine};
use crate::machine;
use crate::pace::{Pace, Turn, Wish};
use crate::recipe::Recipe;
use crate::recorder::Recorder;
use dial::clock::StampBridge;
use dial::{Arrival, Clock, Dial, Established, Progress, Resolver};
use ledger::{
    Connection, ConnectionId, Ending, Event, Exchange, Failure, Nanos, Outcome, Side, Sink, Span,
};
use mio::{Events, Poll, Token, Waker};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Bytes read at once.
const BUFFER: usize = 256 * 1024;
/// The token of the resolver's waker.
const RESOLVER: Token = Token(usize::MAX);
/// How often in a row is read on although nothing was asked, before the connection is given up.
const UNASKED: u32 = 16;
/// How often deadlines are looked at, in nanoseconds.
const SWEEP: u64 = 50_000_000;
/// Dials under way at once while a round's connections are opened, so that a listener's backlog is not overrun.
const DIALS_AT_START: usize = 128;
/// How long a connection that is announced to close waits for the server's FIN, in nanoseconds.
const LINGER: u64 = 1_000_000_000;
/// How long exchanges in flight may go on after Ctrl-C, in nanoseconds.
const GRACE: u64 = 250_000_000;
/// The longest pause after failed dials, in nanoseconds.
const LONGEST_PAUSE: u64 = 1_000_000_000;

/// What the engine shows to the outside while it runs.
#[derive(Debug, Default)]
pub struct Gauge {
    /// Exchanges that are over, failed ones included.
    pub exchanges: AtomicU64,
    /// Set to make the run end early, keeping what was measured.
    pub stop: AtomicBool,
}

/// The engine of one thread.
pub(crate) struct Readiness {
    poll: Poll,
    events: Option<Events>,
    resolver: Resolver,
    clock: Clock,
    recorder: Recorder,
    buffer: Vec<u8>,
    gauge: Arc<Gauge>,
    next_id: u64,
}

impl Readiness {
    /// An engine for thread number `thread`; ids of different threads do not meet.
    pub(crate) fn new(
        thread: u32,
        clock: Clock,
        recorder: Recorder,
        gauge: Arc<Gauge>,
    ) -> io::Result<Readiness> {
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), RESOLVER)?;
        Ok(Readiness {
            poll,
            events: Some(Events::with_capacity(1024)),
            resolver: Resolver::new(waker),
            clock,
            recorder,
            buffer: vec![0; BUFFER],
            gauge,
            next_id: u64::from(thread) << 48,
        })
    }

    fn id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }
}

impl Engine for Readiness {
    fn run(&mut self, assignment: Assignment) -> io::Result<Done> {
        let mut events = self
            .events
            .take()
            .unwrap_or_else(|| Events::with_capacity(1024));
        let blank = assignment.recipe.blank_exchange(assignment.round);
        let round = assignment.round;
        let gather = assignment
            .recipe
            .gather
            .then(|| {
                let each = assignment.recipe.streams.max(1) as u64;
                Gather::new(assignment.connections as u64 * each, self.clock.now())
            })
            .flatten();
        let mut turn = Round {
            engine: self,
            recipe: assignment.recipe,
            round,
            pace: assignment.pace,
            blank,
            gather,
            slots: (0..assignment.connections).map(|_| Slot::new()).collect(),
            lingering: HashMap::new(),
            wakes: BinaryHeap::new(),
            to_open: (0..assignment.connections).collect(),
            opening: 0,
            done: 0,
            stopped_at: None,
            measured: None,
            cpu_from: None,
            exchanges: 0,
        };
        let result = turn.run(&mut events);
        let gathered = turn.gather.as_ref().is_some_and(Gather::was_used);
        let span = turn.measured;
        let cpu = turn
            .cpu_from
            .and_then(|from| Some(machine::thread_cpu()?.saturating_sub(from)));
        self.events = Some(events);
        result?;
        if gathered {
            self.recorder.caveat(
                "answers-gathered",
                "with many exchanges in flight, answers were taken in batches: each waited in this client for up to an eighth of its latency, told as own queue and not in the latency; --coalesce off reads each at once",
            );
        }
        Ok(Done {
            tally: self.recorder.finish_round(),
            span,
            cpu,
        })
    }
}

/// One round under way.
struct Round<'a> {
    engine: &'a mut Readiness,
    recipe: Arc<Recipe>,
    round: u32,
    pace: Box<dyn Pace>,
    blank: Exchange,
    gather: Option<Gather>,
    slots: Vec<Slot>,
    /// Connections that are over and wait for the server's FIN, by token.
    lingering: HashMap<usize, (Box<Open>, Nanos)>,
    /// When slots want to ask the pace again.
    wakes: BinaryHeap<Reverse<(Nanos, usize)>>,
    /// Slots that have not opened their first connection.
    to_open: VecDeque<usize>,
    /// First connections being opened.
    opening: usize,
    /// Slots for which the round is over.
    done: usize,
    stopped_at: Option<Nanos>,
    measured: Option<Span>,
    cpu_from: Option<u64>,
    exchanges: u64,
}

impl Round<'_> {
    fn run(&mut self, events: &mut Events) -> io::Result<()> {
        let mut swept = self.now();
        self.open_more();
        while self.done < self.slots.len() || !self.lingering.is_empty() {
            let mut timeout = self.time_to_wait(swept);
            if let Some(pause) = self
                .gather
                .as_mut()
                .and_then(|gather| gather.pause(timeout))
            {
                std::thread::sleep(pause);
                timeout -= pause;
            }
            match self.engine.poll.poll(events, Some(timeout)) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            let bridge = StampBridge::read(&self.engine.clock);
            for event in events.iter() {
                if event.token() == RESOLVER {
                    self.take_answers();
                    continue;
                }
                let (index, generation) = parts_of(event.token());
                match self.slots.get(index) {
                    Some(slot) if slot.generation == generation => match slot.phase {
                        Phase::Dialing(..) => {
                            let connected = event.is_writable()
                                && !event.is_error()
                                && !event.is_write_closed();
                            self.drive_dial(index, connected);
                            // the peer may have left already, and says so only once
                            if event.is_read_closed()
                                && let Phase::Open(_) = self.slots[index].phase
                            {
                                self.drive_open(index, Hint::of(event), &bridge);
                            }
                        }
                        Phase::Open(_) => {
                            let closed = Hint::of(event);
                            self.drive_open(index, closed, &bridge);
                        }
                        Phase::Vacant | Phase::Done => {}
                    },
                    _ => self.drive_lingering(event.token().0),
                }
            }
            let gauge = &self.engine.gauge;
            gauge.exchanges.fetch_add(self.exchanges, Ordering::Relaxed);
            let now = self.now();
            if let Some(gather) = &mut self.gather {
                gather.turn(self.exchanges, now);
            }
            self.exchanges = 0;
            self.wake_up(now);
            if now.since(swept) >= SWEEP {
                swept = now;
                self.sweep(now);
            }
        }
        Ok(())
    }

    fn now(&self) -> Nanos {
        self.engine.clock.now()
    }

    fn time_to_wait(&self, swept: Nanos) -> Duration {
        let mut until = swept.after(SWEEP);
        if let Some(Reverse((wake, _))) = self.wakes.peek() {
            until = until.min(*wake);
        }
        self.engine.clock.until(until)
    }

    fn token(&self, index: usize) -> Token {
        Token(index | (self.slots[index].generation as usize) << 32)
    }

    /// Opens first connections, a few at a time.
    fn open_more(&mut self) {
        while self.opening < DIALS_AT_START {
            let Some(index) = self.to_open.pop_front() else {
                return;
            };
            self.opening += 1;
            self.advance(index);
        }
    }

    /// Starts whatever the slot may start.
    fn advance(&mut self, index: usize) {
        loop {
            let now = self.now();
            let stopped = self.engine.gauge.stop.load(Ordering::Relaxed);
            let slot = &mut self.slots[index];
            let wish = match &slot.phase {
                Phase::Open(open) => {
                    let used = !self.recipe.keepalive && open.conversation.life().exchanges > 0;
                    match open.conversation.state() {
                        State::Busy => return self.send(index),
                        State::Over => {
                            self.put_away(index, now);
                            continue;
                        }
                        State::Ready if used => {
                            self.put_away(index, now);
                            continue;
                        }
                        State::Ready => Wish {
                            warmup: false,
                            opens: false,
                        },
                    }
                }
                Phase::Vacant => Wish {
                    warmup: self.round > 0 && self.recipe.keepalive && slot.dials == 0,
                    opens: true,
                },
                Phase::Dialing(..) | Phase::Done => return,
            };
            let turn = if stopped {
                Turn::Over
            } else {
                self.pace.next(now, wish)
            };
            match turn {
                Turn::Over => {
                    // with exchanges in flight, their ends come back here
                    if !self.is_busy(index) {
                        self.put_away(index, now);
                        self.finish(index);
                    }
                    return self.send(index);
                }
                Turn::At(wake) => {
                    slot.wake = Some(wake);
                    self.wakes.push(Reverse((wake, index)));
                    return self.send(index);
                }
                Turn::Now => {
                    if !wish.warmup && self.measured.is_none() {
                        self.cpu_from = machine::thread_cpu();
                        self.measured = Some(Span::new(now, now));
                    }
                    if wish.opens {
                        self.dial(index, self.round == 0 || wish.warmup);
                    } else {
                        self.exchange(index, now);
                    }
                }
            }
        }
    }

    /// The slot has nothing more to do in this round.
    fn finish(&mut self, index: usize) {
        self.slots[index].phase = Phase::Done;
        self.done += 1;
        if self.slots[index].dials == 0 {
            self.opening -= 1;
            self.open_more();
        }
    }

    fn dial(&mut self, index: usize, warmup: bool) {
        let id = ConnectionId(self.engine.id());
        let slot = &mut self.slots[index];
        slot.generation = slot.generation.wrapping_add(1);
        slot.dials += 1;
        let token = self.token(index);
        let engine = &mut *self.engine;
        let (dial, progress) = Dial::start(
            &self.recipe.plan,
            id,
            token.0 as u64,
            token,
            &mut engine.resolver,
            engine.poll.registry(),
            &engine.clock,
        );
        let granted = Granted {
            wanted: dial.at(),
            warmup,
        };
        self.slots[index].phase = Phase::Dialing(Box::new(dial), granted);
        self.progress(index, progress);
    }

    /// `connected`: the poll says that the transport stands.
    fn drive_dial(&mut self, index: usize, connected: bool) {
        let Phase::Dialing(dial, _) = &mut self.slots[index].phase else {
            return;
        };
        // elsewhere a socket may be writable before it is connected
        if connected && cfg!(target_os = "linux") {
            dial.tell_connected();
        }
        let progress = dial.ready(self.engine.poll.registry(), &self.engine.clock);
        self.progress(index, progress);
    }

    fn take_answers(&mut self) {
        while let Some(answer) = self.engine.resolver.answer() {
            let (index, generation) = parts_of(Token(answer.key as usize));
            let Some(slot) = self.slots.get_mut(index) else {
                continue;
            };
            // answers to dials that were given up in an earlier round come here too
            if slot.generation != generation {
                continue;
            }
            let Phase::Dialing(dial, _) = &mut slot.phase else {
                continue;
            };
            let registry = self.engine.poll.registry();
            let progress = dial.resolved(answer.addresses, registry, &self.engine.clock);
            if let Some(mut lookup) = dial.take_lookup() {
                lookup.variant = Some(self.recipe.variant);
                lookup.round = Some(self.round);
                self.engine.recorder.record(Event::Lookup(&lookup));
            }
            self.progress(index, progress);
        }
    }

    fn progress(&mut self, index: usize, progress: Progress) {
        match progress {
            Progress::Pending => {}
            Progress::Established(established) => self.open(index, *established),
            Progress::Failed(connection) => self.dial_failed(index, *connection),
        }
    }

    fn first_dial_over(&mut self, index: usize) {
        if self.slots[index].dials == 1 {
            self.opening -= 1;
            self.open_more();
        }
    }

    fn open(&mut self, index: usize, established: Established) {
        let Phase::Dialing(_, granted) = self.slots[index].phase else {
            return;
        };
        let stamped = established.stamped;
        let (channel, mut connection) = Channel::new(established);
        connection.variant = Some(self.recipe.variant);
        connection.round = Some(self.round);
        if self.recipe.plan.stamps && !stamped {
            self.engine.recorder.caveat(
                "no-kernel-stamps",
                "the kernel gave no receive stamps: latency ends when the answer was read, the client's own queue is in it",
            );
        }
        self.engine.recorder.record(Event::Opened(&connection));
        let mut blank = self.blank.clone();
        blank.connection = Some(connection.id);
        let mut out = Vec::new();
        let mut conversation = Conversation::new(&self.recipe, blank, &mut out);
        conversation.begin(
            &self.recipe,
            self.engine.id(),
            granted.wanted,
            granted.warmup,
            Some(&connection.setup),
            &mut out,
        );
        let slot = &mut self.slots[index];
        slot.failures = 0;
        slot.phase = Phase::Open(Box::new(Open {
            channel,
            conversation,
            connection,
            out,
            ended: None,
        }));
        self.first_dial_over(index);
        self.advance(index);
    }

    fn dial_failed(&mut self, index: usize, mut connection: Connection) {
        let Phase::Dialing(_, granted) = self.slots[index].phase else {
            return;
        };
        connection.variant = Some(self.recipe.variant);
        connection.round = Some(self.round);
        let now = self.now();
        let mut exchange = self.blank.clone();
        exchange.id = self.engine.id();
        exchange.connection = Some(connection.id);
        exchange.at = granted.wanted;
        exchange.end = now;
        exchange.warmup = granted.warmup;
        exchange
            .spans
            .wait_for_setup(&connection.setup, granted.wanted);
        exchange.fresh = Some(true);
        if let Some(failed) = &connection.failed {
            exchange.outcome = Outcome::Failed(failed.kind);
            exchange.detail.clone_from(&failed.detail);
        }
        self.engine.recorder.record(Event::Opened(&connection));
        self.record_exchange(&exchange);
        let slot = &mut self.slots[index];
        slot.phase = Phase::Vacant;
        slot.failures += 1;
        // a dead target is not hammered
        let pause = (1_000_000u64 << slot.failures.min(10)).min(LONGEST_PAUSE);
        let wake = now.after(pause);
        slot.wake = Some(wake);
        self.wakes.push(Reverse((wake, index)));
        self.first_dial_over(index);
    }

    fn record_exchange(&mut self, exchange: &Exchange) {
        self.exchanges += 1;
        if let Some(span) = &mut self.measured
            && !exchange.warmup
        {
            span.end = span.end.max(exchange.end);
        }
        self.engine.recorder.record(Event::Exchange(exchange));
    }

    /// Whether exchanges are in flight on the slot's connection.
    fn is_busy(&self, index: usize) -> bool {
        match &self.slots[index].phase {
            Phase::Open(open) => open.conversation.oldest().is_some(),
            Phase::Dialing(..) | Phase::Vacant | Phase::Done => false,
        }
    }

    /// Begins an exchange on the slot's open connection; [`Round::send`] sends it.
    #[inline]
    fn exchange(&mut self, index: usize, at: Nanos) {
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
    fn send(&mut self, index: usize) {
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
            how: Some(Ending::Rst),
        });
        let mut tap = Tap::new(&mut self.engine.recorder);
        open.conversation.end(Some(Failure::Reset), now, &mut tap);
        let seen = tap.seen;
        self.count(seen);
    }

    /// Reads what is there and goes on with the next exchange.
    fn drive_open(&mut self, index: usize, closed: Hint, bridge: &StampBridge) {
        let Phase::Open(open) = &mut self.slots[index].phase else {
            return;
        };
        let engine = &mut *self.engine;
        let mut tap = Tap::new(&mut engine.recorder);
        if open.channel.has_unsent() && open.channel.flush().is_err() {
            // the reads below find out why
        }
        let mut unasked = 0;
        loop {
            let heard = open.channel.receive(&mut engine.buffer);
            let read = engine.clock.now();
            match heard {
                Ok(Heard::Bytes(count, stamp)) => {
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
                Ok(Heard::Nothing) => break,
                Ok(Heard::End) => {
                    open.end_by_fin(read, &mut tap);
                    break;
                }
                Err(_) => {
                    open.ended = Some(Ended {
                        by: Some(Side::Server),
                        how: Some(Ending::Rst),
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

    fn count(&mut self, seen: Seen) {
        self.exchanges += seen.exchanges;
        if let (Some(span), Some(end)) = (&mut self.measured, seen.last_end) {
            span.end = span.end.max(end);
        }
    }

    /// Takes a connection out of its slot: closed at once, or left to wait for the FIN that was announced.
    fn put_away(&mut self, index: usize, now: Nanos) {
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

    fn drive_lingering(&mut self, token: usize) {
        let Some((open, _)) = self.lingering.get_mut(&token) else {
            return;
        };
        let ended = loop {
            match open.channel.receive(&mut self.engine.buffer) {
                Ok(Heard::Bytes(..)) => {}
                Ok(Heard::Nothing) => return,
                Ok(Heard::End) => break Ending::Fin,
                Err(_) => break Ending::Rst,
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

    /// Slots whose time has come ask the pace again.
    fn wake_up(&mut self, now: Nanos) {
        while let Some(&Reverse((wake, index))) = self.wakes.peek() {
            if wake > now {
                return;
            }
            self.wakes.pop();
            if self.slots[index].wake == Some(wake) {
                self.slots[index].wake = None;
                self.advance(index);
            }
        }
    }

    /// Ends what has run out of time, and everything some time after Ctrl-C.
    fn sweep(&mut self, now: Nanos) {
        let stop = self.engine.gauge.stop.load(Ordering::Relaxed);
        if stop && self.stopped_at.is_none() {
            self.stopped_at = Some(now);
            for index in std::mem::take(&mut self.to_open) {
                self.slots[index].phase = Phase::Done;
                self.done += 1;
            }
        }
        let abort = self
            .stopped_at
            .is_some_and(|stopped| now.since(stopped) >= GRACE);
        for index in 0..self.slots.len() {
            let slot = &mut self.slots[index];
            match &mut slot.phase {
                Phase::Dialing(dial, _) => {
                    let late = now.since(dial.at()) >= self.recipe.timeout;
                    if late || abort {
                        let kind = if late {
                            Failure::Timeout
                        } else {
                            Failure::Aborted
                        };
                        let connection = *dial.give_up(&self.engine.clock, kind);
                        self.dial_failed(index, connection);
                    }
                }
                Phase::Open(open) => {
                    let Some(oldest) = open.conversation.oldest() else {
                        continue;
                    };
                    let late = now.since(oldest) >= self.recipe.timeout;
                    if late || abort {
                        let kind = if late {
                            Failure::Timeout
                        } else {
                            Failure::Aborted
                        };
                        let mut tap = Tap::new(&mut self.engine.recorder);
                        open.conversation.end(Some(kind), now, &mut tap);
                        let seen = tap.seen;
                        self.count(seen);
                        self.advance(index);
                    }
                }
                Phase::Vacant if stop => {
                    slot.wake = None;
                    self.advance(index);
                }
                Phase::Vacant | Phase::Done => {}
            }
        }
        let round_over = self.done == self.slots.len();
        let patience = if round_over || abort {
            LINGER / 4
        } else {
            LINGER
        };
        let impatient: Vec<usize> = self
            .lingering
            .iter()
            .filter(|(_, (_, since))| now.since(*since) >= patience)
            .map(|(&token, _)| token)
            .collect();
        for token in impatient {
            if let Some((open, _)) = self.lingering.remove(&token) {
                open.close(now, &mut self.engine.recorder);
            }
        }
    }
}

/// What an event says of the peer's side of a connection.
#[derive(Clone, Copy)]
enum Hint {
    /// Nothing of an end.
    Open,
    /// A FIN has come behind what is there to be read.
    Fin,
    /// An end, and only reading tells which.
    Unclear,
}

impl Hint {
    fn of(event: &mio::event::Event) -> Hint {
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

/// Slot and generation of a token.
fn parts_of(token: Token) -> (usize, u32) {
    (token.0 & 0xffff_ffff, (token.0 >> 32) as u32)
}

/// What went through a [`Tap`].
#[derive(Clone, Copy, Default)]
struct Seen {
    exchanges: u64,
    last_end: Option<Nanos>,
}

/// Counts exchanges on their way to the recorder.
struct Tap<'a> {
    recorder: &'a mut Recorder,
    seen: Seen,
}

impl<'a> Tap<'a> {
    fn new(recorder: &'a mut Recorder) -> Tap<'a> {
        Tap {
            recorder,
            seen: Seen::default(),
        }
    }
}

impl Sink for Tap<'_> {
    #[inline]
    fn record(&mut self, event: Event<'_>) {
        if let Event::Exchange(exchange) = event {
            self.seen.exchanges += 1;
            if !exchange.warmup {
                self.seen.last_end = self.seen.last_end.max(Some(exchange.end));
            }
        }
        self.recorder.record(event);
    }
}
