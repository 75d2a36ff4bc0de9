//! The comparisons of requirements.

use std::fmt;

/// How a value must stand to the one asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// `<`
    Below,
    /// `<=`
    AtMost,
    /// `>`
    Above,
    /// `>=`
    AtLeast,
    /// `==`
    Equal,
    /// `!=`
    Unequal,
}

impl Op {
    /// All, with their signs; the longer signs come first.
    pub const ALL: [(Self, &'static str); 6] = [
        (Self::AtMost, "<="),
        (Self::AtLeast, ">="),
        (Self::Equal, "=="),
        (Self::Unequal, "!="),
        (Self::Below, "<"),
        (Self::Above, ">"),
    ];

    /// Whether `measured` stands so to `asked`. The two are equal when they differ by no more than
    /// a billionth of the larger, so that 999 of 1,000 meets `>= 99.9%` whatever the rounding.
    pub fn holds(self, measured: f64, asked: f64) -> bool {
        let distance = (measured - asked).abs();
        let equal = distance.is_finite() && distance <= 1e-9 * measured.abs().max(asked.abs());
        match self {
            Self::Below => measured < asked && !equal,
            Self::AtMost => measured <= asked || equal,
            Self::Above => measured > asked && !equal,
            Self::AtLeast => measured >= asked || equal,
            Self::Equal => equal,
            // NaN is not equal to anything, and still meets nothing
            Self::Unequal => !equal && !measured.is_nan(),
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = Self::ALL
            .iter()
            .find(|(op, _)| op == self)
            .map_or("", |(_, sign)| sign);
        f.write_str(sign)
    }
}
