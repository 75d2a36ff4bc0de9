//! The signals that reach this process, as a descriptor to wait on. No handler runs.

use crate::checked;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The signals that are taken: those that end a program, those that programs define, and the end of
/// a child.
const TAKEN: [libc::c_int; 7] = [
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGCHLD,
];

/// A signal that this process received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal {
    /// Its number.
    pub number: i32,
    /// The terminal sent it (Ctrl-C), and so to the foreground program as well.
    pub by_terminal: bool,
}

/// The signals that a thread blocks.
#[derive(Clone, Copy, Debug)]
pub struct SignalMask(libc::sigset_t);

impl SignalMask {
    /// Every signal.
    pub(crate) fn all() -> SignalMask {
        // SAFETY: a set of zeroes is valid storage, which sigfillset initialises.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigfillset(&raw mut set);
            SignalMask(set)
        }
    }

    /// Makes this the mask of the calling thread, and returns the mask before. Async-signal-safe.
    pub(crate) fn apply(&self) -> SignalMask {
        // SAFETY: both sets outlive the call, which reads the first and fills the second.
        unsafe {
            let mut before: libc::sigset_t = std::mem::zeroed();
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, &raw mut before);
            SignalMask(before)
        }
    }
}

/// Has a command start with this mask instead of that of its parent.
pub fn set_mask(command: &mut Command, mask: SignalMask) {
    // SAFETY: runs in the forked child, and makes one system call.
    unsafe {
        command.pre_exec(move || {
            mask.apply();
            Ok(())
        })
    };
}

/// Blocks signals for this thread and for those that it starts, and reads them from a descriptor.
/// Dropping it restores the mask.
#[derive(Debug)]
pub struct Signals {
    descriptor: OwnedFd,
    before: SignalMask,
}

impl Signals {
    /// Blocks the signals that end a program, SIGUSR1, SIGUSR2 and SIGCHLD, and opens the
    /// descriptor.
    ///
    /// # Errors
    /// Those of pthread_sigmask(3) and signalfd(2).
    pub fn take_over() -> io::Result<Signals> {
        // SAFETY: the sets are ours and initialised by sigemptyset before use; the kernel has just
        // made the descriptor.
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
                before: SignalMask(before),
            })
        }
    }

    /// The mask before [`Signals::take_over`], which a program must start with.
    pub fn before(&self) -> SignalMask {
        self.before
    }

    /// The next signal, if one is pending.
    #[allow(
        clippy::should_implement_trait,
        reason = "takes &self; pending signals are no sequence"
    )]
    pub fn next(&self) -> Option<Signal> {
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

    /// The number of the next pending signal that is wanted. Those before it are dropped.
    pub fn find(&self, is_wanted: impl Fn(i32) -> bool) -> Option<i32> {
        std::iter::from_fn(|| self.next())
            .map(|signal| signal.number)
            .find(|number| is_wanted(*number))
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
        self.before.apply();
    }
}

/// Whether a signal asks a program to end.
pub fn is_end(number: i32) -> bool {
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP].contains(&number)
}

/// Sends a signal to a process; a process that has ended is no error.
pub fn send(process: u32, number: i32) {
    // SAFETY: takes plain numbers.
    let _ = unsafe { libc::kill(process as i32, number) };
}

/// Sends a signal to the group that a process leads; a group that has ended is no error.
pub fn send_to_group(leader: u32, number: i32) {
    // SAFETY: takes plain numbers.
    let _ = unsafe { libc::killpg(leader as i32, number) };
}

/// Makes children that end vanish: no process waits for them.
pub fn ignore_children() {
    // SAFETY: sets the disposition of SIGCHLD to "ignore"; no handler is involved.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
}

/// Runs a function with all signals blocked, also for threads that it starts. While a program is
/// watched, signals are for the thread that watches.
pub fn without_signals<T>(run: impl FnOnce() -> T) -> T {
    let before = SignalMask::all().apply();
    let result = run();
    before.apply();
    result
}
