//! What a server or a file said, fit for HTML and SVG: markup stays text, and what cannot be seen
//! is made visible.
//!
//! The only place where text becomes markup. Templates come here by `askama.toml`, pictures by
//! [`markup`].

use askama::filters::Escaper;
use intact_units::foreign_text::is_hidden;
use std::fmt::{self, Write};

/// The escaper of all templates.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Visible;

impl Escaper for Visible {
    fn write_escaped_str<W: Write>(&self, mut to: W, text: &str) -> fmt::Result {
        let glued = glue_units(text);
        glued.chars().try_for_each(|letter| write(&mut to, letter))
    }
}

/// A text in which each number and its unit stay on one line.
pub(crate) fn glue_units(text: &str) -> String {
    let mut glued = String::with_capacity(text.len() + 8);
    let mut rest = text;
    while let Some(at) = rest.find(' ') {
        let (before, after) = (&rest[..at], &rest[at + 1..]);
        glued.push_str(before);
        let is_number = before.ends_with(|last: char| last.is_ascii_digit());
        glued.push(if is_number && is_unit(after) {
            '\u{a0}'
        } else {
            ' '
        });
        rest = after;
    }
    glued.push_str(rest);
    glued
}

/// Whether a text begins with a unit.
fn is_unit(text: &str) -> bool {
    ["ms", "µs", "s", "%", "B", "kB", "MB"].iter().any(|unit| {
        text.strip_prefix(unit)
            .is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
    })
}

/// Text as HTML and XML take it.
pub(crate) fn markup(text: &str) -> Markup<'_> {
    Markup(text)
}

/// See [`markup`].
pub(crate) struct Markup<'a>(&'a str);

impl fmt::Display for Markup<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|letter| write(f, letter))
    }
}

fn write(to: &mut dyn Write, letter: char) -> fmt::Result {
    match letter {
        '&' => to.write_str("&amp;"),
        '<' => to.write_str("&lt;"),
        '>' => to.write_str("&gt;"),
        '"' => to.write_str("&quot;"),
        '\'' => to.write_str("&#39;"),
        letter if is_hidden(letter) => write!(to, "{}", letter.escape_unicode()),
        letter => to.write_char(letter),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_and_what_cannot_be_seen_become_text() {
        let printed = markup("<a href='\">&\x1b\u{202e}x").to_string();
        assert_eq!(printed, "&lt;a href=&#39;&quot;&gt;&amp;\\u{1b}\\u{202e}x");
        let mut escaped = String::new();
        Visible
            .write_escaped_str(&mut escaped, "<\u{202e}>")
            .unwrap();
        assert_eq!(escaped, "&lt;\\u{202e}&gt;");
    }

    #[test]
    fn a_number_and_its_unit_stay_together() {
        let mut escaped = String::new();
        let text = "saves 57 µs of 67 ms (85 %) in 3 servers";
        Visible.write_escaped_str(&mut escaped, text).unwrap();
        assert_eq!(
            escaped,
            "saves 57\u{a0}µs of 67\u{a0}ms (85\u{a0}%) in 3 servers"
        );
    }
}
