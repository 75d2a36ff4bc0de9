//! A process as its stacks are read: its program, its mappings, its memory. Every read is bounded.

use intact_sys::process::read_memory;
use std::fs;
use std::path::{Path, PathBuf};

/// Mappings that are looked at, at most.
const MAX_MAPPINGS: usize = 1 << 16;
/// The most that is read at once.
const MAX_READ: usize = 1 << 16;

/// What a process runs. It changes with exec(2), because the kernel chooses other addresses for
/// each program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProgramIdentity {
    executable: PathBuf,
    auxiliary: Vec<u8>,
}

impl ProgramIdentity {
    pub(crate) fn of(process: u32) -> Option<ProgramIdentity> {
        Some(ProgramIdentity {
            executable: fs::read_link(format!("/proc/{process}/exe")).ok()?,
            auxiliary: fs::read(format!("/proc/{process}/auxv")).ok()?,
        })
    }
}

/// A part of a file in the memory of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) offset: u64,
    /// It may have code.
    pub(crate) is_code: bool,
    pub(crate) path: String,
}

/// The mappings of files, in the order of their addresses.
pub(crate) fn mappings(process: u32) -> Vec<Mapping> {
    let text = fs::read(format!("/proc/{process}/maps")).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    text.lines()
        .take(MAX_MAPPINGS)
        .filter_map(mapping)
        .collect()
}

fn mapping(line: &str) -> Option<Mapping> {
    let path = &line[line.find('/')?..];
    let mut words = line.split_ascii_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let is_code = words.next()?.contains('x');
    let offset = words.next()?;
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    Some(Mapping {
        start: number(start)?,
        end: number(end)?,
        offset: number(offset)?,
        is_code,
        path: path.to_owned(),
    })
}

/// A file of the process, which may have another root than ours.
pub(crate) fn file_of(process: u32, path: &str) -> PathBuf {
    Path::new(&format!("/proc/{process}/root")).join(path.trim_start_matches('/'))
}

/// The id of a thread as its own process sees it: another one in an inner namespace.
pub(crate) fn inner_id(thread: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    ids.map_or(Some(thread), |ids| {
        ids.split_ascii_whitespace().next_back()?.parse().ok()
    })
}

/// Memory that is read: of a process, or a copy of a part of it.
pub(crate) trait ReadBytes {
    /// Copies bytes; `None` if one of them cannot be read, or if they are too many.
    fn bytes(&self, address: u64, count: usize) -> Option<Vec<u8>>;

    fn word(&self, address: u64) -> Option<u64> {
        word(&self.bytes(address, 8)?, 0)
    }
}

impl ReadBytes for Memory {
    fn bytes(&self, address: u64, count: usize) -> Option<Vec<u8>> {
        Memory::bytes(*self, address, count)
    }
}

/// A copy of the memory from an address on.
pub(crate) struct Copied {
    pub(crate) start: u64,
    pub(crate) bytes: Vec<u8>,
}

impl ReadBytes for Copied {
    fn bytes(&self, address: u64, count: usize) -> Option<Vec<u8>> {
        let start = usize::try_from(address.checked_sub(self.start)?).ok()?;
        let bytes = self.bytes.get(start..start.checked_add(count)?)?;
        Some(bytes.to_vec())
    }
}

/// The memory of a process.
#[derive(Clone, Copy)]
pub(crate) struct Memory {
    thread: u32,
}

impl Memory {
    pub(crate) fn of(thread: u32) -> Memory {
        Memory { thread }
    }

    /// Copies bytes; `None` if one of them cannot be read.
    pub(crate) fn fill(self, address: u64, into: &mut [u8]) -> Option<()> {
        // an address near the end would wrap
        address.checked_add(into.len() as u64)?;
        (address != 0).then_some(())?;
        read_memory(self.thread, address, into).ok()
    }

    pub(crate) fn bytes(self, address: u64, count: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; Some(count).filter(|count| *count <= MAX_READ)?];
        self.fill(address, &mut bytes)?;
        Some(bytes)
    }

    pub(crate) fn word(self, address: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        self.fill(address, &mut bytes)?;
        Some(u64::from_ne_bytes(bytes))
    }
}

/// A word of a structure that was copied.
pub(crate) fn word(bytes: &[u8], offset: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(offset..)?.first_chunk()?))
}

/// Half a word of a structure that was copied.
pub(crate) fn half(bytes: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(offset..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_mappings_is_read_with_spaces_in_its_path() {
        let line = "7f0a-7f0b r-xp 00001000 fe:00 123                        /a b/python3.11";
        let expected = Mapping {
            start: 0x7f0a,
            end: 0x7f0b,
            offset: 0x1000,
            is_code: true,
            path: "/a b/python3.11".to_owned(),
        };
        assert_eq!(mapping(line), Some(expected));
        for line in ["", "7f0a-7f0b r-xp 0 0 0", "x /", "/a"] {
            assert_eq!(mapping(line), None, "{line}");
        }
    }

    #[test]
    fn own_memory_is_read_and_nothing_else() {
        let (value, memory) = (7u64, Memory::of(std::process::id()));
        assert_eq!(memory.word((&raw const value) as u64), Some(7));
        for address in [0, 8, u64::MAX - 3, u64::MAX] {
            assert_eq!(memory.word(address), None);
        }
        assert_eq!(memory.bytes((&raw const value) as u64, MAX_READ + 1), None);
    }
}
