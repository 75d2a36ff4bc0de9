//! Whether the program has connections open that it was not seen to make. They were inherited,
//! received from another process, accepted by a listener that is gone, or made in a way that the
//! filter does not know.
//!
//! Reports of every socket's end would cost each connection of the machine some microseconds. So a
//! thread lists the program's sockets from time to time.

use super::call_context::CallContext;
use super::connect_calls::ConnectCalls;
use super::made_sockets::program_sockets;
use super::passthrough::Passthrough;
use intact_sys::address::unmapped;
use intact_sys::sock_diag;
use mio::Waker;
use std::collections::HashSet;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// When the first scan is due; the time to the next doubles, up to the second constant.
const FIRST: Duration = Duration::from_millis(250);
const RARELY: Duration = Duration::from_secs(64);
/// A scan takes at most one part in this number of the time.
const SHARE: u32 = 200;

/// The scans for connections that were not seen.
pub(super) struct UnseenScan {
    due: Instant,
    pace: Duration,
    running: Option<Scan>,
    /// Of the event loop.
    waker: Arc<Waker>,
}

/// A scan under way.
struct Scan {
    began: Instant,
    thread: JoinHandle<()>,
    found: Receiver<io::Result<Vec<u64>>>,
}

impl UnseenScan {
    pub(super) fn new(waker: Arc<Waker>) -> UnseenScan {
        UnseenScan {
            due: Instant::now() + FIRST,
            pace: FIRST,
            running: None,
            waker,
        }
    }

    /// When the next scan is due; `None` while one is under way.
    pub(super) fn due(&self) -> Option<Instant> {
        self.running.is_none().then_some(self.due)
    }

    /// Begins a scan, once it is due.
    pub(super) fn begin(&mut self, passthrough: &mut Passthrough, cx: &CallContext) {
        let now = Instant::now();
        if self.due().is_none_or(|due| now < due) {
            return;
        }
        if !can_scan(cx) {
            self.due = now + RARELY;
            return;
        }
        passthrough.remember_ends();
        let (sender, found) = mpsc::channel();
        let (excluded, waker) = (cx.excluded, self.waker.clone());
        let begun = std::thread::Builder::new()
            .name("scan".to_owned())
            .spawn(move || {
                // the run may have ended
                let _ = sender.send(find(excluded, program_sockets));
                let _ = waker.wake();
            });
        match begun {
            Ok(thread) => {
                self.running = Some(Scan {
                    began: now,
                    thread,
                    found,
                });
            }
            Err(_) => self.due = now + RARELY,
        }
    }

    /// Counts what a scan has found, if one has ended.
    pub(super) fn take(
        &mut self,
        connects: &ConnectCalls,
        passthrough: &Passthrough,
        cx: &mut CallContext,
    ) {
        let Some(scan) = &self.running else {
            return;
        };
        let Ok(found) = scan.found.try_recv() else {
            return;
        };
        let now = Instant::now();
        let took = now - scan.began;
        self.running = None;
        self.pace = (self.pace * 2).min(RARELY).max(took * SHARE);
        self.due = now + self.pace;
        // the next scan makes up for one that failed
        count_unseen(found.unwrap_or_default(), connects, passthrough, cx);
    }

    /// Waits for a scan that is under way; then scans the processes that the program leaves behind,
    /// if it does.
    pub(super) fn finish(
        &mut self,
        is_abandoned: bool,
        connects: &ConnectCalls,
        passthrough: &Passthrough,
        cx: &mut CallContext,
    ) {
        if let Some(scan) = self.running.take() {
            let _ = scan.thread.join();
            let found = scan.found.try_recv().ok().and_then(Result::ok);
            count_unseen(found.unwrap_or_default(), connects, passthrough, cx);
        }
        if is_abandoned && can_scan(cx) {
            let found = find(cx.excluded, program_sockets).unwrap_or_default();
            count_unseen(found, connects, passthrough, cx);
        }
    }

    /// Counts those of these sockets, by inode, that are connections: the program has just got
    /// them.
    pub(super) fn look_at(
        &self,
        inodes: HashSet<u32>,
        connects: &ConnectCalls,
        passthrough: &Passthrough,
        cx: &mut CallContext,
    ) {
        if !inodes.is_empty() && can_scan(cx) {
            let found = find(cx.excluded, || inodes).unwrap_or_default();
            count_unseen(found, connects, passthrough, cx);
        }
    }
}

/// Whether a connection that is found and was never seen to be made is unwatched for that reason.
/// Where inspection is refused, all connections are found, and another caveat names the reason.
fn can_scan(cx: &CallContext) -> bool {
    cx.addresses.is_complete() && cx.notifications.inspection.refused.is_empty()
}

fn count_unseen(
    found: Vec<u64>,
    connects: &ConnectCalls,
    passthrough: &Passthrough,
    cx: &mut CallContext,
) {
    for cookie in found {
        let is_followed = cx.addresses.find(cookie).is_some()
            || connects.contains(cookie)
            || passthrough.knows(cookie);
        if !is_followed {
            cx.record.unseen_socket(cookie);
        }
    }
}

/// The cookies of the established TCP sockets with one of these inodes, except accepted ones.
fn find(
    excluded: Option<SocketAddr>,
    inodes: impl FnOnce() -> HashSet<u32>,
) -> io::Result<Vec<u64>> {
    let mut established = Vec::new();
    let mut served = HashSet::new();
    sock_diag::list(|socket| {
        if socket.is_listening {
            served.insert(socket.local.port());
        } else if socket.was_established && excluded != Some(unmapped(socket.peer)) {
            established.push(socket);
        }
    })?;
    established.retain(|socket| socket.inode != 0 && !served.contains(&socket.local.port()));
    if established.is_empty() {
        return Ok(Vec::new());
    }
    let inodes = inodes();
    established.retain(|socket| inodes.contains(&socket.inode));
    Ok(established
        .into_iter()
        .map(|socket| socket.cookie)
        .collect())
}
