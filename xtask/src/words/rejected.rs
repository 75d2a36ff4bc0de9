//! The words that the check rejects, with the plainer word to write instead.
//!
//! Each row has a pattern for whole words with their inflections, in any case. Patterns write `\s`
//! for a space, so a phrase is also found across the end of a line.

use anyhow::Context;
use regex::{Regex, RegexBuilder};

/// Patterns of rejected words, and what to write instead.
const REJECTED: &[(&str, &str)] = &[
    (
        r"tell(?:s|ing)?|told",
        "report, print, show, count, detect, infer; configured",
    ),
    (r"beside", "next to, in addition to, with, and, except"),
    (
        r"whoever|nobody",
        "the user, the caller; no client, no process",
    ),
    (r"what\s+(?:became|came)\s+of", "outcome, state, result"),
    (r"anew|once\s+more", "again"),
    (
        r"(?:held|hold(?:s|ing)?|laid|lays?|laying)\s+against|(?:held|hold(?:s|ing)?)\s+to",
        "compared with, checked against, limited to",
    ),
    (r"for\s+want\s+of", "because there is no"),
    (r"(?:as|so)\s+far\s+as", "where, if, up to"),
    (r"set-ups?", "setup (verb: set up)"),
    (r"look-ups?", "lookup (verb: look up)"),
    (r"time-outs?", "timeout"),
    (r"mend(?:s|ed|ing)?", "fixed"),
    (r"dearer", "more expensive"),
    (r"befalls?|befell|befallen", "affected"),
    (r"farewells?", "close_notify or FIN"),
    (r"overhear(?:s|d|ing)?", "observe, observed"),
    (
        r"work(?:s|ed|ing)?\s+(?:out|off)",
        "computed, derived; processed",
    ),
    (r"laid\s+on", "assigned to"),
    (r"see(?:s|n|ing)?\s+through", "decompressed"),
    (r"unasked", "unsolicited, by default"),
    (r"by\s+our\s+own\s+hand", "directly"),
    (r"home-made", "custom"),
    (r"loudly", "prominently"),
    (r"so\s+many", "N"),
    (
        r"a\s+(?:twentieth|hundredth|two-hundredth)",
        "5 %, 1 %, 0.5 %",
    ),
    (r"the\s+middle\s+one", "median"),
    (r"humps?", "mode"),
    (r"gist", "summary"),
    (r"dice", "random generator"),
    (r"ways?\s+out", "remedy"),
    (r"lets?\s+(?:itself|themselves)\s+be", "cannot be, can be"),
    (r"own\s+queues?", "client delay"),
    (r"receive\s+stamps?", "receive timestamp"),
    (r"heirs?", "fallback responder"),
    (r"refuges?", "secret folder"),
    (r"victims?", "the process or socket by its role"),
    (r"census(?:es)?", "scan"),
    (r"clerks?", "recorder"),
];

/// Patterns of words that are rejected in names only: text may speak of books and guests. Each hid
/// the word of a type.
const REJECTED_IN_NAMES: &[(&str, &str)] = &[
    (r"books?", "tally, tracker, counts"),
    (r"bills?", "attribution"),
    (r"recipes?", "plan, job"),
    (r"guests?", "peer"),
];

/// Finds rejected words.
pub(super) struct Rejected {
    text: Patterns,
    names: Patterns,
}

/// Patterns of words.
struct Patterns {
    /// All rows: a search for one pattern is several times as fast as one for each row.
    all: Regex,
    rows: Vec<(Regex, &'static str)>,
}

impl Rejected {
    pub(super) fn new() -> anyhow::Result<Rejected> {
        Ok(Rejected {
            text: Patterns::new(REJECTED)?,
            names: Patterns::new(&[REJECTED, REJECTED_IN_NAMES].concat())?,
        })
    }

    /// Each rejected phrase of a text: its offset in bytes, the phrase, and what to write instead.
    pub(super) fn find<'t>(&self, text: &'t str) -> Vec<(usize, &'t str, &'static str)> {
        self.text.find(text).collect()
    }

    /// Each rejected phrase of a name whose words are apart, and what to write instead.
    pub(super) fn find_in_name<'t>(
        &self,
        words: &'t str,
    ) -> impl Iterator<Item = (&'t str, &'static str)> {
        let found = self.names.find(words);
        found.map(|(_, phrase, instead)| (phrase, instead))
    }
}

impl Patterns {
    fn new(rows: &[(&str, &'static str)]) -> anyhow::Result<Patterns> {
        let patterns: Vec<&str> = rows.iter().map(|(pattern, _)| *pattern).collect();
        let row =
            |(pattern, instead): &(&str, &'static str)| anyhow::Ok((whole(pattern)?, *instead));
        Ok(Patterns {
            all: whole(&patterns.join("|"))?,
            rows: rows.iter().map(row).collect::<Result<_, _>>()?,
        })
    }

    fn find<'t>(&self, text: &'t str) -> impl Iterator<Item = (usize, &'t str, &'static str)> {
        let phrase = |found: regex::Match<'t>| {
            let row = self.rows.iter().find(|row| row.0.is_match(found.as_str()));
            (found.start(), found.as_str(), row.map_or("", |row| row.1))
        };
        self.all.find_iter(text).map(phrase)
    }
}

/// Whole words in any case.
fn whole(pattern: &str) -> anyhow::Result<Regex> {
    let mut builder = RegexBuilder::new(&format!(r"\b(?:{pattern})\b"));
    let pattern = builder.case_insensitive(true).unicode(false).build();
    pattern.context("a pattern of rejected words")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_words_with_inflections_are_found_in_any_case() {
        let rejected = Rejected::new().unwrap();
        let found = |text| {
            let all = rejected.find(text);
            all.into_iter().map(|hit| hit.1).collect::<Vec<_>>()
        };
        assert_eq!(found("Told of it, tells it"), ["Told", "tells"]);
        assert_eq!(
            found("once\n    more and held   to"),
            ["once\n    more", "held   to"]
        );
        assert_eq!(
            found("besides, teller, told_us, amendment, look up"),
            [""; 0]
        );
        assert_eq!(found("once\0more"), [""; 0]);
        assert_eq!(found("a set-up; two Time-outs"), ["set-up", "Time-outs"]);
    }

    #[test]
    fn a_word_for_names_is_rejected_in_a_name_and_not_in_text() {
        let rejected = Rejected::new().unwrap();
        for words in ["old books", "Old Bill", "recipe", "GUESTS", "victim"] {
            assert_eq!(rejected.find_in_name(words).count(), 1, "{words}");
        }
        assert_eq!(rejected.find_in_name("booking guestbook").count(), 0);
        assert_eq!(rejected.find("the bill of a guest").len(), 0);
    }

    #[test]
    fn each_row_names_what_to_write_instead() {
        let rejected = Rejected::new().unwrap();
        assert_eq!(rejected.find("the dice")[0].2, "random generator");
        assert_eq!(
            rejected.find("works\nout")[0],
            (0, "works\nout", "computed, derived; processed")
        );
        for (pattern, instead) in REJECTED.iter().chain(REJECTED_IN_NAMES) {
            assert!(!instead.is_empty(), "{pattern}");
        }
    }
}
