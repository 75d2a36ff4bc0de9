//! How many of a stream of intervals overlap at the worst moment, in bounded memory and in any
//! order of arrival. Exact while few distinct moments are alive at once. Where old ones must be put
//! together, the answer can only become larger, so the count of avoidable connections is never too
//! high.

use intact_ledger::{Nanos, Span};

/// Moments that are kept apart before the older half is thinned.
const MOMENTS: usize = 1024;

/// Moments from the end that are searched one by one.
const NEAR: usize = 4;

/// The peak number of intervals at once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Overlap {
    /// From this moment to the next one this number of intervals is alive; in order. Intervals
    /// come nearly in order too, so what is put in is put in near the end.
    levels: Vec<(Nanos, u32)>,
    peak: u32,
}

impl Overlap {
    /// Adds an interval, its end excluded. One without length overlaps whatever is alive at its
    /// moment.
    pub(crate) fn add(&mut self, span: Span) {
        let end = span.end.max(span.start.after(1));
        let first = self.split(span.start);
        let last = self.split(end);
        for (_, level) in &mut self.levels[first..last] {
            *level = level.saturating_add(1);
            self.peak = self.peak.max(*level);
        }
        if self.levels.len() > MOMENTS {
            self.thin();
        }
    }

    /// The most that were alive at once.
    pub(crate) fn peak(&self) -> u64 {
        u64::from(self.peak)
    }

    /// The index of the level that begins at a moment, made if need be.
    fn split(&mut self, at: Nanos) -> usize {
        // most moments are among the last ones
        let mut near = self.levels.iter().rev().take(NEAR);
        let index = match near.position(|(one, _)| *one < at) {
            Some(behind) => self.levels.len() - behind,
            None => self.levels.partition_point(|(one, _)| *one < at),
        };
        if self.levels.get(index).is_none_or(|(one, _)| *one != at) {
            let before = index
                .checked_sub(1)
                .map_or(0, |before| self.levels[before].1);
            self.levels.insert(index, (at, before));
        }
        index
    }

    /// Puts neighbours of the older half together at the higher of their levels.
    fn thin(&mut self) {
        let older = MOMENTS / 4;
        for pair in 0..older {
            let ((first, one), (_, two)) = (self.levels[2 * pair], self.levels[2 * pair + 1]);
            self.levels[pair] = (first, one.max(two));
        }
        self.levels.drain(older..2 * older);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn peak_by_force(spans: &[(u64, u64)]) -> u64 {
        let alive_at = |moment: u64| {
            spans
                .iter()
                .filter(|(start, length)| *start <= moment && moment < start + (*length).max(1))
                .count() as u64
        };
        spans
            .iter()
            .map(|&(start, _)| alive_at(start))
            .max()
            .unwrap_or(0)
    }

    fn overlap(spans: &[(u64, u64)]) -> Overlap {
        let mut overlap = Overlap::default();
        for &(start, length) in spans {
            overlap.add(Span::new(Nanos(start), Nanos(start + length)));
        }
        overlap
    }

    proptest! {
        #[test]
        fn the_peak_is_the_true_one_in_any_order(spans in prop::collection::vec((0u64..500, 0u64..100), 0..100)) {
            prop_assert_eq!(overlap(&spans).peak(), peak_by_force(&spans));
        }

    }

    proptest! {
        // each case is compared with a quadratic count
        #![proptest_config(ProptestConfig::with_cases(16))]

        #[test]
        fn with_too_many_moments_it_never_counts_less(spans in prop::collection::vec((0u64..1_000_000, 0u64..2_000), 1_000..2_000)) {
            let overlap = overlap(&spans);
            prop_assert!(overlap.levels.len() <= MOMENTS + 2);
            prop_assert!(overlap.peak() >= peak_by_force(&spans));
        }
    }

    #[test]
    fn a_long_run_of_one_after_the_other_needs_one() {
        let mut overlap = Overlap::default();
        for nth in 0..100_000 {
            overlap.add(Span::new(Nanos(nth * 10), Nanos(nth * 10 + 9)));
        }
        assert_eq!(overlap.peak(), 1);
    }
}
