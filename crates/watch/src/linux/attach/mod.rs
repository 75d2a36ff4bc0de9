//! Follows programs that run already, from outside: their TCP connections are looked up again and
//! again, and the kernel reports when one ends. With CAP_NET_RAW their packets are read, so that
//! requests are seen; else no data is.
//!
//! Of a connection that comes and goes between two looks only the kernel's trace of connects knows
//! the owner, where we may read it. Elsewhere [`Others`] counts what may have been one, and the run
//! is then incomplete.

mod caveats;
mod key_log;
mod ownership;
mod packets;
mod subjects;

pub use subjects::Subjects;

use crate::platform::connect_trace::{ConnectTrace, TracedConnect, TracedOwner};
use crate::platform::looks::Looks;
use crate::platform::others::Others;
use crate::platform::sock_diag_tracker::SockDiagTracker;
use crate::platform::supervisor::origin;
use crate::platform::wait_readable;
use crate::{AttachConfig, Clock, Mode, Sides, WatchError, WatchSink, followed_evidence};
use intact_ledger::{Connection, ConnectionId, Evidence, EvidenceSet, Nanos, Owner, Row};
use intact_sys::address::unmapped;
use intact_sys::namespaces::{self, NetworkVisit};
use intact_sys::process;
use intact_sys::signals::Signals;
use intact_sys::sock_diag::{self, SocketReport};
use intact_sys::timer::Timer;
use mio::{Events, Poll, Token};
use ownership::Ownership;
use packets::{LATE, ServicePackets, wall};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io;
use std::net::SocketAddr;
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
/// How often files are flushed.
const TICK: Duration = Duration::from_secs(1);
/// How long the kernel may take to report a socket that ended before the run did.
const SOCKETS_LATE: Duration = Duration::from_millis(20);

/// Programs that run already, about to be followed.
pub struct Attached {
    follower: Follower,
    /// In whose network namespace we are.
    _visit: Option<NetworkVisit>,
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
    // the first decides: what lives elsewhere, or where we may not go, is reported as missing
    let visit = roots
        .first()
        .and_then(|root| NetworkVisit::of_process(*root).ok()?);
    let packets = match (&config.subjects, config.mode) {
        (Subjects::All, _) | (_, Mode::Passthrough) => Err(io::ErrorKind::Unsupported.into()),
        _ => ServicePackets::open(&config),
    };
    let mut follower = Follower::new(config, packets, clock)?;
    follower.begin();
    Ok(Attached {
        follower,
        _visit: visit,
    })
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

    /// Follows them until they end, the time is over, or a signal comes: its number.
    pub fn follow(mut self, observer: &mut dyn WatchSink) -> Option<i32> {
        let at_most = self.follower.config.at_most;
        let deadline = at_most.map(|time| Instant::now() + time);
        let signal = self.follower.run(deadline, observer);
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
    next_id: u64,
    /// Connections that were there before us.
    earlier: u64,
}

/// A socket whose packets should be read.
struct CheckedSocket {
    /// Bytes that it had carried when it was first seen.
    carried: u64,
    /// When it was seen to have carried more.
    grew: Option<Instant>,
    has_owner: bool,
}

impl Follower {
    fn new(
        config: AttachConfig,
        mut packets: io::Result<ServicePackets>,
        clock: Clock,
    ) -> Result<Follower, WatchError> {
        let setup = |what| move |error| WatchError::Setup(what, error);
        let poll = Poll::new().map_err(setup("epoll"))?;
        let timer = Timer::new().map_err(setup("timerfd"))?;
        let signals = Signals::take_over().map_err(setup("signalfd"))?;
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

    fn run(&mut self, deadline: Option<Instant>, observer: &mut dyn WatchSink) -> Option<i32> {
        let mut events = Events::with_capacity(16);
        let mut next_tick = Instant::now() + TICK;
        let mut next_look = Instant::now();
        let is_shown = self.trace.is_ok() || !self.config.sides.has_client();
        let pace = match self.packets.is_ok() && is_shown {
            true => PACE_OF_PACKETS,
            false => PACE,
        };
        loop {
            let began = Instant::now();
            if began >= next_look || self.packets.is_err() {
                let done = self.look();
                self.looks.end(began, done);
                next_look = began + pace.max(began.elapsed() * SHARE);
                self.timer.set(Some(next_look));
            }
            if self.poll.poll(&mut events, Some(TICK)).is_err() {
                events.clear();
            }
            self.timer.rung();
            self.read_packets(observer);
            self.take_ends(observer);
            while let Some(signal) = self.signals.next() {
                if signal.number != libc::SIGCHLD {
                    return Some(signal.number);
                }
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
            if self.config.subjects.are_gone() || deadline.is_some_and(|deadline| now >= deadline) {
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

    /// Looks at all sockets, and whose the new ones are.
    fn look(&mut self) -> io::Result<()> {
        let began = wall();
        let mut there: Vec<SocketReport> = Vec::new();
        let mut served = HashSet::new();
        let mut listening = HashSet::new();
        sock_diag::list(|report| {
            if report.is_listening {
                served.insert(report.local.port());
                listening.insert((unmapped(report.local), report.inode));
            } else {
                there.push(report);
            }
        })?;
        self.look_at_listeners(began, listening);
        self.check(&there);
        self.others.begin_look(served, &there);
        there.retain(|report| {
            !(self.outside.follows(report.cookie) || self.others.knows(report.cookie))
        });
        if self.packets.is_ok() && !self.config.sides.has_client() {
            return Ok(());
        }
        self.update_trace();
        let mut unowned = Vec::new();
        for report in there {
            match self.traced_owner(&report) {
                Some(TracedOwner::Followed(connect)) => {
                    self.follow(&report, connect.at, connect.owner, false);
                }
                Some(TracedOwner::Other) if !self.config.subjects.may_grow() => {
                    self.others.note_owner(report.cookie);
                }
                // its process may be followed from now on
                Some(TracedOwner::Other) | None => unowned.push(report),
            }
        }
        if unowned.is_empty() {
            return Ok(());
        }
        let is_first = self.looks.last.is_none();
        let owners = self.owners();
        for report in unowned {
            let owner = owners.get(&report.inode);
            // a port that somebody listens on is the accepting side's
            match owner.filter(|_| !self.others.is_accepted(&report)) {
                Some(owner) => {
                    self.earlier += u64::from(is_first);
                    self.follow(&report, self.clock.now(), owner.clone(), is_first);
                }
                None => {
                    self.others.see(&report, is_first);
                    if let (Ok(packets), true, true) =
                        (&mut self.packets, is_first, report.inode != 0)
                    {
                        let ends = (unmapped(report.local), unmapped(report.peer));
                        packets.ownership().leave(ends);
                    }
                }
            }
        }
        Ok(())
    }

    /// Notes where followed processes listen, if that has changed.
    fn look_at_listeners(&mut self, began: u64, listening: HashSet<(SocketAddr, u32)>) {
        if self.packets.is_err() {
            return;
        }
        let owners = match listening == self.listening {
            true => None,
            false => Some(self.owners()),
        };
        let Ok(packets) = &mut self.packets else {
            return;
        };
        let (mut ours, mut foreign) = (Vec::new(), HashSet::new());
        if let Some(owners) = owners {
            for (address, inode) in &listening {
                match owners.contains_key(inode) {
                    true => ours.push(*address),
                    false => _ = foreign.insert(*address),
                }
            }
        }
        let ownership = packets.ownership();
        ownership.look(began, ours.into_iter(), &foreign);
        self.listening = listening;
    }

    /// Looks at sockets whose packets should be read: whose those are that were accepted, and
    /// whether packets of each are read.
    fn check(&mut self, there: &[SocketReport]) {
        let is_first = self.looks.last.is_none();
        let Ok(packets) = &mut self.packets else {
            return;
        };
        let accepts = self.config.sides.has_server();
        let ownership = packets.ownership();
        let is_accepted =
            |report: &SocketReport| accepts && ownership.is_listener(unmapped(report.local));
        let accepted: Vec<&SocketReport> = there.iter().filter(|one| is_accepted(one)).collect();
        let is_new = |report: &&SocketReport| {
            let checked = self.checked.get(&report.cookie);
            checked.is_none_or(|checked| !checked.has_owner)
        };
        let owners = match accepted.iter().any(is_new) {
            true => self.owners(),
            false => HashMap::new(),
        };
        let Ok(packets) = &mut self.packets else {
            return;
        };
        for report in &accepted {
            let checked = self
                .checked
                .entry(report.cookie)
                .or_insert_with(|| CheckedSocket::new(report, is_first));
            if let Some(owner) = owners.get(&report.inode).filter(|_| !checked.has_owner) {
                let (local, peer) = (unmapped(report.local), unmapped(report.peer));
                checked.has_owner = packets.table.note_process(local, peer, owner.pid);
            }
        }
        let mut seen = HashSet::new();
        for report in there {
            if let Some(checked) = self.checked.get_mut(&report.cookie) {
                seen.insert(report.cookie);
                let (local, peer) = (unmapped(report.local), unmapped(report.peer));
                if checked.lacks_packets(report) && !packets.table.has_read(local, peer) {
                    packets.without_packets += 1;
                    checked.carried = u64::MAX;
                    checked.grew = None;
                }
            }
        }
        self.checked.retain(|cookie, _| seen.contains(cookie));
    }

    /// The processes that are followed, by the inodes of their sockets.
    fn owners(&mut self) -> HashMap<u32, Owner> {
        let mut owners = HashMap::new();
        for pid in self.config.subjects.processes() {
            let Some(command) = process::command(pid) else {
                continue;
            };
            let namespace = process::network_namespace(pid);
            if namespace.is_some() && namespace != self.namespace {
                self.elsewhere.insert(pid);
                continue;
            }
            let owner = Owner { pid, command };
            if self.config.subjects.may_grow() && self.known.insert(pid) {
                if let Ok(trace) = &mut self.trace {
                    trace.follow(&owner);
                }
                if let Ok(packets) = &mut self.packets {
                    packets.ownership().adopt(&owner);
                }
            }
            let read = process::each_socket(pid, |inode| {
                owners.entry(inode).or_insert_with(|| owner.clone());
            });
            // of all processes, those are followed that we may look at
            if self.config.subjects != Subjects::All
                && read.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
                && process::is_alive(pid)
            {
                *self.unreadable.entry(pid).or_default() += 1;
            }
        }
        owners
    }

    fn follow(&mut self, report: &SocketReport, at: Nanos, owner: Owner, open_before: bool) {
        if let Ok(packets) = &mut self.packets {
            let ends = (unmapped(report.local), unmapped(report.peer));
            packets.ownership().open(ends, owner.clone());
            if open_before {
                let checked = CheckedSocket::new(report, true);
                self.checked.insert(report.cookie, checked);
            }
        }
        let mut about = self.connection(report, at, owner);
        about.open_before = open_before;
        self.outside.follow(report.cookie, about, None);
    }

    /// A connection of a followed process that was opened then.
    fn connection(&mut self, report: &SocketReport, at: Nanos, owner: Owner) -> Connection {
        let mut about = Connection::new(ConnectionId(self.next_id), at);
        self.next_id += 1;
        about.local = Some(report.local);
        about.peer = Some(report.peer);
        about.origin = Some(origin(report.peer));
        about.owner = Some(owner);
        about
    }

    fn finish(mut self, observer: &mut dyn WatchSink) {
        // a socket is known to be another program's once two looks have seen it
        for _ in 0..2 {
            let began = Instant::now();
            let done = self.look();
            self.looks.end(began, done);
        }
        std::thread::sleep(SOCKETS_LATE);
        self.take_ends(observer);
        let caveats = self.caveats();
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
}

impl CheckedSocket {
    /// What one from before the run had carried by then is no part of it.
    fn new(report: &SocketReport, is_from_before: bool) -> CheckedSocket {
        CheckedSocket {
            carried: match is_from_before {
                true => report.sent + report.received,
                false => 0,
            },
            grew: None,
            has_owner: false,
        }
    }

    /// Whether it has carried data whose packets should have been read by now.
    fn lacks_packets(&mut self, report: &SocketReport) -> bool {
        if report.sent + report.received > self.carried {
            let grew = self.grew.get_or_insert_with(Instant::now);
            return grew.elapsed() >= LATE;
        }
        false
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
