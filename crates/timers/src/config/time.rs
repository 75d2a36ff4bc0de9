//! Times as configuration files write them. Must not guess: a value with a variable is no time.

use std::time::Duration;

/// The units of all products, with their seconds.
const UNITS: [(&str, f64); 11] = [
    ("ns", 1e-9),
    ("us", 1e-6),
    ("µs", 1e-6),
    ("ms", 1e-3),
    ("s", 1.0),
    ("m", 60.0),
    ("mi", 60.0),
    ("min", 60.0),
    ("h", 3600.0),
    ("d", 86_400.0),
    ("w", 604_800.0),
];

/// Reads one or more numbers with one of these units, such as `1m30s`. A number without a unit is
/// in `bare`, in seconds.
fn sum(text: &str, bare: f64, units: &[&str]) -> Option<Duration> {
    let mut total = 0.0;
    let mut rest = text.trim();
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
        let (digits, after) = rest.split_at(end.unwrap_or(rest.len()));
        let next = after.find(|letter: char| letter.is_ascii_digit());
        let (unit, after) = after.split_at(next.unwrap_or(after.len()));
        let number: f64 = digits.parse().ok()?;
        let seconds = match unit.trim() {
            "" => bare,
            unit if units.contains(&unit) => UNITS.iter().find(|(name, _)| *name == unit)?.1,
            _ => return None,
        };
        total += number * seconds;
        rest = after;
    }
    Duration::try_from_secs_f64(total).ok()
}

/// nginx: `75`, `75s`, `1m 30s`, `500ms`.
pub(super) fn nginx(text: &str) -> Option<Duration> {
    sum(text, 1.0, &["ms", "s", "m", "h", "d", "w"])
}

/// HAProxy: milliseconds unless a unit says otherwise.
pub(super) fn haproxy(text: &str) -> Option<Duration> {
    sum(text, 1e-3, &["us", "ms", "s", "m", "h", "d"])
}

/// Apache: seconds unless a unit says otherwise.
pub(super) fn apache(text: &str) -> Option<Duration> {
    sum(text, 1.0, &["ms", "s", "mi", "min", "h"])
}

/// Caddy: Go's durations, with days.
pub(super) fn caddy(text: &str) -> Option<Duration> {
    let units = ["ns", "us", "µs", "ms", "s", "m", "h", "d"];
    let has_unit = text.ends_with(|letter: char| letter.is_alphabetic());
    (text == "0" || has_unit)
        .then(|| sum(text, 0.0, &units))
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_product_has_its_own_unit_without_a_unit() {
        let ms = |time: Option<Duration>| time.map(|time| time.as_millis());
        assert_eq!(ms(nginx("75")), Some(75_000));
        assert_eq!(ms(nginx("1m 30s")), Some(90_000));
        assert_eq!(ms(haproxy("50000")), Some(50_000));
        assert_eq!(ms(haproxy("10s")), Some(10_000));
        assert_eq!(ms(apache("5")), Some(5_000));
        assert_eq!(ms(apache("500ms")), Some(500));
        assert_eq!(ms(caddy("1m30s")), Some(90_000));
        assert_eq!(ms(caddy("90")), None);
        for wrong in [
            "",
            "s",
            "${T}",
            "5x",
            "1..2s",
            "-1s",
            "9".repeat(40).as_str(),
        ] {
            assert_eq!(nginx(wrong), None, "{wrong}");
        }
    }
}
