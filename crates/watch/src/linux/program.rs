//! What a running program is made of, by its executable (the System V ABI's object files, 64 bits,
//! little-endian).

use std::fs::File;
use std::os::unix::fs::FileExt;

/// The most of program headers and of a note that is read, in bytes.
const MAX_HEADERS: usize = 4096;
const MAX_NOTE: usize = 4096;
const HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;
const PT_NOTE: u32 = 4;
/// The type of the note in which Go's linker leaves the build's id, under the name `Go`.
const GO_BUILD_ID: u32 = 4;

/// Whether a process runs a program that Go has built, whose lookups make system calls of their
/// own. `false` where its executable cannot be read.
pub(crate) fn is_go(process: u32) -> bool {
    let Ok(file) = File::open(format!("/proc/{process}/exe")) else {
        return false;
    };
    let mut head = [0; HEADER];
    if file.read_exact_at(&mut head, 0).is_err() {
        return false;
    }
    let Some((at, len)) = headers(&head) else {
        return false;
    };
    let mut table = vec![0; len];
    if file.read_exact_at(&mut table, at).is_err() {
        return false;
    }
    notes(&table).any(|(at, len)| {
        let mut note = vec![0; len];
        file.read_exact_at(&mut note, at).is_ok() && has_build_id(&note)
    })
}

/// Where the program headers are.
fn headers(head: &[u8; HEADER]) -> Option<(u64, usize)> {
    let is_known = head.starts_with(b"\x7fELF\x02\x01");
    let size = usize::from(u16::from_le_bytes([head[54], head[55]]));
    let count = usize::from(u16::from_le_bytes([head[56], head[57]]));
    let len = size * count;
    (is_known && size == PROGRAM_HEADER && len <= MAX_HEADERS).then(|| (word(head, 32), len))
}

/// Where the notes are.
fn notes(table: &[u8]) -> impl Iterator<Item = (u64, usize)> {
    table.chunks_exact(PROGRAM_HEADER).filter_map(|header| {
        let kind = u32::from_le_bytes(*header.first_chunk()?);
        let len = usize::try_from(word(header, 32)).ok()?;
        (kind == PT_NOTE).then(|| (word(header, 8), len.min(MAX_NOTE)))
    })
}

/// Whether Go's build id is among these notes.
fn has_build_id(mut notes: &[u8]) -> bool {
    while let Some((head, rest)) = notes.split_first_chunk::<12>() {
        let half =
            |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (name, content) = (half(0) as usize, half(4) as usize);
        if half(8) == GO_BUILD_ID && rest.get(..name) == Some(b"Go\0\0") {
            return true;
        }
        let whole = name
            .next_multiple_of(4)
            .saturating_add(content.next_multiple_of(4));
        match rest.get(whole..) {
            Some(next) => notes = next,
            None => break,
        }
    }
    false
}

fn word(bytes: &[u8], at: usize) -> u64 {
    let part = bytes.get(at..).and_then(|rest| rest.first_chunk());
    part.map_or(0, |part| u64::from_le_bytes(*part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_build_id_is_found_behind_other_notes() {
        let mut notes = b"\x04\0\0\0\x03\0\0\0\x03\0\0\0GNU\0abc\0".to_vec();
        assert!(!has_build_id(&notes));
        notes.extend_from_slice(b"\x04\0\0\0\x02\0\0\0\x04\0\0\0Go\0\0ab\0\0");
        assert!(has_build_id(&notes));
        assert!(!is_go(std::process::id()));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            has_build_id(&bytes);
            notes(&bytes).for_each(drop);
            if let Some(head) = bytes.first_chunk() {
                headers(head);
            }
        }
    }
}
