//! An alarm with a descriptor (timerfd_create(2)), finer than the millisecond of a poll's timeout.

use crate::checked;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Instant;

/// One alarm; its descriptor is readable from the set time on.
pub struct Timer {
    descriptor: OwnedFd,
    set: Option<Instant>,
}

impl Timer {
    /// An alarm that is not set.
    ///
    /// # Errors
    /// Those of timerfd_create(2).
    pub fn new() -> io::Result<Timer> {
        let flags = libc::TFD_CLOEXEC | libc::TFD_NONBLOCK;
        // SAFETY: takes plain numbers; the kernel has just made the descriptor for us.
        let descriptor = unsafe {
            let number = checked(libc::timerfd_create(libc::CLOCK_MONOTONIC, flags))?;
            OwnedFd::from_raw_fd(number as RawFd)
        };
        Ok(Timer {
            descriptor,
            set: None,
        })
    }

    /// Sets the time of the alarm, or switches it off; an earlier alarm is withdrawn.
    pub fn set(&mut self, when: Option<Instant>) {
        if self.set == when {
            return;
        }
        self.set = when;
        // SAFETY: a structure of zeroes disarms; the kernel reads it.
        unsafe {
            let mut value: libc::itimerspec = std::mem::zeroed();
            if let Some(when) = when {
                // zero would disarm: an alarm that is due rings immediately
                let left = when.saturating_duration_since(Instant::now());
                value.it_value.tv_sec = left.as_secs() as libc::time_t;
                value.it_value.tv_nsec = libc::c_long::from(left.subsec_nanos().max(1));
            }
            libc::timerfd_settime(
                self.descriptor.as_raw_fd(),
                0,
                &raw const value,
                std::ptr::null_mut(),
            );
        }
    }

    /// Acknowledges the alarm, so that the same time may be set again.
    pub fn rung(&mut self) {
        self.set = None;
        let mut count = 0u64;
        // SAFETY: the kernel writes eight bytes at most.
        unsafe { libc::read(self.descriptor.as_raw_fd(), (&raw mut count).cast(), 8) };
    }
}

impl AsRawFd for Timer {
    fn as_raw_fd(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }
}
