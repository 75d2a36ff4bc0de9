//! Waits with the precision of the kernel's timers; the timeout of poll(2) has whole milliseconds.
//! An alarm is a descriptor (timerfd_create(2)), and ppoll(2) waits for one descriptor.

use crate::checked;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

/// CLOCK_MONOTONIC, which all processes share, in nanoseconds.
pub fn monotonic() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The time that the calling thread has used a processor.
pub fn thread_cpu() -> Duration {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(used.tv_sec as u64, used.tv_nsec as u32)
}

/// Waits until `descriptor` is readable, at most for `limit`. Returns whether it is. How late it
/// returns depends on the timer slack of the thread (prctl(2), PR_SET_TIMERSLACK).
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

/// Has the calling thread run soon after it wakes up, before threads whose slices are longer: its
/// own is `slice` from now on (0.1 to 100 ms). Its class and its share of the processor stay.
/// Without effect on real-time threads, and before Linux 6.12.
///
/// # Errors
/// Those of sched_getattr(2) and sched_setattr(2).
pub fn shorten_slice(slice: Duration) -> io::Result<()> {
    let mut attributes = attributes()?;
    // a real-time thread keeps what it has, and a deadline's runtime is another thing
    if attributes.sched_policy != libc::SCHED_OTHER as u32 {
        return Ok(());
    }
    attributes.sched_runtime = slice.as_nanos() as u64;
    // SAFETY: thread 0 is the calling one, and the kernel reads a structure that knows its size and
    // outlives the call.
    let done = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    checked(done).map(drop)
}

/// How the calling thread is scheduled.
fn attributes() -> io::Result<libc::sched_attr> {
    let size = size_of::<libc::sched_attr>();
    // SAFETY: a sched_attr of zeroes is valid.
    let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
    let place = &raw mut attributes;
    // SAFETY: thread 0 is the calling one, and the kernel writes at most `size` bytes to the
    // structure.
    checked(unsafe { libc::syscall(libc::SYS_sched_getattr, 0, place, size as u32, 0) })?;
    Ok(attributes)
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
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let descriptor = timerfd_create(TimerfdClockId::Monotonic, flags)?;
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
        // zero disarms: an alarm that is due rings immediately
        let least = Duration::from_nanos(1);
        let left = when.map(|when| when.saturating_duration_since(Instant::now()).max(least));
        let value = Itimerspec {
            it_interval: Timespec::default(),
            it_value: left.unwrap_or_default().try_into().unwrap_or_default(),
        };
        let _ = timerfd_settime(&self.descriptor, TimerfdTimerFlags::empty(), &value);
    }

    /// Acknowledges the alarm, so that the same time may be set again.
    pub fn rung(&mut self) {
        self.set = None;
        let _ = rustix::io::read(&self.descriptor, &mut [0; 8]);
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

    #[test]
    fn a_thread_that_sleeps_uses_no_processor() {
        let before = thread_cpu();
        std::thread::sleep(Duration::from_millis(300));
        assert!(thread_cpu() - before < Duration::from_millis(200));
        let begun = thread_cpu();
        while thread_cpu() == begun {}
    }

    #[test]
    fn a_thread_with_a_short_slice_keeps_its_class_and_its_nice_value() {
        let slice = Duration::from_micros(200);
        let before = attributes().unwrap();
        shorten_slice(slice).unwrap();
        let after = attributes().unwrap();
        assert_eq!(after.sched_policy, before.sched_policy);
        assert_eq!(after.sched_nice, before.sched_nice);
        // before Linux 6.12 there is none
        if before.sched_policy == libc::SCHED_OTHER as u32 && before.sched_runtime > 0 {
            assert_eq!(u128::from(after.sched_runtime), slice.as_nanos());
        }
    }
}
