//! Sockets that the supervisor makes for the program, where the program's own cannot be copied
//! (`pidfd_getfd` is refused).
//!
//! The program gets a descriptor of such a socket, and the supervisor keeps another. A kept
//! descriptor must not outlive the program's: it would delay a FIN or hold a port. So the
//! supervisor drops it when the program connects, binds or listens, and when no process has the
//! socket any more. A socket without a copy is identified by its cookie.

use super::call_context::CallContext;
use super::notifications::is_our_network;
use intact_sys::process::{descendants, each_socket, network_namespace, socket_inode};
use intact_sys::seccomp::{Notification, NotificationResponse};
use intact_sys::socket;
use socket2::{Domain, Protocol, Socket, Type};
use std::collections::{HashMap, HashSet, VecDeque};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

/// Sockets that are remembered; the oldest is forgotten first.
const MAX: usize = 1 << 16;
/// Copies that are kept at a time.
const MAX_COPIES: usize = 256;
/// How often copies are dropped whose program has closed its own.
const SWEEP: Duration = Duration::from_secs(1);

/// A socket of the program.
pub(super) struct ProgramSocket {
    pub(super) cookie: u64,
    /// Such as `IPPROTO_TCP`.
    pub(super) protocol: i32,
    /// Absent where only the kernel has the socket.
    pub(super) copy: Option<OwnedFd>,
}

impl ProgramSocket {
    /// The socket that a copy is of.
    pub(super) fn of(copy: OwnedFd) -> io::Result<ProgramSocket> {
        Ok(ProgramSocket {
            cookie: socket::cookie(&copy)?,
            protocol: socket::protocol(&copy).unwrap_or(0),
            copy: Some(copy),
        })
    }
}

/// The sockets that we made.
#[derive(Default)]
pub(super) struct MadeSockets {
    /// By cookie.
    sockets: HashMap<u64, ProgramSocket>,
    cookies: HashMap<u32, u64>,
    /// Inodes and cookies, oldest first.
    order: VecDeque<(u32, u64)>,
    copies: usize,
    /// When copies are looked after next.
    due: Option<Instant>,
}

impl MadeSockets {
    /// When [`Self::sweep`] is due.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// The socket that a thread has under a descriptor; [`io::ErrorKind::NotFound`] if the
    /// supervisor did not make it.
    pub(super) fn find(&self, thread: u32, number: i32) -> io::Result<ProgramSocket> {
        let cookie = self.cookies.get(&socket_inode(thread, number)?);
        let made = cookie.and_then(|cookie| self.sockets.get(cookie));
        let made = made.ok_or(io::ErrorKind::NotFound)?;
        Ok(ProgramSocket {
            copy: made.copy.as_ref().and_then(|copy| copy.try_clone().ok()),
            ..*made
        })
    }

    fn keep(&mut self, made: ProgramSocket, inode: u32) {
        if self.copies >= MAX_COPIES {
            self.drop_closed();
        }
        // the program holds many open without connecting them: the oldest lose their copies
        for (_, cookie) in &self.order {
            if self.copies < MAX_COPIES {
                break;
            }
            let oldest = self.sockets.get_mut(cookie);
            let dropped = oldest.and_then(|oldest| oldest.copy.take());
            self.copies -= usize::from(dropped.is_some());
        }
        if self.order.len() >= MAX
            && let Some((inode, cookie)) = self.order.pop_front()
        {
            self.release(cookie);
            self.sockets.remove(&cookie);
            self.cookies.remove(&inode);
        }
        self.copies += 1;
        self.order.push_back((inode, made.cookie));
        self.cookies.insert(inode, made.cookie);
        self.sockets.insert(made.cookie, made);
        self.due.get_or_insert(Instant::now() + SWEEP);
    }

    /// Drops the copy of a socket.
    pub(super) fn release(&mut self, cookie: u64) {
        let made = self.sockets.get_mut(&cookie);
        if made.and_then(|made| made.copy.take()).is_some() {
            self.copies -= 1;
        }
    }

    /// Drops copies that no process has, once that is due.
    pub(super) fn sweep(&mut self) {
        let now = Instant::now();
        if self.due.is_none_or(|due| now < due) {
            return;
        }
        self.drop_closed();
        self.due = (self.copies > 0).then(|| now + SWEEP);
    }

    fn drop_closed(&mut self) {
        let open = program_sockets();
        for (inode, cookie) in &self.order {
            if !open.contains(inode)
                && let Some(made) = self.sockets.get_mut(cookie)
            {
                self.copies -= usize::from(made.copy.take().is_some());
            }
        }
    }
}

/// Responds to `socket`: makes TCP and UDP sockets for the program. `None`: the response is sent.
pub(super) fn make(notice: &Notification, cx: &mut CallContext) -> Option<NotificationResponse> {
    const UNTOUCHED: Option<NotificationResponse> = Some(NotificationResponse::Continue);
    let [domain, kind, protocol, ..] = notice.arguments.map(|argument| argument as i32);
    let is_known = matches!(kind & 0xf, libc::SOCK_STREAM | libc::SOCK_DGRAM)
        && [0, libc::IPPROTO_TCP, libc::IPPROTO_UDP, libc::IPPROTO_MPTCP].contains(&protocol);
    // the socket would be in our network
    if !is_known || !network_namespace(notice.thread).is_some_and(is_our_network) {
        return UNTOUCHED;
    }
    let made = cx.notifications.make_for(notice.thread, None, || {
        Socket::new_raw(
            Domain::from(domain),
            Type::from(kind | libc::SOCK_CLOEXEC),
            (protocol != 0).then(|| Protocol::from(protocol)),
        )
    });
    // the kernel has the right error for the program; a socket for another owner is not ours to
    // make
    let Some(Ok(made)) = made.map(|made| made.map(OwnedFd::from)) else {
        return UNTOUCHED;
    };
    let (Ok(made), Ok(inode)) = (made.try_clone().and_then(ProgramSocket::of), inode(made)) else {
        return UNTOUCHED;
    };
    let closes_on_exec = kind & libc::SOCK_CLOEXEC != 0;
    let ours = made.copy.as_ref()?.as_fd();
    let listener = &cx.notifications.listener;
    match listener.give_descriptor(notice.id, ours, closes_on_exec) {
        Ok(()) => {
            cx.notifications.made()?.keep(made, inode);
            None
        }
        Err(error) if error.raw_os_error() == Some(libc::EMFILE) => {
            Some(NotificationResponse::Error(libc::EMFILE))
        }
        Err(_) => UNTOUCHED,
    }
}

/// Responds to `bind` and `listen`: the program's port must be free once the program closes its
/// socket.
pub(super) fn release(notice: &Notification, cx: &mut CallContext) -> NotificationResponse {
    if let Ok(bound) = cx.notifications.socket(notice) {
        cx.notifications.release(bound.cookie);
    }
    NotificationResponse::Continue
}

/// The inodes of the sockets that our descendants hold.
pub(super) fn program_sockets() -> HashSet<u32> {
    let mut inodes = HashSet::new();
    for process in descendants(vec![std::process::id()]).skip(1) {
        // one that has ended meanwhile, or that must not be inspected
        let _ = each_socket(process, |inode| {
            inodes.insert(inode);
        });
    }
    inodes
}

fn inode(socket: OwnedFd) -> io::Result<u32> {
    let inode = File::from(socket).metadata()?.ino();
    u32::try_from(inode).map_err(|_| io::ErrorKind::InvalidData.into())
}
