//! Any files as a ledger, for every consumer of `crates/report/tests/it/consumers.rs`. An error or
//! a page, never a panic. A part begins with 0x1e and a letter that names its file; events may be
//! plain or compressed.
#![no_main]

#[path = "../../crates/report/tests/it/consumers.rs"]
mod consumers;

use intact_fuzz::{mutate_text, scratch};
use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

fuzz_mutator!(|data: &mut [u8], size: usize, room: usize, seed: u32| {
    mutate_text(data, size, room, seed)
});

fuzz_target!(|bytes: &[u8]| {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| scratch("ledger"));
    write(folder, bytes);
    // the HTML is most of the time: it is written for every fourth input
    consumers::consume(folder, bytes.len() % 4 == 0);
});

/// Replaces the folder's files by the parts of the input.
fn write(folder: &Path, bytes: &[u8]) {
    for name in [
        "run.json",
        "events.jsonl.zst",
        "tally.json",
        "server-profile.json",
        "end.json",
    ] {
        let _ = fs::remove_file(folder.join(name));
    }
    for part in bytes.split(|byte| *byte == 0x1e) {
        let Some((kind, content)) = part.split_first() else {
            continue;
        };
        let (name, content) = match kind {
            b'r' => ("run.json", content.to_vec()),
            b'e' => (
                "events.jsonl.zst",
                zstd::bulk::compress(content, 1).expect("memory"),
            ),
            b'z' => ("events.jsonl.zst", content.to_vec()),
            b't' => ("tally.json", content.to_vec()),
            b'p' => ("server-profile.json", content.to_vec()),
            b'n' => ("end.json", content.to_vec()),
            _ => continue,
        };
        fs::write(folder.join(name), content).expect("a file in memory");
    }
}
