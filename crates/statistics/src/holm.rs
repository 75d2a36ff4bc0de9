//! Many comparisons at once, kept from finding a difference by luck.
//!
//! Verdicts go by Holm's step-down p-values (Holm 1979, Scandinavian Journal of Statistics 6:65).
//! Intervals go by Bonferroni's level 1 - alpha/m (Dunn 1961): *together* they hold all m truths at
//! the confidence asked for, whatever the comparisons have in common. Intervals at Holm's own step
//! levels would be narrower and always agree with the p-values. But they do not hold all truths at
//! once: with m real differences they miss up to alpha (1 + 1/2 + ... + 1/m). The price: an
//! interval may touch zero where the p-value just says "differs".

use super::PairedDifference;
use super::interval::{CONFIDENCE, Interval};

/// With at least this many comparisons [`adjust`] adjusts; ten or fewer are reported one by one.
const HOLM_FROM: usize = 11;

/// A comparison as it may be reported with the others of its run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Adjusted {
    /// The estimate and its interval.
    pub interval: Interval,
    /// The p-value, Holm's when adjusted.
    pub p_value: f64,
    /// The confidence of this interval alone; above the one asked for when adjusted.
    pub level: f64,
    /// Whether a difference has been shown at the confidence asked for.
    pub significant: bool,
}

/// Holm's adjusted p-values, in the order of the input; NaN counts as 1, values outside 0..=1 are
/// clamped.
fn holm_p_values(p_values: &[f64]) -> Vec<f64> {
    let held: Vec<f64> = p_values
        .iter()
        .map(|p| if p.is_nan() { 1.0 } else { p.clamp(0.0, 1.0) })
        .collect();
    let mut by_size: Vec<usize> = (0..held.len()).collect();
    by_size.sort_by(|&i, &j| held[i].total_cmp(&held[j]));
    let mut adjusted = vec![1.0; held.len()];
    let mut largest = 0.0_f64;
    for (step, &index) in by_size.iter().enumerate() {
        largest = largest
            .max(held[index] * (held.len() - step) as f64)
            .min(1.0);
        adjusted[index] = largest;
    }
    adjusted
}

/// The comparisons of one run as they may be reported together, in the order given: adjusted if
/// there are more than ten.
pub fn adjust(comparisons: &[PairedDifference]) -> Vec<Adjusted> {
    let raw: Vec<f64> = comparisons.iter().map(PairedDifference::p_value).collect();
    let (p_values, level) = if comparisons.len() < HOLM_FROM {
        (raw, CONFIDENCE)
    } else {
        // the level that keeps all intervals *together* at the confidence
        let level = 1.0 - (1.0 - CONFIDENCE) / comparisons.len() as f64;
        (holm_p_values(&raw), level)
    };
    comparisons
        .iter()
        .zip(p_values)
        .map(|(comparison, p_value)| Adjusted {
            interval: comparison.interval_at(level),
            p_value,
            level,
            significant: p_value < 1.0 - CONFIDENCE,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paired_difference;

    #[test]
    fn holm_steps_down_and_never_falls_back() {
        // worked by hand: 0.01 x 4, 0.02 x 3, 0.03 x 2 (kept at 0.06), 0.04 x 1 (kept at 0.06)
        let adjusted = holm_p_values(&[0.04, 0.01, 0.03, 0.02]);
        for (ours, expected) in adjusted.iter().zip([0.06, 0.04, 0.06, 0.06]) {
            assert!((ours - expected).abs() < 1e-12, "{adjusted:?}");
        }
        assert_eq!(holm_p_values(&[f64::NAN, 2.0, -1.0]), [1.0, 1.0, 0.0]);
        assert!(holm_p_values(&[]).is_empty());
    }

    #[test]
    fn ten_comparisons_are_left_alone_and_eleven_are_adjusted() {
        let a: Vec<f64> = (0..20).map(|i| 5.0 + f64::from(i % 7)).collect();
        let b: Vec<f64> = (0..20).map(|i| 4.5 + f64::from(i % 5)).collect();
        let one = paired_difference(&a, &b).unwrap();
        let ten = adjust(&[one; 10]);
        let eleven = adjust(&[one; 11]);
        assert_eq!(ten[0].interval, one.interval());
        assert_eq!(ten[0].p_value, one.p_value());
        assert!(
            eleven[0].interval.low < ten[0].interval.low
                && eleven[0].interval.high > ten[0].interval.high
        );
        assert!((eleven[0].level - (1.0 - 0.05 / 11.0)).abs() < 1e-12);
        assert!(
            ten[0].significant && !eleven[0].significant,
            "{} {}",
            ten[0].p_value,
            eleven[0].p_value
        );
    }
}
