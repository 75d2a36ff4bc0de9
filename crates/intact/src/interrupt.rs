//! Signals. The first Ctrl-C, SIGTERM or SIGHUP asks for an early end that keeps everything, the
//! second ends at once.

use crate::system;
use anyhow::Context;
#[cfg(feature = "fleet")]
use signal_hook::consts::SIGTERM;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Which signal came, if one did.
#[derive(Clone, Default)]
pub(crate) struct Interrupt {
    signal: Arc<AtomicUsize>,
}

impl Interrupt {
    /// Listens for the signals that ask for an early end.
    pub(crate) fn listen() -> anyhow::Result<Interrupt> {
        let interrupt = Interrupt::default();
        let second = Arc::new(AtomicBool::new(false));
        for signal in system::ENDING {
            let listen = || -> std::io::Result<()> {
                signal_hook::flag::register_conditional_shutdown(
                    signal,
                    128 + signal,
                    second.clone(),
                )?;
                signal_hook::flag::register(signal, second.clone())?;
                signal_hook::flag::register_usize(
                    signal,
                    interrupt.signal.clone(),
                    signal as usize,
                )?;
                Ok(())
            };
            listen().with_context(|| format!("cannot listen for signal {signal}"))?;
        }
        Ok(interrupt)
    }

    /// Asks for an early end as SIGTERM would.
    #[cfg(feature = "fleet")]
    pub(crate) fn end(&self) {
        self.signal.store(SIGTERM as usize, Ordering::Relaxed);
    }

    /// The number of the signal that came.
    pub(crate) fn signal(&self) -> Option<usize> {
        match self.signal.load(Ordering::Relaxed) {
            0 => None,
            signal => Some(signal),
        }
    }
}

/// From here on a signal ends the process at once.
pub(crate) fn end_at_next_signal() {
    for signal in system::ENDING {
        // without this handler the signal is ignored, and the process ends as the first one asked
        // for
        let _ = signal_hook::flag::register_conditional_shutdown(
            signal,
            128 + signal,
            Arc::new(AtomicBool::new(true)),
        );
    }
}
