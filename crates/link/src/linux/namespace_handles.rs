//! Putting a command on a side of a link.
//!
//! Between fork and exec a child walks through the doors. A process namespace is entered by one's children only, so it forks
//! once more: the first child stays as a proxy that waits, passes signals on, and ends as the command ended.
#![allow(unsafe_code, reason = "pre_exec, fork and signals have no safe form")]

use rustix::fd::{AsFd, OwnedFd};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

/// Doors to a link's namespaces.
#[derive(Debug)]
pub(super) struct NamespaceHandles {
    pub(super) networks: [OwnedFd; 2],
    pub(super) user: Option<OwnedFd>,
    pub(super) mounts: Option<OwnedFd>,
    pub(super) processes: Option<OwnedFd>,
}

/// The command that a proxy waits for.
static COMMAND: AtomicI32 = AtomicI32::new(0);
/// Signals that a proxy passes on when somebody sent them to it. (From a terminal they reach the command as well.)
const PASSED_ON: [libc::c_int; 6] = [
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
];

/// Makes `command` start behind `doors`, in the network of this index.
pub(super) fn through(command: &mut Command, doors: Arc<NamespaceHandles>, network: usize) {
    let go = move || go(&doors, network);
    // SAFETY: `go` makes system calls on memory that is there already: no allocation, no locks.
    unsafe { command.pre_exec(go) };
}

/// Runs between fork and exec: only what is async-signal-safe is allowed.
fn go(doors: &NamespaceHandles, network: usize) -> io::Result<()> {
    let mut folder = [0; libc::PATH_MAX as usize];
    // SAFETY: the buffer's length is given.
    let named = unsafe { !libc::getcwd(folder.as_mut_ptr(), folder.len()).is_null() };
    let enter = |door: &OwnedFd, kind| move_into_link_name_space(door.as_fd(), Some(kind));
    if let Some(user) = &doors.user {
        enter(user, LinkNameSpaceType::User)?;
    }
    enter(&doors.networks[network], LinkNameSpaceType::Network)?;
    if let Some(mounts) = &doors.mounts {
        enter(mounts, LinkNameSpaceType::Mount)?;
        // that also moved us to the root
        // SAFETY: getcwd ended the path with a zero.
        if named && unsafe { libc::chdir(folder.as_ptr()) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    if let Some(processes) = &doors.processes {
        enter(processes, LinkNameSpaceType::ProcessID)?;
    }
    fork_behind_proxy(doors.processes.is_none())
}

/// Returns in the command-to-be only.
fn fork_behind_proxy(ends_with_owner: bool) -> io::Result<()> {
    // SAFETY: signal sets of zeroes are valid storage for sigfillset and pthread_sigmask, whose pointers live through the calls;
    // fork(2) of a process with a single thread (the child of a fork has one).
    unsafe {
        let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        match libc::fork() {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                // the proxy gone, the command goes: a caller that kills its child means the command
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
                Ok(())
            }
            command => {
                if ends_with_owner {
                    // no process namespace that would take the command along
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
unsafe fn stand_in(command: libc::pid_t, before: &libc::sigset_t) -> ! {
    // SAFETY: plain system calls; the handler is async-signal-safe, and everything pointed at lives through the calls.
    unsafe {
        // no end of a pipe may stay open on behalf of a process that reads and writes nothing
        libc::syscall(libc::SYS_close_range, 0u32, u32::MAX, 0u32);
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = pass_on as *const () as libc::sighandler_t;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        for signal in PASSED_ON {
            libc::sigaction(signal, &raw const action, std::ptr::null_mut());
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, before, std::ptr::null_mut());
        let mut status = 0;
        while libc::waitpid(command, &raw mut status, 0) < 0 {
            if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                libc::_exit(125);
            }
        }
        if libc::WIFSIGNALED(status) {
            let signal = libc::WTERMSIG(status);
            // one core dump, the command's, is enough
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
