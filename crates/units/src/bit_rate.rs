//! Bit rates of links, as specs spell them: `100mbit` is 100,000,000 bits per second.

use crate::plain_number;

const UNITS: [(&str, f64); 4] = [("gbit", 1e9), ("mbit", 1e6), ("kbit", 1e3), ("bit", 1.0)];

/// Parses `100mbit`, from 1 kbit to 1,000 gbit per second, as bits per second.
pub fn read(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = &text[digits.len()..];
    let (_, size) = UNITS.iter().find(|(name, _)| *name == unit)?;
    let bits = plain_number(digits)? * size;
    (1e3..=1e12).contains(&bits).then_some(bits as u64)
}

/// Formats bits per second in the largest unit that gives a whole number; parses back to the same
/// rate.
pub fn write(bits: u64) -> String {
    UNITS
        .iter()
        .map(|(unit, size)| (unit, *size as u64))
        .find(|(_, size)| bits.is_multiple_of(*size))
        .map_or_else(
            || format!("{bits}bit"),
            |(unit, size)| format!("{}{unit}", bits / size),
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_a_rate_with_its_unit_is_read() {
        assert_eq!(read("100mbit"), Some(100_000_000));
        assert_eq!(read("1.5mbit"), Some(1_500_000));
        for wrong in ["100", "1bit", "-1mbit", "1e3mbit", "1001gbit", "mbit", ""] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn a_written_rate_reads_back(bits in 1_000_u64..=1_000_000_000_000) {
            prop_assert_eq!(read(&write(bits)), Some(bits));
        }
    }
}
