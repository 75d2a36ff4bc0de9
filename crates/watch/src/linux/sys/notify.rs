//! The answering end of a seccomp filter: takes calls and answers them (seccomp_unotify(2)).
#![allow(unsafe_code, reason = "ioctl on the listener")]

use super::checked;
use super::fallback_responder::FallbackResponder;
use super::filter::ARCH_32;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// From linux/seccomp.h; libc has no name for it.
const SYNC_WAKE_UP: u32 = 1;

/// One call that waits for its answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Notification {
    /// Names the call; invalid once the caller was interrupted or killed.
    pub(crate) id: u64,
    /// The thread that made it.
    pub(crate) thread: u32,
    /// The number of the system call.
    pub(crate) call: libc::c_long,
    /// Its arguments.
    pub(crate) arguments: [u64; 6],
    /// A 32-bit program made it: number and arguments are those of its architecture.
    pub(crate) is_32: bool,
}

/// An answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotificationResponse {
    /// The kernel makes the call as if nobody had asked.
    Continue,
    /// It returns this.
    Value(i64),
    /// It fails with this error number.
    Error(i32),
}

/// The descriptor that calls are taken from.
pub(crate) struct Listener {
    descriptor: OwnedFd,
    /// Where there is none, calls fail once we are gone.
    heir: Option<FallbackResponder>,
}

impl Listener {
    /// To be called while we have one thread.
    pub(crate) fn new(descriptor: OwnedFd) -> Listener {
        let heir = FallbackResponder::start(descriptor.as_fd()).ok();
        Listener { descriptor, heir }
    }

    /// A child of ours that has not run another program, or this process where there is none.
    pub(crate) fn own_child(&self) -> u32 {
        let child = self.heir.as_ref().map(FallbackResponder::process);
        child.unwrap_or_else(std::process::id)
    }

    /// Nobody is left to ask.
    pub(crate) fn dismiss_heir(&mut self) {
        if let Some(heir) = self.heir.take() {
            heir.stop();
        }
    }

    /// Has an epoll instance tell as long as calls wait, so that none has to be looked for.
    pub(crate) fn register(&self, epoll: &impl AsRawFd, token: usize) -> io::Result<()> {
        let mut event = libc::epoll_event {
            events: libc::EPOLLIN as u32,
            u64: token as u64,
        };
        // SAFETY: the kernel reads the structure.
        checked(unsafe {
            libc::epoll_ctl(
                epoll.as_raw_fd(),
                libc::EPOLL_CTL_ADD,
                self.descriptor.as_raw_fd(),
                &raw mut event,
            )
        })?;
        Ok(())
    }

    /// Wakes us, and the caller when it is answered, on the processor that the other leaves. Cheaper where there is nothing to do
    /// for us beside the caller.
    pub(crate) fn hand_over_on_one_cpu(&self) {
        // SAFETY: takes plain numbers. Kernels before 6.6 refuse it, and are slower.
        let _ = unsafe {
            libc::ioctl(
                self.descriptor.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS as _,
                libc::c_ulong::from(SYNC_WAKE_UP),
            )
        };
    }

    /// Has it tell no more.
    pub(crate) fn deregister(&self, epoll: &impl AsRawFd) {
        // SAFETY: takes plain numbers; the event is not read.
        let _ = unsafe {
            libc::epoll_ctl(
                epoll.as_raw_fd(),
                libc::EPOLL_CTL_DEL,
                self.descriptor.as_raw_fd(),
                std::ptr::null_mut(),
            )
        };
    }

    /// Takes a call that waits; `None` where its caller has gone in the meantime. Blocks where none waits.
    pub(crate) fn take(&self) -> io::Result<Option<Notification>> {
        if let Some(heir) = &self.heir {
            heir.begin();
        }
        // SAFETY: a structure of zeroes is what the call wants; the kernel fills it.
        let taken = unsafe {
            let mut raw: libc::seccomp_notif = std::mem::zeroed();
            checked(libc::ioctl(
                self.descriptor.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_RECV as _,
                &raw mut raw,
            ))
            .map(|_| raw)
        };
        if let Some(heir) = &self.heir {
            let id = taken.as_ref().ok().map(|raw| raw.id);
            heir.end(id, |id| self.is_valid(id));
        }
        match taken {
            Ok(raw) => Ok(Some(Notification {
                id: raw.id,
                thread: raw.pid,
                call: libc::c_long::from(raw.data.nr),
                arguments: raw.data.args,
                is_32: raw.data.arch == ARCH_32,
            })),
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EINTR)) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Whether the caller still waits: what was read of its memory before was its own.
    pub(crate) fn is_valid(&self, id: u64) -> bool {
        // SAFETY: the kernel reads one u64.
        let valid = unsafe {
            libc::ioctl(
                self.descriptor.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_ID_VALID as _,
                &raw const id,
            )
        };
        valid == 0
    }

    /// Answers; whether the caller was still waiting for it.
    pub(crate) fn answer(&self, id: u64, answer: NotificationResponse) -> bool {
        let mut raw = libc::seccomp_notif_resp {
            id,
            val: 0,
            error: 0,
            flags: 0,
        };
        match answer {
            NotificationResponse::Continue => {
                raw.flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32;
            }
            NotificationResponse::Value(value) => raw.val = value,
            NotificationResponse::Error(number) => raw.error = -number,
        }
        // SAFETY: the kernel reads the structure.
        let sent = unsafe {
            libc::ioctl(
                self.descriptor.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_SEND as _,
                &raw mut raw,
            )
        };
        if let Some(heir) = &self.heir {
            heir.forget(id);
        }
        sent == 0
    }
}
