//! Times and counts of each program against the baseline: one figure for each round, paired by round.

use super::variant::{ProgramFacts, RoundFigures};
use crate::stats::{
    Adjusted, Comparison, Confidence, Interval, Refusal, adjust, paired_difference,
    paired_share_saved,
};
use serde::Serialize;

/// A time of a program against the baseline's, in milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// The baseline.
    pub a: String,
    /// The program held against it.
    pub b: String,
    /// `wall`, `cpu`, or `outbound` (the time its requests took together).
    pub statistic: &'static str,
    /// Mean over the rounds that both completed, of `a` and `b`.
    pub a_ms: f64,
    /// See `a_ms`.
    pub b_ms: f64,
    /// `a - b`; negative when `b` takes longer. Absent with fewer than 8 rounds.
    pub saved_ms: Option<Interval>,
    /// `(a - b) / a`.
    pub saved_share: Option<Interval>,
    /// p-value of no difference (Holm's, with more than ten comparisons).
    pub p_value: Option<f64>,
    /// Whether a difference was shown.
    pub differs: Option<bool>,
    /// Why there is no interval.
    pub refused: Option<String>,
}

/// A count of a program against the baseline's, for one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Counted {
    /// The baseline.
    pub a: String,
    /// The program held against it.
    pub b: String,
    /// `connections`, `avoidable`, `requests`, `failed`, `stale`, `handshakes`, `look_ups`.
    pub count: &'static str,
    /// Mean over the rounds that both completed, of `a` and `b`.
    pub a_mean: f64,
    /// See `a_mean`.
    pub b_mean: f64,
    /// `a - b`. Absent with fewer than 8 rounds.
    pub fewer: Option<Interval>,
    /// Whether a difference was shown; with fewer than 8 rounds absent.
    pub differs: Option<bool>,
}

type Of = fn(&RoundFigures) -> Option<f64>;

const TIMES: [(&str, Of); 3] = [
    ("wall", |round| round.wall_ms),
    ("cpu", |round| round.cpu_ms),
    ("outbound", |round| round.outbound_ms),
];

const COUNTS: [(&str, Of); 7] = [
    ("connections", |round| Some(round.connections as f64)),
    ("avoidable", |round| Some(round.avoidable as f64)),
    ("requests", |round| Some(round.requests as f64)),
    ("failed", |round| Some(round.failed as f64)),
    ("stale", |round| Some(round.stale as f64)),
    ("handshakes", |round| Some(round.handshakes as f64)),
    ("look_ups", |round| Some(round.look_ups as f64)),
];

/// The figure of both over the rounds that both completed.
fn series(a: &ProgramFacts, b: &ProgramFacts, of: Of) -> (Vec<f64>, Vec<f64>) {
    let pairs = a.rounds.iter().filter_map(|ours| {
        let theirs = b.rounds.iter().find(|theirs| theirs.round == ours.round)?;
        Some((of(ours)?, of(theirs)?))
    });
    pairs.unzip()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The programs after the first, each with its figures and the first's.
fn pairs(programs: &[ProgramFacts], of: Of) -> Vec<(&ProgramFacts, Vec<f64>, Vec<f64>)> {
    let Some((first, rest)) = programs.split_first() else {
        return Vec::new();
    };
    let held = rest.iter().map(|other| {
        let (a, b) = series(first, other, of);
        (other, a, b)
    });
    held.filter(|(_, a, _)| !a.is_empty()).collect()
}

pub(super) fn times(programs: &[ProgramFacts]) -> Vec<Compared> {
    let mut all = Vec::new();
    for (statistic, of) in TIMES {
        let pairs = pairs(programs, of);
        let differences = held(&pairs, paired_difference);
        let shares = held(&pairs, paired_share_saved);
        for (((b, ours, theirs), difference), share) in pairs.iter().zip(differences).zip(shares) {
            let sure = difference.as_ref().ok();
            all.push(Compared {
                a: programs[0].name.clone(),
                b: b.name.clone(),
                statistic,
                a_ms: mean(ours),
                b_ms: mean(theirs),
                saved_ms: sure.map(|one| one.interval),
                saved_share: share.ok().map(|one| one.interval),
                p_value: sure.map(|one| one.p_value),
                differs: sure.map(|one| one.differs),
                refused: difference.err().map(|refusal| refusal.to_string()),
            });
        }
    }
    all
}

pub(super) fn counts(programs: &[ProgramFacts]) -> Vec<Counted> {
    let mut all = Vec::new();
    for (count, of) in COUNTS {
        let pairs = pairs(programs, of);
        let differences = held(&pairs, paired_difference);
        for ((b, ours, theirs), difference) in pairs.iter().zip(differences) {
            let sure = difference.ok();
            all.push(Counted {
                a: programs[0].name.clone(),
                b: b.name.clone(),
                count,
                a_mean: mean(ours),
                b_mean: mean(theirs),
                fewer: sure.as_ref().map(|one| one.interval),
                differs: sure.map(|one| one.differs),
            });
        }
    }
    all
}

type Pairing = fn(&[f64], &[f64], Confidence) -> Result<Comparison, Refusal>;

/// The comparisons of one figure, adjusted for each other where there are many.
fn held(
    pairs: &[(&ProgramFacts, Vec<f64>, Vec<f64>)],
    pairing: Pairing,
) -> Vec<Result<Adjusted, Refusal>> {
    let each: Vec<Result<Comparison, Refusal>> = pairs
        .iter()
        .map(|(_, a, b)| pairing(a, b, Confidence::P95))
        .collect();
    let comparisons: Vec<Comparison> = each
        .iter()
        .filter_map(|one| one.as_ref().ok())
        .copied()
        .collect();
    let mut adjusted = adjust(&comparisons, Confidence::P95).into_iter();
    let mut held = Vec::new();
    for one in each {
        match one {
            Err(refusal) => held.push(Err(refusal)),
            Ok(_) => held.extend(adjusted.next().map(Ok)),
        }
    }
    held
}
