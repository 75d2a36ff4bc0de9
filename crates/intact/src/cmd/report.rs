//! `intact report`: the pages of stored ledgers, whole or cut off by a kill.

use super::gates::Gates;
use super::page::{PageFile, page_file};
use super::stored;
use crate::console;
use crate::exit::{self, Failed};
use anyhow::{Context, anyhow};
use findings::bench::{BenchFacts, Pictures};
use findings::compare::CompareFacts;
use findings::observe::{self, ObservedFacts};
use findings::requirement::{Document, Requirement};
use findings::timeline::Timeline;
use ledger::store::Reader;
use ledger::{Exchange, Row, Run, Sink, Tally};
use report::page::{BenchRun, CompareRun, ObservedRun, Source};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
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
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failed> {
    let document = documents(&args.ledgers)?;
    if args.gates.list_if_asked(document) {
        return Ok(ExitCode::from(exit::FINE));
    }
    let requirements = args.gates.parse(document)?;
    args.gates.for_documents(args.ledgers.len())?;
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
        let runs: Vec<Source<'_>> = stored.iter().map(Stored::source).collect();
        file.write(&runs)?;
    }
    let mut kept = true;
    for one in &stored {
        kept &= one.hold(&args.gates, &requirements)?;
    }
    Ok(ExitCode::from(if kept {
        exit::FINE
    } else {
        exit::REQUIREMENT
    }))
}

/// What can be asked of all these ledgers; with different kinds that is what the first has.
fn documents(folders: &[PathBuf]) -> Result<Document, Failed> {
    let first = Reader::open(&folders[0]).map_err(Failed::unreadable)?;
    Ok(stored::document(&first.run().producer))
}

/// A stored ledger with what findings make of it.
enum Stored {
    Bench(Box<StoredBench>),
    Observed(Box<StoredObserved>),
    Compared(Box<StoredComparison>),
}

impl Stored {
    fn read(folder: &Path) -> Result<Stored, Failed> {
        let reader = Reader::open(folder).map_err(Failed::unreadable)?;
        if reader.run().producer == "bench" {
            return load(folder).map(|one| Stored::Bench(Box::new(one)));
        }
        let run = reader.run().clone();
        if stored::document(&run.producer) == Document::Compare {
            let facts = stored::compared(&reader)?;
            return Ok(Stored::Compared(Box::new(StoredComparison { run, facts })));
        }
        let observed = stored::observed(&reader)?;
        let pictures = observed.pictures(&run);
        let facts = observed.facts();
        Ok(Stored::Observed(Box::new(StoredObserved {
            run,
            facts,
            pictures,
        })))
    }

    fn json(&self) -> serde_json::Result<String> {
        match self {
            Stored::Bench(one) => report::json::bench(&one.run, &one.facts),
            Stored::Observed(one) => report::json::observed(&one.run, &one.facts),
            Stored::Compared(one) => report::json::compare(&one.run, &one.facts),
        }
    }

    fn terminal(&self) -> String {
        match self {
            Stored::Bench(one) => report::terminal::bench(&one.run, &one.facts, console::paper()),
            Stored::Observed(one) => {
                report::terminal::observed(&one.run, &one.facts, console::paper())
            }
            Stored::Compared(one) => {
                report::terminal::compare(&one.run, &one.facts, console::paper())
            }
        }
    }

    fn hold(&self, gates: &Gates, requirements: &[Requirement]) -> anyhow::Result<bool> {
        match self {
            Stored::Bench(one) => gates.hold(requirements, &one.run, &one.facts),
            Stored::Observed(one) => gates.hold(requirements, &one.run, &one.facts),
            Stored::Compared(one) => gates.hold(requirements, &one.run, &one.facts),
        }
    }

    fn source(&self) -> Source<'_> {
        match self {
            Stored::Bench(one) => Source::Bench(BenchRun {
                run: &one.run,
                facts: &one.facts,
                pictures: &one.pictures,
            }),
            Stored::Observed(one) => Source::Observed(ObservedRun {
                run: &one.run,
                facts: &one.facts,
                pictures: &one.pictures,
            }),
            Stored::Compared(one) => Source::Compared(CompareRun {
                run: &one.run,
                facts: &one.facts,
            }),
        }
    }
}

/// A stored run that observed traffic.
struct StoredObserved {
    run: Run,
    facts: ObservedFacts,
    pictures: observe::Pictures,
}

/// A stored comparison.
struct StoredComparison {
    run: Run,
    facts: CompareFacts,
}

/// A stored bench.
pub(crate) struct StoredBench {
    /// Its head.
    pub(crate) run: Run,
    /// Its facts.
    pub(crate) facts: BenchFacts,
    pictures: Pictures,
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
