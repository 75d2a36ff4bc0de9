//! Figures as pages and messages print them: three significant digits and a fitting unit.
//!
//! This is the only number format of tables, charts and sentences. The caller handles absent
//! values.

use std::time::Duration;

/// Formats milliseconds in the fitting unit: three significant digits in ms and s, whole
/// microseconds from 10 µs on.
pub fn time(ms: f64) -> String {
    match ms {
        ms if ms < 0.0 => format!("-{}", time(-ms)),
        ms if ms < 0.000_05 => "0".to_owned(),
        ms if ms < 0.009_95 => format!("{:.1} µs", ms * 1e3),
        ms if ms < 0.999_5 => format!("{:.0} µs", ms * 1e3),
        ms if ms < 999.5 => format!("{} ms", three_digits(ms)),
        ms => format!("{} s", three_digits(ms / 1e3)),
    }
}

/// Three significant digits of a value from 1 on; larger whole numbers in full.
fn three_digits(value: f64) -> String {
    match value {
        value if value < 9.995 => format!("{value:.2}"),
        value if value < 99.95 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    }
}

/// Formats a difference in milliseconds with its sign: `+3.00 ms`, `-61 µs`.
pub fn signed_time(ms: f64) -> String {
    if ms < 0.0 {
        time(ms)
    } else {
        format!("+{}", time(ms))
    }
}

/// Formats milliseconds as a timer is configured, in tenths of a second without zeros at the end:
/// `5 s`, `15.4 s`, `250 ms`.
pub fn timer(ms: f64) -> String {
    if ms < 999.5 {
        tick(ms)
    } else {
        format!("{} s", trimmed(&format!("{:.1}", ms / 1e3)))
    }
}

/// Formats a long time, such as a remaining time: `45 s`, `12 min`, `3.5 h`.
pub fn long_time(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 120.0 {
        timer(seconds * 1e3)
    } else if seconds < 7_200.0 {
        format!("{:.0} min", seconds / 60.0)
    } else {
        format!("{:.1} h", seconds / 3_600.0)
    }
}

/// Formats a count at a tick of an axis; empty between whole numbers.
pub fn whole(count: f64) -> String {
    // a tick is a multiple of a step, with a rounding error
    if (count - count.round()).abs() < 1e-6 {
        let sign = if count.round() < 0.0 { "-" } else { "" };
        sign.to_owned() + &self::count(count.round().abs() as u64)
    } else {
        String::new()
    }
}

/// Formats milliseconds at a tick of an axis: without needless zeros, and in seconds from one
/// second on.
pub fn tick(ms: f64) -> String {
    if ms >= 999.5 {
        return format!("{} s", trimmed(&format!("{:.2}", ms / 1e3)));
    }
    match time(ms).split_once(' ') {
        Some((number, unit)) => format!("{} {unit}", trimmed(number)),
        None => "0".to_owned(),
    }
}

fn trimmed(number: &str) -> &str {
    if number.contains('.') {
        number.trim_end_matches('0').trim_end_matches('.')
    } else {
        number
    }
}

/// Formats a count with separators.
pub fn count(count: u64) -> String {
    with_commas(&count.to_string())
}

/// Puts commas between the thousands of a decimal number.
pub(crate) fn with_commas(number: &str) -> String {
    let whole = number.find('.').unwrap_or(number.len());
    let first = usize::from(number.starts_with('-'));
    let mut shown = String::new();
    for (at, digit) in number.chars().enumerate() {
        if at > first && at < whole && (whole - at).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// Formats a mean of counts to a tenth, or as a whole number.
pub fn mean(count: f64) -> String {
    if count >= 999.95 {
        return self::count(count.round() as u64);
    }
    trimmed(&format!("{count:.1}")).to_owned()
}

/// Formats a rate per second.
pub fn per_second(rate: f64) -> String {
    if rate < 9.95 {
        format!("{rate:.1}")
    } else {
        count(rate.round() as u64)
    }
}

/// Formats a share in percent, to a tenth; 0 % and 100 % only if they are exact.
pub fn percent(share: f64) -> String {
    match share {
        share if (-0.000_5..0.0).contains(&share) => ">-0.1 %".to_owned(),
        share if share < 0.0 => format!("-{}", percent(-share)),
        0.0 => "0 %".to_owned(),
        1.0 => "100 %".to_owned(),
        share if share < 0.000_5 => "<0.1 %".to_owned(),
        share if (0.999_5..1.0).contains(&share) => ">99.9 %".to_owned(),
        share => format!("{:.1} %", share * 100.0),
    }
}

/// Formats a change as a share with its sign: `+3.0 %`, `-12.5 %`.
pub fn signed_percent(share: f64) -> String {
    if share < 0.0 {
        percent(share)
    } else {
        format!("+{}", percent(share))
    }
}

/// Formats a share for sentences and headlines. Uses whole percent from 10 % to 99 % and from 100 %
/// on; otherwise like [`percent`], with a tenth.
pub fn whole_percent(share: f64) -> String {
    match share.abs() {
        0.0995..0.995 => format!("{:.0} %", share * 100.0),
        // a change has no highest share
        whole @ 1.0.. => {
            let sign = if share < 0.0 { "-" } else { "" };
            format!("{sign}{} %", count((whole * 100.0).round() as u64))
        }
        _ => percent(share),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits_and_a_fitting_unit() {
        let shown: Vec<String> = [
            0.0, 0.000_3, 0.004_2, 0.061, 0.999_9, 1.5, 61.03, 224.0, 999.6, 6_030.0, 26_600.0,
            123_456.0,
        ]
        .map(time)
        .to_vec();
        assert_eq!(
            shown,
            [
                "0", "0.3 µs", "4.2 µs", "61 µs", "1.00 ms", "1.50 ms", "61.0 ms", "224 ms",
                "1.00 s", "6.03 s", "26.6 s", "123 s"
            ]
        );
    }

    #[test]
    fn a_timer_is_printed_as_it_is_configured() {
        assert_eq!(timer(5_010.0), "5 s");
        assert_eq!(timer(15_400.0), "15.4 s");
        assert_eq!(timer(250.0), "250 ms");
        assert_eq!(timer(50.0), "50 ms");
        let long =
            [1.5, 45.0, 720.0, 12_600.0].map(|seconds| long_time(Duration::from_secs_f64(seconds)));
        assert_eq!(long, ["1.5 s", "45 s", "12 min", "3.5 h"]);
    }

    #[test]
    fn a_difference_has_its_sign() {
        assert_eq!(signed_time(3.0), "+3.00 ms");
        assert_eq!(signed_time(-0.061), "-61 µs");
        assert_eq!(percent(-0.5), "-50.0 %");
        assert_eq!(signed_percent(0.03), "+3.0 %");
        assert_eq!(signed_percent(-0.03), "-3.0 %");
        assert_eq!(whole_percent(-0.5), "-50 %");
        assert_eq!(whole_percent(-5.072), "-507 %");
        assert_eq!(whole_percent(-12.0), "-1,200 %");
        assert_eq!(percent(-0.000_3), ">-0.1 %");
    }

    #[test]
    fn an_axis_of_counts_has_whole_numbers_only() {
        let shown = [0.0, 0.2, 3.0 * 0.2, 5.0 * 0.2, 1.2, 12_000.0].map(whole);
        assert_eq!(shown, ["0", "", "", "1", "", "12,000"]);
    }

    #[test]
    fn an_axis_has_no_needless_zeros() {
        let shown: Vec<String> = [0.0, 0.05, 2.0, 2.5, 50.0, 100.0, 1000.0, 1200.0, 30_000.0]
            .map(tick)
            .to_vec();
        assert_eq!(
            shown,
            [
                "0", "50 µs", "2 ms", "2.5 ms", "50 ms", "100 ms", "1 s", "1.2 s", "30 s"
            ]
        );
    }

    #[test]
    fn a_share_is_whole_only_when_it_is() {
        assert_eq!(percent(1.0), "100 %");
        assert_eq!(percent(0.9999), ">99.9 %");
        assert_eq!(percent(0.0001), "<0.1 %");
        let gains = [1.0, 1.0004, 1.586, 12.0].map(whole_percent);
        assert_eq!(gains, ["100 %", "100 %", "159 %", "1,200 %"]);
        let shown = [0.0999, 0.66, 0.099, 0.9999].map(whole_percent);
        assert_eq!(shown, ["10 %", "66 %", "9.9 %", ">99.9 %"]);
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!([10.0, 2.54, 0.04].map(mean), ["10", "2.5", "0"]);
    }
}
