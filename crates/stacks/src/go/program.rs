//! What a Go program says of itself: its version, its modules, and where its tables are.
//!
//! Both are found in its data, because a program that another linker made has no sections for them.

use super::pclntab::{HEAD, Tables};
use crate::process::{Mapping, Memory, word};
use object::{Object, ObjectSegment, ReadCache};
use std::fs::File;
use std::ops::Range;

/// The size of the smallest page.
const PAGE: u64 = 4096;
/// Bytes of data that are searched, at most.
const MAX_DATA: u64 = 64 << 20;
/// Bytes that are searched at once, and how far two pieces overlap.
const PIECE: usize = 1 << 16;
const OVERLAP: usize = 512;
/// Between the head of the tables and the first one, at most.
const PADDING: u64 = 64;
/// The beginning of what the program says of its build.
const BUILD: &[u8; 14] = b"\xff Go buildinf:";
/// The longest such text.
const MAX_BUILD: u64 = 1 << 20;
/// Versions whose structures are known: 1.21 to 1.26.
pub(super) const VERSIONS: Range<u32> = 21..27;

/// A Go program in memory.
pub(super) struct Program {
    pub(super) tables: Tables,
    /// Its types: of the elements of a channel.
    pub(super) types: Range<u64>,
    /// The number after `go1.`.
    pub(super) version: u32,
    /// The modules of the user's code: their paths.
    pub(super) modules: Vec<String>,
}

impl Program {
    /// The program of a process; or the version, if its structures are not known.
    pub(super) fn find(process: u32, maps: &[Mapping]) -> Result<Program, String> {
        let unknown = || "Go of an unknown version".to_owned();
        let memory = Memory::of(process);
        let parts = data(process, maps).ok_or_else(unknown)?;
        let mut build = None;
        let mut found = None;
        for part in &parts.data {
            let mut at = part.start;
            while at < part.end && (build.is_none() || found.is_none()) {
                let length = usize::try_from(part.end - at).unwrap_or(PIECE).min(PIECE);
                let Some(bytes) = memory.bytes(at, length) else {
                    break;
                };
                build = build.or_else(|| build_info(memory, at, &bytes));
                found = found.or_else(|| tables(memory, &parts.all, &bytes));
                at += (length.saturating_sub(OVERLAP)).max(PAGE as usize) as u64;
            }
        }
        let (version, modules) = build.ok_or_else(unknown)?;
        let number = minor(&version).filter(|number| VERSIONS.contains(number));
        let version = number.ok_or_else(|| format!("Go {}", version.trim_start_matches("go")))?;
        let (tables, types) = found.ok_or("Go without its tables")?;
        Ok(Program {
            tables,
            types,
            version,
            modules,
        })
    }
}

/// Where a program is in memory: all of it, and its data.
struct Parts {
    all: Range<u64>,
    data: Vec<Range<u64>>,
}

fn data(process: u32, maps: &[Mapping]) -> Option<Parts> {
    let path = std::fs::read_link(format!("/proc/{process}/exe")).ok()?;
    let path = path.to_string_lossy();
    let cache = ReadCache::new(File::open(format!("/proc/{process}/exe")).ok()?);
    let object = object::File::parse(&cache).ok()?;
    let bias = object.segments().find_map(|segment| {
        let (offset, _) = segment.file_range();
        let mut own = maps.iter().filter(|one| one.path == *path);
        let mapped = own.find(|one| one.offset == offset - offset % PAGE)?;
        let address = segment.address() - segment.address() % PAGE;
        Some(mapped.start.wrapping_sub(address))
    })?;
    let range = |address: u64, size: u64| {
        let start = bias.wrapping_add(address);
        start..start.saturating_add(size)
    };
    let all = object
        .segments()
        .map(|one| range(one.address(), one.size()))
        .reduce(|a, b| a.start.min(b.start)..a.end.max(b.end))?;
    let mut left = MAX_DATA;
    let mut data = Vec::new();
    for segment in object.segments().filter(|one| one.permissions().writable()) {
        // the rest has no bytes in the file
        let (_, size) = segment.file_range();
        let size = size.min(left);
        left -= size;
        data.push(range(segment.address(), size));
    }
    Some(Parts { all, data })
}

/// The version of Go and the modules of the user, if the text starts in these bytes.
fn build_info(memory: Memory, at: u64, bytes: &[u8]) -> Option<(String, Vec<String>)> {
    let start = (0..bytes.len())
        .step_by(16)
        .find(|start| bytes[*start..].starts_with(BUILD))?;
    // the texts follow the head
    let flags = *bytes.get(start + 15)?;
    (flags & 2 != 0).then_some(())?;
    let mut at = at + start as u64 + 32;
    let version = text(memory, &mut at)?;
    let modules = text(memory, &mut at).unwrap_or_default();
    Some((version, own_modules(&modules)))
}

/// A text after its length; what is no text is replaced.
fn text(memory: Memory, at: &mut u64) -> Option<String> {
    let (mut length, mut shift) = (0u64, 0);
    loop {
        let byte = memory.bytes(*at, 1)?[0];
        *at += 1;
        length |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            break;
        }
        (shift < 28).then_some(())?;
    }
    (length <= MAX_BUILD).then_some(())?;
    let mut bytes = Vec::new();
    while (bytes.len() as u64) < length {
        let left = (length - bytes.len() as u64).min(PIECE as u64);
        bytes.extend(memory.bytes(*at, left as usize)?);
        *at += left;
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The modules that are the user's: that of the program, and those without a version.
fn own_modules(text: &str) -> Vec<String> {
    let is_own = |line: &&str| {
        let mut words = line.split('\t').skip(1);
        let version = words.nth(1);
        line.starts_with("mod\t") || line.starts_with("dep\t") && version == Some("(devel)")
    };
    let own = text.lines().filter(is_own);
    let own = own.filter_map(|line| line.split('\t').nth(1));
    own.filter(|path| !matches!(*path, "std" | "cmd" | ""))
        .map(str::to_owned)
        .collect()
}

/// The number after `go1.`.
fn minor(version: &str) -> Option<u32> {
    let rest = version.strip_prefix("go1.")?;
    let end = rest.find(|one: char| !one.is_ascii_digit());
    rest[..end.unwrap_or(rest.len())].parse().ok()
}

/// The tables, if the program's list of its own parts is in these bytes. It starts with the
/// address of the tables and five of their parts.
fn tables(memory: Memory, all: &Range<u64>, bytes: &[u8]) -> Option<(Tables, Range<u64>)> {
    let last = bytes.len().saturating_sub(42 * 8);
    (0..last).step_by(8).find_map(|start| {
        let field = |nth: usize| word(bytes, start + nth * 8);
        let head = field(0).filter(|head| all.contains(head))?;
        let names = head + HEAD as u64;
        ((names..names + PADDING).contains(&field(1)?) && field(2)? == field(3)?).then_some(())?;
        // parts that follow one another, and the rows of functions at the start of the last one
        let parts = [field(1)?, field(4)?, field(7)?, field(10)?, field(13)?];
        parts.is_sorted().then_some(())?;
        (field(16)? == field(13)? && field(14)? == field(15)?).then_some(())?;
        let end = field(13)?.checked_add(field(14)?)?;
        let (text, types, lists) = (field(22)?..field(23)?, field(37)?..field(38)?, field(40)?);
        let are_inside = [
            end.saturating_sub(1),
            text.start,
            text.end.saturating_sub(1),
            types.start,
            types.end,
            lists,
        ];
        are_inside
            .iter()
            .all(|one| all.contains(one))
            .then_some(())?;
        let tables = Tables::new(&memory, head, end, (text.start, text.end), lists)?;
        tables.has_parts(parts).then_some((tables, types))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_modules_are_those_without_a_version() {
        let text = "path\texample.com/app\nmod\texample.com/app\tv0.0.0+dirty\t\n\
             dep\tgolang.org/x/net\tv0.1.0\th1:x\ndep\texample.com/own\t(devel)\t\n";
        assert_eq!(own_modules(text), ["example.com/app", "example.com/own"]);
        assert!(own_modules("mod\tcmd\t(devel)\n").is_empty());
    }

    #[test]
    fn the_version_is_its_second_number() {
        for (text, number) in [
            ("go1.21.13", Some(21)),
            ("go1.26rc1", Some(26)),
            ("go1.25 X:greenteagc", Some(25)),
            ("devel go1.27-abc", None),
            ("go2.1", None),
        ] {
            assert_eq!(minor(text), number, "{text}");
        }
    }
}
