//! What an output states of a figure: its value, bounds, or that it is unknown. All units of a
//! dimension become one (ms, bytes, a share of 1), and a rounded figure keeps how far it was
//! rounded, so that readings of several outputs can be compared.

use serde_json::{Map, Value};

/// A number as it is written, with half of its last digit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rounded {
    value: f64,
    half_step: f64,
    /// Written without a unit and decimals: a count is not rounded.
    is_whole: bool,
}

/// A figure with what is known of it.
#[derive(Clone, Debug)]
pub(crate) enum Reading {
    Known(Rounded),
    Between(Rounded, Rounded),
    AtLeast(Rounded),
    AtMost(Rounded),
    /// With the reason, where the output has room for one.
    Unknown(Option<String>),
    /// Words or a value that state no reading.
    Strange(String),
}

/// How two readings of one figure differ.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Difference {
    /// Both have numbers, and other ones.
    Numbers,
    /// One states a plain number where the other has bounds.
    Bounds,
    /// One states something where the other has nothing.
    Unknown,
    /// Both say that it is unknown, but not both say the same reason.
    Reason,
    /// One is no reading.
    Form,
}

impl Rounded {
    pub(crate) fn exact(value: f64) -> Rounded {
        Rounded {
            value,
            half_step: 0.0,
            is_whole: false,
        }
    }

    fn is(self, other: Rounded) -> bool {
        let is_count = |one: Rounded| one.value.fract() == 0.0;
        if (self.is_whole || other.is_whole) && is_count(self) && is_count(other) {
            return self.value == other.value;
        }
        let apart = (self.value - other.value).abs();
        let noise = 1e-9 * self.value.abs().max(other.value.abs());
        apart <= self.half_step + other.half_step + noise
    }

    fn scaled(self, factor: f64) -> Rounded {
        Rounded {
            value: self.value * factor,
            half_step: self.half_step * factor,
            ..self
        }
    }

    /// `1,234`, `33.3 %`, `29 µs`, `0.75/s`; the error is the text.
    fn of(text: &str) -> Result<Rounded, String> {
        let strange = || text.to_owned();
        let text = text.trim();
        if let Some(limit) = text.strip_prefix("< ") {
            // below the smallest number that is shown: from 0 to it
            let half = Rounded::of(limit)?.scaled(0.5);
            return Ok(Rounded {
                half_step: half.value,
                is_whole: false,
                ..half
            });
        }
        let end = text
            .find(|c: char| !(c.is_ascii_digit() || ".,".contains(c)))
            .unwrap_or(text.len());
        let (digits, unit) = text.split_at(end);
        let factor = match unit.trim() {
            "" | "ms" | "/s" | "B" => 1.0,
            "%" => 0.01,
            "ns" => 1e-6,
            "µs" => 1e-3,
            "s" => 1e3,
            "min" => 60e3,
            "h" => 3600e3,
            "kB" => 1e3,
            "MB" => 1e6,
            "KiB" => 1024.0,
            "MiB" => 1024.0 * 1024.0,
            _ => return Err(strange()),
        };
        let value: f64 = digits.replace(',', "").parse().map_err(|_| strange())?;
        let decimals = digits
            .split_once('.')
            .map_or(0, |(_, fraction)| fraction.len());
        let written = Rounded {
            value,
            half_step: 0.5 * 0.1_f64.powi(i32::try_from(decimals).unwrap()),
            is_whole: unit.is_empty() && decimals == 0,
        };
        Ok(written.scaled(factor))
    }
}

impl std::fmt::Display for Rounded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.value)
    }
}

impl Reading {
    /// The display form: `6`, `2 to 8`, `at least 13`, `at most 5`, `-`. The mark `~` of inferred
    /// figures is no part of it: JSON has the value that was inferred in the bounds.
    pub(crate) fn displayed(text: &str) -> Reading {
        let text = text.trim().trim_start_matches('~');
        // HTML has a dash of its own
        if ["-", "–"].contains(&text) {
            return Reading::Unknown(None);
        }
        let parsed = if let Some(low) = text.strip_prefix("at least ") {
            Rounded::of(low).map(Reading::AtLeast)
        } else if let Some(high) = text.strip_prefix("at most ") {
            Rounded::of(high).map(Reading::AtMost)
        } else if let Some((low, high)) = text.split_once(" to ") {
            between(low, high)
        } else {
            Rounded::of(text).map(Reading::Known)
        };
        parsed.unwrap_or_else(Reading::Strange)
    }

    /// What a key of a JSON object states: a number, or `null` and the `bounds` of the key.
    pub(crate) fn stated(object: &Map<String, Value>, key: &str, scale: f64) -> Option<Reading> {
        let bounds = object.get("bounds").and_then(|bounds| bounds.get(key));
        let value = object.get(key);
        match (value, bounds) {
            (Some(Value::Number(number)), None) => {
                Some(Reading::known(number.as_f64().unwrap() * scale))
            }
            (Some(Value::Number(number)), Some(bounds)) => {
                Some(Reading::Strange(format!("{number}, with bounds {bounds}")))
            }
            (_, Some(bounds)) => Some(Reading::of_bounds(bounds, scale)),
            (Some(Value::Null), None) => Some(Reading::Unknown(None)),
            (Some(other), None) => Some(Reading::Strange(other.to_string())),
            (None, None) => None,
        }
    }

    /// An entry of the `bounds` of a JSON object.
    pub(crate) fn of_bounds(bounds: &Value, scale: f64) -> Reading {
        let limit = |key: &str| {
            let number = bounds.get(key).and_then(Value::as_f64);
            number.map(|number| Rounded::exact(number * scale))
        };
        if let Some(value) = limit("inferred") {
            return Reading::Known(value);
        }
        match (limit("low"), limit("high")) {
            (Some(low), Some(high)) => Reading::Between(low, high),
            (Some(low), None) => Reading::AtLeast(low),
            (None, Some(high)) => Reading::AtMost(high),
            (None, None) => {
                let why = bounds.get("why").and_then(Value::as_str);
                why.map_or_else(
                    || Reading::Strange(bounds.to_string()),
                    |why| Reading::Unknown(Some(why.to_owned())),
                )
            }
        }
    }

    pub(crate) fn known(value: f64) -> Reading {
        Reading::Known(Rounded::exact(value))
    }

    /// How this one differs from another, if it does. Tables have no room for a reason: with
    /// `reasons` false it is not compared.
    pub(crate) fn difference(&self, other: &Reading, reasons: bool) -> Option<Difference> {
        use Reading::{AtLeast, AtMost, Between, Known, Strange, Unknown};
        match (self, other) {
            (Strange(_), _) | (_, Strange(_)) => Some(Difference::Form),
            (Unknown(one), Unknown(two)) => (reasons && one != two).then_some(Difference::Reason),
            (Unknown(_), _) | (_, Unknown(_)) => Some(Difference::Unknown),
            (Known(one), Known(two))
            | (AtLeast(one), AtLeast(two))
            | (AtMost(one), AtMost(two)) => (!one.is(*two)).then_some(Difference::Numbers),
            (Between(low, high), Between(other_low, other_high)) => {
                (!low.is(*other_low) || !high.is(*other_high)).then_some(Difference::Numbers)
            }
            _ => Some(Difference::Bounds),
        }
    }
}

/// Two limits of which the second has the unit of both, unless each has its own.
fn between(low: &str, high: &str) -> Result<Reading, String> {
    let digits = |c: char| c.is_ascii_digit() || ".,".contains(c);
    let unit = high.trim_start_matches(digits);
    let low = if low.ends_with(digits) {
        format!("{low}{unit}")
    } else {
        low.to_owned()
    };
    Ok(Reading::Between(Rounded::of(&low)?, Rounded::of(high)?))
}

impl std::fmt::Display for Reading {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Reading::Known(value) => write!(f, "{value}"),
            Reading::Between(low, high) => write!(f, "{low} to {high}"),
            Reading::AtLeast(low) => write!(f, "at least {low}"),
            Reading::AtMost(high) => write!(f, "at most {high}"),
            Reading::Unknown(None) => f.write_str("unknown"),
            Reading::Unknown(Some(why)) => write!(f, "unknown ({why})"),
            Reading::Strange(words) => write!(f, "no reading: {words}"),
        }
    }
}

#[test]
fn a_rounded_figure_is_the_exact_one_and_its_neighbour_is_not() {
    let of = |text| Reading::displayed(text);
    let same = |one: Reading, two: Reading| one.difference(&two, true).is_none();
    assert!(same(of("33.3 %"), Reading::known(1.0 / 3.0)));
    assert!(!same(of("33.2 %"), Reading::known(1.0 / 3.0)));
    assert!(same(of("1,234"), Reading::known(1234.0)));
    assert!(!same(of("1,234"), Reading::known(1235.0)));
    assert!(same(of("36"), of("35.7/s")));
    assert!(same(of("29 µs"), of("29.0 µs")));
    assert!(same(of("1.54 min"), Reading::known(92_602.2)));
    assert!(same(of("~60.0 to 80.0 %"), of("60 % to 80 %")));
    assert!(same(of("< 0.1"), Reading::known(0.04)));
    assert!(!same(of("at least 2"), of("2")));
    assert!(!same(of("-"), of("0")));
    let null = Reading::Unknown(None);
    let why = Reading::Unknown(Some("not seen".to_owned()));
    assert_eq!(null.difference(&why, true), Some(Difference::Reason));
    assert_eq!(null.difference(&why, false), None);
}
