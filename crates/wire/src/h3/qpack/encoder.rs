//! Encodes fields to header blocks, with the static table only.

use super::static_table;
use crate::h2::hpack::{huffman, integer};

/// Starts a block: no dynamic table is referred to.
pub fn begin(out: &mut Vec<u8>) {
    out.extend_from_slice(&[0, 0]);
}

/// Appends one field. Intermediaries may not put a `sensitive` one into a table (RFC 9204 section
/// 7.1.3).
pub fn encode(name: &[u8], value: &[u8], sensitive: bool, out: &mut Vec<u8>) {
    let never = |flag: u8| if sensitive { flag } else { 0 };
    match static_table::find(name, value) {
        Some((index, true)) if !sensitive => integer::write(index, 6, 0xc0, out),
        Some((index, _)) => {
            integer::write(index, 4, 0x50 | never(0x20), out);
            write_text(value, 7, 0, 0x80, out);
        }
        None => {
            write_text(name, 3, 0x20 | never(0x10), 0x08, out);
            write_text(value, 7, 0, 0x80, out);
        }
    }
}

/// Writes a text in Huffman code unless that is longer.
fn write_text(text: &[u8], prefix: u32, flags: u8, coded_flag: u8, out: &mut Vec<u8>) {
    let coded = huffman::encoded_len(text);
    if text.is_empty() || coded > text.len() {
        integer::write(text.len(), prefix, flags, out);
        out.extend_from_slice(text);
    } else {
        integer::write(coded, prefix, flags | coded_flag, out);
        huffman::encode(text, out);
    }
}
