//! Rates of events, as they are written in options and axes: `500/s`, `30/min`, `2.5/s`.
//!
//! A number with at most one point, then a unit of time. No sign, no exponent.

/// The units, with their seconds.
const UNITS: [(&str, f64); 5] = [
    ("s", 1.0),
    ("m", 60.0),
    ("min", 60.0),
    ("h", 3600.0),
    ("", 1.0),
];
/// No rate is higher: one event in 100 ns.
const HIGHEST: f64 = 1e7;

/// Why a word is no rate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RateError {
    /// It does not begin with a number.
    #[error("{0:?} is no rate: write 500/s, 2.5/s or 30/min")]
    Number(String),
    /// What follows the slash is no unit of time.
    #[error("{0:?} is no unit of a rate: /s, /m or /min, /h")]
    Unit(String),
    /// Nothing would ever happen.
    #[error("a rate of 0 sends nothing: write 500/s, 2.5/s or 30/min")]
    Zero,
    /// No machine sends as many.
    #[error("{0:?} is more than 10 million a second")]
    TooHigh(String),
}

/// Reads a rate: events a second, above 0. A number alone is a second's.
pub fn read(word: &str) -> Result<f64, RateError> {
    let (digits, unit) = word.split_once('/').unwrap_or((word, ""));
    let number = crate::plain_number(digits).ok_or_else(|| RateError::Number(word.to_owned()))?;
    let is_bare = !word.contains('/');
    let known = UNITS
        .iter()
        .find(|(name, _)| *name == unit && (is_bare || !unit.is_empty()));
    let (_, seconds) = known.ok_or_else(|| RateError::Unit(format!("/{unit}")))?;
    let rate = number / seconds;
    if rate <= 0.0 {
        return Err(RateError::Zero);
    }
    if rate > HIGHEST {
        return Err(RateError::TooHigh(word.to_owned()));
    }
    Ok(rate)
}

/// Writes a rate in full, a second; reads back as the same rate.
pub fn write(rate: f64) -> String {
    format!("{rate}/s")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_rate_is_a_number_with_a_unit_of_time() {
        for (word, rate) in [
            ("500/s", 500.0),
            ("500", 500.0),
            ("2.5/s", 2.5),
            ("30/min", 0.5),
            ("30/m", 0.5),
            ("3600/h", 1.0),
            ("10000000/s", 1e7),
        ] {
            assert_eq!(read(word), Ok(rate), "{word}");
        }
    }

    #[test]
    fn what_is_no_rate_is_refused_with_an_example() {
        for wrong in [
            "", "NaN", "inf", "-5/s", "1e3/s", "fast", "5/5/s", "/s", ".",
        ] {
            let error = read(wrong).unwrap_err().to_string();
            assert!(error.contains("/s"), "{wrong}: {error}");
        }
        assert_eq!(read("0/s"), Err(RateError::Zero));
        assert_eq!(read("5/"), Err(RateError::Unit("/".to_owned())));
        assert_eq!(read("5/day"), Err(RateError::Unit("/day".to_owned())));
        let high = "10000001/s".to_owned();
        assert_eq!(read(&high), Err(RateError::TooHigh(high)));
    }

    proptest! {
        #[test]
        fn a_written_rate_reads_back(rate in 1e-6f64..1e7) {
            prop_assert_eq!(read(&write(rate)), Ok(rate));
        }

        #[test]
        fn any_word_is_read_or_refused(word in ".{0,20}") {
            if let Ok(rate) = read(&word) {
                prop_assert!(rate > 0.0 && rate <= HIGHEST);
            }
        }
    }
}
