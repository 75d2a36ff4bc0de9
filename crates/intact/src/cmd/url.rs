//! `intact URL`: a short check, then a short bench.

use super::connect_options::ConnectOptions;
use super::expect::Expect;
use super::{bench, check};
use crate::console;
use crate::exit::{self, Failed};
use clap::Parser;
use intact_dial::ServerUrl;
use std::ffi::{OsStr, OsString};
use std::process::ExitCode;

/// The subcommand that a URL in its place stands for.
pub(crate) const NAME: &str = "look";

/// A short check of a server, then a short bench
#[derive(clap::Args)]
pub(crate) struct Args {
    /// URL to look at
    url: String,
    /// Header field, may be repeated
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    headers: Vec<String>,
    #[command(flatten)]
    expect: Expect,
    #[command(flatten)]
    reach: ConnectOptions,
}

/// Whether a word in the place of a command is a URL and no misspelt command: it has a scheme, a port, a path or a domain.
pub(crate) fn is_url(word: &OsStr) -> bool {
    word.to_str().is_some_and(|word| {
        !word.starts_with('-') && (word == "localhost" || word.contains(['.', ':', '/']))
    })
}

/// Runs both, with the options that both have.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failed> {
    #[derive(Parser)]
    struct Checked {
        #[command(flatten)]
        args: check::Args,
    }
    #[derive(Parser)]
    struct Benched {
        #[command(flatten)]
        args: bench::Args,
    }
    ServerUrl::parse(&args.url).map_err(Failed::usage)?;
    let words = words();
    let short = words.iter().cloned().chain(["--no-idle".into()]);
    let checked = check::run(Checked::parse_from(short).args)?;
    if checked != ExitCode::from(exit::FINE) {
        return Ok(checked);
    }
    console::print("\n");
    let mut benched = Benched::parse_from(words).args;
    benched.short = true;
    let done = bench::run(benched)?;
    console::note(&format!(
        "\nNext: `intact check {0}` waits for the idle limit; `intact watch -- YOUR PROGRAM` tells whether it reuses its connections",
        intact_ledger::redact::url(&args.url)
    ));
    Ok(done)
}

/// The words as they were given: the program, the URL, the options.
fn words() -> Vec<OsString> {
    let mut words: Vec<OsString> = std::env::args_os().collect();
    if words.get(1).is_some_and(|word| word == NAME) {
        words.remove(1);
    }
    words
}
