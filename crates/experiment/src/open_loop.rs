//! Open loop: requests are due by a schedule that does not depend on responses.
//!
//! The user sets an [`OpenLoop`]; a [`Schedule`] has the resulting times. The same seed gives the
//! same times, so all variants of a round have equal arrivals. Must not read a clock or wait.

use crate::Rng;
use intact_ledger::kinds;
use intact_units::rate::{self, RateError};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;

/// Between the two rates of a ramp.
const DOTS: &str = "..";
/// A part of an arrival that rounding may add or take.
const ROUNDING: f64 = 1e-6;

/// Requests a second: constant, or changing linearly.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestRate {
    /// At the start.
    pub from: f64,
    /// At the end.
    pub to: f64,
}

kinds! {
    /// How the requests of an open loop are spaced.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub enum Arrivals, as_str {
        /// At equal distances.
        #[default]
        Constant = "constant",
        /// At random, each independent of the others, as those of many users are.
        Poisson = "poisson",
    }
}

kinds! {
    /// What a request does that is due while every connection is busy.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub enum WhenBusy, as_str {
        /// It waits for one. All connections are opened at the start of a round.
        #[default]
        Queue = "queue",
        /// It opens another one, up to the concurrency; beyond that it waits. A round begins
        /// without connections.
        Open = "open",
    }
}

/// When requests are due, and what they do if every connection is busy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OpenLoop {
    /// How many a second.
    pub rate: RequestRate,
    /// How they are spaced.
    pub arrivals: Arrivals,
    /// What happens if every connection is busy.
    pub when_busy: WhenBusy,
}

impl RequestRate {
    /// The same rate from start to end.
    pub fn constant(per_second: f64) -> RequestRate {
        RequestRate {
            from: per_second,
            to: per_second,
        }
    }

    /// Reads the two rates of a ramp, `100/s..2000/s`.
    ///
    /// # Errors
    /// One of the two is no rate, or there is only one.
    pub fn ramp(word: &str) -> Result<RequestRate, RateError> {
        let two = word.split_once(DOTS);
        let (from, to) = two.ok_or_else(|| RateError::Number(word.to_owned()))?;
        Ok(RequestRate {
            from: rate::read(from)?,
            to: rate::read(to)?,
        })
    }

    /// The mean over its time, a second.
    pub fn mean(self) -> f64 {
        f64::midpoint(self.from, self.to)
    }

    /// Whether it changes.
    pub fn is_ramp(self) -> bool {
        self.from != self.to
    }

    /// The part of number `nth`, from 0, of `parts` of equal length.
    pub fn part(self, nth: u32, parts: u32) -> RequestRate {
        let at = |end: u32| self.from + (self.to - self.from) * f64::from(end) / f64::from(parts);
        RequestRate {
            from: at(nth),
            to: at(nth + 1),
        }
    }
}

impl fmt::Display for RequestRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&rate::write(self.from))?;
        match self.is_ramp() {
            true => write!(f, "{DOTS}{}", rate::write(self.to)),
            false => Ok(()),
        }
    }
}

impl FromStr for RequestRate {
    type Err = RateError;

    /// Reads what [`fmt::Display`] writes.
    fn from_str(word: &str) -> Result<RequestRate, RateError> {
        match word.contains(DOTS) {
            true => RequestRate::ramp(word),
            false => rate::read(word).map(RequestRate::constant),
        }
    }
}

/// How far a schedule goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduleLength {
    /// For this number of nanoseconds.
    Nanos(u64),
    /// For this number of requests, at a constant rate.
    Requests(u64),
}

/// The moments at which the requests of one thread are due, in nanoseconds after the start.
///
/// Moments are found in operational time, in which arrivals have the rate 1 (Çinlar 1975). The
/// thread's next position there is one step on, or an exponential distance for
/// [`Arrivals::Poisson`]. The inverse of the summed rate gives the moment.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// Requests a nanosecond at the start, and what it gains in each nanosecond.
    from: f64,
    gain: f64,
    /// The position of the next request, and between two of them.
    position: f64,
    step: f64,
    end: f64,
    left: u64,
    random: Option<Rng>,
}

impl Schedule {
    /// The schedule of thread number `thread` of `threads`, which share the requests. `seed` is
    /// used by [`Arrivals::Poisson`] only.
    pub fn new(
        rate: RequestRate,
        arrivals: Arrivals,
        length: ScheduleLength,
        (thread, threads): (usize, usize),
        seed: u64,
    ) -> Schedule {
        let from = rate.from / 1e9;
        let (gain, end, left) = match length {
            ScheduleLength::Nanos(nanos) => {
                let gain = (rate.to / 1e9 - from) / nanos as f64;
                (gain, rate.mean() / 1e9 * nanos as f64, u64::MAX)
            }
            ScheduleLength::Requests(all) => {
                let (thread, threads) = (thread as u64, threads as u64);
                let share = all / threads + u64::from(thread < all % threads);
                (0.0, f64::INFINITY, share)
            }
        };
        let mut schedule = Schedule {
            from,
            gain,
            position: thread as f64,
            step: threads as f64,
            end: end - ROUNDING,
            left,
            random: None,
        };
        if arrivals == Arrivals::Poisson {
            schedule.random = Some(Rng::seeded(seed.wrapping_add(thread as u64)));
            schedule.position = 0.0;
            schedule.advance();
        }
        schedule
    }

    fn advance(&mut self) {
        let distance = match &mut self.random {
            None => 1.0,
            // the unit is below 1, so the logarithm is finite
            Some(random) => -(1.0 - random.unit()).ln(),
        };
        self.position += self.step * distance;
    }
}

impl Schedule {
    /// The same schedule with `most` requests of this thread at the most.
    pub fn at_most(mut self, most: u64) -> Schedule {
        self.left = self.left.min(most);
        self
    }
}

impl Iterator for Schedule {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        if self.left == 0 || self.position >= self.end {
            return None;
        }
        self.left -= 1;
        // solves from * t + gain * t^2 / 2 = position, in the form without the difference of two
        // close numbers
        let root = (self.from * self.from + 2.0 * self.gain * self.position).max(0.0);
        let nanos = 2.0 * self.position / (self.from + root.sqrt());
        self.advance();
        Some(nanos as u64)
    }
}

/// Schedules one after another, each with the time at which it begins, in nanoseconds after the
/// start of the first.
#[derive(Clone, Debug)]
pub struct ScheduleSeries {
    schedules: VecDeque<(u64, Schedule)>,
    left: u64,
}

impl ScheduleSeries {
    /// The schedules in their order.
    pub fn new(schedules: impl IntoIterator<Item = (u64, Schedule)>) -> ScheduleSeries {
        ScheduleSeries {
            schedules: schedules.into_iter().collect(),
            left: u64::MAX,
        }
    }

    /// The same schedules with `most` requests of this thread at the most.
    pub fn at_most(mut self, most: u64) -> ScheduleSeries {
        self.left = self.left.min(most);
        self
    }
}

impl From<Schedule> for ScheduleSeries {
    fn from(only: Schedule) -> ScheduleSeries {
        ScheduleSeries::new([(0, only)])
    }
}

impl Iterator for ScheduleSeries {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        self.left = self.left.checked_sub(1)?;
        loop {
            let (begin, schedule) = self.schedules.front_mut()?;
            if let Some(nanos) = schedule.next() {
                return Some(begin.saturating_add(nanos));
            }
            self.schedules.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn due(
        rate: &str,
        arrivals: Arrivals,
        length: ScheduleLength,
        threads: usize,
        seed: u64,
    ) -> Vec<u64> {
        let rate = rate.parse().unwrap();
        let of_thread = |thread| Schedule::new(rate, arrivals, length, (thread, threads), seed);
        let mut all: Vec<u64> = (0..threads).flat_map(of_thread).collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn threads_share_a_constant_rate_at_equal_distances() {
        for threads in [1, 2, 3] {
            let length = ScheduleLength::Nanos(SECOND);
            let all = due("500/s", Arrivals::Constant, length, threads, 0);
            assert_eq!(all.len(), 500);
            for (nth, at) in all.iter().enumerate() {
                let exact = nth as u64 * 2_000_000;
                assert!(at.abs_diff(exact) <= 1, "{nth}: {at}");
            }
            let length = ScheduleLength::Requests(7);
            let seven = due("500/s", Arrivals::Constant, length, threads, 0);
            assert_eq!(seven.len(), 7);
            assert!(seven.iter().zip(&all).all(|(one, other)| one == other));
        }
    }

    #[test]
    fn a_ramp_has_the_requests_of_its_mean_and_gets_denser() {
        let length = ScheduleLength::Nanos(SECOND);
        let up = due("100/s..300/s", Arrivals::Constant, length, 1, 0);
        assert_eq!(up.len(), 200);
        // 100 t + 100 t^2 at half of the time
        assert_eq!(up.iter().filter(|at| **at < SECOND / 2).count(), 75);
        let down = due("300/s..100/s", Arrivals::Constant, length, 2, 0);
        assert_eq!(down.iter().filter(|at| **at < SECOND / 2).count(), 125);
        assert!(down.iter().chain(&up).all(|at| *at < SECOND));
    }

    #[test]
    fn the_parts_of_a_ramp_continue_each_other() {
        let ramp: RequestRate = "100/s..300/s".parse().unwrap();
        let parts: Vec<RequestRate> = (0..4).map(|nth| ramp.part(nth, 4)).collect();
        assert_eq!((parts[0].from, parts[3].to), (100.0, 300.0));
        assert!(parts.windows(2).all(|pair| pair[0].to == pair[1].from));
        assert_eq!(parts[1].mean(), 175.0);
    }

    #[test]
    fn poisson_arrivals_have_the_rate_and_exponential_distances() {
        for threads in [1, 2] {
            let length = ScheduleLength::Nanos(100 * SECOND);
            let all = due("100/s", Arrivals::Poisson, length, threads, 7);
            // 10,000 with a standard deviation of 100
            assert!((9_600..10_400).contains(&all.len()), "{}", all.len());
            let gaps: Vec<f64> = all
                .windows(2)
                .map(|pair| (pair[1] - pair[0]) as f64 / 1e7)
                .collect();
            let longer = gaps.iter().filter(|gap| **gap > 1.0).count() as f64;
            let share = longer / gaps.len() as f64;
            assert!((share - (-1f64).exp()).abs() < 0.03, "{share}");
        }
        let length = ScheduleLength::Requests(50);
        let of_seed = |seed| due("100/s", Arrivals::Poisson, length, 1, seed);
        assert_eq!(of_seed(3).len(), 50);
        assert_eq!(of_seed(3), of_seed(3));
        assert_ne!(of_seed(3), of_seed(4));
    }

    #[test]
    fn schedules_follow_each_other_and_one_may_be_cut_short() {
        let of = |rate: &str| {
            let rate = rate.parse().unwrap();
            let length = ScheduleLength::Nanos(SECOND);
            Schedule::new(rate, Arrivals::Constant, length, (0, 1), 0)
        };
        let both = [(0, of("4/s").at_most(3)), (SECOND, of("2/s"))];
        // a nanosecond is lost by rounding
        let due: Vec<u64> = ScheduleSeries::new(both)
            .map(|nanos| nanos.div_ceil(1_000))
            .collect();
        assert_eq!(due, [0, 250_000, 500_000, 1_000_000, 1_500_000]);
        let both = [(0, of("4/s")), (SECOND, of("2/s"))];
        assert_eq!(ScheduleSeries::new(both).at_most(5).count(), 5);
    }

    #[test]
    fn rates_and_ramps_read_back() {
        for rate in ["500/s", "0.5/s", "100/s..2000/s"] {
            assert_eq!(rate.parse::<RequestRate>().unwrap().to_string(), rate);
        }
        assert!(RequestRate::ramp("100/s").is_err());
        assert!("100/s..0/s".parse::<RequestRate>().is_err());
    }
}
