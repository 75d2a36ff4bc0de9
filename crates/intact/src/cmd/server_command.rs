//! The command of a server that a person named: waiting until it listens, and its end.

use super::internal::{self, Job};
use crate::system;
use anyhow::Context;
use intact_check::{EndSignal, ProcessState, ServerProcess};
use std::io;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The longest that a server's command may take until it listens.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
/// How often it is looked at until then.
const GLANCE: Duration = Duration::from_millis(10);

/// Why a server does not listen.
pub(crate) enum NotListening {
    /// Its command has ended.
    Ended(ExitStatus),
    /// It took longer than [`PATIENCE`].
    TooLate,
}

/// Waits until `look` finds that the server listens.
pub(crate) fn await_listening<T>(
    child: &mut Child,
    mut look: impl FnMut() -> anyhow::Result<Option<T>>,
) -> anyhow::Result<Result<T, NotListening>> {
    let give_up = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look()? {
            return Ok(Ok(found));
        }
        if let Some(status) = child.try_wait().context("the server's command")? {
            return Ok(Err(NotListening::Ended(status)));
        }
        if Instant::now() > give_up {
            return Ok(Err(NotListening::TooLate));
        }
        std::thread::sleep(GLANCE);
    }
}

/// A server's command in a process group of its own. All of the group ends with this value, and
/// with us.
pub(crate) struct ServerCommand {
    child: Child,
    ended: Option<ExitStatus>,
}

impl ServerCommand {
    /// Starts it. What it prints goes to standard error.
    pub(crate) fn start(command: &mut Command) -> io::Result<ServerCommand> {
        command.stdin(Stdio::null()).stdout(io::stderr());
        system::lead_group(command);
        Ok(ServerCommand {
            child: command.spawn()?,
            ended: None,
        })
    }

    /// Starts a process of ours, which gets its job as a line and keeps its standard input.
    pub(crate) fn start_with(command: &mut Command, job: &Job) -> anyhow::Result<ServerCommand> {
        command.stdin(Stdio::piped()).stdout(io::stderr());
        system::lead_group(command);
        let mut server = ServerCommand {
            child: command.spawn()?,
            ended: None,
        };
        if let Some(input) = &mut server.child.stdin {
            internal::send(job, input)?;
        }
        Ok(server)
    }

    /// The process, to wait for.
    pub(crate) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    fn look(&mut self) -> io::Result<Option<ExitStatus>> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait()?;
        }
        Ok(self.ended)
    }
}

/// The end of a command in words.
pub(crate) fn how(status: ExitStatus) -> String {
    let number = match (status.code(), system::ended_by(status)) {
        (Some(code), _) => return format!("exit code {code}"),
        (None, number) => number.unwrap_or_default(),
    };
    let mut names = EndSignal::ALL.into_iter();
    match names.find(|one| system::number(*one) == number) {
        Some(signal) => signal.name().to_owned(),
        None => format!("signal {number}"),
    }
}

impl ServerProcess for ServerCommand {
    fn ask_to_end(&mut self, signal: EndSignal) -> io::Result<()> {
        if let Some(status) = self.look()? {
            return Err(io::Error::other(format!(
                "it ended ({}) before the signal: a server that puts itself into the background cannot be measured; run it in the foreground (nginx -g 'daemon off;')",
                how(status)
            )));
        }
        system::send_signal(&self.child, signal)
    }

    fn state(&mut self) -> io::Result<ProcessState> {
        let ended = self.look()?.map(how);
        let is_left = ended.is_none() || system::is_group_alive(&self.child);
        Ok(ProcessState { ended, is_left })
    }

    fn kill(&mut self) -> io::Result<()> {
        system::kill_group(&self.child)
    }
}

impl Drop for ServerCommand {
    fn drop(&mut self) {
        let _ = self.kill();
        let _ = self.child.wait();
    }
}
