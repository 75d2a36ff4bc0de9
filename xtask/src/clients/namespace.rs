//! A room where a client's server has a name: on the client side of a link nothing is there but a name server and a peer of ours,
//! and both keep books. The program in it talks to the harness as any other.
//!
//! The room is a process (`cargo xtask room`), started behind the doors of a link, which has the program as its child.

use super::environment::Launch;
use super::name_server::{A, AAAA, NameServer};
use super::peer::{Peer, Script};
use super::program::Program;
use anyhow::{Context, bail};
use intact_link::{Link, LinkEnd, Spec};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// The server's name. No one owns `.test` (RFC 6761).
const NAME: &str = "api.names.test";
/// A request's address: each room has a network of its own, so the port may always be the same.
pub(super) const URL: &str = "http://api.names.test:8080/names/x";
const PEER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);
/// Where the resolv.conf of a link's client side says that a name server is.
const NAME_SERVER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 53);

/// The chore that is the room.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Where the books go at the end
    #[arg(long)]
    books: PathBuf,
    /// How long names hold, in seconds
    #[arg(long)]
    ttl: u32,
    /// Close after each answer
    #[arg(long)]
    closes: bool,
    /// The program and its words
    #[arg(last = true)]
    words: Vec<OsString>,
}

/// What happened in a room, times counted from its beginning.
#[derive(Serialize, Deserialize)]
pub(super) struct ServerReport {
    /// When the server's name was looked up.
    pub(super) lookups: Vec<Duration>,
    /// When requests came, and on which connection.
    pub(super) asked: Vec<(Duration, u64)>,
}

/// Is the room: ends with its program.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let begin = Instant::now();
    let script = Script {
        closes: args.closes,
        ..Script::PLAIN
    };
    let peer = Peer::start_at(PEER, script)?;
    let names = NameServer::start(NAME_SERVER, Ipv4Addr::LOCALHOST, args.ttl)?;
    let Some((program, words)) = args.words.split_first() else {
        bail!("no program");
    };
    // a program that ended too early has shown it by its silence
    Command::new(program)
        .args(words)
        .status()
        .with_context(|| program.display().to_string())?;
    // who wants any address asks for both kinds, one after the other or at once
    let of = |kind: u16| {
        let questions = names.questions();
        let ours = questions
            .into_iter()
            .filter(|one| one.kind == kind && one.name == NAME);
        ours.map(|one| one.at - begin).collect::<Vec<_>>()
    };
    let (v4, v6) = (of(A), of(AAAA));
    let books = ServerReport {
        lookups: if v4.len() >= v6.len() { v4 } else { v6 },
        asked: peer
            .asked()
            .iter()
            .map(|one| (one.at - begin, one.connection))
            .collect(),
    };
    fs::write(&args.books, serde_json::to_vec(&books)?)?;
    Ok(())
}

/// A program in a room.
pub(super) struct Namespace {
    pub(super) program: Program,
    folder: tempfile::TempDir,
    // its namespaces are there as long as it is
    _link: Link,
}

impl Namespace {
    /// Starts both. Names hold for this number of seconds; the server closes after each response, or never.
    pub(super) fn start(
        intact: &Path,
        launch: &Launch,
        ttl_s: u32,
        closes: bool,
    ) -> anyhow::Result<Namespace> {
        let spec: Spec = "rtt=0ms".parse()?;
        let link = Link::start(&spec, None, || {
            let mut helper = Command::new(intact);
            helper.arg("link-keeper");
            helper
        })
        .context("a room needs a link")?;
        if !link.has_names() {
            bail!("a room needs a mount namespace, which is forbidden here");
        }
        let folder = tempfile::tempdir()?;
        let mut words: Vec<OsString> = vec!["room".into(), "--books".into()];
        words.push(folder.path().join("books").into());
        words.extend(["--ttl".into(), ttl_s.to_string().into()]);
        if closes {
            words.push("--closes".into());
        }
        words.push("--".into());
        // this very program, or the one next to a test of it
        let ours = intact.with_file_name("xtask");
        let mut command = launch.inside(&ours, words).command()?;
        link.enter(LinkEnd::Client, &mut command);
        Ok(Namespace {
            program: Program::start(command)?,
            folder,
            _link: link,
        })
    }

    /// Ends the program and reads the books.
    pub(super) fn end(self) -> anyhow::Result<ServerReport> {
        self.program.end()?;
        let books = fs::read(self.folder.path().join("books"))
            .context("the room ended without books: see stderr.log in the client's folder")?;
        Ok(serde_json::from_slice(&books)?)
    }
}
