//! Signals. The first Ctrl-C, SIGTERM or SIGHUP asks for an early end that keeps everything, the second ends at once. A file that
//! reaches the limit of its size is an error of the write, not the end of the process.

use anyhow::Context;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Makes a write beyond the limit of a file's size (`ulimit -f`) fail with EFBIG. Programs that are started from here keep the
/// default, because a handler does not outlive execve(2).
pub(crate) fn survive_full_files() {
    // without the handler the signal ends the process, as it would any other
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
}

/// Which signal came, if one did.
#[derive(Clone, Default)]
pub(crate) struct Interrupt {
    signal: Arc<AtomicUsize>,
}

impl Interrupt {
    /// Listens for SIGINT, SIGTERM and SIGHUP.
    pub(crate) fn listen() -> anyhow::Result<Interrupt> {
        let interrupt = Interrupt::default();
        let second = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
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
