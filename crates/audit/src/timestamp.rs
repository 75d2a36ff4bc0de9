//! Parses times in all formats of logs, without allocation: a log has millions of them.

/// A point in time of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timestamp {
    /// Nanoseconds since 1970.
    pub(crate) nanos: u64,
    /// The text has whole seconds only.
    pub(crate) coarse: bool,
}

const SECOND: u64 = 1_000_000_000;
const MONTHS: [[u8; 3]; 12] = [
    *b"Jan", *b"Feb", *b"Mar", *b"Apr", *b"May", *b"Jun", *b"Jul", *b"Aug", *b"Sep", *b"Oct",
    *b"Nov", *b"Dec",
];

/// Parses a time to nanoseconds since 1970, see [`read`].
pub(crate) fn nanos(text: &str) -> Option<u64> {
    read(text).map(|stamp| stamp.nanos)
}

/// Parses a time in any form that logs use: `10/Oct/2000:13:55:36 -0700`, ISO 8601, seconds or
/// milliseconds since 1970.
pub(crate) fn read(text: &str) -> Option<Timestamp> {
    let is_plain = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let text = match is_plain(text.as_bytes().first()) && is_plain(text.as_bytes().last()) {
        true => text,
        false => text.trim_matches(['[', ']', ' ', '"']),
    };
    let bytes = text.as_bytes();
    match bytes {
        [b'0'..=b'9', b'0'..=b'9', b'/', ..] => common(bytes),
        [_, _, _, _, b'-', ..] => iso(text),
        [b'A'..=b'Z', ..] => named_day(bytes),
        _ => epoch(text),
    }
}

/// Parses `10/Oct/2000:13:55:36 -0700`, also with a fraction of a second (`13:55:36.123`) and
/// without a zone.
fn common(bytes: &[u8]) -> Option<Timestamp> {
    let day = number(bytes.get(0..2)?)?;
    let month = month(bytes.get(3..)?)?;
    let year = number(bytes.get(7..11)?)?;
    let (seconds, rest) = clock(bytes.get(12..)?)?;
    let (fraction, rest) = fraction(rest);
    let zone = zone(rest.trim_ascii_start()).unwrap_or(0);
    stamp(days(year, month, day)? * 86_400 + seconds - zone, fraction)
}

/// Parses `Sun Mar  9 23:19:45 2014` (C's `ctime`).
fn named_day(bytes: &[u8]) -> Option<Timestamp> {
    let month = month(bytes.get(4..)?)?;
    let day = number(bytes.get(8..10)?.trim_ascii_start())?;
    let (seconds, rest) = clock(bytes.get(11..)?)?;
    let (fraction, rest) = fraction(rest);
    let year = number(rest.strip_prefix(b" ")?.get(..4)?)?;
    stamp(days(year, month, day)? * 86_400 + seconds, fraction)
}

/// The month whose name a text begins with, from 1.
fn month(bytes: &[u8]) -> Option<i64> {
    let name: &[u8; 3] = bytes.first_chunk()?;
    Some(1 + MONTHS.iter().position(|month| month == name)? as i64)
}

/// Parses `2024-01-31T13:55:36.123Z`, also with a space in place of the T. A time without a zone is
/// UTC.
fn iso(text: &str) -> Option<Timestamp> {
    let bytes = text.as_bytes();
    let year = number(bytes.get(0..4)?)?;
    let month = number(bytes.get(5..7)?)?;
    let day = number(bytes.get(8..10)?)?;
    let (seconds, rest) = clock(bytes.get(11..)?)?;
    let (fraction, rest) = fraction(rest);
    let zone = zone(rest).unwrap_or(0);
    stamp(days(year, month, day)? * 86_400 + seconds - zone, fraction)
}

/// Parses seconds since 1970 with a fraction, or milliseconds, microseconds or nanoseconds,
/// detected by their size.
fn epoch(text: &str) -> Option<Timestamp> {
    let (whole, rest) = text.split_once('.').unwrap_or((text, ""));
    let number: u64 = whole.parse().ok()?;
    let unit = match whole.len() {
        0..=11 => SECOND,
        12..=14 => 1_000_000,
        15..=17 => 1_000,
        _ => 1,
    };
    if unit != SECOND {
        return Some(Timestamp {
            nanos: number.checked_mul(unit)?,
            coarse: false,
        });
    }
    let (fraction, _) = digits(rest.as_bytes());
    stamp(i64::try_from(number).ok()?, fraction)
}

fn stamp(seconds: i64, fraction: Option<u64>) -> Option<Timestamp> {
    let seconds = u64::try_from(seconds).ok()?;
    Some(Timestamp {
        nanos: seconds
            .checked_mul(SECOND)?
            .checked_add(fraction.unwrap_or(0))?,
        coarse: fraction.is_none(),
    })
}

/// Parses `13:55:36` to seconds. Returns them and the rest.
fn clock(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let part = |at: usize| number(bytes.get(at..at + 2)?);
    let seconds = part(0)? * 3600 + part(3)? * 60 + part(6)?;
    Some((seconds, &bytes[8..]))
}

/// Parses `.123` or `,123` to nanoseconds. Returns them and the rest.
fn fraction(bytes: &[u8]) -> (Option<u64>, &[u8]) {
    match bytes {
        [b'.' | b',', rest @ ..] => digits(rest),
        _ => (None, bytes),
    }
}

/// Parses the digits of a fraction to nanoseconds. Returns them and the rest.
fn digits(bytes: &[u8]) -> (Option<u64>, &[u8]) {
    let len = bytes
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    if len == 0 {
        return (None, bytes);
    }
    let nanos = (0..9).fold(0, |nanos, at| {
        let digit = bytes[..len].get(at).map_or(0, |byte| byte - b'0');
        nanos * 10 + u64::from(digit)
    });
    (Some(nanos), &bytes[len..])
}

/// Parses `-0700`, `-07:00` or `Z` to seconds.
fn zone(bytes: &[u8]) -> Option<i64> {
    let (sign, rest) = match bytes {
        [b'+', rest @ ..] => (1, rest),
        [b'-', rest @ ..] => (-1, rest),
        _ => return None,
    };
    let hours = number(rest.get(0..2)?)?;
    let minutes = match rest.get(2)? {
        b':' => number(rest.get(3..5)?)?,
        _ => number(rest.get(2..4)?)?,
    };
    Some(sign * (hours * 3600 + minutes * 60))
}

fn number(bytes: &[u8]) -> Option<i64> {
    bytes.iter().try_fold(0, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| i64::from(byte - b'0'))?;
        Some(number * 10 + digit)
    })
}

/// Days from 1970 to a date of the Gregorian calendar. Years begin in March here, so leap days come
/// last.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let year = if month <= 2 { year - 1 } else { year };
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year;
    Some(era * 146_097 + of_era - 719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_formats_of_a_time_give_the_same() {
        let nanos = |text: &str| {
            let stamp = read(text).unwrap_or_else(|| panic!("{text}"));
            (stamp.nanos, stamp.coarse)
        };
        let second = 971_211_336;
        for text in [
            "10/Oct/2000:13:55:36 -0700",
            "[10/Oct/2000:20:55:36 +0000]",
            "2000-10-10T20:55:36Z",
            "2000-10-10T13:55:36-07:00",
            "971211336",
            "Tue Oct 10 20:55:36 2000",
        ] {
            assert_eq!(nanos(text), (second * SECOND, true), "{text}");
        }
        for text in [
            "10/Oct/2000:20:55:36.250",
            "2000-10-10 20:55:36,25",
            "971211336.250",
            "971211336250",
        ] {
            assert_eq!(
                nanos(text),
                (second * SECOND + 250_000_000, false),
                "{text}"
            );
        }
    }

    #[test]
    fn a_malformed_time_is_none() {
        for text in [
            "",
            "-",
            "[]",
            "32/Foo/2000:00:00:00",
            "2000-13-01T00:00:00Z",
            "10/Oct/20",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn a_time_reads_back(seconds in 0u64..4_000_000_000, nanos in 0u32..1_000_000_000) {
            let time = jiff::Timestamp::new(i64::try_from(seconds).unwrap(), i32::try_from(nanos).unwrap()).unwrap();
            let read = read(&time.to_string()).unwrap();
            proptest::prop_assert_eq!(read.nanos, seconds * SECOND + u64::from(nanos));
        }

        #[test]
        fn no_text_is_trouble(text in ".{0,40}") {
            read(&text);
        }
    }
}
