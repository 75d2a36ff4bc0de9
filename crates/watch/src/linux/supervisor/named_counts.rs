//! Counts by name, bounded: what a caveat lists of sockets that are not watched.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Display;

/// Names that are kept; the rest shares one count.
const MAX_NAMES: usize = 100;
/// Names in a list.
const SHOWN: usize = 3;

/// How often each name occurred.
pub(super) struct NamedCounts<N> {
    counts: BTreeMap<N, u64>,
    further: u64,
}

impl<N> Default for NamedCounts<N> {
    fn default() -> NamedCounts<N> {
        NamedCounts {
            counts: BTreeMap::new(),
            further: 0,
        }
    }
}

impl<N: Ord + Display> NamedCounts<N> {
    pub(super) fn add(&mut self, name: N) {
        if self.counts.len() < MAX_NAMES || self.counts.contains_key(&name) {
            *self.counts.entry(name).or_default() += 1;
        } else {
            self.further += 1;
        }
    }

    /// The most frequent names with their counts, and the count of the others; absent where there
    /// is none.
    pub(super) fn list(&self) -> Option<String> {
        let mut counts: Vec<_> = self.counts.iter().collect();
        counts.sort_by_key(|(_, count)| Reverse(**count));
        let (shown, others) = counts.split_at(counts.len().min(SHOWN));
        let mut names: Vec<_> = shown
            .iter()
            .map(|(name, count)| format!("{name} ({count})"))
            .collect();
        let others = others.iter().map(|(_, count)| **count).sum::<u64>() + self.further;
        if others > 0 {
            names.push(format!("others ({others})"));
        }
        (!names.is_empty()).then(|| names.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_beyond_the_limits_share_one_count() {
        let mut counts = NamedCounts::default();
        assert_eq!(counts.list(), None);
        for name in 0..MAX_NAMES + 2 {
            counts.add(name);
        }
        counts.add(7);
        let others = MAX_NAMES + 2 - SHOWN;
        let list = format!("7 (2), 0 (1), 1 (1), others ({others})");
        assert_eq!(counts.list(), Some(list));
    }
}
