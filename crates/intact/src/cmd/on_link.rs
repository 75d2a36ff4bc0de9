//! A bench of the built-in server across a link. This process has the link and the server. The bench is a process on the client
//! side: it gets its [`bench::Config`] by standard input, and asks there for the state of the link before it prints.

use super::bench;
use super::builtin::{Builtin, Ready};
use super::internal::{self, Control, Job};
use super::link::ChildProcess;
use super::serve;
use crate::console;
use crate::exit::{self, Failed};
use anyhow::Context;
use intact_ledger::{Caveat, Run};
use intact_link::document;
use intact_link::{Link, LinkEnd};
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{ExitCode, Stdio};

/// The link and the server, as the bench has to know them.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Surroundings {
    ready: Ready,
    link: String,
    congestion: String,
}

/// The response to a question about the link.
#[derive(Serialize, Deserialize)]
struct Verdict {
    caveats: Vec<Caveat>,
}

/// Runs a bench on the client side of a link, with the built-in server on the other.
pub(super) fn run(link: &Link, config: bench::Config) -> Result<ExitCode, Failed> {
    let own = |error: anyhow::Error| Failed::wrapper(exit::INTERNAL_ERROR, error);
    console::note(&document::sentence(link));
    let builtin = Builtin::start_on(link, serve::Config::of_builtin()).map_err(own)?;
    let (ours, theirs) = UnixStream::pair()
        .context("cannot talk to the bench on the link")
        .map_err(own)?;
    let mut command = internal::command().map_err(own)?;
    command.stdin(Stdio::from(OwnedFd::from(theirs)));
    link.enter(LinkEnd::Client, &mut command);
    let bench = ChildProcess::start(&mut command)?;
    // it holds the bench's end, which must close when the bench ends
    drop(command);
    let surroundings = Surroundings {
        ready: builtin.ready().clone(),
        link: link.spec().to_string(),
        congestion: link.congestion().to_owned(),
    };
    let job = Job::Bench(Box::new(config), surroundings);
    answer(&ours, link, &job).map_err(own)?;
    let ended = bench.wait()?;
    Ok(ExitCode::from(ended.exit_code()))
}

/// Sends the job, then answers questions about the link until the bench ends.
fn answer(mut stream: &UnixStream, link: &Link, job: &Job) -> anyhow::Result<()> {
    // a bench that ended early reads nothing; its exit code says why
    if internal::send(job, &mut stream).is_err() {
        return Ok(());
    }
    for line in BufReader::new(stream).lines() {
        if line.is_err() {
            break;
        }
        let account = link.account()?;
        console::note(&document::end(link, &account, None));
        let verdict = Verdict {
            caveats: document::caveats(link, &account),
        };
        if internal::send(&verdict, &mut stream).is_err() {
            break;
        }
    }
    Ok(())
}

/// The bench's view of the link that it is on.
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

    /// The server at the far end.
    pub(super) fn ready(&self) -> &Ready {
        &self.surroundings.ready
    }

    /// Notes the link in a run's head.
    pub(super) fn describe(&self, head: &mut Run) {
        head.link = Some(self.surroundings.link.clone());
        // the sysctl has the host's; on the link routes choose
        head.host.congestion_control = Some(self.surroundings.congestion.clone());
    }

    /// What limits the measurement, by the state of the link.
    pub(super) fn caveats(mut self) -> anyhow::Result<Vec<Caveat>> {
        writeln!(self.control.get_mut(), "account").context("the link is gone")?;
        let verdict: Verdict = internal::receive(&mut self.control).context("the link is gone")?;
        Ok(verdict.caveats)
    }
}
