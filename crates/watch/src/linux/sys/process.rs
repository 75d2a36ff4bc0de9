//! Other processes: their memory, their descriptors, their names.
#![allow(
    unsafe_code,
    reason = "process_vm_readv, process_vm_writev, pidfd_open, pidfd_getfd, setrlimit"
)]

use super::{checked, socket};
use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Lets this process have as many descriptors as it may; how many that are. Programs that run already keep their limit.
pub(crate) fn raise_descriptor_limit() -> u64 {
    // SAFETY: a structure of zeroes is valid; the kernel fills and reads it.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
        let before = limit.rlim_cur;
        limit.rlim_cur = limit.rlim_max;
        if libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) == 0 {
            limit.rlim_max
        } else {
            before
        }
    }
}

/// Copies bytes out of a process. Fewer than asked for is an error.
pub(crate) fn read_memory(thread: u32, address: u64, into: &mut [u8]) -> io::Result<()> {
    let ours = libc::iovec {
        iov_base: into.as_mut_ptr().cast(),
        iov_len: into.len(),
    };
    let theirs = libc::iovec {
        iov_base: address as *mut libc::c_void,
        iov_len: into.len(),
    };
    // SAFETY: the local part is the slice, which the kernel fills; the remote address is checked by the kernel.
    let count = checked(unsafe {
        libc::process_vm_readv(thread as i32, &raw const ours, 1, &raw const theirs, 1, 0) as i64
    })?;
    whole(count, into.len())
}

/// Tries to copy a byte out of a child of ours that has not run another program.
///
/// # Errors
/// This system refuses it, whatever the process.
pub(crate) fn try_read_memory(child: u32) -> io::Result<()> {
    static BYTE: u8 = 1;
    read_memory(child, (&raw const BYTE) as u64, &mut [0])
}

/// Tries to copy a descriptor of a child of ours.
///
/// # Errors
/// This system refuses it, whatever the process.
pub(crate) fn try_copy_descriptor(child: u32) -> io::Result<()> {
    match open(child).and_then(|handle| copy(handle.as_raw_fd(), libc::STDIN_FILENO)) {
        // to learn that the child has no such descriptor takes the same permission
        Err(error) if error.raw_os_error() == Some(libc::EBADF) => Ok(()),
        copied => copied.map(drop),
    }
}

/// The size of a page of memory in bytes.
pub(crate) fn page_size() -> u64 {
    // SAFETY: takes and gives plain numbers.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as u64 }
}

/// Copies bytes into a process that waits for an answer of ours.
pub(crate) fn write_memory(thread: u32, address: u64, from: &[u8]) -> io::Result<()> {
    let ours = libc::iovec {
        iov_base: from.as_ptr().cast_mut().cast(),
        iov_len: from.len(),
    };
    let theirs = libc::iovec {
        iov_base: address as *mut libc::c_void,
        iov_len: from.len(),
    };
    // SAFETY: the local part is the slice, which the kernel only reads; the remote address is checked by the kernel.
    let count = checked(unsafe {
        libc::process_vm_writev(thread as i32, &raw const ours, 1, &raw const theirs, 1, 0) as i64
    })?;
    whole(count, from.len())
}

fn whole(count: i64, wanted: usize) -> io::Result<()> {
    if usize::try_from(count) == Ok(wanted) {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(libc::EFAULT))
    }
}

/// The processes that have asked: a handle to each, and who they are.
#[derive(Default)]
pub(crate) struct Processes {
    known: HashMap<u32, Known>,
}

struct Known {
    handle: Arc<OwnedFd>,
    identity: Option<(Instant, Identity)>,
}

/// Where a socket is found in its process, as long as that keeps it there.
pub(crate) struct SocketLocation {
    handle: Arc<OwnedFd>,
    number: i32,
    cookie: u64,
}

impl SocketLocation {
    /// A copy of the socket; `None` once it is not there any more.
    pub(crate) fn copy(&self) -> Option<OwnedFd> {
        let copied = copy(self.handle.as_raw_fd(), self.number).ok()?;
        let is_it = socket::cookie(&copied).is_ok_and(|cookie| cookie == self.cookie);
        is_it.then_some(copied)
    }
}

/// Who a process is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// The process id, not that of the thread.
    pub(crate) process: u32,
    /// The command's name.
    pub(crate) command: Arc<str>,
}

/// Handles that are kept; beyond that all are let go.
const MAX_KNOWN: usize = 512;
/// How long a name is believed: an `exec` changes it.
const BELIEVED: Duration = Duration::from_millis(100);

impl Processes {
    /// A copy of a descriptor of the thread.
    pub(crate) fn copy_descriptor(&mut self, thread: u32, number: i32) -> io::Result<OwnedFd> {
        if let Some(known) = self.known.get(&thread) {
            match copy(known.handle.as_raw_fd(), number) {
                // that process has gone, and its number was given to another
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                copied => return copied,
            }
        }
        let handle = open(thread)?;
        let copied = copy(handle.as_raw_fd(), number);
        if self.known.len() >= MAX_KNOWN {
            self.known.clear();
        }
        self.known.insert(
            thread,
            Known {
                handle: Arc::new(handle),
                identity: None,
            },
        );
        copied
    }

    /// Where to find a socket that was copied.
    pub(crate) fn place(&self, thread: u32, number: i32, cookie: u64) -> Option<SocketLocation> {
        let handle = self.known.get(&thread)?.handle.clone();
        Some(SocketLocation {
            handle,
            number,
            cookie,
        })
    }

    /// Who made a call.
    pub(crate) fn identify(&mut self, thread: u32) -> Option<Identity> {
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
        let identity = Identity { process, command };
        if let Some(known) = known {
            known.identity = Some((Instant::now(), identity.clone()));
        }
        Some(identity)
    }
}

/// Whether a signal waits for a thread that does not block it.
pub(crate) fn has_signal(thread: u32) -> bool {
    let Ok(status) = fs::read_to_string(format!("/proc/{thread}/status")) else {
        return false;
    };
    let set = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|set| u64::from_str_radix(set.trim(), 16).ok())
            .unwrap_or(0)
    };
    (set("SigPnd:") | set("ShdPnd:")) & !set("SigBlk:") != 0
}

/// The numbers of all processes.
pub(crate) fn all() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// The processes that a process has started and that are there.
pub(crate) fn children(process: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{process}/task"));
    let lists = tasks.into_iter().flatten().flatten();
    lists
        .filter_map(|task| fs::read_to_string(task.path().join("children")).ok())
        .flat_map(|list| {
            let numbers: Vec<u32> = list
                .split_whitespace()
                .filter_map(|number| number.parse().ok())
                .collect();
            numbers
        })
        .collect()
}

/// These processes, and everything that they have started and that is there.
pub(crate) fn descendants(mut processes: Vec<u32>) -> impl Iterator<Item = u32> {
    let mut next = 0;
    while let Some(&process) = processes.get(next) {
        for child in children(process) {
            if !processes.contains(&child) {
                processes.push(child);
            }
        }
        next += 1;
    }
    processes.into_iter()
}

/// Whether a process is there and has not ended.
pub(crate) fn is_alive(process: u32) -> bool {
    // the state follows the name, which may hold anything
    fs::read_to_string(format!("/proc/{process}/stat")).is_ok_and(|stat| {
        let state = stat
            .rsplit_once(") ")
            .and_then(|(_, rest)| rest.chars().next());
        !matches!(state, Some('Z' | 'X'))
    })
}

/// The command's name of a process.
pub(crate) fn command(process: u32) -> Option<Arc<str>> {
    let name = fs::read_to_string(format!("/proc/{process}/comm")).ok()?;
    Some(name.trim_end().into())
}

/// The network namespace of a process, by its inode; `None` where we may not look.
pub(crate) fn network_namespace(process: u32) -> Option<u64> {
    let file = fs::metadata(format!("/proc/{process}/ns/net")).ok()?;
    Some(file.ino())
}

/// Hands on the inodes of a process's sockets; an error where we may not look.
pub(crate) fn each_socket(process: u32, mut visit: impl FnMut(u32)) -> io::Result<()> {
    for entry in fs::read_dir(format!("/proc/{process}/fd"))?.flatten() {
        let inode = fs::read_link(entry.path()).ok().and_then(|target| {
            let inode = target
                .to_str()?
                .strip_prefix("socket:[")?
                .strip_suffix(']')?;
            inode.parse().ok()
        });
        if let Some(inode) = inode {
            visit(inode);
        }
    }
    Ok(())
}

fn process_of(thread: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    status
        .lines()
        .find_map(|line| line.strip_prefix("Tgid:"))
        .and_then(|number| number.trim().parse().ok())
}

fn open(thread: u32) -> io::Result<OwnedFd> {
    let open = |id: u32, flags: libc::c_int| {
        // SAFETY: takes plain numbers.
        checked(unsafe { libc::syscall(libc::SYS_pidfd_open, id, flags) })
    };
    // PIDFD_THREAD, Linux 6.9; before it only whole processes have handles
    let number = match open(thread, libc::O_EXCL) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            let process = process_of(thread).ok_or(io::ErrorKind::NotFound)?;
            open(process, 0)?
        }
        opened => opened?,
    };
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(number as RawFd) })
}

fn copy(handle: RawFd, number: i32) -> io::Result<OwnedFd> {
    // SAFETY: takes plain numbers.
    let copied = checked(unsafe { libc::syscall(libc::SYS_pidfd_getfd, handle, number, 0) })?;
    // SAFETY: the kernel has just made this descriptor for us (close-on-exec).
    Ok(unsafe { OwnedFd::from_raw_fd(copied as RawFd) })
}
