//! Figures inside sentences: counts with their noun, shares, times in a unit that fits. Must not know what the sentence is about.

/// A count with its noun, in the plural unless it is one.
pub(crate) fn many(count: u64, noun: &str) -> String {
    if count == 1 {
        return format!("1 {noun}");
    }
    if noun.ends_with("ss") {
        return format!("{count} {noun}es");
    }
    let stem = noun.strip_suffix('y');
    let plural = stem.map_or_else(|| format!("{noun}s"), |stem| format!("{stem}ies"));
    format!("{count} {plural}")
}

/// A share in percent; never 0 or 100 unless it is.
pub(crate) fn percent(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0 %".to_owned(),
        small if small < 1.0 => format!("{small:.1} %"),
        large if large > 99.0 && large < 100.0 => format!("{large:.1} %"),
        other => format!("{other:.0} %"),
    }
}

/// Milliseconds in the unit that fits.
pub(crate) fn ms(value: f64) -> String {
    match value {
        small if small < 0.9995 => format!("{:.0} µs", small * 1e3),
        small if small < 9.995 => format!("{small:.1} ms"),
        small if small < 9_999.5 => format!("{small:.0} ms"),
        large => format!("{:.1} s", large / 1e3),
    }
}

/// Nanoseconds as seconds, as timers are set.
pub(crate) fn seconds(nanos: u64) -> String {
    let seconds = nanos as f64 / 1e9;
    match seconds {
        short if short < 1.0 => ms(short * 1e3),
        even if (even - even.round()).abs() < 0.05 => format!("{even:.0} s"),
        other => format!("{other:.1} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_agrees_with_its_noun() {
        assert_eq!(many(1, "query"), "1 query");
        assert_eq!(many(3, "query"), "3 queries");
        assert_eq!(many(3, "process"), "3 processes");
        assert_eq!(many(0, "connection"), "0 connections");
    }

    #[test]
    fn a_timer_is_told_as_it_is_set() {
        assert_eq!(seconds(5_010_000_000), "5 s");
        assert_eq!(seconds(15_400_000_000), "15.4 s");
        assert_eq!(seconds(250_000_000), "250 ms");
    }
}
