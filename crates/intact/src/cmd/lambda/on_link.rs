//! A function behind a link. This process has the link and the server. The function and its Runtime API are in a process on the
//! client side: it gets its [`Config`] by standard input, and asks there that the link drops everything while the function is
//! frozen.

use super::Config;
use crate::cmd::internal::{self, Control, Job, receive, send};
use crate::cmd::link::{self, ChildProcess, Server, ServerSide};
use crate::console;
use crate::exit::{self, Failed};
use anyhow::Context;
use intact_lambda::FreezeHook;
use intact_ledger::{Caveat, Run};
use intact_link::document;
use intact_link::{Blocked, Link, LinkChange, LinkEnd, Spec};
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{ExitCode, Stdio};

/// The link, as the process on it has to know it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Surroundings {
    link: String,
    congestion: String,
}

/// What the child asks.
#[derive(Clone, Copy, Serialize, Deserialize)]
enum Asked {
    /// Nothing may pass any more.
    Close,
    /// Everything may pass again.
    Open,
    /// How the link did; the last question.
    Account,
}

/// The answer to each.
#[derive(Serialize, Deserialize)]
struct LinkedResult {
    /// Of [`Asked::Account`].
    caveats: Vec<Caveat>,
}

/// Runs a function on the client side of a link, with a server on the other; the exit code of its process.
pub(super) fn run(spec: &Spec, server: Server, config: Config) -> Result<ExitCode, Failed> {
    let own = |error: anyhow::Error| Failed::wrapper(exit::WRAPPER_FAILURE, error);
    let link = link::start(spec).inspect_err(|_| {
        console::note("without --link the function runs and is stopped between invocations all the same; not emulated are then the round trip and the network that does not answer for it");
    })?;
    let far = ServerSide::start(&link, server).map_err(own)?;
    console::note(&document::beginning(&link, far.environment()));
    let (ours, theirs) = UnixStream::pair()
        .context("cannot talk to the platform on the link")
        .map_err(own)?;
    let mut command = internal::command().map_err(own)?;
    command.stdin(Stdio::from(OwnedFd::from(theirs)));
    for (name, value) in far.environment() {
        command.env(name, value);
    }
    link.enter(LinkEnd::Client, &mut command);
    let platform = ChildProcess::start(&mut command)?;
    // it holds the platform's end, whose closing tells us that the platform has ended
    drop(command);
    let surroundings = Surroundings {
        link: link.spec().to_string(),
        congestion: link.congestion().to_owned(),
    };
    let job = Job::Lambda(Box::new(config), surroundings);
    obey(&ours, &link, &job).map_err(own)?;
    let ended = platform.wait()?;
    let served = far.end().map_err(own)?;
    let account = link.account().context("the link").map_err(own)?;
    console::note(&document::end(&link, &account, served.as_ref()));
    Ok(ExitCode::from(ended.exit_code()))
}

/// Sends the job, then does what the process asks, until it ends.
fn obey(mut stream: &UnixStream, link: &Link, job: &Job) -> anyhow::Result<()> {
    // a process that ended early reads nothing; its exit code says why
    if send(job, &mut stream).is_err() {
        return Ok(());
    }
    for line in BufReader::new(stream).lines() {
        let Ok(line) = line else { break };
        let asked = serde_json::from_str(&line).context("the platform on the link")?;
        let mut caveats = Vec::new();
        match asked {
            Asked::Close => link.change(&LinkChange::freeze(Blocked::Both))?,
            Asked::Open => link.change(&LinkChange::freeze(link.spec().drop))?,
            Asked::Account => caveats = document::caveats(link, &link.account()?),
        }
        if send(&LinkedResult { caveats }, &mut stream).is_err() {
            break;
        }
    }
    Ok(())
}

/// The view of the link from the process that is on it.
pub(super) struct Near {
    control: Control,
    surroundings: Surroundings,
    /// Whether a frozen function is cut off.
    drops: bool,
}

impl Near {
    /// A link that is described so; `control` reaches the process that has it.
    pub(super) fn new(control: Control, surroundings: Surroundings, drops: bool) -> Near {
        Near {
            control,
            surroundings,
            drops,
        }
    }

    /// Notes the link in a run's head.
    pub(super) fn describe(&self, head: &mut Run) {
        head.link = Some(self.surroundings.link.clone());
        head.host.congestion_control = Some(self.surroundings.congestion.clone());
    }

    /// Why what was measured cannot be trusted, if so.
    pub(super) fn caveats(&mut self) -> anyhow::Result<Vec<Caveat>> {
        self.ask(Asked::Account)
    }

    fn ask(&mut self, asked: Asked) -> anyhow::Result<Vec<Caveat>> {
        send(&asked, self.control.get_mut()).context("the link is gone")?;
        let done: LinkedResult = receive(&mut self.control).context("the link is gone")?;
        Ok(done.caveats)
    }
}

impl FreezeHook for Near {
    fn close(&mut self) -> io::Result<()> {
        if self.drops {
            self.ask(Asked::Close).map_err(io::Error::other)?;
        }
        Ok(())
    }

    fn open(&mut self) -> io::Result<()> {
        if self.drops {
            self.ask(Asked::Open).map_err(io::Error::other)?;
        }
        Ok(())
    }
}
