//! Tiers in a short sequence, such as the first hundred calls: two levels, and which phase makes the difference.
//!
//! For sequences too short for a histogram. The caller leaves out what is expected to differ (the fresh ones).

use serde::Serialize;

/// A tier has at least this many calls; fewer are outliers.
const MIN_CALLS: usize = 3;
/// Tiers lie at least this many of their common standard deviations apart. Cutting one normal population in
/// two gives 2.7, a uniform one 3.5.
const MIN_SEPARATION: f64 = 5.0;
/// And at least this many of either one's own, or a tier is a few outliers with a neighbour drawn in.
const MIN_OWN_SEPARATION: f64 = 3.0;
/// And the slower takes at least this many times as long, or nobody would see it.
const MIN_RATIO: f64 = 1.2;
/// A phase explains the tiers when it makes up at least this share of their difference.
const MIN_EXPLAINED: f64 = 0.6;

/// One level of the sequence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Tier {
    /// Mean of its calls, in their unit.
    pub mean: f64,
    /// How many calls it has.
    pub calls: usize,
}

/// Two levels, and which call is on which.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Tiers {
    /// The lower level.
    pub fast: Tier,
    /// The upper level.
    pub slow: Tier,
    /// For each call of the input, whether it is on the upper level.
    pub is_slow: Vec<bool>,
}

/// One phase's time in each call, in the order of the calls; a phase that a call did not have takes no time there.
#[derive(Debug, Clone, Copy)]
pub struct PhaseSeries<'a> {
    /// The phase, as the ledger calls it.
    pub name: &'a str,
    /// Its time in each call.
    pub times: &'a [Option<f64>],
}

/// The phase that makes the difference between two tiers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Explained<'a> {
    /// The phase.
    pub phase: &'a str,
    /// How much longer it takes on the upper tier, in the unit of the times.
    pub by: f64,
    /// Its share of the difference between the tiers; above 1 when another phase makes up for part of it.
    pub share: f64,
}

/// Finds two tiers by the split of the logarithms with the least squares inside the classes.
///
/// `None` when there are no two that stand apart, or a time is not positive and finite.
pub fn tiers(times: &[f64]) -> Option<Tiers> {
    if times.len() < 2 * MIN_CALLS || !times.iter().all(|t| t.is_finite() && *t > 0.0) {
        return None;
    }
    let mut by_time: Vec<usize> = (0..times.len()).collect();
    by_time.sort_by(|&i, &j| times[i].total_cmp(&times[j]));
    let logs: Vec<f64> = by_time.iter().map(|&i| times[i].ln()).collect();
    let squares_at = |cut: usize| squares(&logs[..cut]) + squares(&logs[cut..]);
    let cut = (MIN_CALLS..=times.len() - MIN_CALLS)
        .map(|cut| (cut, squares_at(cut)))
        .min_by(|a, b| a.1.total_cmp(&b.1))?
        .0;
    let apart = mean(&logs[cut..]) - mean(&logs[..cut]);
    let sd = (squares_at(cut) / (times.len() - 2) as f64).sqrt();
    let widest = [&logs[..cut], &logs[cut..]]
        .map(own_sd)
        .into_iter()
        .fold(0.0, f64::max);
    if apart < MIN_RATIO.ln() || apart < MIN_SEPARATION * sd || apart < MIN_OWN_SEPARATION * widest
    {
        return None;
    }
    let mut is_slow = vec![false; times.len()];
    for &call in &by_time[cut..] {
        is_slow[call] = true;
    }
    let tier = |slow: bool| Tier {
        mean: mean_where(times.iter().copied(), &is_slow, slow),
        calls: is_slow.iter().filter(|&&s| s == slow).count(),
    };
    Some(Tiers {
        fast: tier(false),
        slow: tier(true),
        is_slow,
    })
}

/// The phase that explains at least 60 % of the difference between the tiers; `None` when none does.
///
/// A series of another length than the tiers is left out.
pub fn explaining_phase<'a>(tiers: &Tiers, phases: &[PhaseSeries<'a>]) -> Option<Explained<'a>> {
    let difference = tiers.slow.mean - tiers.fast.mean;
    phases
        .iter()
        .filter(|series| series.times.len() == tiers.is_slow.len())
        .map(|series| {
            let level = |slow| {
                mean_where(
                    series.times.iter().map(|t| t.unwrap_or(0.0)),
                    &tiers.is_slow,
                    slow,
                )
            };
            let by = level(true) - level(false);
            Explained {
                phase: series.name,
                by,
                share: by / difference,
            }
        })
        .filter(|explained| explained.share >= MIN_EXPLAINED)
        .max_by(|a, b| a.share.total_cmp(&b.share))
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn squares(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|v| (v - mean) * (v - mean)).sum()
}

fn own_sd(values: &[f64]) -> f64 {
    (squares(values) / (values.len() - 1) as f64).sqrt()
}

fn mean_where(values: impl Iterator<Item = f64>, is_slow: &[bool], slow: bool) -> f64 {
    let (sum, count) = values
        .zip(is_slow)
        .filter(|&(_, &s)| s == slow)
        .fold((0.0, 0_u32), |(sum, count), (value, _)| {
            (sum + value, count + 1)
        });
    sum / f64::from(count)
}

#[cfg(test)]
mod tests {
    use intact_experiment::Rng;

    use super::*;
    use crate::stats::normal_quantile;

    fn noise(rng: &mut Rng) -> f64 {
        normal_quantile(rng.unit().max(1e-12))
    }

    #[test]
    fn delayed_acknowledgements_show_as_a_second_tier_in_wait() {
        let mut rng = Rng::seeded(4);
        let wait: Vec<Option<f64>> = (0..70)
            .map(|call| {
                Some(if call % 3 == 0 { 42.0 } else { 2.0 } * (0.05 * noise(&mut rng)).exp())
            })
            .collect();
        let receive: Vec<Option<f64>> = (0..70).map(|_| Some(0.3 + 0.01 * rng.unit())).collect();
        let times: Vec<f64> = wait
            .iter()
            .zip(&receive)
            .map(|(w, r)| w.unwrap() + r.unwrap())
            .collect();
        let found = tiers(&times).unwrap();
        assert_eq!((found.fast.calls, found.slow.calls), (46, 24));
        assert!(found.is_slow[0] && !found.is_slow[1] && found.is_slow[69]);
        let phases = [
            PhaseSeries {
                name: "receive",
                times: &receive,
            },
            PhaseSeries {
                name: "wait",
                times: &wait,
            },
        ];
        let explained = explaining_phase(&found, &phases).unwrap();
        assert_eq!(explained.phase, "wait");
        assert!((explained.share - 1.0).abs() < 0.01 && (explained.by - 40.0).abs() < 1.0);
        assert_eq!(
            explaining_phase(&found, &phases[..1]),
            None,
            "receive alone explains nothing"
        );
    }

    #[test]
    fn a_difference_shared_by_two_phases_is_explained_by_neither() {
        let half: Vec<Option<f64>> = (0..20).map(|call| (call >= 10).then_some(10.0)).collect();
        let times: Vec<f64> = (0..20)
            .map(|call| if call >= 10 { 25.0 } else { 5.0 })
            .collect();
        let found = tiers(&times).unwrap();
        let phases = [
            PhaseSeries {
                name: "connect",
                times: &half,
            },
            PhaseSeries {
                name: "ssl",
                times: &half,
            },
        ];
        assert_eq!(explaining_phase(&found, &phases), None);
    }

    #[test]
    fn one_noisy_level_or_two_outliers_are_no_tiers() {
        let mut rng = Rng::seeded(5);
        let mut called_two = 0;
        for _ in 0..300 {
            let sd = 0.05 + rng.unit();
            let normal: Vec<f64> = (0..100).map(|_| (sd * noise(&mut rng)).exp()).collect();
            let uniform: Vec<f64> = (0..100).map(|_| 1.0 + 9.0 * rng.unit()).collect();
            let exponential: Vec<f64> =
                (0..100).map(|_| 1.0 - rng.unit().max(1e-12).ln()).collect();
            called_two += [normal, uniform, exponential]
                .iter()
                .filter(|t| tiers(t).is_some())
                .count();
        }
        assert_eq!(called_two, 0);
        let mut outliers = vec![1.0; 50];
        outliers[0] = 90.0;
        outliers[7] = 80.0;
        assert_eq!(tiers(&outliers), None);
    }

    #[test]
    fn nonsense_has_no_tiers() {
        assert_eq!(tiers(&[1.0; 5]), None);
        assert_eq!(tiers(&[1.0; 50]), None);
        assert_eq!(tiers(&[f64::NAN; 50]), None);
        assert_eq!(tiers(&[0.0; 50]), None);
    }
}
