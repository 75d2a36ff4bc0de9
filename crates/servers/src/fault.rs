//! What a program did when its kept connections failed: a verdict for each destination and kind of
//! fault, from the rows of `watch --fault` alone.
//!
//! ```text
//! let mut analysis = FaultAnalysis::new(&run);   // run.variants names the runs: `none` (the baseline), then a kind each
//! analysis.record(event);                        // rows carry the variant
//! let facts = analysis.facts();
//! ```
//! A request is recognised when it is sent again by its fingerprint (method, full target and body).
//! Where the program sends equal requests anyway, the run without a fault decides which of them are
//! new. What neither shows stays a range. Must not guess.

mod card;
mod cells;
mod effects;
mod findings;
mod judge;
mod repeats;
mod run_rows;
mod strike_counts;
mod subjects;
mod verdict;

pub use card::{FaultCell, FaultOutcome, FaultRun, Obstacle};
pub use findings::RULES;

use intact_document::Claims;
use intact_document::figures::ObservedCounts;
use intact_document::finding::Finding;
use intact_document::traffic_readings::{CountedTraffic, TrafficReadings};
use intact_document::unobserved::Unobserved;
use intact_ledger::{Caveat, Event, Run, Sink};
use run_rows::RunRows;
use serde::Serialize;
use std::ops::Range;

/// The axis of a run's variants that names the fault.
pub const AXIS: &str = "fault";
/// The value of that axis in the run without a fault.
pub const NO_FAULT: &str = "none";
/// What follows the kind in that axis where one connection of a pool is struck.
pub const ONE: &str = "/one";

/// Whether a run of `watch` is one with faults.
pub fn is_of_faults(run: &Run) -> bool {
    run.varied == [AXIS]
}

/// A fold over the events of runs with and without faults.
pub struct FaultAnalysis {
    /// The number of variants before those that are the runs.
    first: usize,
    runs: Vec<RunRows>,
    caveats: Vec<Caveat>,
}

/// What a program did under faults. Times are in milliseconds where the name says so.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FaultFacts {
    /// Sentences, the worst outcome first.
    pub verdict: Claims,
    /// Whether every kind that suits the connections was applied, and every request got its
    /// response in the end, none of them twice.
    pub is_safe: bool,
    /// Each run of the program: without a fault, then one for each kind.
    pub runs: Vec<FaultRun>,
    /// The card: each kind at each destination.
    pub cells: Vec<FaultCell>,
    /// What stands out, the worst first.
    pub findings: Vec<Finding>,
    /// Requests and connections of all runs.
    #[serde(flatten)]
    pub traffic: TrafficReadings,
    /// What was counted of them.
    #[serde(skip)]
    pub counted: ObservedCounts,
    /// What limits the figures.
    pub caveats: Vec<Caveat>,
    /// What of the traffic is missing.
    #[serde(skip)]
    pub(crate) unobserved: Unobserved,
}

impl FaultAnalysis {
    /// One without any row yet; the runs are the variants of `run`.
    pub fn new(run: &Run) -> FaultAnalysis {
        FaultAnalysis::of_variants(run, 0..run.variants.len())
    }

    /// The same of these variants alone; those that there are not have no run.
    pub fn of_variants(run: &Run, variants: Range<usize>) -> FaultAnalysis {
        let first = variants.start;
        let runs = run.variants.get(variants).unwrap_or_default().iter();
        FaultAnalysis {
            first,
            runs: runs.map(|variant| RunRows::new(run, variant)).collect(),
            caveats: Vec::new(),
        }
    }

    /// Whether a run has struck several connections of a destination that were open together.
    pub fn has_struck_pool(&self, variant: u32) -> bool {
        let nth = (variant as usize).checked_sub(self.first);
        let run = nth.and_then(|nth| self.runs.get(nth));
        run.is_some_and(RunRows::has_struck_pool)
    }

    /// What was found out so far.
    pub fn facts(&self) -> FaultFacts {
        let mut caveats = self.caveats.clone();
        caveats.extend(self.runs.iter().filter_map(RunRows::caveat));
        let by_caveats = Unobserved::by_caveats(&caveats);
        let observed: Vec<_> = self.runs.iter().map(RunRows::observed).collect();
        let cells = cells::cells(&self.runs, &observed, &by_caveats);
        let runs = self.runs.iter().filter(|run| !run.was_left_out());
        let runs: Vec<FaultRun> = runs.map(FaultRun::of).collect();
        let mut unobserved = by_caveats;
        for one in &observed {
            unobserved.add(&one.totals.counted.unobserved);
        }
        let findings = findings::findings(&cells);
        let totals = || observed.iter().map(|one| &one.totals);
        let counted = ObservedCounts::sum(totals().map(|one| &one.counted));
        let in_vain = totals().map(|one| one.lookups_in_vain()).sum();
        let traffic = CountedTraffic::observed(&counted, &unobserved, in_vain);
        let traffic = TrafficReadings::of(traffic);
        let is_safe = unobserved.missing().is_none() && verdict::is_safe(&cells);
        FaultFacts {
            verdict: verdict::claims(&runs, &cells, is_safe, &unobserved),
            is_safe,
            runs,
            cells,
            findings,
            traffic,
            counted,
            caveats,
            unobserved,
        }
    }
}

impl Sink for FaultAnalysis {
    fn record(&mut self, event: Event<'_>) {
        if let Event::Caveat(caveat) = event
            && !self.caveats.contains(caveat)
            && self.caveats.len() < 64
        {
            self.caveats.push(caveat.clone());
        }
        let variant = event.variant().map(|variant| variant as usize);
        let nth = variant.and_then(|variant| variant.checked_sub(self.first));
        if let Some(run) = nth.and_then(|nth| self.runs.get_mut(nth)) {
            run.record(event);
        }
    }
}
