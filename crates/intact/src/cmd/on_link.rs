//! A bench of our own server across a link: we start the link and the server, and ourselves again on the client side. That child
//! learns of the link by its standard input, and asks there how it went before it prints.

use super::builtin::{Builtin, Ready, ourselves};
use super::link::{self, ChildProcess, document};
use crate::console;
use crate::exit::{self, Failed};
use anyhow::{Context, anyhow};
use intact_ledger::{Caveat, Run};
use intact_link::{Link, LinkEnd, Spec};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{ExitCode, Stdio};

/// What the child is told first.
#[derive(Serialize, Deserialize)]
struct Given {
    ready: Ready,
    link: String,
    congestion: String,
}

/// What it is told when it asks how the link did.
#[derive(Serialize, Deserialize)]
struct Verdict {
    caveats: Vec<Caveat>,
}

/// Runs the bench that the command line asks for on a link.
pub(crate) fn run(spec: &Spec, url: Option<&str>) -> Result<ExitCode, Failed> {
    if let Some(url) = url {
        return Err(Failed::usage(anyhow!(
            "--link is for our own server, and {url} is not on it; to bench another one put both there: intact link {spec} --server CMD -- intact bench http://server.test/"
        )));
    }
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    run_on(&link::start(spec)?, &words)
}

/// Runs `intact WORDS` on the client side of a link, with our server on the other.
pub(crate) fn run_on(link: &Link, words: &[OsString]) -> Result<ExitCode, Failed> {
    let own = |error: anyhow::Error| Failed::wrapper(exit::INTERNAL_ERROR, error);
    console::note(&document::sentence(link));
    let builtin = Builtin::start_on(link, &[]).map_err(own)?;
    let (ours, theirs) = UnixStream::pair()
        .context("cannot talk to the bench on the link")
        .map_err(own)?;
    let mut command = ourselves().map_err(own)?;
    command
        .args(words)
        .arg("--linked")
        .stdin(Stdio::from(OwnedFd::from(theirs)));
    link.enter(LinkEnd::Client, &mut command);
    let bench = ChildProcess::start(&mut command)?;
    // it holds the bench's end, whose closing tells us that the bench has ended
    drop(command);
    answer(&ours, link, builtin.ready()).map_err(own)?;
    let ended = bench.wait()?;
    Ok(ExitCode::from(ended.code()))
}

/// Tells the bench what it needs, until it ends.
fn answer(stream: &UnixStream, link: &Link, ready: &Ready) -> anyhow::Result<()> {
    let given = Given {
        ready: ready.clone(),
        link: link.spec().to_string(),
        congestion: link.congestion().to_owned(),
    };
    let mut stream = stream;
    // a bench that ended early (help, a usage error) reads nothing: its exit code tells all
    if writeln!(stream, "{}", serde_json::to_string(&given)?).is_err() {
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
        if writeln!(stream, "{}", serde_json::to_string(&verdict)?).is_err() {
            break;
        }
    }
    Ok(())
}

/// The child's view: the link that it is on, told by standard input.
pub(crate) struct Near {
    stream: BufReader<UnixStream>,
    given: Given,
}

impl Near {
    /// Takes what we are told.
    pub(crate) fn open() -> anyhow::Result<Near> {
        let stdin = std::io::stdin().as_fd().try_clone_to_owned()?;
        let mut stream = BufReader::new(UnixStream::from(stdin));
        Ok(Near {
            given: read(&mut stream)?,
            stream,
        })
    }

    /// The server at the far end.
    pub(crate) fn ready(&self) -> &Ready {
        &self.given.ready
    }

    /// Notes the link in a run's head.
    pub(crate) fn describe(&self, head: &mut Run) {
        head.link = Some(self.given.link.clone());
        // the sysctl tells the host's; on the link routes choose
        head.host.congestion_control = Some(self.given.congestion.clone());
    }

    /// Why what was measured cannot be trusted, if so.
    pub(crate) fn caveats(mut self) -> anyhow::Result<Vec<Caveat>> {
        writeln!(self.stream.get_mut(), "account").context("the link is gone")?;
        let verdict: Verdict = read(&mut self.stream)?;
        Ok(verdict.caveats)
    }
}

fn read<T: for<'a> Deserialize<'a>>(stream: &mut impl BufRead) -> anyhow::Result<T> {
    let mut line = String::new();
    stream.read_line(&mut line).context("the link is gone")?;
    serde_json::from_str(&line).context("the link is gone")
}
