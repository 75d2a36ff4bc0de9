//! Shares, as specs spell them: `0.1%`, stored in parts per million.

use crate::plain_number;

/// Parses `0.1%` to parts per million. The percent sign is required, because 1 could mean all; a
/// zero needs none.
pub fn read(text: &str) -> Option<u32> {
    let percent = if text == "0" {
        0.0
    } else {
        plain_number(text.strip_suffix('%')?)?
    };
    (percent <= 100.0).then_some((percent * 1e4).round() as u32)
}

/// Formats parts per million in percent without loss; parses back to the same share.
pub fn write(ppm: u32) -> String {
    format!("{}%", f64::from(ppm) / 1e4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_a_percentage_is_read() {
        assert_eq!(read("0.1%"), Some(1_000));
        assert_eq!(read("0"), Some(0));
        for wrong in ["1", "101%", "-1%", "%", ""] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn a_written_share_reads_back(ppm in 0_u32..=1_000_000) {
            prop_assert_eq!(read(&write(ppm)), Some(ppm));
        }
    }
}
