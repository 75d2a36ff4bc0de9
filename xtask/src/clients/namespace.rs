//! Runs a client in the client namespace of a link, so that its server has a name. Only a name
//! server and a [`Peer`] of the harness listen there, and both record what they receive. The client
//! talks to the harness as usual.
//!
//! `cargo xtask namespace` is the process inside the link; the client's program is its child.

use super::environment::Launch;
use super::name_server::NameServer;
use super::peer::{Peer, Script};
use super::program::Program;
use anyhow::{Context, bail};
use intact_link::{Link, LinkEnd, Spec};
use intact_wire::dns::{A, AAAA};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// The server's name. No one owns `.test` (RFC 6761).
const NAME: &str = "api.names.test";
/// The URL of requests. Each namespace has its own network, so the port is always the same.
pub(super) const URL: &str = "http://api.names.test:8080/names/x";
const PEER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);
/// The name server that the resolv.conf of a link's client side names.
const NAME_SERVER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 53);

/// Arguments of the process inside the link.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// File for the report of the name server and the peer
    #[arg(long)]
    report: PathBuf,
    /// TTL of names, in seconds
    #[arg(long)]
    ttl: u32,
    /// Close the connection after each response
    #[arg(long)]
    closes: bool,
    /// The client's program and its arguments
    #[arg(last = true)]
    words: Vec<OsString>,
}

/// What the name server and the peer received; times since the start of the process.
#[derive(Serialize, Deserialize)]
pub(super) struct ServerReport {
    /// When the server's name was looked up.
    pub(super) lookups: Vec<Duration>,
    /// When requests came, and on which connection.
    pub(super) asked: Vec<(Duration, u64)>,
}

/// Runs inside the link until the client's program ends.
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
    // an exit code adds nothing: the harness notices a program that ends too early
    Command::new(program)
        .args(words)
        .status()
        .with_context(|| program.display().to_string())?;
    // a lookup of any address sends both queries, one after the other or at the same time
    let of = |kind: u16| {
        let questions = names.questions();
        let ours = questions
            .into_iter()
            .filter(|one| one.kind == kind && one.name == NAME);
        ours.map(|one| one.at - begin).collect::<Vec<_>>()
    };
    let (v4, v6) = (of(A), of(AAAA));
    let report = ServerReport {
        lookups: if v4.len() >= v6.len() { v4 } else { v6 },
        asked: peer
            .asked()
            .iter()
            .map(|one| (one.at - begin, one.connection))
            .collect(),
    };
    fs::write(&args.report, serde_json::to_vec(&report)?)?;
    Ok(())
}

/// A client's program inside a link.
pub(super) struct Namespace {
    pub(super) program: Program,
    folder: tempfile::TempDir,
    // the namespaces exist as long as the link
    _link: Link,
}

impl Namespace {
    /// Starts the link and the program in it. Names have a TTL of `ttl_s`. With `closes`, the peer
    /// closes the connection after each response.
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
        .context("measuring lookups needs a link")?;
        if !link.has_names() {
            bail!("measuring lookups needs a mount namespace, which this system forbids");
        }
        let folder = tempfile::tempdir()?;
        let report = folder.path().join("report");
        let mut words = vec![
            "namespace".to_owned(),
            format!("--report={}", report.display()),
            format!("--ttl={ttl_s}"),
        ];
        words.extend(closes.then(|| "--closes".to_owned()));
        words.push("--".to_owned());
        // `xtask` next to `intact`: in a test the current program is another one
        let ours = intact.with_file_name("xtask");
        let mut command = launch.inside(&ours, words.into_iter()).command()?;
        link.enter(LinkEnd::Client, &mut command);
        Ok(Namespace {
            program: Program::start(command)?,
            folder,
            _link: link,
        })
    }

    /// Ends the program and reads the report.
    pub(super) fn end(self) -> anyhow::Result<ServerReport> {
        self.program.end()?;
        let report = fs::read(self.folder.path().join("report")).context(
            "the process inside the link wrote no report: see stderr.log in the client's folder",
        )?;
        Ok(serde_json::from_slice(&report)?)
    }
}
