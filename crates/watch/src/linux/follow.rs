//! Follows programs that run already, from outside: their TCP connections are looked up again and again, and the kernel
//! tells when one ends. No data is seen, and connections that come and go between two looks belong to nobody.

use crate::platform::outside::{Outside, caveat};
use crate::platform::sys::diag::{self, Told};
use crate::platform::sys::process;
use crate::platform::sys::signals::Signals;
use crate::platform::sys::timer::Timer;
use crate::{Clock, Observer, WatchError};
use ledger::{Connection, ConnectionId, Origin, Owner, Row, Scheme};
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use std::collections::{HashMap, HashSet};
use std::io;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

const ENDS: Token = Token(0);
const SIGNALS: Token = Token(1);
const LOOKS: Token = Token(2);
/// The time between two looks; longer where a look takes longer than a twentieth of it.
const PACE: Duration = Duration::from_millis(10);
const SHARE: u32 = 20;
/// How often files are flushed.
const TICK: Duration = Duration::from_secs(1);

/// Whose connections are followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subjects {
    /// Those of these processes and of their descendants, until the last of them ends.
    Processes(Vec<u32>),
    /// Those of every process that we may look at.
    All,
}

/// Follows running programs until they end, the time is over, or a signal comes: its number.
pub fn follow(
    subjects: &Subjects,
    at_most: Option<Duration>,
    clock: Clock,
    observer: &mut dyn Observer,
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
    outside: Outside,
    /// Sockets that are somebody else's, or accepted.
    others: HashSet<u64>,
    next_id: u64,
    /// Connections that were there before us.
    earlier: u64,
    is_first: bool,
}

impl<'a> Follower<'a> {
    fn new(subjects: &'a Subjects, clock: Clock) -> Result<Follower<'a>, WatchError> {
        let setup = |what| move |error| WatchError::Setup(what, error);
        let poll = Poll::new().map_err(setup("epoll"))?;
        let timer = Timer::new().map_err(setup("timerfd"))?;
        let signals = Signals::take_over().map_err(setup("signalfd"))?;
        let outside = Outside::new().map_err(setup("sock_diag"))?;
        for (descriptor, token) in [
            (outside.as_raw_fd(), ENDS),
            (signals.as_raw_fd(), SIGNALS),
            (timer.as_raw_fd(), LOOKS),
        ] {
            poll.registry()
                .register(&mut SourceFd(&descriptor), token, Interest::READABLE)
                .map_err(setup("epoll"))?;
        }
        Ok(Follower {
            subjects,
            clock,
            poll,
            timer,
            signals,
            outside,
            others: HashSet::new(),
            next_id: 1,
            earlier: 0,
            is_first: true,
        })
    }

    fn run(&mut self, deadline: Option<Instant>, observer: &mut dyn Observer) -> Option<i32> {
        let mut events = Events::with_capacity(16);
        let mut next_tick = Instant::now() + TICK;
        loop {
            let began = Instant::now();
            // a look that fails is made up for by the next
            let _ = self.look();
            self.is_first = false;
            let pace = PACE.max(began.elapsed() * SHARE);
            self.timer.set(Some(began + pace));
            if self.poll.poll(&mut events, Some(TICK)).is_err() {
                events.clear();
            }
            self.timer.rung();
            self.outside.take_ends(self.clock.now(), &mut |row: Row| {
                observer.record(row.as_event());
            });
            while let Some(signal) = self.signals.next() {
                if signal.number != libc::SIGCHLD {
                    return Some(signal.number);
                }
            }
            let now = Instant::now();
            if now >= next_tick {
                next_tick = now + TICK;
                observer.tick();
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

    /// Looks at all sockets, and whose the new ones are.
    fn look(&mut self) -> io::Result<()> {
        let mut there: Vec<Told> = Vec::new();
        let mut served = HashSet::new();
        diag::list(|told| {
            if told.is_listening {
                served.insert(told.local.port());
            } else {
                there.push(told);
            }
        })?;
        let cookies: HashSet<u64> = there.iter().map(|told| told.cookie).collect();
        self.others.retain(|cookie| cookies.contains(cookie));
        there.retain(|told| {
            !(self.outside.follows(told.cookie) || self.others.contains(&told.cookie))
        });
        if there.is_empty() {
            return Ok(());
        }
        let owners = self.owners();
        for told in there {
            let owner = owners.get(&told.inode);
            // a port that somebody listens on is the accepting side's
            match owner.filter(|_| !served.contains(&told.local.port())) {
                Some(owner) => self.follow(&told, owner.clone()),
                None => {
                    self.others.insert(told.cookie);
                }
            }
        }
        Ok(())
    }

    /// The processes that are followed, by the inodes of their sockets.
    fn owners(&self) -> HashMap<u32, Owner> {
        let processes = match self.subjects {
            Subjects::All => process::all(),
            Subjects::Processes(processes) => process::descendants(processes.clone()).collect(),
        };
        let mut owners = HashMap::new();
        for pid in processes {
            let Some(command) = process::command(pid) else {
                continue;
            };
            let owner = Owner { pid, command };
            // of all processes we may look at some
            let _ = process::each_socket(pid, |inode| {
                owners.entry(inode).or_insert_with(|| owner.clone());
            });
        }
        owners
    }

    fn follow(&mut self, told: &Told, owner: Owner) {
        let mut about = Connection::new(ConnectionId(self.next_id), self.clock.now());
        self.next_id += 1;
        self.earlier += u64::from(self.is_first);
        about.local = Some(told.local);
        about.peer = Some(told.peer);
        about.origin = Some(Origin {
            scheme: Scheme::Tcp,
            host: told.peer.ip().to_canonical().to_string().into(),
            port: told.peer.port(),
        });
        about.owner = Some(owner);
        self.outside.follow(told.cookie, about, None);
    }

    fn finish(mut self, observer: &mut dyn Observer) {
        let mut tell = |row: Row| observer.record(row.as_event());
        self.outside.take_ends(self.clock.now(), &mut tell);
        let strangers = self.outside.strangers;
        self.outside.finish(self.clock.now(), &mut tell);
        if self.earlier > 0 {
            let words = format!(
                "{} connections were open before we looked: when they were opened is not known",
                self.earlier
            );
            tell(caveat("opened-earlier", words));
        }
        if strangers > 0 {
            let words = format!(
                "{strangers} sockets of this machine ended whose owner was not seen: other programs', accepted ones, or connections too short to be looked at"
            );
            tell(caveat("unattributed", words));
        }
    }
}
