//! `intact report`: the pages of stored ledgers, whole or cut off by a kill.

use super::conclusion::{exit_code, print};
use super::config::Config;
use super::gates::Gates;
use super::json;
use super::page::ReportFiles;
use crate::exit::Failed;
use anyhow::Context;
use intact_document::requirement;
use intact_findings::{Document, document_of};
use intact_ledger::store::Reader;
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
    let mut documents = Vec::new();
    for folder in &args.ledgers {
        let reader = Reader::open(folder).map_err(Failed::unreadable)?;
        let kind = document_of(reader.run());
        let requirements = args.gates.begin(kind)?;
        let document = Document::read(folder, &reader).map_err(Failed::unreadable)?;
        documents.push((document, requirements));
    }
    let mut pages = Vec::new();
    let mut kept = true;
    for (document, requirements) in &documents {
        let verdicts = requirement::evaluate(requirements, document.facts());
        let mut page = intact_report::documents::page(document);
        page.requirements.clone_from(&verdicts);
        if args.json {
            json::print(&intact_report::json::document(document).context("--json")?);
        } else {
            print(&page, args.report.length().among(documents.len()));
        }
        pages.push(page);
        kept &= args.gates.hold(&verdicts, &document.run, document.facts());
    }
    args.report.write(&pages)?;
    Ok(exit_code(None, true, kept))
}
