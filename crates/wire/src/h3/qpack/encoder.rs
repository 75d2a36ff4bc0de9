//! Encodes fields to header blocks, with the static table only.

use super::static_table;
use crate::h2::hpack::{integer, text};

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
            text::write(value, 7, 0, 0x80, out);
        }
        None => {
            text::write(name, 3, 0x20 | never(0x10), 0x08, out);
            text::write(value, 7, 0, 0x80, out);
        }
    }
}
