//! Times, shares and rates as words, both ways.

use std::time::Duration;

/// The longest time that any key takes: a delay beyond this is a typing error, and an hour of idling is not.
const LONGEST: Duration = Duration::from_secs(86_400);
const RATES: [(&str, f64); 4] = [("kbit", 1e3), ("mbit", 1e6), ("gbit", 1e9), ("bit", 1.0)];

/// `30ms`, `350s`, `1.5ms`; a zero needs no unit.
pub(super) fn read_time(word: &str) -> Option<Duration> {
    let time = intact_ledger::duration::with_unit(word).ok()?;
    (time <= LONGEST).then_some(time)
}

/// `0.1%` in parts per million: the sign is needed, because 1 could mean all.
pub(super) fn read_share(word: &str) -> Option<u32> {
    let percent = if word == "0" {
        0.0
    } else {
        number(word.strip_suffix('%')?)?
    };
    (percent <= 100.0).then_some((percent * 1e4).round() as u32)
}

/// `100mbit`, at least 1 kbit and at most 1,000 gbit a second.
pub(super) fn read_rate(word: &str) -> Option<u64> {
    let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = &word[digits.len()..];
    let (_, size) = RATES.iter().find(|(name, _)| *name == unit)?;
    let bits = number(digits)? * size;
    (1e3..=1e12).contains(&bits).then_some(bits as u64)
}

/// Digits with at most one point: no sign, no exponent, no infinity.
fn number(digits: &str) -> Option<f64> {
    let plain = digits.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    if plain { digits.parse().ok() } else { None }
}

pub(super) fn time(time: Duration) -> String {
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

pub(super) fn share(ppm: u32) -> String {
    format!("{}%", f64::from(ppm) / 1e4)
}

pub(super) fn rate(bits: u64) -> String {
    for (unit, size) in [
        ("gbit", 1_000_000_000),
        ("mbit", 1_000_000),
        ("kbit", 1_000),
    ] {
        if bits.is_multiple_of(size) {
            return format!("{}{unit}", bits / size);
        }
    }
    format!("{bits}bit")
}
