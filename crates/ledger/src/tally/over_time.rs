//! The latencies of an open loop over the time of a round, so that it can be seen how they vary
//! within one. At most [`MOST`] slices: their width doubles as a round gets longer.

use crate::histogram::Histogram;
use crate::time::Nanos;
use serde::{Deserialize, Serialize};

/// The most slices.
const MOST: u64 = 32;
/// The width of the first ones, in nanoseconds: 34 ms.
const WIDTH: u64 = 1 << 25;

/// Latencies by the time at which requests were due.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverTime {
    /// Nanoseconds of a slice; a power of two.
    width: u64,
    /// The number of the first slice: its start over the width.
    first: u64,
    slices: Vec<Histogram>,
}

impl OverTime {
    /// Adds the latency of a request that was due then.
    #[inline]
    pub(super) fn record(&mut self, due: Nanos, latency: u64) {
        self.slice(due.0).record(latency);
    }

    /// The slices with their starts and widths in nanoseconds, in order of time.
    pub fn slices(&self) -> impl Iterator<Item = (u64, u64, &Histogram)> {
        let slices = self.slices.iter().enumerate();
        slices.map(|(nth, one)| ((self.first + nth as u64) * self.width, self.width, one))
    }

    /// Adds all of `other`.
    pub(super) fn merge(&mut self, other: &OverTime) {
        if other.slices.is_empty() {
            return;
        }
        while !self.slices.is_empty() && self.width < other.width {
            self.widen();
        }
        for (start, _, slice) in other.slices().filter(|(.., slice)| !slice.is_empty()) {
            self.slice(start).merge(slice);
        }
    }

    /// Packs its histograms.
    pub(super) fn pack(&mut self) {
        self.slices.iter_mut().for_each(Histogram::pack);
    }

    /// The slice that holds this time.
    fn slice(&mut self, at: u64) -> &mut Histogram {
        if self.slices.is_empty() {
            self.width = self.width.max(WIDTH);
            self.first = at / self.width;
        }
        loop {
            let number = at / self.width;
            let last = self.first + self.slices.len().max(1) as u64 - 1;
            if number.max(last) - number.min(self.first) < MOST {
                break;
            }
            self.widen();
        }
        let number = at / self.width;
        if number < self.first {
            let before = (self.first - number) as usize;
            let empty = std::iter::repeat_with(Histogram::new).take(before);
            self.slices.splice(0..0, empty);
            self.first = number;
        }
        let index = (number - self.first) as usize;
        if self.slices.len() <= index {
            self.slices.resize_with(index + 1, Histogram::new);
        }
        &mut self.slices[index]
    }

    /// Makes each slice twice as wide.
    fn widen(&mut self) {
        let first = self.first / 2;
        let mut wide: Vec<Histogram> = Vec::new();
        for (nth, slice) in std::mem::take(&mut self.slices).into_iter().enumerate() {
            let index = ((self.first + nth as u64) / 2 - first) as usize;
            match wide.get_mut(index) {
                Some(other) => other.merge(&slice),
                None => wide.push(slice),
            }
        }
        (self.first, self.slices) = (first, wide);
        self.width = self.width.saturating_mul(2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(times: &[u64]) -> OverTime {
        let mut all = OverTime::default();
        times
            .iter()
            .for_each(|at| all.record(Nanos(*at), at / 1_000));
        all
    }

    fn count(all: &OverTime) -> u64 {
        all.slices().map(|(.., slice)| slice.count()).sum()
    }

    proptest! {
        #[test]
        fn no_latency_is_lost_and_each_is_in_the_slice_of_its_time(
            times in prop::collection::vec(0u64..600_000_000_000, 1..200),
            split in 0usize..200,
        ) {
            let whole = of(&times);
            prop_assert_eq!(count(&whole), times.len() as u64);
            prop_assert!(whole.slices().count() as u64 <= MOST);
            let (a, b) = times.split_at(split.min(times.len()));
            let mut merged = of(a);
            merged.merge(&of(b));
            prop_assert_eq!(count(&merged), times.len() as u64);
            for all in [&whole, &merged] {
                for (start, width, slice) in all.slices() {
                    let within = |at: &&u64| (start..start + width).contains(*at);
                    let due = times.iter().filter(within).count();
                    prop_assert_eq!(slice.count(), due as u64);
                }
            }
        }
    }
}
