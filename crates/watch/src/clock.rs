//! The run's clock.

use ledger::Nanos;
use std::time::Instant;

/// The monotonic clock of a run, counted from its start.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
}

impl Clock {
    /// Starts the run's clock.
    pub fn start() -> Clock {
        Clock {
            start: Instant::now(),
        }
    }

    /// The clock of a run that started at this moment, in another process.
    pub fn started_at(start: Instant) -> Clock {
        Clock { start }
    }

    /// Nanoseconds since the start.
    #[inline]
    pub fn now(&self) -> Nanos {
        Nanos(self.start.elapsed().as_nanos() as u64)
    }
}
