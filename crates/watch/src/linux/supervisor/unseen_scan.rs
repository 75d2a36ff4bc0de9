//! Whether the program has connections open that it was never seen to make: inherited, received from another process, accepted
//! by a listener that is gone, or made in a way that the filter does not know.
//!
//! The kernel could tell of the end of each socket, which would cost every connection of the machine some microseconds. So we
//! look at what the program has open, now and then, on a thread beside our work.

use super::Supervisor;
use crate::Unwatched;
use intact_sys::address::unmapped;
use intact_sys::{process, sock_diag};
use std::collections::HashSet;
use std::io;
use std::net::SocketAddr;
use std::sync::mpsc::{self, Receiver};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// When the first look is due; the time to the next doubles, up to the second.
const FIRST: Duration = Duration::from_millis(250);
const RARELY: Duration = Duration::from_secs(64);
/// A look takes at most one part in so many of the time.
const SHARE: u32 = 200;
/// Sockets that are remembered, for being counted once only. Further ones are not counted.
const MAX: usize = 1 << 16;

/// The looks at what is open.
pub(super) struct UnseenScan {
    due: Instant,
    pace: Duration,
    looking: Option<Look>,
    /// Cookies of sockets that are counted as unwatched already.
    counted: HashSet<u64>,
}

/// A look under way.
struct Look {
    began: Instant,
    thread: JoinHandle<()>,
    found: Receiver<io::Result<Vec<u64>>>,
}

impl UnseenScan {
    pub(super) fn new() -> UnseenScan {
        UnseenScan {
            due: Instant::now() + FIRST,
            pace: FIRST,
            looking: None,
            counted: HashSet::new(),
        }
    }

    /// When the next look is due; `None` while one is under way.
    pub(super) fn due(&self) -> Option<Instant> {
        self.looking.is_none().then_some(self.due)
    }

    /// Whether a socket is counted for the first time.
    pub(super) fn count(&mut self, cookie: u64) -> bool {
        self.counted.len() < MAX && self.counted.insert(cookie)
    }
}

impl Supervisor {
    /// Begins a look, once it is due.
    pub(super) fn look_around(&mut self) {
        let now = Instant::now();
        if self.census.due().is_none_or(|due| now < due) {
            return;
        }
        if !self.can_look_around() {
            self.census.due = now + RARELY;
            return;
        }
        if let Some(outside) = &mut self.outside {
            outside.remember_ends();
        }
        let (tell, found) = mpsc::channel();
        let (apart, waker) = (self.apart, self.waker.clone());
        let begun = std::thread::Builder::new()
            .name("census".to_owned())
            .spawn(move || {
                // whoever asked may have ended
                let _ = tell.send(find(apart));
                let _ = waker.wake();
            });
        match begun {
            Ok(thread) => {
                self.census.looking = Some(Look {
                    began: now,
                    thread,
                    found,
                });
            }
            Err(_) => self.census.due = now + RARELY,
        }
    }

    /// Takes what a look has found, if one has ended.
    pub(super) fn take_census(&mut self) {
        let Some(look) = &self.census.looking else {
            return;
        };
        let Ok(found) = look.found.try_recv() else {
            return;
        };
        let now = Instant::now();
        let took = now - look.began;
        self.census.looking = None;
        self.census.pace = (self.census.pace * 2).min(RARELY).max(took * SHARE);
        self.census.due = now + self.census.pace;
        // a look that failed is made up for by the next
        self.count_unseen(found.unwrap_or_default());
    }

    /// Waits for a look that is under way, and looks once more at what the program leaves behind, if it does.
    pub(super) fn end_census(&mut self) {
        if let Some(look) = self.census.looking.take() {
            let _ = look.thread.join();
            let found = look.found.try_recv().ok().and_then(Result::ok);
            self.count_unseen(found.unwrap_or_default());
        }
        if self.abandoned && self.can_look_around() {
            self.count_unseen(find(self.apart).unwrap_or_default());
        }
    }

    /// Whether what we find that was never seen to be made is unwatched for that reason. Where inspection
    /// is refused, all connections are found, and another caveat names the reason.
    fn can_look_around(&self) -> bool {
        self.names.is_complete() && self.inspection.refused().is_empty()
    }

    fn count_unseen(&mut self, found: Vec<u64>) {
        for cookie in found {
            let is_followed = self.names.find(cookie).is_some()
                || self.by_cookie.contains_key(&cookie)
                || self.outside.as_ref().is_some_and(|one| one.knows(cookie));
            if !is_followed && self.census.count(cookie) {
                self.leave(Unwatched::Unseen);
            }
        }
    }
}

/// The cookies of the established TCP sockets that our descendants have, but for accepted ones.
fn find(apart: Option<SocketAddr>) -> io::Result<Vec<u64>> {
    let mut there = Vec::new();
    let mut served = HashSet::new();
    sock_diag::list(|told| {
        if told.is_listening {
            served.insert(told.local.port());
        } else if told.was_established && apart != Some(unmapped(told.peer)) {
            there.push(told);
        }
    })?;
    there.retain(|told| told.inode != 0 && !served.contains(&told.local.port()));
    if there.is_empty() {
        return Ok(Vec::new());
    }
    let mut inodes = HashSet::new();
    for process in process::descendants(vec![std::process::id()]).skip(1) {
        // one that has gone meanwhile, or that we may not look at
        let _ = process::each_socket(process, |inode| {
            inodes.insert(inode);
        });
    }
    there.retain(|told| inodes.contains(&told.inode));
    Ok(there.into_iter().map(|told| told.cookie).collect())
}
