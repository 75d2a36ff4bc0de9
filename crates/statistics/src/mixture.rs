//! Two overlapping modes taken apart: a mixture of two log-normals, fitted by expectation and
//! maximisation.
//!
//! Finds two components in anything. Whether there *are* two is for the dip to say.

use serde::Serialize;

/// A value that stands for several samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weighted {
    /// The value, in the caller's unit; must be positive and finite.
    pub value: f64,
    /// How many samples it stands for; must be positive and finite.
    pub weight: f64,
}

/// One mode.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MixturePart {
    /// Mean of the samples in it, in their unit.
    pub mean: f64,
    /// The middle of it, in the unit of the samples.
    pub median: f64,
    /// Standard deviation of the logarithms.
    pub log_sd: f64,
    /// Its share of all samples, 0..=1.
    pub share: f64,
}

/// Two modes, the faster first.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Mixture {
    /// The mode with the smaller median.
    pub fast: MixturePart,
    /// The other one.
    pub slow: MixturePart,
}

impl Mixture {
    /// Ashman's D (1994): distance of the modes in their common width; clearly apart above 2.
    pub fn separation(&self) -> f64 {
        let apart = (self.slow.median.ln() - self.fast.median.ln()).abs();
        std::f64::consts::SQRT_2 * apart / self.fast.log_sd.hypot(self.slow.log_sd)
    }
}

const ROUNDS: usize = 500;
/// Below it a component has collapsed onto one value and would weigh infinitely; 0.1 % is finer
/// than any histogram here.
const LEAST_LOG_SD: f64 = 1e-3;

#[derive(Clone, Copy)]
struct Component {
    mean: f64,
    sd: f64,
    share: f64,
}

/// Fits two log-normal components; `None` with fewer than four points, fewer than two different
/// values, or any point that is not positive and finite.
pub fn mixture(points: &[Weighted]) -> Option<Mixture> {
    let usable = |v: f64| v.is_finite() && v > 0.0;
    if points.len() < 4 || !points.iter().all(|p| usable(p.value) && usable(p.weight)) {
        return None;
    }
    let logs: Vec<f64> = points.iter().map(|p| p.value.ln()).collect();
    let mut sorted: Vec<(f64, f64)> = logs
        .iter()
        .copied()
        .zip(points.iter().map(|p| p.weight))
        .collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let cut = best_cut(&sorted)?;

    let mut slow_part: Vec<f64> = logs
        .iter()
        .map(|&log| f64::from(u8::from(log > cut)))
        .collect();
    let mut before = f64::NEG_INFINITY;
    for _ in 0..ROUNDS {
        let fast = component(points, &logs, |i| 1.0 - slow_part[i])?;
        let slow = component(points, &logs, |i| slow_part[i])?;
        let mut likelihood = 0.0;
        for ((part, log), point) in slow_part.iter_mut().zip(&logs).zip(points) {
            let (of_fast, of_slow) = (fast.log_density(*log), slow.log_density(*log));
            let top = of_fast.max(of_slow);
            let both = top + ((of_fast - top).exp() + (of_slow - top).exp()).ln();
            *part = (of_slow - both).exp();
            likelihood += point.weight * both;
        }
        if likelihood - before <= 1e-10 * likelihood.abs() {
            break;
        }
        before = likelihood;
    }
    let fast = fitted_part(points, &logs, |i| 1.0 - slow_part[i])?;
    let slow = fitted_part(points, &logs, |i| slow_part[i])?;
    Some(if fast.median <= slow.median {
        Mixture { fast, slow }
    } else {
        Mixture {
            fast: slow,
            slow: fast,
        }
    })
}

impl Component {
    fn log_density(&self, log: f64) -> f64 {
        let z = (log - self.mean) / self.sd;
        self.share.ln() - self.sd.ln() - 0.5 * z * z
    }
}

fn component(points: &[Weighted], logs: &[f64], part: impl Fn(usize) -> f64) -> Option<Component> {
    let weight = |i: usize| part(i) * points[i].weight;
    let total: f64 = points.iter().map(|p| p.weight).sum();
    let own: f64 = (0..points.len()).map(weight).sum();
    // a component that has died out takes the fit with it
    if own <= 1e-9 * total {
        return None;
    }
    let mean = logs
        .iter()
        .enumerate()
        .map(|(i, log)| weight(i) * log)
        .sum::<f64>()
        / own;
    let variance = logs
        .iter()
        .enumerate()
        .map(|(i, log)| weight(i) * (log - mean) * (log - mean))
        .sum::<f64>()
        / own;
    Some(Component {
        mean,
        sd: variance.sqrt().max(LEAST_LOG_SD),
        share: own / total,
    })
}

fn fitted_part(
    points: &[Weighted],
    logs: &[f64],
    part: impl Fn(usize) -> f64,
) -> Option<MixturePart> {
    let fitted = component(points, logs, &part)?;
    let own: f64 = points
        .iter()
        .enumerate()
        .map(|(i, p)| part(i) * p.weight)
        .sum();
    let sum: f64 = points
        .iter()
        .enumerate()
        .map(|(i, p)| part(i) * p.weight * p.value)
        .sum();
    Some(MixturePart {
        mean: sum / own,
        median: fitted.mean.exp(),
        log_sd: fitted.sd,
        share: fitted.share,
    })
}

/// The value that cuts sorted (value, weight) pairs into the two classes with the least squares
/// inside them (Otsu 1979).
fn best_cut(sorted: &[(f64, f64)]) -> Option<f64> {
    let weight: f64 = sorted.iter().map(|p| p.1).sum();
    let sum: f64 = sorted.iter().map(|p| p.0 * p.1).sum();
    let (mut left_weight, mut left_sum) = (0.0, 0.0);
    let mut best: Option<(f64, f64)> = None;
    for pair in sorted.windows(2) {
        left_weight += pair[0].1;
        left_sum += pair[0].0 * pair[0].1;
        let right_weight = weight - left_weight;
        if pair[0].0 == pair[1].0 || right_weight <= 0.0 {
            continue;
        }
        let apart = left_sum / left_weight - (sum - left_sum) / right_weight;
        let between = left_weight * right_weight * apart * apart;
        if best.is_none_or(|(most, _)| between > most) {
            best = Some((between, pair[0].0));
        }
    }
    best.map(|(_, cut)| cut)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::normal_quantile;

    fn lognormal(median: f64, sd: f64, n: usize) -> impl Iterator<Item = Weighted> {
        (0..n).map(move |i| {
            let z = normal_quantile((i as f64 + 0.5) / n as f64);
            Weighted {
                value: median * (sd * z).exp(),
                weight: 1.0,
            }
        })
    }

    #[test]
    fn keep_alive_and_its_absence_come_apart() {
        let points: Vec<_> = lognormal(25.0, 0.1, 700)
            .chain(lognormal(115.0, 0.05, 300))
            .collect();
        let Mixture { fast, slow } = mixture(&points).unwrap();
        assert!(
            (fast.median - 25.0).abs() < 0.1 && (slow.median - 115.0).abs() < 0.3,
            "{fast:?} {slow:?}"
        );
        assert!((fast.share - 0.7).abs() < 0.001 && (slow.share - 0.3).abs() < 0.001);
        assert!((fast.mean - 25.0 * (0.005_f64).exp()).abs() < 0.1);
    }

    #[test]
    fn overlapping_modes_are_shared_out() {
        let points: Vec<_> = lognormal(10.0, 0.3, 400)
            .chain(lognormal(30.0, 0.3, 600))
            .collect();
        let found = mixture(&points).unwrap();
        assert!(
            (found.fast.share - 0.4).abs() < 0.03 && (found.slow.median / 30.0 - 1.0).abs() < 0.05,
            "{found:?}"
        );
        assert!(found.separation() > 2.0);
    }

    #[test]
    fn a_weight_counts_like_as_many_points() {
        let once: Vec<_> = lognormal(10.0, 0.1, 50)
            .chain(lognormal(50.0, 0.1, 50))
            .collect();
        let thrice: Vec<_> = once.iter().flat_map(|p| [*p; 3]).collect();
        let weighted: Vec<_> = once
            .iter()
            .map(|p| Weighted { weight: 3.0, ..*p })
            .collect();
        let (a, b) = (mixture(&thrice).unwrap(), mixture(&weighted).unwrap());
        assert!(
            (a.slow.mean - b.slow.mean).abs() < 1e-6 && (a.fast.share - b.fast.share).abs() < 1e-9
        );
    }

    proptest! {
        #[test]
        fn any_points_are_refused_or_split_into_shares_of_one(values in prop::collection::vec(any::<f64>(), 0..40)) {
            let points: Vec<_> = values.iter().map(|&value| Weighted { value, weight: 1.0 }).collect();
            if let Some(found) = mixture(&points) {
                prop_assert!((found.fast.share + found.slow.share - 1.0).abs() < 1e-6);
                prop_assert!(found.fast.median <= found.slow.median);
            }
        }
    }
}
