//! `intact link`: runs a command on the client side of an emulated link, with a server on the
//! other.

mod child_process;
mod control;
mod server_side;

use super::builtin::ourselves;
use super::json;
use super::run_header::of_words;
use super::serve;
use crate::console;
use crate::exit::{self, Failed};
use crate::system::WrapperSignals;
use anyhow::Context;
pub(crate) use child_process::ChildProcess;
use control::Control;
use intact_ledger::{Producer, Vantage};
use intact_link::document::{self, Document, LinkRun};
use intact_link::{Link, LinkError, Spec};
use jiff::Timestamp;
pub(crate) use server_side::{Server, ServerSide};
use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::sync::Arc;

/// Runs a command as if its server were elsewhere: an emulated link under the kernel's own TCP.
#[derive(clap::Args)]
#[command(after_help = AFTER)]
pub(crate) struct Args {
    /// What the link is: key=value, separated by commas; see below
    #[arg(value_name = "SPEC")]
    pub(super) spec: Spec,
    /// Run this shell command on the server side, instead of our own server on ports 80 and 443
    #[arg(long, value_name = "CMD")]
    pub(super) server: Option<String>,
    /// The port on which --server listens, and which is waited for [default: 80 or 443]
    #[arg(long, value_name = "PORT", requires = "server")]
    pub(super) port: Option<u16>,
    /// Make a Unix socket that takes changes while CMD runs, one a line: drop=both
    #[arg(long, value_name = "PATH")]
    pub(super) control: Option<PathBuf>,
    /// Have CMD look names up at this name server on the link, port 53; see `intact serve --dns`
    #[arg(long, value_name = "ADDRESS", value_parser = super::resolver::address)]
    pub(super) resolver: Option<IpAddr>,
    /// Write what the link was and did to a file, as JSON
    #[arg(long, value_name = "FILE", require_equals = true)]
    pub(super) json: Option<PathBuf>,
    /// The command and its arguments; all words from the command on are its own
    #[arg(required = true, trailing_var_arg = true, value_name = "CMD")]
    pub(super) command: Vec<OsString>,
    /// Our own server, where it has options.
    #[arg(skip)]
    pub(super) builtin: Option<Box<serve::Config>>,
}

const AFTER: &str = "The link:
  rtt=30ms           round trip, half of it each way
  up=, down=         one-way delays; with rtt one of them gives the other
  jitter=2ms         each packet's delay varies by up to this
                     (reorder=yes: packets may overtake)
  loss=0.1%          packets lost, each way
  rate=100mbit       bits a second, each way (bit, kbit, mbit, gbit)
  drop=both          up, down, both: nothing passes, as around a frozen machine
  nat-idle=350s:rst  a box in the middle forgets flows that idle and then resets
                     them, or with :silent drops their packets
  cc=cubic           congestion control: cubic, host (the host's), or a name
Changes by --control: drop=, rtt=, up=, down=, loss=, forget=flows,
forget=queued (packets on their way).

CMD finds the server by INTACT_URL, INTACT_TLS_URL and INTACT_CA (the
certificate to trust), also by the name server.test. There is nothing else:
localhost is the client side's own, other addresses fail at once.

Exit codes: CMD's own; 128+N after signal N; 4 not permitted here;
125 own failure; 126 CMD not runnable; 127 not found.

Examples:
  intact link rtt=30ms -- sh -c 'curl -s --cacert $INTACT_CA $INTACT_TLS_URL'
  intact link rtt=30ms,loss=0.1% -- intact bench http://server.test/
  intact link up=40ms,down=10ms --server 'caddy run' \\
    -- curl http://server.test/
  intact link rtt=30ms,nat-idle=5s:silent -- node client.js";

/// All that a command on a link depends on.
pub(crate) type Config = super::config::Config<Args>;

/// Runs the command to its end; its exit code is ours.
pub(crate) fn run(config: Config) -> Result<ExitCode, Failed> {
    let started = Timestamp::now();
    let args = config.options;
    let signals = signals()?;
    let link = Arc::new(start(&args.spec, args.resolver)?);
    let server = Server::new(args.server, args.port, args.builtin);
    let far = ServerSide::start(&link, server)?;
    signals.keep();
    let control = args
        .control
        .map(|path| Control::open(path, &link))
        .transpose()
        .map_err(Failed::usage)?;
    console::note_lines(&document::beginning(&link, far.environment()));
    let mut command = Command::new(&args.command[0]);
    command.args(&args.command[1..]);
    for (name, value) in far.environment() {
        command.env(name, value);
    }
    link.enter(intact_link::LinkEnd::Client, &mut command);
    let ended = ChildProcess::start(&mut command, signals)?.wait()?;
    let account = link.account().map_err(anyhow::Error::from)?;
    drop(control);
    let environment = far.environment().to_vec();
    let server = far.end()?;
    console::note_lines(&document::end(&link, &account, server.as_ref()));
    if let Some(path) = &args.json {
        let mut head = of_words(Producer::Link, Vantage::OnPath, started, &config.words);
        head.host = intact_bench::machine::host();
        head.link = Some(args.spec.to_string());
        let done = LinkRun {
            environment,
            ended,
            server,
        };
        let document = Document::new(head, &link, account, done);
        json::write(path, || document.json())?;
    }
    Ok(ExitCode::from(ended.exit_code()))
}

/// The signals of a command on a link: they end this process while the link is made.
pub(crate) fn signals() -> anyhow::Result<WrapperSignals> {
    WrapperSignals::take().context("cannot listen for signals")
}

/// Makes a link, or says why that is not possible here.
pub(crate) fn start(spec: &Spec, resolver: Option<IpAddr>) -> Result<Link, Failed> {
    make(spec, resolver).map_err(|error| {
        let code = match error {
            LinkError::Forbidden { .. } | LinkError::Resolver { .. } | LinkError::Platform => {
                exit::NOT_PERMITTED
            }
            LinkError::Helper(_) | LinkError::Ended => exit::WRAPPER_FAILURE,
        };
        Failed::with_code(code, error)
    })
}

/// Makes a link, kept by a process of ours.
pub(crate) fn make(spec: &Spec, resolver: Option<IpAddr>) -> Result<Link, LinkError> {
    // found before anything is started: the closure has no way to fail
    let ourselves = ourselves()
        .map_err(|error| LinkError::Helper(std::io::Error::other(error)))?
        .get_program()
        .to_owned();
    Link::start(spec, resolver, || {
        let mut helper = Command::new(&ourselves);
        helper.arg("link-keeper");
        helper
    })
}

/// Keeps a link for the process that started us.
pub(crate) fn keep() -> Result<ExitCode, Failed> {
    // the process at the other end sees our end; there is no one else to inform
    Ok(match intact_link::keep() {
        Ok(()) => ExitCode::from(exit::FINE),
        Err(_) => ExitCode::from(exit::INTERNAL_ERROR),
    })
}
