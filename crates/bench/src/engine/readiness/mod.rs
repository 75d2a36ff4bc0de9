//! The back end on readiness: epoll (or kqueue) through `mio`. Sockets are registered once, edge-triggered; an exchange costs one
//! receive and one send.
//!
//! Each turn of the loop moves bytes, changes the state of a connection or waits in the kernel, and it is bounded. So deadlines and
//! Ctrl-C are looked at whatever a peer sends. A connection whose events move nothing fails with `no-progress`.

mod clients;
mod counting_sink;
mod deadlines;
mod dialing;
mod exchanges;
mod schedule;
mod timers;

use super::coalescer::Coalescer;
use super::slot::{Phase, Slot};
use super::{Engine, RoundResult, RoundTask, WarmUp};
use crate::machine;
use crate::pace::{NextExchange, Pace, Start};
use crate::recorder::Recorder;
use crate::scenario::Clients;
use crate::variant_plan::VariantPlan;
use deadlines::SWEEP;
use exchanges::Hint;
use intact_client::clock::TimestampConverter;
use intact_client::{Clock, Due, HttpConnection, Resolver, State};
use intact_ledger::{Exchange, Nanos, Span};
use mio::{Events, Poll, Token, Waker};
use schedule::FreeSlots;
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
        let warms_up = assignment.clients.is_none() && assignment.recipe.warms_up(round);
        let slot = || Slot::new(assignment.recipe.clone(), warms_up);
        let mut turn = Round {
            engine: self,
            slots: (0..assignment.connections).map(|_| slot()).collect(),
            recipe: assignment.recipe,
            round,
            pace: assignment.pace,
            warm_up: assignment.warm_up,
            clients: assignment.clients,
            blank,
            gather,
            warming_up: if warms_up { assignment.connections } else { 0 },
            parked: Vec::new(),
            lingering: HashMap::new(),
            wakes: BinaryHeap::new(),
            timers: BinaryHeap::new(),
            unfinished: Vec::new(),
            free: FreeSlots::default(),
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
        let used = turn.slots.iter().filter(|slot| slot.dials > 0).count();
        let scheduled = turn.pace.open().and_then(|open| open.scheduled());
        let last = scheduled.map(|scheduled| scheduled.end);
        let span = turn.measured;
        let span = span.map(|span| Span::new(span.start, span.end.max(last.unwrap_or(span.end))));
        let clients = turn.clients.take();
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
            scheduled,
            used,
            cpu,
            clients: clients.map_or_else(Vec::new, |clients| clients.counts),
        })
    }
}

/// One round under way.
struct Round<'a> {
    engine: &'a mut Readiness,
    recipe: Arc<VariantPlan>,
    round: u32,
    pace: Pace,
    warm_up: Arc<WarmUp>,
    /// The clients of a scenario.
    clients: Option<Box<Clients>>,
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
    /// When connections want to be looked at, by token.
    timers: BinaryHeap<Reverse<(Nanos, usize)>>,
    /// Open connections with more to read than their turn took: slot, its generation, and what the event said of the end.
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
    exchanges: u64,
}

impl Round<'_> {
    fn run(&mut self, events: &mut Events) -> io::Result<()> {
        let mut swept = self.now();
        self.open_more();
        while self.done < self.slots.len() || !self.lingering.is_empty() {
            let mut timeout = self.time_to_wait(swept);
            let due = self.until_due();
            // also a wait that ends before the next request is due: a millisecond more would go beyond it
            let is_precise = due.is_some() || self.clients.is_some();
            timeout = due.map_or(timeout, |due| due.min(timeout));
            if let Some(pause) = self
                .gather
                .as_mut()
                .and_then(|gather| gather.pause(timeout))
            {
                std::thread::sleep(pause);
                timeout -= pause;
            }
            match self.wait(events, timeout, is_precise) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            self.start_due();
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
            self.fire_timers(&bridge);
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

    /// Waits for events. `is_precise`: the end of the wait matters to less than a millisecond.
    fn wait(&mut self, events: &mut Events, timeout: Duration, is_precise: bool) -> io::Result<()> {
        let poll = &mut self.engine.poll;
        if is_precise && !timeout.is_zero() {
            if !machine::wait_readable(poll, timeout)? {
                events.clear();
                return Ok(());
            }
            return poll.poll(events, Some(Duration::ZERO));
        }
        poll.poll(events, Some(timeout))
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
        Token(index | (self.slots[index].generation as usize) << 32)
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
        if self.clients.is_some() {
            return self.advance_client(index);
        }
        loop {
            let now = self.now();
            let stopped = self.is_stopped();
            let slot = &self.slots[index];
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
                            free_since: self.free_since(index),
                        },
                    }
                }
                // after a failed dial it waits, also where the dial failed at once
                Phase::Vacant if slot.wake.is_some_and(|wake| wake > now) && !stopped => return,
                Phase::Vacant => NextExchange {
                    warmup: slot.warms_up && slot.dials == 0,
                    opens: true,
                    free_since: self.free_since(index),
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
                self.begin_schedule(now);
            }
            let start = if stopped {
                Start::Never
            } else {
                self.pace.next(now, next)
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
                Start::WhenDue => {
                    self.set_free(index);
                    return self.send(index);
                }
                Start::Now => self.begin(index, next, now.into()),
                Start::Due(due) => self.begin(index, next, due),
            }
        }
    }

    fn begin(&mut self, index: usize, next: NextExchange, due: Due) {
        if !next.warmup {
            self.begin_span(due.at);
        }
        if next.opens {
            self.dial(index, due, self.round == 0 || next.warmup);
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

/// Slot and generation of a token.
fn parts_of(token: Token) -> (usize, u32) {
    (token.0 & 0xffff_ffff, (token.0 >> 32) as u32)
}
