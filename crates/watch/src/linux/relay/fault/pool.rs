//! A pool that a fault strikes as a whole, as a restart, a NAT or a balancer does: the connections
//! to a destination that are open at the first strike.
//!
//! Each of them is struck at the point that its kind has, or while it is idle. Connections that are
//! opened later are not, so that a program can recover on a new one. A pool that has grown beyond
//! the largest one that was struck is struck again.

use intact_ledger::ConnectionId;
use std::collections::BTreeSet;

/// The kept connections of a destination, and which of them are struck together.
#[derive(Debug, Default)]
pub(super) struct StruckPool {
    /// Connections up to this one are struck.
    up_to: Option<ConnectionId>,
    /// The number of connections that were struck together, at most.
    largest: usize,
    /// Those of the last time so far.
    struck: usize,
    /// Kept connections that are open and were not struck.
    kept: BTreeSet<ConnectionId>,
}

impl StruckPool {
    pub(super) fn note_kept(&mut self, id: ConnectionId) {
        self.kept.insert(id);
    }

    pub(super) fn note_end(&mut self, id: ConnectionId) {
        self.kept.remove(&id);
    }

    /// A connection is struck: so are all others up to the newest one.
    pub(super) fn strike(&mut self, id: ConnectionId, newest: ConnectionId) {
        if self.has_struck(id) {
            self.struck += 1;
        } else {
            self.struck = self.kept.len();
            self.up_to = Some(newest);
        }
        self.largest = self.largest.max(self.struck);
        self.kept.remove(&id);
    }

    /// Whether the pool was struck of which the connection is one.
    pub(super) fn has_struck(&self, id: ConnectionId) -> bool {
        self.up_to.is_some_and(|up_to| id <= up_to)
    }

    /// Whether the pool was never struck, or has grown.
    pub(super) fn may_be_struck(&self) -> bool {
        let Some(up_to) = self.up_to else { return true };
        let newer = self.kept.iter().filter(|id| **id > up_to);
        newer.count() > self.largest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(pool: &mut StruckPool, ids: std::ops::RangeInclusive<u64>) {
        ids.for_each(|id| pool.note_kept(ConnectionId(id)));
    }

    #[test]
    fn all_connections_are_struck_that_are_open_and_no_later_one() {
        let mut pool = StruckPool::default();
        kept(&mut pool, 1..=5);
        assert!(pool.may_be_struck());
        pool.strike(ConnectionId(3), ConnectionId(6));
        for (id, is_struck) in [(1, true), (5, true), (6, true), (7, false)] {
            assert_eq!(pool.has_struck(ConnectionId(id)), is_struck, "{id}");
        }
    }

    #[test]
    fn a_pool_is_struck_again_only_once_it_has_grown() {
        let mut pool = StruckPool::default();
        kept(&mut pool, 1..=1);
        pool.strike(ConnectionId(1), ConnectionId(2));
        kept(&mut pool, 3..=3);
        assert!(!pool.may_be_struck());
        kept(&mut pool, 4..=4);
        assert!(pool.may_be_struck());
        pool.note_end(ConnectionId(4));
        assert!(!pool.may_be_struck());
        // one that was carried by then, and was kept later
        kept(&mut pool, 2..=2);
        pool.strike(ConnectionId(2), ConnectionId(4));
        kept(&mut pool, 5..=6);
        assert!(pool.may_be_struck());
    }
}
