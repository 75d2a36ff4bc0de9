//! Follows programs that run already, from outside: their TCP connections are looked up again and
//! again, and the kernel reports when one ends. No data is seen.
//!
//! Of a connection that comes and goes between two looks only the kernel's trace of connects knows
//! the owner, where we may read it. Elsewhere [`Others`] counts what may have been one, and the run
//! is then incomplete.

use crate::platform::connect_trace::{ConnectTrace, TracedOwner};
use crate::platform::looks::Looks;
use crate::platform::others::Others;
use crate::platform::sock_diag_tracker::SockDiagTracker;
use crate::platform::supervisor::origin;
use crate::platform::wait_readable;
use crate::{Clock, Unwatched, WatchError, WatchSink};
use intact_ledger::{Caveat, Connection, ConnectionId, Nanos, Owner, Row};
use intact_sys::process;
use intact_sys::signals::Signals;
use intact_sys::sock_diag::{self, SocketReport};
use intact_sys::timer::Timer;
use mio::{Events, Poll, Token};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io;
use std::time::{Duration, Instant};

const ENDS: Token = Token(0);
const SIGNALS: Token = Token(1);
const LOOKS: Token = Token(2);
/// The time between two looks; longer where a look takes more than 5 % of it.
const PACE: Duration = Duration::from_millis(10);
const SHARE: u32 = 20;
/// How often files are flushed.
const TICK: Duration = Duration::from_secs(1);
/// How long the kernel may take to report a socket that ended before the run did.
const LATE: Duration = Duration::from_millis(20);

/// Whose connections are followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subjects {
    /// Those of these processes and of their descendants, until the last of them ends.
    Processes(Vec<u32>),
    /// Those of every process that we may look at.
    All,
}

impl Subjects {
    /// The processes that there are now.
    pub(super) fn processes(&self) -> Vec<u32> {
        match self {
            Subjects::All => process::all(),
            Subjects::Processes(processes) => process::descendants(processes.clone()).collect(),
        }
    }
}

/// Follows running programs until they end, the time is over, or a signal comes: its number.
pub fn follow(
    subjects: &Subjects,
    at_most: Option<Duration>,
    clock: Clock,
    observer: &mut dyn WatchSink,
) -> Result<Option<i32>, WatchError> {
    if let Subjects::Processes(processes) = subjects {
        for process in processes {
            if !process::is_alive(*process) {
                return Err(WatchError::NoProcess(*process));
            }
            process::each_socket(*process, |_| {})
                .map_err(|error| WatchError::Closed(*process, error))?;
        }
    }
    let mut follower = Follower::new(subjects, clock)?;
    let deadline = at_most.map(|time| Instant::now() + time);
    let signal = follower.run(deadline, observer);
    follower.finish(observer);
    Ok(signal)
}

struct Follower<'a> {
    subjects: &'a Subjects,
    clock: Clock,
    poll: Poll,
    timer: Timer,
    signals: Signals,
    outside: SockDiagTracker,
    others: Others,
    /// An error where it is not permitted.
    trace: io::Result<ConnectTrace>,
    looks: Looks,
    /// Our own network namespace, the only one whose sockets are listed.
    namespace: Option<u64>,
    /// Followed processes in other network namespaces.
    elsewhere: BTreeSet<u32>,
    /// Followed processes whose descriptors cannot be read, and in how many scans: one that is
    /// ending cannot be read for a moment.
    unreadable: BTreeMap<u32, u32>,
    next_id: u64,
    /// Connections that were there before us.
    earlier: u64,
}

impl<'a> Follower<'a> {
    fn new(subjects: &'a Subjects, clock: Clock) -> Result<Follower<'a>, WatchError> {
        let setup = |what| move |error| WatchError::Setup(what, error);
        let poll = Poll::new().map_err(setup("epoll"))?;
        let timer = Timer::new().map_err(setup("timerfd"))?;
        let signals = Signals::take_over().map_err(setup("signalfd"))?;
        let outside = SockDiagTracker::new(None).map_err(setup("sock_diag"))?;
        wait_readable(poll.registry(), &outside, ENDS)
            .and_then(|()| wait_readable(poll.registry(), &signals, SIGNALS))
            .and_then(|()| wait_readable(poll.registry(), &timer, LOOKS))
            .map_err(setup("epoll"))?;
        Ok(Follower {
            subjects,
            clock,
            poll,
            timer,
            signals,
            outside,
            others: Others::default(),
            trace: ConnectTrace::start(clock, subjects),
            looks: Looks::default(),
            namespace: process::network_namespace(std::process::id()),
            elsewhere: BTreeSet::new(),
            unreadable: BTreeMap::new(),
            next_id: 1,
            earlier: 0,
        })
    }

    fn run(&mut self, deadline: Option<Instant>, observer: &mut dyn WatchSink) -> Option<i32> {
        let mut events = Events::with_capacity(16);
        let mut next_tick = Instant::now() + TICK;
        // what ended before the first look is no part of the run
        self.outside
            .take_ends(self.clock.now(), &mut |_| {}, &mut |_| {});
        self.owners();
        loop {
            let began = Instant::now();
            let done = self.look();
            self.looks.end(began, done);
            let pace = PACE.max(began.elapsed() * SHARE);
            self.timer.set(Some(began + pace));
            if self.poll.poll(&mut events, Some(TICK)).is_err() {
                events.clear();
            }
            self.timer.rung();
            self.take_ends(observer);
            while let Some(signal) = self.signals.next() {
                if signal.number != libc::SIGCHLD {
                    return Some(signal.number);
                }
            }
            let now = Instant::now();
            if now >= next_tick {
                next_tick = now + TICK;
                observer.tick();
                // a process in another namespace shows no socket that would have us look at it
                self.owners();
            }
            if self.are_gone() || deadline.is_some_and(|deadline| now >= deadline) {
                return None;
            }
        }
    }

    fn are_gone(&self) -> bool {
        match self.subjects {
            Subjects::Processes(processes) => {
                !processes.iter().any(|process| process::is_alive(*process))
            }
            Subjects::All => false,
        }
    }

    fn take_ends(&mut self, observer: &mut dyn WatchSink) {
        let now = self.clock.now();
        let mut record = |row: Row| observer.record(row.as_event());
        let mut strangers = Vec::new();
        self.outside
            .take_ends(now, &mut record, &mut |report| strangers.push(*report));
        // after the ends: what was connected before them is there
        if let Ok(trace) = &mut self.trace {
            trace.update();
        }
        for report in strangers {
            match self.traced_owner(&report) {
                Some(TracedOwner::Followed(connect)) => {
                    self.others.forget(report.cookie);
                    let about = self.connection(&report, connect.at, connect.owner);
                    self.outside.record_ended(about, report, now, &mut record);
                }
                Some(TracedOwner::Other) => self.others.forget(report.cookie),
                None => self.others.end(&report),
            }
        }
    }

    fn traced_owner(&mut self, report: &SocketReport) -> Option<TracedOwner> {
        self.trace.as_mut().ok()?.take_owner(report)
    }

    /// Looks at all sockets, and whose the new ones are.
    fn look(&mut self) -> io::Result<()> {
        let mut there: Vec<SocketReport> = Vec::new();
        let mut served = HashSet::new();
        sock_diag::list(|report| {
            if report.is_listening {
                served.insert(report.local.port());
            } else {
                there.push(report);
            }
        })?;
        self.others.begin_look(served, &there);
        there.retain(|report| {
            !(self.outside.follows(report.cookie) || self.others.knows(report.cookie))
        });
        if let Ok(trace) = &mut self.trace {
            trace.update();
        }
        let mut unowned = Vec::new();
        for report in there {
            match self.traced_owner(&report) {
                Some(TracedOwner::Followed(connect)) => {
                    self.follow(&report, connect.at, connect.owner, false);
                }
                Some(TracedOwner::Other) => self.others.note_owner(report.cookie),
                None => unowned.push(report),
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
                None => self.others.see(&report, is_first),
            }
        }
        Ok(())
    }

    /// The processes that are followed, by the inodes of their sockets.
    fn owners(&mut self) -> HashMap<u32, Owner> {
        let mut owners = HashMap::new();
        for pid in self.subjects.processes() {
            let Some(command) = process::command(pid) else {
                continue;
            };
            let namespace = process::network_namespace(pid);
            if namespace.is_some() && namespace != self.namespace {
                self.elsewhere.insert(pid);
                continue;
            }
            let owner = Owner { pid, command };
            let read = process::each_socket(pid, |inode| {
                owners.entry(inode).or_insert_with(|| owner.clone());
            });
            // of all processes, those are followed that we may look at
            if *self.subjects != Subjects::All
                && read.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
                && process::is_alive(pid)
            {
                *self.unreadable.entry(pid).or_default() += 1;
            }
        }
        owners
    }

    fn follow(&mut self, report: &SocketReport, at: Nanos, owner: Owner, open_before: bool) {
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
        std::thread::sleep(LATE);
        self.take_ends(observer);
        let caveats = self.caveats();
        let mut record = |row: Row| observer.record(row.as_event());
        self.outside.finish(self.clock, &mut record);
        for caveat in caveats {
            record(Row::Caveat(caveat));
        }
    }

    /// What limits the record.
    fn caveats(&self) -> Vec<Caveat> {
        let mut caveats = Vec::new();
        let dropped = self.outside.overruns();
        // a socket that is not in the trace was accepted, or is older than the run
        let (gone, lost) = match &self.trace {
            Ok(trace) => (0, trace.lost()),
            Err(_) => (self.others.unexplained(), 0),
        };
        if gone > 0 || dropped > 0 || lost > 0 {
            let more = if dropped > 0 || lost > 0 {
                ", and the kernel dropped reports of more"
            } else {
                ""
            };
            let without = match &self.trace {
                Ok(_) => String::new(),
                Err(error) => format!(
                    ". The kernel's trace of connects would show them: it needs root or CAP_PERFMON ({error})"
                ),
            };
            let words = format!(
                "sockets are looked up every {} ms (at most {} ms apart), so shorter connections can be missed{without}. Sockets of this machine that were closed before their owner was seen: {gone}{more}",
                PACE.as_millis(),
                self.looks.longest.max(PACE).as_millis()
            );
            caveats.push(Caveat::incomplete("unwatched-short", words));
        }
        if self.trace.is_ok() {
            let words = "Observed by sock_diag and the kernel's trace of connects (sock:inet_sock_set_state): connections and bytes are counted, requests cannot be seen";
            caveats.push(Caveat::new("observed-by-trace", words));
        }
        if let Some(error) = &self.looks.error {
            let words = format!(
                "the kernel did not list its sockets ({error}): connections are missing from {} of the looks",
                self.looks.failed
            );
            caveats.push(Caveat::incomplete("unwatched-not-listed", words));
        }
        if let Some(process) = self.elsewhere.first() {
            let words = format!(
                "another network namespace hides the connections of {}: `nsenter --net --target {process} intact watch --pid {process}` sees them",
                named(&self.elsewhere)
            );
            let id = Unwatched::OtherNamespace.id();
            caveats.push(Caveat::incomplete(id, words));
        }
        let unreadable = self.unreadable.iter().filter(|(_, scans)| **scans > 1);
        let unreadable: BTreeSet<u32> = unreadable.map(|(process, _)| *process).collect();
        if !unreadable.is_empty() {
            let words = format!(
                "{} cannot be inspected (another user's, setuid, not dumpable): run intact as root to see its connections",
                named(&unreadable)
            );
            let id = Unwatched::Unreadable.id();
            caveats.push(Caveat::incomplete(id, words));
        }
        if self.earlier > 0 {
            let words = format!(
                "connections that were open before we looked, so that it is unknown when they were opened: {}",
                self.earlier
            );
            caveats.push(Caveat::new("opened-earlier", words));
        }
        caveats
    }
}

/// The first of some processes, and how many more there are.
fn named(processes: &BTreeSet<u32>) -> String {
    let first = processes.first().copied().unwrap_or_default();
    match processes.len() {
        0 | 1 => format!("process {first}"),
        2 => format!("process {first} and one other"),
        more => format!("process {first} and {} others", more - 1),
    }
}
