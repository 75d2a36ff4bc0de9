//! Durations, as options, plans and link specs spell them.
//!
//! A number with at most one point, then a unit. No sign, no exponent.

use std::time::Duration;

/// The units, with their seconds.
const UNITS: [(&str, f64); 6] = [
    ("us", 1e-6),
    ("ms", 1e-3),
    ("s", 1.0),
    ("m", 60.0),
    ("min", 60.0),
    ("h", 3600.0),
];

/// Why a text is no duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// It does not begin with a number.
    #[error("{0:?} is no time: write 10s, 1.5s or 500ms")]
    Number(String),
    /// What follows the number is no unit.
    #[error("{0:?} is no unit of time: us, ms, s, m or min, h")]
    Unit(String),
    /// Nothing follows the number.
    #[error("{0} of what? write {0}s or {0}ms")]
    Bare(String),
    /// The number is too large to be a time.
    #[error("{0:?} is too long")]
    TooLong(String),
}

/// Parses `20ms`, `1.5s`, `10m`, `1h`. The unit is required, except after a zero.
pub fn with_unit(word: &str) -> Result<Duration, DurationError> {
    let (digits, unit) = parts(word);
    if unit.is_empty() && digits.parse() != Ok(0.0) {
        number(word, digits)?;
        return Err(DurationError::Bare(word.to_owned()));
    }
    or_seconds(word)
}

/// Parses a duration with a unit, or a number of seconds, as in curl, hey and `sleep`.
pub fn or_seconds(word: &str) -> Result<Duration, DurationError> {
    let (digits, unit) = parts(word);
    let number = number(word, digits)?;
    let seconds = match UNITS.iter().find(|(name, _)| *name == unit) {
        Some((_, seconds)) => *seconds,
        None if unit.is_empty() => 1.0,
        None => return Err(DurationError::Unit(unit.to_owned())),
    };
    Duration::try_from_secs_f64(number * seconds)
        .map_err(|_| DurationError::TooLong(word.to_owned()))
}

/// Formats a duration without loss, in the largest fitting unit of s, ms and us; parses back to the
/// same duration.
pub fn write(time: Duration) -> String {
    let us = time.as_nanos() as f64 / 1e3;
    if us == 0.0 {
        "0ms".to_owned()
    } else if us >= 1e6 && us % 1e6 == 0.0 {
        format!("{}s", us / 1e6)
    } else if us >= 1e3 {
        format!("{}ms", us / 1e3)
    } else {
        format!("{us}us")
    }
}

fn parts(word: &str) -> (&str, &str) {
    let digits = word.trim_end_matches(char::is_alphabetic);
    (digits, &word[digits.len()..])
}

fn number(word: &str, digits: &str) -> Result<f64, DurationError> {
    crate::plain_number(digits).ok_or_else(|| DurationError::Number(word.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn durations_are_parsed_as_they_are_written() {
        for (word, ms) in [
            ("20ms", 20),
            ("1.5s", 1_500),
            ("10m", 600_000),
            ("2min", 120_000),
            ("1h", 3_600_000),
            ("500us", 0),
            ("0", 0),
        ] {
            assert_eq!(with_unit(word).unwrap().as_millis(), ms, "{word}");
            assert_eq!(or_seconds(word), with_unit(word), "{word}");
        }
        assert_eq!(or_seconds("90"), Ok(Duration::from_secs(90)));
    }

    #[test]
    fn the_error_names_what_is_wrong() {
        let bare = |word: &str| Err(DurationError::Bare(word.to_owned()));
        assert_eq!(with_unit("90"), bare("90"));
        for word in ["", "ms", "-1s", "nans", "1e3s", "1.2.3s", "+1s", "5 s"] {
            let number = Err(DurationError::Number(word.to_owned()));
            assert_eq!(with_unit(word), number, "{word:?}");
            assert_eq!(or_seconds(word), number, "{word:?}");
        }
        let unit = Err(DurationError::Unit("parsecs".to_owned()));
        assert_eq!(or_seconds("20parsecs"), unit);
        let long = format!("{}h", "9".repeat(20));
        assert_eq!(or_seconds(&long), Err(DurationError::TooLong(long)));
    }

    proptest! {
        #[test]
        fn any_word_is_a_time_or_refused(word in "\\PC{0,12}") {
            if with_unit(&word).is_ok() {
                prop_assert_eq!(with_unit(&word), or_seconds(&word));
            }
        }

        #[test]
        fn what_a_time_is_written_as_is_read_back(ms in 0u32..100_000_000) {
            let time = Duration::from_millis(u64::from(ms));
            prop_assert_eq!(with_unit(&format!("{ms}ms")).map(|read| read.as_millis()), Ok(time.as_millis()));
            prop_assert_eq!(with_unit(&write(time)).map(|read| read.as_millis()), Ok(time.as_millis()));
        }
    }
}
