//! Times of one variant, function or program against another's: one figure for each round, paired
//! by round, and what is sure of the difference. Which pairs and which figures is the caller's
//! matter.

use intact_document::figures::NANOS_PER_MS;
use intact_document::{Readings, Unobserved};
use intact_ledger::kinds;
use intact_reading::{Reading, Why};
use intact_statistics::{
    Adjusted, Interval, MIN_ROUNDS, NoInterval, PairedDifference, adjust, mean, paired_difference,
    paired_share_saved, typical_difference, typical_round, typical_share_saved,
};
use serde::Serialize;

kinds! {
    /// Which time of a round is compared.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum TimeStatistic, words {
        /// Typical latency of a bench, setup included.
        Typical = "typical",
        /// Mean latency of a bench, setup included; of a function the mean time of an invocation.
        Mean = "mean",
        /// Median latency of a bench.
        P50 = "p50",
        /// 99th percentile of the latency of a bench.
        P99 = "p99",
        /// Wall time of a program.
        Wall = "wall time",
        /// CPU time of a program.
        Cpu = "CPU time",
        /// Sum of the latencies of a program's requests.
        Outbound = "waiting for responses",
    }
}

/// One comparison: what `b` saves against `a`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TimeDifference {
    /// The reference: of a bench keep-alive off, resumption off, else the axis' first value;
    /// elsewhere the first.
    pub a: String,
    /// The one that might save something.
    pub b: String,
    /// The axis in which they differ, where there are axes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub axis: Option<String>,
    /// Which time is compared.
    pub statistic: TimeStatistic,
    /// Its mean over the rounds that both completed, in milliseconds, of `a` and `b`; of the
    /// typical latency without 10 % of the rounds at either end.
    pub a_ms: f64,
    /// See `a_ms`.
    pub b_ms: f64,
    /// `a - b` in milliseconds; negative when `b` takes longer. Absent with fewer than 8 rounds.
    pub saved_ms: Option<Interval>,
    /// `(a - b) / a`.
    pub saved_share: Option<Interval>,
    /// p-value of no difference (Holm's, with more than ten comparisons).
    pub p_value: Option<f64>,
    /// Whether a difference was shown, by p-value and interval.
    pub significant: Option<bool>,
    /// Why there is no interval.
    pub no_interval_reason: Option<String>,
    /// Where `a` and `b` stand in the run.
    #[serde(skip)]
    pub(crate) indices: (usize, usize),
}

impl TimeDifference {
    /// `(a - b) / a`, with an interval or without one.
    #[must_use]
    pub fn saved_estimate(&self) -> f64 {
        let interval = self.saved_share.map(|saved| saved.value);
        interval.unwrap_or_else(|| (self.a_ms - self.b_ms) / self.a_ms.max(f64::MIN_POSITIVE))
    }
}

/// The share has no bounds: the time of the reference itself is not distinguished from nothing.
const VARY_TOO_MUCH: Why =
    Why::cannot_see("the rounds vary too much for an interval; measure for longer");

/// Why a subject that was compared with none has no saving.
pub(crate) fn uncompared(all: &[TimeDifference], name: &str) -> Why {
    if all.iter().any(|one| one.a == name) {
        Why::Baseline
    } else {
        Why::not_measured("no variant differs from it in one setting")
    }
}

/// An interval over this number of rounds: every value of it is possible.
pub(crate) fn interval(interval: Option<Interval>, rounds: usize) -> Reading {
    match (interval, rounds) {
        (Some(one), _) => Reading::interval(one.value, one.low, one.high),
        (None, MIN_ROUNDS..) => Reading::unknown(VARY_TOO_MUCH),
        (None, rounds) => Reading::unknown(Why::TooFew {
            had: rounds as u64,
            needed: MIN_ROUNDS as u64,
        }),
    }
}

/// What a variant saves against the one that it is compared with.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Saving {
    /// In nanoseconds.
    pub(crate) time: Reading,
    /// As a share.
    pub(crate) share: Reading,
}

impl Saving {
    /// Of the variant `b`, which has this number of rounds. `uncompared` is the reason where the
    /// variant is compared with no other.
    pub(crate) fn of(
        all: &[TimeDifference],
        (b, rounds): (&str, usize),
        statistic: TimeStatistic,
        uncompared: Why,
    ) -> Saving {
        let mut all = all.iter();
        let compared = all.find(|one| one.statistic == statistic && one.b == b);
        compared.map_or_else(
            || Saving::unknown(uncompared),
            |one| Saving {
                time: interval(one.saved_ms, rounds).times(NANOS_PER_MS),
                share: interval(one.saved_share, rounds),
            },
        )
    }

    /// Nothing is known.
    pub(crate) fn unknown(why: Why) -> Saving {
        Saving {
            time: Reading::unknown(why.clone()),
            share: Reading::unknown(why),
        }
    }

    /// The same where requests may be missing.
    pub(crate) fn observed(self, missing: &Unobserved) -> Saving {
        match self.time.why() {
            Some(Why::Baseline) => self,
            _ => Saving {
                time: missing.statistic(self.time),
                share: missing.statistic(self.share),
            },
        }
    }

    /// Adds it to the figures of a subject.
    pub(crate) fn add_to(self, readings: &mut Readings) {
        readings.set("saved", self.time);
        readings.set("saved-share", self.share);
    }
}

/// How a figure of rounds stands for all of them; absent without a round.
type OverRounds = fn(&[f64]) -> Option<f64>;

/// A figure of two over the rounds that both completed.
pub(crate) struct Pair<'a> {
    /// Who; see [`TimeDifference`].
    pub(crate) a: &'a str,
    pub(crate) b: &'a str,
    pub(crate) axis: Option<&'a str>,
    pub(crate) indices: (usize, usize),
    /// The figures, round by round.
    pub(crate) values: (Vec<f64>, Vec<f64>),
}

impl Pair<'_> {
    /// Mean over rounds, of both; they are never empty.
    pub(crate) fn means(&self) -> (f64, f64) {
        self.over_rounds(mean)
    }

    fn over_rounds(&self, of: OverRounds) -> (f64, f64) {
        let of = |values: &[f64]| of(values).unwrap_or(f64::NAN);
        (of(&self.values.0), of(&self.values.1))
    }
}

/// A figure by the numbers of the rounds that have it.
pub(crate) type ByRound = Vec<(u32, f64)>;

/// The figure of both over the rounds that both have it in.
pub(crate) fn paired(a: &ByRound, b: &ByRound) -> (Vec<f64>, Vec<f64>) {
    let pairs = a.iter().filter_map(|(round, ours)| {
        let (_, theirs) = b.iter().find(|(other, _)| other == round)?;
        Some((*ours, *theirs))
    });
    pairs.unzip()
}

/// All but the first, each with its name, against the first, where both have the figure at all.
pub(crate) fn against_the_first<'a>(
    all: impl IntoIterator<Item = (&'a str, ByRound)>,
) -> Vec<Pair<'a>> {
    let mut all = all.into_iter();
    let Some((a, first)) = all.next() else {
        return Vec::new();
    };
    let pairs = all.zip(1..).map(|((b, other), index)| Pair {
        a,
        b,
        axis: None,
        indices: (0, index),
        values: paired(&first, &other),
    });
    pairs.filter(|pair| !pair.values.0.is_empty()).collect()
}

/// The comparisons of one time, adjusted for each other where there are many.
pub(crate) fn times(statistic: TimeStatistic, pairs: &[Pair<'_>]) -> Vec<TimeDifference> {
    // one slow round does not decide what is typical
    let (difference, share, over_rounds): (Pairing, Pairing, OverRounds) = match statistic {
        TimeStatistic::Typical => (typical_difference, typical_share_saved, typical_round),
        _ => (paired_difference, paired_share_saved, mean),
    };
    let both = held(pairs, difference).into_iter().zip(held(pairs, share));
    let rows = pairs.iter().zip(both).map(|(pair, (difference, share))| {
        let (a_ms, b_ms) = pair.over_rounds(over_rounds);
        let sure = difference.as_ref().ok();
        TimeDifference {
            a: pair.a.to_owned(),
            b: pair.b.to_owned(),
            axis: pair.axis.map(str::to_owned),
            statistic,
            a_ms,
            b_ms,
            saved_ms: sure.map(|one| one.interval),
            saved_share: share
                .ok()
                .map(|one| one.interval)
                .filter(Interval::is_bounded),
            p_value: sure.map(|one| one.p_value),
            // of many comparisons p-values are adjusted less than intervals: both have to show it
            significant: sure.map(|one| one.significant && one.interval.excludes_zero()),
            no_interval_reason: difference.err().map(|refusal| refusal.to_string()),
            indices: pair.indices,
        }
    });
    rows.collect()
}

/// The differences of one figure, adjusted for each other where there are many.
pub(crate) fn differences(pairs: &[Pair<'_>]) -> Vec<Result<Adjusted, NoInterval>> {
    held(pairs, paired_difference)
}

type Pairing = fn(&[f64], &[f64]) -> Result<PairedDifference, NoInterval>;

fn held(pairs: &[Pair<'_>], pairing: Pairing) -> Vec<Result<Adjusted, NoInterval>> {
    let each: Vec<Result<PairedDifference, NoInterval>> = pairs
        .iter()
        .map(|pair| pairing(&pair.values.0, &pair.values.1))
        .collect();
    let comparisons: Vec<PairedDifference> = each
        .iter()
        .filter_map(|one| one.as_ref().ok())
        .copied()
        .collect();
    let mut adjusted = adjust(&comparisons).into_iter();
    let mut held = Vec::new();
    for one in each {
        match one {
            Err(refusal) => held.push(Err(refusal)),
            Ok(_) => held.extend(adjusted.next().map(Ok)),
        }
    }
    held
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_comparisons_none_is_shown_whose_interval_has_0() {
        let mut state = 1u64;
        let mut random = || {
            let next = state.wrapping_mul(6_364_136_223_846_793_005);
            state = next.wrapping_add(1);
            (state >> 40) as f64 / f64::from(1 << 24)
        };
        let mut is_split = false;
        for _ in 0..50 {
            let pairs = (0..12).map(|_| {
                let a: Vec<f64> = (0..9).map(|_| 1.0 + 9.0 * random()).collect();
                let b = a.iter().map(|a| a + 0.6 - 2.0 * random()).collect();
                Pair {
                    a: "a",
                    b: "b",
                    axis: None,
                    indices: (0, 1),
                    values: (a, b),
                }
            });
            let pairs: Vec<Pair<'_>> = pairs.collect();
            let mut by_p_value = differences(&pairs).into_iter().flatten();
            is_split |= by_p_value.any(|one| one.significant && !one.interval.excludes_zero());
            for one in times(TimeStatistic::Mean, &pairs) {
                let shows = |one: Option<Interval>| one.is_none_or(|one| one.excludes_zero());
                let is_shown = one.significant == Some(true);
                assert!(
                    !is_shown || shows(one.saved_ms) && shows(one.saved_share),
                    "{one:?}"
                );
            }
        }
        assert!(is_split, "p-values and intervals agreed everywhere");
    }

    #[test]
    fn a_share_without_bounds_has_no_value_and_names_the_reason() {
        // one round of the reference outweighs all others
        let mut a = vec![1.0; 10];
        a[3] = 1e6;
        let pair = Pair {
            a: "a",
            b: "b",
            axis: None,
            indices: (0, 1),
            values: (a, vec![1.0; 10]),
        };
        let all = times(TimeStatistic::Mean, &[pair]);
        assert_eq!(
            (all[0].significant, all[0].saved_share),
            (Some(false), None)
        );
        let share = |rounds| {
            let saving = Saving::of(&all, ("b", rounds), TimeStatistic::Mean, Why::Baseline);
            saving.share.why().cloned()
        };
        assert_eq!(share(10), Some(VARY_TOO_MUCH));
        assert_eq!(share(7), Some(Why::TooFew { had: 7, needed: 8 }));
    }
}
