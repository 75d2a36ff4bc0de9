//! Dimensions and units of requirements, and values formatted in them.

use crate::number::with_commas;
use std::fmt;

/// The dimension of a metric, with its base unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dimension {
    /// A number of things.
    Count,
    /// A plain ratio, such as requests per connection.
    Ratio,
    /// A share; the base is 1, so 90 % is 0.9.
    Share,
    /// A time; the base is a nanosecond.
    Time,
    /// Things per second; the base is 1/s.
    Rate,
    /// An amount of data; the base is a byte.
    Bytes,
}

/// A unit that a value can be written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the units")]
pub enum Unit {
    Plain,
    Nanosecond,
    Microsecond,
    Millisecond,
    Second,
    Minute,
    Hour,
    Percent,
    PerSecond,
    Byte,
    Kilobyte,
    Megabyte,
    Kibibyte,
    Mebibyte,
}

/// All units: the unit, its notation, its dimension (`None`: fits several), and its size in base
/// units.
const UNITS: [(Unit, &str, Option<Dimension>, f64); 14] = [
    (Unit::Plain, "", None, 1.0),
    (Unit::Nanosecond, "ns", Some(Dimension::Time), 1.0),
    (Unit::Microsecond, "us", Some(Dimension::Time), 1e3),
    (Unit::Millisecond, "ms", Some(Dimension::Time), 1e6),
    (Unit::Second, "s", Some(Dimension::Time), 1e9),
    (Unit::Minute, "min", Some(Dimension::Time), 60e9),
    (Unit::Hour, "h", Some(Dimension::Time), 3_600e9),
    (Unit::Percent, "%", Some(Dimension::Share), 0.01),
    (Unit::PerSecond, "/s", Some(Dimension::Rate), 1.0),
    (Unit::Byte, "B", Some(Dimension::Bytes), 1.0),
    (Unit::Kilobyte, "kB", Some(Dimension::Bytes), 1e3),
    (Unit::Megabyte, "MB", Some(Dimension::Bytes), 1e6),
    (Unit::Kibibyte, "KiB", Some(Dimension::Bytes), 1_024.0),
    (Unit::Mebibyte, "MiB", Some(Dimension::Bytes), 1_048_576.0),
];

impl Unit {
    /// The unit with this name, such as `ms`.
    pub fn named(name: &str) -> Option<Self> {
        UNITS
            .iter()
            .find(|(_, written, ..)| *written == name)
            .map(|(unit, ..)| *unit)
    }

    /// Whether a metric of `dimension` may have this unit. A plain zero fits every dimension; other
    /// plain numbers do not fit times and amounts of data.
    pub fn fits(self, dimension: Dimension, number: f64) -> bool {
        match self.row().2 {
            Some(own) => own == dimension,
            None => number == 0.0 || !matches!(dimension, Dimension::Time | Dimension::Bytes),
        }
    }

    /// `number` of this unit, in base units.
    pub fn base_of(self, number: f64) -> f64 {
        // 99.9 / 100 is the nearest number to 0.999 and 99.9 * 0.01 is not
        if self == Self::Percent {
            number / 100.0
        } else {
            number * self.row().3
        }
    }

    fn row(self) -> &'static (Self, &'static str, Option<Dimension>, f64) {
        // every unit has a row: a test checks it
        UNITS
            .iter()
            .find(|(unit, ..)| *unit == self)
            .unwrap_or(&UNITS[0])
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.row().1)
    }
}

impl Dimension {
    /// The units that an error recommends.
    pub fn accepted(self) -> &'static str {
        match self {
            Self::Count | Self::Ratio => "a plain number",
            Self::Share => "a percentage such as 90%, or a share of 1 such as 0.9",
            Self::Time => "a time with its unit: ns, us, ms, s, min or h",
            Self::Rate => "a number per second, such as 100/s",
            Self::Bytes => "an amount with its unit: B, kB, MB, KiB or MiB",
        }
    }

    fn units(self) -> &'static [Unit] {
        match self {
            Self::Count | Self::Ratio => &[Unit::Plain],
            Self::Share => &[Unit::Percent],
            Self::Time => &[
                Unit::Hour,
                Unit::Minute,
                Unit::Second,
                Unit::Millisecond,
                Unit::Microsecond,
            ],
            Self::Rate => &[Unit::PerSecond],
            Self::Bytes => &[Unit::Megabyte, Unit::Kilobyte, Unit::Byte],
        }
    }

    /// Formats `base` in the largest unit that leaves at least 1 before the point. It has enough
    /// digits to differ from `other` if the two differ.
    pub fn shown(self, base: f64, other: f64) -> String {
        let fitting = self
            .units()
            .iter()
            .find(|unit| base.abs() >= unit.base_of(1.0));
        let unit = fitting
            .or(self.units().last())
            .copied()
            .unwrap_or(Unit::Plain);
        let unit_shown = match unit {
            Unit::Plain | Unit::PerSecond => unit.to_string(),
            Unit::Microsecond => " µs".to_owned(),
            _ => format!(" {unit}"),
        };
        let written = |value: f64, digits| rounded(value / unit.base_of(1.0), digits) + &unit_shown;
        let is_part = self == Self::Share && base < 1.0;
        // 17 digits distinguish any two numbers
        (3..=17)
            .map(|digits| (written(base, digits), written(other, digits)))
            .find(|(ours, theirs)| {
                // all but a few are not all
                let is_all = is_part && *ours == written(1.0, 3);
                (ours != theirs || base == other) && !is_all
            })
            .map_or_else(|| written(base, 17), |(ours, _)| ours)
    }
}

/// Rounds `value` to `digits` significant digits, with commas between thousands. Whole numbers
/// stay complete, and there are no zeros at the end.
fn rounded(value: f64, digits: usize) -> String {
    if value == value.trunc() && value.abs() < 1e15 {
        return with_commas(&format!("{value}"));
    }
    let before_point = if value.abs() < 1.0 {
        1
    } else {
        value.abs().log10().floor() as usize + 1
    };
    let text = format!("{value:.*}", digits.saturating_sub(before_point));
    if text.contains('.') {
        with_commas(text.trim_end_matches('0').trim_end_matches('.'))
    } else {
        with_commas(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_has_its_own_row_and_name() {
        for (unit, name, ..) in UNITS {
            assert_eq!(Unit::named(name), Some(unit));
            assert_eq!(unit.to_string(), name);
        }
        assert_eq!(Unit::named("sec"), None);
    }

    #[test]
    fn values_are_shown_in_a_fitting_unit() {
        for (dimension, base, text) in [
            (Dimension::Time, 61_234_567.0, "61.2 ms"),
            (Dimension::Time, 43.0, "0.04 µs"),
            (Dimension::Time, 90e9, "1.5 min"),
            (Dimension::Share, 0.66, "66 %"),
            (Dimension::Share, 1.0, "100 %"),
            (Dimension::Rate, 12_345.678, "12,346/s"),
            (Dimension::Count, 1_000_000.0, "1,000,000"),
            (Dimension::Rate, -1_234.567, "-1,235/s"),
            (Dimension::Ratio, -123.0, "-123"),
            (Dimension::Bytes, 1_500.0, "1.5 kB"),
            (Dimension::Time, 0.0, "0 µs"),
        ] {
            assert_eq!(dimension.shown(base, -1.0), text);
        }
    }

    #[test]
    fn a_near_miss_does_not_look_like_a_match() {
        assert_eq!(Dimension::Time.shown(50_000_300.0, 50e6), "50.0003 ms");
        assert_eq!(Dimension::Share.shown(0.89999, 0.9), "89.999 %");
        assert_eq!(Dimension::Time.shown(50e6, 50e6), "50 ms");
    }
}
