//! Sockets of this machine that are not followed: whether one may have been a followed process's.
//!
//! Descriptors are read in looks, so a connection can end before its owner is seen. The kernel
//! reports the end of every socket: an end that is not explained here is a connection that may be
//! missing.

use intact_sys::sock_diag::SocketReport;
use std::collections::{HashMap, HashSet};

/// Sockets that are remembered; beyond that, those that are gone are forgotten.
const MAX: usize = 1 << 16;

/// The sockets that are not followed.
#[derive(Default)]
pub(crate) struct Others {
    known: HashMap<u64, Seen>,
    /// Local ports on which a socket listened at the last look.
    served: HashSet<u16>,
    /// Sockets of the last look that nothing explains yet.
    unexplained: HashSet<u64>,
    /// Sockets that ended unexplained.
    ended: u64,
}

/// How a socket was seen that no followed process has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    /// Open in one look: a followed process may have closed it during that look.
    Once,
    /// Accepted, older than the run, or open in two looks.
    NotOurs,
}

impl Others {
    /// A look begins: these ports are listened on, and these sockets are there.
    pub(crate) fn begin_look(&mut self, served: HashSet<u16>, there: &[SocketReport]) {
        self.served = served;
        self.unexplained.clear();
        if self.known.len() > MAX {
            let there: HashSet<u64> = there.iter().map(|report| report.cookie).collect();
            self.known.retain(|cookie, _| there.contains(cookie));
        }
    }

    /// Whether a socket is known to belong to no followed process.
    pub(crate) fn knows(&self, cookie: u64) -> bool {
        self.known.get(&cookie) == Some(&Seen::NotOurs)
    }

    /// Whether the local port is that of a listener: the socket was accepted.
    pub(crate) fn is_accepted(&self, report: &SocketReport) -> bool {
        self.served.contains(&report.local.port())
    }

    /// Another process connected this socket.
    pub(crate) fn note_owner(&mut self, cookie: u64) {
        self.known.insert(cookie, Seen::NotOurs);
    }

    /// No followed process has this socket in this look.
    pub(crate) fn see(&mut self, report: &SocketReport, is_first_look: bool) {
        let has_owner = report.inode != 0;
        let is_not_ours = match self.known.get(&report.cookie) {
            Some(Seen::NotOurs) => true,
            Some(Seen::Once) if has_owner => true,
            _ => self.is_accepted(report) || is_first_look && !has_owner,
        };
        if is_not_ours {
            self.known.insert(report.cookie, Seen::NotOurs);
            return;
        }
        self.unexplained.insert(report.cookie);
        if has_owner {
            self.known.insert(report.cookie, Seen::Once);
        }
    }

    /// A socket has ended whose owner is known.
    pub(crate) fn forget(&mut self, cookie: u64) {
        self.unexplained.remove(&cookie);
        self.known.remove(&cookie);
    }

    /// A socket has ended that is not followed.
    pub(crate) fn end(&mut self, report: &SocketReport) {
        self.unexplained.remove(&report.cookie);
        let is_not_ours = self.known.remove(&report.cookie) == Some(Seen::NotOurs);
        // a socket without a port was never connected
        if !is_not_ours && !self.is_accepted(report) && report.local.port() != 0 {
            self.ended += 1;
        }
    }

    /// How many sockets may have been connections of a followed process.
    pub(crate) fn unexplained(&self) -> u64 {
        self.ended + self.unexplained.len() as u64
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A socket that carried a byte each way.
    pub(in super::super) fn socket(cookie: u64, inode: u32, port: u16) -> SocketReport {
        SocketReport {
            cookie,
            inode,
            owner: 0,
            is_listening: false,
            local: ([127, 0, 0, 1], port).into(),
            peer: ([127, 0, 0, 1], 80).into(),
            was_established: true,
            was_answered: Some(true),
            was_reset: false,
            sent: 1,
            received: 1,
        }
    }

    /// One look that finds these sockets, none of which a followed process has.
    fn look(others: &mut Others, there: &[SocketReport], is_first: bool) {
        others.begin_look(HashSet::from([80]), there);
        for report in there {
            others.see(report, is_first);
        }
    }

    #[test]
    fn a_socket_that_ends_before_any_look_is_unexplained() {
        let mut others = Others::default();
        look(&mut others, &[], true);
        others.end(&socket(1, 0, 40_000));
        assert_eq!(others.unexplained(), 1);
    }

    #[test]
    fn a_socket_without_an_owner_is_unexplained_unless_it_is_older_than_the_run() {
        let mut others = Others::default();
        look(&mut others, &[socket(1, 0, 40_000)], true);
        assert_eq!(others.unexplained(), 0);
        let there = [socket(1, 0, 40_000), socket(2, 0, 40_001)];
        look(&mut others, &there, false);
        look(&mut others, &there, false);
        assert_eq!(others.unexplained(), 1);
        others.end(&there[0]);
        others.end(&there[1]);
        assert_eq!(others.unexplained(), 1);
    }

    #[test]
    fn a_socket_with_an_owner_is_anothers_once_two_looks_have_seen_it() {
        let mut others = Others::default();
        let there = [socket(1, 7, 40_000)];
        look(&mut others, &there, false);
        assert!(!others.knows(1));
        assert_eq!(others.unexplained(), 1);
        look(&mut others, &there, false);
        assert!(others.knows(1));
        others.end(&there[0]);
        assert_eq!(others.unexplained(), 0);
    }

    #[test]
    fn a_socket_with_an_owner_that_ends_after_one_look_is_unexplained() {
        let mut others = Others::default();
        let there = [socket(1, 7, 40_000)];
        look(&mut others, &there, false);
        others.end(&there[0]);
        look(&mut others, &[], false);
        assert_eq!(others.unexplained(), 1);
    }

    #[test]
    fn an_accepted_socket_and_one_that_never_had_a_port_are_explained() {
        let mut others = Others::default();
        look(&mut others, &[], true);
        others.end(&socket(1, 0, 80));
        others.end(&socket(2, 0, 0));
        assert_eq!(others.unexplained(), 0);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut others = Others::default();
        for cookie in 0..MAX as u64 + 10 {
            others.see(&socket(cookie, 7, 40_000), false);
        }
        look(&mut others, &[socket(1, 7, 40_000)], false);
        assert_eq!(others.known.len(), 1);
    }
}
