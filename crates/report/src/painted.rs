//! A line of a page in pieces, each with its style. The only way from text to a terminal: every
//! piece is escaped here.

use intact_units::foreign_text::{disarm, escape};

/// A style of text: the parameter of the escape sequence that begins it (ECMA-48, SGR); none for
/// plain text.
pub(crate) type Style = &'static str;

pub(crate) const PLAIN: Style = "";
pub(crate) const STRONG: Style = "1";
pub(crate) const FAINT: Style = "2";
pub(crate) const ALARM: Style = "33";

/// Pieces of text with their styles, neighbours of one style together.
#[derive(Debug, Default)]
pub(crate) struct Painted(Vec<(Style, String)>);

impl Painted {
    /// A line of one style.
    pub(crate) fn new(style: Style, text: &str) -> Painted {
        Painted::default().and(style, text)
    }

    /// The line with a further piece.
    pub(crate) fn and(mut self, style: Style, text: &str) -> Painted {
        match self.0.last_mut() {
            Some((last, before)) if *last == style => before.push_str(text),
            _ => self.0.push((style, text.to_owned())),
        }
        self
    }

    /// The line as the terminal gets it, without spaces at its end.
    pub(crate) fn print(&self, has_colour: bool) -> String {
        let mut printed = String::new();
        for (nth, (style, text)) in self.0.iter().enumerate() {
            let text = escape(text);
            let is_blank = |(_, text): &(Style, String)| text.trim().is_empty();
            let text = if self.0[..nth].iter().all(is_blank) {
                disarm(&text)
            } else {
                text
            };
            if has_colour && !style.is_empty() && !text.is_empty() {
                printed.push_str(&format!("\x1b[{style}m{text}\x1b[0m"));
            } else {
                printed.push_str(&text);
            }
        }
        printed.truncate(printed.trim_end().len());
        printed
    }
}

/// A long name without its middle: both ends are needed to distinguish it.
pub(crate) fn shorten(name: &str, width: usize) -> String {
    let letters: Vec<char> = name.chars().collect();
    if letters.len() <= width {
        return name.to_owned();
    }
    let tail = width.saturating_sub(1) / 2;
    let head: String = letters[..width.saturating_sub(1) - tail].iter().collect();
    let tail: String = letters[letters.len() - tail..].iter().collect();
    format!("{head}…{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_piece_of_a_line_is_escaped_and_only_our_colours_remain() {
        let line = Painted::new(PLAIN, "  ")
            .and(ALARM, "::add-mask::\x1b[8m")
            .and(PLAIN, "\u{202e}b  ");
        let printed = |has_colour| line.print(has_colour);
        assert_eq!(printed(false), "  \\u{3a}:add-mask::\\u{1b}[8m\\u{202e}b");
        assert_eq!(
            printed(true),
            "  \x1b[33m\\u{3a}:add-mask::\\u{1b}[8m\x1b[0m\\u{202e}b"
        );
    }
}
