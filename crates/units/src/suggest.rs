//! The known name nearest to a misspelt one: metrics, keys of files and links, clients.
//!
//! Case is ignored, and `_` equals `-`. An edit adds, removes or changes a letter, or swaps two
//! neighbours. The limit is a third of the known word's letters, at least one edit.

/// Limit in letters: the cost is quadratic, and longer texts are not misspelt names.
const LONGEST: usize = 64;

/// The number of edits from `written` to `known`; `None` if it is too large.
pub fn edits(written: &str, known: &str) -> Option<usize> {
    let letters = known.chars().count();
    if letters > LONGEST || written.chars().nth(LONGEST).is_some() {
        return None;
    }
    let edits = strsim::osa_distance(&plain(written), &plain(known));
    (edits <= (letters / 3).max(1) && edits < letters).then_some(edits)
}

/// The known word with the fewest edits, if it is near; the first of several.
pub fn nearest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .filter_map(|known| Some((edits(written, known)?, known)))
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, known)| known)
}

/// Shortens a message of serde about an unknown field: names the nearest field instead of the whole
/// list. Other messages stay unchanged.
pub fn of_unknown_field(message: &str) -> String {
    let message = message.trim_end();
    let mut quoted = message.split('`').skip(1).step_by(2);
    if message.starts_with("unknown field")
        && let Some(unknown) = quoted.next()
        && let Some(meant) = nearest(unknown, quoted)
    {
        return format!("unknown key `{unknown}`: did you mean `{meant}`?");
    }
    message.to_owned()
}

fn plain(word: &str) -> String {
    word.to_lowercase().replace('_', "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelling_finds_its_word_and_nonsense_finds_none() {
        let known = ["avoidable", "idle-timeout", "p99", "p90", "up"];
        for (written, meant) in [
            ("avoidible", Some("avoidable")),
            ("idle_timeout", Some("idle-timeout")),
            ("P99", Some("p99")),
            ("p9", Some("p99")),
            ("pu", Some("up")),
            ("temperature", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(nearest(written, known), meant, "{written}");
        }
        assert_eq!(nearest(&"p".repeat(10_000_000), known), None);
    }

    #[test]
    fn only_a_near_field_is_suggested() {
        for (message, shown) in [
            (
                "unknown field `tsl`, expected one of `to`, `tls`\n",
                "unknown key `tsl`: did you mean `tls`?",
            ),
            (
                "unknown field `colour`, expected `to` or `tls`",
                "unknown field `colour`, expected `to` or `tls`",
            ),
            ("missing field `to`", "missing field `to`"),
        ] {
            assert_eq!(of_unknown_field(message), shown);
        }
    }
}
