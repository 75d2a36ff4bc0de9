//! The warm-up of a round: measuring begins on every connection when the last warm-up request is over, on all threads. Otherwise
//! the time measured would hold requests that the count leaves out.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Connections of a round whose warm-up request is not over.
#[derive(Debug)]
pub(crate) struct WarmUp {
    left: AtomicUsize,
}

impl WarmUp {
    /// A warm-up of this number of connections; 0 where every request is measured.
    pub(crate) fn new(connections: usize) -> WarmUp {
        WarmUp {
            left: AtomicUsize::new(connections),
        }
    }

    /// One connection is through, whatever the outcome.
    pub(crate) fn finish_one(&self) {
        self.left.fetch_sub(1, Ordering::AcqRel);
    }

    /// Whether measuring may begin.
    pub(crate) fn is_over(&self) -> bool {
        self.left.load(Ordering::Acquire) == 0
    }
}
