//! Entry points of the fuzz targets: files with code, and lists of names.

use super::code::{AddressSpace, Images, PerfMap};
use crate::Frame;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Maps a file with code to `range` from `offset` on, and unwinds a stack of at most `most` levels
/// with it.
pub fn unwind(
    path: &Path,
    range: Range<u64>,
    offset: u64,
    registers: &[u64],
    stack: &[u8],
    most: usize,
) -> Vec<Frame> {
    use std::os::unix::ffi::OsStrExt;
    let mut images = Images::default();
    let mut space = AddressSpace::new(std::process::id());
    let mut places = Vec::new();
    space.map(&mut images, range, offset, path.as_os_str().as_bytes());
    space.unwind(registers, stack, most, &mut places);
    places.iter().map(|place| images.frame(place)).collect()
}

/// Reads the list of a JIT compiler as it grows. Returns its names by address.
///
/// # Panics
/// If a stage is shorter than the one before.
pub fn perf_map(stages: &[&[u8]]) -> Vec<(u64, Arc<str>)> {
    let mut map = PerfMap::default();
    for text in stages {
        map.read_lines(&text[usize::try_from(map.bytes_read()).expect("a text in memory")..]);
    }
    let starts: Vec<u64> = map.starts().collect();
    // code without bytes has no name
    let named = |start: u64| map.name(start).map(|name| (start, name));
    starts.into_iter().filter_map(named).collect()
}

/// Reads the list of the kernel.
///
/// # Panics
/// If a name is not found at its own address.
pub fn kernel_symbols(text: &[u8]) {
    let map = PerfMap::of_symbols(text);
    for start in map.starts() {
        assert!(start == u64::MAX || map.name(start).is_some());
    }
}
