//! The listener of a filter: takes calls and answers them.

use super::fallback_responder::FallbackResponder;
use super::{ARCH_32, X32};
use crate::{checked, process};
use rustix::event::epoll::{self, EventFlags};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

/// From linux/seccomp.h; libc has no name for it.
const SYNC_WAKE_UP: u32 = 1;

/// One call that waits for our response.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Notification {
    /// The call's id; invalid once the caller was interrupted or killed.
    pub id: u64,
    /// The thread that made it.
    pub thread: u32,
    /// The number of the system call.
    pub call: libc::c_long,
    /// Its arguments.
    pub arguments: [u64; 6],
    /// A 32-bit program made it, or one with 32-bit addresses: number and arguments are those of
    /// its architecture, the number without [`X32`].
    pub is_32: bool,
}

impl Notification {
    /// Copies bytes out of the caller's memory.
    ///
    /// # Errors
    /// Those of [`process::read_memory`].
    pub fn read_memory(&self, address: u64, into: &mut [u8]) -> io::Result<()> {
        process::read_memory(self.thread, address, into)
    }

    /// Copies bytes into the caller's memory, as the call itself would.
    ///
    /// # Errors
    /// Those of process_vm_writev(2); EFAULT if fewer bytes than `from` has could be copied.
    pub fn write_memory(&self, address: u64, from: &[u8]) -> io::Result<()> {
        process::write_memory(self.thread, address, from)
    }
}

/// The response to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotificationResponse {
    /// The kernel executes the call.
    Continue,
    /// The call returns this value.
    Value(i64),
    /// The call fails with this error number.
    Error(i32),
}

/// The descriptor from which calls are taken.
pub struct NotificationListener {
    descriptor: OwnedFd,
    /// Without it, calls fail once we have ended.
    fallback: Option<FallbackResponder>,
}

impl NotificationListener {
    /// Takes the descriptor, and starts a process that answers calls once we have ended.
    pub fn new(descriptor: OwnedFd) -> NotificationListener {
        let fallback = FallbackResponder::start(descriptor.as_fd()).ok();
        NotificationListener {
            descriptor,
            fallback,
        }
    }

    /// Ends the process that would answer in our place: the filtered processes have ended.
    pub fn stop_fallback(&mut self) {
        if let Some(fallback) = self.fallback.take() {
            fallback.stop();
        }
    }

    /// Adds the listener to an epoll instance, which reports it while calls wait (level-triggered).
    ///
    /// # Errors
    /// Those of epoll_ctl(2).
    pub fn register(&self, epoll: &impl AsRawFd, token: usize) -> io::Result<()> {
        // SAFETY: open while it is borrowed here.
        let epoll = unsafe { BorrowedFd::borrow_raw(epoll.as_raw_fd()) };
        let token = epoll::EventData::new_u64(token as u64);
        Ok(epoll::add(epoll, &self.descriptor, token, EventFlags::IN)?)
    }

    /// Makes the kernel wake this process and the caller on the same processor in turn. This is
    /// cheaper if neither has other work.
    pub fn hand_over_on_one_cpu(&self) {
        // SAFETY: takes plain numbers. Kernels before 6.6 refuse it, and are slower.
        let _ = unsafe {
            libc::ioctl(
                self.descriptor.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS as _,
                libc::c_ulong::from(SYNC_WAKE_UP),
            )
        };
    }

    /// Removes the listener from the epoll instance.
    pub fn deregister(&self, epoll: &impl AsRawFd) {
        // SAFETY: open while it is borrowed here.
        let epoll = unsafe { BorrowedFd::borrow_raw(epoll.as_raw_fd()) };
        let _ = epoll::delete(epoll, &self.descriptor);
    }

    /// Takes a call; `None` if its caller no longer waits. Blocks until there is a call.
    ///
    /// # Errors
    /// Those of ioctl(2) on the listener.
    pub fn take(&self) -> io::Result<Option<Notification>> {
        if let Some(fallback) = &self.fallback {
            fallback.begin();
        }
        // SAFETY: a structure of zeroes is what the call wants; the kernel fills it.
        let taken = unsafe {
            let mut raw: libc::seccomp_notif = std::mem::zeroed();
            control(
                self.descriptor.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_RECV,
                &mut raw,
            )
            .map(|_| raw)
        };
        if let Some(fallback) = &self.fallback {
            let id = taken.as_ref().ok().map(|raw| raw.id);
            fallback.end(id, |id| self.is_valid(id));
        }
        match taken {
            Ok(raw) => Ok(Some(Notification {
                id: raw.id,
                thread: raw.pid,
                call: libc::c_long::from(raw.data.nr & !(X32 as i32)),
                arguments: raw.data.args,
                is_32: raw.data.arch == ARCH_32 || raw.data.nr & X32 as i32 != 0,
            })),
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EINTR)) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Whether the kernel can give descriptors of ours to callers (Linux 5.9).
    pub fn can_give_descriptors(&self) -> bool {
        // no call has this id
        let tried = self.give_descriptor(0, self.descriptor.as_fd(), true);
        tried.is_err_and(|error| error.raw_os_error() == Some(libc::ENOENT))
    }

    /// Adds a copy of the descriptor `ours` to the caller, and answers its call with the number of
    /// the copy.
    ///
    /// # Errors
    /// ENOENT: the caller no longer waits. EMFILE: the caller has no free descriptor. Any other
    /// error: the kernel does not support this. The call is then not answered.
    pub fn give_descriptor(
        &self,
        id: u64,
        ours: BorrowedFd<'_>,
        closes_on_exec: bool,
    ) -> io::Result<()> {
        let flags = libc::SECCOMP_ADDFD_FLAG_SEND as u32;
        match self.add_descriptor(id, ours, closes_on_exec, flags) {
            // before Linux 5.14 the answer is another step
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                let number = self.add_descriptor(id, ours, closes_on_exec, 0)?;
                self.answer(id, NotificationResponse::Value(number));
            }
            added => {
                added?;
                self.forget(id);
            }
        }
        Ok(())
    }

    /// Adds a descriptor to the caller's; returns its number.
    fn add_descriptor(
        &self,
        id: u64,
        ours: BorrowedFd<'_>,
        closes_on_exec: bool,
        flags: u32,
    ) -> io::Result<i64> {
        let mut added = libc::seccomp_notif_addfd {
            id,
            flags,
            srcfd: ours.as_raw_fd() as u32,
            newfd: 0,
            newfd_flags: if closes_on_exec {
                libc::O_CLOEXEC as u32
            } else {
                0
            },
        };
        // SAFETY: the kernel reads the structure.
        unsafe {
            control(
                self.descriptor.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_ADDFD,
                &mut added,
            )
        }
    }

    /// A call is answered.
    fn forget(&self, id: u64) {
        if let Some(fallback) = &self.fallback {
            fallback.forget(id);
        }
    }

    /// Whether the caller still waits: memory that was read before this is the caller's.
    pub fn is_valid(&self, mut id: u64) -> bool {
        // SAFETY: the kernel reads one u64.
        unsafe {
            control(
                self.descriptor.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_ID_VALID,
                &mut id,
            )
        }
        .is_ok()
    }

    /// Answers a call; returns whether the caller still waited.
    pub fn answer(&self, id: u64, answer: NotificationResponse) -> bool {
        let sent = respond(self.descriptor.as_raw_fd(), id, answer);
        self.forget(id);
        sent.is_ok()
    }
}

/// Answers a call by one system call, without allocating.
///
/// # Errors
/// Those of the ioctl(2); ENOENT if the caller no longer waits.
pub(super) fn respond(listener: RawFd, id: u64, response: NotificationResponse) -> io::Result<()> {
    let mut raw = libc::seccomp_notif_resp {
        id,
        val: 0,
        error: 0,
        flags: 0,
    };
    match response {
        NotificationResponse::Continue => {
            raw.flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32;
        }
        NotificationResponse::Value(value) => raw.val = value,
        NotificationResponse::Error(number) => raw.error = -number,
    }
    // SAFETY: the kernel reads the structure.
    unsafe { control(listener, libc::SECCOMP_IOCTL_NOTIF_SEND, &mut raw) }.map(drop)
}

/// ioctl(2) on a listener, without allocating.
///
/// # Safety
/// The argument has the type of the request.
unsafe fn control<T>(listener: RawFd, request: libc::Ioctl, argument: &mut T) -> io::Result<i64> {
    // SAFETY: the kernel reads and writes the argument, by the caller.
    checked(unsafe { libc::ioctl(listener, request, std::ptr::from_mut(argument)) })
}
