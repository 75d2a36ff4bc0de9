//! The command line of `intact`: arguments, wiring, progress, exit codes. A library only so that man page and completions come
//! from the same definitions.

mod cmd;
mod console;
mod exit;
mod interrupt;

use clap::{CommandFactory, Parser, Subcommand};
use std::ffi::OsString;
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
    /// A short check of a server, then a short bench
    #[command(name = cmd::url::NAME, hide = true)]
    Look(Box<cmd::url::Args>),
    /// For our own use: keeps a link
    #[command(hide = true)]
    LinkKeeper,
}

/// The definition of the command line.
pub fn command() -> clap::Command {
    Cli::command()
}

/// Runs the command that the process was started with.
pub fn main() -> ExitCode {
    let mut words: Vec<OsString> = std::env::args_os().collect();
    if words.get(1).is_some_and(|word| cmd::url::is_url(word)) {
        words.insert(1, cmd::url::NAME.into());
    }
    let done = match Cli::parse_from(words).command {
        None => cmd::demo::run(),
        Some(Command::Bench(args)) => cmd::bench::run(*args),
        Some(Command::Check(args)) => cmd::check::run(*args),
        Some(Command::Audit(args)) => cmd::audit::run(&args),
        Some(Command::Serve(args)) => cmd::serve::run(&args),
        Some(Command::Link(args)) => cmd::link::run(&args),
        Some(Command::Fleet(args)) => cmd::fleet::run(&args),
        Some(Command::Watch(args)) => cmd::watch::run(&args),
        Some(Command::Compare(args)) => cmd::compare::run(&args),
        Some(Command::Lambda(args)) => cmd::lambda::run(&args),
        Some(Command::Fix(args)) => cmd::fix::run(&args),
        Some(Command::Model(args)) => cmd::model::run(&args),
        Some(Command::Report(args)) => cmd::report::run(&args),
        Some(Command::LambdaWatcher(args)) => cmd::lambda::follow(args),
        Some(Command::Look(args)) => cmd::url::run(&args),
        Some(Command::LinkKeeper) => cmd::link::keep(),
    };
    done.unwrap_or_else(|failed| {
        console::note(&format!("intact: {failed}"));
        failed.code()
    })
}
