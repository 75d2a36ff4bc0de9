//! Times and counts of each program against the baseline: one figure for each round, paired by
//! round.

use super::variant::{ProgramFacts, RoundFigures};
use crate::time_difference::{self, Pair, TimeDifference, TimeStatistic};
use intact_ledger::kinds;
use intact_statistics::Interval;
use serde::Serialize;

kinds! {
    /// What is counted in a round.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum CountStatistic, words {
        /// Connections opened.
        Connections = "connections",
        /// Connections opened beyond those needed.
        Avoidable = "avoidable connections",
        /// Requests.
        Requests = "requests",
        /// Requests that failed.
        Failed = "failed requests",
        /// Requests on a connection that the server had closed.
        Stale = "stale reuses",
        /// TLS handshakes.
        Handshakes = "TLS handshakes",
        /// Names looked up.
        Lookups = "lookups",
        /// The most memory of one process, in MB.
        Memory = "MB of memory",
    }
}

/// A count of a program against the baseline's, for one run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CountDifference {
    /// The baseline.
    pub a: String,
    /// The program compared with it.
    pub b: String,
    /// What is counted.
    pub count: CountStatistic,
    /// Mean over the rounds that both completed, of `a` and `b`.
    pub a_mean: f64,
    /// See `a_mean`.
    pub b_mean: f64,
    /// `a - b`. Absent with fewer than 8 rounds.
    pub reduction: Option<Interval>,
    /// Whether a difference was shown; with fewer than 8 rounds absent.
    pub significant: Option<bool>,
}

type Time = fn(&RoundFigures) -> Option<f64>;

/// The figure of each program against that of the first.
fn pairs(programs: &[ProgramFacts], of: impl Fn(&RoundFigures) -> Option<f64>) -> Vec<Pair<'_>> {
    time_difference::against_the_first(programs.iter().map(|one| {
        let rounds = one.rounds.iter();
        let figures = rounds.filter_map(|round| Some((round.round, of(round)?)));
        (&*one.name, figures.collect())
    }))
}

const TIMES: [(TimeStatistic, Time); 3] = [
    (TimeStatistic::Wall, |round| round.wall_ms),
    (TimeStatistic::Cpu, |round| round.cpu_ms),
    (TimeStatistic::Outbound, |round| round.outbound_ms),
];

type Count = fn(&RoundFigures) -> Option<f64>;

const COUNTS: [(CountStatistic, Count); 8] = [
    (CountStatistic::Connections, |round| {
        Some(round.connections as f64)
    }),
    (CountStatistic::Avoidable, |round| {
        Some(round.avoidable as f64)
    }),
    (CountStatistic::Requests, |round| {
        Some(round.requests as f64)
    }),
    (CountStatistic::Failed, |round| Some(round.failed as f64)),
    (CountStatistic::Stale, |round| Some(round.stale as f64)),
    (CountStatistic::Handshakes, |round| {
        Some(round.handshakes as f64)
    }),
    (CountStatistic::Lookups, |round| Some(round.lookups as f64)),
    (CountStatistic::Memory, |round| round.memory_mb),
];

pub(super) fn times(programs: &[ProgramFacts]) -> Vec<TimeDifference> {
    let of_each =
        TIMES.map(|(statistic, of)| time_difference::times(statistic, &pairs(programs, of)));
    of_each.into_iter().flatten().collect()
}

pub(super) fn counts(programs: &[ProgramFacts]) -> Vec<CountDifference> {
    let mut all = Vec::new();
    for (count, of) in COUNTS {
        let pairs = pairs(programs, of);
        for (pair, difference) in pairs.iter().zip(time_difference::differences(&pairs)) {
            let sure = difference.ok();
            let (a_mean, b_mean) = pair.means();
            all.push(CountDifference {
                a: pair.a.to_owned(),
                b: pair.b.to_owned(),
                count,
                a_mean,
                b_mean,
                reduction: sure.as_ref().map(|one| one.interval),
                significant: sure.map(|one| one.significant),
            });
        }
    }
    all
}
