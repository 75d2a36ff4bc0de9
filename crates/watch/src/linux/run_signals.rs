//! The signals of runs that follow each other. They stay blocked from the first run on until the
//! last config is gone: between two runs a Ctrl-C would otherwise end this process, and what was
//! measured with it.

use intact_sys::signals::Signals;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// The signals of runs that share it.
#[derive(Clone, Debug, Default)]
pub struct RunSignals(Arc<Mutex<Option<Arc<Signals>>>>);

impl RunSignals {
    /// Takes the signals over, unless an earlier run has.
    ///
    /// # Errors
    /// Those of pthread_sigmask(3) and signalfd(2).
    pub(crate) fn take_over(&self) -> io::Result<Arc<Signals>> {
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(signals) = &*taken {
            return Ok(signals.clone());
        }
        let signals = Arc::new(Signals::take_over()?);
        *taken = Some(signals.clone());
        Ok(signals)
    }
}
