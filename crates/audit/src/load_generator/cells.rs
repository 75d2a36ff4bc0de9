//! The cells of a row of CSV (RFC 4180), and columns by their names.

use std::borrow::Cow;

/// Takes a row apart; what is behind a quote that never ends is one cell.
pub(super) fn cells(row: &str) -> Vec<Cow<'_, str>> {
    let mut cells = Vec::new();
    let mut rest = Some(row);
    while let Some(text) = rest {
        let (cell, after) = match text.strip_prefix('"') {
            Some(quoted) => quoted_cell(quoted),
            None => match text.split_once(',') {
                Some((cell, after)) => (Cow::Borrowed(cell), Some(after)),
                None => (Cow::Borrowed(text), None),
            },
        };
        cells.push(cell);
        rest = after;
    }
    cells
}

/// Text up to the quote that ends it, a pair of quotes being one, and what is behind the comma.
fn quoted_cell(text: &str) -> (Cow<'_, str>, Option<&str>) {
    let mut cell = Cow::Borrowed("");
    let mut rest = text;
    loop {
        let Some((part, after)) = rest.split_once('"') else {
            cell += rest;
            return (cell, None);
        };
        cell += part;
        match after.strip_prefix('"') {
            Some(more) => {
                cell += "\"";
                rest = more;
            }
            None => return (cell, after.split_once(',').map(|(_, after)| after)),
        }
    }
}

/// A time in seconds as nanoseconds, if it is one.
pub(super) fn seconds(text: &str) -> Option<u64> {
    crate::fields::nanos_of_seconds(text.trim().parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_seen_through() {
        assert_eq!(cells("a,,b"), ["a", "", "b"]);
        assert_eq!(cells("\"a,\"\"b\"\"\",c,"), ["a,\"b\"", "c", ""]);
        assert_eq!(cells("\"a,b"), ["a,b"]);
        assert_eq!(cells(""), [""]);
    }
}
