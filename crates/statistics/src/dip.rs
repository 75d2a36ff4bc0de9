//! Hartigan's dip: how far a sample is from having one mode.
//!
//! After J. A. and P. M. Hartigan, "The dip test of unimodality", Annals of Statistics 13 (1985)
//! 70-84: the largest distance between the sample's distribution function and the nearest one with
//! a single mode. Assumes no shape. Counts below are in samples, so that a distance of one is 1/n;
//! the dip is half the last distance found.

use intact_experiment::Rng;

/// More points than this only cost time; thin them first, evenly by rank (see `humps`).
pub(super) const MAX_POINTS: usize = 1_000;
/// The number of simulated samples with at least the real dip after which the result is clear.
const ENOUGH: u32 = 10;

/// The dip of `sorted`, which must rise and be finite; `None` when it does not, or is empty. From
/// 1/(2n) (also where all samples are equal, by convention) to 1/4.
pub(super) fn dip(sorted: &[f64]) -> Option<f64> {
    let rises = sorted.windows(2).all(|pair| pair[0] <= pair[1]);
    if sorted.is_empty() || !rises || !sorted.iter().all(|x| x.is_finite()) {
        return None;
    }
    Some(largest_distance(sorted) / (2 * sorted.len()) as f64)
}

/// Tests `sorted` for one mode against at most `draws` simulated uniform samples (the hardest of
/// all unimodal ones) of its size: the share of them that dip at least as far, the sample itself
/// counted.
///
/// `None` as for [`dip`]. Costs about `draws` times sorting the sample if the dip is rare. If not,
/// it ends after [`ENOUGH`] samples with at least its dip (J. Besag and P. Clifford, "Sequential
/// Monte Carlo p-values", Biometrika 78 (1991) 301-304).
pub(super) fn dip_test(sorted: &[f64], draws: u32, seed: u64) -> Option<f64> {
    let statistic = dip(sorted)?;
    let mut rng = Rng::seeded(seed);
    let mut uniform = vec![0.0; sorted.len()];
    let mut as_far = 0;
    for drawn in 1..=draws {
        uniform.fill_with(|| rng.unit());
        uniform.sort_unstable_by(f64::total_cmp);
        if largest_distance(&uniform) / (2 * sorted.len()) as f64 >= statistic {
            as_far += 1;
        }
        if as_far == ENOUGH {
            return Some(f64::from(ENOUGH) / f64::from(drawn));
        }
    }
    Some(f64::from(as_far + 1) / f64::from(draws + 1))
}

/// Twice the dip in samples: narrows the interval that may hold the mode until the hulls over it
/// lie closer together than what was already lost outside of it.
fn largest_distance(x: &[f64]) -> f64 {
    let (mut low, mut high) = (0, x.len() - 1);
    let mut lost = 1.0_f64;
    loop {
        let minorant = hull(x, low, high, HullSide::Below);
        let majorant = hull(x, low, high, HullSide::Above);
        let Some(widest) = widest_gap(x, &minorant, &majorant) else {
            return lost;
        };
        if widest.gap <= lost {
            return lost;
        }
        lost = lost
            .max(left_of_mode(x, &minorant, widest.low))
            .max(right_of_mode(x, &majorant, widest.high));
        if (low, high) == (widest.low, widest.high) {
            return lost;
        }
        (low, high) = (widest.low, widest.high);
    }
}

#[derive(Clone, Copy, PartialEq)]
enum HullSide {
    /// The greatest convex minorant, through the feet of the steps.
    Below,
    /// The least concave majorant, through their heads.
    Above,
}

/// Indices of the corners of one hull over `x[low..=high]`, rising.
fn hull(x: &[f64], low: usize, high: usize, side: HullSide) -> Vec<usize> {
    let mut corners: Vec<usize> = Vec::new();
    for next in low..=high {
        while let [.., first, middle] = corners[..] {
            // slopes compared crosswise, as equal samples make a step upright
            let left = (middle - first) as f64 * (x[next] - x[middle]);
            let right = (next - middle) as f64 * (x[middle] - x[first]);
            let bends = if side == HullSide::Below {
                left < right
            } else {
                left > right
            };
            if bends {
                break;
            }
            corners.pop();
        }
        corners.push(next);
    }
    corners
}

struct Widest {
    gap: f64,
    /// The corner of the minorant at or left of the widest place.
    low: usize,
    /// The corner of the majorant at or right of it.
    high: usize,
}

/// Where the hulls are furthest apart, looked for at their inner corners; `None` when neither has
/// one.
fn widest_gap(x: &[f64], minorant: &[usize], majorant: &[usize]) -> Option<Widest> {
    let mut widest: Option<Widest> = None;
    let mut keep = |gap: f64, low: usize, high: usize| {
        if widest.as_ref().is_none_or(|w| gap >= w.gap) {
            widest = Some(Widest { gap, low, high });
        }
    };
    for (corner, from, to) in inner_corners(minorant, majorant) {
        keep(chord(x, from, to, corner) + 1.0 - corner as f64, corner, to);
    }
    for (corner, from, to) in inner_corners(majorant, minorant) {
        keep(
            corner as f64 + 1.0 - chord(x, from, to, corner),
            from,
            corner,
        );
    }
    widest
}

/// Each inner corner of one hull with the edge of the other that spans it.
fn inner_corners<'a>(
    of: &'a [usize],
    other: &'a [usize],
) -> impl Iterator<Item = (usize, usize, usize)> + 'a {
    let inner = of.get(1..of.len().saturating_sub(1)).unwrap_or_default();
    let mut edge = 1;
    inner.iter().map(move |&corner| {
        while other[edge] < corner {
            edge += 1;
        }
        (corner, other[edge - 1], other[edge])
    })
}

/// The straight line through steps `from` and `to` at sample `at`, in samples.
fn chord(x: &[f64], from: usize, to: usize, at: usize) -> f64 {
    let across = x[to] - x[from];
    if across == 0.0 {
        return to as f64;
    }
    from as f64 + (to - from) as f64 * ((x[at] - x[from]) / across)
}

/// How far the steps rise above the minorant up to `mode`.
fn left_of_mode(x: &[f64], minorant: &[usize], mode: usize) -> f64 {
    edges(x, minorant)
        .filter(|&(_, to)| to <= mode)
        .flat_map(|(from, to)| (from..=to).map(move |i| (i + 1) as f64 - chord(x, from, to, i)))
        .fold(1.0, f64::max)
}

/// How far the steps fall below the majorant from `mode` on.
fn right_of_mode(x: &[f64], majorant: &[usize], mode: usize) -> f64 {
    edges(x, majorant)
        .filter(|&(from, _)| from >= mode)
        .flat_map(|(from, to)| (from..=to).map(move |i| chord(x, from, to, i) + 1.0 - i as f64))
        .fold(1.0, f64::max)
}

/// The edges of a hull that are not upright.
fn edges<'a>(x: &'a [f64], corners: &'a [usize]) -> impl Iterator<Item = (usize, usize)> + 'a {
    corners
        .windows(2)
        .map(|pair| (pair[0], pair[1]))
        .filter(|&(from, to)| x[from] < x[to])
}

#[cfg(test)]
mod tests {
    // by name: proptest's prelude has a trait of the same one
    use intact_experiment::Rng;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn two_equal_heaps_have_the_largest_dip() {
        assert_eq!(dip(&[0.0, 0.0, 1.0, 1.0]), Some(0.25));
        assert_eq!(dip(&[1.0, 2.0, 3.0, 4.0]), Some(0.125));
        assert_eq!(dip(&[5.0; 9]), Some(1.0 / 18.0));
    }

    /// The definition itself, slowly. It is the least distance from the sample's distribution
    /// function to one that is convex up to a sample and concave from there on. In samples.
    fn least_distance(x: &[f64]) -> f64 {
        let mirrored: Vec<f64> = x.iter().rev().map(|v| -v).collect();
        let n = x.len();
        let fits = |distance: f64| {
            (0..n).any(|mode| {
                let up_to = lowest_at_mode(x, mode, distance);
                let from = lowest_at_mode(&mirrored, n - 1 - mode, distance);
                matches!((up_to, from), (Some(v), Some(w)) if v <= n as f64 - w + 1e-7)
            })
        };
        bisect(0.0, n as f64, |distance| !fits(distance))
    }

    /// The lowest value just before `mode` of a convex function that stays within `distance` up to
    /// there.
    fn lowest_at_mode(x: &[f64], mode: usize, distance: f64) -> Option<f64> {
        let fits = |at_mode: f64| {
            let upper = |i: usize| {
                if i == mode {
                    at_mode
                } else {
                    i as f64 + distance
                }
            };
            (0..=mode).all(|i| {
                let lower = if i == mode { i as f64 } else { (i + 1) as f64 } - distance;
                let largest_convex = (0..=i)
                    .flat_map(|a| (i..=mode).map(move |b| (a, b)))
                    .map(|(a, b)| {
                        if a == b {
                            upper(a)
                        } else {
                            upper(a) + (upper(b) - upper(a)) * (x[i] - x[a]) / (x[b] - x[a])
                        }
                    })
                    .fold(f64::INFINITY, f64::min);
                largest_convex >= lower - 1e-9
            })
        };
        let highest = mode as f64 + distance;
        fits(highest).then(|| bisect(mode as f64 - distance, highest, |v| !fits(v)))
    }

    fn bisect(mut low: f64, mut high: f64, is_below: impl Fn(f64) -> bool) -> f64 {
        for _ in 0..30 {
            let middle = (low + high) / 2.0;
            if is_below(middle) {
                low = middle;
            } else {
                high = middle;
            }
        }
        high
    }

    #[test]
    fn uniform_samples_dip_as_the_table_says() {
        // quantiles of the dip of uniform samples: table 1 of the paper, redone with a million
        // draws for R's diptest
        const TABLE: [(usize, [f64; 3]); 3] = [
            (10, [0.0968, 0.1305, 0.1396]),
            (50, [0.0489, 0.0649, 0.0703]),
            (100, [0.0355, 0.0472, 0.0511]),
        ];
        let mut rng = Rng::seeded(1985);
        for (n, quantiles) in TABLE {
            let mut dips: Vec<f64> = (0..4_000)
                .map(|_| {
                    let mut uniform: Vec<f64> = (0..n).map(|_| rng.unit()).collect();
                    uniform.sort_by(f64::total_cmp);
                    dip(&uniform).unwrap()
                })
                .collect();
            dips.sort_by(f64::total_cmp);
            for (rank, expected) in [0.5, 0.9, 0.95].into_iter().zip(quantiles) {
                let ours = dips[(rank * 4_000.0) as usize];
                assert!(
                    (ours / expected - 1.0).abs() < 0.02,
                    "n = {n}, {rank}: {ours} for {expected}"
                );
            }
        }
    }

    #[test]
    fn what_is_not_sorted_numbers_has_no_dip() {
        assert_eq!(dip(&[]), None);
        assert_eq!(dip(&[2.0, 1.0]), None);
        assert_eq!(dip(&[1.0, f64::NAN]), None);
        assert_eq!(dip(&[1.0, f64::INFINITY]), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn the_dip_is_what_its_definition_says(x in prop::collection::btree_set(0..1_000_i32, 2..9)) {
            let x: Vec<f64> = x.into_iter().map(f64::from).collect();
            let (ours, defined) = (largest_distance(&x) / 2.0, least_distance(&x));
            prop_assert!((ours - defined).abs() < 1e-4, "{ours} for {defined}");
        }

        #[test]
        fn a_dip_lies_between_its_bounds_and_ignores_scale_and_direction(
            mut x in prop::collection::vec(-1_000..1_000_i32, 1..60)
        ) {
            x.sort_unstable();
            let forward: Vec<f64> = x.iter().map(|&v| f64::from(v)).collect();
            let mirrored: Vec<f64> = x.iter().rev().map(|&v| f64::from(-v) * 3.0 + 7.0).collect();
            let (there, back) = (dip(&forward).unwrap(), dip(&mirrored).unwrap());
            prop_assert!(there >= 0.5 / x.len() as f64 - 1e-12 && there <= 0.25f64.max(0.5 / x.len() as f64) + 1e-12);
            prop_assert!((there - back).abs() < 1e-9, "{there} {back}");
        }
    }
}
