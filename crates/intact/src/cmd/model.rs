//! `intact model`: what a chain of services takes, predicted.

use super::conclusion::print;
use super::config::Config;
use super::json::{self, JsonTarget};
use super::options;
use super::page::PageLength;
use crate::console;
use crate::exit::{self, Failed, refuse};
use anyhow::anyhow;
use clap::ValueEnum;
use intact_findings::stored;
use intact_ledger::store::Reader;
use intact_ledger::{Producer, Vantage, input_file, private_file};
use intact_model::{Chain, Fit, Forecast, Reuse};
use intact_report::documents;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The longest file that says what a chain is.
const LONGEST: u64 = 4 << 20;

/// What would connection reuse change in a chain of services?
#[derive(clap::Args)]
#[command(
    after_help = "FILE says who calls whom, how far away and over what (docs/reference/model.md has all keys):

  [defaults]
  tls = \"1.2\"
  [client]
  calls = [{ to = \"shop\", rtt = \"30ms\", reuse = true }]
  [service.shop]
  work = \"4ms\"
  calls = [{ to = \"stock\", rtt = \"2ms\", times = 3, reuse = false }]
  [service.stock]
  work = \"1ms\"

DIR is a ledger of `watch` or `audit`: then the chain is the program and its destinations, with their measured means.

Examples:
  intact model shop.toml
  intact model shop.toml --draw new --mermaid shop.mmd
  intact watch --ledger run -- ./my-program; intact model run

Exit codes: 2 when the file says something that cannot be, 5 when it cannot be read"
)]
pub(crate) struct Args {
    /// A chain (TOML), or a ledger folder
    #[arg(value_name = "FILE|DIR")]
    input: PathBuf,
    /// How packets are counted in calls, remedies and diagram; the totals have both
    #[arg(long, value_enum, default_value_t = Counting::Tcp)]
    counting: Counting,
    /// Which connections the diagram shows: new, reused, or as the file says
    #[arg(long, value_parser = options::words(DRAWN), default_value = "configured")]
    draw: Reuse,
    /// Write the diagram for Mermaid, which GitHub and GitLab draw in Markdown
    #[arg(long, value_name = "FILE")]
    mermaid: Option<PathBuf>,
    /// JSON to standard output, or to a file
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    json: Option<JsonTarget>,
    #[command(flatten)]
    length: PageLength,
}

#[derive(Clone, Copy, ValueEnum)]
enum Counting {
    /// The last packet of a handshake travels with what follows
    Tcp,
    /// Each packet waits for the one before, as on paper
    Series,
}

const DRAWN: &[(&str, Reuse)] = &[
    ("configured", Reuse::Configured),
    ("new", Reuse::Never),
    ("reused", Reuse::Always),
];

/// Reads, predicts, prints.
pub(crate) fn run(config: &Config<Args>) -> Result<ExitCode, Failed> {
    let args = &config.options;
    let subject = args.input.display().to_string();
    let (chain, fit) = if args.input.is_dir() {
        let fit = from_ledger(&args.input)?;
        (fit.chain.clone(), Some(fit))
    } else {
        (from_file(&args.input)?, None)
    };
    let counting = match args.counting {
        Counting::Tcp => intact_model::Counting::Tcp,
        Counting::Series => intact_model::Counting::Series,
    };
    let forecast = Forecast::new(&chain, counting, args.draw);
    if let Some(path) = &args.mermaid {
        let diagram = intact_report::mermaid(&documents::sequence_of(&forecast.sequence));
        console::note_unwritten("--mermaid", path, private_file::write(path, diagram));
    }
    let to = args.json.as_ref();
    json::deliver(to, || {
        intact_report::json::model(&subject, &forecast, fit.as_ref())
    })?;
    if json::takes_output(to) {
        return Ok(ExitCode::from(exit::FINE));
    }
    let page = documents::model(&forecast, &subject, fit.as_ref());
    print(&page, args.length.into());
    Ok(ExitCode::from(exit::FINE))
}

fn from_file(path: &Path) -> Result<Chain, Failed> {
    let name = || path.display().to_string();
    let unreadable = |error: std::io::Error| {
        let remedy = "name a chain, see `intact help model`, or a ledger";
        Failed::unreadable(anyhow!("{}: {error}; {remedy}", name()))
    };
    let text = input_file::read_text(path, LONGEST).map_err(unreadable)?;
    intact_model::parse(&text).map_err(|error| {
        let remedy = "further mistakes may follow; a chain is TOML, see `intact help model`; `intact check --chain nginx=FILE` reads the configuration of a proxy";
        Failed::usage(anyhow!("{}: {error}; {remedy}", name()))
    })
}

fn from_ledger(folder: &Path) -> Result<Fit, Failed> {
    let reader = Reader::open(folder).map_err(Failed::unreadable)?;
    let run = reader.run();
    let name = folder.display();
    let is_of_program = matches!(run.producer, Producer::Watch | Producer::Audit);
    if !is_of_program || run.vantage == Vantage::Server {
        refuse!(
            "{name}: a ledger of `{}`; a model needs one of one program: intact watch --ledger DIR -- CMD, or audit",
            run.producer
        );
    }
    let traffic = stored::traffic(&reader).map_err(Failed::unreadable)?;
    let facts = traffic.facts();
    let client = run.subject.as_deref().unwrap_or("program");
    intact_model::fit(client, &facts).ok_or_else(|| {
        Failed::unreadable(anyhow!(
            "{name}: no destination with both a new connection and a request seen from beginning to end"
        ))
    })
}
