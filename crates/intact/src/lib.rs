//! The command line of `intact`: arguments, wiring, progress, exit codes. A library only so that
//! man page and completions come from the same definitions.

mod cmd;
mod console;
mod exit;
mod interrupt;
mod system;

use crate::exit::Failed;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser, Subcommand};
use intact_ledger::redact;
use std::process::ExitCode;

/// Finds, measures and fixes HTTP connections that are not reused.
#[derive(Parser)]
#[command(bin_name = "intact", version, about, after_help = AFTER, disable_help_subcommand = true)]
struct Cli {
    /// Record command lines as they are, with their secrets
    #[arg(long, global = true)]
    record_argv: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

const AFTER: &str = "Examples:
  # a demonstration: keep-alive on and off, 30 ms away (15 s)
  intact
  # does a program reuse its connections?
  intact watch -- node server.js
  # a short check of a server, then a short bench
  intact https://my.server/health
  # what to do about 502s, ECONNRESET, a slow function, ...
  intact help guide

Exit codes: 0 fine; 1 a requirement failed; 2 usage; 3 nothing succeeded;
4 not permitted here; 5 input unreadable; 70 own error, or output not written;
130, 131, 143, 129 after Ctrl-C, SIGQUIT, SIGTERM, SIGHUP, with what was measured";

#[derive(Subcommand)]
enum Command {
    /// Does my program reuse its connections?
    Watch(Box<cmd::watch::Args>),
    /// Does a server keep connections? How long, for how many requests?
    Check(Box<cmd::check::Args>),
    /// What does a new connection per request cost, and what saves it?
    Bench(Box<cmd::bench::Args>),
    /// Did my fix help? Programs side by side, or stored ledgers
    Compare(Box<cmd::compare::Args>),
    /// Were connections reused in this capture, HAR file or access log?
    Audit(Box<cmd::audit::Args>),
    /// How do I turn reuse on in my client library?
    Fix(cmd::fix::Args),
    /// What do cold, warm and frozen invocations do to connections?
    Lambda(Box<cmd::lambda::Args>),
    /// What would reuse change in a chain of services?
    Model(cmd::model::Args),
    /// Bench or check from many machines: scheduler, workers, store
    #[cfg(feature = "fleet")]
    Fleet(Box<cmd::fleet::Args>),
    /// How does a command behave if its server is 30 ms away?
    Link(cmd::link::Args),
    /// A server to try it on, with limits, faults and its own count
    Serve(Box<cmd::serve::Args>),
    /// Print the page of a stored run
    Report(cmd::report::Args),
    /// Print the completions of a shell
    Completions(cmd::completions::Args),
    /// Print the manual page of a command
    Man(cmd::man::Args),
    /// Print the help of a command, a page of the guide, or all as JSON
    Help(cmd::help::Args),
}

impl Command {
    /// Whether the exit code is that of a program.
    fn is_wrapper(&self) -> bool {
        matches!(
            self,
            Command::Watch(_) | Command::Compare(_) | Command::Link(_) | Command::Lambda(_)
        )
    }
}

/// The processes that `intact` starts itself. They are no part of [`Cli`], so that no help, error
/// or completion names them.
#[derive(Parser)]
#[command(name = "intact")]
enum OwnProcess {
    /// Follows the connections of a function
    LambdaWatcher(cmd::lambda::WatcherArgs),
    /// Keeps a link
    LinkKeeper,
    /// Does a job that standard input names
    Internal,
}

/// `intact URL`: a short check of a server, then a short bench
#[derive(Parser)]
#[command(name = "intact", bin_name = "intact", version)]
struct OfUrl {
    #[command(flatten)]
    args: cmd::url::Args,
}

/// The definition of the command line.
pub fn command() -> clap::Command {
    Cli::command()
}

/// What `intact help --json` prints.
///
/// # Errors
/// Never: the document is plain data.
pub fn help_json() -> serde_json::Result<String> {
    cmd::help::as_json()
}

/// Runs the command that the process was started with.
pub fn main() -> ExitCode {
    system::survive_full_files();
    let first = std::env::args_os().nth(1).unwrap_or_default();
    let mut is_wrapper = false;
    let parsed = if cmd::url::is_url(&first) {
        OfUrl::try_parse().map(|one| cmd::url::run(one.args))
    } else if first.to_str().is_some_and(OwnProcess::has_subcommand) {
        OwnProcess::try_parse().map(run_own)
    } else {
        Cli::try_parse().map(|line| {
            is_wrapper = line.command.as_ref().is_some_and(Command::is_wrapper);
            run(line)
        })
    };
    let code = match parsed {
        Ok(Ok(code)) => code,
        Ok(Err(failed)) if is_wrapper => failed.of_wrapper().report(),
        Ok(Err(failed)) => failed.report(),
        Err(error) => refuse(error),
    };
    exit::with_outputs(code, is_wrapper)
}

/// Prints the help that was asked for, or why the command line makes no sense.
fn refuse(error: clap::Error) -> ExitCode {
    let error = with_tip_for_foreign_options(without_secrets(error));
    let code = console::print_clap(&with_remedy(without_hidden_names(error)));
    ExitCode::from(u8::try_from(code).unwrap_or(exit::USAGE))
}

/// The same error, without a value that may be a secret: that of such an option, or a word that
/// belongs to no option.
fn without_secrets(mut error: clap::Error) -> clap::Error {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    };
    let argument = text(ContextKind::InvalidArg).unwrap_or_default();
    let option = argument.split([' ', '=']).next().unwrap_or_default();
    let (kind, shown) = match text(ContextKind::InvalidValue) {
        _ if error.kind() == ErrorKind::UnknownArgument => {
            (ContextKind::InvalidArg, redact::stray(&argument))
        }
        Some(value) if redact::hides_values(option) => {
            (ContextKind::InvalidValue, redact::value_of(option, &value))
        }
        _ => return error,
    };
    error.insert(kind, ContextValue::String(shown));
    error
}

/// The same error, without the suggestion of an option that the help does not show.
fn without_hidden_names(mut error: clap::Error) -> clap::Error {
    let suggested = match error.get(ContextKind::SuggestedArg) {
        Some(ContextValue::String(name)) => name.trim_start_matches('-').to_owned(),
        _ => return error,
    };
    let mut commands = vec![Cli::command()];
    while let Some(command) = commands.pop() {
        let mut options = command.get_arguments();
        if options.any(|one| one.is_hide_set() && one.get_long() == Some(&suggested)) {
            error.remove(ContextKind::SuggestedArg);
            break;
        }
        commands.extend(command.get_subcommands().cloned());
    }
    error
}

/// The same error, with what does it here where an option of other tools was given.
fn with_tip_for_foreign_options(mut error: clap::Error) -> clap::Error {
    let option = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(option)) if error.kind() == ErrorKind::UnknownArgument => option,
        _ => return error,
    };
    let mut words = std::env::args().skip(1);
    let first = words.next().unwrap_or_default();
    let is_command = Command::has_subcommand(&first);
    let url = words.find(|word| cmd::url::is_url(word.as_ref()));
    let command = if is_command { first.as_str() } else { "" };
    let tip = match (cmd::foreign_options::tip(command, option), url) {
        (Some(tip), _) => tip.to_owned(),
        (None, Some(_)) if first.starts_with('-') => {
            "the URL comes first: intact URL [OPTIONS]".to_owned()
        }
        _ => return error,
    };
    error.remove(ContextKind::SuggestedArg);
    error.remove(ContextKind::SuggestedValue);
    // it names the option that was suggested
    error.remove(ContextKind::Usage);
    error.insert(
        ContextKind::Suggested,
        ContextValue::StyledStrs(vec![tip.into()]),
    );
    error
}

/// The same error, with what to do where an option of runs was given for stored ledgers.
fn with_remedy(mut error: clap::Error) -> clap::Error {
    let has = |value: Option<&ContextValue>, name: &str| match value {
        Some(ContextValue::String(one)) => one.contains(name),
        Some(ContextValue::Strings(all)) => all.iter().any(|one| one.contains(name)),
        _ => false,
    };
    let is_watch = std::env::args().nth(1).is_some_and(|word| word == "watch");
    let names = [ContextKind::InvalidArg, ContextKind::PriorArg];
    let names_folders = names.iter().any(|kind| has(error.get(*kind), "[DIR]"));
    let remedy = match error.kind() {
        ErrorKind::NoEquals if has(error.get(ContextKind::InvalidArg), "--json") => {
            "standard output belongs to the program: --json=FILE writes a file"
        }
        ErrorKind::MissingRequiredArgument if is_watch => {
            "name a program to run, or one that runs: --pid, --name, --unit, --container"
        }
        ErrorKind::ArgumentConflict if names_folders => {
            "stored ledgers are compared as they were recorded: pass the option to `intact watch`, or run both programs, `intact compare -- CMD_A -- CMD_B`"
        }
        _ => return error,
    };
    let tip = ContextValue::StyledStrs(vec![remedy.into()]);
    error.insert(ContextKind::Suggested, tip);
    error
}

/// The job of a server with these options, for the standard input of `intact internal`: it listens
/// on free ports, prints a line of JSON when ready, and its tally when standard input ends. For
/// tests of this workspace.
pub fn server_job(options: &[&str]) -> anyhow::Result<String> {
    let config = cmd::serve::Config::with_options(options)?;
    let mut job = Vec::new();
    cmd::internal::send(&cmd::internal::Job::Serve(Box::new(config)), &mut job)?;
    Ok(String::from_utf8(job)?)
}

/// The schemas of all JSON documents: the name of the file in docs/reference/schema, and its
/// content. For tests of this workspace.
#[cfg(feature = "schema")]
pub fn schemas() -> Vec<(&'static str, schemars::Schema)> {
    use intact_report::schema;
    let mut all = schema::all();
    let link = schema::of::<intact_link::document::Document<'_>>(
        intact_link::document::SCHEMA,
        "`intact link`",
    );
    let serve = schema::of::<intact_serve::Totals>("intact.serve/1", "`intact serve`");
    let help = schema::of::<cmd::help::HelpDocument>(cmd::help::SCHEMA, "`intact help --json`");
    all.extend([("help", help), ("link", link), ("serve", serve)]);
    #[cfg(feature = "fleet")]
    all.push(("fleet", cmd::fleet::schema()));
    all
}

/// Runs the command of these words.
fn run_words(words: Vec<std::ffi::OsString>) -> Result<ExitCode, Failed> {
    match Cli::try_parse_from(words) {
        Ok(line) => run(line),
        Err(error) => Ok(refuse(error)),
    }
}

fn run(line: Cli) -> Result<ExitCode, Failed> {
    if line.record_argv {
        redact::show_command_lines();
    }
    match line.command {
        None => cmd::demo::run(),
        Some(Command::Bench(args)) => cmd::bench::run((*args).into()),
        Some(Command::Check(args)) => cmd::check::run((*args).into()),
        Some(Command::Audit(args)) => cmd::audit::run(&(*args).into()),
        Some(Command::Serve(args)) => cmd::serve::run((*args).into()),
        Some(Command::Link(args)) => cmd::link::run(args.into()),
        #[cfg(feature = "fleet")]
        Some(Command::Fleet(args)) => cmd::fleet::run(&args),
        Some(Command::Watch(args)) => cmd::watch::run(&(*args).into()),
        Some(Command::Compare(args)) => cmd::compare::run(&(*args).into()),
        Some(Command::Lambda(args)) => cmd::lambda::run((*args).into()),
        Some(Command::Fix(args)) => cmd::fix::run(&args.into()),
        Some(Command::Model(args)) => cmd::model::run(&args.into()),
        Some(Command::Report(args)) => cmd::report::run(&args.into()),
        Some(Command::Completions(args)) => cmd::completions::run(&args),
        Some(Command::Man(args)) => cmd::man::run(&args),
        Some(Command::Help(args)) => cmd::help::run(args),
    }
}

fn run_own(process: OwnProcess) -> Result<ExitCode, Failed> {
    match process {
        OwnProcess::LambdaWatcher(args) => cmd::lambda::follow(args),
        OwnProcess::LinkKeeper => cmd::link::keep(),
        OwnProcess::Internal => cmd::internal::run(),
    }
}
