//! The run's clock, and the conversion of the kernel's receive timestamps to it.

use intact_ledger::Nanos;
#[cfg(target_os = "linux")]
use rustix::time::ClockId;
use std::time::{Duration, Instant};

/// The wall clock was stepped if it moved by more than this against the monotonic one since the
/// start. Then an older receive timestamp means a step, not that the client was slow. Nanoseconds.
const STEP: u64 = 1_000_000_000;

/// The monotonic clock of a run, counted from its start.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    #[cfg(any(feature = "http3", not(target_os = "linux")))]
    start: Instant,
    /// The start in nanoseconds of CLOCK_MONOTONIC. The engine reads the clock several times per
    /// exchange, and one number is cheaper than an [`Instant`].
    #[cfg(target_os = "linux")]
    origin: u64,
    /// The wall clock at the start, in nanoseconds since 1970.
    wall: u64,
}

impl Clock {
    /// Starts the clock of a run.
    pub fn start() -> Clock {
        Clock::started_at(Instant::now())
    }

    /// The clock of a run that another process started at this time.
    pub fn started_at(start: Instant) -> Clock {
        #[cfg(target_os = "linux")]
        let passed = start.elapsed().as_nanos() as u64;
        Clock {
            #[cfg(any(feature = "http3", not(target_os = "linux")))]
            start,
            #[cfg(target_os = "linux")]
            origin: read(ClockId::Monotonic).saturating_sub(passed),
            wall: realtime().saturating_sub(start.elapsed().as_nanos() as u64),
        }
    }

    /// Nanoseconds since the start.
    #[inline]
    pub fn now(&self) -> Nanos {
        #[cfg(target_os = "linux")]
        return Nanos(read(ClockId::Monotonic).saturating_sub(self.origin));
        #[cfg(not(target_os = "linux"))]
        Nanos(self.start.elapsed().as_nanos() as u64)
    }

    /// The moment on the system's monotonic clock.
    #[cfg(feature = "http3")]
    pub(crate) fn instant(&self, at: Nanos) -> Instant {
        self.start + Duration::from_nanos(at.0)
    }

    /// The time of the run at a moment of the system's monotonic clock.
    #[cfg(feature = "http3")]
    pub(crate) fn time_of(&self, instant: Instant) -> Nanos {
        Nanos(instant.saturating_duration_since(self.start).as_nanos() as u64)
    }

    /// The duration from now until `at`; zero if it has passed.
    pub fn until(&self, at: Nanos) -> Duration {
        Duration::from_nanos(at.since(self.now()))
    }
}

/// Converts timestamps of CLOCK_REALTIME to the run's time. The offset is read again in each
/// iteration of the loop. A timestamp in the future is refused; after a step of the wall clock also
/// one far in the past.
#[derive(Clone, Copy, Debug)]
pub struct TimestampConverter {
    now: Nanos,
    realtime: u64,
    /// The oldest timestamp that is trusted, as an age in nanoseconds.
    oldest: u64,
}

impl TimestampConverter {
    /// Reads both clocks.
    #[inline]
    pub fn read(clock: &Clock) -> TimestampConverter {
        let (realtime, now) = (realtime(), clock.now());
        let stepped = realtime.abs_diff(clock.wall.saturating_add(now.0)) > STEP;
        TimestampConverter {
            now,
            realtime,
            // a client that is not scheduled for seconds reads late, and needs the timestamp most
            oldest: if stepped { STEP } else { u64::MAX },
        }
    }

    /// The run's time of a timestamp that was read at `read_at`; `None` if it cannot be trusted.
    #[inline]
    pub fn convert(&self, stamp: u64, read_at: Nanos) -> Option<Nanos> {
        let ahead = i128::from(stamp) - i128::from(self.realtime);
        let at = i128::from(self.now.0) + ahead;
        let at = Nanos(u64::try_from(at).ok()?);
        (at <= read_at && read_at.since(at) <= self.oldest).then_some(at)
    }
}

/// The wall clock, in nanoseconds since 1970.
#[inline]
fn realtime() -> u64 {
    #[cfg(target_os = "linux")]
    return read(ClockId::Realtime);
    #[cfg(not(target_os = "linux"))]
    std::time::UNIX_EPOCH
        .elapsed()
        .map_or(0, |since| since.as_nanos() as u64)
}

/// A clock of the kernel, in nanoseconds.
#[cfg(target_os = "linux")]
#[inline]
fn read(clock: ClockId) -> u64 {
    let time = rustix::time::clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_counts_from_the_start_that_it_is_given() {
        let earlier = Duration::from_secs(10);
        let start = Instant::now().checked_sub(earlier).unwrap();
        let now = Duration::from_nanos(Clock::started_at(start).now().0);
        // the start is converted by two readings, between which the thread may have to wait
        assert!(now > earlier / 2 && now <= start.elapsed(), "{now:?}");
    }

    #[test]
    fn a_timestamp_keeps_its_distance_to_now_and_a_stepped_one_is_refused() {
        let bridge = TimestampConverter {
            now: Nanos(5_000_000_000),
            realtime: 1_700_000_000_000_000_000,
            oldest: STEP,
        };
        let read_at = Nanos(5_000_001_000);
        let convert =
            |ahead: i64| bridge.convert((1_700_000_000_000_000_000 + ahead) as u64, read_at);
        assert_eq!(convert(-300), Some(Nanos(4_999_999_700)));
        assert_eq!(convert(2_000), None);
        assert_eq!(convert(-3_600_000_000_000), None);
        assert_eq!(convert(-2_000_000_000), None);
        // without a step the client was late
        let late = TimestampConverter {
            oldest: u64::MAX,
            ..bridge
        };
        let stamp = 1_699_999_998_000_000_000;
        assert_eq!(late.convert(stamp, read_at), Some(Nanos(3_000_000_000)));
        let clock = Clock::start();
        assert_eq!(TimestampConverter::read(&clock).oldest, u64::MAX);
        let stepped = Clock {
            wall: clock.wall - 10 * STEP,
            ..clock
        };
        assert_eq!(TimestampConverter::read(&stepped).oldest, STEP);
        assert_eq!(convert(3_600_000_000_000), None);
    }
}
