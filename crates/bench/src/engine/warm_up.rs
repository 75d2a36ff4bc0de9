//! The warm-up of a round: measuring begins when the last warm-up request of all threads is over.
//! Otherwise the measured time would include requests that are not counted.

use intact_ledger::Nanos;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// From the end of the warm-up to the start of an open loop's schedule, in nanoseconds: threads
/// look for the end less often than that.
const LEAD: u64 = 5_000_000;

/// Connections of a round whose warm-up request is not over.
#[derive(Debug)]
pub(crate) struct WarmUp {
    left: AtomicUsize,
    /// When the schedule of an open loop starts; 0 until a thread has asked.
    start: AtomicU64,
}

impl WarmUp {
    /// A warm-up of this number of connections; 0 where every request is measured.
    pub(crate) fn new(connections: usize) -> WarmUp {
        WarmUp {
            left: AtomicUsize::new(connections),
            start: AtomicU64::new(0),
        }
    }

    /// A connection has finished its warm-up, with success or without.
    pub(crate) fn finish_one(&self) {
        self.left.fetch_sub(1, Ordering::AcqRel);
    }

    /// The start of an open loop's schedule, which is the same for all threads. The first one asks
    /// `now`.
    pub(crate) fn agree_start(&self, now: Nanos) -> Nanos {
        let ours = now.after(LEAD).0;
        let agreed = self
            .start
            .compare_exchange(0, ours, Ordering::AcqRel, Ordering::Acquire);
        Nanos(agreed.map_or_else(|theirs| theirs, |_| ours))
    }

    /// Whether measuring may begin.
    pub(crate) fn is_over(&self) -> bool {
        self.left.load(Ordering::Acquire) == 0
    }
}
