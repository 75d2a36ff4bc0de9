//! Text as spans: words, code and quantities. Must not escape or format: each writer does.

use super::Quantity;
use std::fmt;

/// A piece of text.
#[derive(Clone, Debug, PartialEq)]
pub enum Span {
    /// Words as they are.
    Words(String),
    /// A name, an option or a line of a program.
    Code(String),
    /// A figure.
    Value(Quantity),
}

/// A sentence, a title or the content of a cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Text(Vec<Span>);

impl Text {
    /// Words of a server, a file or a user, in which a backtick is a backtick.
    pub fn plain(words: impl Into<String>) -> Text {
        Text(vec![Span::Words(words.into())])
    }

    /// Our own words, in which backticks enclose code. A backtick without a partner stays.
    pub fn prose(words: &str) -> Text {
        let limit = match words.matches('`').count() % 2 {
            0 => usize::MAX,
            _ => 1,
        };
        let pieces = words.splitn(limit, '`').enumerate();
        let spans = pieces.filter(|(_, piece)| !piece.is_empty());
        Text(
            spans
                .map(|(nth, piece)| match nth % 2 {
                    0 => Span::Words(piece.to_owned()),
                    _ => Span::Code(piece.to_owned()),
                })
                .collect(),
        )
    }

    /// A template of our own words in which each `{}` is replaced by the next of `parts`. See
    /// [`text`].
    pub(crate) fn fill(template: &str, parts: Vec<Text>) -> Text {
        let mut parts = parts.into_iter();
        let mut text = Text::default();
        for (nth, piece) in template.split("{}").enumerate() {
            if nth > 0 {
                text.0
                    .extend(parts.next().into_iter().flat_map(|part| part.0));
            }
            text.0.extend(Text::prose(piece).0);
        }
        text
    }

    /// The pieces.
    pub fn spans(&self) -> &[Span] {
        &self.0
    }

    /// Whether there is nothing to read.
    pub fn is_empty(&self) -> bool {
        self.0
            .iter()
            .all(|span| matches!(span, Span::Words(words) if words.is_empty()))
    }
}

/// Text from a template and parts: `text!("{} of {}", some, all)`. Numbers become quantities,
/// strings stay as they are.
macro_rules! text {
    ($template:expr $(, $part:expr)* $(,)?) => {
        $crate::page::Text::fill($template, vec![$($crate::page::Text::from($part)),*])
    };
}
pub(crate) use text;

/// As a log or a screen reader has it: code keeps its backticks.
impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|span| match span {
            Span::Words(words) => f.write_str(words),
            Span::Code(code) => write!(f, "`{code}`"),
            Span::Value(value) => write!(f, "{value}"),
        })
    }
}

/// Conversions into text.
macro_rules! into_text {
    ($(|$value:ident: $from:ty| $into:expr),* $(,)?) => {
        $(impl From<$from> for Text {
            fn from($value: $from) -> Text {
                $into
            }
        })*
    };
}

into_text! {
    |words: &str| Text::plain(words),
    |words: &String| Text::plain(words),
    |words: String| Text::plain(words),
    |value: Quantity| Text(vec![Span::Value(value)]),
    |value: Option<Quantity>| value.map_or_else(|| Text::plain("-"), Text::from),
    |count: u64| Quantity::Count(count).into(),
    |count: u32| u64::from(count).into(),
    |count: usize| (count as u64).into(),
}

/// A sentence of a finding or a caveat, as prose: with a capital letter in front, unless the first
/// word is a name (`keepalive=on`), and a full stop at the end.
pub(crate) fn sentence(words: &str) -> Text {
    let mut letters = words.chars();
    let Some(first) = letters.next() else {
        return Text::default();
    };
    let end = if words.ends_with(['.', '!', '?', '…', ':']) {
        ""
    } else {
        "."
    };
    let is_name = |word: &str| {
        let word = word.trim_end_matches(['.', ':']);
        word.contains(['=', '.', '_', ':', '/', '`'])
    };
    if words.split(' ').next().is_some_and(is_name) {
        return Text::prose(&format!("{words}{end}"));
    }
    Text::prose(&format!(
        "{}{}{end}",
        first.to_uppercase(),
        letters.as_str()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_between_backticks_are_code() {
        let code = |code: &str| Span::Code(code.to_owned());
        let words = |words: &str| Span::Words(words.to_owned());
        assert_eq!(
            Text::prose("set `a`, not `b`").0,
            [words("set "), code("a"), words(", not "), code("b")]
        );
        assert_eq!(Text::prose("a ` alone").0, [words("a ` alone")]);
    }

    #[test]
    fn a_part_is_never_read_as_code_and_a_number_stays_a_number() {
        let text = text!("`x` of {} in {}", "`evil`", Quantity::Time(5.19));
        assert_eq!(
            text.0,
            [
                Span::Code("x".to_owned()),
                Span::Words(" of ".to_owned()),
                Span::Words("`evil`".to_owned()),
                Span::Words(" in ".to_owned()),
                Span::Value(Quantity::Time(5.19)),
            ]
        );
        assert_eq!(text.to_string(), "`x` of `evil` in 5.19 ms");
    }

    #[test]
    fn a_sentence_begins_and_ends_as_one() {
        let printed = |words| sentence(words).to_string();
        assert_eq!(printed("the server closes"), "The server closes.");
        assert_eq!(printed("done."), "Done.");
        assert_eq!(printed("c=1 is fast"), "c=1 is fast.");
        assert_eq!(printed(""), "");
    }
}
