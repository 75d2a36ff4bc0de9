//! `intact URL`: a short check, then a short bench.

use super::connect_options::ConnectOptions;
use super::expect::Expect;
use super::{bench, check};
use crate::console;
use crate::exit::{self, Failed, refuse};
use intact_client::ServerUrl;
use intact_ledger::store::is_ledger;
use std::ffi::OsStr;
use std::path::Path;
use std::process::ExitCode;

/// A short check of a server, then a short bench
#[derive(clap::Args)]
pub(crate) struct Args {
    /// URL to look at
    url: String,
    /// Header field, may be repeated
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    headers: Vec<String>,
    /// Compare remedies with a new connection per request and a full handshake: each alone, and
    /// the best combination
    #[arg(long)]
    remedies: bool,
    #[command(flatten)]
    expect: Expect,
    #[command(flatten)]
    reach: ConnectOptions,
}

/// Whether a word in the place of a command is a URL and no misspelt command: it has a scheme, a
/// port, a path or a domain.
pub(crate) fn is_url(word: &OsStr) -> bool {
    word.to_str().is_some_and(|word| {
        !word.starts_with('-') && (word == "localhost" || word.contains(['.', ':', '/']))
    })
}

/// Runs both, with the options that both have.
pub(crate) fn run(args: Args) -> Result<ExitCode, Failed> {
    let path = Path::new(&args.url);
    if path.is_file() {
        refuse!(
            "{0} is a file: `intact audit {0}` reads captures, HAR files and logs",
            args.url
        );
    }
    if is_ledger(path) {
        refuse!(
            "{0} is a ledger: `intact report {0}` prints its page",
            args.url
        );
    }
    ServerUrl::parse(&args.url).map_err(Failed::usage)?;
    let url = intact_ledger::redact::url(&args.url);
    let mut options = check::Args::of_url(args.url.clone());
    options.no_idle = true;
    options.is_next_to_bench = true;
    options.headers.clone_from(&args.headers);
    options.expect = args.expect;
    options.reach = args.reach.clone();
    let (checked, keeps) = check::of_server(options.into())?;
    if checked != ExitCode::from(exit::FINE) {
        return Ok(checked);
    }
    if keeps == Some(false) && !args.remedies {
        console::note_lines(&format!(
            "\nNo bench: it compares kept connections with new ones, and this server keeps none.\nNext: once it keeps them, `intact {url}` shows what that saves"
        ));
        return Ok(checked);
    }
    console::print("\n");
    let mut options = bench::Args::defaults();
    options.url = Some(args.url);
    options.axes.remedies = args.remedies;
    options.request.headers = args.headers;
    options.request.expect = args.expect;
    options.reach = args.reach;
    options.is_short = true;
    let done = bench::run(options.into())?;
    console::note_lines(&format!(
        "\nNext: `intact check {url}` waits for the idle limit; `intact watch -- YOUR PROGRAM` shows whether it reuses its connections"
    ));
    Ok(done)
}
