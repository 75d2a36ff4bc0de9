//! Where a process keeps what it made itself: private, writable, in memory, of no file.

use super::candidate::Candidates;
use intact_sys::process;
use intact_sys::timer::thread_cpu;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// Memory is taken in pieces of this size, in bytes.
const PIECE: usize = 1 << 20;
/// What a piece repeats of the one before, so that nothing is cut in two: the longest secret.
const OVERLAP: usize = 64;
/// The entries of the page map that are read at once.
const ENTRIES: usize = 8192;

/// A range of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Region {
    start: u64,
    end: u64,
}

/// Possible secrets in the memory of a process; the part of it that can be read until this thread
/// has used that time of a processor. An error where we may not look, or the process is gone.
pub(super) fn candidates(process: u32, until: Duration) -> io::Result<Candidates> {
    let maps = fs::read_to_string(format!("/proc/{process}/maps"))?;
    let mut memory = Memory::of(process, until)?;
    let mut candidates = Candidates::default();
    let mut piece = Vec::new();
    for region in maps.lines().filter_map(region) {
        if memory.is_late() {
            break;
        }
        for run in memory.present(region) {
            memory.read(run, &mut piece, |piece| candidates.take(piece));
        }
    }
    Ok(candidates)
}

/// The memory of a process.
struct Memory {
    process: u32,
    pages: File,
    page: u64,
    /// Room for entries of the page map.
    entries: Vec<u8>,
    /// By the processor's time of this thread.
    until: Duration,
}

impl Memory {
    fn of(process: u32, until: Duration) -> io::Result<Memory> {
        Ok(Memory {
            process,
            pages: File::open(format!("/proc/{process}/pagemap"))?,
            page: process::page_size(),
            entries: vec![0; ENTRIES * 8],
            until,
        })
    }

    fn is_late(&self) -> bool {
        thread_cpu() > self.until
    }

    /// Hands on what is in a part of the memory, in order and in pieces.
    fn read(&self, run: Region, piece: &mut Vec<u8>, mut visit: impl FnMut(&[u8])) {
        let mut at = run.start;
        while at < run.end && !self.is_late() {
            let end = run.end.min(at + PIECE as u64);
            piece.resize((end - at) as usize, 0);
            // it may have been unmapped meanwhile
            if process::read_memory(self.process, at, piece).is_ok() {
                visit(piece);
            }
            at = if end == run.end {
                end
            } else {
                end - OVERLAP as u64
            };
        }
    }

    /// The parts of a region that are in memory. Others are left out: looking at them would bring
    /// them in.
    fn present(&mut self, region: Region) -> Vec<Region> {
        let mut runs: Vec<Region> = Vec::new();
        let mut at = region.start;
        while at < region.end && !self.is_late() {
            let left = ((region.end - at) / self.page).min(ENTRIES as u64) as usize;
            let wanted = &mut self.entries[..left * 8];
            if self
                .pages
                .read_exact_at(wanted, at / self.page * 8)
                .is_err()
            {
                break;
            }
            let (wanted, _) = wanted.as_chunks();
            for entry in wanted {
                // bit 63: present (Linux, Documentation/admin-guide/mm/pagemap.rst)
                if u64::from_ne_bytes(*entry) >> 63 == 1 {
                    match runs.last_mut() {
                        Some(run) if run.end == at => run.end += self.page,
                        _ => runs.push(Region {
                            start: at,
                            end: at + self.page,
                        }),
                    }
                }
                at += self.page;
            }
        }
        runs
    }
}

/// The range of a line of `/proc/PID/maps`, if it may hold secrets.
fn region(line: &str) -> Option<Region> {
    let mut words = line.split_ascii_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let (rights, inode) = (words.next()?, words.nth(2)?);
    let is_own = rights.starts_with("rw") && rights.ends_with('p') && inode == "0";
    let number = |digits| u64::from_str_radix(digits, 16).ok();
    let region = Region {
        start: number(start)?,
        end: number(end)?,
    };
    (is_own && region.start < region.end).then_some(region)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_private_writable_memory_of_no_file_is_looked_at() {
        let heap =
            "55d0c0000000-55d0c0021000 rw-p 00000000 00:00 0                          [heap]";
        assert_eq!(
            region(heap),
            Some(Region {
                start: 0x55d0_c000_0000,
                end: 0x55d0_c002_1000
            })
        );
        for other in [
            "7f0000000000-7f0000001000 r--p 00000000 00:00 0",
            "7f0000000000-7f0000001000 rw-s 00000000 00:01 77 /memfd:x (deleted)",
            "7f0000000000-7f0000001000 rw-p 00001000 fe:00 1234 /usr/lib/libc.so.6",
            "nonsense",
            "",
        ] {
            assert_eq!(region(other), None, "{other}");
        }
    }

    #[test]
    fn memory_is_read_in_overlapping_pieces_and_pages_that_were_never_touched_are_not() {
        let mut big: Vec<u8> = Vec::with_capacity(64 << 20);
        big.resize(3 << 20, 0x5a);
        let start = big.as_ptr() as u64;
        let until = thread_cpu() + Duration::from_secs(3600);
        let mut memory = Memory::of(std::process::id(), until).unwrap();
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let region = maps
            .lines()
            .filter_map(region)
            .find(|region| (region.start..region.end).contains(&start))
            .unwrap();
        let runs = memory.present(region);
        let mut seen = 0;
        for run in &runs {
            memory.read(*run, &mut Vec::new(), |piece| {
                seen += piece.iter().filter(|byte| **byte == 0x5a).count();
            });
        }
        assert!(seen >= 3 << 20, "{seen}");
        let present: u64 = runs.iter().map(|run| run.end - run.start).sum();
        assert!(present < region.end - region.start);
    }
}
