//! Follows programs that run already, from outside: their TCP connections are looked up again and
//! again, and the kernel reports when one ends. With CAP_NET_RAW their packets are read, so that
//! requests are seen; else no data is.
//!
//! Of a connection that comes and goes between two looks only the kernel's trace of connects knows
//! the owner, where we may read it. Elsewhere [`Others`] counts what may have been one, and the run
//! is then incomplete.

mod caveats;
mod key_log;
mod look;
mod ownership;
mod packets;
mod subjects;
mod turns;

pub use subjects::Subjects;

use crate::platform::connect_trace::{ConnectTrace, TracedConnect, TracedOwner};
use crate::platform::looks::Looks;
use crate::platform::others::Others;
use crate::platform::sock_diag_tracker::SockDiagTracker;
use crate::platform::wait_readable;
use crate::{AttachConfig, Clock, Mode, Sides, WatchError, WatchSink, followed_evidence};
use intact_ledger::{Caveat, Evidence, EvidenceSet, Row};
use intact_sys::address::unmapped;
use intact_sys::namespaces::{self, NetworkVisit};
use intact_sys::process;
use intact_sys::signals::Signals;
use intact_sys::sock_diag::SocketReport;
use intact_sys::timer::Timer;
use look::{CheckedSocket, Cookies};
use mio::{Events, Poll, Token};
use ownership::Ownership;
use packets::{ServicePackets, wall};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const ENDS: Token = Token(0);
const SIGNALS: Token = Token(1);
const LOOKS: Token = Token(2);
const PACKETS: Token = Token(3);
/// The time between two looks; longer where a look takes more than 5 % of it.
const PACE: Duration = Duration::from_millis(10);
/// The same where the trace or the listeners show whose packets are.
const PACE_OF_PACKETS: Duration = Duration::from_millis(20);
const SHARE: u32 = 20;
/// With packets, keys are searched once a look has shown the process, while the connection lives.
const SHARE_OF_PACKETS: u32 = 5;
/// How often files are flushed.
const TICK: Duration = Duration::from_secs(1);
/// How long the kernel may take to report a socket that ended before the run did.
const SOCKETS_LATE: Duration = Duration::from_millis(20);

/// Programs that run already, about to be followed.
pub struct Attached {
    follower: Follower,
    /// In whose network namespace we are.
    visit: Option<NetworkVisit>,
}

/// Looks for the programs and their sockets, and begins to receive their packets where that is
/// permitted. What they do from now on is observed. `clock`: the run's.
///
/// # Errors
/// There is no such program, or it does not let us look at its sockets.
pub fn attach(mut config: AttachConfig, clock: Clock) -> Result<Attached, WatchError> {
    let roots = config.subjects.roots();
    if let Subjects::Processes(processes) = &config.subjects {
        for process in processes {
            if !process::is_alive(*process) {
                return Err(WatchError::NoProcess(*process));
            }
            process::each_socket(*process, |_| {})
                .map_err(|error| WatchError::Closed(*process, error))?;
        }
    }
    if let (Subjects::Named(name) | Subjects::Group(name), []) = (&config.subjects, &*roots) {
        return Err(WatchError::NoSuch(name.clone()));
    }
    if let Some(logging) = &mut config.keys
        && logging.own_file.is_none()
    {
        logging.own_file = roots.iter().find_map(|root| key_log::of_process(*root));
    }
    let signals = Signals::take_over().map_err(|error| WatchError::Setup("signalfd", error))?;
    let visit = visit(&config.subjects);
    let packets = match (&config.subjects, config.mode) {
        (Subjects::All, _) | (_, Mode::Passthrough) => Err(io::ErrorKind::Unsupported.into()),
        _ => ServicePackets::open(&config),
    };
    let mut follower = Follower::new(config, packets, clock, signals)?;
    follower.begin();
    Ok(Attached { follower, visit })
}

/// Enters the network namespace of the first process: what lives elsewhere, or where we may not go,
/// is reported as missing.
fn visit(subjects: &Subjects) -> Option<NetworkVisit> {
    let first = subjects.roots().into_iter().next()?;
    NetworkVisit::of_process(first).ok()?
}

impl Attached {
    /// What is observed.
    pub fn evidence(&self) -> EvidenceSet {
        if self.follower.packets.is_err() {
            return followed_evidence();
        }
        match self.follower.config.sides {
            Sides::Client => intact_observe::EVIDENCE.union(EvidenceSet::of(&[
                Evidence::Addresses,
                Evidence::Attempts,
                Evidence::Owners,
            ])),
            // a server does not see attempts that do not reach it
            Sides::Server | Sides::Both => intact_observe::EVIDENCE,
        }
    }

    /// Follows them until they end, the time is over, or a signal comes: its number. With
    /// [`AttachConfig::every`] the time is never over.
    pub fn follow(mut self, observer: &mut dyn WatchSink) -> Option<i32> {
        if let Some(every) = self.follower.config.every {
            return self.follow_in_turns(every, observer);
        }
        let signal = self.follower.run(observer);
        self.follower.finish(observer);
        signal
    }
}

struct Follower {
    config: AttachConfig,
    clock: Clock,
    poll: Poll,
    timer: Timer,
    signals: Signals,
    outside: SockDiagTracker,
    others: Others,
    /// An error where it is not permitted, or not needed.
    trace: io::Result<ConnectTrace>,
    /// An error where it is not permitted.
    packets: io::Result<ServicePackets>,
    looks: Looks,
    /// The network namespace that we are in, the only one whose sockets are listed.
    namespace: Option<u64>,
    /// Followed processes in other network namespaces.
    elsewhere: BTreeSet<u32>,
    /// Followed processes whose descriptors cannot be read, and in how many scans: one that is
    /// ending cannot be read for a moment.
    unreadable: BTreeMap<u32, u32>,
    /// Followed processes, where others may be followed later.
    known: HashSet<u32>,
    /// Sockets that listen, at the last look.
    listening: HashSet<(SocketAddr, u32)>,
    /// Sockets whose packets show how they were opened: those that followed processes accepted, and
    /// those from before the run.
    checked: HashMap<u64, CheckedSocket>,
    /// The sockets at the last look, where there are several turns.
    cookies: Cookies,
    next_id: u64,
    /// Connections that were there before us.
    earlier: u64,
}

impl Follower {
    fn new(
        config: AttachConfig,
        mut packets: io::Result<ServicePackets>,
        clock: Clock,
        signals: Signals,
    ) -> Result<Follower, WatchError> {
        let setup = |what| move |error| WatchError::Setup(what, error);
        let poll = Poll::new().map_err(setup("epoll"))?;
        let timer = Timer::new().map_err(setup("timerfd"))?;
        let outside = SockDiagTracker::new(None).map_err(setup("sock_diag"))?;
        wait_readable(poll.registry(), &outside, ENDS)
            .and_then(|()| wait_readable(poll.registry(), &signals, SIGNALS))
            .and_then(|()| wait_readable(poll.registry(), &timer, LOOKS))
            .map_err(setup("epoll"))?;
        if let Ok(packets) = &mut packets {
            packets.set_clock(clock);
            wait_readable(poll.registry(), packets, PACKETS).map_err(setup("epoll"))?;
        }
        // listeners show whose accepted connections are
        let trace = match packets.is_ok() && !config.sides.has_client() {
            true => Err(io::ErrorKind::Unsupported.into()),
            false => ConnectTrace::start(clock, &config.subjects),
        };
        if let (Ok(packets), Ok(_)) = (&mut packets, &trace) {
            packets.ownership().note_trace();
        }
        Ok(Follower {
            config,
            clock,
            poll,
            timer,
            signals,
            outside,
            others: Others::default(),
            trace,
            packets,
            looks: Looks::default(),
            namespace: namespaces::network_of_thread(),
            elsewhere: BTreeSet::new(),
            unreadable: BTreeMap::new(),
            known: HashSet::new(),
            listening: HashSet::new(),
            checked: HashMap::new(),
            cookies: Cookies::new(),
            next_id: 1,
            earlier: 0,
        })
    }

    /// Looks at what is there before the run.
    fn begin(&mut self) {
        // what ended before the first look is no part of the run
        self.outside
            .take_ends(self.clock.now(), &mut |_| {}, &mut |_| {});
        self.owners();
        let began = Instant::now();
        let done = self.look();
        self.looks.end(began, done);
    }

    fn run(&mut self, observer: &mut dyn WatchSink) -> Option<i32> {
        let at_most = self.config.at_most;
        let deadline = at_most.map(|time| Instant::now() + time);
        let mut events = Events::with_capacity(16);
        let mut next_tick = Instant::now() + TICK;
        let mut next_look = Instant::now();
        let is_shown = self.trace.is_ok() || !self.config.sides.has_client();
        let (pace, share) = match self.packets.is_ok() && is_shown {
            true => (PACE_OF_PACKETS, SHARE_OF_PACKETS),
            false => (PACE, SHARE),
        };
        loop {
            let began = Instant::now();
            if began >= next_look || self.packets.is_err() {
                let done = self.look();
                self.looks.end(began, done);
                next_look = began + pace.max(began.elapsed() * share);
                self.timer.set(Some(next_look));
            }
            if self.poll.poll(&mut events, Some(TICK)).is_err() {
                events.clear();
            }
            self.timer.rung();
            self.read_packets(observer);
            self.take_ends(observer);
            let signal = self.signals.find(is_of_run);
            if signal.is_some() {
                return signal;
            }
            let now = Instant::now();
            if now >= next_tick {
                next_tick = now + TICK;
                if let Ok(packets) = &mut self.packets {
                    packets.tick(observer);
                }
                observer.tick();
                // a process in another namespace shows no socket that would have us look at it
                self.owners();
            }
            if self.config.is_over() || deadline.is_some_and(|deadline| now >= deadline) {
                return None;
            }
        }
    }

    fn read_packets(&mut self, observer: &mut dyn WatchSink) {
        let trace = &mut self.trace;
        if let Ok(packets) = &mut self.packets {
            packets.read(observer, |ownership| update(trace, ownership));
        }
    }

    fn take_ends(&mut self, observer: &mut dyn WatchSink) {
        let now = self.clock.now();
        let mut strangers = Vec::new();
        let mut rows = Vec::new();
        self.outside
            .take_ends(now, &mut |row| rows.push(row), &mut |report| {
                strangers.push(*report);
            });
        // after the ends: what was connected before them is there
        self.update_trace();
        for report in strangers {
            match self.traced_owner(&report) {
                Some(TracedOwner::Followed(connect)) => {
                    self.others.forget(report.cookie);
                    let about = self.connection(&report, connect.at, connect.owner);
                    let record = &mut |row| rows.push(row);
                    self.outside.record_ended(about, report, now, record);
                }
                Some(TracedOwner::Other) => self.others.forget(report.cookie),
                None => self.others.end(&report),
            }
        }
        for row in rows {
            match &mut self.packets {
                Ok(packets) => packets.report(row),
                Err(_) => observer.record(row.as_event()),
            }
        }
    }

    fn update_trace(&mut self) {
        match (&mut self.packets, &mut self.trace) {
            (Ok(packets), trace) => update(trace, packets.ownership()),
            (Err(_), Ok(trace)) => trace.update(),
            (Err(_), Err(_)) => {}
        }
    }

    fn traced_owner(&mut self, report: &SocketReport) -> Option<TracedOwner> {
        let Ok(packets) = &mut self.packets else {
            return self.trace.as_mut().ok()?.take_owner(report);
        };
        let ends = (unmapped(report.local), unmapped(report.peer));
        let ownership = packets.ownership();
        match ownership.owner(ends) {
            Some(owner) => Some(TracedOwner::Followed(TracedConnect {
                at: self.clock.now(),
                owner: owner.clone(),
            })),
            None => ownership.is_others(ends).then_some(TracedOwner::Other),
        }
    }

    fn finish(mut self, observer: &mut dyn WatchSink) {
        let caveats = self.complete(observer);
        let Follower {
            outside,
            packets,
            mut trace,
            clock,
            ..
        } = self;
        match packets {
            Ok(mut packets) => {
                outside.finish(clock, &mut |row| packets.report(row));
                packets.finish(observer, |ownership| update(&mut trace, ownership));
            }
            Err(_) => outside.finish(clock, &mut |row: Row| observer.record(row.as_event())),
        }
        for caveat in caveats {
            observer.record(Row::Caveat(caveat).as_event());
        }
    }

    /// Takes what is known of the last moments, and states what limits it.
    fn complete(&mut self, observer: &mut dyn WatchSink) -> Vec<Caveat> {
        if let Ok(packets) = &mut self.packets {
            packets.ownership().end_run(wall());
        }
        // a socket is known to be another program's once two looks have seen it
        for _ in 0..2 {
            let began = Instant::now();
            let done = self.look();
            self.looks.end(began, done);
        }
        std::thread::sleep(SOCKETS_LATE);
        self.take_ends(observer);
        self.caveats()
    }
}

/// Whether a signal ends the run. The end of a child does not.
fn is_of_run(signal: i32) -> bool {
    signal != libc::SIGCHLD
}

impl AttachConfig {
    /// Whether nothing is to be followed any more.
    fn is_over(&self) -> bool {
        self.subjects.are_gone() || self.stop.load(Ordering::Relaxed)
    }
}

/// Brings up to date what is known of owners.
fn update(trace: &mut io::Result<ConnectTrace>, ownership: &mut Ownership) {
    if let Ok(trace) = trace {
        trace.update();
        let (decided, others) = trace.take_decided();
        ownership.trace(decided, others);
    }
}
