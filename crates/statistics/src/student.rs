//! Student's t distribution: its tail, and the tail turned round.

use super::special::incomplete_beta;

/// The t that Student's distribution stays below with probability `p`; infinite at 0 and 1, NaN
/// outside.
pub fn student_quantile(p: f64, freedom: f64) -> f64 {
    if p.is_nan() || !(0.0..=1.0).contains(&p) || freedom.is_nan() || freedom <= 0.0 {
        return f64::NAN;
    }
    let tail = p.min(1.0 - p);
    let t = if tail == 0.0 {
        f64::INFINITY
    } else {
        let mut high = 1.0;
        while upper_tail(high, freedom) > tail && high < 1e300 {
            high *= 2.0;
        }
        bisect(0.0, high, |t| upper_tail(t, freedom) > tail)
    };
    if p < 0.5 { -t } else { t }
}

/// P(|T| > |t|): the two-sided p-value of `t`.
pub(super) fn two_sided(t: f64, freedom: f64) -> f64 {
    2.0 * upper_tail(t.abs(), freedom)
}

fn upper_tail(t: f64, freedom: f64) -> f64 {
    if t.is_infinite() {
        return 0.0;
    }
    0.5 * incomplete_beta(freedom / 2.0, 0.5, freedom / t.mul_add(t, freedom))
}

/// The point of `[low, high]` up to which `is_below` holds, to the last bit that halving can give.
fn bisect(mut low: f64, mut high: f64, is_below: impl Fn(f64) -> bool) -> f64 {
    loop {
        let middle = low + (high - low) / 2.0;
        if middle <= low || middle >= high {
            return middle;
        }
        if is_below(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows by degrees of freedom, columns at p = 0.9, 0.975, 0.995, 0.9995: Biometrika Tables for
    /// Statisticians (1966), table 12, carried to ten digits with mpmath.
    const TABLE: [(f64, [f64; 4]); 7] = [
        (
            1.0,
            [
                3.077_683_537,
                12.706_204_736,
                63.656_741_163,
                636.619_248_769,
            ],
        ),
        (
            2.0,
            [1.885_618_083, 4.302_652_730, 9.924_843_201, 31.599_054_576],
        ),
        (
            7.0,
            [1.414_923_928, 2.364_624_252, 3.499_483_297, 5.407_882_521],
        ),
        (
            9.0,
            [1.383_028_738, 2.262_157_163, 3.249_835_542, 4.780_912_586],
        ),
        (
            19.0,
            [1.327_728_209, 2.093_024_054, 2.860_934_606, 3.883_405_853],
        ),
        (
            30.0,
            [1.310_415_025, 2.042_272_456, 2.749_995_654, 3.645_958_635],
        ),
        (
            120.0,
            [1.288_646_234, 1.979_930_405, 2.617_421_145, 3.373_453_769],
        ),
    ];

    #[test]
    fn quantiles_match_the_published_table() {
        for (freedom, row) in TABLE {
            for (p, t) in [0.9, 0.975, 0.995, 0.9995].into_iter().zip(row) {
                let ours = student_quantile(p, freedom);
                assert!(
                    (ours - t).abs() < 1e-6,
                    "{freedom} degrees, {p}: {ours} for {t}"
                );
                assert!((student_quantile(1.0 - p, freedom) + t).abs() < 1e-6);
            }
        }
    }

    #[test]
    fn the_tail_matches_reference_values() {
        for (freedom, t, p) in [
            (1.0, 1.0, 0.75),
            (5.0, 2.0, 0.949_030_260_585_071),
            (7.0, -2.5, 0.020_496_109_292_876_4),
            (19.0, 2.093, 0.974_998_810_528_586),
            (19.0, 6.0, 0.999_995_510_382_264),
            (200.0, 1.96, 0.974_307_579_577_093),
            (3.0, 0.0, 0.5),
        ] {
            let tail = if t > 0.0 { 1.0 - p } else { p };
            let ours = two_sided(t, freedom) / 2.0;
            assert!((ours - tail).abs() < 1e-12, "{freedom} {t}: {ours}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_nan_and_not_a_panic() {
        for (p, freedom) in [
            (f64::NAN, 5.0),
            (-0.1, 5.0),
            (1.1, 5.0),
            (0.5, 0.0),
            (0.5, -1.0),
            (0.5, f64::NAN),
        ] {
            assert!(student_quantile(p, freedom).is_nan());
        }
        assert!(two_sided(f64::NAN, 5.0).is_nan());
        assert_eq!(two_sided(f64::INFINITY, 5.0), 0.0);
        assert_eq!(student_quantile(0.0, 5.0), f64::NEG_INFINITY);
    }
}
