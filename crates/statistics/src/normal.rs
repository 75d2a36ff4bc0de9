//! The normal distribution: its CDF, and the CDF turned round.

use std::f64::consts::PI;

/// P(Z <= z) for a standard normal Z, to about 1e-15 (series of Marsaglia 2004; Laplace's fraction
/// in the tails).
pub fn normal_cdf(z: f64) -> f64 {
    if z.is_nan() {
        return f64::NAN;
    }
    let density = (-0.5 * z * z).exp() / (2.0 * PI).sqrt();
    if z.abs() > 5.0 {
        let tail = if density == 0.0 {
            0.0
        } else {
            density
                / (1..=60)
                    .rev()
                    .fold(z.abs(), |below, k| z.abs() + f64::from(k) / below)
        };
        return if z > 0.0 { 1.0 - tail } else { tail };
    }
    let mut term = z;
    let mut sum = z;
    let mut odd = 1.0;
    while term.abs() > 1e-18 * sum.abs() {
        odd += 2.0;
        term *= z * z / odd;
        sum += term;
    }
    density.mul_add(sum, 0.5)
}

/// The z that a standard normal stays below with probability `p`; infinite at 0 and 1, NaN outside.
pub fn normal_quantile(p: f64) -> f64 {
    // the lower half keeps its precision in the far tail, so the upper half is its mirror
    if p > 0.5 {
        return -normal_quantile(1.0 - p);
    }
    if p.is_nan() || p < 0.0 {
        return f64::NAN;
    }
    if p == 0.0 {
        return f64::NEG_INFINITY;
    }
    bisect(-40.0, 0.0, |z| normal_cdf(z) < p)
}

/// The point of `[low, high]` up to which `is_below` holds, to the last bit that halving can give.
pub(super) fn bisect(mut low: f64, mut high: f64, is_below: impl Fn(f64) -> bool) -> f64 {
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

    #[test]
    fn quantiles_match_the_tables() {
        // to 15 digits from mpmath at 30 digits; the first five are in every printed table
        for (p, z) in [
            (0.5, 0.0),
            (0.9, 1.281_551_565_544_6),
            (0.975, 1.959_963_984_540_05),
            (0.995, 2.575_829_303_548_9),
            (0.9995, 3.290_526_731_491_89),
            (0.02, -2.053_748_910_631_82),
            (1e-10, -6.361_340_902_404_06),
        ] {
            assert!(
                (normal_quantile(p) - z).abs() < 1e-10,
                "{p}: {}",
                normal_quantile(p)
            );
        }
    }

    #[test]
    fn what_is_no_probability_has_no_quantile() {
        assert!(
            normal_quantile(-0.1).is_nan()
                && normal_quantile(1.1).is_nan()
                && normal_quantile(f64::NAN).is_nan()
        );
        assert_eq!(normal_quantile(0.0), f64::NEG_INFINITY);
        assert_eq!(normal_quantile(1.0), f64::INFINITY);
    }

    #[test]
    fn the_two_methods_meet() {
        assert!((normal_cdf(-5.000_000_1) - normal_cdf(-4.999_999_9)).abs() < 1e-12);
        assert_eq!(normal_cdf(f64::NEG_INFINITY), 0.0);
        assert_eq!(normal_cdf(f64::INFINITY), 1.0);
    }
}
