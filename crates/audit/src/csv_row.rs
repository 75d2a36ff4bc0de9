//! Splits a row of CSV into cells (RFC 4180).

use csv_core::{ReadRecordResult, ReaderBuilder, Terminator};

/// The cells of a row. A quoted cell without an end holds the rest of the row.
pub(crate) fn cells(row: &str) -> Vec<String> {
    cells_between(b',', row)
}

/// The cells of a row that another character than a comma separates.
pub(crate) fn cells_between(separator: u8, row: &str) -> Vec<String> {
    let mut reader = ReaderBuilder::new()
        .delimiter(separator)
        .terminator(Terminator::Any(b'\n'))
        .build();
    // each cell is shorter than the row, and there is one cell more than separators at most
    let mut text = vec![0; row.len()];
    let mut ends = vec![0; row.bytes().filter(|byte| *byte == separator).count() + 1];
    let (_, _, written, cells) = reader.read_record(row.as_bytes(), &mut text, &mut ends);
    // an empty input ends the row
    let (text_left, ends_left) = (&mut text[written..], &mut ends[cells..]);
    let (end, _, _, more) = reader.read_record(&[], text_left, ends_left);
    if end != ReadRecordResult::Record {
        return Vec::new();
    }
    let mut start = 0;
    let ends = &ends[..cells + more];
    let cell = |&end: &usize| {
        let cell = String::from_utf8_lossy(&text[start..end]).into_owned();
        start = end;
        cell
    };
    ends.iter().map(cell).collect()
}

/// Converts a time in seconds to nanoseconds.
pub(crate) fn seconds(text: &str) -> Option<u64> {
    crate::fields::nanos_of_seconds(text.trim().parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_removed() {
        assert_eq!(cells("a,,b"), ["a", "", "b"]);
        assert_eq!(cells("\"a,\"\"b\"\"\",c,"), ["a,\"b\"", "c", ""]);
        assert_eq!(cells("\"a,b"), ["a,b"]);
        assert_eq!(cells("a,b\r"), ["a", "b\r"]);
        assert!(cells("").is_empty());
    }
}
