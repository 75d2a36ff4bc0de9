//! Names of code outside of files: lists of JIT compilers (`/tmp/perf-PID.map`) and of the kernel
//! (`/proc/kallsyms`).
//!
//! A list is foreign input: malformed lines are skipped, and its size is bounded. Everyone can
//! place a file in `/tmp`, so only a regular file of the process's owner is read.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Limit of the bytes of a list that are read.
const MAX_BYTES: u64 = 256 * 1024 * 1024;
/// Limit of a name in bytes.
const MAX_NAME: usize = 256;

/// Names by address.
#[derive(Clone, Default)]
pub(crate) struct PerfMap {
    names: BTreeMap<u64, (u64, Arc<str>)>,
    read: u64,
}

impl PerfMap {
    /// Path of the list of a JIT compiler.
    pub(crate) fn path(process: u32) -> PathBuf {
        PathBuf::from(format!("/tmp/perf-{process}.map"))
    }

    /// Reads the part of a process's list that is new since the last call.
    pub(crate) fn read_on(&mut self, process: u32) {
        let owner = std::fs::metadata(format!("/proc/{process}")).map(|of| of.uid());
        let path = PerfMap::path(process);
        let Some(mut file) = owner.ok().and_then(|owner| open(&path, owner)) else {
            return;
        };
        if self.read >= MAX_BYTES || file.seek(SeekFrom::Start(self.read)).is_err() {
            return;
        }
        let mut text = Vec::new();
        if file
            .take(MAX_BYTES - self.read)
            .read_to_end(&mut text)
            .is_err()
        {
            return;
        }
        self.read_lines(&text);
    }

    /// Reads the complete lines of a text; the last line may be incomplete.
    pub(crate) fn read_lines(&mut self, text: &[u8]) {
        let whole = text
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        self.read += whole as u64;
        for line in text[..whole].split(|byte| *byte == b'\n') {
            self.take(&String::from_utf8_lossy(line));
        }
    }

    /// Adds a line: `START SIZE NAME`, numbers in hexadecimal. Later lines replace earlier ones.
    fn take(&mut self, line: &str) {
        let mut words = line.splitn(3, ' ');
        let number = |word: Option<&str>| {
            let word = word?;
            u64::from_str_radix(word.strip_prefix("0x").unwrap_or(word), 16).ok()
        };
        if let (Some(start), Some(size), Some(name)) =
            (number(words.next()), number(words.next()), words.next())
        {
            let name: String = name.chars().take(MAX_NAME).collect();
            self.names
                .insert(start, (start.saturating_add(size), name.into()));
        }
    }

    /// The list of the kernel; empty if the kernel hides its addresses.
    pub(crate) fn of_kernel() -> PerfMap {
        File::open("/proc/kallsyms").map_or_else(|_| PerfMap::default(), PerfMap::of_symbols)
    }

    /// Reads a list in the form of `/proc/kallsyms`.
    pub(crate) fn of_symbols(list: impl Read) -> PerfMap {
        let mut map = PerfMap::default();
        for line in BufReader::new(list.take(MAX_BYTES)).lines() {
            let Ok(line) = line else { break };
            let mut words = line.split_ascii_whitespace();
            if let (Some(address), Some("t" | "T" | "w" | "W"), Some(name)) =
                (words.next(), words.next(), words.next())
                && let Ok(address @ 1..) = u64::from_str_radix(address, 16)
            {
                map.names.insert(address, (u64::MAX, name.into()));
            }
        }
        map
    }

    #[cfg(fuzzing)]
    pub(crate) fn bytes_read(&self) -> u64 {
        self.read
    }

    #[cfg(fuzzing)]
    pub(crate) fn starts(&self) -> impl Iterator<Item = u64> {
        self.names.keys().copied()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The name of the code at an address.
    pub(crate) fn name(&self, address: u64) -> Option<Arc<str>> {
        let (_, (end, name)) = self.names.range(..=address).next_back()?;
        (address < *end).then(|| name.clone())
    }
}

/// Opens a regular file of an owner. A pipe does not block.
fn open(path: &Path, owner: u32) -> Option<File> {
    let mut options = File::options();
    options.custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW);
    let file = options.read(true).open(path).ok()?;
    let kind = file.metadata().ok()?;
    (kind.is_file() && kind.uid() == owner).then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_of_the_owner_are_opened() {
        let folder = tempfile::tempdir().unwrap();
        let owner = std::fs::metadata(folder.path()).unwrap().uid();
        let [list, link, pipe] = ["list", "link", "pipe"].map(|name| folder.path().join(name));
        std::fs::write(&list, "").unwrap();
        std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        assert!(open(&list, owner).is_some());
        assert!(open(&list, owner + 1).is_none());
        assert!(open(&link, owner).is_none());
        assert!(open(&pipe, owner).is_none());
    }

    #[test]
    fn names_are_found_inside_their_code_only_and_later_ones_win() {
        let mut map = PerfMap::default();
        for line in [
            "1000 10 first",
            "nonsense",
            "",
            "1000 8 JS:~second a.js:1",
            "zz 1 x",
        ] {
            map.take(line);
        }
        assert_eq!(map.name(0x1007).as_deref(), Some("JS:~second a.js:1"));
        assert_eq!(map.name(0x1008), None);
        assert_eq!(map.name(0xfff), None);
    }
}
