//! Latency and openings over time, in a bounded number of periods that grow with the run.

use crate::stats::{Change, change_point};
use ledger::{Connection, Exchange, Nanos};
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

/// Gathers periods as events come.
#[derive(Clone, Debug)]
pub(super) struct OverTime {
    length: u64,
    periods: Vec<Sums>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    requests: u64,
    latency: u64,
    opened: u64,
}

/// What happened in one period.
#[derive(Clone, Debug, PartialEq, Serialize)]
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
    pub(super) fn new() -> OverTime {
        OverTime {
            length: SHORTEST,
            periods: Vec::new(),
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
            mean_ms: (sums.requests > 0).then(|| sums.latency as f64 / sums.requests as f64 / 1e6),
            opened: sums.opened,
        })
        .collect()
    }

    /// Where the latency changed its level, if it did: when, in seconds, with the means before and after in milliseconds.
    pub(super) fn change(&self) -> Option<(f64, Change)> {
        let full: Vec<Period> = self
            .periods()
            .into_iter()
            .filter(|period| period.requests >= ENOUGH)
            .collect();
        let means: Vec<f64> = full.iter().filter_map(|period| period.mean_ms).collect();
        let change = change_point(&means, DRAWS, 0).filter(|change| change.p_value <= LEVEL)?;
        Some((full.get(change.at)?.from_s, change))
    }

    fn at(&mut self, when: Nanos) -> &mut Sums {
        while when.0 / self.length >= PERIODS as u64 {
            self.length *= 2;
            let pairs = self.periods.chunks(2).map(|pair| {
                pair.iter().fold(Sums::default(), |a, b| Sums {
                    requests: a.requests + b.requests,
                    latency: a.latency.saturating_add(b.latency),
                    opened: a.opened + b.opened,
                })
            });
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
        let mut over_time = OverTime::new();
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
        let mut over_time = OverTime::new();
        for nth in 0..2_000u64 {
            let latency = if nth < 1_200 { 90 } else { 30 };
            over_time.exchange(&exchange(100 + nth * 10, latency + nth % 7));
        }
        let (when, change) = over_time.change().unwrap();
        assert!((11.5..12.7).contains(&when), "{when}");
        assert!(change.before > 89.0 && change.after < 40.0, "{change:?}");
    }

    #[test]
    fn the_end_of_time_is_a_period_too() {
        let mut over_time = OverTime::new();
        over_time.exchange(&exchange(1, 1));
        let mut last = exchange(1, 1);
        last.end = Nanos(u64::MAX);
        over_time.exchange(&last);
        let periods = over_time.periods();
        assert!(periods.len() <= PERIODS && periods.len() > PERIODS / 2);
        assert_eq!(periods.last().map(|period| period.requests), Some(1));
    }
}
