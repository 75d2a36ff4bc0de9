//! The command line of `intact`: arguments, wiring, progress, exit codes. A library only so that man page and completions come
//! from the same definitions.

mod cmd;
mod console;
mod exit;
mod interrupt;

use crate::exit::Failed;
use clap::{CommandFactory, Parser, Subcommand};
use std::process::ExitCode;

/// Finds, measures and fixes HTTP connections that are not reused.
#[derive(Parser)]
#[command(version, about, after_help = AFTER)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
}

const AFTER: &str = "Examples:
  intact                                         keep-alive on against off, on the built-in server, 30 ms away
  intact check https://my.server/                does a server keep connections alive?
  intact watch -- node server.js                 does a program reuse them?
  intact bench https://my.server/health          what does a new connection per request cost?

Without a command: the demonstration, a bench of the built-in server, about 15 s.
With a URL in its place (intact https://my.server/): a short check, then a short bench.

Exit codes: 0 fine; 1 a requirement failed; 2 usage; 3 nothing succeeded; 4 not permitted here; 5 input unreadable;
70 own error; 130, 143, 129 after Ctrl-C, SIGTERM, SIGHUP (what was measured is printed and written first)";

#[derive(Subcommand)]
enum Command {
    /// What does a new connection per request cost, and what does each remedy save?
    Bench(Box<cmd::bench::Args>),
    /// Does this server keep connections alive, how long, for how many requests?
    Check(Box<cmd::check::Args>),
    /// Did connections get reused in this capture, HAR file or access log?
    Audit(Box<cmd::audit::Args>),
    /// An instrumented server to try it all on
    Serve(Box<cmd::serve::Args>),
    /// Runs a command as if its server were 30 ms away: an emulated link under the kernel's own TCP
    Link(cmd::link::Args),
    /// The same measurements at scale: queue, workers, store
    Fleet(Box<cmd::fleet::Args>),
    /// Does my program reuse its connections?
    Watch(Box<cmd::watch::Args>),
    /// Did my fix help? Programs side by side, or stored ledgers
    Compare(Box<cmd::compare::Args>),
    /// What do cold starts, warm calls and the freeze in between do to the connections of my function?
    Lambda(Box<cmd::lambda::Args>),
    /// How is connection reuse turned on in my client library?
    Fix(cmd::fix::Args),
    /// What would connection reuse change in a chain of services?
    Model(cmd::model::Args),
    /// Prints the report of a stored ledger
    Report(cmd::report::Args),
    /// For our own use: follows the connections of a function
    #[command(hide = true)]
    LambdaWatcher(cmd::lambda::WatcherArgs),
    /// For our own use: keeps a link
    #[command(hide = true)]
    LinkKeeper,
    /// For our own use: does a job that standard input names
    #[command(hide = true)]
    Internal,
}

/// `intact URL`: a short check of a server, then a short bench
#[derive(Parser)]
#[command(name = "intact", version)]
struct OfUrl {
    #[command(flatten)]
    args: cmd::url::Args,
}

/// The definition of the command line.
pub fn command() -> clap::Command {
    Cli::command()
}

/// Runs the command that the process was started with.
pub fn main() -> ExitCode {
    let is_url = std::env::args_os()
        .nth(1)
        .is_some_and(|word| cmd::url::is_url(&word));
    let done = if is_url {
        cmd::url::run(OfUrl::parse().args.into())
    } else {
        run(Cli::parse())
    };
    done.unwrap_or_else(|failed| {
        console::note(&format!("intact: {failed}"));
        failed.code()
    })
}

/// The job of a server with these options, for the standard input of `intact internal`: it listens on free ports, prints a line of
/// JSON when ready, and its tally when standard input ends. For tests of this workspace.
pub fn server_job(options: &[&str]) -> anyhow::Result<String> {
    let config = cmd::serve::Config::with_options(options)?;
    let mut job = Vec::new();
    cmd::internal::send(&cmd::internal::Job::Serve(Box::new(config)), &mut job)?;
    Ok(String::from_utf8(job)?)
}

fn run(line: Cli) -> Result<ExitCode, Failed> {
    match line.command {
        None => cmd::demo::run(),
        Some(Command::Bench(args)) => cmd::bench::run((*args).into()),
        Some(Command::Check(args)) => cmd::check::run((*args).into()),
        Some(Command::Audit(args)) => cmd::audit::run(&(*args).into()),
        Some(Command::Serve(args)) => cmd::serve::run((*args).into()),
        Some(Command::Link(args)) => cmd::link::run(args.into()),
        Some(Command::Fleet(args)) => cmd::fleet::run(&args),
        Some(Command::Watch(args)) => cmd::watch::run(&(*args).into()),
        Some(Command::Compare(args)) => cmd::compare::run(&(*args).into()),
        Some(Command::Lambda(args)) => cmd::lambda::run((*args).into()),
        Some(Command::Fix(args)) => cmd::fix::run(&args.into()),
        Some(Command::Model(args)) => cmd::model::run(&args.into()),
        Some(Command::Report(args)) => cmd::report::run(&args.into()),
        Some(Command::LambdaWatcher(args)) => cmd::lambda::follow(args),
        Some(Command::LinkKeeper) => cmd::link::keep(),
        Some(Command::Internal) => cmd::internal::run(),
    }
}
