//! One mode or two: is this latency histogram two populations (reused and new connections, say) on
//! top of each other?
//!
//! Two are reported only when the dip test rejects one mode *and* the fitted two stand clearly
//! apart. Latencies are looked at on a logarithmic scale. A mode of less than about 5 % of the
//! samples is not found.

use super::dip::{MAX_POINTS, dip_test};
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

/// A histogram's bucket: its lower edge, its upper edge, and the samples between them.
pub type Bucket = (f64, f64, u64);

/// The two modes of a histogram's buckets, which rise; `None` where there is no reason to speak of
/// two. Empty, inverted and non-positive buckets are left out.
pub fn two_modes(buckets: &[Bucket], seed: u64) -> Option<Mixture> {
    let usable: Vec<Bucket> = buckets
        .iter()
        .copied()
        .filter(|&(low, high, count)| count > 0 && low > 0.0 && high >= low && high.is_finite())
        .collect();
    let counts = usable.iter().map(|(_, _, count)| *count);
    let total: u64 = counts.fold(0, u64::saturating_add);
    if total < MIN_SAMPLES {
        return None;
    }
    let mut logs = points_by_rank(&usable, total);
    // overlapping buckets would make it fall, and cost the whole answer
    logs.sort_by(f64::total_cmp);
    // by chance a single mode can show such a dip
    if dip_test(&logs, DRAWS, seed)? >= LEVEL {
        return None;
    }
    let values: Vec<f64> = logs.iter().map(|log| log.exp()).collect();
    mixture(&values).filter(|parts| {
        let least = parts.fast.share.min(parts.slow.share);
        parts.separation() > MIN_SEPARATION && least >= MIN_SHARE
    })
}

/// Logarithms at even ranks, at most [`MAX_POINTS`] of them, each bucket's samples spread evenly
/// through it.
fn points_by_rank(buckets: &[Bucket], total: u64) -> Vec<f64> {
    let points = total.min(MAX_POINTS as u64);
    let mut logs = Vec::with_capacity(points as usize);
    let mut buckets = buckets.iter();
    let mut current = buckets.next();
    let mut passed = 0.0;
    for point in 0..points {
        let rank = (point as f64 + 0.5) / points as f64 * total as f64;
        while let Some((low, high, count)) = current {
            if rank <= passed + *count as f64 {
                let inside = (rank - passed) / *count as f64;
                logs.push((high.ln() - low.ln()).mul_add(inside, low.ln()));
                break;
            }
            passed += *count as f64;
            current = buckets.next();
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

    fn buckets(samples: &[f64]) -> Vec<Bucket> {
        let mut counts = std::collections::BTreeMap::<i64, u64>::new();
        for s in samples {
            *counts.entry((s.ln() / 0.008).floor() as i64).or_default() += 1;
        }
        let edge = |at: i64| (at as f64 * 0.008).exp();
        counts
            .into_iter()
            .map(|(at, count)| (edge(at), edge(at + 1), count))
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
        let parts = two_modes(&buckets(&samples), 9).unwrap();
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
            called_two += usize::from(two_modes(&buckets(&samples), seed).is_some());
        }
        assert_eq!(called_two, 0);
    }

    #[test]
    fn too_little_or_nonsense_is_one_mode_and_not_a_panic() {
        assert_eq!(two_modes(&buckets(&[1.0; 49]), 0), None);
        assert_eq!(two_modes(&buckets(&[7.0; 500]), 0), None);
        let odd = (2.0, 1.0, u64::MAX);
        assert_eq!(two_modes(&[odd, odd], 0), None);
    }
}
