//! Documents of a stored ledger, by a replay of its events, whether its run ended or was killed.
//! Must not print: the caller does.

use crate::document::{BenchParts, document_of};
use intact_document::requirement::DocumentKind;
use intact_experiment::AxisError;
use intact_experiments::bench::{self, BenchFacts, NOT_OBSERVED, OutgoingRound};
use intact_ledger::store::{self, Reader, StoreError};
use intact_ledger::{Caveat, Event, Exchange, Row, Rows, Run, Sink, Tally};
use intact_servers::check::CheckFacts;
use intact_traffic::timeline::Timeline;
use intact_traffic::{self, ObservedFacts, TrafficAnalysis};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The first calls of each variant that reports show.
const FIRST: usize = 100;

/// Events of a check that are read. Its budget is a few hundred requests.
const MOST_ROWS: usize = 100_000;

/// Why a ledger gives no document.
#[derive(Debug, thiserror::Error)]
pub enum StoredError {
    /// The folder cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The settings of its variants cannot be read.
    #[error("the ledger {folder}")]
    Axis {
        /// The ledger.
        folder: PathBuf,
        /// What is wrong.
        source: AxisError,
    },
    /// Another command recorded it.
    #[error("{folder} was recorded by `intact {command}`; here only a ledger of `bench` will do")]
    NotABench {
        /// The ledger.
        folder: PathBuf,
        /// The command.
        command: String,
    },
}

/// The traffic of a ledger.
pub fn traffic(reader: &Reader) -> Result<TrafficAnalysis, StoredError> {
    let mut analysis = TrafficAnalysis::new(reader.run());
    replay(reader, &mut analysis)?;
    Ok(analysis)
}

/// Reads a ledger that has to be one of `bench`.
pub fn bench(folder: &Path) -> Result<(Run, BenchParts), StoredError> {
    let reader = Reader::open(folder)?;
    let run = reader.run();
    if document_of(run) != DocumentKind::Bench {
        let command = match run.scenario {
            Some(_) => "bench --scenario".to_owned(),
            None if run.capacity.is_some() => "bench --find-max".to_owned(),
            None => run.producer.to_string(),
        };
        return Err(StoredError::NotABench {
            folder: folder.to_owned(),
            command,
        });
    }
    Ok((run.clone(), read_bench(folder, &reader)?))
}

/// What the ledger of a bench or of a scenario has.
pub(crate) struct BenchRecord {
    pub(crate) tally: Tally,
    /// The first exchanges of each variant.
    pub(crate) first: Vec<Exchange>,
    timeline: Timeline,
}

pub(crate) fn bench_record(reader: &Reader) -> Result<BenchRecord, StoredError> {
    let tally = reader.tally()?;
    let mut events = reader.events()?;
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
            if calls.len() < FIRST {
                calls.push(*exchange);
            }
        }
    }
    let mut tally = tally.unwrap_or_else(|| {
        replayed.caveats.extend(sampled_rows(reader.run()));
        replayed
    });
    tally.caveats.extend(events.caveats());
    Ok(BenchRecord {
        tally,
        first: first.into_values().flatten().collect(),
        timeline,
    })
}

pub(crate) fn read_bench(folder: &Path, reader: &Reader) -> Result<BenchParts, StoredError> {
    let BenchRecord {
        tally,
        first,
        timeline,
    } = bench_record(reader)?;
    let run = reader.run().clone();
    let mut facts = BenchFacts::new(&run, &tally, &first).map_err(|source| StoredError::Axis {
        folder: folder.to_owned(),
        source,
    })?;
    if BenchFacts::is_of_services(&run) {
        add_services(&mut facts, folder)?;
    }
    let charts = bench::Charts::new(&run, &tally, &facts, &timeline);
    Ok(BenchParts { facts, charts })
}

/// Adds what the services of a bench sent and opened, where their ledgers can be read: a run that
/// was killed left some unfinished.
fn add_services(facts: &mut BenchFacts, folder: &Path) -> Result<(), StoredError> {
    let read = |one: &store::Outgoing| -> Result<ObservedFacts, StoredError> {
        Ok(traffic(&Reader::open(&one.folder(folder))?)?.facts())
    };
    let mut rounds = Vec::new();
    for place in store::outgoing(folder)? {
        match read(&place) {
            Ok(traffic) => rounds.push(OutgoingRound {
                ledger: Some(place.name()),
                place,
                traffic,
            }),
            Err(error) => facts.add_caveats([Caveat::incomplete(
                NOT_OBSERVED,
                format!("{}: {error}", place.name()),
            )]),
        }
    }
    facts.add_services(&rounds);
    Ok(())
}

pub(crate) fn check(reader: &Reader) -> Result<CheckFacts, StoredError> {
    // cut off before the first probe there is no profile, and then the page says so
    let profile = reader.card()?.unwrap_or_default();
    let mut events = reader.events()?;
    let rows: Vec<Row> = events.by_ref().take(MOST_ROWS).collect();
    let mut facts = CheckFacts::new(&profile, &rows);
    let rest = events.next().map(|_| {
        Caveat::incomplete(
            "too-many-events",
            format!("events beyond the first {MOST_ROWS} were not read: no check records as many"),
        )
    });
    facts.add_caveats(rest.into_iter().chain(events.caveats()));
    Ok(facts)
}

/// Hands the events to a fold, then what is missing from them.
pub(crate) fn replay(reader: &Reader, fold: &mut impl Sink) -> Result<(), StoredError> {
    let mut events = reader.events()?;
    for row in events.by_ref() {
        fold.record(row.as_event());
    }
    for caveat in events.caveats() {
        fold.record(Event::Caveat(&caveat));
    }
    if let Some(caveat) = sampled_rows(reader.run()) {
        fold.record(Event::Caveat(&caveat));
    }
    Ok(())
}

/// What limits counts that are made from the rows of a ledger; none where every exchange has a row.
fn sampled_rows(run: &Run) -> Option<Caveat> {
    (run.rows == Rows::Sample).then(|| {
        Caveat::incomplete(
            "sampled-rows",
            "this ledger holds a sample of its exchanges: counts and findings are of the sample",
        )
    })
}
