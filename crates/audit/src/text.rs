//! Byte order marks: text in UTF-16 becomes UTF-8, and the mark of UTF-8 is dropped. PowerShell and
//! other programs of Windows write both. Must not touch an input without a mark.

use std::char::{REPLACEMENT_CHARACTER, decode_utf16};
use std::io::{self, Cursor, Read};

/// Bytes of UTF-16 that are decoded together.
const BLOCK: usize = 16 << 10;

/// The encoding that the first bytes of an input name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    Utf8,
    Utf16Le,
    Utf16Be,
}

impl Mark {
    /// The mark at the beginning of an input. A snoop or other binary file has none of them.
    pub(crate) fn of(start: &[u8]) -> Option<Mark> {
        match start {
            [0xef, 0xbb, 0xbf, ..] => Some(Mark::Utf8),
            // UTF-32 begins in the same way
            [0xff, 0xfe, 0, 0] => None,
            [0xff, 0xfe, ..] => Some(Mark::Utf16Le),
            [0xfe, 0xff, ..] => Some(Mark::Utf16Be),
            _ => None,
        }
    }

    /// Number of bytes of the mark.
    pub(crate) fn len(self) -> usize {
        match self {
            Mark::Utf8 => 3,
            Mark::Utf16Le | Mark::Utf16Be => 2,
        }
    }
}

/// Decodes UTF-16. A unit that is no text becomes the replacement character.
pub(crate) struct Utf16<R> {
    inner: R,
    is_big_endian: bool,
    /// Bytes that were read and not decoded: a half of a unit, or of a pair.
    rest: Vec<u8>,
    /// Text that was decoded and not taken.
    decoded: Cursor<Vec<u8>>,
}

impl<R: Read> Utf16<R> {
    pub(crate) fn new(inner: R, is_big_endian: bool) -> Utf16<R> {
        Utf16 {
            inner,
            is_big_endian,
            rest: Vec::new(),
            decoded: Cursor::default(),
        }
    }

    /// Decodes the next block; false at the end.
    fn fill(&mut self) -> io::Result<bool> {
        let mut block = [0; BLOCK];
        let read = self.inner.read(&mut block)?;
        self.rest.extend(&block[..read]);
        let unit = |pair: &[u8]| match self.is_big_endian {
            true => u16::from_be_bytes([pair[0], pair[1]]),
            false => u16::from_le_bytes([pair[0], pair[1]]),
        };
        let mut units: Vec<u16> = self.rest.chunks_exact(2).map(unit).collect();
        // the second half of a pair may follow
        let is_half = units
            .last()
            .is_some_and(|unit| (0xd800..0xdc00).contains(unit));
        if is_half && read > 0 {
            units.pop();
        }
        let used = match read {
            0 => self.rest.len(),
            _ => units.len() * 2,
        };
        self.rest.drain(..used);
        let letters = decode_utf16(units).map(|letter| letter.unwrap_or(REPLACEMENT_CHARACTER));
        self.decoded = Cursor::new(letters.collect::<String>().into_bytes());
        Ok(read > 0)
    }
}

impl<R: Read> Read for Utf16<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.decoded.read(into)?;
            let is_served = read > 0 || into.is_empty();
            if is_served || !self.fill()? && self.decoded.get_ref().is_empty() {
                return Ok(read);
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Reads at most this number of bytes at a time.
    pub(crate) struct Slow<'a>(pub(crate) &'a [u8], pub(crate) usize);

    impl Read for Slow<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let len = self.1.min(into.len());
            self.0.read(&mut into[..len])
        }
    }

    #[test]
    fn a_mark_names_the_encoding() {
        assert_eq!(Mark::of(b"\xef\xbb\xbf{"), Some(Mark::Utf8));
        assert_eq!(Mark::of(b"\xff\xfe{\0"), Some(Mark::Utf16Le));
        assert_eq!(Mark::of(b"\xfe\xff\0{"), Some(Mark::Utf16Be));
        assert_eq!(Mark::of(b"{\"a\""), None);
        assert_eq!(Mark::of(b"\xff\xfe\0\0"), None);
    }

    proptest! {
        #[test]
        fn text_comes_back_in_any_pieces(text in ".{0,300}", step in 1..9_usize, is_big in any::<bool>()) {
            let units = text.encode_utf16();
            let bytes: Vec<u8> = units
                .flat_map(|unit| if is_big { unit.to_be_bytes() } else { unit.to_le_bytes() })
                .collect();
            let mut read = String::new();
            Utf16::new(Slow(&bytes, step), is_big).read_to_string(&mut read).unwrap();
            prop_assert_eq!(read, text);
        }

        #[test]
        fn no_bytes_are_trouble(bytes in prop::collection::vec(any::<u8>(), 0..200), step in 1..9_usize) {
            let mut read = String::new();
            Utf16::new(Slow(&bytes, step), false).read_to_string(&mut read).unwrap();
        }
    }
}
