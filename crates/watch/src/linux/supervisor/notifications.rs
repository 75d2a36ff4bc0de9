//! The program's calls: each waits for its response, and its process is read meanwhile.
//!
//! Does not decide what a call means.

use super::made_sockets::{MadeSockets, ProgramSocket};
use super::run_record::RunRecord;
use crate::Unwatched;
use crate::platform::inspection::Inspection;
use intact_ledger::Owner;
use intact_sys::address::{self, AddressKind};
use intact_sys::credentials::{Credentials, Owner as SocketOwner};
use intact_sys::process::{Processes, SocketLocation, network_namespace};
use intact_sys::seccomp::{Notification, NotificationListener, NotificationResponse};
use mio::{Poll, Token};
use std::io;
use std::os::fd::OwnedFd;

/// The listener of the filter, and the processes that call.
pub(super) struct Notifications {
    pub(super) listener: NotificationListener,
    processes: Processes,
    pub(super) inspection: Inspection,
    /// Ours; absent where /proc does not show them.
    credentials: Option<Credentials>,
    /// Where the program's sockets are ours.
    made: Option<MadeSockets>,
}

/// What a `connect` names.
pub(super) enum Destination {
    /// An address of the Internet.
    Address(std::net::SocketAddr),
    /// None: a socket is to be disconnected.
    Disconnect,
    /// An address of another family than the Internet's.
    Foreign,
    /// The program's memory cannot be read.
    Unknown,
}

impl Notifications {
    /// Takes the listener, and has the loop wake for it.
    pub(super) fn new(
        listener: OwnedFd,
        mut inspection: Inspection,
        poll: &Poll,
        token: Token,
    ) -> io::Result<Notifications> {
        let listener = NotificationListener::new(listener);
        listener.register(poll, token.0)?;
        if inspection.makes_sockets() && !listener.can_give_descriptors() {
            inspection.cannot_give_sockets();
        }
        Ok(Notifications {
            listener,
            processes: Processes::default(),
            credentials: Credentials::ours(),
            made: inspection.makes_sockets().then(MadeSockets::default),
            inspection,
        })
    }

    /// Responds to a call; returns whether the caller still waited.
    pub(super) fn respond(&self, id: u64, response: NotificationResponse) -> bool {
        self.listener.answer(id, response)
    }

    /// Whether the caller still waits.
    pub(super) fn is_valid(&self, id: u64) -> bool {
        self.listener.is_valid(id)
    }

    /// The sockets that we made for the program, where we make them.
    pub(super) fn made(&mut self) -> Option<&mut MadeSockets> {
        self.made.as_mut()
    }

    /// When [`Self::sweep`] is due.
    pub(super) fn due(&self) -> Option<std::time::Instant> {
        self.made.as_ref().and_then(MadeSockets::due)
    }

    /// Drops sockets of ours that the program has closed.
    pub(super) fn sweep(&mut self) {
        if let Some(made) = &mut self.made {
            made.sweep();
        }
    }

    /// Drops our copy of a socket, where we keep one.
    pub(super) fn release(&mut self, cookie: u64) {
        if let Some(made) = &mut self.made {
            made.release(cookie);
        }
    }

    /// The process that a call comes from.
    pub(super) fn owner(&mut self, thread: u32) -> Option<Owner> {
        let identity = self.processes.identify(thread)?;
        Some(Owner {
            pid: identity.process,
            command: identity.command,
        })
    }

    /// The socket that the call has as its first argument.
    pub(super) fn socket(&mut self, notice: &Notification) -> io::Result<ProgramSocket> {
        let number = notice.arguments[0] as i32;
        match &self.made {
            Some(made) => made.find(notice.thread, number),
            None => {
                let copy = self.processes.copy_descriptor(notice.thread, number)?;
                ProgramSocket::of(copy)
            }
        }
    }

    /// A copy of the descriptor that the call has as its first argument.
    pub(super) fn descriptor(&mut self, notice: &Notification) -> io::Result<OwnedFd> {
        let number = notice.arguments[0] as i32;
        self.processes.copy_descriptor(notice.thread, number)
    }

    /// Where the socket that [`Self::socket`] has copied is found later.
    pub(super) fn location(&self, notice: &Notification, cookie: u64) -> Option<SocketLocation> {
        let number = notice.arguments[0] as i32;
        self.processes.place(notice.thread, number, cookie)
    }

    /// The destination that a `connect` names, and its socket; `None` where neither concerns us.
    pub(super) fn examine(
        &mut self,
        notice: &Notification,
        disconnects: bool,
        record: &mut RunRecord,
    ) -> Option<(Destination, ProgramSocket)> {
        let destination = self.destination(notice, disconnects, record)?;
        match self.socket(notice) {
            // of a socket that we did not make
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if let Destination::Address(_) = destination {
                    record.unwatched(self.why_not_made(notice.thread));
                }
                None
            }
            socket => Some((destination, self.inspected(notice, socket, record)?)),
        }
    }

    /// Why we had not made a socket of this thread.
    fn why_not_made(&self, thread: u32) -> Unwatched {
        if network_namespace(thread).is_some_and(|there| !is_our_network(there)) {
            Unwatched::OtherNamespace
        } else if self.make_for(thread, None, || ()).is_none() {
            Unwatched::OtherOwner
        } else {
            Unwatched::Unseen
        }
    }

    /// Makes a socket for a thread of the program that belongs to `owner`; without one, to the
    /// thread's own user and group. `None`: we may not make it for them, and `make` has not
    /// run.
    pub(super) fn make_for<T: Send>(
        &self,
        thread: u32,
        owner: Option<SocketOwner>,
        make: impl FnOnce() -> T + Send,
    ) -> Option<T> {
        let ours = self.credentials.as_ref();
        if owner.is_some() && owner == ours.map(|ours| ours.owner) {
            return Some(make());
        }
        let mut theirs = Credentials::of_thread(thread)?;
        theirs.owner = owner.unwrap_or(theirs.owner);
        if ours == Some(&theirs) {
            return Some(make());
        }
        theirs.lend(make).ok()
    }

    /// A word of the caller's memory; `None` if it cannot be read.
    pub(super) fn read_word(&self, notice: &Notification, place: u64) -> Option<u64> {
        let mut word = [0; 8];
        notice.read_memory(place, &mut word).ok()?;
        Some(u64::from_ne_bytes(word))
    }

    fn destination(
        &self,
        notice: &Notification,
        disconnects: bool,
        record: &mut RunRecord,
    ) -> Option<Destination> {
        if !self.inspection.reads_memory() && self.inspection.refused.is_empty() {
            return Some(Destination::Unknown);
        }
        let [_, place, len, ..] = notice.arguments;
        let len = usize::try_from(len as i32).ok()?;
        // the kernel refuses it
        if len > size_of::<libc::sockaddr_storage>() {
            return None;
        }
        let len = len.min(address::UNIX_LEN);
        let mut bytes = [0; address::UNIX_LEN];
        self.inspected(notice, notice.read_memory(place, &mut bytes[..len]), record)?;
        if let Some(name) = address::unix_name(&bytes[..len]) {
            record.unix_sockets.connect(notice.thread, name);
        }
        // of all other families only the request to disconnect concerns us
        let family = i32::from(u16::from_ne_bytes([bytes[0], bytes[1]]));
        match address::parse(&bytes[..len])? {
            AddressKind::Inet(wanted) => Some(Destination::Address(wanted)),
            AddressKind::Other if disconnects && family == libc::AF_UNSPEC => {
                Some(Destination::Disconnect)
            }
            // hosts and containers speak HTTP over them too
            AddressKind::Other if matches!(family, libc::AF_VSOCK | libc::AF_TIPC) => {
                record.unwatched(Unwatched::OtherProtocol);
                None
            }
            // another thread may change the address before the kernel reads it
            AddressKind::Other if family != libc::AF_UNSPEC => Some(Destination::Foreign),
            AddressKind::Other => None,
        }
    }

    /// The value that was read of the caller. Where that failed, counts a connection that is not
    /// watched, unless the caller made a mistake that the kernel will report, or has ended.
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

/// Whether a network namespace is the one that our own sockets are in.
pub(super) fn is_our_network(inode: u64) -> bool {
    network_namespace(std::process::id()) == Some(inode)
}
