//! Two variants compared round by round: the paired difference, and the share that one saves of the
//! other.
//!
//! The round is the unit. Exchanges of one round share its weather (drift, neighbours, a full
//! queue), so intervals over exchanges are far too narrow; the coverage test shows by how much.

use super::interval::{CONFIDENCE, Interval, NoInterval};
use super::student::{student_quantile, two_sided};

pub use intact_experiment::MIN_ROUNDS;

/// No measurement is larger, and sums of squares stay finite below it.
const LARGEST: f64 = 1e100;

/// What is compared: plain values, or their logarithms.
#[derive(Clone, Copy, PartialEq)]
enum Scale {
    /// `a - b`, in the unit of the values.
    Difference,
    /// `(a - b) / a`, a share of the baseline `a`: 0.66 when `b` takes a third of the time.
    ShareSaved,
}

/// The part of the rounds, one in this many rounded up, that is left out at either end where one
/// slow round is not to decide.
const TRIMMED: usize = 10;

/// How a figure of a round stands for all rounds.
#[derive(Clone, Copy, PartialEq)]
enum Centre {
    /// The mean.
    Mean,
    /// The mean without the rounds at either end.
    Trimmed,
}

/// The centre of some values, and what each adds to its error (its influence).
struct Centred {
    centre: f64,
    influence: Vec<f64>,
}

impl Centred {
    fn minus(&self, other: &Centred) -> Centred {
        let both = self.influence.iter().zip(&other.influence);
        Centred {
            centre: self.centre - other.centre,
            influence: both.map(|(ours, theirs)| ours - theirs).collect(),
        }
    }
}

impl Centre {
    /// Rounds that are left out at each end.
    fn left_out(self, rounds: usize) -> usize {
        match self {
            Centre::Trimmed if rounds > 2 => rounds.div_ceil(TRIMMED),
            _ => 0,
        }
    }

    /// Of the values, which are not empty. A trimmed mean varies as the mean of values of which
    /// those at the ends are moved to the last one that is kept (Tukey and McLaughlin 1963).
    fn of(self, values: &[f64]) -> Centred {
        let out = self.left_out(values.len());
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let kept = &sorted[out..sorted.len() - out];
        let (least, most) = (kept[0], kept[kept.len() - 1]);
        // around one of the values, so that values that are all alike have no spread at all
        let origin = match self {
            Centre::Mean => values[0],
            Centre::Trimmed => least,
        };
        let mean = |of: &mut dyn Iterator<Item = f64>, count: usize| {
            origin + of.map(|value| value - origin).sum::<f64>() / count as f64
        };
        let moved = values.iter().map(|value| value.clamp(least, most));
        let moved: Vec<f64> = moved.collect();
        let middle = mean(&mut moved.iter().copied(), moved.len());
        let centre = match self {
            Centre::Mean => middle,
            Centre::Trimmed => mean(&mut kept.iter().copied(), kept.len()),
        };
        let part = kept.len() as f64 / values.len() as f64;
        let influence = moved.iter().map(|value| (value - middle) / part);
        Centred {
            centre,
            influence: influence.collect(),
        }
    }
}

/// The figure of a typical round: the mean without the rounds at either end, so that one slow round
/// does not decide; absent without a value.
pub fn typical_round(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| Centre::Trimmed.of(values).centre)
}

/// A baseline `a` compared with `b` over the same rounds; positive means that `b` is smaller.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairedDifference {
    /// Mean of `a - b`, or trimmed mean.
    mean: f64,
    standard_error: f64,
    share: Option<ShareSaved>,
    /// Rounds that count.
    rounds: usize,
}

/// The ratio of two means, `(a - b) / a`, with what its interval needs: (co)variances of means, in
/// units of the mean of `a`.
#[derive(Debug, Clone, Copy, PartialEq)]
struct ShareSaved {
    value: f64,
    /// Variance of `a - b - value * a`.
    residual: f64,
    /// Variance of `a`.
    baseline: f64,
    /// Covariance of the two.
    both: f64,
}

impl ShareSaved {
    fn new(a: &[f64], differences: &Centred, centre: Centre) -> ShareSaved {
        let n = a.len() as f64;
        let a = centre.of(a);
        let baseline = a.centre;
        let value = differences.centre / baseline;
        let both = a.influence.iter().zip(&differences.influence);
        let relative: Vec<(f64, f64)> = both
            .map(|(a, d)| ((d - value * a) / baseline, a / baseline))
            .collect();
        let over_rounds = |product: fn(&(f64, f64)) -> f64| {
            relative.iter().map(product).sum::<f64>() / (n - 1.0) / n
        };
        ShareSaved {
            value,
            residual: over_rounds(|(residual, _)| residual * residual),
            baseline: over_rounds(|(_, a)| a * a),
            both: over_rounds(|(residual, a)| residual * a),
        }
    }

    /// Fieller's interval (1954, J. R. Stat. Soc. B 16:175): every share that a t test of `a - b -
    /// share * a` does not reject. Without bounds where the mean of `a` itself cannot be
    /// distinguished from nothing.
    fn interval(&self, t: f64) -> Interval {
        let squared = t * t;
        let rest = 1.0 - squared * self.baseline;
        let middle = -squared * self.both;
        let reach = (squared * self.residual * rest + middle * middle).sqrt();
        let [low, high] = [middle - reach, middle + reach].map(|end| self.value + end / rest);
        let is_bounded = rest > 0.0 && low.is_finite() && high.is_finite();
        let (low, high) = match is_bounded {
            // both times are positive, so that at most all of it is saved
            true => (low.min(self.value), high.max(self.value).min(1.0)),
            false => (f64::NEG_INFINITY, f64::INFINITY),
        };
        Interval {
            value: self.value,
            low,
            high,
        }
    }
}

impl PairedDifference {
    /// The estimate with its 95 % t interval.
    pub fn interval(&self) -> Interval {
        self.interval_at(CONFIDENCE)
    }

    /// The same with an interval that covers the truth with this probability.
    pub(super) fn interval_at(&self, level: f64) -> Interval {
        let t = student_quantile(0.5 + level / 2.0, self.freedom());
        if let Some(share) = &self.share {
            return share.interval(t);
        }
        // no spread at all: infinity times nothing must not become NaN
        let reach = if self.standard_error == 0.0 {
            0.0
        } else {
            t * self.standard_error
        };
        Interval {
            value: self.mean,
            low: self.mean - reach,
            high: self.mean + reach,
        }
    }

    /// Two-sided p-value of "no difference"; when all rounds differ by the same amount, 0 (or 1 if
    /// that is none).
    pub fn p_value(&self) -> f64 {
        if self.standard_error == 0.0 {
            return if self.mean == 0.0 { 1.0 } else { 0.0 };
        }
        two_sided(self.mean / self.standard_error, self.freedom())
    }

    fn freedom(&self) -> f64 {
        (self.rounds - 1) as f64
    }
}

/// Compares one statistic per round: the mean of `a - b`, paired by round.
///
/// Refuses unequal or fewer than [`MIN_ROUNDS`] rounds and values that are no numbers.
pub fn paired_difference(a: &[f64], b: &[f64]) -> Result<PairedDifference, NoInterval> {
    compare(a, b, (Scale::Difference, Centre::Mean))
}

/// The same of typical rounds: without those at either end, so that one slow round does not decide.
pub fn typical_difference(a: &[f64], b: &[f64]) -> Result<PairedDifference, NoInterval> {
    compare(a, b, (Scale::Difference, Centre::Trimmed))
}

/// [`paired_share_saved`] of typical rounds.
pub fn typical_share_saved(a: &[f64], b: &[f64]) -> Result<PairedDifference, NoInterval> {
    compare(a, b, (Scale::ShareSaved, Centre::Trimmed))
}

/// Compares one statistic per round: the share `(a - b) / a` that `b` saves, of the means over
/// rounds, so that it is the quotient of the [`paired_difference`] and the mean of `a`. Refuses
/// what [`paired_difference`] refuses, and values of zero or less.
pub fn paired_share_saved(a: &[f64], b: &[f64]) -> Result<PairedDifference, NoInterval> {
    compare(a, b, (Scale::ShareSaved, Centre::Mean))
}

fn compare(
    a: &[f64],
    b: &[f64],
    (scale, centre): (Scale, Centre),
) -> Result<PairedDifference, NoInterval> {
    if a.len() != b.len() {
        return Err(NoInterval::UnequalRounds {
            a: a.len(),
            b: b.len(),
        });
    }
    if a.len() < MIN_ROUNDS {
        return Err(NoInterval::TooFewRounds {
            rounds: a.len(),
            needed: MIN_ROUNDS,
        });
    }
    let mut differences = Vec::with_capacity(a.len());
    for (round, (&a, &b)) in a.iter().zip(b).enumerate() {
        // written so that NaN fails it
        if !(a.abs() <= LARGEST && b.abs() <= LARGEST) {
            return Err(NoInterval::NotANumber { round });
        }
        if scale == Scale::ShareSaved && !(a > 0.0 && b > 0.0) {
            return Err(NoInterval::NotPositive { round });
        }
        differences.push(a - b);
    }
    let n = differences.len() as f64;
    // the difference of what is typical of each, so that it agrees with both
    let difference = match centre {
        Centre::Mean => centre.of(&differences),
        Centre::Trimmed => centre.of(a).minus(&centre.of(b)),
    };
    let squares: f64 = difference.influence.iter().map(|one| one * one).sum();
    Ok(PairedDifference {
        mean: difference.centre,
        standard_error: (squares / (n - 1.0) / n).sqrt(),
        share: (scale == Scale::ShareSaved).then(|| ShareSaved::new(a, &difference, centre)),
        rounds: differences.len() - 2 * centre.left_out(differences.len()),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_sleep_data_give_students_own_interval() {
        // Student (1908), ten patients: mean 1.58, t = 4.0621, p = 0.002833, 95 % interval 0.7001
        // to 2.4599
        let dextro = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
        let laevo = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
        let compared = paired_difference(&laevo, &dextro).unwrap();
        let interval = compared.interval();
        assert!((interval.value - 1.58).abs() < 1e-12);
        assert!(
            (interval.low - 0.700_114).abs() < 1e-6 && (interval.high - 2.459_886).abs() < 1e-6,
            "{interval:?}"
        );
        assert!((compared.p_value() - 0.002_833).abs() < 1e-6);
    }

    #[test]
    fn one_slow_round_does_not_decide_what_is_typical() {
        let mut a: Vec<f64> = (0..20).map(|round| 90.0 + f64::from(round % 5)).collect();
        let b: Vec<f64> = a.iter().rev().map(|a| a - 30.0).collect();
        a[7] = 4_000.0;
        assert!(
            !paired_difference(&a, &b)
                .unwrap()
                .interval()
                .excludes_zero()
        );
        let typical = typical_difference(&a, &b).unwrap().interval();
        assert!(typical.low > 25.0 && typical.high < 35.0, "{typical:?}");
        let share = typical_share_saved(&a, &b).unwrap().interval();
        assert!(share.low > 0.28 && share.high < 0.38, "{share:?}");
        assert!((typical_round(&a).unwrap() - 92.0).abs() < 0.5);
        assert_eq!(typical_round(&[3.0, 5.0]), Some(4.0));
        assert_eq!(typical_round(&[]), None);
    }

    #[test]
    fn a_difference_that_is_not_shown_says_how_many_rounds_would_show_it() {
        let a: Vec<f64> = (0..20).map(|round| 10.0 + f64::from(round % 2)).collect();
        let b: Vec<f64> = (0..20).map(|round| 9.9 + f64::from(round / 10)).collect();
        let compared = paired_difference(&a, &b).unwrap();
        let times = compared.interval().times_needed().unwrap();
        assert!(times > 1.0, "{times}");
        let shown = paired_difference(&a, &[1.0; 20]).unwrap();
        assert_eq!(shown.interval().times_needed(), None);
    }

    #[test]
    fn a_third_of_the_time_saves_two_thirds() {
        let a: Vec<f64> = (0..20).map(|round| 90.0 + f64::from(round)).collect();
        let b: Vec<f64> = a.iter().map(|a| a / 3.0).collect();
        let interval = paired_share_saved(&a, &b).unwrap().interval();
        for end in [interval.value, interval.low, interval.high] {
            assert!((end - 2.0 / 3.0).abs() < 1e-12, "{interval:?}");
        }
    }

    #[test]
    fn seven_rounds_give_no_interval_and_eight_do() {
        assert_eq!(
            paired_difference(&[1.0; 7], &[2.0; 7]),
            Err(NoInterval::TooFewRounds {
                rounds: 7,
                needed: 8
            })
        );
        assert!(paired_difference(&[1.0; 8], &[2.0; 8]).is_ok());
    }

    #[test]
    fn what_cannot_be_compared_is_refused_by_name() {
        let fine = [1.0; 9];
        for (bad, refusal) in [
            (f64::NAN, NoInterval::NotANumber { round: 4 }),
            (f64::INFINITY, NoInterval::NotANumber { round: 4 }),
            (f64::MAX, NoInterval::NotANumber { round: 4 }),
            (0.0, NoInterval::NotPositive { round: 4 }),
            (-1.0, NoInterval::NotPositive { round: 4 }),
        ] {
            let mut spoilt = fine;
            spoilt[4] = bad;
            assert_eq!(paired_share_saved(&fine, &spoilt), Err(refusal));
            assert_eq!(paired_share_saved(&spoilt, &fine), Err(refusal));
        }
        assert_eq!(
            paired_difference(&fine, &fine[1..]),
            Err(NoInterval::UnequalRounds { a: 9, b: 8 })
        );
    }

    #[test]
    fn equal_differences_have_no_width_and_no_doubt() {
        let same = paired_difference(&[3.0; 8], &[1.0; 8]).unwrap();
        assert_eq!(
            same.interval(),
            Interval {
                value: 2.0,
                low: 2.0,
                high: 2.0
            }
        );
        assert_eq!(same.p_value(), 0.0);
        assert_eq!(
            paired_difference(&[0.1; 11], &[0.1; 11]).unwrap().p_value(),
            1.0
        );
    }

    proptest! {
        #[test]
        fn any_numbers_are_refused_or_give_an_ordered_interval(
            pairs in prop::collection::vec((any::<f64>(), any::<f64>()), 0..30)
        ) {
            let (a, b): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
            let tried = [
                paired_difference(&a, &b),
                paired_share_saved(&a, &b),
                typical_difference(&a, &b),
                typical_share_saved(&a, &b),
            ];
            for compared in tried.into_iter().flatten() {
                let interval = compared.interval();
                prop_assert!(interval.low <= interval.value && interval.value <= interval.high);
                prop_assert!((0.0..=1.0).contains(&compared.p_value()));
            }
        }

        #[test]
        fn swapping_the_variants_turns_the_difference_round(
            pairs in prop::collection::vec((1.0..100.0_f64, 1.0..100.0_f64), 8..30)
        ) {
            let (a, b): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
            let there = paired_difference(&a, &b).unwrap().interval();
            let back = paired_difference(&b, &a).unwrap().interval();
            prop_assert!((there.low + back.high).abs() < 1e-9 && (there.value + back.value).abs() < 1e-9);
        }
    }
}
