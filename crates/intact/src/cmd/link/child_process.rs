//! The command that a wrapper runs: signals meant for it reach it, and its end is ours.

use crate::exit::{self, Failed};
use anyhow::{Context, anyhow};
use intact_link::document::CommandEnd;
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};
use std::fs::File;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A running command.
pub(crate) struct ChildProcess {
    child: Child,
    signals: Handle,
    over: Arc<AtomicBool>,
}

impl ChildProcess {
    /// Starts it. From here on SIGTERM and SIGHUP are passed on to it. SIGINT and SIGQUIT are only where there is no terminal: a
    /// terminal sends them to it as well.
    pub(crate) fn start(command: &mut Command) -> Result<ChildProcess, Failed> {
        let mut signals = Signals::new([SIGINT, SIGQUIT, SIGTERM, SIGHUP])
            .context("cannot listen for signals")
            .map_err(|error| Failed::wrapper(exit::WRAPPER_FAILURE, error))?;
        let child = command
            .spawn()
            .map_err(|error| not_started(command, &error))?;
        let handle = signals.handle();
        let over = Arc::new(AtomicBool::new(false));
        let (pid, is_over) = (Pid::from_child(&child), over.clone());
        let has_terminal = File::open("/dev/tty").is_ok();
        std::thread::spawn(move || {
            for number in signals.forever() {
                let theirs = has_terminal && [SIGINT, SIGQUIT].contains(&number);
                let signal = Signal::from_named_raw(number).filter(|_| !theirs);
                if let Some(signal) = signal
                    && !is_over.load(Ordering::Acquire)
                {
                    // gone already: its end is being told
                    let _ = kill_process(pid, signal);
                }
            }
        });
        Ok(ChildProcess {
            child,
            signals: handle,
            over,
        })
    }

    /// Waits for its end.
    pub(crate) fn wait(mut self) -> Result<CommandEnd, Failed> {
        let status = self.child.wait();
        self.over.store(true, Ordering::Release);
        self.signals.close();
        let status = status
            .context("cannot wait for the command")
            .map_err(|error| Failed::wrapper(exit::WRAPPER_FAILURE, error))?;
        Ok(match (status.code(), status.signal()) {
            (Some(code), _) => CommandEnd::Code(code as u8),
            (None, signal) => CommandEnd::Signal(signal.unwrap_or(0) as u8),
        })
    }
}

fn not_started(command: &Command, error: &io::Error) -> Failed {
    let program = command.get_program().display();
    match error.kind() {
        io::ErrorKind::NotFound => {
            Failed::wrapper(exit::NOT_FOUND, anyhow!("{program}: no such program"))
        }
        _ => Failed::wrapper(
            exit::NOT_RUNNABLE,
            anyhow!("{program} cannot be run: {error}"),
        ),
    }
}
