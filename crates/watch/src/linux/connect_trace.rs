//! Whose sockets were, by the kernel's trace of connects: also of those that come and go between
//! two looks.
//!
//! Knows processes, addresses and times. Records nothing.

use crate::{Clock, Subjects};
use intact_ledger::{Nanos, Owner};
use intact_sys::address::unmapped;
use intact_sys::process;
use intact_sys::sock_diag::SocketReport;
use intact_sys::tcp_trace::{TcpTrace, Traced, TracedEvent};
use intact_sys::timer;
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

/// Sockets that are remembered; beyond that the trace counts as cut.
const MAX: usize = 1 << 16;

/// A connection's own address and its peer's.
type Addresses = (SocketAddr, SocketAddr);

/// Who connected a socket, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TracedConnect {
    pub(crate) at: Nanos,
    pub(crate) owner: Owner,
}

/// What the trace shows of a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TracedOwner {
    /// A followed process connected it.
    Followed(TracedConnect),
    /// Another process did.
    Other,
}

/// The trace, and what it has shown.
pub(crate) struct ConnectTrace {
    trace: TcpTrace,
    clock: Clock,
    connects: Connects,
}

impl ConnectTrace {
    /// Begins to trace.
    pub(crate) fn start(clock: Clock, subjects: &Subjects) -> io::Result<ConnectTrace> {
        let trace = TcpTrace::start()?;
        let named = subjects
            .processes()
            .into_iter()
            .filter_map(|pid| Some((pid, process::command(pid)?)));
        Ok(ConnectTrace {
            trace,
            clock,
            connects: Connects {
                name: match subjects {
                    Subjects::Named(name) => Some(name.clone()),
                    _ => None,
                },
                ..Connects::of(named.collect(), *subjects == Subjects::All)
            },
        })
    }

    /// Takes what was traced until now.
    pub(crate) fn update(&mut self) {
        let behind = timer::monotonic().saturating_sub(self.clock.now().0);
        for traced in self.trace.read() {
            self.connects.take(traced, behind);
        }
    }

    /// Who connected a socket that is reported once: what is known of it is forgotten.
    pub(crate) fn take_owner(&mut self, report: &SocketReport) -> Option<TracedOwner> {
        self.connects.take_owner(report)
    }

    /// Takes all that is known of sockets that were connected: those of followed processes, and
    /// those of others with their processes.
    pub(crate) fn take_decided(
        &mut self,
    ) -> (
        impl Iterator<Item = (Addresses, TracedConnect)>,
        impl Iterator<Item = (Addresses, u32)>,
    ) {
        let decided = std::mem::take(&mut self.connects.decided).into_iter();
        let each = |(ends, connects): (Addresses, Vec<TracedConnect>)| {
            connects.into_iter().map(move |connect| (ends, connect))
        };
        let others = std::mem::take(&mut self.connects.others);
        (decided.flat_map(each), others.into_iter())
    }

    /// A process is followed from now on.
    pub(crate) fn follow(&mut self, owner: &Owner) {
        let followed = &mut self.connects.followed;
        followed.insert(owner.pid, owner.command.clone());
    }

    /// Records that are missing.
    pub(crate) fn lost(&self) -> u64 {
        self.connects.lost
    }
}

/// What the records say.
#[derive(Default)]
struct Connects {
    /// The followed processes with their names.
    followed: HashMap<u32, Arc<str>>,
    follows_all: bool,
    /// Processes with this name are followed, also those that no followed process has started.
    name: Option<String>,
    /// Sockets that are being connected; for those of other processes, the process.
    connecting: HashMap<u64, Result<TracedConnect, u32>>,
    decided: HashMap<Addresses, Vec<TracedConnect>>,
    others: HashMap<Addresses, u32>,
    lost: u64,
}

impl Connects {
    fn of(followed: HashMap<u32, Arc<str>>, follows_all: bool) -> Connects {
        Connects {
            followed,
            follows_all,
            ..Connects::default()
        }
    }

    /// Takes a record; `behind`: how far the run's clock is behind the trace's, in nanoseconds.
    fn take(&mut self, Traced { at, what }: Traced, behind: u64) {
        match what {
            TracedEvent::Forked { process, parent } => match self.followed.get(&parent).cloned() {
                Some(name) => {
                    self.followed.insert(process, name);
                }
                // another process with a number that was used before
                None => {
                    self.followed.remove(&process);
                }
            },
            TracedEvent::Named { process, name } => {
                let is_wanted = self.name.as_deref() == Some(&name);
                if self.follows_all || is_wanted || self.followed.contains_key(&process) {
                    self.followed.insert(process, name);
                }
            }
            TracedEvent::Connecting { socket, process } => {
                let connect = self.command(process).map(|command| TracedConnect {
                    at: Nanos(at.saturating_sub(behind)),
                    owner: Owner {
                        pid: process,
                        command,
                    },
                });
                self.connecting.insert(socket, connect.ok_or(process));
            }
            TracedEvent::Decided {
                socket,
                local,
                peer,
            } => {
                let addresses = (unmapped(local), unmapped(peer));
                match self.connecting.remove(&socket) {
                    Some(Ok(connect)) => {
                        self.decided.entry(addresses).or_default().push(connect);
                    }
                    Some(Err(process)) => {
                        self.others.insert(addresses, process);
                    }
                    // it began before the trace
                    None => {}
                }
            }
            TracedEvent::Lost(count) => self.lost += count,
        }
        if self.connecting.len() + self.decided.len() + self.others.len() > MAX {
            self.connecting.clear();
            self.decided.clear();
            self.others.clear();
            self.lost += 1;
        }
    }

    /// The name of a process that is followed.
    fn command(&self, process: u32) -> Option<Arc<str>> {
        let known = self.followed.get(&process).cloned();
        known.or_else(|| self.follows_all.then(|| "?".into()))
    }

    fn take_owner(&mut self, report: &SocketReport) -> Option<TracedOwner> {
        let addresses = (unmapped(report.local), unmapped(report.peer));
        // in another network namespace another process may have the same addresses
        if let Some(connects) = self.decided.get_mut(&addresses) {
            let first = connects.remove(0);
            if connects.is_empty() {
                self.decided.remove(&addresses);
            }
            return Some(TracedOwner::Followed(first));
        }
        self.others.remove(&addresses).map(|_| TracedOwner::Other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket(port: u16) -> SocketReport {
        super::super::others::tests::socket(1, 0, port)
    }

    /// What is known after these records, one nanosecond apart.
    fn after(events: Vec<TracedEvent>) -> Connects {
        let mut connects = Connects::of(HashMap::from([(7, "client".into())]), false);
        for (at, what) in events.into_iter().enumerate() {
            connects.take(
                Traced {
                    at: at as u64 + 100,
                    what,
                },
                50,
            );
        }
        connects
    }

    /// A process connects a socket at this address of the kernel, from this port.
    fn connect(process: u32, place: u64, port: u16) -> [TracedEvent; 2] {
        [
            TracedEvent::Connecting {
                socket: place,
                process,
            },
            TracedEvent::Decided {
                socket: place,
                local: ([127, 0, 0, 1], port).into(),
                peer: ([127, 0, 0, 1], 80).into(),
            },
        ]
    }

    fn owner(report: Option<TracedOwner>) -> Option<u32> {
        match report? {
            TracedOwner::Followed(connect) => Some(connect.owner.pid),
            TracedOwner::Other => Some(0),
        }
    }

    #[test]
    fn a_followed_processs_connect_is_known_by_its_addresses_once() {
        let mut connects = after([connect(7, 1, 4000), connect(8, 2, 4001)].concat());
        let TracedOwner::Followed(first) = connects.take_owner(&socket(4000)).unwrap() else {
            panic!("followed");
        };
        assert_eq!((first.at, &*first.owner.command), (Nanos(50), "client"));
        assert_eq!(connects.take_owner(&socket(4000)), None);
        assert_eq!(owner(connects.take_owner(&socket(4001))), Some(0));
        assert_eq!(owner(connects.take_owner(&socket(4002))), None);
    }

    #[test]
    fn a_child_is_followed_under_its_own_name_and_a_reused_number_is_not() {
        let forked = |process, parent| TracedEvent::Forked { process, parent };
        let name = TracedEvent::Named {
            process: 9,
            name: "curl".into(),
        };
        let mut connects = after([&[forked(9, 7), name][..], &connect(9, 1, 4000)].concat());
        let TracedOwner::Followed(first) = connects.take_owner(&socket(4000)).unwrap() else {
            panic!("followed");
        };
        assert_eq!(&*first.owner.command, "curl");
        let events = [&[forked(9, 7), forked(9, 1)][..], &connect(9, 1, 4000)].concat();
        assert_eq!(owner(after(events).take_owner(&socket(4000))), Some(0));
    }

    #[test]
    fn a_process_that_takes_the_name_is_followed_also_if_a_stranger_started_it() {
        let name = TracedEvent::Named {
            process: 9,
            name: "nginx".into(),
        };
        let mut connects = Connects {
            name: Some("nginx".into()),
            ..Connects::default()
        };
        for what in [&[name][..], &connect(9, 1, 4000)].concat() {
            connects.take(Traced { at: 1, what }, 0);
        }
        assert_eq!(owner(connects.take_owner(&socket(4000))), Some(9));
    }

    #[test]
    fn the_same_addresses_of_another_namespace_hide_nothing() {
        let events = [connect(8, 1, 4000), connect(7, 2, 4000)].concat();
        assert_eq!(owner(after(events).take_owner(&socket(4000))), Some(7));
    }

    #[test]
    fn what_is_remembered_is_bounded_and_then_counts_as_lost() {
        let mut connects = Connects::default();
        for socket in 0..MAX as u64 + 10 {
            let what = TracedEvent::Connecting { socket, process: 1 };
            connects.take(Traced { at: 0, what }, 0);
        }
        assert!(connects.connecting.len() <= MAX);
        assert_eq!(connects.lost, 1);
    }
}
