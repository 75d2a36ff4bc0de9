//! The signals of runs that follow each other. They stay blocked from the first run on until the
//! last config is gone: between two runs a Ctrl-C would otherwise end this process, and what was
//! measured with it.

use intact_sys::signals::{self, Signals};
use intact_sys::timer::wait_readable;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long a command between two runs may take to end after a signal.
const PATIENCE: Duration = Duration::from_secs(2);

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

    /// Runs a command between two runs to its end. With it the signal, if one asked this process to
    /// end: its group gets the signal, and is killed if it does not end within [`PATIENCE`].
    ///
    /// # Errors
    /// Those of [`Command::spawn`] and of [`Signals::take_over`].
    pub fn run(&self, command: &mut Command) -> io::Result<(ExitStatus, Option<i32>)> {
        let taken = self.take_over()?;
        signals::set_mask(command, taken.before());
        let mut child = command.process_group(0).spawn()?;
        let mut asked = None;
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok((status, asked));
            }
            // also the end of a child is a signal
            let has_come = wait_readable(&*taken, PATIENCE)?;
            if let Some(signal) = taken.find(signals::is_end) {
                signals::send_to_group(child.id(), signal);
                asked = Some(signal);
            } else if asked.is_some() && !has_come {
                signals::send_to_group(child.id(), libc::SIGKILL);
            }
        }
    }
}
