//! Latency and openings over time, in a bounded number of periods that grow with the run: the data
//! of the charts.

use intact_ledger::{Connection, Exchange, Nanos};
use serde::Serialize;

/// Periods at most; half as many at least, once a run is long enough.
const PERIODS: usize = 128;
/// The first length of a period.
const SHORTEST: u64 = 1_000_000;

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
}

impl Sums {
    fn and(self, other: Sums) -> Sums {
        Sums {
            requests: self.requests + other.requests,
            latency: self.latency.saturating_add(other.latency),
            opened: self.opened + other.opened,
        }
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
