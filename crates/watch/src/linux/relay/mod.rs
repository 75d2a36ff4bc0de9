//! Carries the data of all connections: one loop, one buffer, what passes is shown to the
//! observers.
//!
//! Ends pass on as they come: a half-close as a half-close, a reset as a reset. A panic of an
//! observer is caught and ends the observation of that one connection, not the connection.

mod delay;
mod delivery;
mod direction;
mod fault;
mod hold;
mod marks;
mod probes;
mod rest;
mod shared_sockets;

use crate::platform::relay_command::{
    RelayCommand, RelaySender, RelayedConnection, far_token, near_token,
};
use crate::platform::run_context::RunContext;
use crate::platform::secrets::Keys;
use crate::platform::wait_readable;
use crate::{Clock, Config, WatchSink};
use direction::{Passed, ReadResult, RelayDirection, Stop};
use fault::{FaultTarget, Faults, Shown, Strike};
use hold::Hold;
use intact_ledger::{CloseKind, ConnectionId, Event as LedgerEvent, Nanos, Row};
use intact_observe::{Ending, ObservedConnection, RunContext as _, Side};
use intact_sys::process::SocketLocation;
use intact_sys::socket;
use intact_sys::timer::Timer;
use intact_wire::tcp::Acknowledgements;
use marks::PendingMarks;
use mio::event::Event;
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Registry, Token, Waker};
use probes::Looks;
use rest::Rest;
use shared_sockets::{Holders, SharedSockets};
use std::collections::{BTreeSet, HashMap};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

const ORDERS: Token = Token(usize::MAX);
const ARRIVALS: Token = Token(usize::MAX - 2);
/// How often files are flushed and late keys looked for.
const TICK: Duration = Duration::from_secs(1);
/// How long what the program left behind is passed on after its end.
const DRAIN: Duration = Duration::from_secs(5);
/// How long keys of connections that are over are awaited at the end.
const KEYS_AFTER_END: Duration = Duration::from_secs(1);
/// Connections that are over and wait for their keys.
const MOST_PARTING: usize = 256;
/// The one read buffer, in bytes.
const SCRATCH: usize = 128 * 1024;

/// Connections up to which those of a process are read before its next one: among more, one that
/// seems to be busy changes little.
const MOST_CAUGHT_UP: usize = 64;

/// One connection.
struct RelayedPair {
    near: TcpStream,
    far: TcpStream,
    out: RelayDirection,
    back: RelayDirection,
    /// The holds of the program and of the server.
    holds: [Hold; 2],
    /// Where the program's socket is found.
    place: Option<SocketLocation>,
    /// The program has, and its options were looked at once.
    has_spoken: bool,
    /// Its options were looked at for the last time.
    has_settled: bool,
    /// What the program has not read while nothing passes.
    rest: Rest,
    /// `None` once observing it has failed.
    observed: Option<ObservedConnection>,
    /// The processes that have the program's socket open, where several may use it.
    holders: Holders,
    /// Where faults strike.
    fault: Option<Box<FaultTarget>>,
    /// The fault that struck it.
    strike: Option<Box<Strike>>,
    /// A fault has written that the connection ends.
    is_announced: bool,
}

/// Encrypted bytes that may wait for secrets, each way: all for one connection, half for each of
/// two, and so on.
const MAX_WAITING: usize = 16 << 20;

/// Carries the data of all connections.
pub(crate) struct Relay<'a> {
    poll: Poll,
    orders: RelaySender,
    /// Orders that were taken in one go.
    taken: Vec<RelayCommand>,
    clock: Clock,
    run: RunContext<'a>,
    links: HashMap<ConnectionId, Box<RelayedPair>>,
    again: Vec<ConnectionId>,
    /// One way of the emulated distance.
    distance: Duration,
    arrivals: BTreeSet<(Instant, ConnectionId)>,
    timer: Timer,
    scratch: Vec<u8>,
    finishing: Option<Instant>,
    looks: Looks,
    shared: SharedSockets,
    /// Connections that were over at that time, and whose keys may still come.
    parting: Vec<(Nanos, Option<ObservedConnection>)>,
    faults: Option<Box<Faults>>,
    /// Marks that were requested, and wait for TLS keys.
    marks: PendingMarks,
}

impl<'a> Relay<'a> {
    pub(crate) fn new(
        clock: Clock,
        observer: &'a mut dyn WatchSink,
        config: &Config,
        keys: Option<Keys>,
    ) -> io::Result<Relay<'a>> {
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), ORDERS)?;
        let orders = RelaySender::new(poll.registry().try_clone()?, waker);
        let timer = Timer::new()?;
        wait_readable(poll.registry(), &timer, ARRIVALS)?;
        Ok(Relay {
            poll,
            orders,
            taken: Vec::new(),
            clock,
            run: RunContext::new(observer, config, keys),
            links: HashMap::new(),
            again: Vec::new(),
            distance: config.round_trip / 2,
            arrivals: BTreeSet::new(),
            timer,
            scratch: vec![0; SCRATCH],
            finishing: None,
            looks: Looks::default(),
            shared: SharedSockets::default(),
            parting: Vec::new(),
            faults: config
                .fault
                .clone()
                .map(|fault| Box::new(Faults::new(fault, config.place))),
            marks: PendingMarks::default(),
        })
    }

    /// The sender of commands to the relay.
    pub(crate) fn orders(&self) -> RelaySender {
        self.orders.clone()
    }

    /// Carries until the program has ended and what it left behind is passed on.
    pub(crate) fn run(mut self) {
        let mut events = Events::with_capacity(1024);
        let mut next_tick = Instant::now() + TICK;
        if let Some(faults) = &self.faults {
            self.run.record(LedgerEvent::Fault(&faults.plan()));
        }
        while !self.is_over() {
            let now = Instant::now();
            if now >= next_tick {
                next_tick = now + TICK;
                self.tick();
            }
            let until = self
                .finishing
                .map_or(next_tick, |finish| finish.min(next_tick));
            let until = self.marks.due().map_or(until, |due| due.min(until));
            let wait = if self.again.is_empty() {
                until.saturating_duration_since(now)
            } else {
                Duration::ZERO
            };
            if let Err(error) = self.poll.poll(&mut events, Some(wait))
                && error.kind() != io::ErrorKind::Interrupted
            {
                self.run.is_cut = true;
                break;
            }
            // before the events: they may be of connections that are handed over in there
            self.take_orders();
            for id in std::mem::take(&mut self.again) {
                self.pump(id);
            }
            for event in &events {
                match event.token() {
                    ARRIVALS => self.timer.rung(),
                    ORDERS => {}
                    _ => self.take_event(event),
                }
            }
            self.take_arrivals();
            self.make_marks();
        }
        self.take_orders();
        let mut left: Vec<ConnectionId> = self.links.keys().copied().collect();
        left.sort();
        for id in left {
            self.close(id);
        }
        self.run.settle_keys(Instant::now() + KEYS_AFTER_END);
        self.part();
        for missed in self.faults.iter().flat_map(|faults| faults.not_applied()) {
            self.run.record(LedgerEvent::Fault(&missed));
        }
        self.run.finish();
    }

    fn is_over(&self) -> bool {
        self.finishing.is_some_and(|deadline| {
            let carried = self.links.values().all(|link| link.out.has_ended());
            carried || Instant::now() >= deadline
        })
    }

    /// Passes on what has come over the emulated distance.
    fn take_arrivals(&mut self) {
        while let Some(&(due, id)) = self.arrivals.first()
            && due <= Instant::now()
        {
            self.arrivals.pop_first();
            self.pump(id);
        }
        self.timer.set(self.arrivals.first().map(|(due, _)| *due));
    }

    fn tick(&mut self) {
        let now = self.clock.now();
        let mut looks = rest::MOST_LOOKS;
        for link in self.links.values_mut() {
            if link.has_spoken && !std::mem::replace(&mut link.has_settled, true) {
                self.looks
                    .look(link.place.as_ref(), &link.far, &mut link.observed);
            }
            let passed = link.out.taken + link.back.taken;
            if link.rest.is_due(passed, &mut looks)
                && let Some(unread) = link.place.as_ref().and_then(rest::unread)
            {
                link.rest.note(unread);
                observe(&mut link.observed, &mut self.run, |seen, _| {
                    seen.note_unread(unread);
                });
            }
            observe(&mut link.observed, &mut self.run, |seen, run| {
                seen.tick(now, run);
            });
        }
        self.part();
        self.run.observer.tick();
    }

    /// Ends the observations of connections that are over and wait for nothing any more.
    fn part(&mut self) {
        for (at, mut observed) in std::mem::take(&mut self.parting) {
            self.end_observation(at, &mut observed);
        }
    }

    fn end_observation(&mut self, at: Nanos, observed: &mut Option<ObservedConnection>) {
        let waits = |seen: &ObservedConnection| seen.awaits_secrets(&self.run);
        if self.parting.len() < MOST_PARTING && observed.as_ref().is_some_and(waits) {
            self.parting.push((at, observed.take()));
        } else {
            observe(observed, &mut self.run, |seen, run| {
                // where neither side ended it, the run was stopped
                seen.finish(at, Ending::Observed, run);
            });
        }
    }

    fn take_orders(&mut self) {
        let mut taken = std::mem::take(&mut self.taken);
        self.orders.take(&mut taken);
        for order in taken.drain(..) {
            match order {
                RelayCommand::Carry(carriage) => {
                    self.catch_up(carriage.about.owner.as_ref().map(|owner| owner.pid));
                    self.carry(*carriage);
                }
                RelayCommand::Record(row) => {
                    if let (Some(faults), Row::Opened(about)) = (&mut self.faults, &*row)
                        && about.failed.is_none()
                    {
                        faults.note_not_relayed(about);
                    }
                    self.run.record(row.as_event());
                }
                RelayCommand::Mark(number) => self.marks.add(number),
                RelayCommand::Finish => self.finishing = Some(Instant::now() + DRAIN),
            }
        }
        self.taken = taken;
    }

    /// Reads what waits on the busy connections of a process that has opened another one: what it
    /// did there came before, such as a close in the middle of a response.
    fn catch_up(&mut self, process: Option<u32>) {
        if self.links.len() > MOST_CAUGHT_UP {
            return;
        }
        let is_busy = |seen: &ObservedConnection| {
            let owner = seen.connection().owner.as_ref();
            owner.map(|owner| owner.pid) == process && seen.unrecorded_exchanges() > 0
        };
        let links = self.links.iter();
        let busy = links.filter(|(_, link)| link.observed.as_ref().is_some_and(is_busy));
        for id in busy.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.pump_waiting(id);
        }
    }

    /// Carries what waits in the sockets of a connection, ahead of its events.
    fn pump_waiting(&mut self, id: ConnectionId) {
        if let Some(link) = self.links.get_mut(&id) {
            link.out.readable = true;
            link.back.readable = true;
        }
        self.pump(id);
    }

    fn carry(&mut self, carriage: RelayedConnection) {
        let RelayedConnection {
            near,
            far,
            about,
            place,
        } = carriage;
        let id = about.id;
        let fault = self.faults.as_deref_mut().map(|faults| {
            faults.note_carried(id);
            let is_elsewhere = faults.is_to_other_server(&far);
            Box::new(FaultTarget::new(&about, place.as_ref(), is_elsewhere))
        });
        let reading = self.run.tls_reading(about.owner.as_ref());
        let mut observed = ObservedConnection::new(about, false, reading);
        observed.hear_client();
        // a search in memory takes its time, which a fast download does not
        observed.wait_for_secrets(MAX_WAITING / (self.links.len() + 1));
        let out = RelayDirection::over(self.distance, false);
        let link = RelayedPair {
            out: out.to(&far),
            near,
            far,
            back: RelayDirection::over(self.distance, true),
            holds: Default::default(),
            place,
            has_spoken: false,
            has_settled: false,
            rest: Rest::default(),
            observed: Some(observed),
            holders: Holders::default(),
            fault,
            strike: None,
            is_announced: false,
        };
        self.links.insert(id, Box::new(link));
    }

    fn take_event(&mut self, event: &Event) {
        let Token(token) = event.token();
        let id = ConnectionId(token as u64 / 2);
        // late events may be of connections that have just been closed
        let Some(link) = self.links.get_mut(&id) else {
            return;
        };
        let source = if event.token() == near_token(id) {
            &mut link.out
        } else {
            &mut link.back
        };
        source.readable |= event.is_readable() || event.is_error();
        source.closing |= event.is_read_closed() || event.is_error();
        self.pump(id);
    }

    /// Passes on what there is, in both directions.
    fn pump(&mut self, id: ConnectionId) {
        let Some(link) = self.links.get_mut(&id) else {
            return;
        };
        if let Some(fault) = &link.fault
            && (link.strike.is_some() || fault.is_due())
        {
            return match &link.strike {
                Some(_) => self.pump_struck(id),
                None => self.strike(id),
            };
        }
        let RelayedPair {
            near,
            far,
            out,
            back,
            holds,
            observed,
            holders,
            place,
            has_spoken,
            fault,
            ..
        } = &mut **link;
        let clock = self.clock;
        // a client that gives up shows what its request met
        if back.readable || out.has_spoken() {
            note_acknowledgements(far, observed, clock.now());
        }
        let run = &mut self.run;
        for from in [Side::Client, Side::Server] {
            look_at_hold(&holds[from as usize], from, observed, run);
        }
        let faults = &mut self.faults;
        let mut see = |from: Side, came: ReadResult<'_>| {
            if let (Some(faults), Some(target), ReadResult::Bytes(bytes)) =
                (faults.as_deref_mut(), fault.as_deref_mut(), came)
            {
                let mut shown = Shown {
                    observed: &mut *observed,
                    run: &mut *run,
                    clock,
                    holds,
                };
                return target.take((from, bytes), faults, &mut shown);
            }
            let (at, hold) = (clock.now(), &holds[from as usize]);
            observe(observed, run, |seen, run| {
                take(seen, run, (from, at), came, hold);
            });
            Passed::All
        };
        // the answer first: what the program sends now may be its reply to that
        let scratch = &mut self.scratch;
        let is_last = out.has_ended();
        let [client, server] = &*holds;
        let back_stop = back.pass((far, near), scratch, is_last, server, |came| {
            see(Side::Server, came)
        });
        if back_stop == Stop::SinkReset {
            out.is_source_reset = true;
        }
        let is_last = back.has_ended();
        // nothing of the program's passes a fault that has just struck
        let out_stop = match back.is_cut() {
            true => Stop::Waiting,
            false => out.pass((near, far), scratch, is_last, client, |came| {
                see(Side::Client, came)
            }),
        };
        self.shared.look(near, holders, observed);
        if fault.as_ref().is_some_and(|target| target.is_due()) {
            return self.strike(id);
        }
        let broken = match (back_stop, out_stop) {
            // the kernel did what the program had asked of its own
            (Stop::TimedOut, _) | (_, Stop::TimedOut) => Some((Side::Client, CloseKind::Silent)),
            (Stop::SourceReset, _) | (_, Stop::SinkReset | Stop::SinkClosed) => {
                Some((Side::Server, CloseKind::Rst))
            }
            (Stop::SinkReset | Stop::SinkClosed, _) | (_, Stop::SourceReset) => {
                Some((Side::Client, CloseKind::Rst))
            }
            _ => None,
        };
        if let Some((side, how)) = broken {
            let is_by_program = (side, how) == (Side::Client, CloseKind::Rst);
            let at = self.clock.now();
            observe(observed, &mut self.run, |seen, run| {
                let counted = back.acknowledged.or_else(|| socket::acknowledged(far));
                match (is_by_program, out.received(), counted) {
                    (false, Some(bytes), _) => seen.note_acknowledged(bytes),
                    (false, None, Some(bytes)) => seen.note_acknowledged_before_reset(bytes),
                    _ => {}
                }
                seen.end(side, how, at, run);
            });
            socket::reset_on_close(if is_by_program { far } else { near });
            self.close(id);
        } else if out.has_ended() && back.has_ended() {
            let agree = |end: &TcpStream, way: &RelayDirection| {
                socket::received_to_the_end(end).is_none_or(|kernel| kernel == way.taken)
            };
            if !(agree(near, out) && agree(far, back)) {
                self.run.differences += 1;
            }
            // a program that has closed both directions resets what comes after its FIN
            if near.take_error().is_ok_and(|error| error.is_some()) {
                let at = self.clock.now();
                observe(observed, &mut self.run, |seen, run| {
                    seen.end(Side::Client, CloseKind::Rst, at, run);
                });
            }
            self.close(id);
        } else if back_stop == Stop::Turn || out_stop == Stop::Turn {
            self.again.push(id);
        } else {
            let registry = self.poll.registry();
            await_room(registry, near, near_token(id), back);
            await_room(registry, far, far_token(id), out);
            let now = Instant::now();
            let held = holds.iter().filter_map(|hold| hold.next(now));
            if let Some(due) = out.next().into_iter().chain(back.next()).chain(held).min() {
                self.arrivals.insert((due, id));
            }
            // the program awaits its answer by now, and not us
            if !*has_spoken && out.has_spoken() {
                *has_spoken = true;
                self.looks.look_now_and_then(place.as_ref(), far, observed);
            }
            if fault.is_some() {
                self.look_at_idle(id);
            }
        }
    }

    /// Ends a connection and its observation.
    fn close(&mut self, id: ConnectionId) {
        let Some(mut link) = self.links.remove(&id) else {
            return;
        };
        note_acknowledgements(&link.far, &mut link.observed, self.clock.now());
        if let Some(faults) = self.faults.as_deref_mut() {
            if let (Some(seen), Some(target)) = (&link.observed, &link.fault) {
                let done = seen.progress().map_or(0, |progress| progress.done);
                faults.note_end(target, seen.connection(), done.max(seen.exchanges()));
            }
            match link.strike.take() {
                Some(strike) => self.record_strike(id, &strike),
                None => self.record_elsewhere(&link),
            }
        }
        self.end_observation(self.clock.now(), &mut link.observed);
    }
}

/// Has a sink report when it takes more, once it was full: most never are, and need not report that
/// they have room.
fn await_room(registry: &Registry, sink: &mut TcpStream, token: Token, way: &mut RelayDirection) {
    if way.begins_to_wait_for_room() {
        let both = Interest::READABLE | Interest::WRITABLE;
        // a sink that cannot be waited for is tried again whenever its source speaks
        let _ = registry.reregister(sink, token, both);
    }
}

/// Ends the hold of a sender where its bytes wait no longer.
fn look_at_hold(
    hold: &Hold,
    from: Side,
    observed: &mut Option<ObservedConnection>,
    run: &mut RunContext<'_>,
) {
    if hold.is_held() {
        // an observation that has failed waits for nothing
        let mut is_crowded = false;
        observe(observed, run, |seen, run| {
            is_crowded = seen.is_crowded(from, run);
        });
        hold.note(is_crowded, Instant::now());
    }
}

/// Shows what came from one side to its observation.
fn take(
    seen: &mut ObservedConnection,
    run: &mut RunContext<'_>,
    (from, at): (Side, Nanos),
    came: ReadResult<'_>,
    hold: &Hold,
) {
    match came {
        ReadResult::Bytes(bytes) => {
            seen.read(from, bytes, at, run);
            if seen.is_crowded(from, run) {
                hold.note(true, Instant::now());
            }
        }
        ReadResult::Fin { acknowledged } => {
            if let (Side::Server, Some(bytes)) = (from, acknowledged) {
                seen.note_acknowledged(bytes);
            }
            seen.end(from, CloseKind::Fin, at, run);
        }
    }
}

/// Asks the kernel for segments that were sent again, and when the request was acknowledged, where
/// what the server sends now may have waited for one.
fn note_acknowledgements(far: &TcpStream, observed: &mut Option<ObservedConnection>, now: Nanos) {
    if let Some(seen) = observed
        && seen.may_have_waited_for_segments(now)
        && let Some(counts) = socket::acknowledgements(far)
    {
        seen.note_acknowledgements(Acknowledgements::new(counts), now);
    }
}

/// Shows something to an observation; one that breaks is given up.
fn observe(
    observed: &mut Option<ObservedConnection>,
    run: &mut RunContext<'_>,
    show: impl FnOnce(&mut ObservedConnection, &mut RunContext<'_>),
) {
    if let Some(seen) = observed
        && catch_unwind(AssertUnwindSafe(|| show(seen, run))).is_err()
    {
        *observed = None;
        run.faults += 1;
    }
}
