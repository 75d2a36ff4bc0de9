//! Where a series changed its level, once: latency over weeks, with keep-alive switched on midway.
//!
//! Looks at logarithms, as latencies have heavy tails. The p-value shuffles the series and so takes its values
//! as exchangeable: a series that drifts or clusters by itself is called changed too often. Feed it values far
//! enough apart (one per hour, say), not every exchange.

use intact_experiment::Rng;
use schemars::JsonSchema;
use serde::Serialize;

/// Values there must be on either side of the change.
const MIN_SIDE: usize = 3;

/// The best place to cut a series in two.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct ChangePoint {
    /// Index of the first value after the change.
    pub at: usize,
    /// Mean before it, in the unit of the series.
    pub before: f64,
    /// Mean from it on.
    pub after: f64,
    /// Share of shuffled series that have as good a cut, the series itself counted.
    pub p_value: f64,
}

/// The most likely single change of level, with a p-value from `draws` seeded shuffles.
///
/// `None` with fewer than six values, values that are all equal, or any that is not positive and finite. Costs
/// `draws` passes over the series; thin a long one first.
pub fn change_point(series: &[f64], draws: u32, seed: u64) -> Option<ChangePoint> {
    if series.len() < 2 * MIN_SIDE || !series.iter().all(|v| v.is_finite() && *v > 0.0) {
        return None;
    }
    let mean_log = series.iter().map(|v| v.ln()).sum::<f64>() / series.len() as f64;
    let mut logs: Vec<f64> = series.iter().map(|v| v.ln() - mean_log).collect();
    let (at, gain) = best_cut(&logs);
    if gain <= 1e-12 {
        return None;
    }
    let mut rng = Rng::seeded(seed);
    let as_good = (0..draws)
        .filter(|_| {
            rng.shuffle(&mut logs);
            best_cut(&logs).1 >= gain
        })
        .count();
    let mean = |side: &[f64]| side.iter().sum::<f64>() / side.len() as f64;
    Some(ChangePoint {
        at,
        before: mean(&series[..at]),
        after: mean(&series[at..]),
        p_value: (as_good + 1) as f64 / f64::from(draws + 1),
    })
}

/// The cut that explains most squares. With normal noise that is the likeliest; a shuffle keeps the total, so the
/// squares themselves rank as the likelihood ratio does. `centred` has mean zero.
fn best_cut(centred: &[f64]) -> (usize, f64) {
    let n = centred.len();
    let mut sum: f64 = centred[..MIN_SIDE - 1].iter().sum();
    let mut best = (MIN_SIDE, f64::NEG_INFINITY);
    for at in MIN_SIDE..=n - MIN_SIDE {
        sum += centred[at - 1];
        let gain = sum * sum * n as f64 / (at * (n - at)) as f64;
        if gain > best.1 {
            best = (at, gain);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::normal_quantile;

    fn noisy(rng: &mut Rng, median: f64, sd: f64) -> f64 {
        median * (sd * normal_quantile(rng.unit().max(1e-12))).exp()
    }

    #[test]
    fn keep_alive_switched_on_midway_is_found_where_it_was() {
        let mut rng = Rng::seeded(6);
        let series: Vec<f64> = (0..200)
            .map(|day| noisy(&mut rng, if day < 120 { 900.0 } else { 488.0 }, 0.15))
            .collect();
        let change = change_point(&series, 999, 1).unwrap();
        assert!(change.at.abs_diff(120) <= 2, "{change:?}");
        assert!(
            (change.before - change.after - 412.0).abs() < 40.0,
            "{change:?}"
        );
        assert!(change.p_value <= 0.001);
    }

    #[test]
    fn without_a_change_the_p_value_is_as_often_small_as_it_says() {
        let mut rng = Rng::seeded(7);
        let small = (0..400)
            .filter(|&seed| {
                let series: Vec<f64> = (0..40).map(|_| noisy(&mut rng, 100.0, 1.0)).collect();
                change_point(&series, 199, seed).unwrap().p_value <= 0.05
            })
            .count();
        // 20 expected of 400; 5 and 37 are four standard deviations away
        assert!((5..=37).contains(&small), "{small} of 400");
    }

    #[test]
    fn what_has_no_level_has_no_change() {
        assert_eq!(change_point(&[1.0; 5], 99, 0), None);
        assert_eq!(change_point(&[1.0; 50], 99, 0), None);
        assert_eq!(change_point(&[f64::NAN; 50], 99, 0), None);
        assert_eq!(change_point(&[-1.0; 50], 99, 0), None);
    }
}
