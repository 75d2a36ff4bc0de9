//! Amounts of data, as a chain of services spells them: `512B`, `20kB`, `3MB`.

/// Parses a whole number with its unit to bytes.
pub fn read(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(char::is_alphabetic);
    let factor = match &text[digits.len()..] {
        "B" => 1,
        "kB" => 1_000,
        "MB" => 1_000_000,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_size_with_its_unit_is_read() {
        assert_eq!(read("512B"), Some(512));
        assert_eq!(read("20kB"), Some(20_000));
        assert_eq!(read("3MB"), Some(3_000_000));
        for wrong in ["512", "1.5kB", "1GB", "B", "", "99999999999999999999MB"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
