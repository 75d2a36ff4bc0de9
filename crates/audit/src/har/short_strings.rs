//! A reader that truncates the strings of a JSON text.
//!
//! A parser collects a whole string before its length can be checked. Must not judge whether the
//! text is JSON: the parser does.

use memchr::{memchr, memchr2};
use std::io::{self, BufRead, Read};

/// Limit of a string in bytes. URLs and header fields of real traffic are shorter; bodies are not
/// read.
const LONGEST: usize = 64 << 10;

/// JSON text with limited strings.
pub(super) struct ShortStrings<R> {
    inner: R,
    limiter: Limiter,
}

/// The state in the text.
struct Limiter {
    place: Place,
    /// Bytes of the current string so far.
    length: usize,
}

/// Position in the JSON text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Outside,
    /// In a string, after a whole character.
    Inside,
    /// In a string, after a backslash.
    Escape,
    /// In a string, after `\u` and this number of its four digits. The second value is the first
    /// digit, then 1 if the digits begin a surrogate pair.
    Unicode(u8, u8),
    /// In a string, after the first half of a surrogate pair.
    HalfPair,
    /// In a string, after the backslash of the second half of a surrogate pair.
    HalfEscape,
    /// After the limit; bytes are dropped.
    Dropped,
    /// After the limit and a backslash.
    DroppedEscape,
}

impl<R: BufRead> ShortStrings<R> {
    pub(super) fn new(inner: R) -> ShortStrings<R> {
        let limiter = Limiter {
            place: Place::Outside,
            length: 0,
        };
        ShortStrings { inner, limiter }
    }
}

impl Limiter {
    /// Reads the next byte. Returns whether it is passed on.
    fn takes(&mut self, byte: u8) -> bool {
        use Place::{
            Dropped, DroppedEscape, Escape, HalfEscape, HalfPair, Inside, Outside, Unicode,
        };
        // a continuation byte of UTF-8 belongs to its first byte
        let is_start = !(0x80..0xc0).contains(&byte);
        if self.place == Inside && self.length >= LONGEST && is_start && byte != b'"' {
            self.place = Dropped;
        }
        let next = match (self.place, byte) {
            (Outside, b'"') => {
                self.length = 0;
                Inside
            }
            (Outside, _) => return true,
            (Inside | HalfPair | Dropped, b'"') => Outside,
            (Inside, b'\\') => Escape,
            (HalfPair, b'\\') => HalfEscape,
            (Escape | HalfEscape, b'u') => Unicode(0, 0),
            (Unicode(0, _), _) => Unicode(1, byte),
            (Unicode(1, first), _) => {
                let is_half = matches!(
                    (first, byte),
                    (b'd' | b'D', b'8'..=b'9' | b'a'..=b'b' | b'A'..=b'B')
                );
                Unicode(2, u8::from(is_half))
            }
            (Unicode(2, is_half), _) => Unicode(3, is_half),
            (Unicode(_, 1), _) => HalfPair,
            (Dropped, b'\\') => DroppedEscape,
            (Dropped | DroppedEscape, _) => Dropped,
            (Inside | Escape | HalfPair | HalfEscape | Unicode(..), _) => Inside,
        };
        let is_passed = !matches!(
            (self.place, next),
            (Dropped | DroppedEscape, Dropped | DroppedEscape)
        );
        self.place = next;
        self.length += 1;
        is_passed
    }

    /// Reads bytes that are passed on, or are dropped, together. Returns their number, and whether
    /// they are passed on.
    fn step(&mut self, bytes: &[u8]) -> (usize, bool) {
        match self.place {
            Place::Outside => {
                let quote = memchr(b'"', bytes);
                if quote.is_some() {
                    (self.place, self.length) = (Place::Inside, 1);
                }
                (quote.map_or(bytes.len(), |quote| quote + 1), true)
            }
            Place::Inside => {
                let room = LONGEST.saturating_sub(self.length);
                let limited = &bytes[..bytes.len().min(room)];
                let end = memchr2(b'"', b'\\', limited);
                let len = end.unwrap_or(limited.len());
                self.length += len;
                match end.map(|end| bytes[end]) {
                    Some(b'"') => {
                        self.place = Place::Outside;
                        (len + 1, true)
                    }
                    _ if len > 0 => (len, true),
                    _ => (1, self.takes(bytes[0])),
                }
            }
            Place::Dropped => match memchr2(b'"', b'\\', bytes).unwrap_or(bytes.len()) {
                0 => (1, self.takes(bytes[0])),
                len => (len, false),
            },
            _ => (1, self.takes(bytes[0])),
        }
    }
}

impl<R: BufRead> Read for ShortStrings<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let available = self.inner.fill_buf()?;
            if available.is_empty() || into.is_empty() {
                return Ok(0);
            }
            let length = available.len().min(into.len());
            // bytes from here on are passed on and not copied yet
            let mut from = 0;
            let (mut read, mut written) = (0, 0);
            let mut copy = |bytes: &[u8]| {
                into[written..written + bytes.len()].copy_from_slice(bytes);
                written += bytes.len();
            };
            while read < length {
                let (len, is_passed) = self.limiter.step(&available[read..length]);
                if !is_passed {
                    copy(&available[from..read]);
                    from = read + len;
                }
                read += len;
            }
            copy(&available[from..length]);
            self.inner.consume(length);
            if written > 0 {
                return Ok(written);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn filtered(text: &str) -> String {
        let mut out = String::new();
        ShortStrings::new(text.as_bytes())
            .read_to_string(&mut out)
            .unwrap();
        out
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
            let read = filtered(&format!("[\"{long}\", \"{long}\", 1]"));
            let values: (String, String, u32) = serde_json::from_str(&read).unwrap();
            let whole: String = serde_json::from_str(&format!("\"{long}\"")).unwrap();
            assert!(read.len() < 2 * LONGEST + 64, "{unit}: {}", read.len());
            assert!(
                whole.starts_with(&values.0) && values.0 == values.1,
                "{unit}"
            );
            assert!(values.0.len() >= LONGEST / 12, "{unit}");
            assert_eq!(values.2, 1);
        }
    }

    proptest! {
        #[test]
        fn short_text_stays_as_it_is(text in "[\\PC\"\\\\ud8]{0,200}") {
            prop_assert_eq!(filtered(&text), text);
        }
    }
}
