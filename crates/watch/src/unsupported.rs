//! Systems on which no program can be watched.

use crate::{Clock, Config, Outcome, WatchError, WatchSink};
use std::time::Duration;

/// Whose connections would be followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subjects {
    /// Those of these processes and of their descendants.
    Processes(Vec<u32>),
    /// Those of every process that we may look at.
    All,
}

/// An error: it cannot be done here, and the remedy.
pub fn run(
    _config: &Config,
    _clock: Clock,
    _observer: &mut dyn WatchSink,
) -> Result<Outcome, WatchError> {
    Err(WatchError::Unsupported)
}

/// An error: it cannot be done here, and the remedy.
pub fn follow(
    _subjects: &Subjects,
    _at_most: Option<Duration>,
    _clock: Clock,
    _observer: &mut dyn WatchSink,
) -> Result<Option<i32>, WatchError> {
    Err(WatchError::Unsupported)
}

/// Runs a function: without a program to watch no signals are to be kept for anybody.
pub fn without_signals<T>(run: impl FnOnce() -> T) -> T {
    run()
}

/// There is no `/proc` that has CPU times.
pub(crate) fn ticks_per_second() -> Option<f64> {
    None
}
