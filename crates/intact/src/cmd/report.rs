//! `intact report`: the pages of stored ledgers, whole or cut off by a kill.

use super::page::{PageFile, page_file};
use crate::console;
use crate::exit::{self, Failed};
use anyhow::{Context, anyhow};
use findings::bench::{BenchFacts, Pictures};
use findings::observe::{Observed, ObservedFacts};
use findings::timeline::Timeline;
use ledger::store::Reader;
use ledger::{Caveat, Event, Exchange, Row, Rows, Run, Sink, Tally};
use report::page::BenchRun;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Prints the report of stored ledgers.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  intact bench https://my.server/ --ledger before
  intact report before
  intact report before after --report both.html
  intact report before --json | jq .comparisons")]
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
}

/// Reads, works out, prints.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failed> {
    let stored = args
        .ledgers
        .iter()
        .map(|folder| Stored::read(folder))
        .collect::<Result<Vec<Stored>, Failed>>()?;
    for one in &stored {
        let page = if args.json {
            one.json().context("--json")?
        } else {
            one.terminal()
        };
        console::print(&page);
    }
    if let Some(file) = &args.report {
        let runs = stored
            .iter()
            .map(Stored::as_bench)
            .collect::<Result<Vec<BenchRun<'_>>, Failed>>()?;
        file.write(&report::page::bench(&runs).context("--report")?)?;
    }
    Ok(ExitCode::from(exit::FINE))
}

/// A stored ledger with what findings make of it.
enum Stored {
    Bench(Box<StoredBench>),
    Observed(Box<StoredObserved>),
}

impl Stored {
    fn read(folder: &Path) -> Result<Stored, Failed> {
        let reader = Reader::open(folder).map_err(Failed::unreadable)?;
        if reader.run().producer == "bench" {
            return load(folder).map(|one| Stored::Bench(Box::new(one)));
        }
        let facts = observed(&reader)?;
        let run = reader.run().clone();
        Ok(Stored::Observed(Box::new(StoredObserved { run, facts })))
    }

    fn json(&self) -> serde_json::Result<String> {
        match self {
            Stored::Bench(one) => report::json::bench(&one.run, &one.facts),
            Stored::Observed(one) => report::json::observed(&one.run, &one.facts),
        }
    }

    fn terminal(&self) -> String {
        match self {
            Stored::Bench(one) => report::terminal::bench(&one.run, &one.facts, console::paper()),
            Stored::Observed(one) => {
                report::terminal::observed(&one.run, &one.facts, console::paper())
            }
        }
    }

    fn as_bench(&self) -> Result<BenchRun<'_>, Failed> {
        match self {
            Stored::Bench(one) => Ok(BenchRun {
                run: &one.run,
                facts: &one.facts,
                pictures: &one.pictures,
            }),
            Stored::Observed(one) => Err(Failed::usage(anyhow!(
                "--report: only ledgers of `bench` have a page yet, this is one of `{}`; --json has all of it",
                one.run.producer
            ))),
        }
    }
}

/// A stored run that observed traffic.
struct StoredObserved {
    run: Run,
    facts: ObservedFacts,
}

/// A stored bench.
pub(crate) struct StoredBench {
    /// Its head.
    pub(crate) run: Run,
    /// Its facts.
    pub(crate) facts: BenchFacts,
    pictures: Pictures,
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

/// Reads a stored bench.
pub(crate) fn load(folder: &Path) -> Result<StoredBench, Failed> {
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
    let mut timeline = Timeline::of_variants();
    for row in events.by_ref() {
        if stored.is_none() {
            replayed.record(row.as_event());
        }
        timeline.record(row.as_event());
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
    let run = reader.run().clone();
    let facts = BenchFacts::new(&run, &tally, &first);
    let pictures = Pictures::new(&run, &tally, &facts, &timeline);
    Ok(StoredBench {
        run,
        facts,
        pictures,
    })
}
