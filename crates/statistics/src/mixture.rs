//! Two overlapping modes taken apart: a mixture of two log-normals, fitted by expectation and
//! maximisation.
//!
//! Finds two components in anything. Whether there *are* two is for the dip to say.

/// One mode.
#[derive(Debug, Clone, Copy, PartialEq)]
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
#[derive(Debug, Clone, Copy, PartialEq)]
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

/// Fits two log-normal components; `None` with fewer than four values, fewer than two different
/// ones, or any that is not positive and finite.
pub(super) fn mixture(values: &[f64]) -> Option<Mixture> {
    if values.len() < 4 || !values.iter().all(|v| v.is_finite() && *v > 0.0) {
        return None;
    }
    let logs: Vec<f64> = values.iter().map(|v| v.ln()).collect();
    let mut sorted = logs.clone();
    sorted.sort_by(f64::total_cmp);
    let cut = best_cut(&sorted)?;

    let mut slow_part: Vec<f64> = logs
        .iter()
        .map(|&log| f64::from(u8::from(log > cut)))
        .collect();
    let mut before = f64::NEG_INFINITY;
    for _ in 0..ROUNDS {
        let fast = component(&logs, |i| 1.0 - slow_part[i])?;
        let slow = component(&logs, |i| slow_part[i])?;
        let mut likelihood = 0.0;
        for (part, log) in slow_part.iter_mut().zip(&logs) {
            let (of_fast, of_slow) = (fast.log_density(*log), slow.log_density(*log));
            let top = of_fast.max(of_slow);
            let both = top + ((of_fast - top).exp() + (of_slow - top).exp()).ln();
            *part = (of_slow - both).exp();
            likelihood += both;
        }
        if likelihood - before <= 1e-10 * likelihood.abs() {
            break;
        }
        before = likelihood;
    }
    let fast = fitted_part(values, &logs, |i| 1.0 - slow_part[i])?;
    let slow = fitted_part(values, &logs, |i| slow_part[i])?;
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

fn component(logs: &[f64], part: impl Fn(usize) -> f64) -> Option<Component> {
    let total = logs.len() as f64;
    let own: f64 = (0..logs.len()).map(&part).sum();
    // a component that has died out takes the fit with it
    if own <= 1e-9 * total {
        return None;
    }
    let mean_of = |value: &dyn Fn(f64) -> f64| {
        let each = logs
            .iter()
            .enumerate()
            .map(|(i, log)| part(i) * value(*log));
        each.sum::<f64>() / own
    };
    let mean = mean_of(&|log| log);
    let variance = mean_of(&|log| (log - mean) * (log - mean));
    Some(Component {
        mean,
        sd: variance.sqrt().max(LEAST_LOG_SD),
        share: own / total,
    })
}

fn fitted_part(values: &[f64], logs: &[f64], part: impl Fn(usize) -> f64) -> Option<MixturePart> {
    let fitted = component(logs, &part)?;
    let own: f64 = (0..values.len()).map(&part).sum();
    let sum: f64 = values.iter().enumerate().map(|(i, v)| part(i) * v).sum();
    Some(MixturePart {
        mean: sum / own,
        median: fitted.mean.exp(),
        log_sd: fitted.sd,
        share: fitted.share,
    })
}

/// The value that cuts sorted values into the two classes with the least squares inside them (Otsu
/// 1979).
fn best_cut(sorted: &[f64]) -> Option<f64> {
    let count = sorted.len() as f64;
    let sum: f64 = sorted.iter().sum();
    let (mut left_count, mut left_sum) = (0.0, 0.0);
    let mut best: Option<(f64, f64)> = None;
    for pair in sorted.windows(2) {
        left_count += 1.0;
        left_sum += pair[0];
        if pair[0] == pair[1] {
            continue;
        }
        let right_count = count - left_count;
        let apart = left_sum / left_count - (sum - left_sum) / right_count;
        let between = left_count * right_count * apart * apart;
        if best.is_none_or(|(most, _)| between > most) {
            best = Some((between, pair[0]));
        }
    }
    best.map(|(_, cut)| cut)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::student_quantile;

    /// Degrees of freedom with which Student's distribution is as good as normal.
    const NEARLY_NORMAL: f64 = 1e3;

    fn lognormal(median: f64, sd: f64, n: usize) -> impl Iterator<Item = f64> {
        (0..n).map(move |i| {
            let z = student_quantile((i as f64 + 0.5) / n as f64, NEARLY_NORMAL);
            median * (sd * z).exp()
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

    proptest! {
        #[test]
        fn any_points_are_refused_or_split_into_shares_of_one(values in prop::collection::vec(any::<f64>(), 0..40)) {
            if let Some(found) = mixture(&values) {
                prop_assert!((found.fast.share + found.slow.share - 1.0).abs() < 1e-6);
                prop_assert!(found.fast.median <= found.slow.median);
            }
        }
    }
}
