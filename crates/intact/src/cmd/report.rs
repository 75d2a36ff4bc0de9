//! `intact report`: the pages of stored ledgers, whole or cut off by a kill.

use super::gates::{Gates, evaluate};
use super::page::{PageFile, page_file, write_all};
use super::stored;
use crate::console;
use crate::exit::{self, Failed};
use anyhow::{Context, anyhow};
use intact_findings::bench::{BenchFacts, Charts};
use intact_findings::check::CheckFacts;
use intact_findings::compare::CompareFacts;
use intact_findings::lambda::LambdaFacts;
use intact_findings::requirement::{Document, Requirement, Verdict};
use intact_findings::timeline::Timeline;
use intact_findings::traffic::{self, ObservedFacts};
use intact_ledger::store::Reader;
use intact_ledger::{Exchange, Producer, Row, Run, Sink, Tally};
use intact_report::documents::{BenchRun, CheckRun, CompareRun, LambdaRun, Source, TrafficRun};
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
    /// Write the page to a file, may be repeated: .html replaces it, .md is appended (for a pull request or $GITHUB_STEP_SUMMARY)
    #[arg(long, value_name = "FILE", value_parser = page_file)]
    report: Vec<PageFile>,
    #[command(flatten)]
    gates: Gates,
}

/// Reads, works out, prints.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failed> {
    args.gates.for_documents(args.ledgers.len())?;
    let mut stored = Vec::new();
    for folder in &args.ledgers {
        let reader = Reader::open(folder).map_err(Failed::unreadable)?;
        let document = stored::document(&reader.run().producer);
        if args.gates.list_if_asked(document) {
            return Ok(ExitCode::from(exit::FINE));
        }
        let requirements = args.gates.parse(document)?;
        stored.push((Stored::read(folder, &reader)?, requirements));
    }
    let mut pages = Vec::new();
    let mut kept = true;
    for (one, requirements) in &stored {
        let verdicts = one.evaluate(requirements);
        let mut page = one.source().page();
        page.requirements.clone_from(&verdicts);
        console::print(&if args.json {
            one.json().context("--json")?
        } else {
            intact_report::terminal::write(&page, console::paper())
        });
        pages.push(page);
        kept &= one.hold(&args.gates, &verdicts)?;
    }
    write_all(&args.report, &pages)?;
    Ok(ExitCode::from(if kept {
        exit::FINE
    } else {
        exit::REQUIREMENT
    }))
}

/// A stored ledger with what findings make of it.
enum Stored {
    Bench(Box<StoredBench>),
    Check(Box<StoredCheck>),
    Observed(Box<StoredObserved>),
    Compared(Box<StoredCompared>),
    Lambda(Box<StoredLambda>),
}

impl Stored {
    fn read(folder: &Path, reader: &Reader) -> Result<Stored, Failed> {
        let run = || reader.run().clone();
        Ok(match stored::document(&reader.run().producer) {
            Document::Bench => Stored::Bench(Box::new(load(folder)?)),
            Document::Check => Stored::Check(Box::new(checked(reader)?)),
            Document::Compare => Stored::Compared(Box::new(StoredCompared {
                run: run(),
                facts: stored::compared(reader)?,
            })),
            Document::Lambda => Stored::Lambda(Box::new(StoredLambda {
                run: run(),
                facts: stored::invoked(reader)?,
            })),
            Document::Watch | Document::Audit | Document::Fleet => {
                let observed = stored::observed(reader)?;
                Stored::Observed(Box::new(StoredObserved {
                    facts: observed.facts(),
                    pictures: observed.pictures(reader.run()),
                    run: run(),
                }))
            }
        })
    }

    fn json(&self) -> serde_json::Result<String> {
        match self {
            Stored::Bench(one) => intact_report::json::bench(&one.run, &one.facts),
            Stored::Check(one) => intact_report::json::check(&one.run, &one.facts),
            Stored::Observed(one) => intact_report::json::observed(&one.run, &one.facts),
            Stored::Compared(one) => intact_report::json::compare(&one.run, &one.facts),
            Stored::Lambda(one) => intact_report::json::lambda(&one.run, &one.facts),
        }
    }

    fn evaluate(&self, requirements: &[Requirement]) -> Vec<Verdict> {
        match self {
            Stored::Bench(one) => evaluate(requirements, &one.facts),
            Stored::Check(one) => evaluate(requirements, &one.facts),
            Stored::Observed(one) => evaluate(requirements, &one.facts),
            Stored::Compared(one) => evaluate(requirements, &one.facts),
            Stored::Lambda(one) => evaluate(requirements, &one.facts),
        }
    }

    fn hold(&self, gates: &Gates, verdicts: &[Verdict]) -> anyhow::Result<bool> {
        match self {
            Stored::Bench(one) => gates.hold(verdicts, &one.run, &one.facts),
            Stored::Check(one) => gates.hold(verdicts, &one.run, &one.facts),
            Stored::Observed(one) => gates.hold(verdicts, &one.run, &one.facts),
            Stored::Compared(one) => gates.hold(verdicts, &one.run, &one.facts),
            Stored::Lambda(one) => gates.hold(verdicts, &one.run, &one.facts),
        }
    }

    fn source(&self) -> Source<'_> {
        match self {
            Stored::Bench(one) => Source::Bench(BenchRun {
                run: &one.run,
                facts: &one.facts,
                charts: &one.pictures,
            }),
            Stored::Observed(one) => Source::Traffic(TrafficRun {
                run: &one.run,
                facts: &one.facts,
                charts: &one.pictures,
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
}

/// A stored run that observed traffic.
struct StoredObserved {
    run: Run,
    facts: ObservedFacts,
    pictures: traffic::Charts,
}

/// A stored check.
struct StoredCheck {
    run: Run,
    facts: CheckFacts,
}

/// A stored run of a function.
struct StoredLambda {
    run: Run,
    facts: LambdaFacts,
}

/// A stored comparison.
struct StoredCompared {
    run: Run,
    facts: CompareFacts,
}

/// A stored bench.
pub(crate) struct StoredBench {
    /// Its head.
    pub(crate) run: Run,
    /// Its facts.
    pub(crate) facts: BenchFacts,
    pictures: Charts,
}

/// Reads a stored check.
fn checked(reader: &Reader) -> Result<StoredCheck, Failed> {
    // cut off before the first probe there is no card, and then the page says so
    let card = reader
        .card()
        .map_err(Failed::unreadable)?
        .unwrap_or_default();
    let mut events = reader.events().map_err(Failed::unreadable)?;
    let rows: Vec<Row> = events.by_ref().collect();
    let mut facts = CheckFacts::new(&card, &rows);
    facts.caveats.extend(events.caveats());
    Ok(StoredCheck {
        run: reader.run().clone(),
        facts,
    })
}

/// Reads a stored bench.
pub(crate) fn load(folder: &Path) -> Result<StoredBench, Failed> {
    let reader = Reader::open(folder).map_err(Failed::unreadable)?;
    if reader.run().producer != Producer::Bench {
        let told = anyhow!(
            "{} was recorded by `intact {}`; here only a ledger of `bench` will do",
            folder.display(),
            reader.run().producer
        );
        return Err(Failed::unreadable(told));
    }
    let tally = reader.tally().map_err(Failed::unreadable)?;
    let mut events = reader.events().map_err(Failed::unreadable)?;
    let mut first: BTreeMap<Option<u32>, Vec<Exchange>> = BTreeMap::new();
    let mut replayed = Tally::new();
    let mut timeline = Timeline::of_variants();
    for row in events.by_ref() {
        if tally.is_none() {
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
    let mut tally = tally.unwrap_or_else(|| {
        replayed.caveats.extend(stored::sampled_rows(reader.run()));
        replayed
    });
    tally.caveats.extend(events.caveats());
    let first: Vec<Exchange> = first.into_values().flatten().collect();
    let run = reader.run().clone();
    let facts = BenchFacts::new(&run, &tally, &first)
        .with_context(|| format!("the ledger {}", folder.display()))
        .map_err(Failed::unreadable)?;
    let pictures = Charts::new(&run, &tally, &facts, &timeline);
    Ok(StoredBench {
        run,
        facts,
        pictures,
    })
}
