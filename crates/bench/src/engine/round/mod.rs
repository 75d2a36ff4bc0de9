//! One round on one thread: the loop that dials, starts exchanges, reads responses and keeps the
//! time.
//!
//! Each turn of the loop moves bytes, changes the state of a connection or waits in the kernel. Its
//! length is bounded, so no peer can delay deadlines or Ctrl-C. A connection whose events move
//! nothing fails with `no-progress`.
//!
//! One exchange: [`Round::take`] gets an occurrence of the back end, `drive_open` reads the
//! response and records the exchange, [`Round::advance`] asks the pace for the next one and sends
//! it.

mod clients;
mod deadlines;
mod dialing;
mod exchanges;
mod free_slots;
mod schedule;
mod timers;

use super::backend::{Backend, Hint, Occurrence, RESOLVER, Wait};
use super::coalescer::{Coalescer, Pauses};
use super::slot::{Phase, Slot};
use super::task::{EngineState, RoundResult, RoundTask};
use crate::closed_loop::{NextExchange, Start};
use crate::machine::{self, ProcessorWait};
use crate::response_cache::ResponseCache;
use free_slots::FreeSlots;
use intact_client::clock::TimestampConverter;
use intact_client::{Due, HttpConnection, State};
use intact_ledger::{Exchange, Nanos, Span};
use mio::Token;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::io;
use std::sync::atomic::Ordering;

/// Dials under way at once while a round's connections are opened, so that a listener's backlog is
/// not overrun.
const DIALS_AT_START: usize = 128;

/// How often deadlines are looked at, in nanoseconds.
const SWEEP: u64 = 50_000_000;

/// One round under way.
pub(super) struct Round<'a, B> {
    engine: &'a mut EngineState,
    backend: &'a mut B,
    task: RoundTask,
    blank: Exchange,
    gather: Option<Coalescer>,
    slots: Vec<Slot>,
    /// Slots whose warm-up request is not over.
    warming_up: usize,
    /// Slots that are through with their warm-up and wait for that of the others.
    parked: Vec<usize>,
    /// Connections that are over and wait for the server, by token.
    lingering: HashMap<Token, (Box<HttpConnection>, Nanos)>,
    /// When slots ask the closed loop again.
    wakes: BinaryHeap<Reverse<(Nanos, usize)>>,
    /// When connections want to be looked at, by token.
    timers: BinaryHeap<Reverse<(Nanos, usize)>>,
    /// Slots whose connection received something in this turn.
    received: Vec<usize>,
    /// Open connections with more to read than their turn took: slot, its generation, and what the
    /// event said of the end.
    unfinished: Vec<(usize, u32, Hint)>,
    /// Slots that wait for a request of an open loop.
    free: FreeSlots,
    /// Slots that have not opened their first connection.
    to_open: VecDeque<usize>,
    /// First connections being opened.
    opening: usize,
    /// Slots for which the round is over.
    done: usize,
    stopped_at: Option<Nanos>,
    measured: Option<Span>,
    cpu_from: Option<u64>,
    /// How long this thread waited for a processor; absent in a closed loop.
    processor_wait: Option<ProcessorWait>,
    exchanges: u64,
    /// Connections whose first data went with the SYN, where that was asked for.
    with_syn: u64,
    /// The target that is sent next.
    turn: usize,
}

impl<'a, B: Backend> Round<'a, B> {
    pub(super) fn new(
        engine: &'a mut EngineState,
        backend: &'a mut B,
        task: RoundTask,
    ) -> Round<'a, B> {
        let (round, connections) = (task.round, task.connections);
        let variant_plan = &task.variant_plan;
        let streams = variant_plan.streams.max(1) as u64;
        let pauses = variant_plan.gather;
        let pauses = pauses.filter(|&one| one == Pauses::Long || backend.counts_a_batch());
        let in_flight = connections as u64 * streams;
        let now = engine.clock.now();
        let gather = pauses.and_then(|pauses| Coalescer::new(pauses, in_flight, now));
        let warms_up = task.clients.is_none() && variant_plan.warms_up(round);
        let slot = || Slot::new(variant_plan.clone(), warms_up);
        let turn = engine.turns.get(&variant_plan.variant).copied();
        Round {
            engine,
            backend,
            blank: variant_plan.blank_exchange(round),
            turn: turn.unwrap_or(task.turn),
            processor_wait: task.pace.is_open().then(ProcessorWait::of_thread).flatten(),
            slots: (0..connections).map(|_| slot()).collect(),
            task,
            gather,
            warming_up: if warms_up { connections } else { 0 },
            parked: Vec::new(),
            lingering: HashMap::new(),
            wakes: BinaryHeap::new(),
            timers: BinaryHeap::new(),
            received: Vec::new(),
            unfinished: Vec::new(),
            free: FreeSlots::default(),
            to_open: (0..connections).collect(),
            opening: 0,
            done: 0,
            stopped_at: None,
            measured: None,
            cpu_from: None,
            exchanges: 0,
            with_syn: 0,
        }
    }

    /// Runs until the pace starts nothing more and nothing is in flight.
    pub(super) fn run(mut self) -> io::Result<RoundResult> {
        let mut swept = self.now();
        let mut now = swept;
        self.open_more();
        while self.done < self.slots.len() || !self.lingering.is_empty() {
            match self.wait(swept, now) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            self.start_due();
            let bridge = TimestampConverter::read(&self.engine.clock);
            while let Some(occurrence) = self.backend.next_occurrence() {
                self.take(occurrence, &bridge);
            }
            self.continue_reading(&bridge);
            self.fire_timers(&bridge);
            now = self.advance_received();
            self.count();
            let gauge = &self.engine.gauge;
            gauge.exchanges.fetch_add(self.exchanges, Ordering::Relaxed);
            if let Some(gather) = &mut self.gather {
                gather.turn(self.exchanges, now);
            }
            self.exchanges = 0;
            self.wake_up(now);
            if now.since(swept) >= SWEEP {
                swept = now;
                self.sweep(now);
                // the sessions of a scenario are variants of one turn, which its page shows at the
                // end
                if self.task.clients.is_none() {
                    let since = self.measured.map(|measured| measured.start);
                    let (variant, round) = (self.task.variant_plan.variant, self.task.round);
                    self.engine.publish(variant, round, since, now);
                }
            }
            self.begin_measuring();
        }
        self.check_fast_open();
        self.check_cache();
        Ok(self.result())
    }

    fn result(&mut self) -> RoundResult {
        self.count();
        let variant_plan = &self.task.variant_plan;
        if !variant_plan.targets.is_empty() && self.task.round > 0 {
            self.engine.turns.insert(variant_plan.variant, self.turn);
        }
        let scheduled = self.task.pace.open().and_then(|open| open.scheduled());
        let last = scheduled.map(|scheduled| scheduled.end);
        let span = self.measured;
        let recorder = &mut self.engine.recorder;
        if self.gather.as_ref().is_some_and(Coalescer::was_used) {
            recorder.caveat(
                "answers-gathered",
                "responses were read in batches: the wait is client delay and in no latency; --coalesce off reads each at once",
            );
        }
        RoundResult {
            tally: recorder.finish_round(),
            span: span.map(|span| Span::new(span.start, span.end.max(last.unwrap_or(span.end)))),
            scheduled,
            with_syn: self.with_syn,
            used: self.slots.iter().filter(|slot| slot.dials > 0).count(),
            cpu: self
                .cpu_from
                .and_then(|from| Some(machine::thread_cpu()?.saturating_sub(from))),
            clients: self
                .task
                .clients
                .take()
                .map_or_else(Vec::new, |clients| clients.counts),
        }
    }

    /// Reports a round in which no connection used TCP Fast Open although it was asked for.
    fn check_fast_open(&mut self) {
        let dials: u32 = self.slots.iter().map(|slot| slot.dials).sum();
        // the first connection gets the cookie
        if self.task.round > 0
            && self.task.variant_plan.plan.socket.fast_open
            && dials > 0
            && self.with_syn == 0
        {
            self.engine.recorder.caveat(
                "fast-open-unused",
                "--tcp-fastopen: in a round or more no connection sent data with its SYN. The server or a box on the way does not take it (serve needs --tcp-fastopen and net.ipv4.tcp_fastopen=3)",
            );
        }
    }

    /// Reports a round in which nothing could be revalidated, and what a cache could spare besides.
    fn check_cache(&mut self) {
        let cache = self
            .task
            .variant_plan
            .cache
            .as_deref()
            .filter(|_| self.task.round > 0);
        if let Some((id, words)) = cache.and_then(ResponseCache::caveat) {
            self.engine.recorder.caveat(id, &words);
        }
    }

    /// `now`: the end of the last turn.
    fn wait(&mut self, swept: Nanos, now: Nanos) -> io::Result<()> {
        let limit = self.time_to_wait(swept, now);
        let due = self.until_due();
        let limit = due.map_or(limit, |due| due.min(limit));
        let pause = self.gather.as_mut().and_then(|gather| gather.pause(limit));
        self.backend.wait(Wait {
            limit,
            // also a wait that ends before the next request is due: a millisecond more would go
            // beyond it
            is_precise: due.is_some() || self.task.clients.is_some(),
            pause,
            batch: self.gather.as_ref().map_or(1, Coalescer::batch),
        })
    }

    /// Handles one occurrence.
    fn take(&mut self, occurrence: Occurrence, bridge: &TimestampConverter) {
        if occurrence.token == RESOLVER {
            return self.take_answers();
        }
        let (index, generation) = parts_of(occurrence.token);
        match self.slots.get(index) {
            Some(slot) if slot.generation == generation => match slot.phase {
                Phase::Dialing(..) => {
                    self.drive_dial(index, occurrence.is_connected);
                    // the peer may have left already, and says so only once
                    if occurrence.closed != Hint::Open
                        && let Phase::Open(_) = self.slots[index].phase
                    {
                        self.drive_open(index, occurrence.closed, bridge);
                    }
                }
                Phase::Open(_) => self.drive_open(index, occurrence.closed, bridge),
                Phase::Vacant | Phase::Done => {}
            },
            _ => self.drive_lingering(occurrence.token, bridge),
        }
    }

    /// Goes on with the connections that were read in this turn. By now the end of each is known,
    /// if it came with the data. Returns the time after it.
    fn advance_received(&mut self) -> Nanos {
        let mut received = std::mem::take(&mut self.received);
        let mut now = self.now();
        for index in received.drain(..) {
            now = self.advance_at(index, now);
            // QUIC acknowledges what was read, also where no request follows
            now = self.send(index, now);
            self.arm(index);
        }
        self.received = received;
        now
    }

    /// Measuring begins.
    fn begin_span(&mut self, at: Nanos) {
        if self.measured.is_none() {
            self.cpu_from = machine::thread_cpu();
            self.measured = Some(Span::new(at, at));
        }
    }

    fn now(&self) -> Nanos {
        self.engine.clock.now()
    }

    fn token(&self, index: usize) -> Token {
        token_of(index, self.slots[index].generation)
    }

    /// Opens first connections, a few at a time.
    fn open_more(&mut self) {
        while self.opening < DIALS_AT_START {
            let Some(index) = self.to_open.pop_front() else {
                return;
            };
            self.opening += 1;
            self.slots[index].is_opening = true;
            self.advance(index);
        }
    }

    fn is_stopped(&self) -> bool {
        self.engine.gauge.stop.load(Ordering::Relaxed)
    }

    /// Lets the parked slots begin once the last warm-up request of the round is over.
    fn begin_measuring(&mut self) {
        if self.task.warm_up.is_over() || self.is_stopped() {
            for index in std::mem::take(&mut self.parked) {
                self.slots[index].parked = false;
                self.advance(index);
            }
        }
    }

    /// The slot's warm-up request, if it has one, is over.
    fn finish_warm_up(&mut self, index: usize) {
        if std::mem::take(&mut self.slots[index].warms_up) {
            self.warming_up -= 1;
            self.task.warm_up.finish_one();
        }
    }

    /// Starts whatever the slot may start.
    fn advance(&mut self, index: usize) {
        self.advance_at(index, self.now());
    }

    /// [`Round::advance`] at `now`, which was read a moment ago. Returns the time after it: the
    /// next slot can start at that time, and the clock is read once for both.
    fn advance_at(&mut self, index: usize, mut now: Nanos) -> Nanos {
        if self.task.clients.is_some() {
            self.advance_client(index);
            return self.now();
        }
        loop {
            let stopped = self.is_stopped();
            let slot = &self.slots[index];
            let next = match &slot.phase {
                Phase::Open(open) => {
                    let (carried, since) = (open.exchanges(), open.connection().at);
                    let used = self.task.variant_plan.is_used_up(carried, since, now);
                    match open.state() {
                        State::Busy => return self.send(index, now),
                        State::Ready if !used => NextExchange {
                            warmup: false,
                            opens: false,
                            free_since: self.free_since(index),
                            late_before: slot.late,
                        },
                        // the exchanges in flight come back here
                        State::Ready if open.oldest().is_some() => return self.send(index, now),
                        State::Ready | State::Over => {
                            self.put_away(index, now);
                            now = self.now();
                            continue;
                        }
                    }
                }
                // after a failed dial it waits, also where the dial failed at once
                Phase::Vacant if slot.wake.is_some_and(|wake| wake > now) && !stopped => {
                    return now;
                }
                Phase::Vacant => NextExchange {
                    warmup: slot.warms_up && slot.dials == 0,
                    opens: true,
                    free_since: self.free_since(index),
                    late_before: slot.late,
                },
                Phase::Dialing(..) | Phase::Done => return now,
            };
            if !next.warmup {
                self.finish_warm_up(index);
                if !self.task.warm_up.is_over() && !stopped {
                    if !std::mem::replace(&mut self.slots[index].parked, true) {
                        self.parked.push(index);
                    }
                    return now;
                }
                self.begin_schedule(now);
                if let Some(wake) = self.end_of_pause(index, now)
                    && !stopped
                {
                    self.wake_at(index, wake);
                    return self.send(index, now);
                }
            }
            let start = if stopped {
                Start::Never
            } else {
                self.task.pace.next(now, next)
            };
            match start {
                Start::Never => {
                    // with exchanges in flight, their ends come back here
                    if !self.is_busy(index) {
                        self.put_away(index, now);
                        self.finish(index);
                        now = self.now();
                    }
                    return self.send(index, now);
                }
                Start::At(wake) => {
                    self.wake_at(index, wake);
                    return self.send(index, now);
                }
                Start::WhenDue => {
                    self.set_free(index);
                    return self.send(index, now);
                }
                Start::Now => self.begin(index, next, now.into()),
                Start::Due(due) => self.begin(index, next, due),
            }
            // a dial takes its time; an exchange is sent by the next turn of the loop
            if next.opens {
                now = self.now();
            }
        }
    }

    /// Until when the slot pauses after its last response; `None`: it does not, or will have
    /// nothing to do then.
    fn end_of_pause(&self, index: usize, now: Nanos) -> Option<Nanos> {
        let pause = self.task.variant_plan.life.pause?;
        let slot = &self.slots[index];
        let wake = slot.pauses_since?.after(pause);
        (wake > now && !self.task.pace.is_over(wake)).then_some(wake)
    }

    fn begin(&mut self, index: usize, next: NextExchange, due: Due) {
        if !next.warmup {
            self.begin_span(due.at);
        }
        self.slots[index].late = due.late;
        if next.opens {
            self.dial(index, due, self.task.round == 0 || next.warmup);
        } else {
            self.exchange(index, due);
        }
    }

    /// The slot has nothing more to do in this round.
    fn finish(&mut self, index: usize) {
        self.finish_warm_up(index);
        self.slots[index].phase = Phase::Done;
        self.done += 1;
        self.finish_opening(index);
    }

    /// The slot's first dial is over, or there will be none: another slot may dial.
    fn finish_opening(&mut self, index: usize) {
        if std::mem::take(&mut self.slots[index].is_opening) {
            self.opening -= 1;
            self.open_more();
        }
    }
}

/// The token of a slot's present connection.
fn token_of(index: usize, generation: u32) -> Token {
    Token(index | (generation as usize) << 32)
}

/// Slot and generation of a token.
fn parts_of(token: Token) -> (usize, u32) {
    (token.0 & 0xffff_ffff, (token.0 >> 32) as u32)
}
