//! Latency and openings over time, in a bounded number of periods that grow with the run.

use crate::stats::{ChangePoint, change_point};
use intact_ledger::{Connection, Exchange, Nanos, Reuse};
use schemars::JsonSchema;
use serde::Serialize;

/// Periods at most; half as many at least, once a run is long enough.
const PERIODS: usize = 128;
/// The first length of a period.
const SHORTEST: u64 = 1_000_000;
/// Shuffles behind the p-value of a change of level.
const DRAWS: u32 = 999;
/// A change of level is marked when chance shows as good a one this rarely.
const LEVEL: f64 = 0.01;
/// Requests that a period needs for its mean to count towards a change.
const ENOUGH: u64 = 5;

/// Requests that each side of a change must have to be reported in words.
const LEAST: u64 = 30;
/// The smallest ratio of latencies that is worth a word.
const RATIO: f64 = 1.2;

/// Gathers periods as events come.
#[derive(Clone, Debug)]
pub(super) struct OverTime {
    length: u64,
    periods: Vec<Sums>,
    /// Whether durations of requests are known.
    timed: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    requests: u64,
    latency: u64,
    opened: u64,
    first: u64,
    reused: u64,
}

/// A change of level with what was the case on both sides. It describes; only an experiment shows the cause.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LevelShift {
    /// When, in seconds since the start of the run.
    pub at_s: f64,
    /// How closely that is known, in seconds.
    pub within_s: f64,
    /// The share of shuffles of the periods that have as good a cut.
    pub p_value: f64,
    /// Before it.
    pub before: StepSide,
    /// From it on.
    pub after: StepSide,
}

/// One side of a change of level.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct StepSide {
    /// Requests.
    pub requests: u64,
    /// Their mean latency, in milliseconds.
    pub mean_ms: f64,
    /// The share of them that reused a connection, where that is known.
    pub reuse: Option<f64>,
    /// New connections for each request.
    pub opened_per_request: f64,
}

impl Sums {
    fn and(self, other: Sums) -> Sums {
        Sums {
            requests: self.requests + other.requests,
            latency: self.latency.saturating_add(other.latency),
            opened: self.opened + other.opened,
            first: self.first + other.first,
            reused: self.reused + other.reused,
        }
    }

    fn side(self) -> Option<StepSide> {
        let known = self.first + self.reused;
        (self.requests >= LEAST).then(|| StepSide {
            requests: self.requests,
            mean_ms: self.latency as f64 / self.requests as f64 / 1e6,
            reuse: (known > 0).then(|| self.reused as f64 / known as f64),
            opened_per_request: self.opened as f64 / self.requests as f64,
        })
    }
}

/// What happened in one period.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Period {
    /// When it began, in seconds since the run began.
    pub from_s: f64,
    /// Requests that ended in it.
    pub requests: u64,
    /// Their mean latency, in milliseconds.
    pub mean_ms: Option<f64>,
    /// Connections opened in it.
    pub opened: u64,
}

impl OverTime {
    /// `timed` where the durations of requests are known.
    pub(super) fn new(timed: bool) -> OverTime {
        OverTime {
            length: SHORTEST,
            periods: Vec::new(),
            timed,
        }
    }

    pub(super) fn opened(&mut self, connection: &Connection) {
        if connection.is_opened() {
            self.at(connection.at).opened += 1;
        }
    }

    pub(super) fn exchange(&mut self, exchange: &Exchange) {
        let sums = self.at(exchange.end);
        sums.requests += 1;
        sums.latency = sums.latency.saturating_add(exchange.latency());
        match exchange.reuse.map(Reuse::is_reused) {
            Some(true) => sums.reused += 1,
            Some(false) => sums.first += 1,
            None => {}
        }
    }

    /// The length of a period in seconds.
    pub(super) fn length_s(&self) -> f64 {
        self.length as f64 / 1e9
    }

    /// The periods from the first to the last in which something happened.
    pub(super) fn periods(&self) -> Vec<Period> {
        let busy = |sums: &Sums| sums.requests > 0 || sums.opened > 0;
        let first = self.periods.iter().position(busy).unwrap_or(0);
        let all = self.periods.iter().enumerate().skip(first);
        all.map(|(nth, sums)| Period {
            from_s: nth as f64 * self.length_s(),
            requests: sums.requests,
            mean_ms: (self.timed && sums.requests > 0)
                .then(|| sums.latency as f64 / sums.requests as f64 / 1e6),
            opened: sums.opened,
        })
        .collect()
    }

    /// Where the latency changed its level, if it did: when, in seconds, with the means before and after in milliseconds.
    pub(super) fn change(&self) -> Option<(f64, ChangePoint)> {
        let full: Vec<Period> = self
            .periods()
            .into_iter()
            .filter(|period| self.timed && period.requests >= ENOUGH)
            .collect();
        let means: Vec<f64> = full.iter().filter_map(|period| period.mean_ms).collect();
        let change = change_point(&means, DRAWS, 0).filter(|change| change.p_value <= LEVEL)?;
        Some((full.get(change.at)?.from_s, change))
    }

    /// The same in words for both sides, where they differ by enough to be worth it.
    pub(super) fn step(&self) -> Option<LevelShift> {
        let (at_s, change) = self.change()?;
        let cut = ((at_s / self.length_s()).round() as usize).min(self.periods.len());
        let side = |periods: &[Sums]| {
            periods
                .iter()
                .copied()
                .fold(Sums::default(), Sums::and)
                .side()
        };
        let (before, after) = self.periods.split_at(cut);
        let (before, after) = (side(before)?, side(after)?);
        let ratio = before.mean_ms / after.mean_ms;
        (ratio.max(ratio.recip()) >= RATIO).then(|| LevelShift {
            at_s,
            within_s: self.length_s(),
            p_value: change.p_value,
            before,
            after,
        })
    }

    fn at(&mut self, when: Nanos) -> &mut Sums {
        while when.0 / self.length >= PERIODS as u64 {
            self.length *= 2;
            let pairs = self.periods.chunks(2);
            let pairs = pairs.map(|pair| pair.iter().copied().fold(Sums::default(), Sums::and));
            self.periods = pairs.collect();
        }
        let nth = (when.0 / self.length) as usize;
        if self.periods.len() <= nth {
            self.periods.resize(nth + 1, Sums::default());
        }
        &mut self.periods[nth]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn exchange(end: u64, latency: u64) -> Exchange {
        let mut one = Exchange::new(1, Nanos((end - latency) * MS));
        one.end = Nanos(end * MS);
        one
    }

    #[test]
    fn periods_grow_with_the_run_and_lose_nothing() {
        let mut over_time = OverTime::new(true);
        for nth in 0..100_000u64 {
            over_time.exchange(&exchange(1_000 + nth * 37, 10));
        }
        let periods = over_time.periods();
        assert!(periods.len() <= PERIODS && periods.len() > PERIODS / 3);
        let requests: u64 = periods.iter().map(|period| period.requests).sum();
        assert_eq!(requests, 100_000);
        assert!(periods.iter().all(|period| period.mean_ms == Some(10.0)));
        assert_eq!(over_time.change(), None);
    }

    #[test]
    fn a_change_of_level_is_found_where_it_was() {
        let mut over_time = OverTime::new(true);
        for nth in 0..2_000u64 {
            let latency = if nth < 1_200 { 90 } else { 30 };
            over_time.exchange(&exchange(100 + nth * 10, latency + nth % 7));
        }
        let (when, change) = over_time.change().unwrap();
        assert!((11.5..12.7).contains(&when), "{when}");
        assert!(change.before > 89.0 && change.after < 40.0, "{change:?}");
        let step = over_time.step().unwrap();
        assert_eq!(step.before.requests + step.after.requests, 2_000);
        assert!((step.at_s - when).abs() < 1e-9, "{step:?}");
        assert!(
            step.before.mean_ms > 80.0 && step.after.mean_ms < 40.0,
            "{step:?}"
        );
    }

    #[test]
    fn the_end_of_time_is_a_period_too() {
        let mut over_time = OverTime::new(true);
        over_time.exchange(&exchange(1, 1));
        let mut last = exchange(1, 1);
        last.end = Nanos(u64::MAX);
        over_time.exchange(&last);
        let periods = over_time.periods();
        assert!(periods.len() <= PERIODS && periods.len() > PERIODS / 2);
        assert_eq!(periods.last().map(|period| period.requests), Some(1));
    }
}
