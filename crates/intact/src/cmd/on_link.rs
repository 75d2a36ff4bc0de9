//! A job on the client side of a link. This process has the link and the server. The job is a
//! process on the client side: it gets its configuration by standard input, and asks there for
//! changes and for the state of the link.

use super::bench;
use super::builtin::{Builtin, Ready};
use super::internal::{self, Control, Job};
use super::link::ChildProcess;
use crate::console;
use crate::exit::Failed;
use crate::system::{self, Channel, WrapperSignals};
use anyhow::Context;
use intact_ledger::{Caveat, Run};
use intact_link::{Blocked, Link, LinkChange, LinkEnd, LinkStats, document};
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader};
use std::process::{Command, ExitCode};

/// The link and the server, as the job has to know them.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Surroundings {
    /// The built-in server, where the job is a bench of it.
    ready: Option<Ready>,
    link: String,
    congestion: String,
}

/// What a job asks of the link.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) enum Asked {
    /// Nothing may pass any more.
    Close,
    /// Everything may pass again.
    Open,
    /// The state of the link; the last question.
    Account,
}

/// The answer to each.
#[derive(Serialize, Deserialize)]
struct Answer {
    /// Of [`Asked::Account`].
    caveats: Vec<Caveat>,
}

impl Surroundings {
    /// This link, with the built-in server where it is known.
    pub(super) fn of(link: &Link, ready: Option<&Ready>) -> Surroundings {
        Surroundings {
            ready: ready.cloned(),
            link: link.spec().to_string(),
            congestion: link.facts().congestion.clone(),
        }
    }
}

/// Runs a bench on the client side of a link, with the built-in server on the other.
pub(super) fn run(
    link: &Link,
    signals: WrapperSignals,
    config: bench::Config,
) -> Result<ExitCode, Failed> {
    console::note_lines(&document::sentence(link));
    let server = bench::server_config(&config.options)?;
    let builtin = Builtin::start_on(link, server)?;
    let surroundings = Surroundings::of(link, Some(builtin.ready()));
    let job = Job::Bench(Box::new(config), surroundings);
    let end = |account: &LinkStats| console::note_lines(&document::end(link, account, None));
    run_job(link, signals, internal::command()?, &job, end)
}

/// Runs a job by this command on the client side of a link; the exit code of its process. `account`
/// is called with the state of the link when the job asks for it, `own` makes our own failures.
pub(super) fn run_job(
    link: &Link,
    signals: WrapperSignals,
    mut command: Command,
    job: &Job,
    account: impl Fn(&LinkStats),
) -> Result<ExitCode, Failed> {
    let (ours, theirs) = system::channel().context("cannot talk to the process on the link")?;
    command.stdin(theirs);
    link.enter(LinkEnd::Client, &mut command);
    let child = ChildProcess::start(&mut command, signals)?;
    // it holds the child's end, which must close when the child ends
    drop(command);
    answer(&ours, link, job, account)?;
    Ok(ExitCode::from(child.wait()?.exit_code()))
}

/// Sends the job, then does what it asks until it ends.
fn answer(
    mut stream: &Channel,
    link: &Link,
    job: &Job,
    account: impl Fn(&LinkStats),
) -> anyhow::Result<()> {
    // a process that ended early reads nothing; its exit code says why
    if internal::send(job, &mut stream).is_err() {
        return Ok(());
    }
    for line in BufReader::new(stream).lines() {
        let Ok(line) = line else { break };
        let mut caveats = Vec::new();
        match serde_json::from_str(&line).context("the process on the link")? {
            Asked::Close => link.change(&LinkChange::freeze(Blocked::Both))?,
            Asked::Open => link.change(&LinkChange::freeze(link.spec().drop))?,
            Asked::Account => {
                let stats = link.account()?;
                account(&stats);
                caveats = document::caveats(link, &stats);
            }
        }
        if internal::send(&Answer { caveats }, &mut stream).is_err() {
            break;
        }
    }
    Ok(())
}

/// The job's view of the link that it is on.
pub(crate) struct Near {
    control: Control,
    surroundings: Surroundings,
}

impl Near {
    /// A link that is described so; `control` reaches the process that has it.
    pub(super) fn new(control: Control, surroundings: Surroundings) -> Near {
        Near {
            control,
            surroundings,
        }
    }

    /// The built-in server at the far end.
    pub(super) fn ready(&self) -> Option<&Ready> {
        self.surroundings.ready.as_ref()
    }

    /// Notes the link in a run's head.
    pub(super) fn describe(&self, head: &mut Run) {
        head.link = Some(self.surroundings.link.clone());
        // the sysctl has the host's; on the link routes choose
        head.host.congestion_control = Some(self.surroundings.congestion.clone());
    }

    /// What limits the measurement, by the state of the link.
    pub(super) fn caveats(&mut self) -> anyhow::Result<Vec<Caveat>> {
        self.ask(Asked::Account)
    }

    /// Asks the process that has the link.
    pub(super) fn ask(&mut self, asked: Asked) -> anyhow::Result<Vec<Caveat>> {
        internal::send(&asked, self.control.get_mut()).context("the link is gone")?;
        let answer: Answer = internal::receive(&mut self.control).context("the link is gone")?;
        Ok(answer.caveats)
    }
}
