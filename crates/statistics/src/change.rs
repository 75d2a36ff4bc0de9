//! Where a series changed its level, once and for good: latency over weeks, with keep-alive
//! switched on midway.
//!
//! The test is the self-normalised one of Shao and Zhang, "Testing for change points in time
//! series", JASA 105 (2010). It measures the noise by the series itself. So a drift, and values
//! that depend on their neighbours, are not taken for a change. A level that does not last, such as
//! a burst of load, is none either.

use crate::splits::{Splits, mean};
use serde::Serialize;

/// Values that a series must have.
pub const MIN_VALUES: usize = 12;
/// Values there must be on either side of the change, at least.
const MIN_SIDE: usize = 3;
/// The share of the values there must be on either side: one in this many.
const SIDE_SHARE: usize = 10;
/// Changes in one direction that are looked for, at most.
const STEPS: usize = 3;
/// Values of a level between two changes, at least.
const MIN_LEVEL: usize = 6;
/// Values by which the place of a change may differ with and without the levels further away.
const NEAR: usize = 2;
/// Parts of a side, each of which must have the level of its side.
const PARTS: usize = 4;
/// Values of the statistic and how often chance exceeds them: table 1 of the paper, below 0.1 by
/// simulation.
const CRITICAL: [(f64, f64); 8] = [
    (0.0, 1.0),
    (7.6, 0.5),
    (29.6, 0.1),
    (40.1, 0.05),
    (52.2, 0.025),
    (68.6, 0.01),
    (84.6, 0.005),
    (121.9, 0.001),
];

/// The best place to cut a series in two.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChangePoint {
    /// Index of the first value after the change.
    pub at: usize,
    /// Mean before it, in the unit of the series.
    pub before: f64,
    /// Mean from it on.
    pub after: f64,
    /// How often a series without a change shows as much of one; at least 0.001.
    pub p_value: f64,
}

/// The most likely single change of level that lasts to the end, after `scale`: `f64::ln` where
/// ratios matter.
///
/// `None` with fewer than [`MIN_VALUES`], values that are all equal or not finite on that scale,
/// and where a part of one side has the level of the other. Costs the square of the number of
/// values; thin a long series first.
pub fn change_point(series: &[f64], scale: fn(f64) -> f64) -> Option<ChangePoint> {
    let values: Vec<f64> = series.iter().map(|value| scale(*value)).collect();
    if values.len() < MIN_VALUES || !values.iter().all(|value| value.is_finite()) {
        return None;
    }
    let at = best_cut(&values)?;
    if !lasts(&values, at) {
        return None;
    }
    let table = exceeded_by_chance(statistic(&values));
    // a few values can be in any order: no test is surer than that
    let orders = (0..at).fold(1.0, |orders, nth| {
        orders * (values.len() - nth) as f64 / (nth + 1) as f64
    });
    Some(ChangePoint {
        at,
        before: mean(&series[..at]),
        after: mean(&series[at..]),
        p_value: table.max(2.0 / orders).min(1.0),
    })
}

/// The changes of level that last, in order: one, or several that all rise or all fall. Chance
/// shows as large a change at most as often as `level`. A level that is taken back is a burst of
/// load, and no change.
///
/// Several steps weaken the test of a single one over the whole series, so each is tested between
/// its neighbours. They are taken from the best fit of that many levels.
pub fn change_points(series: &[f64], scale: fn(f64) -> f64, level: f64) -> Vec<ChangePoint> {
    let several = (2..=STEPS).rev();
    let stairs = several.filter_map(|count| staircase(series, scale, level, count));
    let one = || change_point(series, scale).filter(|change| change.p_value <= level);
    stairs
        .take(1)
        .next()
        .unwrap_or_else(|| one().into_iter().collect())
}

/// At most this number of changes in one direction, each of them proven between its neighbours.
fn staircase(
    series: &[f64],
    scale: fn(f64) -> f64,
    level: f64,
    count: usize,
) -> Option<Vec<ChangePoint>> {
    let values: Vec<f64> = series.iter().map(|value| scale(*value)).collect();
    if !values.iter().all(|value| value.is_finite()) {
        return None;
    }
    let cuts = best_cuts(&values, count)?;
    let bounds: Vec<usize> = std::iter::once(0)
        .chain(cuts)
        .chain([values.len()])
        .collect();
    let steps = bounds.windows(3).map(|of| {
        let [from, cut, to] = of else { return None };
        let change = change_point(&series[*from..*to], scale)?;
        let at = from + change.at;
        let is_proven = change.p_value <= level && at.abs_diff(*cut) <= NEAR;
        is_proven.then_some(ChangePoint { at, ..change })
    });
    let steps: Vec<ChangePoint> = steps.collect::<Option<_>>()?;
    let rises = |step: &ChangePoint| step.after > step.before;
    let is_one_way = steps.iter().all(|step| rises(step) == rises(&steps[0]));
    is_one_way.then_some(steps)
}

/// The cuts into levels of [`MIN_LEVEL`] values at least that explain most squares.
fn best_cuts(values: &[f64], count: usize) -> Option<Vec<usize>> {
    if values.len() < (count + 1) * MIN_LEVEL {
        return None;
    }
    let levels = Splits::of(values, count + 1, MIN_LEVEL).classes(count + 1);
    Some(levels[1..].iter().map(|level| level.start).collect())
}

/// The cuts that are tried.
fn cuts(len: usize) -> std::ops::RangeInclusive<usize> {
    let side = MIN_SIDE.max(len / SIDE_SHARE);
    side..=len - side
}

/// The cut that explains most squares: with normal noise the likeliest. `None` where none explains
/// any.
fn best_cut(values: &[f64]) -> Option<usize> {
    let (len, all) = (values.len() as f64, mean(values));
    let gain = |at: usize| {
        let sum: f64 = values[..at].iter().map(|value| value - all).sum();
        sum * sum * len / (at as f64 * (len - at as f64))
    };
    let best = cuts(values.len()).max_by(|a, b| gain(*a).total_cmp(&gain(*b)))?;
    (gain(best) > 1e-12).then_some(best)
}

/// Whether every part of either side lies on its side of the middle between both levels.
fn lasts(values: &[f64], at: usize) -> bool {
    let (before, after) = values.split_at(at);
    let levels = [mean(before), mean(after)];
    let middle = f64::midpoint(levels[0], levels[1]);
    let holds = |side: &[f64], level: f64| {
        let parts = PARTS.min(side.len() / 2).max(1);
        (0..parts).all(|part| {
            let part = &side[side.len() * part / parts..side.len() * (part + 1) / parts];
            (mean(part) - middle) * (level - middle) > 0.0
        })
    };
    holds(before, levels[0]) && holds(after, levels[1])
}

/// The largest over all cuts of the squared partial sum, divided by the squared partial sums of
/// either side around its own mean.
fn statistic(values: &[f64]) -> f64 {
    let len = values.len();
    let mut sums = vec![0.0; len + 1];
    for (nth, value) in values.iter().enumerate() {
        sums[nth + 1] = sums[nth] + value;
    }
    let bridge = |from: usize, to: usize| -> f64 {
        let slope = (sums[to] - sums[from]) / (to - from) as f64;
        let each = (from..=to).map(|nth| sums[nth] - sums[from] - slope * (nth - from) as f64);
        each.map(|off| off * off).sum()
    };
    let of = |at: usize| {
        let off = sums[at] - sums[len] * at as f64 / len as f64;
        off * off * len as f64 / (bridge(0, at) + bridge(at, len))
    };
    cuts(len).map(of).fold(0.0, f64::max)
}

/// How often the statistic of a series without a change exceeds this, between the values of the
/// table.
fn exceeded_by_chance(statistic: f64) -> f64 {
    let Some(next) = CRITICAL.iter().position(|(value, _)| statistic < *value) else {
        return CRITICAL[CRITICAL.len() - 1].1;
    };
    let ((low, p_low), (high, p_high)) = (CRITICAL[next.max(1) - 1], CRITICAL[next.max(1)]);
    let share = (statistic - low) / (high - low);
    (p_low.ln() + share * (p_high.ln() - p_low.ln())).exp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::student_quantile;
    use intact_experiment::Rng;

    /// Degrees of freedom with which Student's distribution is as good as normal.
    const NEARLY_NORMAL: f64 = 1e3;

    fn normal(rng: &mut Rng) -> f64 {
        student_quantile(rng.unit().max(1e-12), NEARLY_NORMAL)
    }

    fn noisy(rng: &mut Rng, median: f64, sd: f64) -> f64 {
        median * (sd * normal(rng)).exp()
    }

    /// How many of `runs` series are called changed at this level.
    fn called(runs: usize, level: f64, mut series: impl FnMut() -> Vec<f64>) -> usize {
        (0..runs)
            .filter(|_| change_point(&series(), f64::ln).is_some_and(|one| one.p_value <= level))
            .count()
    }

    #[test]
    fn keep_alive_switched_on_midway_is_found_where_it_was() {
        let mut rng = Rng::seeded(6);
        let series: Vec<f64> = (0..200)
            .map(|day| noisy(&mut rng, if day < 120 { 900.0 } else { 488.0 }, 0.15))
            .collect();
        let change = change_point(&series, f64::ln).unwrap();
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
        for len in [16, 64] {
            let small = called(800, 0.05, || {
                (0..len).map(|_| noisy(&mut rng, 100.0, 1.0)).collect()
            });
            // 40 expected of 800 by the statistic; those that do not last are none
            assert!(
                (8..=55).contains(&small),
                "{small} of 800 with {len} values"
            );
        }
    }

    #[test]
    fn noise_like_the_load_of_a_machine_is_rarely_called_a_change() {
        let mut rng = Rng::seeded(8);
        // each value depends on the one before
        let clustered = called(400, 0.005, || {
            let mut level = 0.0;
            let mut next = || {
                level = 0.5 * level + 0.3 * normal(&mut rng);
                level.exp()
            };
            (0..64).map(|_| next()).collect()
        });
        assert!(clustered <= 12, "{clustered} of 400: more than 3 %");
        // bursts of twice the latency, on average for 5 % of the run
        let bursts = called(400, 0.005, || {
            let mut is_loaded = false;
            let mut next = || {
                is_loaded ^= rng.unit() < 0.3;
                noisy(&mut rng, if is_loaded { 200.0 } else { 100.0 }, 0.2)
            };
            (0..64).map(|_| next()).collect()
        });
        assert!(bursts <= 8, "{bursts} of 400: more than 2 %");
        // a steady drift to three times the latency
        let drift = called(400, 0.005, || {
            let at = |nth: u32| 100.0 * (f64::from(nth) / 58.0).exp();
            (0..64).map(|nth| noisy(&mut rng, at(nth), 0.2)).collect()
        });
        assert!(drift <= 8, "{drift} of 400: more than 2 %");
    }

    #[test]
    fn a_burst_that_ends_within_the_run_is_no_change() {
        let mut rng = Rng::seeded(9);
        let called = called(400, 0.005, || {
            let from = 10 + (rng.unit() * 20.0) as usize;
            let to = from + 5 + (rng.unit() * 20.0) as usize;
            (0..64)
                .map(|nth| {
                    noisy(
                        &mut rng,
                        if (from..to).contains(&nth) {
                            300.0
                        } else {
                            100.0
                        },
                        0.2,
                    )
                })
                .collect()
        });
        assert!(called <= 8, "{called} of 400");
    }

    #[test]
    fn a_level_that_is_taken_back_near_the_end_does_not_last() {
        let mut rng = Rng::seeded(11);
        let called = called(200, 0.005, || {
            let at = |nth: usize| {
                if (32..59).contains(&nth) {
                    300.0
                } else {
                    100.0
                }
            };
            (0..64).map(|nth| noisy(&mut rng, at(nth), 0.1)).collect()
        });
        // 29 by the statistic alone
        assert!(called <= 14, "{called} of 200");
    }

    #[test]
    fn a_lasting_change_by_half_is_mostly_found() {
        let mut rng = Rng::seeded(10);
        let found = called(200, 0.005, || {
            (0..64)
                .map(|nth| noisy(&mut rng, if nth < 40 { 150.0 } else { 100.0 }, 0.2))
                .collect()
        });
        assert!(found >= 175, "{found} of 200");
    }

    #[test]
    fn shares_have_a_scale_of_their_own() {
        let shares = [[0.0; 8], [1.0; 8]].concat();
        let change = change_point(&shares, |share| share).unwrap();
        assert_eq!((change.at, change.before, change.after), (8, 0.0, 1.0));
        assert!(change.p_value <= 0.001);
        // as little data can come in this order by chance
        let few = [vec![0.0; 3], vec![1.0; 9]].concat();
        assert!(change_point(&few, |share| share).unwrap().p_value > 0.005);
    }

    #[test]
    fn what_has_no_level_has_no_change() {
        assert_eq!(change_point(&[1.0; 5], f64::ln), None);
        assert_eq!(change_point(&[1.0; 50], f64::ln), None);
        assert_eq!(change_point(&[f64::NAN; 50], f64::ln), None);
        assert_eq!(change_point(&[-1.0; 50], f64::ln), None);
    }
}
