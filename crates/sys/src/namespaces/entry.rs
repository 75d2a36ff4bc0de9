//! Starts a command in namespaces.
//!
//! Between fork and exec the child enters the namespaces. Only the children of a process that
//! enters a process namespace are in it, so the child forks again. It stays as a proxy that waits,
//! passes signals on, and ends as the command ended.

use crate::signals::SignalMask;
use rustix::fd::{AsFd, OwnedFd};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

/// Handles to the namespaces of a command.
#[derive(Debug)]
pub struct NamespaceHandles {
    /// Network namespaces, of which a command enters one.
    pub networks: [OwnedFd; 2],
    /// A user namespace.
    pub user: Option<OwnedFd>,
    /// A mount namespace.
    pub mounts: Option<OwnedFd>,
    /// A process namespace.
    pub processes: Option<OwnedFd>,
}

/// The command that a proxy waits for.
static COMMAND: AtomicI32 = AtomicI32::new(0);
/// Signals that a proxy passes on if a process sent them. (The terminal sends them to the command
/// as well.)
const PASSED_ON: [libc::c_int; 6] = [
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
];

impl NamespaceHandles {
    /// Makes `command` start in these namespaces, in the network of this index (0 or 1).
    ///
    /// The child is a proxy of the command: it passes signals on and ends as the command does. If
    /// the proxy is killed, the kernel kills the command. Without a process namespace the proxy
    /// also ends with the thread that started it.
    pub fn start_within(self: &Arc<Self>, command: &mut Command, network: usize) {
        let handles = self.clone();
        let enter = move || enter(&handles, network);
        // SAFETY: `enter` makes system calls on memory that exists already: no allocation, no
        // locks.
        unsafe { command.pre_exec(enter) };
    }
}

/// Runs between fork and exec: only what is async-signal-safe is allowed.
fn enter(handles: &NamespaceHandles, network: usize) -> io::Result<()> {
    let mut folder = [0; libc::PATH_MAX as usize];
    // SAFETY: the buffer's length is given.
    let named = unsafe { !libc::getcwd(folder.as_mut_ptr(), folder.len()).is_null() };
    let enter = |handle: &OwnedFd, kind| move_into_link_name_space(handle.as_fd(), Some(kind));
    if let Some(user) = &handles.user {
        enter(user, LinkNameSpaceType::User)?;
    }
    enter(&handles.networks[network], LinkNameSpaceType::Network)?;
    if let Some(mounts) = &handles.mounts {
        enter(mounts, LinkNameSpaceType::Mount)?;
        // entering also changed the working directory to the root
        // SAFETY: getcwd ended the path with a zero.
        if named && unsafe { libc::chdir(folder.as_ptr()) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    if let Some(processes) = &handles.processes {
        enter(processes, LinkNameSpaceType::ProcessID)?;
    }
    fork_behind_proxy(handles.processes.is_none())
}

/// Returns only in the process that becomes the command.
fn fork_behind_proxy(ends_with_owner: bool) -> io::Result<()> {
    let before = SignalMask::all().apply();
    // SAFETY: fork(2) of a process with a single thread (the child of a fork has one); the child
    // makes system calls only.
    unsafe {
        match libc::fork() {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                // a caller that kills its child, the proxy, means the command
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                before.apply();
                Ok(())
            }
            command => {
                if ends_with_owner {
                    // no process namespace ends the command with its first process
                    libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                }
                COMMAND.store(command, Ordering::Relaxed);
                stand_in(command, &before)
            }
        }
    }
}

/// The proxy: waits for the command and ends as it did.
///
/// # Safety
/// Only in a process of one thread that is to become the proxy, after a fork that gave `command`.
unsafe fn stand_in(command: libc::pid_t, before: &SignalMask) -> ! {
    // SAFETY: plain system calls; the handler is async-signal-safe, and everything pointed at lives
    // through the calls.
    unsafe {
        // this process reads and writes nothing, so it must not keep the end of a pipe open
        libc::syscall(libc::SYS_close_range, 0u32, u32::MAX, 0u32);
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = pass_on as *const () as libc::sighandler_t;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        for signal in PASSED_ON {
            libc::sigaction(signal, &raw const action, std::ptr::null_mut());
        }
        before.apply();
        let mut status = 0;
        while libc::waitpid(command, &raw mut status, 0) < 0 {
            if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                libc::_exit(125);
            }
        }
        if libc::WIFSIGNALED(status) {
            let signal = libc::WTERMSIG(status);
            // the command has dumped its core already
            libc::prctl(libc::PR_SET_DUMPABLE, 0);
            libc::signal(signal, libc::SIG_DFL);
            libc::kill(libc::getpid(), signal);
        }
        libc::_exit(libc::WEXITSTATUS(status))
    }
}

/// Passes a signal on, unless the terminal sent it to the whole group.
extern "C" fn pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel hands a valid siginfo_t to handlers that asked for it.
    let from_a_process = unsafe { (*info).si_code } <= 0;
    if from_a_process {
        // SAFETY: kill(2) takes numbers only.
        unsafe { libc::kill(COMMAND.load(Ordering::Relaxed), signal) };
    }
}
