//! A figure with its kind, so that tables and sentences print it in the same way. Must not know
//! where it is printed.

use crate::number;
use std::fmt;

/// A figure, formatted by [`number`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Quantity {
    /// A measured time, in milliseconds: `5.19 ms`.
    Time(f64),
    /// A time as a timer is configured, in milliseconds: `15.4 s`.
    Timer(f64),
    /// A count: `1,200`.
    Count(u64),
    /// A mean of counts: `3` or `3.2`.
    Mean(f64),
    /// A share of a whole, 0 to 1: `23.4 %`.
    Share(f64),
    /// A share for a headline: `23 %`.
    RoundShare(f64),
    /// A relative change: `+3.0 %`.
    Change(f64),
    /// A difference of times, in milliseconds: `+3.00 ms`.
    TimeChange(f64),
    /// A difference of means of counts: `+3`, `-1.5`.
    MeanChange(f64),
    /// A rate per second: `12,346`; the name of the figure has the unit.
    Rate(f64),
    /// An amount of data: `1,500 B`.
    Bytes(f64),
    /// A probability: `0.034`, `< 0.001`.
    Probability(f64),
}

impl Quantity {
    /// The figure in its base unit: milliseconds, bytes, 1.
    pub fn value(self) -> f64 {
        match self {
            Quantity::Count(count) => count as f64,
            Quantity::Time(value)
            | Quantity::Timer(value)
            | Quantity::Mean(value)
            | Quantity::Share(value)
            | Quantity::RoundShare(value)
            | Quantity::Change(value)
            | Quantity::TimeChange(value)
            | Quantity::MeanChange(value)
            | Quantity::Rate(value)
            | Quantity::Bytes(value)
            | Quantity::Probability(value) => value,
        }
    }

    /// Suffix of the name of a figure in its base unit: `_ms`, `_bytes`, or empty.
    pub fn suffix(self) -> &'static str {
        match self {
            Quantity::Time(_) | Quantity::Timer(_) | Quantity::TimeChange(_) => "_ms",
            Quantity::Bytes(_) => "_bytes",
            _ => "",
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&match *self {
            Quantity::Time(ms) => number::time(ms),
            Quantity::Timer(ms) => number::timer(ms),
            Quantity::Count(count) => number::count(count),
            Quantity::Mean(mean) if mean.fract() == 0.0 && mean >= 0.0 => {
                number::count(mean as u64)
            }
            Quantity::Mean(mean) if mean.abs() < 0.095 => format!("{mean:.2}"),
            Quantity::Mean(mean) => format!("{mean:.1}"),
            Quantity::Share(share) => number::percent(share),
            Quantity::RoundShare(share) => number::whole_percent(share),
            Quantity::Change(share) => number::signed_percent(share),
            Quantity::TimeChange(ms) => number::signed_time(ms),
            Quantity::MeanChange(mean) => {
                let sign = if mean < 0.0 { "-" } else { "+" };
                format!("{sign}{}", Quantity::Mean(mean.abs()))
            }
            Quantity::Rate(rate) if rate > 0.0 && rate < 0.05 => "< 0.1".to_owned(),
            Quantity::Rate(rate) => number::per_second(rate),
            Quantity::Bytes(bytes) => format!("{} B", number::count(bytes.round().max(0.0) as u64)),
            Quantity::Probability(p) if p < 0.001 => "< 0.001".to_owned(),
            Quantity::Probability(p) => format!("{p:.3}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Quantity::{
        Bytes, Change, Count, Mean, MeanChange, Probability, Rate, Share, Time, TimeChange,
    };

    #[test]
    fn a_quantity_prints_with_its_unit() {
        let shown = [
            Time(5.19),
            Count(1_200),
            Mean(3.0),
            Mean(3.25),
            Mean(0.02),
            Mean(-1.5),
            Share(0.234),
            Change(-0.03),
            TimeChange(-4_487.0),
            TimeChange(3.0),
            MeanChange(-19.0),
            MeanChange(1.5),
            Rate(0.01),
            Bytes(1_500.4),
            Probability(0.0001),
        ]
        .map(|one| one.to_string());
        assert_eq!(
            shown,
            [
                "5.19 ms", "1,200", "3", "3.2", "0.02", "-1.5", "23.4 %", "-3.0 %", "-4.49 s",
                "+3.00 ms", "-19", "+1.5", "< 0.1", "1,500 B", "< 0.001"
            ]
        );
    }
}
