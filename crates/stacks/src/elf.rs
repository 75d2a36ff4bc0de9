//! Addresses of a file's symbols in the memory of a process. The files are foreign input: what
//! cannot be read has no symbols.

use crate::process::{Mapping, file_of};
use object::{Object, ObjectSegment, ObjectSymbol, ReadCache};
use std::fs::File;

/// The size of the smallest page.
const PAGE: u64 = 4096;

/// The addresses of these symbols in a process that has mapped the file; zero for one that is not
/// there.
pub(crate) fn addresses<const N: usize>(
    process: u32,
    maps: &[Mapping],
    path: &str,
    names: [&str; N],
) -> Option<[u64; N]> {
    let cache = ReadCache::new(File::open(file_of(process, path)).ok()?);
    let object = object::File::parse(&cache).ok()?;
    let bias = object.segments().find_map(|segment| {
        let (offset, _) = segment.file_range();
        let start = offset - offset % PAGE;
        let mut own = maps.iter().filter(|one| one.path == path);
        let mapped = own.find(|one| one.offset == start)?;
        let address = segment.address() - segment.address() % PAGE;
        Some(mapped.start.wrapping_sub(address))
    })?;
    let mut found = [0; N];
    // a file that exports the first one exports all that it has; the other table is long
    for symbols in [object.dynamic_symbols(), object.symbols()] {
        for symbol in symbols {
            let name = symbol.name().unwrap_or_default();
            if let Some(at) = names.iter().position(|one| *one == name)
                && symbol.is_definition()
            {
                found[at] = bias.wrapping_add(symbol.address());
            }
        }
        if found[0] != 0 {
            break;
        }
    }
    Some(found)
}

/// Whether the program of a process is built by Go: its frames are not those of `.eh_frame`.
#[cfg(target_arch = "x86_64")]
pub(crate) fn is_go(process: u32) -> bool {
    let Ok(file) = File::open(format!("/proc/{process}/exe")) else {
        return false;
    };
    let cache = ReadCache::new(file);
    let object = object::File::parse(&cache);
    object.is_ok_and(|object| object.section_by_name(".go.buildinfo").is_some())
}
