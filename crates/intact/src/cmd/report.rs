//! `intact report`: the page of a stored ledger, whole or cut off by a kill.

use super::gates::Gates;
use super::stored;
use crate::console;
use crate::exit::{self, Failed};
use anyhow::anyhow;
use findings::bench::BenchFacts;
use findings::requirement::Document;
use ledger::store::Reader;
use ledger::{Exchange, Row, Run, Sink, Tally};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Prints the report of a stored ledger.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  intact bench https://my.server/ --ledger before
  intact report before
  intact report before --json | jq .comparisons
  intact report last-night --require 'reuse > 90%' --fail-on error --junit intact.xml

Exit codes: 1 when a requirement failed or --fail-on found something, 5 when there is no ledger")]
pub(crate) struct Args {
    /// Ledger folder
    #[arg(value_name = "DIR")]
    ledger: PathBuf,
    /// Print JSON instead of the page
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    gates: Gates,
}

/// Reads, works out, prints.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failed> {
    let reader = Reader::open(&args.ledger).map_err(Failed::unreadable)?;
    let document = stored::document(&reader.run().producer);
    if args.gates.list_if_asked(document) {
        return Ok(ExitCode::from(exit::FINE));
    }
    let requirements = args.gates.parse(document)?;
    let kept = if document == Document::Bench {
        let (run, facts) = load(&args.ledger)?;
        console::print(&if args.json {
            report::json::bench(&run, &facts).map_err(anyhow::Error::from)?
        } else {
            report::terminal::bench(&run, &facts, console::paper())
        });
        args.gates.hold(&requirements, &run, &facts)?
    } else {
        let run = reader.run();
        let facts = stored::observed(&reader)?;
        console::print(&if args.json {
            report::json::observed(run, &facts).map_err(anyhow::Error::from)?
        } else {
            report::terminal::observed(run, &facts, console::paper())
        });
        args.gates.hold(&requirements, run, &facts)?
    };
    Ok(ExitCode::from(if kept {
        exit::FINE
    } else {
        exit::REQUIREMENT
    }))
}

/// The facts of a stored bench.
pub(crate) fn load(folder: &Path) -> Result<(Run, BenchFacts), Failed> {
    let reader = Reader::open(folder).map_err(Failed::unreadable)?;
    if reader.run().producer != "bench" {
        let told = anyhow!(
            "{} was recorded by `intact {}`; here only a ledger of `bench` will do",
            folder.display(),
            reader.run().producer
        );
        return Err(Failed::unreadable(told));
    }
    let stored = reader.tally().map_err(Failed::unreadable)?;
    let mut events = reader.events().map_err(Failed::unreadable)?;
    let mut first: BTreeMap<Option<u32>, Vec<Exchange>> = BTreeMap::new();
    let mut replayed = Tally::new();
    for row in events.by_ref() {
        if stored.is_none() {
            replayed.record(row.as_event());
        }
        if let Row::Exchange(exchange) = row {
            let calls = first.entry(exchange.variant).or_default();
            if calls.len() < 100 {
                calls.push(*exchange);
            }
        }
    }
    let mut tally = stored.unwrap_or(replayed);
    tally.caveats.extend(events.caveats());
    let first: Vec<Exchange> = first.into_values().flatten().collect();
    let facts = BenchFacts::new(reader.run(), &tally, &first);
    Ok((reader.run().clone(), facts))
}
