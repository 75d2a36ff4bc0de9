//! Making namespaces, and being oneself in them.
#![allow(unsafe_code, reason = "unshare and fork have no safe form")]

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Pid, getegid, geteuid};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};
use std::fs;
use std::io;

/// A new user namespace in which the user is the same as outside, with all capabilities until the next exec.
pub(super) fn new_user() -> io::Result<()> {
    unshare(UnshareFlags::NEWUSER)
}

/// Maps user and group to themselves. The ids are those from before [`new_user`].
pub(super) fn map_ids(user: u32, group: u32) -> io::Result<()> {
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
}

/// The effective user and group.
pub(super) fn ids() -> (u32, u32) {
    (geteuid().as_raw(), getegid().as_raw())
}

/// Moves into a new network namespace; its door.
pub(super) fn new_network() -> io::Result<OwnedFd> {
    unshare(UnshareFlags::NEWNET)?;
    door("net")
}

/// The next child is the first process of a new process namespace.
pub(super) fn new_processes_for_children() -> io::Result<()> {
    unshare(UnshareFlags::NEWPID)
}

/// Moves into a mount namespace of one's own; nothing that is mounted in it shows outside.
pub(super) fn new_mounts() -> io::Result<()> {
    unshare(UnshareFlags::NEWNS)?;
    let flags = rustix::mount::MountPropagationFlags::DOWNSTREAM
        | rustix::mount::MountPropagationFlags::REC;
    Ok(rustix::mount::mount_change("/", flags)?)
}

/// The door to one of the calling thread's namespaces: `net`, `mnt`, `pid`, `user`.
pub(super) fn door(kind: &str) -> io::Result<OwnedFd> {
    let path = format!("/proc/thread-self/ns/{kind}");
    Ok(open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)
}

/// Moves the calling thread into a network namespace.
pub(super) fn enter_network(door: &OwnedFd) -> io::Result<()> {
    enter(door.as_fd(), LinkNameSpaceType::Network)
}

/// Moves the calling thread through a door.
pub(super) fn enter(door: BorrowedFd<'_>, kind: LinkNameSpaceType) -> io::Result<()> {
    Ok(move_into_link_name_space(door, Some(kind))?)
}

fn unshare(flags: UnshareFlags) -> io::Result<()> {
    // SAFETY: only FILES can take descriptors away from other threads, and no caller here passes it.
    Ok(unsafe { unshare_unsafe(flags) }?)
}

/// Which process goes on.
pub(super) enum Forked {
    /// The new one.
    Child,
    /// The old one.
    Parent {
        /// The new one.
        child: Pid,
    },
}

/// Forks. Only for a process of one thread.
pub(super) fn fork() -> io::Result<Forked> {
    // SAFETY: the keeper is a process of its own with a single thread, so the child finds no lock held and may go on as any
    // program does.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Forked::Child),
        child => {
            let child = Pid::from_raw(child).ok_or(io::ErrorKind::InvalidData)?;
            Ok(Forked::Parent { child })
        }
    }
}

/// Whether this process has a single thread.
pub(super) fn is_single_threaded() -> io::Result<bool> {
    Ok(fs::read_dir("/proc/self/task")?.count() == 1)
}
