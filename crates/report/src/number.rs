//! Figures as people read them: three digits, a unit that fits.

/// Milliseconds, in the unit that fits.
pub fn time(ms: f64) -> String {
    match ms {
        ms if ms < 0.0 => format!("-{}", time(-ms)),
        ms if ms < 0.000_5 => "0".to_owned(),
        ms if ms < 0.009_995 => format!("{:.1} µs", ms * 1e3),
        ms if ms < 0.999_5 => format!("{:.0} µs", ms * 1e3),
        ms if ms < 9.995 => format!("{ms:.2} ms"),
        ms if ms < 99.95 => format!("{ms:.1} ms"),
        ms if ms < 9_999.5 => format!("{ms:.0} ms"),
        ms => format!("{:.1} s", ms / 1e3),
    }
}

/// A number of things at a tick of an axis: between whole numbers it has no words.
pub fn whole(count: f64) -> String {
    // ticks are multiples of a step, and off by a rounding
    if (count - count.round()).abs() < 1e-6 {
        self::count(count.round().max(0.0) as u64)
    } else {
        String::new()
    }
}

/// Milliseconds on an axis: round values without the zeros that say nothing, and seconds from one second on.
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

/// A time that may be absent.
pub fn maybe_time(ms: Option<f64>) -> String {
    ms.map_or_else(|| "-".to_owned(), time)
}

/// A count with separators.
pub fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut told = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            told.push(',');
        }
        told.push(digit);
    }
    told
}

/// A rate a second.
pub fn rate(per_s: Option<f64>) -> String {
    match per_s {
        None => "-".to_owned(),
        Some(rate) if rate < 9.95 => format!("{rate:.1}"),
        Some(rate) => count(rate.round() as u64),
    }
}

/// A share in percent; never 0 % or 100 % unless it is.
pub fn percent(share: Option<f64>) -> String {
    match share {
        None => "-".to_owned(),
        Some(share) if share > 0.0 && share < 0.000_5 => "<0.1 %".to_owned(),
        Some(share) if (0.999_5..1.0).contains(&share) => ">99.9 %".to_owned(),
        Some(share) if share == 0.0 || share == 1.0 => format!("{:.0} %", share * 100.0),
        Some(share) => format!("{:.1} %", share * 100.0),
    }
}

/// A share of requests that reused a connection, or the range that it lies in where the state of some is unknown.
pub(crate) fn reuse(share: Option<f64>, range: Option<[f64; 2]>) -> String {
    match range {
        Some([low, high]) => format!("{} to {}", percent(Some(low)), percent(Some(high))),
        None => percent(share),
    }
}

/// A share for a headline: whole percent where that is fine enough.
pub(crate) fn whole_percent(share: f64) -> String {
    if (0.0995..0.995).contains(&share) {
        format!("{:.0} %", share * 100.0)
    } else {
        percent(Some(share))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits_and_a_fitting_unit() {
        let told: Vec<String> = [0.0, 0.004_2, 0.061, 0.999_9, 1.5, 61.03, 224.0, 26_600.0]
            .map(time)
            .to_vec();
        assert_eq!(
            told,
            [
                "0", "4.2 µs", "61 µs", "1.00 ms", "1.50 ms", "61.0 ms", "224 ms", "26.6 s"
            ]
        );
    }

    #[test]
    fn an_axis_of_things_counts_whole_ones_only() {
        let told = [0.0, 0.2, 3.0 * 0.2, 5.0 * 0.2, 1.2, 12_000.0].map(whole);
        assert_eq!(told, ["0", "", "", "1", "", "12,000"]);
    }

    #[test]
    fn an_axis_has_no_idle_zeros() {
        let told: Vec<String> = [0.0, 0.05, 2.0, 2.5, 50.0, 100.0, 1000.0, 1200.0, 30_000.0]
            .map(tick)
            .to_vec();
        assert_eq!(
            told,
            [
                "0", "50 µs", "2 ms", "2.5 ms", "50 ms", "100 ms", "1 s", "1.2 s", "30 s"
            ]
        );
    }

    #[test]
    fn a_share_is_whole_only_when_it_is() {
        assert_eq!(percent(Some(1.0)), "100 %");
        assert_eq!(percent(Some(0.9999)), ">99.9 %");
        assert_eq!(percent(Some(0.0001)), "<0.1 %");
        let told = [0.0999, 0.66, 0.099, 0.9999].map(whole_percent);
        assert_eq!(told, ["10 %", "66 %", "9.9 %", ">99.9 %"]);
        assert_eq!(count(1_234_567), "1,234,567");
    }
}
