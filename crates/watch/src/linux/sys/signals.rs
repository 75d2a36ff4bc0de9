//! The signals that reach us while the program runs, as a descriptor to wait on. Nothing is handled asynchronously.
#![allow(unsafe_code, reason = "sigprocmask, signalfd, kill")]

use super::checked;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// What is taken: what ends a program, what programs define, and the end of a child.
const TAKEN: [libc::c_int; 7] = [
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGCHLD,
];

/// A signal that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Signal {
    /// Its number.
    pub(crate) number: i32,
    /// The terminal sent it (Ctrl-C), and so to the program as well.
    pub(crate) by_terminal: bool,
}

/// Signals are blocked for this thread and those that it starts, and read here instead; undone on drop.
pub(crate) struct Signals {
    descriptor: OwnedFd,
    before: libc::sigset_t,
}

impl Signals {
    pub(crate) fn take_over() -> io::Result<Signals> {
        // SAFETY: the sets are ours and initialised by sigemptyset before use; the kernel has just made the descriptor.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            let mut before: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            for number in TAKEN {
                libc::sigaddset(&raw mut set, number);
            }
            let refused = libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, &raw mut before);
            if refused != 0 {
                return Err(io::Error::from_raw_os_error(refused));
            }
            let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
            let descriptor = checked(libc::signalfd(-1, &raw const set, flags))?;
            Ok(Signals {
                descriptor: OwnedFd::from_raw_fd(descriptor as RawFd),
                before,
            })
        }
    }

    /// Which signals were blocked before: the program starts with those.
    pub(crate) fn before(&self) -> libc::sigset_t {
        self.before
    }

    /// The next signal, if one came.
    pub(crate) fn next(&self) -> Option<Signal> {
        // SAFETY: the kernel writes one such structure, or nothing.
        let (count, info) = unsafe {
            let mut info: libc::signalfd_siginfo = std::mem::zeroed();
            let count = libc::read(
                self.descriptor.as_raw_fd(),
                (&raw mut info).cast(),
                size_of::<libc::signalfd_siginfo>(),
            );
            (count, info)
        };
        (count > 0).then_some(Signal {
            number: info.ssi_signo as i32,
            by_terminal: info.ssi_code == libc::SI_KERNEL,
        })
    }
}

impl AsRawFd for Signals {
    fn as_raw_fd(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // what is still pending was meant for the program, which has ended
        while self.next().is_some() {}
        // SAFETY: restores the mask that was read when we began.
        unsafe {
            libc::pthread_sigmask(
                libc::SIG_SETMASK,
                &raw const self.before,
                std::ptr::null_mut(),
            );
        }
    }
}

/// Passes a signal on.
pub(crate) fn send(process: u32, number: i32) {
    // SAFETY: takes plain numbers.
    let _ = unsafe { libc::kill(process as i32, number) };
}

/// Runs a function with all signals blocked, as they are for threads that it starts: while a program is watched, signals are
/// for the thread that watches.
pub fn without_signals<T>(run: impl FnOnce() -> T) -> T {
    // SAFETY: both sets are ours; sigfillset initialises the first, the call fills the second.
    let before = unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        before
    };
    let result = run();
    // SAFETY: restores the mask that was read above.
    unsafe {
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
    }
    result
}
