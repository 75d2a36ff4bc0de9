//! What was measured of a metric: a value, or the bounds that hold it where a part was not
//! observed.

use super::Op;

/// A measured value in base units, or the range that it lies in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    low: f64,
    high: f64,
}

impl Measured {
    /// A value that is known.
    pub fn exactly(value: f64) -> Measured {
        Measured {
            low: value,
            high: value,
        }
    }

    /// A lower bound: what was not observed can only add to it.
    pub fn at_least(low: f64) -> Measured {
        Measured {
            low,
            high: f64::INFINITY,
        }
    }

    /// Any value from `low` to `high`, both included.
    pub fn between(low: f64, high: f64) -> Measured {
        Measured {
            low,
            high: high.max(low),
        }
    }

    /// A count, exact where all of it was observed and a lower bound otherwise.
    pub fn count(count: u64, is_complete: bool) -> Measured {
        if is_complete {
            Measured::exactly(count as f64)
        } else {
            Measured::at_least(count as f64)
        }
    }

    /// The same for one of `parts` equal parts.
    pub fn divided_by(self, parts: f64) -> Measured {
        Measured {
            low: self.low / parts,
            high: self.high / parts,
        }
    }

    /// The smallest value that it can have.
    pub fn low(self) -> f64 {
        self.low
    }

    /// The largest value that it can have; infinite where there is no bound.
    pub fn high(self) -> f64 {
        self.high
    }

    /// Whether the value itself is known.
    pub fn is_exact(self) -> bool {
        self.low.to_bits() == self.high.to_bits()
    }

    /// Whether the comparison holds for every value in the range (`Some(true)`), for none
    /// (`Some(false)`), or only for some, so that it is not decided.
    pub fn meets(self, op: Op, asked: f64) -> Option<bool> {
        let (low, high) = (op.holds(self.low, asked), op.holds(self.high, asked));
        let is_inside = self.low <= asked && asked <= self.high;
        match op {
            _ if self.is_exact() => Some(low),
            Op::Equal | Op::Unequal if is_inside => None,
            _ => (low == high).then_some(low),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_lower_bound_of_zero_does_not_show_that_there_is_none() {
        assert_eq!(Measured::count(0, true).meets(Op::Equal, 0.0), Some(true));
        assert_eq!(Measured::count(0, false).meets(Op::Equal, 0.0), None);
        assert_eq!(Measured::count(0, false).meets(Op::AtMost, 4.0), None);
        assert_eq!(
            Measured::count(5, false).meets(Op::AtMost, 4.0),
            Some(false)
        );
        assert_eq!(
            Measured::count(5, false).meets(Op::AtLeast, 4.0),
            Some(true)
        );
    }

    proptest! {
        #[test]
        fn a_range_is_decided_only_if_all_its_values_agree(low in 0u8..20, width in 0u8..20, asked in 0u8..40) {
            let range = Measured::between(f64::from(low), f64::from(low + width));
            for op in [Op::Below, Op::AtMost, Op::Above, Op::AtLeast, Op::Equal, Op::Unequal] {
                let mut values = (low..=low + width).map(|value| op.holds(f64::from(value), f64::from(asked)));
                let first = values.next().unwrap();
                let agreed = values.all(|one| one == first).then_some(first);
                prop_assert_eq!(range.meets(op, f64::from(asked)), agreed, "{} {:?}", op, range);
            }
        }
    }
}
