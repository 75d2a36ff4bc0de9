//! Strings of CPython.

use crate::process::{Memory, half, word};
use std::sync::Arc;

/// The longest string that is read, in letters.
const LONGEST: u64 = 4096;

/// How strings are kept: the address of their type, and the sizes of their heads.
#[derive(Clone, Copy)]
pub(crate) struct TextLayout {
    pub(crate) kind: u64,
    pub(crate) head: u64,
    pub(crate) wide_head: u64,
}

/// Reads a string; `None` if it is none, or too long.
pub(crate) fn read(memory: Memory, layout: TextLayout, address: u64) -> Option<Arc<str>> {
    let mut head = [0; 40];
    memory.fill(address, &mut head)?;
    let letters = word(&head, 16).filter(|letters| *letters <= LONGEST)?;
    if word(&head, 8)? != layout.kind {
        return None;
    }
    let state = half(&head, 32)?;
    let (kind, is_compact, is_ascii) = (state >> 2 & 7, state >> 5 & 1 == 1, state >> 6 & 1 == 1);
    if !is_compact {
        return None;
    }
    let head = if is_ascii {
        layout.head
    } else {
        layout.wide_head
    };
    let width = [1, 2, 4].into_iter().find(|width| *width == kind)?;
    let count = usize::try_from(letters * u64::from(width)).ok()?;
    let bytes = memory.bytes(address.checked_add(head)?, count)?;
    Some(decoded(&bytes, width as usize)?.into())
}

/// Letters of this many bytes each.
fn decoded(bytes: &[u8], width: usize) -> Option<String> {
    let letters = bytes.chunks_exact(width).map(|letter| {
        let mut code = [0; 4];
        code[..width].copy_from_slice(letter);
        // a lone surrogate stands for a byte that is no letter
        char::from_u32(u32::from_le_bytes(code))
    });
    letters.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_of_each_width_are_read_and_others_are_not() {
        assert_eq!(decoded(b"a\xe9", 1).as_deref(), Some("a\u{e9}"));
        assert_eq!(decoded(&[0x20, 0x26], 2).as_deref(), Some("\u{2620}"));
        assert_eq!(decoded(&[0x00, 0xd8], 2), None);
        assert_eq!(decoded(&[0xff; 4], 4), None);
    }
}
