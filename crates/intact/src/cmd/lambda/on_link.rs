//! A function behind a link: we start the link and the server, and ourselves again on the client side, where the function and its
//! Runtime API are. That child asks us, by its standard input, to drop everything while the function is frozen.

use crate::cmd::builtin::ourselves;
use crate::cmd::link::{self, ChildProcess, Server, ServerSide, document};
use crate::console;
use crate::exit::{self, Failed};
use anyhow::{Context, bail};
use intact_lambda::FreezeHook;
use intact_ledger::{Caveat, Run};
use intact_link::{Blocked, Link, LinkChange, LinkEnd, Spec};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{ExitCode, Stdio};

/// What the child is told first.
#[derive(Serialize, Deserialize)]
struct Given {
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

/// Runs `intact lambda` again on the client side of a link, with a server on the other; its exit code.
pub(super) fn run(spec: &Spec, server: Server) -> Result<ExitCode, Failed> {
    let own = |error: anyhow::Error| Failed::wrapper(exit::WRAPPER_FAILURE, error);
    let link = link::start(spec).inspect_err(|_| {
        console::note("without --link the function runs and is stopped between invocations all the same; not emulated are then the round trip and the network that does not answer for it");
    })?;
    let far = ServerSide::start(&link, server).map_err(own)?;
    console::note(&document::beginning(&link, &far));
    let (ours, theirs) = UnixStream::pair()
        .context("cannot talk to the platform on the link")
        .map_err(own)?;
    let words: Vec<OsString> = std::env::args_os().skip(2).collect();
    let mut command = ourselves().map_err(own)?;
    command
        .args(["lambda", "--linked"])
        .args(words)
        .stdin(Stdio::from(OwnedFd::from(theirs)));
    for (name, value) in far.environment() {
        command.env(name, value);
    }
    link.enter(LinkEnd::Client, &mut command);
    let platform = ChildProcess::start(&mut command)?;
    // it holds the platform's end, whose closing tells us that the platform has ended
    drop(command);
    obey(&ours, &link).map_err(own)?;
    let ended = platform.wait()?;
    let served = far.end().map_err(own)?;
    let account = link.account().context("the link").map_err(own)?;
    console::note(&document::end(&link, &account, served.as_ref()));
    Ok(ExitCode::from(ended.code()))
}

/// Does what the child asks, until it ends.
fn obey(stream: &UnixStream, link: &Link) -> anyhow::Result<()> {
    let given = Given {
        link: link.spec().to_string(),
        congestion: link.congestion().to_owned(),
    };
    // one that ended early (a usage error) reads nothing: its exit code tells all
    if tell(stream, &given).is_err() {
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
        if tell(stream, &LinkedResult { caveats }).is_err() {
            break;
        }
    }
    Ok(())
}

fn tell(mut stream: &UnixStream, told: &impl Serialize) -> anyhow::Result<()> {
    Ok(writeln!(stream, "{}", serde_json::to_string(told)?)?)
}

/// The child's view of the link that it is on.
pub(super) struct Near {
    stream: BufReader<UnixStream>,
    given: Given,
    /// Whether a frozen function is cut off.
    drops: bool,
}

impl Near {
    /// Takes what we are told.
    pub(super) fn open(drops: bool) -> anyhow::Result<Near> {
        let stdin = io::stdin().as_fd().try_clone_to_owned()?;
        let mut stream = BufReader::new(UnixStream::from(stdin));
        let given = read(&mut stream)?;
        Ok(Near {
            stream,
            given,
            drops,
        })
    }

    /// Notes the link in a run's head.
    pub(super) fn describe(&self, head: &mut Run) {
        head.link = Some(self.given.link.clone());
        head.host.congestion_control = Some(self.given.congestion.clone());
    }

    /// Why what was measured cannot be trusted, if so.
    pub(super) fn caveats(&mut self) -> anyhow::Result<Vec<Caveat>> {
        self.ask(Asked::Account)
    }

    fn ask(&mut self, asked: Asked) -> anyhow::Result<Vec<Caveat>> {
        tell(self.stream.get_ref(), &asked).context("the link is gone")?;
        let done: LinkedResult = read(&mut self.stream)?;
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

fn read<T: for<'a> Deserialize<'a>>(stream: &mut impl BufRead) -> anyhow::Result<T> {
    let mut line = String::new();
    if stream.read_line(&mut line)? == 0 {
        bail!("the link is gone");
    }
    serde_json::from_str(&line).context("the link is gone")
}
