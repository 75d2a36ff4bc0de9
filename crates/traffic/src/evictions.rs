//! Idle connections that a client closes while it opens one to another destination: the limit is
//! the size of its pool, not an idle time. Bounded memory. Must not conclude.

use super::open_connection::{HAND_BACK, PoolOwner};
use intact_ledger::Nanos;
use std::collections::VecDeque;

/// Moments that are kept.
const MOMENTS: usize = 64;

/// When an owner opened or closed a connection to a destination.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) at: Nanos,
    pub(super) destination: usize,
    pub(super) owner: PoolOwner,
}

impl Moment {
    /// Whether the same owner did the other at the same time for another destination.
    fn is_next_to(&self, other: &Moment) -> bool {
        let apart = self.at.since(other.at).max(other.at.since(self.at));
        self.owner == other.owner && self.destination != other.destination && apart <= HAND_BACK
    }
}

/// The last moments at which a pool may have made room.
#[derive(Clone, Debug, Default)]
pub(super) struct Evictions {
    /// A connection was opened.
    grown: VecDeque<Moment>,
    /// The client closed an idle connection.
    closed: VecDeque<Moment>,
}

impl Evictions {
    /// Notes that a pool got one more connection; returns the ends that may have made room for it.
    pub(super) fn grow(&mut self, grown: Moment) -> Vec<Moment> {
        push(&mut self.grown, grown);
        let ends = self.closed.iter().filter(|end| end.is_next_to(&grown));
        ends.copied().collect()
    }

    /// Notes that the client closed an idle connection; returns an opening that this may have made
    /// room for.
    pub(super) fn close(&mut self, end: Moment) -> Option<Moment> {
        push(&mut self.closed, end);
        self.grown
            .iter()
            .find(|grown| grown.is_next_to(&end))
            .copied()
    }
}

fn push(moments: &mut VecDeque<Moment>, moment: Moment) {
    if moments.len() == MOMENTS {
        moments.pop_front();
    }
    moments.push_back(moment);
}
