//! The strings of header blocks (RFC 7541 section 5.2), plain or Huffman coded.

use super::error::Error;
use super::{huffman, integer};

/// Writes a string in Huffman code unless that is longer, as in the examples of RFC 7541 appendix
/// C. Section 5.2 leaves the choice to the sender.
pub(crate) fn write(text: &[u8], prefix: u32, flags: u8, coded_flag: u8, out: &mut Vec<u8>) {
    let coded = huffman::encoded_len(text);
    if text.is_empty() || coded > text.len() {
        integer::write(text.len(), prefix, flags, out);
        out.extend_from_slice(text);
    } else {
        integer::write(coded, prefix, flags | coded_flag, out);
        huffman::encode(text, out);
    }
}

/// Location of a string.
#[derive(Clone, Copy)]
pub(crate) enum Text<'a> {
    Plain(&'a [u8]),
    /// Decoded into the scratch buffer: start and end.
    Scratch(usize, usize),
}

impl<'a> Text<'a> {
    /// Reads a string whose length has a prefix of this number of bits. `is_coded`: it is Huffman
    /// coded, and appended to `scratch`.
    pub(crate) fn read(
        input: &mut &'a [u8],
        prefix: u32,
        is_coded: bool,
        scratch: &mut Vec<u8>,
    ) -> Result<Text<'a>, Error> {
        let len = integer::read(input, prefix)? as usize;
        let (bytes, rest) = input.split_at_checked(len).ok_or(Error::Truncated)?;
        *input = rest;
        if !is_coded {
            return Ok(Text::Plain(bytes));
        }
        let from = scratch.len();
        huffman::decode(bytes, scratch)?;
        Ok(Text::Scratch(from, scratch.len()))
    }

    /// Reads a string whose first bit shows whether it is Huffman coded.
    pub(crate) fn read_flagged(
        input: &mut &'a [u8],
        scratch: &mut Vec<u8>,
    ) -> Result<Text<'a>, Error> {
        let is_coded = input.first().is_some_and(|first| first & 0x80 != 0);
        Text::read(input, 7, is_coded, scratch)
    }

    /// Its bytes.
    pub(crate) fn within(self, scratch: &'a [u8]) -> &'a [u8] {
        match self {
            Text::Plain(bytes) => bytes,
            Text::Scratch(from, to) => &scratch[from..to],
        }
    }
}
