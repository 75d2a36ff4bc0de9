//! Processes that depend on this one. A guard is a forked child that acts after this process has
//! ended for any reason. A command can end with this process.

use crate::checked;
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The descriptor that a guard keeps.
pub(crate) const KEPT: libc::c_int = 1;

/// A child in its own session that waits for the end of this process. Dropping the guard makes it
/// act, too; nothing waits for it.
pub(crate) struct Guard {
    process: libc::pid_t,
    /// Closed by the kernel when we end; the guard waits for that.
    alive: Option<OwnedFd>,
}

impl Guard {
    /// Forks a guard with this name (at most 15 bytes). It keeps one descriptor at [`KEPT`] and
    /// closes all others. After our end it runs `act` and ends.
    ///
    /// # Errors
    /// Those of pipe(2), fcntl(2) and fork(2).
    ///
    /// # Safety
    /// `act` runs in a forked child: it makes system calls only, on memory that exists already, and
    /// does not panic.
    pub(crate) unsafe fn start(
        name: &'static CStr,
        keep: Option<BorrowedFd<'_>>,
        act: impl FnOnce(),
    ) -> io::Result<Guard> {
        let (waiting, alive) = io::pipe()?;
        let alive = OwnedFd::from(alive);
        // a number beyond those of the guard, so that neither is overwritten before it is copied
        let kept = keep.map(|keep| rustix::io::fcntl_dupfd_cloexec(keep, 10));
        let kept = kept.transpose()?;
        // SAFETY: the child makes system calls only, on memory that exists already.
        let process = checked(unsafe { libc::fork() })? as libc::pid_t;
        if process != 0 {
            return Ok(Guard {
                process,
                alive: Some(alive),
            });
        }
        // SAFETY: plain system calls on descriptors of this process, which uses no other
        // descriptor.
        unsafe {
            libc::setsid();
            libc::prctl(libc::PR_SET_NAME, name.as_ptr());
            libc::close(alive.as_raw_fd());
            libc::dup2(waiting.as_fd().as_raw_fd(), 0);
            match &kept {
                Some(kept) => {
                    libc::dup2(kept.as_raw_fd(), KEPT);
                    close_from(KEPT + 1);
                }
                None => close_from(1),
            }
            let mut byte = 0u8;
            while libc::read(0, (&raw mut byte).cast(), 1) != 0 {
                if *libc::__errno_location() != libc::EINTR {
                    break;
                }
            }
            act();
            libc::_exit(0)
        }
    }

    /// The guard's process id.
    pub(crate) fn process(&self) -> u32 {
        self.process.unsigned_abs()
    }

    /// Makes the guard act now, and waits for its end.
    pub(crate) fn finish(&mut self) {
        drop(self.alive.take());
        // SAFETY: waits for the child that this value started; another part of this process may
        // have reaped it already.
        unsafe { libc::waitpid(self.process, std::ptr::null_mut(), 0) };
    }
}

/// Runs `act` with the process id of an idle child, and ends the child.
///
/// # Errors
/// Those of fork(2) and pipe(2).
pub fn with_idle_child<T>(act: impl FnOnce(u32) -> T) -> io::Result<T> {
    // SAFETY: the child does nothing.
    let mut child = unsafe { Guard::start(c"intact-idle", None, || ()) }?;
    let done = act(child.process());
    child.finish();
    Ok(done)
}

/// Closes all descriptors from this number on. Otherwise a reader of our output would wait for the
/// end of the child.
fn close_from(first: libc::c_int) {
    /// Highest descriptor that is closed one by one if the kernel cannot close a range (before
    /// Linux 5.9).
    const MOST: libc::c_int = 4096;
    // SAFETY: called in a forked child that uses none of them.
    unsafe {
        if libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, 0) != 0 {
            for descriptor in first..MOST {
                libc::close(descriptor);
            }
        }
    }
}

/// Makes the kernel kill this process when its parent thread ends.
///
/// # Errors
/// Those of prctl(2).
pub fn end_with_parent() -> io::Result<()> {
    let kill = Some(rustix::process::Signal::KILL);
    Ok(rustix::process::set_parent_process_death_signal(kill)?)
}

/// Makes the kernel kill the command's process when the thread that starts it ends.
pub fn end_with_us(command: &mut Command) {
    // SAFETY: one system call, which is async-signal-safe.
    unsafe { command.pre_exec(end_with_parent) };
}
