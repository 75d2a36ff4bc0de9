//! Connections that are left to the kernel. The caller waits for the look at its call, so that look
//! is short, and ends of connections are read when the loop is awake for another reason.

use super::ENDS;
use super::call_context::CallContext;
use super::connect_request::{ConnectRequest, requested};
use super::lookups::Lookups;
use crate::platform::sock_diag_tracker::SockDiagTracker;
use crate::platform::wait_readable;
use crate::{Mode, Unwatched};
use intact_ledger::{Connection, Nanos};
use intact_sys::seccomp::{Notification, NotificationResponse};
use intact_sys::socket;
use mio::Registry;
use mio::unix::SourceFd;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// How late an end may be read: the next connect has it read first.
const SOON: Duration = Duration::from_millis(2);

/// Connections that are followed by reports of the kernel.
#[derive(Default)]
pub(super) struct Passthrough {
    /// The kernel reports each socket's end on this machine to it, so it is there only where it is
    /// needed.
    tracker: Option<SockDiagTracker>,
    /// When the kernel's reports of ends are read at the latest.
    pub(super) ends_due: Option<Instant>,
}

impl Passthrough {
    /// Has the kernel report the ends of sockets.
    ///
    /// `excluded`: a destination that is not recorded.
    pub(super) fn subscribe(
        &mut self,
        excluded: Option<SocketAddr>,
        registry: &Registry,
    ) -> io::Result<()> {
        let tracker = SockDiagTracker::new(excluded)?;
        wait_readable(registry, &tracker, ENDS)?;
        self.tracker = Some(tracker);
        Ok(())
    }

    /// Takes a `connect` that the kernel makes; `None`: the response is sent.
    pub(super) fn connect(
        &mut self,
        notice: &Notification,
        lookups: &mut Lookups,
        cx: &mut CallContext,
    ) -> Option<NotificationResponse> {
        const UNTOUCHED: NotificationResponse = NotificationResponse::Continue;
        let request = match ConnectRequest::read(notice, lookups, cx) {
            Ok(request) => request,
            Err(response) => return Some(response),
        };
        if !request.is_followed(notice.thread, cx) {
            return Some(UNTOUCHED);
        }
        let ConnectRequest {
            began,
            wanted,
            socket,
            cookie,
        } = request;
        self.notice_replaced(cookie, socket.as_ref());
        let owner = cx.notifications.owner(notice.thread);
        let (stack, began) = cx.place(notice.thread, owner.as_ref(), wanted, began);
        // a copy would delay the end of the connection, should the program close it now
        drop(socket);
        // what was read is the caller's only if it still waits
        if cx.notifications.respond(notice.id, UNTOUCHED) {
            let about = requested(wanted, began, owner, stack, lookups, cx);
            self.follow(notice, cookie, about, Unwatched::NoRelay, cx);
            // connections that have ended by now had done so before this one began
            if self.ends_due.is_some() {
                self.take_ends(began, cx);
            }
        }
        None
    }

    /// An idle socket connects: counts the connection that it had before, where that is followed.
    /// Without the socket, its connect is taken for one that failed and is made again.
    pub(super) fn notice_replaced(&mut self, cookie: u64, socket: Option<&OwnedFd>) {
        if let Some(tracker) = &mut self.tracker
            && tracker.follows(cookie)
            // else its connect has failed, and is made again or asked for its error
            && socket.is_some_and(socket::is_blank)
        {
            tracker.replace(cookie);
        }
    }

    /// Leaves a connection to the kernel and follows it, or counts it as unwatched where that is
    /// impossible.
    pub(super) fn follow(
        &mut self,
        notice: &Notification,
        cookie: u64,
        about: Connection,
        reason: Unwatched,
        cx: &mut CallContext,
    ) {
        if self.tracker.is_none() && cx.mode != Mode::Relay {
            // without it, the connection counts as unwatched
            let _ = self.subscribe(cx.excluded, &cx.registry);
        }
        match &mut self.tracker {
            Some(tracker) => {
                tracker.follow(cookie, about, Some(notice.arguments[0] as i32));
                cx.record.followed(reason);
            }
            None => cx.record.unwatched_socket(cookie, reason),
        }
    }

    /// Sockets have ended, and more may: they are read together, with the next connect or soon.
    pub(super) fn put_off_ends(&mut self, registry: &Registry) {
        if let Some(tracker) = &self.tracker {
            let _ = registry.deregister(&mut SourceFd(&tracker.as_raw_fd()));
            self.ends_due = Some(Instant::now() + SOON);
        }
    }

    /// Reads the reports that were put off, once they are due.
    pub(super) fn take_late_ends(&mut self, cx: &CallContext) {
        if self.ends_due.is_none_or(|due| Instant::now() < due) {
            return;
        }
        self.ends_due = None;
        self.take_ends(cx.record.now(), cx);
        if let Some(tracker) = &self.tracker
            && wait_readable(&cx.registry, tracker, ENDS).is_err()
        {
            // without a wake-up, reads again and again
            self.ends_due = Some(Instant::now() + SOON);
        }
    }

    fn take_ends(&mut self, at: Nanos, cx: &CallContext) {
        if let Some(tracker) = &mut self.tracker {
            tracker.take_ends(at, &mut |row| cx.record.row(row), &mut |_| {});
        }
    }

    /// A scan begins: connections that end from now on count as followed.
    pub(super) fn remember_ends(&mut self) {
        if let Some(tracker) = &mut self.tracker {
            tracker.remember_ends();
        }
    }

    /// Whether the socket with this cookie is followed, or was when a scan began.
    pub(super) fn knows(&self, cookie: u64) -> bool {
        let tracker = self.tracker.as_ref();
        tracker.is_some_and(|tracker| tracker.knows(cookie))
    }

    /// The program has ended: waits for the kernel's last reports.
    pub(super) fn finish(self, cx: &CallContext) {
        if let Some(tracker) = self.tracker {
            let record = &cx.record;
            tracker.finish_after_end(record.clock, &mut |row| record.row(row));
        }
    }
}
