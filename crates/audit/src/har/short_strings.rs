//! Truncates a long string of a JSON text.
//!
//! A parser collects a whole string before its length can be checked. Must not judge whether the
//! text is JSON: the parser does.

use memchr::memchr2;

/// Limit of a string in bytes. URLs and header fields of real traffic are shorter; bodies are not
/// read.
pub(super) const LONGEST: usize = 64 << 10;

/// The state in a string.
#[derive(Clone, Copy)]
pub(super) struct ShortString {
    place: Place,
    /// Bytes of the current string so far.
    length: usize,
}

/// Position in the string.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// After its end.
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

impl ShortString {
    /// The state after the quote that begins a string.
    pub(super) fn begun() -> ShortString {
        ShortString {
            place: Place::Inside,
            length: 1,
        }
    }

    /// Passes on what is kept of the next bytes of the string; the last ones may be its end.
    pub(super) fn take(&mut self, mut bytes: &[u8], mut keep: impl FnMut(&[u8])) {
        while !bytes.is_empty() {
            let (len, is_passed) = self.step(bytes);
            let (step, rest) = bytes.split_at(len);
            if is_passed {
                keep(step);
            }
            bytes = rest;
        }
    }

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
            Place::Outside => (bytes.len(), true),
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
