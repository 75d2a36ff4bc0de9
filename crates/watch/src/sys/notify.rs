//! The answering end of a seccomp filter: takes calls and answers them (seccomp_unotify(2)).
#![allow(unsafe_code, reason = "ioctl on the listener")]

use super::checked;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// One call that waits for its answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Notice {
    /// Names the call; invalid once the caller was interrupted or killed.
    pub(crate) id: u64,
    /// The thread that made it.
    pub(crate) thread: u32,
    /// The number of the system call.
    pub(crate) call: libc::c_long,
    /// Its arguments.
    pub(crate) arguments: [u64; 6],
}

/// An answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The kernel makes the call as if nobody had asked.
    Continue,
    /// It returns this.
    Value(i64),
    /// It fails with this error number.
    Error(i32),
}

/// The descriptor that calls are taken from.
pub(crate) struct Listener(OwnedFd);

impl Listener {
    pub(crate) fn new(descriptor: OwnedFd) -> Listener {
        Listener(descriptor)
    }

    /// Whether a call waits, without waiting for one.
    fn is_ready(&self) -> bool {
        let mut poll = libc::pollfd {
            fd: self.0.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one pollfd, as the count says.
        let ready = unsafe { libc::poll(&raw mut poll, 1, 0) };
        ready == 1 && poll.revents & libc::POLLIN != 0
    }

    /// Takes the next call, if one waits.
    pub(crate) fn take(&self) -> io::Result<Option<Notice>> {
        loop {
            if !self.is_ready() {
                return Ok(None);
            }
            // SAFETY: a structure of zeroes is what the call wants; the kernel fills it.
            let taken = unsafe {
                let mut raw: libc::seccomp_notif = std::mem::zeroed();
                checked(libc::ioctl(
                    self.0.as_raw_fd(),
                    libc::SECCOMP_IOCTL_NOTIF_RECV as _,
                    &raw mut raw,
                ))
                .map(|_| raw)
            };
            return match taken {
                Ok(raw) => Ok(Some(Notice {
                    id: raw.id,
                    thread: raw.pid,
                    call: libc::c_long::from(raw.data.nr),
                    arguments: raw.data.args,
                })),
                // the caller was killed in the meantime, or a signal came to us
                Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EINTR)) => {
                    continue;
                }
                Err(error) => Err(error),
            };
        }
    }

    /// Whether the caller still waits: what was read of its memory before was its own.
    pub(crate) fn is_valid(&self, id: u64) -> bool {
        // SAFETY: the kernel reads one u64.
        let valid = unsafe {
            libc::ioctl(
                self.0.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_ID_VALID as _,
                &raw const id,
            )
        };
        valid == 0
    }

    /// Answers; a caller that has gone needs none.
    pub(crate) fn answer(&self, id: u64, answer: Answer) {
        let mut raw = libc::seccomp_notif_resp {
            id,
            val: 0,
            error: 0,
            flags: 0,
        };
        match answer {
            Answer::Continue => raw.flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32,
            Answer::Value(value) => raw.val = value,
            Answer::Error(number) => raw.error = -number,
        }
        // SAFETY: the kernel reads the structure.
        let _ = unsafe {
            libc::ioctl(
                self.0.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_SEND as _,
                &raw mut raw,
            )
        };
    }
}

impl AsRawFd for Listener {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}
