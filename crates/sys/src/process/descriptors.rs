//! The descriptors of other processes: copies (pidfd_getfd(2)), and which sockets they are
//! (/proc/PID/fd).

use super::{command, inode_of, process_of};
use crate::socket;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Handles (pidfd_open(2)) and identities of processes, cached.
#[derive(Default)]
pub struct Processes {
    known: HashMap<u32, Known>,
}

struct Known {
    handle: Arc<OwnedFd>,
    identity: Option<(Instant, ProcessIdentity)>,
}

/// The descriptor of a socket in another process; valid as long as the process keeps it open.
#[derive(Clone)]
pub struct SocketLocation {
    /// Of the thread that made it.
    handle: Arc<OwnedFd>,
    /// The process of that thread, where it was identified.
    process: Option<u32>,
    number: i32,
    cookie: u64,
}

impl SocketLocation {
    /// A copy of the socket; `None` once the process has closed it.
    pub fn copy(&self) -> Option<OwnedFd> {
        let copied = match copy(&self.handle, self.number) {
            // the thread has ended, and its process may have the socket still
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {
                copy(&open(self.process?).ok()?, self.number).ok()?
            }
            copied => copied.ok()?,
        };
        let is_it = socket::cookie(&copied).is_ok_and(|cookie| cookie == self.cookie);
        is_it.then_some(copied)
    }
}

/// The identity of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessIdentity {
    /// The process id, not that of the thread.
    pub process: u32,
    /// The command's name.
    pub command: Arc<str>,
}

/// Handles that are kept; beyond this number all are closed.
const MAX_KNOWN: usize = 512;
/// How long an identity is cached: `exec` changes the name.
const BELIEVED: Duration = Duration::from_millis(100);

impl Processes {
    /// A copy of a descriptor of the thread.
    ///
    /// # Errors
    /// Those of pidfd_open(2) and pidfd_getfd(2).
    pub fn copy_descriptor(&mut self, thread: u32, number: i32) -> io::Result<OwnedFd> {
        if let Some(known) = self.known.get(&thread) {
            match copy(&known.handle, number) {
                // that process has ended, and another has its number
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                copied => return copied,
            }
        }
        let handle = Arc::new(open(thread)?);
        let copied = copy(&handle, number);
        if self.known.len() >= MAX_KNOWN {
            self.known.clear();
        }
        let identity = None;
        self.known.insert(thread, Known { handle, identity });
        copied
    }

    /// The location of a socket that was copied; `None` if the thread has no cached handle.
    pub fn place(&self, thread: u32, number: i32, cookie: u64) -> Option<SocketLocation> {
        let known = self.known.get(&thread)?;
        let identity = known.identity.as_ref();
        Some(SocketLocation {
            handle: known.handle.clone(),
            process: identity.map(|(_, identity)| identity.process),
            number,
            cookie,
        })
    }

    /// The process of a thread; `None` if the thread has ended.
    pub fn identify(&mut self, thread: u32) -> Option<ProcessIdentity> {
        let known = self.known.get_mut(&thread);
        if let Some(Known {
            identity: Some((since, identity)),
            ..
        }) = &known
            && since.elapsed() < BELIEVED
        {
            return Some(identity.clone());
        }
        let process = process_of(thread)?;
        let command = command(process)?;
        let identity = ProcessIdentity { process, command };
        if let Some(known) = known {
            known.identity = Some((Instant::now(), identity.clone()));
        }
        Some(identity)
    }
}

/// Tries to copy a descriptor of a child of ours.
///
/// # Errors
/// This system refuses it for every process.
pub fn try_copy_descriptor(child: u32) -> io::Result<()> {
    match open(child).and_then(|handle| copy(&handle, libc::STDIN_FILENO)) {
        // the kernel checks the permission before it looks for the descriptor
        Err(error) if error.raw_os_error() == Some(libc::EBADF) => Ok(()),
        copied => copied.map(drop),
    }
}

/// The inode of the socket that a thread has under a descriptor.
///
/// # Errors
/// EBADF: there is no such descriptor, or no such thread; ENOTSOCK; EACCES: we may not inspect the
/// process.
pub fn socket_inode(thread: u32, number: i32) -> io::Result<u32> {
    let read = fs::read_link(format!("/proc/{thread}/fd/{number}"));
    let target = read.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => io::Error::from_raw_os_error(libc::EBADF),
        _ => error,
    })?;
    inode_of(&target).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOTSOCK))
}

/// Tries to see a descriptor of a child of ours.
///
/// # Errors
/// This system refuses it for every process.
pub fn try_socket_inode(child: u32) -> io::Result<()> {
    match socket_inode(child, libc::STDIN_FILENO) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EBADF | libc::ENOTSOCK)) => Ok(()),
        seen => seen.map(drop),
    }
}

/// What a program gets from this process at its start, besides its arguments.
#[derive(Default)]
pub struct Inherited {
    /// The inodes of sockets.
    pub sockets: HashSet<u32>,
    /// An io_uring ring is among the descriptors.
    pub has_ring: bool,
    /// A Unix socket is among them, over which other processes may send descriptors.
    pub has_unix_socket: bool,
}

impl Inherited {
    /// The descriptors of this process from `first` on that a program inherits.
    pub fn from_descriptor(first: RawFd) -> Inherited {
        let mut inherited = Inherited::default();
        for entry in fs::read_dir("/proc/self/fd")
            .into_iter()
            .flatten()
            .flatten()
        {
            let name = entry.file_name();
            let number: Option<RawFd> = name.to_str().and_then(|name| name.parse().ok());
            if let Some(number) = number
                && number >= first
                && is_inherited(number)
                && let Ok(target) = fs::read_link(entry.path())
            {
                inherited.sockets.extend(inode_of(&target));
                inherited.has_unix_socket |= is_unix_socket(number);
                inherited.has_ring |= target.as_os_str() == "anon_inode:[io_uring]";
            }
        }
        inherited
    }
}

fn is_inherited(number: RawFd) -> bool {
    // SAFETY: takes plain numbers; a descriptor that is closed meanwhile is an error.
    let flags = unsafe { libc::fcntl(number, libc::F_GETFD) };
    flags >= 0 && flags & libc::FD_CLOEXEC == 0
}

fn is_unix_socket(number: RawFd) -> bool {
    // SAFETY: the descriptor was open just now, and is only asked for an option.
    let socket = unsafe { BorrowedFd::borrow_raw(number) };
    socket::is_unix(&socket)
}

/// The inode of the socket that a pidfd_getfd(2) of a thread copies; `None` if it is no socket, or
/// if the call will fail.
pub fn taken_socket(thread: u32, arguments: [u64; 6]) -> Option<u32> {
    let [handle, number, ..] = arguments.map(|argument| argument as RawFd);
    let about = fs::read_to_string(format!("/proc/{thread}/fdinfo/{handle}")).ok()?;
    let process = about.lines().find_map(|line| line.strip_prefix("Pid:"))?;
    socket_inode(process.trim().parse().ok()?, number).ok()
}

fn open(thread: u32) -> io::Result<OwnedFd> {
    let open = |id: u32, flags| pidfd_open(Pid::from_raw(id as i32).ok_or(Errno::INVAL)?, flags);
    // PIDFD_THREAD needs Linux 6.9; before it only whole processes have handles
    match open(thread, PidfdFlags::from_bits_retain(libc::O_EXCL as u32)) {
        Err(Errno::INVAL) => {
            let process = process_of(thread).ok_or(io::ErrorKind::NotFound)?;
            Ok(open(process, PidfdFlags::empty())?)
        }
        opened => Ok(opened?),
    }
}

fn copy(handle: &OwnedFd, number: i32) -> io::Result<OwnedFd> {
    if number < 0 {
        return Err(Errno::BADF.into());
    }
    Ok(pidfd_getfd(handle, number, PidfdGetfdFlags::empty())?)
}
