//! Systems on which no program can be watched.

use crate::{Clock, Config, Observer, Outcome, WatchError};

/// Tells that it cannot be done here, and how it can.
pub fn run(
    _config: &Config,
    _clock: Clock,
    _observer: &mut dyn Observer,
) -> Result<Outcome, WatchError> {
    Err(WatchError::Unsupported)
}
