//! What a running program is made of, by its executable. Must not trust the file: an unreadable one
//! has no notes.

use object::elf::{FileHeader64, NoteType};
use object::read::elf::{FileHeader, NoteIterator, ProgramHeader};
use object::{Endianness, ReadCache, ReadRef};
use std::fs::File;

/// The type of the note in which Go's linker leaves the build's id, under the name `Go`.
const GO_BUILD_ID: NoteType = NoteType(4);
/// Executables with more headers, and longer notes, are not read.
const MOST_HEADERS: u16 = 64;
const LONGEST_NOTES: u64 = 64 * 1024;

/// Whether a process runs a program that Go has built, whose lookups make system calls of their
/// own. `false` where its executable cannot be read.
pub(crate) fn is_go(process: u32) -> bool {
    let file = File::open(format!("/proc/{process}/exe"));
    file.is_ok_and(|file| has_build_id(&ReadCache::new(file)).unwrap_or(false))
}

/// Whether Go's build id is among the notes of an executable. Reads only these.
fn has_build_id<'a>(file: impl ReadRef<'a>) -> object::Result<bool> {
    let header = FileHeader64::<Endianness>::parse(file)?;
    let endian = header.endian()?;
    if header.e_phnum(endian) > MOST_HEADERS {
        return Ok(false);
    }
    let segments = header.program_headers(endian, file)?.iter();
    for segment in segments.filter(|segment| segment.p_filesz(endian) <= LONGEST_NOTES) {
        let mut notes = segment.notes(endian, file)?;
        while let Some(note) = notes.as_mut().map_or(Ok(None), NoteIterator::next)? {
            if note.n_type(endian) == GO_BUILD_ID && note.name() == b"Go" {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// An executable for a machine of 64 bits with these notes.
    fn executable(notes: &[u8]) -> Vec<u8> {
        let word = |number: usize| (number as u64).to_le_bytes();
        let mut file = b"\x7fELF\x02\x01\x01".to_vec();
        file.resize(32, 0);
        file.extend_from_slice(&word(64));
        file.resize(54, 0);
        file.extend_from_slice(b"\x38\0\x01\0\0\0\0\0\0\0");
        file.extend_from_slice(b"\x04\0\0\0\0\0\0\0");
        file.extend([word(120), word(0), word(0), word(notes.len())].concat());
        file.extend([word(notes.len()), word(4)].concat());
        [&file, notes].concat()
    }

    #[test]
    fn a_build_id_is_found_behind_other_notes() {
        let mut notes = b"\x04\0\0\0\x03\0\0\0\x03\0\0\0GNU\0abc\0".to_vec();
        assert_eq!(has_build_id(&*executable(&notes)), Ok(false));
        notes.extend_from_slice(b"\x04\0\0\0\x02\0\0\0\x04\0\0\0Go\0\0ab\0\0");
        assert_eq!(has_build_id(&*executable(&notes)), Ok(true));
        assert!(!is_go(std::process::id()));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = has_build_id(&*bytes);
            let _ = has_build_id(&*executable(&bytes));
            let _ = has_build_id(&*[&executable(&[])[..54], &bytes].concat());
        }
    }
}
