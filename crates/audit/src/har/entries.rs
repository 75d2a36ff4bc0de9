//! Splits a HAR document into its entries, and the rest without them. So an entry is parsed in one
//! piece, and only one is in memory. Must not judge whether the text is JSON: the parser does.

use super::short_strings::{LONGEST, ShortString};
use std::io::{self, Read};

/// Largest entry in bytes, with strings that are already limited.
const LARGEST: usize = 64 << 20;
/// Depth of the values of `log`: of the list of entries, and of the objects with names.
const DEPTH: u32 = 3;
/// Bytes that are read together. A string in one block is not too long.
const BLOCK: usize = LONGEST;

/// The bytes outside of strings that change anything. Indented documents have few.
const MARKS: [bool; 256] = {
    let mut marks = [false; 256];
    let mut at = 0;
    while at < b"\"{}[]".len() {
        marks[b"\"{}[]"[at] as usize] = true;
        at += 1;
    }
    marks
};

/// Where the current byte belongs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Outside of the entries.
    Rest,
    /// In a value of the rest that is not read.
    Skipped,
    /// Between entries.
    List,
    Entry,
}

/// The state of the splitter.
pub(super) struct Splitter {
    part: Part,
    depth: u32,
    is_in_string: bool,
    is_escaped: bool,
    /// The current string, if it began in an earlier block.
    string: ShortString,
    entry: Vec<u8>,
    /// The document without its entries.
    rest: Vec<u8>,
}

impl Splitter {
    pub(super) fn new() -> Splitter {
        Splitter {
            part: Part::Rest,
            depth: 0,
            is_in_string: false,
            is_escaped: false,
            string: ShortString::begun(),
            entry: Vec::new(),
            rest: Vec::new(),
        }
    }

    /// Passes each entry to `take`. Returns the document without the entries, and the part in which
    /// the input ended.
    ///
    /// # Errors
    /// If an entry is too long, or `take` fails.
    pub(super) fn read(
        mut self,
        mut input: impl Read,
        mut take: impl FnMut(&[u8]) -> serde_json::Result<()>,
    ) -> serde_json::Result<(Vec<u8>, Part)> {
        let mut block = vec![0; BLOCK];
        loop {
            let read = input.read(&mut block).map_err(serde_json::Error::io)?;
            if read == 0 {
                break;
            }
            self.split(&block[..read], &mut take)?;
            if self.entry.len() > LARGEST || self.rest.len() > LARGEST {
                let error = io::Error::new(io::ErrorKind::InvalidData, "an entry is too long");
                return Err(serde_json::Error::io(error));
            }
        }
        Ok((self.rest, self.part))
    }

    fn split(
        &mut self,
        block: &[u8],
        take: &mut impl FnMut(&[u8]) -> serde_json::Result<()>,
    ) -> serde_json::Result<()> {
        // bytes from here on belong to the current part and are not kept yet
        let mut start = 0;
        let mut at = 0;
        while at < block.len() {
            if self.is_in_string {
                // from the block before
                at = self.pass_string(block, at);
                self.keep_string(&block[start..at]);
                start = at;
                continue;
            }
            let marks = block[at..]
                .iter()
                .position(|byte| MARKS[usize::from(*byte)]);
            let Some(mark) = marks else { break };
            at += mark + 1;
            let byte = block[at - 1];
            match byte {
                b'"' => {
                    self.is_in_string = true;
                    let begin = at;
                    at = self.pass_string(block, at);
                    if self.is_in_string {
                        self.keep(&block[start..begin]);
                        self.string = ShortString::begun();
                        self.keep_string(&block[begin..]);
                        start = at;
                    }
                }
                b'{' | b'[' => {
                    let begins = self.begins(byte, &block[start..at - 1]);
                    if let Some(part) = begins {
                        // an entry has its first byte, a list leaves it to the rest
                        let end = if part == Part::List { at } else { at - 1 };
                        self.keep(&block[start..end]);
                        start = end;
                        self.part = part;
                        if part == Part::Skipped {
                            self.rest.push(b'0');
                        }
                    }
                    self.depth += 1;
                }
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    match (self.part, self.depth) {
                        (Part::Entry, DEPTH) => {
                            self.keep(&block[start..at]);
                            start = at;
                            self.part = Part::List;
                            take(&self.entry)?;
                            self.entry.clear();
                        }
                        (Part::Skipped, DEPTH) => {
                            start = at;
                            self.part = Part::Rest;
                        }
                        (Part::List, depth) if depth < DEPTH => {
                            start = at - 1;
                            self.part = Part::Rest;
                        }
                        _ => {}
                    }
                }
                _ => {}
            }
        }
        self.keep(&block[start..]);
        Ok(())
    }

    /// Reads the rest of a string, or what the block has of it. Returns the place after it.
    fn pass_string(&mut self, block: &[u8], from: usize) -> usize {
        let mut at = from + usize::from(self.is_escaped);
        self.is_escaped = false;
        while let Some(next) = memchr::memchr2(b'"', b'\\', &block[at..]) {
            at += next + 1;
            if block[at - 1] == b'"' {
                self.is_in_string = false;
                return at;
            }
            self.is_escaped = at == block.len();
            at += usize::from(!self.is_escaped);
        }
        block.len()
    }

    /// The part that an opening bracket begins, after these bytes of the current part.
    fn begins(&self, bracket: u8, before: &[u8]) -> Option<Part> {
        match (self.part, self.depth) {
            (Part::Rest, 2) if bracket == b'[' && self.is_after(b"\"entries\"", before) => {
                Some(Part::List)
            }
            (Part::Rest, DEPTH) => Some(Part::Skipped),
            (Part::List, DEPTH) if bracket == b'{' => Some(Part::Entry),
            _ => None,
        }
    }

    /// Whether a key and its colon precede.
    fn is_after(&self, key: &[u8], before: &[u8]) -> bool {
        let tail = self.rest.len().saturating_sub(64);
        let text = [&self.rest[tail..], before].concat();
        let text = text.trim_ascii_end().strip_suffix(b":");
        text.is_some_and(|text| text.trim_ascii_end().ends_with(key))
    }

    /// Keeps what is not too long of a string that spans blocks.
    fn keep_string(&mut self, bytes: &[u8]) {
        let mut string = self.string;
        string.take(bytes, |kept| self.keep(kept));
        self.string = string;
    }

    /// Keeps bytes of the current part.
    fn keep(&mut self, bytes: &[u8]) {
        match self.part {
            Part::Rest => self.rest.extend(bytes),
            Part::Entry => self.entry.extend(bytes),
            Part::List | Part::Skipped => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::tests::Slow;
    use proptest::prelude::*;

    fn split(text: &str, step: usize) -> (Vec<String>, serde_json::Result<String>) {
        let mut entries = Vec::new();
        let rest = Splitter::new().read(Slow(text.as_bytes(), step), |entry| {
            entries.push(String::from_utf8_lossy(entry).into_owned());
            Ok(())
        });
        let text = |(rest, _): (Vec<u8>, Part)| String::from_utf8_lossy(&rest).into_owned();
        (entries, rest.map(text))
    }

    #[test]
    fn entries_are_whole_and_the_rest_stays_a_document() {
        let text = r#" {"log" : {"creator":{"name":"x\"{","a":[1]},"entries" : [ {"a":{"entries":[{}]}} ,{"b":"]}"}],"pages":[{"id":{"x":[]}}]}}"#;
        for step in 1..40 {
            let (entries, rest) = split(text, step);
            assert_eq!(entries, [r#"{"a":{"entries":[{}]}}"#, r#"{"b":"]}"}"#]);
            let rest: serde_json::Value = serde_json::from_str(&rest.unwrap()).unwrap();
            assert_eq!(rest["log"]["creator"]["name"], "x\"{");
            assert_eq!(rest["log"]["entries"], serde_json::json!([]));
        }
    }

    #[test]
    fn a_long_string_keeps_its_beginning_and_the_text_after_it() {
        for unit in [
            "x",
            "\\n",
            "\\u0041",
            "ä",
            "日",
            "\\ud83d\\ude00",
            "\\\"",
            "\\\\",
        ] {
            let long = unit.repeat(LONGEST);
            let whole: String = serde_json::from_str(&format!("\"{long}\"")).unwrap();
            for step in [1021, BLOCK] {
                let (_, read) = split(&format!("[\"{long}\", \"{long}\", 1]"), step);
                let read = read.unwrap();
                let values: (String, String, u32) = serde_json::from_str(&read).unwrap();
                // a string that begins in the middle of a block has the same limit
                assert!(read.len() < 2 * LONGEST + 64, "{unit}: {}", read.len());
                for value in [&values.0, &values.1] {
                    assert!(whole.starts_with(value.as_str()), "{unit}");
                    assert!(value.len() >= LONGEST / 12, "{unit}");
                }
                assert_eq!(values.2, 1);
            }
        }
    }

    proptest! {
        #[test]
        fn short_text_stays_as_it_is(text in "\\PC{0,200}", step in 1..9_usize) {
            let text = format!("[{}]", serde_json::to_string(&text).unwrap());
            prop_assert_eq!(split(&text, step).1.unwrap(), text);
        }

        #[test]
        fn no_text_is_trouble(text in "[\\[\\]{}\"\\\\a:, ]{0,80}", step in 1..9_usize) {
            let _ = split(&format!("{{\"log\":{{\"entries\":[{text}"), step);
            let _ = split(&text, step);
        }
    }
}
