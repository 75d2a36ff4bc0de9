//! Counts with their noun. Must not know the sentence around them.

use crate::number;

/// A count with its noun, in the plural unless the count is 1: `1 query`, `1,200 queries`.
pub fn counted(count: u64, noun: &str) -> String {
    format!("{} {}", number::count(count), of(count, noun))
}

/// The form of `noun` for `count`, if the count is printed separately.
pub fn of(count: u64, noun: &str) -> String {
    if count == 1 {
        return noun.to_owned();
    }
    if ["s", "x", "ch", "sh"].iter().any(|end| noun.ends_with(end)) {
        return format!("{noun}es");
    }
    match noun.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{stem}ies"),
        _ => format!("{noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_agrees_with_its_noun() {
        for (count, noun, counted) in [
            (1, "query", "1 query"),
            (3, "query", "3 queries"),
            (2, "delay", "2 delays"),
            (3, "process", "3 processes"),
            (2, "batch", "2 batches"),
            (0, "connection", "0 connections"),
            (1_200, "interleaved round", "1,200 interleaved rounds"),
        ] {
            assert_eq!(super::counted(count, noun), counted);
        }
        assert_eq!(of(1, "request"), "request");
        assert_eq!(of(2, "request"), "requests");
    }
}
