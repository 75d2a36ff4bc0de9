//! A service of the person's own under `watch`, in a process of ours: started, waited for, ended;
//! its outgoing traffic is in a ledger. A process of its own, because `watch` takes over the
//! signals of a process with one thread.

use crate::cmd::internal::{self, Job};
use crate::cmd::observing::Observing;
use crate::cmd::output_files::OutputFiles;
use crate::cmd::run_header;
use crate::cmd::server_command::{NotListening, PATIENCE, ServerCommand, await_listening, how};
use crate::cmd::watch::{Keys, key_logging, not_run};
use crate::exit::{self, Failed, refuse};
use crate::system;
use anyhow::{Context, anyhow, bail};
use intact_check::{EndSignal, ServerProcess};
use intact_ledger::store::Reader;
use intact_ledger::{Producer, Rows, Vantage};
use intact_traffic::{ObservedFacts, TrafficAnalysis};
use intact_watch::{Clock, Mode};
use serde::{Deserialize, Serialize};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The longest that a service may take to end after SIGTERM.
const END: Duration = Duration::from_secs(10);
/// The longest that one attempt to connect takes while it starts.
const ATTEMPT: Duration = Duration::from_millis(250);
/// How often it is looked at until it has ended.
const GLANCE: Duration = Duration::from_millis(10);

/// What the process runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ServiceJob {
    /// The command line, for a shell.
    pub(super) command: String,
    /// A round trip that is added to each of its connections.
    pub(super) round_trip: Duration,
    /// Where its ledger goes.
    pub(super) ledger: PathBuf,
}

/// Runs the service to its end, or to that of the parent. The ledger is complete before the exit.
pub(crate) fn run_as_child(job: &ServiceJob) -> Result<ExitCode, Failed> {
    system::end_by_request().context("--service")?;
    let words = ["intact".to_owned(), "watch".to_owned(), job.command.clone()];
    let mut head = run_header::head(Producer::Watch, Vantage::OnPath, &words);
    head.rows = Rows::All;
    head.add_evidence(Mode::Auto.evidence());
    head.subject = Some(intact_ledger::redact::line(&job.command));
    let files = OutputFiles::of(Some(job.ledger.clone()), None);
    let mut recording = Observing::start(TrafficAnalysis::new(&head), &head, &files)?;
    let key = run_header::fingerprint_key()?;
    let line = shell_line(&job.command);
    let command = ["sh".into(), "-c".into(), line.into()].to_vec();
    let mut config = intact_watch::Config::new(command, key);
    config.keys = key_logging(Keys::Auto);
    config.round_trip = job.round_trip;
    let outcome = intact_watch::run(&config, Clock::start(), &mut recording).map_err(not_run)?;
    recording.finish();
    Ok(ExitCode::from(exit::of_program(outcome.ended)))
}

/// The line for a shell. A single command replaces the shell, so that it gets the signal.
fn shell_line(command: &str) -> String {
    match command.contains([';', '&', '|', '\n']) {
        true => command.to_owned(),
        // with `env` also where variables precede the program
        false => format!("exec env {command}"),
    }
}

/// A service that listens.
pub(super) struct WatchedService {
    command: ServerCommand,
    job: ServiceJob,
}

impl WatchedService {
    /// Starts it, and waits until `address` accepts a connection.
    pub(super) fn start(job: ServiceJob, address: SocketAddr) -> Result<WatchedService, Failed> {
        if is_open(address) {
            refuse!(
                "--service: something listens at {address} before the service was started; end it, or name another port"
            );
        }
        let mut process = internal::command()?;
        let task = Job::Service(Box::new(job.clone()));
        let mut command = ServerCommand::start_with(&mut process, &task)
            .context("--service: cannot start a process of our own")?;
        let listening = await_listening(command.child(), || Ok(is_open(address).then_some(())))?;
        let line = &job.command;
        match listening {
            Ok(()) => Ok(WatchedService { command, job }),
            Err(NotListening::Ended(status)) => Err(Failed::usage(anyhow!(
                "--service {line:?} ended before it listened at {address} ({}); what it printed is above",
                how(status)
            ))),
            Err(NotListening::TooLate) => Err(Failed::usage(anyhow!(
                "--service {line:?} did not listen at {address} within {} s: the URL has to name its port",
                PATIENCE.as_secs()
            ))),
        }
    }

    /// Whether it ended by itself.
    pub(super) fn has_ended(&mut self) -> bool {
        matches!(self.command.child().try_wait(), Ok(Some(_)))
    }

    /// Ends it; what it sent and opened.
    pub(super) fn end(mut self) -> anyhow::Result<ObservedFacts> {
        let line = self.job.command.clone();
        if let Some(status) = self.command.child().try_wait()? {
            bail!(
                "--service {line:?} ended by itself ({}) before its round was over",
                how(status)
            );
        }
        self.command
            .ask_to_end(EndSignal::Term)
            .with_context(|| format!("--service {line:?}"))?;
        let give_up = Instant::now() + END;
        while self.command.child().try_wait()?.is_none() {
            if Instant::now() > give_up {
                bail!(
                    "--service {line:?} did not end within {} s of SIGTERM, so what it sent is not complete (in a line of several commands, write `exec` before the last one)",
                    END.as_secs()
                );
            }
            std::thread::sleep(GLANCE);
        }
        let reader = Reader::open(&self.job.ledger)
            .with_context(|| format!("--service {line:?}: its record"))?;
        Ok(intact_findings::stored::traffic(&reader)?.facts())
    }
}

fn is_open(address: SocketAddr) -> bool {
    TcpStream::connect_timeout(&address, ATTEMPT).is_ok()
}

#[cfg(test)]
mod tests {
    use super::shell_line;

    #[test]
    fn a_single_command_replaces_the_shell_and_a_list_does_not() {
        assert_eq!(shell_line("PORT=1 node a.js"), "exec env PORT=1 node a.js");
        assert_eq!(
            shell_line("cd a && exec node b.js"),
            "cd a && exec node b.js"
        );
    }
}
