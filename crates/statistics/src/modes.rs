//! One mode or two: is this latency histogram two populations (reused and new connections, say) on
//! top of each other?
//!
//! Two are reported only when the dip test rejects one mode *and* the fitted two stand clearly
//! apart. Latencies are looked at on a logarithmic scale. A mode of less than about 5 % of the
//! samples is not found.

use serde::Serialize;

use super::dip::{Dip, MAX_POINTS, dip_test};
use super::mixture::{Mixture, mixture};

/// Fewer samples than this are not looked at.
const MIN_SAMPLES: u64 = 50;
/// The dip test's level: one histogram in a hundred is called two-humped by chance at most.
const LEVEL: f64 = 0.01;
const DRAWS: u32 = 400;
/// Ashman's D from which modes count as apart.
const MIN_SEPARATION: f64 = 2.0;
/// A smaller component is a tail, not a mode.
const MIN_SHARE: f64 = 0.03;

/// A histogram's bucket: how many samples lie in `low..high`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bin {
    /// Lower edge, positive.
    pub low: f64,
    /// Upper edge, above the lower.
    pub high: f64,
    /// Samples in it.
    pub count: u64,
}

/// What a histogram looks like.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Modes {
    /// One mode, or no reason to speak of two.
    One(UnimodalReason),
    /// Two modes.
    Two {
        /// Mean, middle and share of each.
        parts: Mixture,
        /// The test that rejected a single mode.
        dip: Dip,
    },
}

/// Why two modes are not reported.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum UnimodalReason {
    /// Fewer than 50 usable samples.
    TooFewSamples,
    /// The dip is one that a single mode can show.
    DipIsChance(Dip),
    /// Not one smooth mode, but no two that stand apart either.
    NotApart(Dip),
}

/// Looks at a histogram's buckets, in rising order; empty, inverted and non-positive ones are left
/// out.
pub fn modes_of_bins(bins: &[Bin], seed: u64) -> Modes {
    let usable: Vec<Bin> = bins
        .iter()
        .copied()
        .filter(|b| b.count > 0 && b.low > 0.0 && b.high >= b.low && b.high.is_finite())
        .collect();
    let total: u64 = usable.iter().map(|b| b.count).fold(0, u64::saturating_add);
    if total < MIN_SAMPLES {
        return Modes::One(UnimodalReason::TooFewSamples);
    }
    let mut logs = points_by_rank(&usable, total);
    // overlapping buckets would make it fall, and cost the whole answer
    logs.sort_by(f64::total_cmp);
    let Some(dip) = dip_test(&logs, DRAWS, seed) else {
        return Modes::One(UnimodalReason::TooFewSamples);
    };
    if dip.p_value >= LEVEL {
        return Modes::One(UnimodalReason::DipIsChance(dip));
    }
    let values: Vec<f64> = logs.iter().map(|log| log.exp()).collect();
    match mixture(&values) {
        Some(parts)
            if parts.separation() > MIN_SEPARATION
                && parts.fast.share.min(parts.slow.share) >= MIN_SHARE =>
        {
            Modes::Two { parts, dip }
        }
        _ => Modes::One(UnimodalReason::NotApart(dip)),
    }
}

/// Logarithms at even ranks, at most [`MAX_POINTS`] of them, each bucket's samples spread evenly
/// through it.
fn points_by_rank(bins: &[Bin], total: u64) -> Vec<f64> {
    let points = total.min(MAX_POINTS as u64);
    let mut logs = Vec::with_capacity(points as usize);
    let mut bins = bins.iter();
    let mut current = bins.next();
    let mut passed = 0.0;
    for point in 0..points {
        let rank = (point as f64 + 0.5) / points as f64 * total as f64;
        while let Some(bin) = current {
            if rank <= passed + bin.count as f64 {
                let inside = (rank - passed) / bin.count as f64;
                logs.push((bin.high.ln() - bin.low.ln()).mul_add(inside, bin.low.ln()));
                break;
            }
            passed += bin.count as f64;
            current = bins.next();
        }
    }
    logs
}

#[cfg(test)]
mod tests {
    use intact_experiment::Rng;

    use super::*;
    use crate::student_quantile;

    /// Degrees of freedom with which Student's distribution is as good as normal.
    const NEARLY_NORMAL: f64 = 1e3;

    fn lognormal(rng: &mut Rng, median: f64, sd: f64) -> f64 {
        median * (sd * student_quantile(rng.unit().max(1e-12), NEARLY_NORMAL)).exp()
    }

    fn buckets(samples: &[f64]) -> Vec<Bin> {
        let mut counts = std::collections::BTreeMap::<i64, u64>::new();
        for s in samples {
            *counts.entry((s.ln() / 0.008).floor() as i64).or_default() += 1;
        }
        let edge = |at: i64| (at as f64 * 0.008).exp();
        counts
            .into_iter()
            .map(|(at, count)| Bin {
                low: edge(at),
                high: edge(at + 1),
                count,
            })
            .collect()
    }

    #[test]
    fn keep_alive_on_and_off_in_one_histogram_are_two_modes() {
        let mut rng = Rng::seeded(1);
        let samples: Vec<f64> = (0..5_000)
            .map(|i| {
                if i % 4 == 0 {
                    lognormal(&mut rng, 115.0, 0.05)
                } else {
                    lognormal(&mut rng, 25.0, 0.15)
                }
            })
            .collect();
        let found = modes_of_bins(&buckets(&samples), 9);
        let Modes::Two { parts, .. } = found else {
            panic!("{found:?}")
        };
        assert!(
            (parts.slow.share - 0.25).abs() < 0.01 && (parts.slow.mean / 115.0 - 1.0).abs() < 0.02
        );
        assert!((parts.fast.mean / 25.3 - 1.0).abs() < 0.02);
    }

    #[test]
    fn one_heavy_tail_is_one_mode() {
        let mut rng = Rng::seeded(2);
        let mut called_two = 0;
        for seed in 0..40 {
            let samples: Vec<f64> = (0..400).map(|_| lognormal(&mut rng, 20.0, 1.2)).collect();
            called_two += usize::from(matches!(
                modes_of_bins(&buckets(&samples), seed),
                Modes::Two { .. }
            ));
        }
        assert_eq!(called_two, 0);
    }

    #[test]
    fn too_little_or_nonsense_is_one_mode_and_not_a_panic() {
        assert_eq!(
            modes_of_bins(&buckets(&[1.0; 49]), 0),
            Modes::One(UnimodalReason::TooFewSamples)
        );
        assert!(matches!(
            modes_of_bins(&buckets(&[7.0; 500]), 0),
            Modes::One(_)
        ));
        let odd = Bin {
            low: 2.0,
            high: 1.0,
            count: u64::MAX,
        };
        assert_eq!(
            modes_of_bins(&[odd, odd], 0),
            Modes::One(UnimodalReason::TooFewSamples)
        );
    }
}
