//! The cells of the card: which kinds at which destinations, and why some show nothing. Must not
//! judge a strike.

use super::card::{FaultCell, FaultOutcome, Obstacle};
use super::judge::RunJudge;
use super::run_rows::{Place, RunRows};
use super::strike_counts::StrikeCounts;
use intact_document::unobserved::Unobserved;
use intact_ledger::{FaultKind, FaultScope};
use intact_reading::{Reading, Why};
use intact_traffic::{DestinationKey, ObservedFacts};
use std::collections::{BTreeSet, HashMap};

/// All cells: the kinds in the order of their runs, and within a kind the destinations.
pub(super) fn cells(
    runs: &[RunRows],
    observed: &[ObservedFacts],
    by_caveats: &Unobserved,
) -> Vec<FaultCell> {
    let baseline = runs.iter().find(|run| run.is_baseline);
    let refusal = baseline.and_then(refusal);
    let mut destinations: BTreeSet<(String, Option<String>)> =
        runs.iter().flat_map(destinations).collect();
    if let (Some(baseline), false) = (baseline, runs.iter().any(|run| run.is_limited)) {
        // a destination that no later run came to is not shown
        let called = baseline.requests.iter();
        let called = called.filter_map(|request| baseline.place_of(request));
        destinations.extend(called.map(Place::name_and_host));
    }
    let mut cells = Vec::new();
    for (run, observed) in runs.iter().zip(observed) {
        let Some(kind) = run.kind else { continue };
        let judge = RunJudge::new(run, baseline);
        let named = destinations.iter().cloned();
        let named: Vec<_> = match destinations.is_empty() {
            true => vec![(String::new(), None)],
            false => named.collect(),
        };
        for (destination, host) in named {
            let mut cell = FaultCell::empty(kind, run, destination, host);
            judge.count(&mut cell);
            let obstacle = refusal.or_else(|| judge.obstacle(&cell.destination));
            match obstacle {
                Some(obstacle) => cell.set_obstacle(obstacle),
                None => judge.fill(&mut cell),
            }
            cell.read(missing(observed, &cell.destination, by_caveats).as_ref());
            cells.push(cell);
        }
    }
    without_repetitions(cells)
}

/// The strikes on the whole pool decide: one connection shows something only where its outcome is
/// another one.
fn without_repetitions(cells: Vec<FaultCell>) -> Vec<FaultCell> {
    let pools = cells.iter().filter(|cell| cell.scope == FaultScope::All);
    let pools: HashMap<(FaultKind, String), FaultOutcome> = pools
        .map(|cell| ((cell.kind, cell.destination.clone()), cell.outcome))
        .collect();
    let shows_more = |cell: &FaultCell| {
        let pool = pools.get(&(cell.kind, cell.destination.clone()));
        pool.is_none_or(|pool| cell.not_applied.is_none() && cell.outcome != *pool)
    };
    let all = cells.into_iter();
    all.filter(|cell| cell.scope == FaultScope::All || shows_more(cell))
        .collect()
}

/// Why there is no verdict at all.
fn refusal(baseline: &RunRows) -> Option<Obstacle> {
    match &baseline.end {
        None => Some(Obstacle::NoBaseline),
        Some(end) if !end.is_success() => Some(Obstacle::BaselineFailed),
        Some(_) => None,
    }
}

/// Why requests to a destination are missing, if some are.
fn missing(observed: &ObservedFacts, destination: &str, by_caveats: &Unobserved) -> Option<Why> {
    let mut destinations = observed.destinations.iter();
    let own = destinations.find(|one| one.is_called(destination));
    let own = own.map(|one| &one.figures.counted.unobserved);
    let mut all = own.into_iter().chain([by_caveats]);
    let lacking = all.find(|one| !one.has_all_requests())?;
    lacking.missing().map(Why::from)
}

/// The destinations that strikes and missing strikes name.
fn destinations(run: &RunRows) -> Vec<(String, Option<String>)> {
    let struck = run.strikes.iter().filter_map(|strike| {
        let place = run.connections.get(&strike.connection)?;
        Some(place.name_and_host())
    });
    let missed = run.not_applied.iter().filter_map(|missed| {
        let key = DestinationKey {
            origin: missed.origin.clone(),
            address: missed.peer.filter(|_| missed.origin.is_none()),
            ..DestinationKey::default()
        };
        let is_named = key.origin.is_some() || key.address.is_some();
        is_named.then(|| (key.name(), key.host()))
    });
    struck.chain(missed).collect()
}

impl FaultCell {
    fn empty(
        kind: FaultKind,
        run: &RunRows,
        destination: String,
        host: Option<String>,
    ) -> FaultCell {
        FaultCell {
            kind,
            scope: run.scope,
            name: run.name.clone(),
            destination,
            host,
            outcome: FaultOutcome::NotApplied,
            not_applied: None,
            struck: Reading::default(),
            sent: 0,
            reached: Reading::default(),
            affected: Reading::default(),
            met_again: 0,
            recovered: Reading::default(),
            failed: Reading::default(),
            duplicated: Reading::default(),
            truncated: Reading::default(),
            leaked: Reading::default(),
            hung_ms: Reading::default(),
            hung_until: None,
            cost_ms: None,
            example: None,
            undecided: None,
            counted: StrikeCounts::new(),
            has_held: false,
            is_partly_seen: false,
        }
    }

    pub(super) fn set_obstacle(&mut self, obstacle: Obstacle) {
        self.not_applied = Some(obstacle);
        self.outcome = match obstacle.is_unsuited() {
            true => FaultOutcome::Unsuited,
            false => FaultOutcome::NotApplied,
        };
    }
}
