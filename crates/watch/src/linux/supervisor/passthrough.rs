//! Connections that are left to the kernel: what must be known before it makes them is asked as quickly as can be, since the
//! caller waits, and their ends are read when we are awake anyway.

use super::{ENDS, Supervisor};
use crate::platform::sock_diag_tracker::SockDiagTracker;
use crate::{Mode, Unwatched};
use intact_ledger::{Connection, Nanos};
use intact_sys::address::{AddressKind, unmapped};
use intact_sys::seccomp::{Notification, NotificationResponse};
use intact_sys::socket;
use mio::unix::SourceFd;
use mio::{Interest, Registry};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

/// How late an end may be read: whoever connects meanwhile has it read first.
const SOON: Duration = Duration::from_millis(2);

impl Supervisor {
    /// Takes a `connect` in passing; `None`: it has been answered.
    pub(super) fn pass_by(&mut self, notice: &Notification) -> Option<NotificationResponse> {
        const UNTOUCHED: Option<NotificationResponse> = Some(NotificationResponse::Continue);
        let began = self.clock.now();
        let Some((AddressKind::Inet(wanted), socket)) = self.examine(notice) else {
            return UNTOUCHED;
        };
        match socket::protocol(&socket).unwrap_or(0) {
            libc::IPPROTO_TCP => {}
            libc::IPPROTO_UDP => return Some(self.connect_datagrams(notice, socket, wanted)),
            other => {
                self.leave_other(other);
                return UNTOUCHED;
            }
        }
        let Ok(cookie) = socket::cookie(&socket) else {
            return UNTOUCHED;
        };
        // connected, connecting or listening: the kernel has the right answer
        if self.apart == Some(unmapped(wanted)) || !socket::is_idle(&socket) {
            return UNTOUCHED;
        }
        if socket::namespace(&socket) != self.namespace {
            self.leave(Unwatched::OtherNamespace);
            return UNTOUCHED;
        }
        self.notice_replaced(cookie, &socket);
        let owner = self.owner(notice.thread);
        // a copy would put off the end of the connection, should the program close it now
        drop(socket);
        // what was read is the caller's only if it still waits
        if self
            .listener
            .answer(notice.id, NotificationResponse::Continue)
        {
            let about = self.about(wanted, began, owner);
            self.follow(notice, cookie, about, Unwatched::NoRelay);
            // connections that have ended by now had done so before this one began
            if self.ends_due.is_some() {
                self.take_ends(began);
            }
        }
        None
    }

    /// An idle socket connects: counts the connection that it had before, where that is followed.
    pub(super) fn notice_replaced(&mut self, cookie: u64, socket: &impl AsFd) {
        if let Some(outside) = &mut self.outside
            && outside.follows(cookie)
            // else its connect has failed, and is made again or asked for its error
            && socket::is_blank(socket)
        {
            outside.replace(cookie);
        }
    }

    /// Leaves a connection to the kernel and follows it from outside, or counts it as unwatched where that cannot be.
    pub(super) fn follow(
        &mut self,
        notice: &Notification,
        cookie: u64,
        about: Connection,
        reason: Unwatched,
    ) {
        let descriptor = notice.arguments[0] as i32;
        if self.outside.is_none() && self.mode != Mode::Relay {
            self.outside = listen(self.poll.registry()).ok();
        }
        match &mut self.outside {
            Some(outside) => outside.follow(cookie, about, Some(descriptor)),
            None => {
                self.census.count(cookie);
                self.leave(reason);
            }
        }
    }

    /// Sockets have ended, and more may: they are read together, with the next connect or soon.
    pub(super) fn put_off_ends(&mut self) {
        if let Some(outside) = &self.outside {
            let _ = self
                .poll
                .registry()
                .deregister(&mut SourceFd(&outside.as_raw_fd()));
            self.ends_due = Some(Instant::now() + SOON);
        }
    }

    /// Reads what was put off, once it is due.
    pub(super) fn take_late_ends(&mut self) {
        if self.ends_due.is_none_or(|due| Instant::now() < due) {
            return;
        }
        self.ends_due = None;
        self.take_ends(self.clock.now());
        if let Some(outside) = &self.outside
            && register(self.poll.registry(), outside).is_err()
        {
            // without being told, looks again and again
            self.ends_due = Some(Instant::now() + SOON);
        }
    }

    fn take_ends(&mut self, at: Nanos) {
        if let Some(outside) = &mut self.outside {
            let orders = &self.orders;
            outside.take_ends(at, &mut |row| orders.record(row), &mut |_| {});
        }
    }
}

/// Has the kernel tell how sockets end.
pub(super) fn listen(registry: &Registry) -> io::Result<SockDiagTracker> {
    let outside = SockDiagTracker::new()?;
    register(registry, &outside)?;
    Ok(outside)
}

fn register(registry: &Registry, outside: &SockDiagTracker) -> io::Result<()> {
    registry.register(
        &mut SourceFd(&outside.as_raw_fd()),
        ENDS,
        Interest::READABLE,
    )
}
