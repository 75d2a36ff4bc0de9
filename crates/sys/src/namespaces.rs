//! Namespaces (namespaces(7)): making them, moving the calling thread into them, and starting
//! commands in them.

mod entry;

pub use entry::NamespaceHandles;

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, OFlags, open};
use rustix::process::{getegid, geteuid};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};
use std::fs;
use std::io;
use std::marker::PhantomData;
use std::os::unix::fs::MetadataExt;

/// The kind of a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamespaceKind {
    /// Mount points.
    Mount,
    /// Devices, addresses, routes and sockets.
    Network,
    /// Process ids.
    Process,
    /// Users, groups and capabilities.
    User,
}

/// Makes a user namespace with all capabilities until the next exec; [`map_ids`] makes the user the
/// same as outside.
///
/// # Errors
/// Those of unshare(2).
pub fn new_user() -> io::Result<()> {
    unshare(UnshareFlags::NEWUSER)
}

/// Maps user and group to themselves. The ids are those from before [`new_user`].
///
/// # Errors
/// /proc cannot be written to.
pub fn map_ids(user: u32, group: u32) -> io::Result<()> {
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
}

/// The effective user and group.
pub fn ids() -> (u32, u32) {
    (geteuid().as_raw(), getegid().as_raw())
}

/// Moves the calling thread into a new network namespace, and returns its handle.
///
/// # Errors
/// Those of unshare(2).
pub fn new_network() -> io::Result<OwnedFd> {
    unshare(UnshareFlags::NEWNET)?;
    handle(NamespaceKind::Network)
}

/// Makes the next child the first process of a new process namespace.
///
/// # Errors
/// Those of unshare(2).
pub fn new_processes_for_children() -> io::Result<()> {
    unshare(UnshareFlags::NEWPID)
}

/// Moves the calling thread into a new mount namespace; later mounts in it are not visible outside.
///
/// # Errors
/// Those of unshare(2) and mount(2).
pub fn new_mounts() -> io::Result<()> {
    unshare(UnshareFlags::NEWNS)?;
    let flags = rustix::mount::MountPropagationFlags::DOWNSTREAM
        | rustix::mount::MountPropagationFlags::REC;
    Ok(rustix::mount::mount_change("/", flags)?)
}

/// A handle to one of the calling thread's namespaces.
///
/// # Errors
/// /proc cannot be read.
pub fn handle(namespace: NamespaceKind) -> io::Result<OwnedFd> {
    let name = match namespace {
        NamespaceKind::Mount => "mnt",
        NamespaceKind::Network => "net",
        NamespaceKind::Process => "pid",
        NamespaceKind::User => "user",
    };
    let path = format!("/proc/thread-self/ns/{name}");
    Ok(open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)
}

/// Moves the calling thread into a network namespace.
///
/// # Errors
/// Those of setns(2).
pub fn enter_network(handle: &OwnedFd) -> io::Result<()> {
    Ok(move_into_link_name_space(
        handle.as_fd(),
        Some(LinkNameSpaceType::Network),
    )?)
}

/// The inode of the calling thread's network namespace; `None` where /proc does not show it.
pub fn network_of_thread() -> Option<u64> {
    let namespace = fs::metadata("/proc/thread-self/ns/net").ok()?;
    Some(namespace.ino())
}

/// The calling thread is in the network namespace of a process until this is dropped. Sockets that
/// it opens belong there.
pub struct NetworkVisit {
    before: OwnedFd,
    /// Another thread has not moved.
    _thread: PhantomData<*const ()>,
}

impl NetworkVisit {
    /// Moves the calling thread; `None` if it is there already.
    ///
    /// # Errors
    /// The process is gone or cannot be inspected; those of setns(2), which needs CAP_SYS_ADMIN.
    pub fn of_process(process: u32) -> io::Result<Option<NetworkVisit>> {
        let path = format!("/proc/{process}/ns/net");
        if Some(fs::metadata(&path)?.ino()) == network_of_thread() {
            return Ok(None);
        }
        let there = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let before = handle(NamespaceKind::Network)?;
        enter_network(&there)?;
        Ok(Some(NetworkVisit {
            before,
            _thread: PhantomData,
        }))
    }
}

impl Drop for NetworkVisit {
    fn drop(&mut self) {
        // what permitted to leave permits to return
        let _ = enter_network(&self.before);
    }
}

fn unshare(flags: UnshareFlags) -> io::Result<()> {
    // SAFETY: only FILES can take descriptors away from other threads, and no caller here passes
    // it.
    Ok(unsafe { unshare_unsafe(flags) }?)
}
