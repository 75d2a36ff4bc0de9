//! The moment from which on everything was different: latency over time in bounded memory, the largest step in it, and what reuse
//! and churn were on both sides. It describes; what caused the step, only an experiment tells.

use crate::figures::NANOS_PER_MS;
use crate::stats::change_point;
use ledger::{Event, Exchange, Nanos, Sink};
use serde::Serialize;

/// Stretches of time that are kept apart; more are put together in pairs, so that they are far enough apart to be taken as values
/// of their own.
const STRETCHES: usize = 128;
/// How long a stretch is at first, in nanoseconds.
const FIRST: u64 = 100_000_000;
/// Requests that each side must have.
const LEAST_REQUESTS: u64 = 30;
/// Shuffles of the stretches that the step is held against.
const DRAWS: u32 = 1999;
/// The share of them that may have as large a step. Neighbours resemble each other more than shuffles do, so the bar is high.
const BAR: f64 = 0.001;
/// The smallest ratio of latencies that is worth a word.
const RATIO: f64 = 1.2;

/// A fold over exchanges and openings.
#[derive(Clone, Debug)]
pub struct Change {
    width: u64,
    stretches: Vec<Stretch>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Stretch {
    requests: u64,
    /// Sum of the logarithms of latencies in milliseconds.
    logs: f64,
    fresh: u64,
    reused: u64,
    opened: u64,
}

/// A step in latency.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChangeFacts {
    /// When, in milliseconds since the start of the run.
    pub at_ms: f64,
    /// How closely that is known, in milliseconds.
    pub within_ms: f64,
    /// The share of shuffles of the stretches of time that have as large a step.
    pub p_value: f64,
    /// Before it.
    pub before: SideFacts,
    /// After it.
    pub after: SideFacts,
}

/// One side of a step.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SideFacts {
    /// Complete requests.
    pub requests: u64,
    /// Geometric mean of their latencies, in milliseconds: what is typical, whatever a few slow ones did.
    pub latency_ms: f64,
    /// The share of them that reused a connection, where that is known.
    pub reuse: Option<f64>,
    /// New connections for each request.
    pub opened_per_request: f64,
}

impl Default for Change {
    fn default() -> Change {
        Change {
            width: FIRST,
            stretches: Vec::new(),
        }
    }
}

impl Sink for Change {
    fn record(&mut self, event: Event<'_>) {
        match event {
            Event::Opened(connection) if connection.is_opened() => {
                self.at(connection.at).opened += 1;
            }
            Event::Exchange(exchange) if exchange.outcome.is_ok() => self.exchange(exchange),
            _ => {}
        }
    }
}

impl Change {
    fn exchange(&mut self, exchange: &Exchange) {
        // what took no time was not timed
        if exchange.latency() == 0 {
            return;
        }
        let log = (exchange.latency() as f64 / NANOS_PER_MS).ln();
        let stretch = self.at(exchange.at);
        stretch.requests += 1;
        stretch.logs += log;
        stretch.fresh += u64::from(exchange.fresh == Some(true));
        stretch.reused += u64::from(exchange.fresh == Some(false));
    }

    fn at(&mut self, at: Nanos) -> &mut Stretch {
        while at.0 / self.width >= STRETCHES as u64 {
            self.width = self.width.saturating_mul(2);
            let pairs = self.stretches.chunks(2);
            self.stretches = pairs
                .map(|pair| {
                    pair.iter()
                        .fold(Stretch::default(), |sum, one| sum.and(one))
                })
                .collect();
        }
        let place = (at.0 / self.width) as usize;
        if place >= self.stretches.len() {
            self.stretches.resize(place + 1, Stretch::default());
        }
        &mut self.stretches[place]
    }

    /// The largest step, if there is one beyond what noise explains.
    pub fn facts(&self) -> Option<ChangeFacts> {
        let used: Vec<(usize, f64)> = self
            .stretches
            .iter()
            .enumerate()
            .filter(|(_, stretch)| stretch.requests > 0)
            .map(|(place, stretch)| (place, stretch.logs / stretch.requests as f64))
            .collect();
        let levels: Vec<f64> = used.iter().map(|(_, level)| level.exp()).collect();
        let found = change_point(&levels, DRAWS, 1).filter(|found| found.p_value <= BAR)?;
        let place = used[found.at].0;
        let (before, after) = self.stretches.split_at(place);
        let (before, after) = (side(before)?, side(after)?);
        let ratio = (before.latency_ms / after.latency_ms).ln().abs();
        let told = ratio >= RATIO.ln() && before.requests.min(after.requests) >= LEAST_REQUESTS;
        told.then(|| ChangeFacts {
            at_ms: (place as u64 * self.width) as f64 / NANOS_PER_MS,
            within_ms: ((place - used[found.at - 1].0) as u64 * self.width) as f64 / NANOS_PER_MS,
            p_value: found.p_value,
            before,
            after,
        })
    }
}

impl Stretch {
    fn and(self, other: &Stretch) -> Stretch {
        Stretch {
            requests: self.requests + other.requests,
            logs: self.logs + other.logs,
            fresh: self.fresh + other.fresh,
            reused: self.reused + other.reused,
            opened: self.opened + other.opened,
        }
    }
}

fn side(stretches: &[Stretch]) -> Option<SideFacts> {
    let sum = stretches
        .iter()
        .fold(Stretch::default(), |sum, one| sum.and(one));
    let known = sum.fresh + sum.reused;
    (sum.requests > 0).then(|| SideFacts {
        requests: sum.requests,
        latency_ms: (sum.logs / sum.requests as f64).exp(),
        reuse: (known > 0).then(|| sum.reused as f64 / known as f64),
        opened_per_request: sum.opened as f64 / sum.requests as f64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers between 0 and 1 that look random (SplitMix64).
    fn noise(seed: u64) -> impl FnMut() -> f64 {
        let mut state = seed;
        move || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut word = state;
            word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((word ^ (word >> 31)) >> 11) as f64 / (1u64 << 53) as f64
        }
    }

    /// Requests a second apart, with a heavy tail, slower by `factor` until `step_at`.
    fn observed(seed: u64, seconds: u64, step_at: u64, factor: f64) -> Change {
        let (mut change, mut noise) = (Change::default(), noise(seed));
        for second in 0..seconds {
            for part in 0..4 {
                let at = Nanos(second * 1_000_000_000 + part * 200_000_000);
                let mut one = Exchange::new(1, at);
                let before = second < step_at;
                let tail = noise().max(1e-6).powf(-0.4);
                let ms = 10.0 * tail * if before { factor } else { 1.0 };
                one.end = at.after((ms * NANOS_PER_MS) as u64);
                one.fresh = Some(before);
                change.record(Event::Exchange(&one));
            }
        }
        change
    }

    #[test]
    fn a_step_is_found_where_it_is() {
        for seed in 0..10 {
            let facts = observed(seed, 1500, 500, 2.0).facts().unwrap();
            assert!((facts.at_ms - 5e5).abs() <= 60_000.0, "{facts:?}");
            let ratio = facts.before.latency_ms / facts.after.latency_ms;
            assert!((1.7..2.3).contains(&ratio), "{facts:?}");
            assert!(facts.before.reuse.unwrap() < 0.1, "{facts:?}");
            assert!(facts.after.reuse.unwrap() > 0.9, "{facts:?}");
        }
    }

    #[test]
    fn noise_is_no_step() {
        // one in a thousand is what the bar lets through, and of those most are too small to tell
        let found = (0..100).filter(|&seed| observed(seed, 300, 0, 1.0).facts().is_some());
        assert!(found.count() <= 1);
    }

    #[test]
    fn little_is_no_evidence() {
        assert_eq!(Change::default().facts(), None);
        assert_eq!(observed(1, 3, 1, 9.0).facts(), None);
    }

    #[test]
    fn years_take_as_much_room_as_seconds() {
        let mut change = Change::default();
        let year = 31_536_000_000_000_000;
        for month in 0..120 {
            let mut one = Exchange::new(1, Nanos(month * year / 12));
            one.end = one.at.after(5_000_000);
            change.record(Event::Exchange(&one));
        }
        assert!(change.stretches.len() <= STRETCHES);
        let all: u64 = change
            .stretches
            .iter()
            .map(|stretch| stretch.requests)
            .sum();
        assert_eq!(all, 120);
    }
}
