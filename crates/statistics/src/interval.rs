//! An estimate with its interval, how sure it is, and why there is none.

use intact_units::plural::counted;
use serde::Serialize;

/// An estimate and the interval around it, in the unit of what was compared.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Interval {
    /// The estimate itself.
    pub value: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Interval {
    /// Whether the interval holds `truth`, ends included.
    pub fn covers(&self, truth: f64) -> bool {
        self.low <= truth && truth <= self.high
    }

    /// Whether both ends are numbers.
    pub fn is_bounded(&self) -> bool {
        self.low.is_finite() && self.high.is_finite()
    }

    /// The interval of the same difference, taken the other way round.
    #[must_use]
    pub fn negated(self) -> Interval {
        Interval {
            value: -self.value,
            low: -self.high,
            high: -self.low,
        }
    }

    /// The interval in another unit, or of another whole.
    #[must_use]
    pub fn map(self, to: impl Fn(f64) -> f64) -> Interval {
        Interval {
            value: to(self.value),
            low: to(self.low),
            high: to(self.high),
        }
    }

    /// How many times the rounds would show a difference of this size, if it is there; absent
    /// where it is shown, and where none would.
    pub fn times_needed(&self) -> Option<f64> {
        let reach = (self.high - self.low) / 2.0;
        let times = (reach / self.value.abs()).powi(2);
        (self.covers(0.0) && times.is_finite()).then_some(times)
    }

    /// Whether zero lies outside: only then has a difference been shown.
    pub fn excludes_zero(&self) -> bool {
        !self.covers(0.0)
    }
}

/// How often an interval covers the truth, as a share of 1.
pub(super) const CONFIDENCE: f64 = 0.95;

/// Why numbers allow no interval; each says what would.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, thiserror::Error)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum NoInterval {
    /// The two variants did not run the same number of rounds, so that they cannot be paired.
    #[error("{a} rounds against {b} cannot be paired; run both variants in every round")]
    UnequalRounds {
        /// Rounds of the first variant.
        a: usize,
        /// Rounds of the second variant.
        b: usize,
    },
    /// Fewer rounds than an interval needs.
    #[error("{} {} too few for an interval; run at least {needed}", counted(*rounds as u64, "round"), if *rounds == 1 { "is" } else { "are" })]
    TooFewRounds {
        /// Rounds there were.
        rounds: usize,
        /// Rounds there must be.
        needed: usize,
    },
    /// A value is NaN, infinite, or beyond 1e100 in size, which no measurement is.
    #[error("round {} has no usable value; was anything measured in it?", round + 1)]
    NotANumber {
        /// Index of the round, from 0.
        round: usize,
    },
    /// A share was asked for and a value is zero or negative.
    #[error("round {} has a value of zero or less, of which no share can be taken; ask for the difference", round + 1)]
    NotPositive {
        /// Index of the round, from 0.
        round: usize,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_number_rounds_from_one_and_name_the_remedy() {
        assert_eq!(
            NoInterval::TooFewRounds {
                rounds: 5,
                needed: 8
            }
            .to_string(),
            "5 rounds are too few for an interval; run at least 8"
        );
        assert!(
            NoInterval::NotANumber { round: 0 }
                .to_string()
                .starts_with("round 1 ")
        );
    }
}
