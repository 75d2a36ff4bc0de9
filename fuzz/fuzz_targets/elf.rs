//! Any bytes as a file with code that a process has mapped: its segments, unwind tables and
//! symbols. No panic, no endless stack. The first twelve bytes choose the page that is mapped, the
//! registers and the length of the stack, which follows.
#![no_main]

use intact_fuzz::scratch;
use libfuzzer_sys::fuzz_target;
use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;

/// Levels of a stack at most.
const LEVELS: usize = 64;
const BASE: u64 = 0x40_0000;

fuzz_target!(|data: &[u8]| {
    static FILE: OnceLock<PathBuf> = OnceLock::new();
    let path = FILE.get_or_init(|| scratch("elf").join("image"));
    let Some((head, rest)) = data.split_first_chunk::<12>() else {
        return;
    };
    let number = |at: usize| u64::from(u16::from_le_bytes([head[at], head[at + 1]]));
    let (stack, file) = rest.split_at(rest.len().min(usize::from(head[10])));
    fs::write(path, file).expect("a file in memory");
    let registers = [number(2), number(4), BASE + number(6)];
    let frames = intact_profile::fuzz::unwind(
        path,
        BASE..BASE + 0x10_0000,
        number(0) * 4096,
        &registers,
        stack,
        LEVELS,
    );
    assert!(frames.len() <= LEVELS);
});
