//! `intact report`: the page of a stored ledger, whole or cut off by a kill.

use crate::console;
use crate::exit::{self, Failed};
use anyhow::anyhow;
use findings::bench::BenchFacts;
use findings::observe::{Observed, ObservedFacts};
use ledger::store::Reader;
use ledger::{Caveat, Event, Exchange, Row, Rows, Run, Sink, Tally};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Prints the report of a stored ledger.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  intact bench https://my.server/ --ledger before
  intact report before
  intact report before --json | jq .comparisons")]
pub(crate) struct Args {
    /// Ledger folder
    #[arg(value_name = "DIR")]
    ledger: PathBuf,
    /// Print JSON instead of the page
    #[arg(long)]
    json: bool,
}

/// Reads, works out, prints.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failed> {
    let reader = Reader::open(&args.ledger).map_err(Failed::unreadable)?;
    let page = if reader.run().producer == "bench" {
        let (run, facts) = load(&args.ledger)?;
        if args.json {
            report::json::bench(&run, &facts).map_err(anyhow::Error::from)?
        } else {
            report::terminal::bench(&run, &facts, console::paper())
        }
    } else {
        let facts = observed(&reader)?;
        if args.json {
            report::json::observed(reader.run(), &facts).map_err(anyhow::Error::from)?
        } else {
            report::terminal::observed(reader.run(), &facts, console::paper())
        }
    };
    console::print(&page);
    Ok(ExitCode::from(exit::FINE))
}

/// The facts of a stored ledger that observes traffic.
pub(crate) fn observed(reader: &Reader) -> Result<ObservedFacts, Failed> {
    let mut observed = Observed::new(reader.run());
    let mut events = reader.events().map_err(Failed::unreadable)?;
    for row in events.by_ref() {
        observed.record(row.as_event());
    }
    for caveat in events.caveats() {
        observed.record(Event::Caveat(&caveat));
    }
    if reader.run().rows == Rows::Sample {
        observed.record(Event::Caveat(&Caveat {
            id: "sampled-rows".to_owned(),
            words:
                "this ledger holds a sample of its exchanges: counts and findings are of the sample"
                    .to_owned(),
        }));
    }
    Ok(observed.facts())
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
