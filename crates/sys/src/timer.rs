//! Waits with the precision of the kernel's timers; the timeout of poll(2) has whole milliseconds.
//! An alarm is a descriptor (timerfd_create(2)), and ppoll(2) waits for one descriptor.

use crate::checked;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

/// Waits until `descriptor` is readable, at most for `limit`. Returns whether it is. How late it returns depends on the timer slack of
/// the thread (prctl(2), PR_SET_TIMERSLACK).
///
/// # Errors
/// Those of ppoll(2), an interruption included.
pub fn wait_readable(descriptor: &impl AsRawFd, limit: Duration) -> io::Result<bool> {
    let mut one = libc::pollfd {
        fd: descriptor.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    let limit = libc::timespec {
        tv_sec: limit.as_secs() as _,
        tv_nsec: libc::c_long::from(limit.subsec_nanos()),
    };
    // SAFETY: the kernel reads and writes one pollfd and reads one timespec; both outlive the call.
    let ready = unsafe { libc::ppoll(&raw mut one, 1, &raw const limit, std::ptr::null()) };
    Ok(checked(ready)? > 0)
}

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
                value.it_value.tv_sec = left.as_secs() as _;
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_wait_ends_with_data_or_when_its_limit_is_over() {
        let (mut writer, reader) = UnixStream::pair().unwrap();
        let limit = Duration::from_micros(300);
        let begun = Instant::now();
        assert!(!wait_readable(&reader, limit).unwrap());
        assert!(begun.elapsed() >= limit);
        writer.write_all(b"x").unwrap();
        assert!(wait_readable(&reader, Duration::from_secs(60)).unwrap());
    }
}
