//! Means, and the difference between those of two groups of values that are not paired, by Welch's
//! t interval.

use super::interval::{CONFIDENCE, Interval};
use super::{MIN_ROUNDS, student_quantile};

/// The mean of these values; `None` without any.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Mean of `after` minus mean of `before`, with its interval; `None` with fewer than [`MIN_ROUNDS`]
/// values on either side.
pub fn difference_of_means(before: &[f64], after: &[f64]) -> Option<Interval> {
    let [(first, first_error), (second, second_error)] =
        [mean_and_error(before)?, mean_and_error(after)?];
    let variance = first_error + second_error;
    let value = second - first;
    if !value.is_finite() || !variance.is_finite() {
        return None;
    }
    let freedom = |error: f64, count: usize| error * error / (count - 1) as f64;
    let freedom = variance * variance
        / (freedom(first_error, before.len()) + freedom(second_error, after.len()));
    let reach = if variance > 0.0 {
        student_quantile(0.5 + CONFIDENCE / 2.0, freedom) * variance.sqrt()
    } else {
        0.0
    };
    Some(Interval {
        value,
        low: value - reach,
        high: value + reach,
    })
}

/// The mean and its squared standard error.
fn mean_and_error(values: &[f64]) -> Option<(f64, f64)> {
    if values.len() < MIN_ROUNDS {
        return None;
    }
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((mean, squares / (count - 1.0) / count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_welchs() {
        // squared errors 0.317 and 0.671, 15.22 degrees of freedom, t = 2.1285
        let before = [30.0, 31.0, 29.0, 33.0, 30.0, 28.0, 32.0, 31.0];
        let after = [20.0, 26.0, 18.0, 24.0, 22.0, 21.0, 25.0, 19.0, 23.0, 22.0];
        let shown = difference_of_means(&before, &after).unwrap();
        assert!((shown.value + 8.5).abs() < 1e-9, "{shown:?}");
        assert!(
            (shown.low + 10.616).abs() < 0.005 && (shown.high + 6.384).abs() < 0.005,
            "{shown:?}"
        );
    }

    #[test]
    fn few_values_have_no_interval_and_equal_ones_a_point() {
        assert_eq!(difference_of_means(&[1.0; 7], &[2.0; 20]), None);
        let point = difference_of_means(&[1.0; 8], &[2.0; 8]).unwrap();
        assert_eq!((point.low, point.high), (1.0, 1.0));
    }
}
