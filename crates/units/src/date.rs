//! Points in time for people: day, month, year, and the needed part of the time of day. Always UTC.

use jiff::Timestamp;
use jiff::tz::TimeZone;

const DAY_MS: f64 = 86_400_000.0;
const MINUTE_MS: f64 = 60_000.0;

/// Formats a date and time, such as `3 March 2026 14:05 UTC`. Adds seconds if the time is known
/// more exactly than to the minute.
pub fn moment(at: Timestamp, within_ms: f64) -> String {
    let format = if within_ms < MINUTE_MS {
        "%-d %B %Y %H:%M:%S UTC"
    } else {
        "%-d %B %Y %H:%M UTC"
    };
    shown(at, format)
}

/// Formats a tick of an axis that spans `span_ms` milliseconds: the day on a long axis, the time of
/// day on a short one.
pub fn tick(at: Timestamp, span_ms: f64) -> String {
    let format = match span_ms {
        span if span > 5.0 * DAY_MS => "%-d %b",
        span if span > DAY_MS / 2.0 => "%-d %b %H:%M",
        span if span > 10.0 * MINUTE_MS => "%H:%M",
        _ => "%H:%M:%S",
    };
    shown(at, format)
}

fn shown(at: Timestamp, format: &str) -> String {
    at.to_zoned(TimeZone::UTC).strftime(format).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_shown_where_they_are_known() {
        let at: Timestamp = "2026-03-03T14:05:07.9Z".parse().unwrap();
        assert_eq!(moment(at, 90_000.0), "3 March 2026 14:05 UTC");
        assert_eq!(moment(at, 900.0), "3 March 2026 14:05:07 UTC");
        let spans = [20.0 * DAY_MS, 2.0 * DAY_MS, DAY_MS / 4.0, MINUTE_MS];
        let ticks = spans.map(|span| tick(at, span));
        assert_eq!(ticks, ["3 Mar", "3 Mar 14:05", "14:05", "14:05:07"]);
    }
}
