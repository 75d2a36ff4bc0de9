//! The prose of a file: the passages of its text that a person reads.
//!
//! Inline code and code blocks are blanked or left out, so no phrase is found in them or across
//! them.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use ra_ap_rustc_lexer::{FrontmatterAllowed, LiteralKind, TokenKind, tokenize};
use std::ops::Range;

/// A run of prose. Its text has the length of the source that it stands for.
pub(super) struct Passage {
    /// Offset in the source, in bytes.
    pub(super) start: usize,
    /// The text. A zero byte stands for what is no prose.
    pub(super) text: String,
}

impl Passage {
    fn new(start: usize) -> Passage {
        let text = String::new();
        Passage { start, text }
    }

    /// A text without its inline code.
    pub(super) fn of(start: usize, text: &str) -> Passage {
        let mut passage = Passage::new(start);
        passage.push(start, text);
        passage.without_inline_code()
    }

    /// Offset in the source after the text.
    fn end(&self) -> usize {
        self.start + self.text.len()
    }

    /// Adds the text at `start`. Spaces stand for what lies between.
    fn push(&mut self, start: usize, text: &str) {
        let gap = start - self.end();
        self.text.extend(std::iter::repeat_n(' ', gap));
        self.text.push_str(text);
    }

    /// Offset in the source and words of each sentence longer than `MAX_SENTENCE`. A semicolon ends
    /// a sentence: the next part can be read alone.
    fn long_sentences(&self) -> Vec<(usize, usize)> {
        let mut long = Vec::new();
        let mut start = None;
        let mut count = 0;
        let mut offset = self.start;
        for piece in self.text.split_inclusive(' ') {
            let word = piece.trim_end();
            if word.contains(char::is_alphanumeric) {
                start = start.or(Some(offset));
                count += 1;
            }
            offset += piece.len();
            let is_end = word.ends_with(['.', '!', '?', ';']) || offset == self.end();
            if is_end && let Some(start) = start.take() {
                long.extend((count > MAX_SENTENCE).then_some((start, count)));
                count = 0;
            }
        }
        long
    }

    /// Blanks what stands between backticks.
    fn without_inline_code(mut self) -> Passage {
        while let Some(start) = self.text.find('`')
            && let Some(length) = self.text[start + 1..].find('`')
        {
            let code = start..start + length + 2;
            let keep_line_end = |byte| if byte == b'\n' { '\n' } else { '\0' };
            let blank: String = self.text[code.clone()].bytes().map(keep_line_end).collect();
            self.text.replace_range(code, &blank);
        }
        self
    }
}

/// What a person reads in a Rust file.
pub(super) struct RustProse {
    /// Comments, documentation included. A doc comment of an option is its help.
    pub(super) comments: Vec<Passage>,
    /// String literals that hold a space, outside tests. A literal without a space is a key.
    pub(super) messages: Vec<Passage>,
    /// Number of lines that hold a comment.
    pub(super) comment_lines: usize,
}

/// The prose of a Rust file. `is_test`: the file holds tests only, so its literals are fixtures.
pub(super) fn of_rust(source: &str, is_test: bool) -> RustProse {
    let tests = match source.find("#[cfg(test)]\nmod ") {
        _ if is_test => 0,
        Some(start) => start,
        None => source.len(),
    };
    let mut prose = RustProse {
        comments: Vec::new(),
        messages: Vec::new(),
        comment_lines: 0,
    };
    let mut comment: Option<Passage> = None;
    let mut end = 0;
    for token in tokenize(source, FrontmatterAllowed::No) {
        let start = end;
        end += token.len as usize;
        let text = &source[start..end];
        match token.kind {
            // comments that follow each other are one passage
            TokenKind::Whitespace => continue,
            TokenKind::LineComment { .. } | TokenKind::BlockComment { .. } => {
                prose.comment_lines += text.lines().count();
                let marked = text.trim_start_matches(['/', '!', '*']);
                comment
                    .get_or_insert_with(|| Passage::new(start))
                    .push(end - marked.len(), marked);
                continue;
            }
            TokenKind::Literal { kind, .. } => {
                let is_text = matches!(kind, LiteralKind::Str { .. } | LiteralKind::RawStr { .. });
                if is_text && start < tests && text.contains(' ') {
                    prose.messages.push(Passage::of(start, text));
                }
            }
            _ => {}
        }
        let finished = comment.take().map(Passage::without_inline_code);
        prose.comments.extend(finished);
    }
    let last = comment.map(Passage::without_inline_code);
    prose.comments.extend(last);
    prose
}

fn is_wide(line: &str) -> bool {
    line.trim_end().chars().count() > MAX_COLUMNS
}

/// Offset of each line of a comment that is wider than `MAX_COLUMNS`, outside code blocks.
pub(super) fn wide_comments(source: &str) -> Vec<usize> {
    let mut wide = Vec::new();
    let mut is_code = false;
    let mut start = 0;
    for line in source.split_inclusive('\n') {
        let comment = line.trim().strip_prefix("//");
        let text = comment.map(|text| text.trim_start_matches(['/', '!']).trim());
        if text.is_none_or(|text| text.starts_with("```")) {
            is_code = text.is_some() && !is_code;
        }
        let is_wrappable = text.is_some_and(|text| text.contains(' ')) && !is_code;
        if is_wrappable && is_wide(line) {
            wide.push(start);
        }
        start += line.len();
    }
    wide
}

/// The prose of a Markdown file, and what breaks the layout of prose.
pub(super) struct MarkdownProse {
    /// Text of paragraphs, lists, headings and tables.
    pub(super) text: Vec<Passage>,
    /// Offset of each line outside tables and code blocks that is wider than `MAX_COLUMNS`.
    pub(super) wide_lines: Vec<usize>,
    /// Offset and words of each paragraph or list item longer than `MAX_WORDS`.
    pub(super) long_paragraphs: Vec<(usize, usize)>,
    /// Offset and words of each sentence longer than `MAX_SENTENCE`.
    pub(super) long_sentences: Vec<(usize, usize)>,
}

/// Columns of a line of prose in a Markdown file, and of a comment.
pub(super) const MAX_COLUMNS: usize = 100;
/// Words of a paragraph in a Markdown file.
pub(super) const MAX_WORDS: usize = 80;
/// Words of a sentence in a Markdown file.
pub(super) const MAX_SENTENCE: usize = 25;

/// The prose of a Markdown file.
pub(super) fn of_markdown(source: &str) -> MarkdownProse {
    let mut text: Vec<Passage> = Vec::new();
    // ranges where lines may be wide
    let mut free: Vec<Range<usize>> = Vec::new();
    let mut long_paragraphs = Vec::new();
    let mut long_sentences = Vec::new();
    // the text of a paragraph, list item, heading or cell
    let mut block: Option<Passage> = None;
    let mut paragraph: Option<Range<usize>> = None;
    let mut in_code = false;
    let mut in_table = false;
    let mut continues = false;
    for (event, range) in Parser::new_ext(source, Options::ENABLE_TABLES).into_offset_iter() {
        let is_inline = matches!(
            event,
            Event::Text(_)
                | Event::Code(_)
                | Event::SoftBreak
                | Event::HardBreak
                | Event::InlineHtml(_)
                | Event::Start(Tag::Emphasis | Tag::Strong | Tag::Link { .. } | Tag::Image { .. })
                | Event::End(TagEnd::Emphasis | TagEnd::Strong | TagEnd::Link | TagEnd::Image)
        );
        match &event {
            Event::Start(Tag::CodeBlock(_)) => {
                in_code = true;
                free.push(range.clone());
            }
            Event::End(TagEnd::CodeBlock) => in_code = false,
            Event::Start(Tag::Table(_)) => {
                in_table = true;
                free.push(range.clone());
            }
            Event::End(TagEnd::Table) => in_table = false,
            Event::Text(_) if !in_code => {
                if !continues {
                    text.push(Passage::new(range.start));
                }
                if let Some(passage) = text.last_mut() {
                    passage.push(range.start, &source[range.clone()]);
                }
            }
            _ => {}
        }
        continues = matches!(event, Event::Text(_) | Event::SoftBreak | Event::HardBreak);
        if is_inline && !in_code {
            let block = block.get_or_insert_with(|| Passage::new(range.start));
            match &event {
                Event::Text(_) => block.push(range.start, &source[range.clone()]),
                // inline code is one word
                Event::Code(_) => block.push(range.start, &"x".repeat(range.len())),
                _ => {}
            }
        } else if let Some(block) = block.take() {
            long_sentences.extend(block.long_sentences());
        }
        if is_inline && !in_code && !in_table {
            let start = paragraph
                .as_ref()
                .map_or(range.start, |so_far| so_far.start);
            paragraph = Some(start..range.end);
        } else if let Some(range) = paragraph.take() {
            let words = source[range.clone()].split_whitespace().count();
            if words > MAX_WORDS {
                long_paragraphs.push((range.start, words));
            }
        }
    }
    let mut wide_lines = Vec::new();
    let mut start = 0;
    for line in source.split_inclusive('\n') {
        let is_free = free.iter().any(|range| range.contains(&start));
        // a link without a space cannot be wrapped
        let is_wrappable = line.trim().trim_start_matches("- ").contains(' ');
        if !is_free && is_wrappable && is_wide(line) {
            wide_lines.push(start);
        }
        start += line.len();
    }
    MarkdownProse {
        text,
        wide_lines,
        long_paragraphs,
        long_sentences,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUST: &str = r##"//! Says `told` and
//! once
//! more.
fn tell_of_it() -> &'static str {
    let key = "beside"; // the key
    let message = "stands beside";
    let raw = r#"one `beside` beside"#;
    message
}
#[cfg(test)]
mod tests {
    // beside
    const PAGE: &str = "told and told";
}
"##;

    /// The words of all passages, with `|` after each.
    fn words(passages: &[Passage]) -> String {
        let line = |passage: &Passage| {
            let words: Vec<&str> = passage.text.split(['\0', ' ', '\n']).collect();
            let words = words.into_iter().filter(|word| !word.is_empty());
            words.collect::<Vec<_>>().join(" ") + "|"
        };
        passages.iter().map(line).collect()
    }

    #[test]
    fn comments_messages_and_names_are_separate_and_inline_code_is_blanked() {
        let prose = of_rust(RUST, false);
        assert_eq!(
            words(&prose.comments),
            "Says and once more.|the key|beside|"
        );
        assert_eq!(
            words(&prose.messages),
            "\"stands beside\"|r#\"one beside\"#|"
        );
        assert_eq!(prose.comment_lines, 5);
        assert_eq!(words(&of_rust(RUST, true).messages), "");
    }

    #[test]
    fn an_offset_in_a_passage_is_one_in_the_source() {
        let source = "// once\n    // `a` more\nf(); /* told */ // more\n";
        let prose = of_rust(source, false);
        let starts = prose.comments.iter().map(|passage| passage.start);
        assert_eq!(starts.collect::<Vec<_>>(), [0, 29]);
        for (passage, word) in prose.comments.iter().zip(["more", "told"]) {
            let offset = passage.start + passage.text.find(word).unwrap();
            assert_eq!(Some(offset), source.find(word));
        }
        let source = "> A\n> line *of* text\n";
        for passage in of_markdown(source).text {
            assert!(source[passage.start..].starts_with(&passage.text[..1]));
        }
    }

    #[test]
    fn markdown_keeps_text_and_tables_and_leaves_code_out() {
        let table = "| a | told |\n| --- | --- |\n| b | `c` |\n";
        let source = format!("A *told* `told`\nline\n  of *text*\n\n```text\ntold\n```\n\n{table}");
        let prose = of_markdown(&source);
        assert_eq!(words(&prose.text), "A|told|line of|text|a|told|b|");
    }

    #[test]
    fn a_wide_line_counts_outside_of_tables_and_code() {
        let wide = "word ".repeat(30);
        let source = format!("{wide}\n\n```\n{wide}\n```\n\n| a |\n| --- |\n| {wide} |\n");
        assert_eq!(of_markdown(&source).wide_lines, [0]);
        let link = format!("- <https://example.com/{}>\n", "a".repeat(100));
        assert_eq!(of_markdown(&link).wide_lines, [0; 0]);
    }

    #[test]
    fn a_long_paragraph_counts_in_a_list_and_not_in_a_table() {
        let words = |count| "word ".repeat(count);
        let source = format!(
            "{}\n\n- {}\n- b\n\n| a |\n| --- |\n| {} |\n",
            words(80),
            words(81),
            words(90)
        );
        let expected = [(source.find("- word").unwrap() + 2, 81)];
        assert_eq!(of_markdown(&source).long_paragraphs, expected);
    }

    /// `count` words without punctuation.
    fn run(count: usize) -> String {
        vec!["word"; count].join(" ")
    }

    /// Words of the long sentences of a Markdown file.
    fn long(source: &str) -> Vec<usize> {
        let sentences = of_markdown(source).long_sentences.into_iter();
        sentences.map(|(_, words)| words).collect()
    }

    #[test]
    fn a_sentence_ends_at_a_full_stop_a_semicolon_and_the_end_of_its_block() {
        assert_eq!(long(&run(25)), [0; 0]);
        assert_eq!(long(&run(26)), [26]);
        for end in [".", ".\n", "!", "?", ";", ":\n\n-", "\n\n", "\n\n#"] {
            let source = format!("{}{end} {}", run(25), run(25));
            assert_eq!(long(&source), [0; 0], "{end:?}");
        }
        for joint in ["", "\n", ",", ":", " -", " *-*"] {
            let source = format!("{}{joint} {}", run(20), run(20));
            assert_eq!(long(&source), [40], "{joint:?}");
        }
    }

    #[test]
    fn inline_code_is_one_word_and_an_address_none() {
        assert_eq!(long(&format!("{} `a b. c`s", run(24))), [0; 0]);
        assert_eq!(long(&format!("{} `a b. c`, `d`", run(24))), [26]);
        assert_eq!(long(&format!("{} [a](b/c \"d e\")", run(24))), [0; 0]);
        assert_eq!(long(&format!("{} [a b](c)", run(24))), [26]);
        assert_eq!(long(&format!("```\n{}\n```", run(26))), [0; 0]);
    }

    #[test]
    fn a_cell_and_a_list_item_have_sentences_of_their_own() {
        let table = format!("| {} | {} |\n| --- | --- |\n", run(25), run(26));
        assert_eq!(long(&format!("{table}| {} | b |\n", run(27))), [26, 27]);
        assert_eq!(long(&format!("- {}\n- {}\n", run(25), run(26))), [26]);
    }

    #[test]
    fn a_long_sentence_has_the_offset_of_its_first_word() {
        let source = format!("> Short. `A`\n> *b* {}\n", run(24));
        let expected = [(source.find("`A`").unwrap(), 26)];
        assert_eq!(of_markdown(&source).long_sentences, expected);
    }
}
