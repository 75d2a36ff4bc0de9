//! Tiers in a short sequence, such as the first hundred calls: two or more levels, and which phase
//! makes the difference.
//!
//! For sequences too short for a histogram. The caller leaves out what is expected to differ (the
//! fresh ones).

use crate::splits::{Splits, mean};
use std::ops::Range;

/// A tier has at least this many calls; fewer are outliers.
const MIN_CALLS: usize = 3;
/// The most tiers that are looked for.
const MAX_TIERS: usize = 4;
/// Tiers lie at least this many of their common standard deviations apart. Cutting one normal
/// population in two gives 2.7, a uniform one 3.5.
const MIN_SEPARATION: f64 = 5.0;
/// And at least this many of either one's own, or a tier is a few outliers with a neighbour drawn
/// in.
const MIN_OWN_SEPARATION: f64 = 3.0;
/// And the slower takes at least this many times as long, or no user would see it.
const MIN_RATIO: f64 = 1.2;
/// A phase explains the tiers when it makes up at least this share of their difference.
const MIN_EXPLAINED: f64 = 0.6;

/// One level of the sequence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tier {
    /// Mean of its calls, in their unit.
    pub mean: f64,
    /// How many calls it has.
    pub calls: usize,
}

/// Two levels or more, and which call is on which.
#[derive(Debug, Clone, PartialEq)]
pub struct Tiers {
    /// The levels, the fastest first.
    pub levels: Vec<Tier>,
    /// For each call of the input, the index of its level.
    pub level_of: Vec<usize>,
}

/// One phase's time in each call, in the order of the calls; a phase that a call did not have takes
/// no time there.
#[derive(Debug, Clone, Copy)]
pub struct PhaseSeries<'a> {
    /// The phase, as the ledger calls it.
    pub name: &'a str,
    /// Its time in each call.
    pub times: &'a [Option<f64>],
}

/// The phase that makes the difference between two tiers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Explained<'a> {
    /// The phase.
    pub phase: &'a str,
    /// How much longer it takes on the slower tier, in the unit of the times.
    pub by: f64,
    /// Its share of the difference between the tiers; above 1 when another phase makes up for part
    /// of it.
    pub share: f64,
}

/// Finds the most tiers that stand apart, each by the split of the logarithms with the least
/// squares inside the classes.
///
/// `None` when there are no two, or a time is not positive and finite.
pub fn tiers(times: &[f64]) -> Option<Tiers> {
    if times.len() < 2 * MIN_CALLS || !times.iter().all(|t| t.is_finite() && *t > 0.0) {
        return None;
    }
    let mut by_time: Vec<usize> = (0..times.len()).collect();
    by_time.sort_by(|&i, &j| times[i].total_cmp(&times[j]));
    let logs: Vec<f64> = by_time.iter().map(|&i| times[i].ln()).collect();
    let most = MAX_TIERS.min(times.len() / MIN_CALLS);
    let splits = Splits::of(&logs, most, MIN_CALLS);
    let classes = (2..=most)
        .rev()
        .map(|count| splits.classes(count))
        .find(|classes| stand_apart(&logs, classes))?;
    let mut level_of = vec![0; times.len()];
    for (level, class) in classes.iter().enumerate() {
        for &call in &by_time[class.clone()] {
            level_of[call] = level;
        }
    }
    let tier = |level: usize| Tier {
        mean: mean_where(times.iter().copied(), &level_of, level),
        calls: classes[level].len(),
    };
    Some(Tiers {
        levels: (0..classes.len()).map(tier).collect(),
        level_of,
    })
}

/// The phase that explains at least 60 % of the difference between a tier and a faster one; `None`
/// when none does.
///
/// A series of another length than the tiers is left out.
pub fn explaining_phase<'a>(
    tiers: &Tiers,
    [fast, slow]: [usize; 2],
    phases: &[PhaseSeries<'a>],
) -> Option<Explained<'a>> {
    let difference = tiers.levels.get(slow)?.mean - tiers.levels.get(fast)?.mean;
    phases
        .iter()
        .filter(|series| series.times.len() == tiers.level_of.len())
        .map(|series| {
            let mean = |level| {
                let times = series.times.iter().map(|t| t.unwrap_or(0.0));
                mean_where(times, &tiers.level_of, level)
            };
            let by = mean(slow) - mean(fast);
            Explained {
                phase: series.name,
                by,
                share: by / difference,
            }
        })
        .filter(|explained| explained.share >= MIN_EXPLAINED)
        .max_by(|a, b| a.share.total_cmp(&b.share))
}

/// Whether each class stands apart from the next.
fn stand_apart(sorted: &[f64], classes: &[Range<usize>]) -> bool {
    let inside = classes.iter().map(|class| squares(&sorted[class.clone()]));
    let free = (sorted.len() - classes.len()) as f64;
    let sd = (inside.sum::<f64>() / free).sqrt();
    classes.windows(2).all(|two| {
        let [low, high] = [&two[0], &two[1]].map(|class| &sorted[class.clone()]);
        let apart = mean(high) - mean(low);
        let widest = own_sd(low).max(own_sd(high));
        apart >= MIN_RATIO.ln()
            && apart >= MIN_SEPARATION * sd
            && apart >= MIN_OWN_SEPARATION * widest
    })
}

fn squares(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|v| (v - mean) * (v - mean)).sum()
}

fn own_sd(values: &[f64]) -> f64 {
    (squares(values) / (values.len() - 1) as f64).sqrt()
}

fn mean_where(times: impl Iterator<Item = f64>, level_of: &[usize], level: usize) -> f64 {
    let of_level = times.zip(level_of).filter(|(_, of)| **of == level);
    let (sum, calls) = of_level.fold((0.0, 0.0), |(sum, calls), (time, _)| {
        (sum + time, calls + 1.0)
    });
    sum / calls
}

#[cfg(test)]
mod tests {
    use intact_experiment::Rng;

    use super::*;
    use crate::student_quantile;

    /// Degrees of freedom with which Student's distribution is as good as normal.
    const NEARLY_NORMAL: f64 = 1e3;

    fn noise(rng: &mut Rng) -> f64 {
        student_quantile(rng.unit().max(1e-12), NEARLY_NORMAL)
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
        let calls: Vec<usize> = found.levels.iter().map(|one| one.calls).collect();
        assert_eq!(calls, [46, 24]);
        let level = |call: usize| found.level_of[call];
        assert_eq!((level(0), level(1), level(69)), (1, 0, 1));
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
        let explained = explaining_phase(&found, [0, 1], &phases).unwrap();
        assert_eq!(explained.phase, "wait");
        assert!((explained.share - 1.0).abs() < 0.01 && (explained.by - 40.0).abs() < 1.0);
        assert_eq!(
            explaining_phase(&found, [0, 1], &phases[..1]),
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
        assert_eq!(explaining_phase(&found, [0, 1], &phases), None);
    }

    #[test]
    fn three_bands_are_three_tiers() {
        let mut rng = Rng::seeded(6);
        let times: Vec<f64> = (0..90)
            .map(|call| [5.0, 45.0, 205.0][call % 3] * (0.1 * noise(&mut rng)).exp())
            .collect();
        let found = tiers(&times).unwrap();
        let calls: Vec<usize> = found.levels.iter().map(|one| one.calls).collect();
        assert_eq!(calls, [30, 30, 30]);
        assert_eq!(found.level_of[..6], [0, 1, 2, 0, 1, 2]);
        assert!((found.levels[2].mean - 205.0).abs() < 15.0, "{found:?}");
    }

    #[test]
    fn few_noisy_calls_of_one_level_are_no_tiers() {
        let mut rng = Rng::seeded(7);
        // below 20 calls chance makes two tiers in up to 5 % of the cases
        for (calls, most) in [(20, 30), (30, 5), (50, 2)] {
            let called = (0..2_000).filter(|_| {
                let normal: Vec<f64> = (0..calls).map(|_| (0.3 * noise(&mut rng)).exp()).collect();
                tiers(&normal).is_some()
            });
            let called = called.count();
            assert!(called <= most, "{called} of 2000 with {calls} calls");
        }
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
