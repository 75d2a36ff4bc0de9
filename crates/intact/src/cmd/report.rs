//! `intact report`: the pages of stored ledgers, whole or cut off by a kill.

use super::conclusion::{exit_code, print};
use super::config::Config;
use super::gates::{GateInput, Gates, evaluate};
use super::json;
use super::page::ReportFiles;
use crate::exit::{self, Failed};
use anyhow::Context;
use intact_document::requirement::Document;
use intact_findings::kinds::document_of;
use intact_findings::stored::Stored;
use intact_ledger::Run;
use intact_ledger::store::Reader;
use intact_report::documents::Source;
use std::path::PathBuf;
use std::process::ExitCode;

/// Prints the report of stored ledgers.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  intact bench https://my.server/ --ledger before
  intact report before
  intact report before after --report both.html
  intact report before --json | jq .comparisons
  intact report last-night --require 'reuse > 90%' --fail-on error \\
    --junit intact.xml

Exit codes: 1 when a requirement failed or --fail-on found something, 5 when there is no ledger")]
pub(crate) struct Args {
    /// Ledger folders
    #[arg(value_name = "DIR", required = true)]
    ledgers: Vec<PathBuf>,
    /// Print JSON instead of the page, one document for each ledger
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    report: ReportFiles,
    #[command(flatten)]
    gates: Gates,
}

/// Reads ledgers, computes their facts, prints their pages.
pub(crate) fn run(config: &Config<Args>) -> Result<ExitCode, Failed> {
    let args = &config.options;
    args.gates.for_documents(args.ledgers.len())?;
    let mut stored = Vec::new();
    for folder in &args.ledgers {
        let reader = Reader::open(folder).map_err(Failed::unreadable)?;
        let document = document_of(reader.run());
        let Some(requirements) = args.gates.begin(document)? else {
            return Ok(ExitCode::from(exit::FINE));
        };
        let one = Stored::read(folder, &reader).map_err(Failed::unreadable)?;
        stored.push((one, requirements));
    }
    let mut pages = Vec::new();
    let mut kept = true;
    for (one, requirements) in &stored {
        let (run, facts) = parts(one);
        let verdicts = evaluate(requirements, facts);
        let mut page = Source::from(one).page();
        page.requirements.clone_from(&verdicts);
        if args.json {
            json::print(&facts.json(run).context("--json")?);
        } else {
            print(&page, args.report.length().among(stored.len()));
        }
        pages.push(page);
        kept &= args.gates.hold(&verdicts, run, facts);
    }
    args.report.write(&pages)?;
    Ok(exit_code(None, true, kept))
}

/// The head and the facts of a ledger.
fn parts(stored: &Stored) -> (&Run, &dyn GateInput) {
    match stored {
        Stored::Bench(one) => (&one.run, &one.facts),
        Stored::Capacity(one) => (&one.run, &one.facts),
        Stored::Scenario(one) => (&one.run, &one.facts),
        Stored::Observed(one) => (&one.run, &one.facts),
        Stored::Compared(one) => (&one.run, &one.facts),
        Stored::Faults(one) => (&one.run, &one.facts),
        Stored::Check(one) => (&one.run, &one.facts),
        Stored::Lambda(one) => (&one.run, &one.facts),
    }
}
