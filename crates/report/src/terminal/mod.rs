//! Pages for a terminal or a pipe, as text. Width and colour are the caller's to say.

mod bench;
mod cards;
mod change;
mod check;
mod compare;
mod demonstration;
mod fix;
mod inputs;
mod ladder;
mod lambda;
mod model;
mod observed;
mod page;
mod phases;
mod table;

pub use bench::bench;
pub use cards::cards;
pub use change::change;
pub(crate) use change::step_side;
pub use check::{check, check_card, check_limits};
pub use compare::compare;
pub use demonstration::demonstration;
pub use fix::{FixRequest, fix_client, fix_list};
pub use inputs::inputs;
pub use ladder::{answers, ladder};
pub use lambda::lambda;
pub use model::model;
pub use observed::observed;

pub(crate) use intact_units::foreign_text::escape;

/// What the page is printed on.
#[derive(Clone, Copy, Debug)]
pub struct TerminalOptions {
    /// Columns; at least 40 are used.
    pub width: usize,
    /// Whether escape sequences for colour are understood.
    pub colour: bool,
}

/// A style of text.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Style {
    /// The one thing to read.
    Strong,
    /// Beside the point.
    Faint,
    /// Needs attention.
    Alarm,
    /// Fresh connections.
    Fresh,
    /// Reused connections.
    Reused,
}

impl TerminalOptions {
    /// The text in that style, where colour is understood.
    pub(crate) fn ink(self, ink: Style, text: &str) -> String {
        if !self.colour {
            return text.to_owned();
        }
        let code = match ink {
            Style::Strong => "1",
            Style::Faint => "2",
            Style::Alarm => "33",
            Style::Fresh => "31",
            Style::Reused => "32",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

/// Breaks a sentence into lines of at most `width`, later ones indented.
pub(crate) fn wrap(text: &str, width: usize, indent: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        let extra = word.chars().count() + usize::from(!line.is_empty());
        if !line.is_empty() && line.chars().count() + extra > width {
            lines.push(std::mem::take(&mut line));
            line.push_str(indent);
        } else if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_is_broken_at_words() {
        assert_eq!(
            wrap("one two three four", 9, "  "),
            ["one two", "  three", "  four"]
        );
    }
}
