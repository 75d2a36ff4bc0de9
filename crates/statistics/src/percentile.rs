//! Percentiles compared round by round, only where each round has enough exchanges beyond them.

use super::{Confidence, NoInterval, PairedDifference, paired_difference};

/// Exchanges that must lie beyond a percentile before anything is said of it.
pub const MIN_BEYOND: u64 = 10;

/// A percentile of one round, with what it rests on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RoundPercentile {
    /// The percentile, in the unit of the samples.
    pub value: f64,
    /// Samples of the round that lie beyond it by rank.
    pub beyond: u64,
}

impl RoundPercentile {
    /// By nearest rank from samples in rising order: the smallest with at least the share `rank` at
    /// or below it.
    ///
    /// `rank` is a share (0.99, not 99), clamped to 0..=1. `None` without samples.
    pub fn of_sorted(samples: &[f64], rank: f64) -> Option<Self> {
        let upto = Self::upto(samples.len() as u64, rank);
        let value = *samples.get(usize::try_from(upto).ok()?.checked_sub(1)?)?;
        Some(Self {
            value,
            beyond: samples.len() as u64 - upto,
        })
    }

    /// From a histogram that gives the value itself: `count` samples in the round, `rank` as a
    /// share.
    pub fn of_count(value: f64, count: u64, rank: f64) -> Self {
        Self {
            value,
            beyond: count - Self::upto(count, rank),
        }
    }

    fn upto(count: u64, rank: f64) -> u64 {
        // 0.99 * 1000 is 990.0000000000001 in some roundings; a share never means a fraction of a
        // sample that small
        ((rank.clamp(0.0, 1.0) * count as f64 - 1e-9).ceil().max(1.0) as u64).min(count)
    }
}

/// The paired difference of a percentile over rounds, `a - b`.
///
/// Refuses the first round in which either variant has fewer than [`MIN_BEYOND`] samples beyond it,
/// and whatever [`paired_difference`] refuses.
pub fn paired_percentile_difference(
    a: &[RoundPercentile],
    b: &[RoundPercentile],
    confidence: Confidence,
) -> Result<PairedDifference, NoInterval> {
    for (round, (a, b)) in a.iter().zip(b).enumerate() {
        let beyond = a.beyond.min(b.beyond);
        if beyond < MIN_BEYOND {
            return Err(NoInterval::TooFewBeyond {
                round,
                beyond,
                needed: MIN_BEYOND,
            });
        }
    }
    let values = |of: &[RoundPercentile]| of.iter().map(|p| p.value).collect::<Vec<_>>();
    paired_difference(&values(a), &values(b), confidence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thousand_samples_have_ten_beyond_p99() {
        let samples: Vec<f64> = (1..=1_000).map(f64::from).collect();
        let p99 = RoundPercentile::of_sorted(&samples, 0.99).unwrap();
        assert_eq!(
            p99,
            RoundPercentile {
                value: 990.0,
                beyond: 10
            }
        );
        assert_eq!(RoundPercentile::of_count(990.0, 1_000, 0.99), p99);
        assert_eq!(RoundPercentile::of_sorted(&[], 0.99), None);
        assert_eq!(RoundPercentile::of_count(0.0, 0, f64::NAN).beyond, 0);
    }

    #[test]
    fn one_round_with_nine_beyond_spoils_the_comparison() {
        let enough = [RoundPercentile {
            value: 1.0,
            beyond: 10,
        }; 8];
        let mut short = enough;
        short[6].beyond = 9;
        assert!(paired_percentile_difference(&enough, &enough, Confidence::P95).is_ok());
        assert_eq!(
            paired_percentile_difference(&enough, &short, Confidence::P95),
            Err(NoInterval::TooFewBeyond {
                round: 6,
                beyond: 9,
                needed: 10
            })
        );
    }
}
