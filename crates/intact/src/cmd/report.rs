//! `intact report`: the pages of stored ledgers, whole or cut off by a kill.

use super::config::Config;
use super::gates::Gates;
use super::page::{PageFile, page_file};
use crate::console;
use crate::exit::{self, Failed};
use anyhow::Context;
use intact_findings::requirement::Document;
use intact_findings::stored::Stored;
use intact_ledger::store::Reader;
use intact_report::page::{BenchRun, CheckRun, CompareRun, LambdaRun, ObservedRun, Source};
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
    /// Write the report as one page: .html works anywhere, .md is for a pull request or a CI summary
    #[arg(long, value_name = "FILE", value_parser = page_file)]
    report: Option<PageFile>,
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
    for (one, _) in &stored {
        console::print(&if args.json {
            json(one).context("--json")?
        } else {
            terminal(one)
        });
    }
    if let Some(file) = &args.report {
        let runs: Vec<Source<'_>> = stored.iter().map(|(one, _)| source(one)).collect();
        file.write(&runs)?;
    }
    let mut kept = true;
    for (one, requirements) in &stored {
        kept &= match one {
            Stored::Bench(one) => args.gates.hold(requirements, &one.run, &one.facts)?,
            Stored::Check(one) => args.gates.hold(requirements, &one.run, &one.facts)?,
            Stored::Observed(one) => args.gates.hold(requirements, &one.run, &one.facts)?,
            Stored::Compared(one) => args.gates.hold(requirements, &one.run, &one.facts)?,
            Stored::Lambda(one) => args.gates.hold(requirements, &one.run, &one.facts)?,
        };
    }
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

/// The terminal page of a ledger.
fn terminal(stored: &Stored) -> String {
    let paper = console::paper();
    match stored {
        Stored::Bench(one) => intact_report::terminal::bench(&one.run, &one.facts, paper),
        Stored::Check(one) => intact_report::terminal::check(&one.run, &one.facts, paper),
        Stored::Observed(one) => intact_report::terminal::observed(&one.run, &one.facts, paper),
        Stored::Compared(one) => intact_report::terminal::compare(&one.run, &one.facts, paper),
        Stored::Lambda(one) => intact_report::terminal::lambda(&one.run, &one.facts, paper),
    }
}

/// The part of a ledger in the page of `--report`.
fn source(stored: &Stored) -> Source<'_> {
    match stored {
        Stored::Bench(one) => Source::Bench(BenchRun {
            run: &one.run,
            facts: &one.facts,
            pictures: &one.charts,
        }),
        Stored::Observed(one) => Source::Observed(ObservedRun {
            run: &one.run,
            facts: &one.facts,
            pictures: &one.charts,
            inputs: &[],
        }),
        Stored::Compared(one) => Source::Compared(CompareRun {
            run: &one.run,
            facts: &one.facts,
        }),
        Stored::Check(one) => Source::Checked(CheckRun {
            run: &one.run,
            facts: &one.facts,
        }),
        Stored::Lambda(one) => Source::Lambda(LambdaRun {
            run: &one.run,
            facts: &one.facts,
        }),
    }
}
