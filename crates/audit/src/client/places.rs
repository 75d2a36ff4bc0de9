//! Which connection to an origin can carry the next request, where a file does not name it. Must
//! not know entries or rows.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};

/// What a request leaves of the connection that it was assigned to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// It carries more requests at the same time.
    Shared,
    /// It carries the next one from this time on, in nanoseconds since 1970.
    FreeAt(u64),
    /// It carries no other.
    Closing,
}

/// The connections to one origin, as indices. Requests come in the order in which they were sent,
/// so a free connection stays free until it is used. Each request costs a search in a tree, not a
/// scan.
#[derive(Default)]
pub(super) struct Places {
    /// Those that can carry a request.
    free: BTreeSet<usize>,
    /// Those that carry one, by its end. An end that has moved since has an item of its own.
    busy: BinaryHeap<Reverse<(u64, usize)>>,
    /// The ends that count.
    ends: HashMap<usize, u64>,
    /// The one that was opened last.
    newest: Option<usize>,
}

impl Places {
    /// Adds a connection that was just opened.
    pub(super) fn open(&mut self, place: usize) {
        self.free.insert(place);
        self.newest = Some(place);
    }

    /// The connection that was opened last.
    pub(super) fn newest(&self) -> Option<usize> {
        self.newest
    }

    /// The newest connection that can carry a request that was sent `at`.
    pub(super) fn free_at(&mut self, at: u64) -> Option<usize> {
        while let Some(&Reverse((end, place))) = self.busy.peek()
            && end <= at
        {
            self.busy.pop();
            if self.ends.get(&place) == Some(&end) {
                self.ends.remove(&place);
                self.free.insert(place);
            }
        }
        self.free.last().copied()
    }

    /// Records that a connection was given a request.
    pub(super) fn assign(&mut self, place: usize, left: Left) {
        match left {
            Left::Shared => {}
            Left::FreeAt(end) => {
                self.free.remove(&place);
                self.ends.insert(place, end);
                self.busy.push(Reverse((end, place)));
            }
            Left::Closing => {
                self.free.remove(&place);
                self.ends.remove(&place);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn left() -> impl Strategy<Value = Left> {
        prop_oneof![
            1 => Just(Left::Shared),
            6 => (0..60_u64).prop_map(Left::FreeAt),
            1 => Just(Left::Closing),
        ]
    }

    proptest! {
        /// A scan of all connections finds the same one.
        #[test]
        fn a_search_finds_what_a_scan_finds(requests in prop::collection::vec((0..20_u64, left()), 0..200)) {
            let mut places = Places::default();
            let mut scanned: Vec<Left> = Vec::new();
            let mut now = 0;
            for (pause, left) in requests {
                now += pause;
                let is_free = |one: &Left| match *one {
                    Left::Shared => true,
                    Left::FreeAt(end) => end <= now,
                    Left::Closing => false,
                };
                let found = scanned.iter().rposition(is_free);
                prop_assert_eq!(places.free_at(now), found);
                let place = found.unwrap_or_else(|| {
                    places.open(scanned.len());
                    scanned.push(Left::FreeAt(0));
                    scanned.len() - 1
                });
                let left = match left {
                    Left::FreeAt(length) => Left::FreeAt(now + length),
                    other => other,
                };
                places.assign(place, left);
                scanned[place] = left;
            }
        }
    }
}
