//! Programs side by side: what `compare` found out, from the events of interleaved runs or from
//! stored ledgers.
//!
//! ```text
//! let mut contest = Contest::new(&run);                 // run.variants names the programs; the first is the baseline
//! contest.record(event);                                // rows carry variant and round; Event::Round ends a program's round
//! contest.take(0, None, None, &observed.facts());       // or: a whole ledger as the only round of a program
//! let facts = contest.facts();
//! ```
//! The round is the unit: one figure for each program and round, paired differences over rounds.
//! Connections and findings are those of one run each, because every run is a process of its own.
//! Must not run anything.

mod answer;
mod count_difference;
mod fault_change;
mod finding_change;
mod finding_keys;
mod outcome;
mod subjects;
mod variant;
mod verdict;

pub use crate::time_difference::{TimeDifference, TimeStatistic};
pub use answer::{Answer, Verdict};
pub use count_difference::{CountDifference, CountStatistic};
pub use fault_change::{FaultChange, FaultResult};
pub use finding_change::{FindingChange, FindingState, PlaceChange};
pub(crate) use outcome::is_fewer;
pub use outcome::{ComparedFigure, FigureChange, Outcome};
pub use variant::{Handshakes, ProgramFacts, RoundFigures, Spread};

use crate::likeness::{ConnectionBehaviour, Likeness};
use crate::traffic::ObservedTraffic;
use answer::Compared;
use finding_keys::FindingKeys;
use intact_document::cpu::ProgramWork;
use intact_document::figures::ObservedCounts;
use intact_document::finding::Finding;
use intact_document::traffic_readings::TrafficReadings;
use intact_document::unobserved::Unobserved;
use intact_document::{Claim, ClaimKind, Claims};
use intact_ledger::{Caveat, Event, Run, Sink, Variant};
use intact_reading::Why;
use intact_servers::fault::{self, FaultAnalysis, FaultFacts};
use intact_traffic::{ObservedFacts, TrafficAnalysis};
use serde::Serialize;
use variant::Program;

/// Why nothing is known of a program.
const NO_ROUND: &str = "no round was completed";
/// The id of the caveat about a program that failed.
pub const PROGRAM_FAILED: &str = "program-failed";
/// The round that warms up: recorded, and left out of every figure.
pub const WARMUP: u32 = 0;
/// The axis of variants that are the commits of a repository: a change is asked whether it did what
/// it is for.
pub const COMMIT_AXIS: &str = "commit";

/// A fold over the events of interleaved runs.
pub struct Comparison {
    run: Run,
    programs: Vec<Program>,
    /// Of each program, its runs under faults; empty where there are none.
    faults: Vec<FaultAnalysis>,
    caveats: Vec<Caveat>,
    /// What the caveats that are of no single program report as missing.
    missing: Unobserved,
}

/// What a comparison found out. Times are in milliseconds where the name says so.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CompareFacts {
    /// What was found out, the claim that matters most first.
    pub verdict: Claims,
    /// Of commits: whether the change did what it is for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<Answer>,
    /// The programs, the baseline first.
    pub variants: Vec<ProgramFacts>,
    /// Whether the programs ran in interleaved rounds. Otherwise they are ledgers recorded
    /// separately, whose load may differ.
    pub is_experiment: bool,
    /// Each program except the baseline: what was shown, the largest difference first.
    pub outcomes: Vec<Outcome>,
    /// Times of each program against the baseline.
    pub comparisons: Vec<TimeDifference>,
    /// Counts of each program against the baseline, for one run each.
    pub counts: Vec<CountDifference>,
    /// The state of the baseline's findings, and the new findings.
    pub changes: Vec<FindingChange>,
    /// What the programs did under faults, compared with the baseline, where that was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fault_changes: Vec<FaultChange>,
    /// What stands out in the programs that are compared with the baseline; the subject begins
    /// with the program's name.
    pub findings: Vec<Finding>,
    /// Requests and connections of all programs and rounds.
    #[serde(flatten)]
    pub traffic: TrafficReadings,
    /// Rounds that every program has completed.
    pub rounds: u32,
    /// What the programs took processor time for, where that was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub work: Vec<ProgramWork>,
    /// How the further ledgers use connections, compared with the first as that of production,
    /// where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub like: Option<Likeness>,
    /// What limits the figures.
    pub caveats: Vec<Caveat>,
    /// What is missing from every program. What only one of them lacks is in its own figures.
    #[serde(skip)]
    pub(crate) missing: Unobserved,
}

impl CompareFacts {
    /// Compares how tests use connections with production; the tests are the programs after the
    /// first.
    pub fn compare_with_production(
        &mut self,
        production: ConnectionBehaviour,
        tests: Vec<ConnectionBehaviour>,
    ) {
        let like = Likeness::new(production, tests);
        let further = verdict::with_production(&self.variants);
        self.verdict = Claims::ranked(like.claims().into_iter().chain(further));
        self.like = Some(like);
    }
}

/// The variants that are programs; the others are their runs under faults.
pub fn programs_of(run: &Run) -> &[Variant] {
    let is_program = |variant: &&Variant| !variant.axes.contains_key(fault::AXIS);
    let count = run.variants.iter().take_while(is_program).count();
    &run.variants[..count]
}

impl Comparison {
    /// One without any round yet; the programs are the run's variants, and after them the runs of
    /// each under faults.
    pub fn new(run: &Run) -> Comparison {
        let count = programs_of(run).len();
        let under_faults = run.variants.len() - count;
        let each = under_faults.checked_div(count).unwrap_or(0);
        let faults = (0..count).filter(|_| each > 0).map(|nth| {
            let first = count + nth * each;
            FaultAnalysis::of_variants(run, first..first + each)
        });
        Comparison {
            faults: faults.collect(),
            programs: programs_of(run)
                .iter()
                .map(|variant| Program::new(run, &variant.name))
                .collect(),
            run: run.clone(),
            caveats: Vec::new(),
            missing: Unobserved::default(),
        }
    }

    /// Adds a round of a program from facts that were computed elsewhere, such as those of a stored
    /// ledger; wall and CPU time in nanoseconds. Programs that the run does not name are left
    /// out.
    pub fn take(
        &mut self,
        variant: usize,
        wall: Option<u64>,
        cpu: Option<u64>,
        facts: &ObservedFacts,
    ) {
        if let Some(program) = self.programs.get_mut(variant) {
            let round = program.rounds() + 1;
            program.take(round, wall, cpu, facts);
            for caveat in &facts.caveats {
                let words = format!("{}: {}", self.run.variants[variant].name, caveat.message);
                self.caveat(&Caveat {
                    message: words,
                    ..caveat.clone()
                });
            }
        }
    }

    /// What was found out so far.
    pub fn facts(&self) -> CompareFacts {
        let mut caveats = self.caveats.clone();
        if self.programs.iter().any(Program::is_cut) {
            caveats.push(Caveat::new(
                "cut-round",
                "a round that not every program completed is left out",
            ));
        }
        let missing = self.missing.clone();
        let keys = FindingKeys::of_programs(&self.run, &self.programs);
        let programs = self.programs.iter();
        let variants: Vec<ProgramFacts> = programs.map(|one| one.facts(&missing, &keys)).collect();
        let comparisons = count_difference::times(&variants);
        let counts = count_difference::counts(&variants);
        let changes = finding_change::changes(&variants);
        // every round of an experiment has a wall time, also where none was completed
        let mut rounds = variants.iter().flat_map(|one| &one.rounds);
        let is_experiment = rounds.all(|round| round.wall_ms.is_some());
        let outcomes = outcome::outcomes(&variants, &comparisons, &counts);
        let faults: Vec<FaultFacts> = self.faults.iter().map(FaultAnalysis::facts).collect();
        let fault_changes = fault_change::changes(&variants, &faults);
        let answers = match is_experiment && self.run.varied == [COMMIT_AXIS] {
            true => answer::answers(&Compared {
                programs: &variants,
                outcomes: &outcomes,
                times: &comparisons,
                counts: &counts,
                changes: &changes,
                faults: &fault_changes,
            }),
            false => Vec::new(),
        };
        let rounds = variants.iter().map(|one| one.rounds.len() as u32).min();
        let counted = ObservedCounts::sum(variants.iter().map(|one| &one.counted));
        let in_vain = variants.iter().map(|one| one.lookups_in_vain).sum();
        let mut unobserved = counted.unobserved.clone();
        unobserved.add(&missing);
        let all = ObservedTraffic::of(counted, in_vain, &unobserved, 1.0);
        let is_measured = variants.iter().any(|one| !one.rounds.is_empty());
        let traffic = match is_measured {
            true => all.traffic,
            false => all.traffic.unmeasured(&Why::cannot_see(NO_ROUND)),
        };
        let not_completed = not_completed(&variants, &mut caveats);
        CompareFacts {
            traffic,
            findings: challengers(&variants),
            verdict: verdict::claims(&variants, &outcomes, &counts, &changes, is_experiment)
                .with(not_completed)
                .with(answers.iter().map(Answer::claim)),
            answers,
            fault_changes,
            is_experiment,
            outcomes,
            variants,
            comparisons,
            counts,
            changes,
            rounds: rounds.unwrap_or(0),
            work: Vec::new(),
            like: None,
            caveats,
            missing,
        }
    }

    fn caveat(&mut self, caveat: &Caveat) {
        if !self.caveats.contains(caveat) && self.caveats.len() < 64 {
            self.caveats.push(caveat.clone());
        }
    }
}

/// Which programs failed, where one came to no end of a round: more than a caveat then.
fn not_completed(programs: &[ProgramFacts], caveats: &mut Vec<Caveat>) -> Vec<Claim> {
    let is_complete = programs.iter().all(|one| !one.rounds.is_empty());
    let failed = caveats.extract_if(.., |one| !is_complete && one.id == PROGRAM_FAILED);
    let claim = |one: Caveat| Claim::new(ClaimKind::Failed, 1.0, one.message);
    failed.map(claim).collect()
}

/// What stands out in the programs after the first.
fn challengers(programs: &[ProgramFacts]) -> Vec<Finding> {
    let rest = programs.iter().skip(1);
    let each = rest.flat_map(|one| {
        let found = one.findings.iter();
        found.map(|found| Finding {
            subject: format!("{}: {}", one.name, found.finding.subjects()),
            also: Vec::new(),
            ..found.finding.clone()
        })
    });
    each.collect()
}

impl Sink for Comparison {
    fn record(&mut self, event: Event<'_>) {
        if let Event::Caveat(caveat) = event {
            self.caveat(caveat);
            self.missing
                .add(&Unobserved::by_caveats(std::slice::from_ref(caveat)));
        }
        // a stack belongs to whichever program has a connection with its number
        if let Event::Stack(_) = event {
            self.programs.iter_mut().for_each(|one| one.place(event));
        }
        let variant = event.variant().map(|variant| variant as usize);
        if variant.is_some_and(|variant| variant >= self.programs.len()) {
            self.faults.iter_mut().for_each(|one| one.record(event));
        }
        let program = variant.and_then(|variant| self.programs.get_mut(variant));
        let Some(program) = program else { return };
        match event {
            Event::Round(round) => {
                program.end(round, TrafficAnalysis::new(&self.run));
                // what is compared has run in every program
                if self.programs.iter().all(|one| one.has_ended(round.round)) {
                    self.programs.iter_mut().for_each(Program::count_ended);
                }
            }
            other => program.record(other),
        }
    }
}
