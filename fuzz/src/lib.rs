//! What several fuzz targets share: a sink without effect, a mutator of numbers in text, and a
//! folder in memory. Must not know a parser.

use intact_ledger::{Event, Sink};
use std::path::PathBuf;

/// Takes events and keeps none.
pub struct NullSink;

impl Sink for NullSink {
    fn record(&mut self, _: Event<'_>) {}
}

/// Numbers at which counters and times break.
const EDGES: [&str; 16] = [
    "0",
    "1",
    "-1",
    "255",
    "65535",
    "65536",
    "2147483648",
    "4294967295",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "1e308",
    "0.5",
];

/// Mutates text half of the time by what text means: a number becomes another, or a line is
/// repeated, moved or removed. The other half is libFuzzer's own mutation, which knows bytes only.
/// Returns the new length, at most `room`.
pub fn mutate_text(data: &mut [u8], size: usize, room: usize, seed: u32) -> usize {
    let mut random = Random(u64::from(seed) ^ 0x9e37_79b9_7f4a_7c15);
    let changed = match random.below(8) {
        0..=2 => replace_number(&data[..size], &mut random),
        3 => move_line(&data[..size], &mut random),
        _ => None,
    };
    match changed {
        Some(text) if !text.is_empty() && text.len() <= room => {
            data[..text.len()].copy_from_slice(&text);
            text.len()
        }
        _ => libfuzzer_sys::fuzzer_mutate(data, size, room),
    }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^= mixed >> 27;
        (mixed % limit as u64) as usize
    }
}

fn replace_number(text: &[u8], random: &mut Random) -> Option<Vec<u8>> {
    let starts: Vec<usize> = (0..text.len())
        .filter(|&at| text[at].is_ascii_digit() && (at == 0 || !text[at - 1].is_ascii_digit()))
        .collect();
    let start = *starts.get(random.below(starts.len().max(1)))?;
    let len = text[start..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let old = std::str::from_utf8(&text[start..start + len]).ok()?;
    let new = match (random.below(4), old.parse::<u64>()) {
        (0, Ok(old)) => old.wrapping_add(1).to_string(),
        (1, Ok(old)) => old.wrapping_mul(1_000_000).to_string(),
        _ => EDGES[random.below(EDGES.len())].to_owned(),
    };
    Some([&text[..start], new.as_bytes(), &text[start + len..]].concat())
}

fn move_line(text: &[u8], random: &mut Random) -> Option<Vec<u8>> {
    let mut lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
    if lines.len() < 2 {
        return None;
    }
    let (from, to) = (random.below(lines.len()), random.below(lines.len()));
    match random.below(3) {
        0 => drop(lines.remove(from)),
        1 => lines.insert(to, lines[from]),
        _ => lines.swap(from, to),
    }
    Some(lines.concat())
}

/// A folder of this process in memory, where the system has one; empty at first.
///
/// # Panics
/// When the folder cannot be made.
pub fn scratch(name: &str) -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    let parent = if memory.is_dir() {
        memory
    } else {
        std::env::temp_dir()
    };
    let folder = parent.join(format!("intact-fuzz-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for files");
    folder
}
