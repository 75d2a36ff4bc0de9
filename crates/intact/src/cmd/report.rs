//! `intact report`: the pages of stored ledgers, whole or cut off by a kill.

use super::config::Config;
use super::gates::{Gates, evaluate};
use super::page::{PageFile, page_file, write_all};
use crate::console;
use crate::exit::{self, Failed};
use anyhow::Context;
use intact_findings::requirement::{Document, Requirement, Verdict};
use intact_findings::stored::Stored;
use intact_ledger::store::Reader;
use intact_report::documents::{BenchRun, CheckRun, CompareRun, LambdaRun, Source, TrafficRun};
use std::path::PathBuf;
use std::process::ExitCode;

/// Prints the report of stored ledgers.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  intact bench https://my.server/ --ledger before
  intact report before
  intact report before after --report both.html
  intact report before --json | jq .comparisons
  intact report last-night --require 'reuse > 90%' --fail-on error --junit intact.xml

Exit codes: 1 when a requirement failed or --fail-on found something, 5 when there is no ledger")]
pub(crate) struct Args {
    /// Ledger folders
    #[arg(value_name = "DIR", required = true)]
    ledgers: Vec<PathBuf>,
    /// Print JSON instead of the page, one document for each ledger
    #[arg(long)]
    json: bool,
    /// Write the page to a file, may be repeated: .html replaces it, .md is appended (for a pull request or $GITHUB_STEP_SUMMARY)
    #[arg(long, value_name = "FILE", value_parser = page_file)]
    report: Vec<PageFile>,
    #[command(flatten)]
    gates: Gates,
}

/// Reads, works out, prints.
pub(crate) fn run(config: &Config<Args>) -> Result<ExitCode, Failed> {
    let args = &config.options;
    args.gates.for_documents(args.ledgers.len())?;
    let mut stored = Vec::new();
    for folder in &args.ledgers {
        let reader = Reader::open(folder).map_err(Failed::unreadable)?;
        let document = Document::of(&reader.run().producer);
        if args.gates.list_if_asked(document) {
            return Ok(ExitCode::from(exit::FINE));
        }
        let requirements = args.gates.parse(document)?;
        let one = Stored::read(folder, &reader).map_err(Failed::unreadable)?;
        stored.push((one, requirements));
    }
    let mut pages = Vec::new();
    let mut kept = true;
    for (one, requirements) in &stored {
        let verdicts = evaluate_all(one, requirements);
        let mut page = source(one).page();
        page.requirements.clone_from(&verdicts);
        console::print(&if args.json {
            json(one).context("--json")?
        } else {
            intact_report::terminal::write(&page, console::paper())
        });
        pages.push(page);
        kept &= hold(one, &args.gates, &verdicts)?;
    }
    write_all(&args.report, &pages)?;
    Ok(ExitCode::from(if kept {
        exit::FINE
    } else {
        exit::REQUIREMENT
    }))
}

/// The JSON document of a ledger.
fn json(stored: &Stored) -> serde_json::Result<String> {
    match stored {
        Stored::Bench(one) => intact_report::json::bench(&one.run, &one.facts),
        Stored::Check(one) => intact_report::json::check(&one.run, &one.facts),
        Stored::Observed(one) => intact_report::json::observed(&one.run, &one.facts),
        Stored::Compared(one) => intact_report::json::compare(&one.run, &one.facts),
        Stored::Lambda(one) => intact_report::json::lambda(&one.run, &one.facts),
    }
}

/// The results of the requirements.
fn evaluate_all(stored: &Stored, requirements: &[Requirement]) -> Vec<Verdict> {
    match stored {
        Stored::Bench(one) => evaluate(requirements, &one.facts),
        Stored::Check(one) => evaluate(requirements, &one.facts),
        Stored::Observed(one) => evaluate(requirements, &one.facts),
        Stored::Compared(one) => evaluate(requirements, &one.facts),
        Stored::Lambda(one) => evaluate(requirements, &one.facts),
    }
}

/// Whether the gates pass.
fn hold(stored: &Stored, gates: &Gates, verdicts: &[Verdict]) -> anyhow::Result<bool> {
    match stored {
        Stored::Bench(one) => gates.hold(verdicts, &one.run, &one.facts),
        Stored::Check(one) => gates.hold(verdicts, &one.run, &one.facts),
        Stored::Observed(one) => gates.hold(verdicts, &one.run, &one.facts),
        Stored::Compared(one) => gates.hold(verdicts, &one.run, &one.facts),
        Stored::Lambda(one) => gates.hold(verdicts, &one.run, &one.facts),
    }
}

/// The document of a ledger.
fn source(stored: &Stored) -> Source<'_> {
    match stored {
        Stored::Bench(one) => Source::Bench(BenchRun {
            run: &one.run,
            facts: &one.facts,
            charts: &one.charts,
        }),
        Stored::Observed(one) => Source::Traffic(TrafficRun {
            run: &one.run,
            facts: &one.facts,
            charts: &one.charts,
            inputs: &[],
            answers: &[],
            ladder: None,
        }),
        Stored::Compared(one) => Source::Compare(CompareRun {
            run: &one.run,
            facts: &one.facts,
        }),
        Stored::Check(one) => Source::Check(CheckRun {
            run: &one.run,
            facts: &one.facts,
        }),
        Stored::Lambda(one) => Source::Lambda(LambdaRun {
            run: &one.run,
            facts: &one.facts,
        }),
    }
}
