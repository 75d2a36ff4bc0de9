//! The program's calls: each waits for its response, and its process is read meanwhile.
//!
//! Does not decide what a call means.

use super::inspection::Inspection;
use super::run_record::RunRecord;
use crate::Unwatched;
use intact_ledger::Owner;
use intact_sys::address::{self, AddressKind};
use intact_sys::process::{Processes, SocketLocation};
use intact_sys::seccomp::{Notification, NotificationListener, NotificationResponse};
use mio::{Poll, Token};
use std::io;
use std::os::fd::OwnedFd;

/// The listener of the filter, and the processes that call.
pub(super) struct Notifications {
    listener: NotificationListener,
    processes: Processes,
    inspection: Inspection,
}

impl Notifications {
    /// Takes the listener, has the loop wake for it, and tries whether processes can be inspected.
    pub(super) fn new(listener: OwnedFd, poll: &Poll, token: Token) -> io::Result<Notifications> {
        let listener = NotificationListener::new(listener);
        listener.register(poll, token.0)?;
        let inspection = Inspection::try_on(listener.own_child());
        Ok(Notifications {
            listener,
            processes: Processes::default(),
            inspection,
        })
    }

    /// See [`NotificationListener::hand_over_on_one_cpu`].
    pub(super) fn hand_over_on_one_cpu(&self) {
        self.listener.hand_over_on_one_cpu();
    }

    /// The next call; `None` if its caller no longer waits.
    pub(super) fn take(&self) -> Option<Notification> {
        self.listener.take().ok().flatten()
    }

    /// Responds to a call; returns whether the caller still waited.
    pub(super) fn respond(&self, id: u64, response: NotificationResponse) -> bool {
        self.listener.answer(id, response)
    }

    /// Whether the caller still waits.
    pub(super) fn is_valid(&self, id: u64) -> bool {
        self.listener.is_valid(id)
    }

    /// No process is left that could call.
    pub(super) fn deregister(&self, poll: &Poll) {
        self.listener.deregister(poll);
    }

    /// All filtered processes have ended: no process needs to respond in our place.
    pub(super) fn stop_fallback(&mut self) {
        self.listener.stop_fallback();
    }

    /// Why this system allows no inspection of processes; empty where it refuses nothing.
    pub(super) fn refused(&self) -> &[Unwatched] {
        self.inspection.refused()
    }

    /// The process that a call comes from.
    pub(super) fn owner(&mut self, thread: u32) -> Option<Owner> {
        let identity = self.processes.identify(thread)?;
        Some(Owner {
            pid: identity.process,
            command: identity.command,
        })
    }

    /// A copy of the descriptor that the call has as its first argument.
    pub(super) fn copy_descriptor(&mut self, notice: &Notification) -> io::Result<OwnedFd> {
        let number = notice.arguments[0] as i32;
        self.processes.copy_descriptor(notice.thread, number)
    }

    /// Where the socket that [`Self::copy_descriptor`] has copied is found later.
    pub(super) fn location(&self, notice: &Notification, cookie: u64) -> Option<SocketLocation> {
        let number = notice.arguments[0] as i32;
        self.processes.place(notice.thread, number, cookie)
    }

    /// The address that a `connect` names, and a copy of its socket; `None` where neither concerns us.
    pub(super) fn examine(
        &mut self,
        notice: &Notification,
        disconnects: bool,
        record: &mut RunRecord,
    ) -> Option<(AddressKind, OwnedFd)> {
        let [_, place, len, ..] = notice.arguments;
        let len = usize::try_from(len as i32).ok()?.min(address::MAX_LEN);
        let mut bytes = [0; address::MAX_LEN];
        self.inspected(notice, notice.read_memory(place, &mut bytes[..len]), record)?;
        let named = address::parse(&bytes[..len])?;
        // of all other families only the request to disconnect concerns us
        let family = i32::from(u16::from_ne_bytes([bytes[0], bytes[1]]));
        if named == AddressKind::Other && !(disconnects && family == libc::AF_UNSPEC) {
            return None;
        }
        let copied = self.copy_descriptor(notice);
        Some((named, self.inspected(notice, copied, record)?))
    }

    /// The value that was read of the caller. Where that failed, counts a connection that is not watched, unless the
    /// caller made a mistake that the kernel will report, or has ended.
    pub(super) fn inspected<T>(
        &self,
        notice: &Notification,
        read: io::Result<T>,
        record: &mut RunRecord,
    ) -> Option<T> {
        let error = match read {
            Ok(value) => return Some(value),
            Err(error) => error,
        };
        let reason = self.inspection.reason(&error)?;
        if self.listener.is_valid(notice.id) {
            record.unwatched(reason);
        }
        None
    }
}
