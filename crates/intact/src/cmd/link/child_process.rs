//! The command that a wrapper runs: signals meant for it reach it, and its end is ours.

use crate::exit::{self, Failed};
use crate::system::{self, WrapperSignals};
use anyhow::{Context, anyhow};
use intact_link::document::CommandEnd;
use std::io;
use std::process::{Child, Command};

/// A running command.
pub(crate) struct ChildProcess {
    child: Child,
    signals: WrapperSignals,
}

impl ChildProcess {
    /// Starts it. From here on these signals are passed on to it.
    pub(crate) fn start(
        command: &mut Command,
        signals: WrapperSignals,
    ) -> Result<ChildProcess, Failed> {
        signals.keep();
        let child = command
            .spawn()
            .map_err(|error| not_started(command, &error))?;
        signals.pass_to(&child);
        Ok(ChildProcess { child, signals })
    }

    /// Waits for its end.
    pub(crate) fn wait(mut self) -> Result<CommandEnd, Failed> {
        let status = self.child.wait();
        self.signals.end();
        let status = status.context("cannot wait for the command")?;
        Ok(match (status.code(), system::ended_by(status)) {
            (Some(code), _) => CommandEnd::Code(code as u8),
            (None, signal) => CommandEnd::Signal(signal.unwrap_or(0) as u8),
        })
    }
}

fn not_started(command: &Command, error: &io::Error) -> Failed {
    let program = command.get_program().display();
    match error.kind() {
        io::ErrorKind::NotFound => {
            Failed::with_code(exit::NOT_FOUND, anyhow!("{program}: no such program"))
        }
        _ => Failed::with_code(
            exit::NOT_RUNNABLE,
            anyhow!("{program} cannot be run: {error}"),
        ),
    }
}
