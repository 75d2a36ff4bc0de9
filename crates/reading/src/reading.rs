//! A reading: an interval that holds the value, and the reason why it is no single number.

use crate::{Op, Why};
use std::fmt;

/// A figure with what is known of it. Prints as a count: `6`, `2 to 8`, `at least 13`, `-`, or
/// `~40` where the value was inferred.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    low: f64,
    high: f64,
    /// What was inferred of a value that was not observed.
    estimate: Option<f64>,
    /// Absent only where the value is known.
    why: Option<Why>,
}

impl Reading {
    /// A value that is known. One that is no number is unknown, because there was nothing to
    /// measure.
    pub fn known(value: f64) -> Reading {
        if value.is_nan() {
            return Reading::unknown(Why::NothingHappened);
        }
        Reading {
            low: value,
            high: value,
            estimate: None,
            why: None,
        }
    }

    /// A count that is known.
    pub fn count(count: u64) -> Reading {
        Reading::known(count as f64)
    }

    /// Any value from `low` to `high`, both included; the value itself where they are equal.
    pub fn between(low: f64, high: f64, why: Why) -> Reading {
        let high = high.max(low);
        Reading {
            low,
            high,
            estimate: None,
            why: (low.to_bits() != high.to_bits()).then_some(why),
        }
    }

    /// An estimate within its 95 % interval: every value of the interval is possible.
    pub fn interval(value: f64, low: f64, high: f64) -> Reading {
        Reading::between(low, high, Why::Interval).inferred(value)
    }

    /// A lower bound of a figure that is not negative: what was not observed can only add to it. A
    /// bound of zero says nothing.
    pub fn at_least(low: f64, why: Why) -> Reading {
        let low = if low > 0.0 { low } else { f64::NEG_INFINITY };
        Reading::between(low, f64::INFINITY, why)
    }

    /// The same bounds with a value that was inferred.
    pub fn inferred(self, value: f64) -> Reading {
        Reading {
            estimate: (!self.is_known()).then_some(value),
            ..self
        }
    }

    /// An upper bound.
    pub fn at_most(high: f64, why: Why) -> Reading {
        Reading::between(f64::NEG_INFINITY, high, why)
    }

    /// Nothing is known.
    pub fn unknown(why: Why) -> Reading {
        Reading::between(f64::NEG_INFINITY, f64::INFINITY, why)
    }

    /// The value, if there is one; otherwise nothing is known.
    pub fn of(value: Option<f64>, why: Why) -> Reading {
        value.map_or_else(|| Reading::unknown(why), Reading::known)
    }

    /// The value, if it is known.
    pub fn value(&self) -> Option<f64> {
        self.is_known().then_some(self.low)
    }

    /// The smallest value that it can have; negative infinity where there is no lower bound.
    pub fn low(&self) -> f64 {
        self.low
    }

    /// The largest value that it can have; infinite where there is no upper bound.
    pub fn high(&self) -> f64 {
        self.high
    }

    /// Why only bounds are known, or nothing; absent where the value is known.
    pub fn why(&self) -> Option<&Why> {
        self.why.as_ref()
    }

    /// The value that was inferred; absent where the value is known, or none was inferred.
    pub fn estimate(&self) -> Option<f64> {
        self.estimate
    }

    /// The value, or the one that was inferred.
    pub fn best(&self) -> Option<f64> {
        self.value().or(self.estimate)
    }

    /// Whether the value is known.
    pub fn is_known(&self) -> bool {
        self.why.is_none()
    }

    /// Whether nothing is known, not even a bound.
    pub fn is_unknown(&self) -> bool {
        self.low == f64::NEG_INFINITY && self.high == f64::INFINITY
    }

    /// Whether the value is certainly above zero.
    pub fn is_positive(&self) -> bool {
        self.low > 0.0
    }

    /// The same in a unit of which one of this unit has `factor`, which must be positive.
    pub fn times(&self, factor: f64) -> Reading {
        Reading {
            low: self.low * factor,
            high: self.high * factor,
            estimate: self.estimate.map(|value| value * factor),
            why: self.why.clone(),
        }
    }

    /// The sum of two readings.
    pub fn plus(&self, other: &Reading) -> Reading {
        let sum = self.with(other, self.low + other.low, self.high + other.high);
        match (self.best(), other.best()) {
            (Some(one), Some(more)) => sum.inferred(one + more),
            _ => sum,
        }
    }

    /// What remains of a reading without another one.
    pub fn minus(&self, other: &Reading) -> Reading {
        self.with(other, self.low - other.high, self.high - other.low)
    }

    /// The quotient of two readings that are not negative; unknown where the divisor may be zero.
    pub fn per(&self, other: &Reading) -> Reading {
        if other.low <= 0.0 {
            let why = other.why.clone().unwrap_or(Why::NothingHappened);
            return Reading::unknown(why);
        }
        self.with(other, self.low / other.high, self.high / other.low)
    }

    fn with(&self, other: &Reading, low: f64, high: f64) -> Reading {
        match self.why.as_ref().or(other.why.as_ref()) {
            None => Reading::known(low),
            Some(why) if low.is_nan() || high.is_nan() => Reading::unknown(why.clone()),
            Some(why) => Reading::between(low, high, why.clone()),
        }
    }

    /// Whether the comparison holds for every value that the reading allows (`Some(true)`), for
    /// none (`Some(false)`), or only for some, so that it is not decided.
    pub fn meets(&self, op: Op, asked: f64) -> Option<bool> {
        let (low, high) = (op.holds(self.low, asked), op.holds(self.high, asked));
        let is_inside = self.low <= asked && asked <= self.high;
        match op {
            _ if self.is_known() => Some(low),
            Op::Equal | Op::Unequal if is_inside => None,
            _ => (low == high).then_some(low),
        }
    }

    /// The reading in words, each value as `shown` writes it: `6`, `2 to 8`, `at least 13`, `at
    /// most 5`, `~40`, `-`, of an interval `68 (45 to 83)`.
    pub fn shown(&self, shown: impl Fn(f64) -> String) -> String {
        if let Some(value) = self.estimate {
            return match self.why {
                Some(Why::Interval) => {
                    let [value, low, high] = [value, self.low, self.high].map(shown);
                    match low == high && low == value {
                        true => value,
                        false => format!("{value} ({low} to {high})"),
                    }
                }
                _ => format!("~{}", shown(value)),
            };
        }
        match (self.low, self.high) {
            (low, _) if self.is_known() => shown(low),
            (f64::NEG_INFINITY, f64::INFINITY) => "-".to_owned(),
            (f64::NEG_INFINITY, high) => format!("at most {}", shown(high)),
            (low, f64::INFINITY) => format!("at least {}", shown(low)),
            (low, high) => {
                let (low, high) = (shown(low), shown(high));
                // bounds that differ by less than what is printed
                match low == high {
                    true => low,
                    false => format!("{low} to {high}"),
                }
            }
        }
    }
}

/// Nothing is known, because nothing happened.
impl Default for Reading {
    fn default() -> Reading {
        Reading::unknown(Why::NothingHappened)
    }
}

impl From<u64> for Reading {
    fn from(count: u64) -> Reading {
        Reading::count(count)
    }
}

impl From<Result<f64, Why>> for Reading {
    fn from(value: Result<f64, Why>) -> Reading {
        value.map_or_else(Reading::unknown, Reading::known)
    }
}

impl From<Result<Reading, Why>> for Reading {
    fn from(reading: Result<Reading, Why>) -> Reading {
        reading.unwrap_or_else(Reading::unknown)
    }
}

impl fmt::Display for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown(|count| intact_units::number::count(count as u64)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn why() -> Why {
        Why::cannot_see("the capture was cut")
    }

    #[test]
    fn a_lower_bound_of_zero_does_not_show_that_there_is_none() {
        let (none, five) = (Reading::at_least(0.0, why()), Reading::at_least(5.0, why()));
        assert_eq!(Reading::count(0).meets(Op::Equal, 0.0), Some(true));
        assert_eq!(none.meets(Op::Equal, 0.0), None);
        assert_eq!(none.meets(Op::AtMost, 4.0), None);
        assert_eq!(five.meets(Op::AtMost, 4.0), Some(false));
        assert_eq!(five.meets(Op::AtLeast, 4.0), Some(true));
        assert!(none.is_unknown());
    }

    #[test]
    fn what_is_unknown_meets_nothing_and_fails_nothing() {
        for (op, _) in Op::ALL {
            assert_eq!(Reading::unknown(why()).meets(op, 0.0), None, "{op}");
        }
    }

    #[test]
    fn a_reading_has_one_form() {
        for (reading, shown) in [
            (Reading::count(1_206), "1,206"),
            (Reading::between(2.0, 8.0, why()), "2 to 8"),
            (Reading::between(2.0, 2.0, why()), "2"),
            (Reading::at_least(13.0, why()), "at least 13"),
            (Reading::at_most(5.0, why()), "at most 5"),
            (Reading::unknown(why()), "-"),
            (Reading::interval(68.0, 45.0, 83.0), "68 (45 to 83)"),
            (Reading::known(f64::NAN), "-"),
            (Reading::at_least(0.0, why()), "-"),
            (Reading::at_least(2.0, why()).inferred(40.0), "~40"),
        ] {
            assert_eq!(reading.to_string(), shown);
        }
    }

    #[test]
    fn what_is_unknown_stays_unknown_in_a_sum_and_keeps_its_reason() {
        let sum = Reading::count(3).plus(&Reading::unknown(why()));
        assert!(sum.is_unknown());
        assert_eq!(sum.why(), Some(&why()));
        let least = Reading::count(3).plus(&Reading::at_least(2.0, why()));
        assert_eq!(least, Reading::at_least(5.0, why()));
        assert!(Reading::count(3).per(&Reading::count(0)).is_unknown());
    }

    proptest! {
        #[test]
        fn a_range_is_decided_only_if_all_its_values_agree(low in 0u8..20, width in 0u8..20, asked in 0u8..40) {
            let range = Reading::between(f64::from(low), f64::from(low + width), why());
            for (op, _) in Op::ALL {
                let mut values = (low..=low + width).map(|value| op.holds(f64::from(value), f64::from(asked)));
                let first = values.next().unwrap();
                let agreed = values.all(|one| one == first).then_some(first);
                prop_assert_eq!(range.meets(op, f64::from(asked)), agreed, "{} {:?}", op, range);
            }
        }

        #[test]
        fn arithmetic_holds_every_value(a in 0u8..20, b in 1u8..20, c in 0u8..9, d in 0u8..9, at in 0.0..1.0f64) {
            let reading = |low: u8, width: u8| Reading::between(f64::from(low), f64::from(low + width), why());
            let inside = |low: u8, width: u8| f64::from(low) + at * f64::from(width);
            let (x, y) = (inside(a, c), inside(b, d));
            let holds = |one: &Reading, value: f64| one.low() <= value + 1e-9 && value <= one.high() + 1e-9;
            let (left, right) = (reading(a, c), reading(b, d));
            prop_assert!(holds(&left.plus(&right), x + y));
            prop_assert!(holds(&left.minus(&right), x - y));
            prop_assert!(holds(&left.per(&right), x / y));
        }
    }
}
