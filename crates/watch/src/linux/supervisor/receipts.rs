//! Descriptors that other processes send to the program over Unix sockets (SCM_RIGHTS): which
//! connections are among them.
//!
//! They are looked at in the socket's queue, before the program's call takes them. A call that
//! would wait is held until there is something, so that no connection is used and closed between
//! two scans. The kernel keeps signals from a held call, so one that has a signal goes on. Must not
//! take anything out of the queue.

use super::RECEIVED;
use super::call_context::CallContext;
use intact_sys::seccomp::Notification;
use intact_sys::socket;
use mio::unix::SourceFd;
use mio::{Interest, Token};
use std::collections::{HashMap, HashSet};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// Calls that are held at once; further ones go on, and scans find what they bring.
const MOST: usize = 64;

/// How often the callers of held calls are checked for signals.
const LOOK: Duration = Duration::from_millis(20);

/// The calls that wait for a message.
#[derive(Default)]
pub(super) struct Receipts {
    /// By their thread.
    held: HashMap<u32, Receipt>,
    /// When their callers are checked next.
    pub(super) due: Option<Instant>,
}

/// A call that waits for a message.
struct Receipt {
    call: u64,
    socket: OwnedFd,
}

impl Receipts {
    /// The inodes of the connections that a `recvmsg` or `recvmmsg` brings, with its flags in that
    /// argument; `None`: it waits for them.
    pub(super) fn receive(
        &mut self,
        notice: &Notification,
        flags: usize,
        cx: &mut CallContext,
    ) -> Option<HashSet<u32>> {
        // a signal has interrupted the call before
        self.forget(notice.thread, cx);
        let Ok(socket) = cx.notifications.descriptor(notice) else {
            return Some(HashSet::new());
        };
        if !socket::is_unix(&socket) {
            return Some(HashSet::new());
        }
        let sent = socket::sent_connections(&socket);
        let flags = notice.arguments[flags];
        let may_wait = flags & libc::MSG_DONTWAIT as u64 == 0 && socket::waits_for_data(&socket);
        if sent.is_some() || !may_wait || self.held.len() >= MOST {
            return Some(sent.unwrap_or_default().into_iter().collect());
        }
        let token = Token(RECEIVED + notice.thread as usize);
        let number = socket.as_raw_fd();
        let awaited = cx
            .registry
            .register(&mut SourceFd(&number), token, Interest::READABLE);
        if awaited.is_err() {
            return Some(HashSet::new());
        }
        let call = notice.id;
        self.held.insert(notice.thread, Receipt { call, socket });
        self.due.get_or_insert_with(|| Instant::now() + LOOK);
        None
    }

    /// A message has come: the call that waited for it, and the inodes of the connections that it
    /// brings.
    pub(super) fn take(
        &mut self,
        Token(token): Token,
        cx: &CallContext,
    ) -> Option<(u64, HashSet<u32>)> {
        let thread = u32::try_from(token - RECEIVED).ok()?;
        let Receipt { call, socket } = self.forget(thread, cx)?;
        let sent = socket::sent_connections(&socket).unwrap_or_default();
        Some((call, sent.into_iter().collect()))
    }

    /// The calls that go on because their callers have a signal.
    pub(super) fn interrupted(&mut self, cx: &CallContext) -> Vec<u64> {
        let now = Instant::now();
        if self.due.is_none_or(|due| now < due) {
            return Vec::new();
        }
        let threads = self.held.keys().copied();
        let threads: Vec<u32> = threads.filter(|thread| has_signal(*thread)).collect();
        let calls = threads
            .into_iter()
            .filter_map(|thread| self.forget(thread, cx));
        let calls = calls.map(|receipt| receipt.call).collect();
        self.due = (!self.held.is_empty()).then(|| now + LOOK);
        calls
    }

    fn forget(&mut self, thread: u32, cx: &CallContext) -> Option<Receipt> {
        let receipt = self.held.remove(&thread)?;
        let number = receipt.socket.as_raw_fd();
        let _ = cx.registry.deregister(&mut SourceFd(&number));
        Some(receipt)
    }
}

/// Whether a thread has a signal that it neither blocks nor ignores, or has ended.
fn has_signal(thread: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{thread}/status")).unwrap_or_default();
    let set = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok())
    };
    let [Some(own), Some(shared), Some(blocked), Some(ignored)] =
        ["SigPnd:", "ShdPnd:", "SigBlk:", "SigIgn:"].map(set)
    else {
        return true;
    };
    (own | shared) & !(blocked | ignored) != 0
}
