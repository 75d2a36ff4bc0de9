//! The back end on readiness: epoll (or kqueue) through `mio`. Sockets are registered once, edge-triggered; an exchange costs one
//! receive and one send.
//!
//! Each turn of the loop moves bytes, changes the state of a connection or waits in the kernel, and it is bounded. So deadlines and
//! Ctrl-C are looked at whatever a peer sends. A connection whose events move nothing fails with `no-progress`.

mod counting_sink;
mod deadlines;
mod dialing;
mod exchanges;

use super::coalescer::Coalescer;
use super::slot::{Phase, Slot};
use super::{Engine, RoundResult, RoundTask, WarmUp};
use crate::closed_loop::{ClosedLoop, NextExchange, Start};
use crate::machine;
use crate::recorder::Recorder;
use crate::variant_plan::VariantPlan;
use deadlines::SWEEP;
use exchanges::Hint;
use intact_client::clock::TimestampConverter;
use intact_client::{Clock, HttpConnection, Resolver, State};
use intact_ledger::{Exchange, Nanos, Span};
use mio::{Events, Poll, Token, Waker};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Bytes read at once.
const BUFFER: usize = 256 * 1024;
/// The token of the resolver's waker.
const RESOLVER: Token = Token(usize::MAX);
/// Dials under way at once while a round's connections are opened, so that a listener's backlog is not overrun.
const DIALS_AT_START: usize = 128;

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
    fn run(&mut self, assignment: RoundTask) -> io::Result<RoundResult> {
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
                Coalescer::new(assignment.connections as u64 * each, self.clock.now())
            })
            .flatten();
        let warms_up = assignment.recipe.warms_up(round);
        let mut turn = Round {
            engine: self,
            recipe: assignment.recipe,
            round,
            closed_loop: assignment.closed_loop,
            warm_up: assignment.warm_up,
            blank,
            gather,
            slots: (0..assignment.connections)
                .map(|_| Slot::new(warms_up))
                .collect(),
            warming_up: if warms_up { assignment.connections } else { 0 },
            parked: Vec::new(),
            lingering: HashMap::new(),
            wakes: BinaryHeap::new(),
            unfinished: Vec::new(),
            to_open: (0..assignment.connections).collect(),
            opening: 0,
            done: 0,
            stopped_at: None,
            measured: None,
            cpu_from: None,
            exchanges: 0,
        };
        let result = turn.run(&mut events);
        let gathered = turn.gather.as_ref().is_some_and(Coalescer::was_used);
        let span = turn.measured;
        let cpu = turn
            .cpu_from
            .and_then(|from| Some(machine::thread_cpu()?.saturating_sub(from)));
        self.events = Some(events);
        result?;
        if gathered {
            self.recorder.caveat(
                "answers-gathered",
                "responses were read in batches: the wait is client delay and in no latency; --coalesce off reads each at once",
            );
        }
        Ok(RoundResult {
            tally: self.recorder.finish_round(),
            span,
            cpu,
        })
    }
}

/// One round under way.
struct Round<'a> {
    engine: &'a mut Readiness,
    recipe: Arc<VariantPlan>,
    round: u32,
    closed_loop: ClosedLoop,
    warm_up: Arc<WarmUp>,
    blank: Exchange,
    gather: Option<Coalescer>,
    slots: Vec<Slot>,
    /// Slots whose warm-up request is not over.
    warming_up: usize,
    /// Slots that are through with their warm-up and wait for that of the others.
    parked: Vec<usize>,
    /// Connections that are over and wait for the server's FIN, by token.
    lingering: HashMap<usize, (Box<HttpConnection>, Nanos)>,
    /// When slots ask the closed loop again.
    wakes: BinaryHeap<Reverse<(Nanos, usize)>>,
    /// Open connections with more to read than their turn took: slot, its generation, and what the event said of the end.
    unfinished: Vec<(usize, u32, Hint)>,
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
            let bridge = TimestampConverter::read(&self.engine.clock);
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
                    _ => self.drive_lingering(event.token().0, &bridge),
                }
            }
            self.continue_reading(&bridge);
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
            self.begin_measuring();
        }
        Ok(())
    }

    fn now(&self) -> Nanos {
        self.engine.clock.now()
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

    fn is_stopped(&self) -> bool {
        self.engine.gauge.stop.load(Ordering::Relaxed)
    }

    /// Lets the parked slots begin once the last warm-up request of the round is over.
    fn begin_measuring(&mut self) {
        if self.warm_up.is_over() || self.is_stopped() {
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
            self.warm_up.finish_one();
        }
    }

    /// Starts whatever the slot may start.
    fn advance(&mut self, index: usize) {
        loop {
            let now = self.now();
            let stopped = self.is_stopped();
            let slot = &mut self.slots[index];
            let next = match &slot.phase {
                Phase::Open(open) => {
                    let used = !self.recipe.keepalive && open.exchanges() > 0;
                    match open.state() {
                        State::Busy => return self.send(index),
                        State::Over => {
                            self.put_away(index, now);
                            continue;
                        }
                        State::Ready if used => {
                            self.put_away(index, now);
                            continue;
                        }
                        State::Ready => NextExchange {
                            warmup: false,
                            opens: false,
                        },
                    }
                }
                // after a failed dial it waits, also where the dial failed at once
                Phase::Vacant if slot.wake.is_some_and(|wake| wake > now) && !stopped => return,
                Phase::Vacant => NextExchange {
                    warmup: slot.warms_up && slot.dials == 0,
                    opens: true,
                },
                Phase::Dialing(..) | Phase::Done => return,
            };
            if !next.warmup {
                self.finish_warm_up(index);
                if !self.warm_up.is_over() && !stopped {
                    if !std::mem::replace(&mut self.slots[index].parked, true) {
                        self.parked.push(index);
                    }
                    return;
                }
            }
            let start = if stopped {
                Start::Never
            } else {
                self.closed_loop.next(now, next)
            };
            match start {
                Start::Never => {
                    // with exchanges in flight, their ends come back here
                    if !self.is_busy(index) {
                        self.put_away(index, now);
                        self.finish(index);
                    }
                    return self.send(index);
                }
                Start::At(wake) => {
                    self.wake_at(index, wake);
                    return self.send(index);
                }
                Start::Now => {
                    if !next.warmup && self.measured.is_none() {
                        self.cpu_from = machine::thread_cpu();
                        self.measured = Some(Span::new(now, now));
                    }
                    if next.opens {
                        self.dial(index, self.round == 0 || next.warmup);
                    } else {
                        self.exchange(index, now);
                    }
                }
            }
        }
    }

    /// The slot has nothing more to do in this round.
    fn finish(&mut self, index: usize) {
        self.finish_warm_up(index);
        self.slots[index].phase = Phase::Done;
        self.done += 1;
        if self.slots[index].dials == 0 {
            self.opening -= 1;
            self.open_more();
        }
    }
}

/// Slot and generation of a token.
fn parts_of(token: Token) -> (usize, u32) {
    (token.0 & 0xffff_ffff, (token.0 >> 32) as u32)
}
