//! Answers the program's calls: one loop, no thread per connection, nothing that blocks.
//!
//! Whatever happens in here, every call gets an answer: what cannot be followed continues untouched, and a panic is
//! caught for the one call that caused it. The data itself is the relay's.

mod connect;
mod connect_call;
mod delayed_exits;
mod inspection;
mod local_listener;
mod lookups;
mod passthrough;
mod pending_listener;
mod real_addresses;
mod stages;
mod unseen_scan;

use crate::platform::relay_command::RelaySender;
use crate::platform::sock_diag_tracker::SockDiagTracker;
use crate::{Clock, Config, Cpu, Ended, Mode, Numbers, Outcome, RunPosition, Unwatched};
use connect_call::ConnectCall;
use delayed_exits::DelayedExits;
use inspection::Inspection;
use intact_ledger::{Nanos, Row, Span};
use intact_sys::process::{self, Processes, raise_descriptor_limit};
use intact_sys::seccomp::{Notification, NotificationListener, NotificationResponse};
use intact_sys::signals::{self, Signals};
use intact_sys::socket;
use intact_sys::timer::Timer;
use local_listener::LocalListener;
use lookups::Lookups;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token, Waker};
use pending_listener::Traps;
use real_addresses::AddressTable;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};
use unseen_scan::UnseenScan;

const CALLS: Token = Token(0);
const SIGNALS: Token = Token(1);
const PADS: [Token; 2] = [Token(2), Token(3)];
const DEADLINES: Token = Token(4);
const ENDS: Token = Token(5);
/// Another thread has something for us.
const WOKEN: Token = Token(6);
/// Tokens of calls begin here: two a call, the way to the destination and our end of a meeting.
const FIRST_CALL: usize = 7;

/// Tokens of sockets that speak with name servers begin here.
const LOOKUP: usize = 1 << 62;

/// Descriptors that are kept free for what is under way and for files.
const RESERVED: u64 = 64;

/// Answers the program's calls until it and everything that it started has ended.
pub(crate) struct Supervisor {
    poll: Poll,
    listener: NotificationListener,
    signals: Signals,
    program: u32,
    ended: Option<Ended>,
    began: Nanos,
    over: Nanos,
    cpu: Cpu,
    abandoned: bool,
    orders: RelaySender,
    clock: Clock,
    numbers: Numbers,
    place: Option<RunPosition>,
    apart: Option<SocketAddr>,
    processes: Processes,
    inspection: Inspection,
    names: AddressTable,
    lookups: Lookups,
    mode: Mode,
    /// Our network namespace, where the kernel tells.
    namespace: Option<u64>,
    /// A socket of ours with this number or a higher one leaves too little room for others.
    last_descriptor: RawFd,
    outside: Option<SockDiagTracker>,
    /// When what the kernel has told of ends is read at the latest.
    ends_due: Option<Instant>,
    census: UnseenScan,
    /// Of our loop.
    waker: Arc<Waker>,
    pads: [Option<LocalListener>; 2],
    traps: Traps,
    calls: HashMap<usize, ConnectCall>,
    by_cookie: HashMap<u64, usize>,
    deadlines: BTreeSet<(Instant, usize)>,
    timer: Timer,
    next_call: usize,
    /// Connections that are left to the kernel; where inspection is refused, calls that may be some.
    unwatched: BTreeMap<Unwatched, u64>,
    round_trip: Duration,
    leavers: DelayedExits,
}

impl Supervisor {
    pub(crate) fn new(
        listener: OwnedFd,
        signals: Signals,
        program: u32,
        orders: RelaySender,
        clock: Clock,
        config: &Config,
        began: Nanos,
    ) -> io::Result<Supervisor> {
        let poll = Poll::new()?;
        let registry = poll.registry();
        let listener = NotificationListener::new(listener);
        listener.register(&poll, CALLS.0)?;
        let inspection = Inspection::try_on(listener.own_child());
        if config.mode == Mode::Passthrough {
            listener.hand_over_on_one_cpu();
        }
        registry.register(
            &mut SourceFd(&signals.as_raw_fd()),
            SIGNALS,
            Interest::READABLE,
        )?;
        // each socket's end on this machine is told to it, so it is there only where it is needed
        let outside = match config.mode {
            Mode::Passthrough => Some(passthrough::listen(registry)?),
            Mode::Auto | Mode::Relay => None,
        };
        let timer = Timer::new()?;
        registry.register(
            &mut SourceFd(&timer.as_raw_fd()),
            DEADLINES,
            Interest::READABLE,
        )?;
        let waker = Arc::new(Waker::new(registry, WOKEN)?);
        // a machine may have one family only
        let pads = [
            LocalListener::open(false).ok(),
            LocalListener::open(true).ok(),
        ];
        let namespace = pads.iter().flatten().next().and_then(socket::namespace);
        Ok(Supervisor {
            poll,
            listener,
            signals,
            program,
            ended: None,
            began,
            over: Nanos(0),
            cpu: Cpu::default(),
            abandoned: false,
            orders,
            clock,
            numbers: config.numbers.clone(),
            place: config.place,
            apart: config.apart,
            processes: Processes::default(),
            inspection,
            names: AddressTable::default(),
            lookups: Lookups::default(),
            mode: config.mode,
            namespace,
            last_descriptor: RawFd::try_from(raise_descriptor_limit().saturating_sub(RESERVED))
                .unwrap_or(RawFd::MAX),
            outside,
            ends_due: None,
            census: UnseenScan::new(),
            waker,
            pads,
            traps: Traps::default(),
            calls: HashMap::new(),
            by_cookie: HashMap::new(),
            deadlines: BTreeSet::new(),
            timer,
            next_call: 0,
            unwatched: BTreeMap::new(),
            round_trip: config.round_trip,
            leavers: DelayedExits::default(),
        })
    }

    /// Answers until nobody is left to ask.
    pub(crate) fn run(mut self) -> Outcome {
        let mut events = Events::with_capacity(256);
        let mut orphaned = false;
        // now, so that the record of a run that is killed has them too
        for reason in self.inspection.refused() {
            self.record(Row::Caveat(reason.caveat(0)));
        }
        // the program may have ended before its signal was blocked
        self.reap();
        while !(self.abandoned || orphaned && self.ended.is_some()) {
            let deadline = self.deadlines.first().map(|(when, _)| *when);
            let soonest = [
                deadline,
                self.ends_due,
                self.leavers.deadline(),
                self.census.due(),
            ];
            self.timer.set(soonest.into_iter().flatten().min());
            if let Err(error) = self.poll.poll(&mut events, self.lookups.pace())
                && error.kind() != io::ErrorKind::Interrupted
            {
                self.leave(Unwatched::Fault);
                break;
            }
            for event in &events {
                match event.token() {
                    CALLS => {
                        if event.is_readable() {
                            self.take_next_call();
                        }
                        // told as long as it holds, which is for ever
                        if event.is_read_closed() && !std::mem::replace(&mut orphaned, true) {
                            self.listener.deregister(&self.poll);
                        }
                    }
                    SIGNALS => self.take_signals(),
                    DEADLINES => self.timer.rung(),
                    ENDS => self.put_off_ends(),
                    WOKEN => self.take_census(),
                    token if PADS.contains(&token) => self.take_arrivals(token.0 - PADS[0].0),
                    token if token.0 >= LOOKUP => self.take_answer(token),
                    Token(token) => self.guard((token - FIRST_CALL) / 2, Supervisor::advance),
                }
            }
            self.take_deadlines();
            self.take_late_ends();
            self.release_leavers();
            self.look_around();
            self.settle_lookups(false);
        }
        self.end_census();
        if !self.abandoned {
            self.listener.stop_fallback();
        }
        self.settle_lookups(true);
        for call in std::mem::take(&mut self.calls).into_values() {
            self.record_given_up(call.dial.about);
        }
        if let Some(outside) = self.outside.take() {
            let orders = &self.orders;
            outside.finish_after_end(self.clock, &mut |row| orders.record(row));
        }
        let recorded = self.inspection.refused();
        let reasons = self.unwatched.iter();
        for (reason, count) in reasons.filter(|(reason, _)| !recorded.contains(reason)) {
            self.record(Row::Caveat(reason.caveat(*count)));
        }
        Outcome {
            ended: self.ended.unwrap_or(Ended::Code(0)),
            span: Span::new(self.began, self.over),
            cpu: self.cpu,
            unwatched: self.unwatched,
            abandoned: self.abandoned,
        }
    }

    fn take_next_call(&mut self) {
        let Ok(Some(notice)) = self.listener.take() else {
            return;
        };
        let answered = catch_unwind(AssertUnwindSafe(|| self.take_call(&notice)));
        let answer = answered.unwrap_or_else(|_| {
            self.leave(Unwatched::Fault);
            Some(NotificationResponse::Continue)
        });
        if let Some(answer) = answer {
            self.listener.answer(notice.id, answer);
        }
    }

    /// `None`: the answer comes later.
    fn take_call(&mut self, notice: &Notification) -> Option<NotificationResponse> {
        match notice.call {
            _ if notice.is_32 => {
                let _ = self.count_connect_32(notice);
                Some(NotificationResponse::Continue)
            }
            libc::SYS_connect if self.mode == Mode::Passthrough => self.pass_by(notice),
            libc::SYS_connect => self.connect(notice),
            libc::SYS_exit_group => self.end(notice),
            libc::SYS_getpeername => Some(self.tell_name(notice, |ends| ends.peer)),
            libc::SYS_getsockname => Some(self.tell_name(notice, |ends| ends.local)),
            libc::SYS_sendto => {
                let _ = self.see_sendto(notice);
                Some(NotificationResponse::Continue)
            }
            libc::SYS_sendmmsg => {
                let _ = self.see_sendmmsg(notice);
                Some(NotificationResponse::Continue)
            }
            libc::SYS_recvfrom => {
                let _ = self.see_recvfrom(notice);
                Some(NotificationResponse::Continue)
            }
            _ => Some(NotificationResponse::Continue),
        }
    }

    fn take_signals(&mut self) {
        while let Some(signal) = self.signals.next() {
            match signal.number {
                libc::SIGCHLD => self.reap(),
                // the terminal has told the program already
                _ if signal.by_terminal && self.ended.is_none() => {}
                number if self.ended.is_none() => signals::send(self.program, number),
                // what is left runs on without us
                _ => self.abandoned = true,
            }
        }
    }

    /// Collects the program, and orphans of its.
    fn reap(&mut self) {
        while let Some(gone) = process::reap() {
            let [user, system] = gone.cpu;
            self.cpu.user += user;
            self.cpu.system += system;
            if gone.process == self.program {
                self.over = self.clock.now();
                self.ended = Some(if libc::WIFSIGNALED(gone.status) {
                    Ended::Signal(libc::WTERMSIG(gone.status))
                } else {
                    Ended::Code(libc::WEXITSTATUS(gone.status))
                });
            }
        }
    }

    fn take_arrivals(&mut self, pad: usize) {
        while let Some((call, near)) = self.pads[pad].as_mut().and_then(LocalListener::accept) {
            self.arrive(call, near);
        }
        if let Some(awaiting) = &mut self.pads[pad] {
            // where it cannot, the next landing takes this one along
            let _ = awaiting.listen(self.poll.registry(), PADS[pad]);
        }
    }

    fn take_deadlines(&mut self) {
        let now = Instant::now();
        while let Some(&(when, call)) = self.deadlines.first() {
            if when > now {
                break;
            }
            self.deadlines.pop_first();
            self.guard(call, Supervisor::advance);
        }
    }

    /// Runs a step of one call; a panic ends that call only.
    fn guard(&mut self, number: usize, step: fn(&mut Supervisor, usize)) {
        let notice = self.calls.get(&number).map(|call| call.dial.notice.id);
        if catch_unwind(AssertUnwindSafe(|| step(self, number))).is_err() {
            self.leave(Unwatched::Fault);
            self.calls.remove(&number);
            if let Some(id) = notice {
                self.listener.answer(id, NotificationResponse::Continue);
            }
        }
    }

    /// Counts a connection that is left to the kernel.
    fn leave(&mut self, reason: Unwatched) {
        *self.unwatched.entry(reason).or_default() += 1;
    }

    fn record(&self, row: Row) {
        self.orders.record(row);
    }
}
