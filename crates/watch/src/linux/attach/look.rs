//! Looks at all sockets of a network namespace: which ones followed processes have, where they
//! listen, and whether packets of each are read.

use super::packets::{LATE, wall};
use super::turns::{Pair, pair};
use super::{Follower, Subjects};
use crate::platform::connect_trace::TracedOwner;
use crate::platform::supervisor::origin;
use intact_ledger::{Connection, ConnectionId, Nanos, Owner};
use intact_sys::address::unmapped;
use intact_sys::process;
use intact_sys::sock_diag::{self, SocketReport};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::io;
use std::net::SocketAddr;
use std::time::Instant;

/// A socket whose packets should be read.
pub(super) struct CheckedSocket {
    /// Bytes that it had carried when it was first seen.
    carried: u64,
    /// When it was seen to have carried more.
    grew: Option<Instant>,
    has_owner: bool,
}

/// The cookies of the sockets of a connection, of one or both of its ends.
pub(super) type Cookies = HashMap<Pair, BTreeSet<u64>>;

impl Follower {
    /// The sockets at the last look, where there are several turns.
    pub(super) fn cookies(&self) -> &Cookies {
        &self.cookies
    }

    /// Looks at all sockets, and whose the new ones are.
    pub(super) fn look(&mut self) -> io::Result<()> {
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
        if self.config.every.is_some() {
            self.cookies.clear();
            for report in &there {
                let sockets = self.cookies.entry(pair(report.local, report.peer));
                sockets.or_default().insert(report.cookie);
            }
        }
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
        let (mut ours, mut foreign) = (HashMap::new(), HashSet::new());
        if let Some(owners) = owners {
            for (address, inode) in &listening {
                match owners.contains_key(inode) {
                    true => _ = ours.insert(*inode, *address),
                    false => _ = foreign.insert(*address),
                }
            }
            if self.config.sides.has_server() {
                let shared = shared(&ours, &foreign, &self.config.subjects.processes());
                packets.ownership().share(shared);
            }
        }
        let ownership = packets.ownership();
        ownership.look(began, ours.into_values(), &foreign);
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
        let ownership = &packets.table.selection;
        let is_accepted =
            |report: &SocketReport| accepts && ownership.is_listener(unmapped(report.local));
        let accepted: Vec<&SocketReport> = there.iter().filter(|one| is_accepted(one)).collect();
        // an idle one shows nothing that keys would open
        let is_new = |report: &&SocketReport| {
            let checked = self.checked.get(&report.cookie);
            let (local, peer) = (unmapped(report.local), unmapped(report.peer));
            checked.is_none_or(|checked| !checked.has_owner)
                && (packets.table.has_read(local, peer) || ownership.is_shared(local))
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
            let (local, peer) = (unmapped(report.local), unmapped(report.peer));
            let owner = owners.get(&report.inode).filter(|_| !checked.has_owner);
            // before it is accepted it has no inode
            if report.inode != 0 && !checked.has_owner && packets.ownership().is_shared(local) {
                packets.ownership().accept((local, peer), owner.is_some());
                if owner.is_none() {
                    checked.carried = u64::MAX;
                }
            }
            if let Some(owner) = owner {
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
    pub(super) fn owners(&mut self) -> HashMap<u32, Owner> {
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
    pub(super) fn connection(
        &mut self,
        report: &SocketReport,
        at: Nanos,
        owner: Owner,
    ) -> Connection {
        let mut about = Connection::new(ConnectionId(self.next_id), at);
        self.next_id += 1;
        about.local = Some(report.local);
        about.peer = Some(report.peer);
        about.origin = Some(origin(report.peer));
        about.owner = Some(owner);
        about
    }
}

/// Of the listeners that followed processes have, by their inodes: those where others accept, too,
/// by SO_REUSEPORT or by the same socket.
fn shared(
    ours: &HashMap<u32, SocketAddr>,
    foreign: &HashSet<SocketAddr>,
    followed: &[u32],
) -> HashSet<SocketAddr> {
    let by_port = ours.values().filter(|address| foreign.contains(address));
    let mut shared: HashSet<SocketAddr> = by_port.copied().collect();
    let followed: HashSet<u32> = followed.iter().copied().collect();
    // it keeps the sockets of the services that it activates, and accepts nothing there
    let is_systemd =
        |pid: u32| pid == 1 && process::command(1).is_some_and(|name| *name == *"systemd");
    let others = process::all().into_iter();
    let others = others.filter(|pid| !followed.contains(pid) && !is_systemd(*pid));
    for other in others.take_while(|_| !ours.is_empty()) {
        // what cannot be inspected runs for another user, and has its own sockets
        let _ = process::each_socket(other, |inode| shared.extend(ours.get(&inode)));
    }
    shared
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
