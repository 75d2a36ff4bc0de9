//! A file with code: its unwind tables, its functions, the lines of its addresses.
//!
//! The files are foreign input: what cannot be read has no tables and no lines.

use super::Call;
use crate::process::{Mapping, file_of};
use addr2line::Loader;
use framehop::ExplicitModuleSectionInfo;
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, ReadCache, SymbolKind};
use std::cell::OnceCell;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

/// The size of the smallest page.
const PAGE: u64 = 4096;
/// Limit of the bytes of a section that are read.
const MAX_SECTION: u64 = 256 << 20;
/// Calls at one address, with those that are inlined.
const MAX_INLINED: usize = 64;

pub(super) struct Image {
    path: PathBuf,
    pub(super) sections: ExplicitModuleSectionInfo<Arc<[u8]>>,
    pub(super) has_code: bool,
    /// Offset in the file, length, address.
    segments: Vec<(u64, u64, u64)>,
    /// Start and end, sorted.
    functions: Vec<(u64, u64)>,
    /// Opened when the first line is asked for.
    lines: OnceCell<Option<Loader>>,
}

impl Image {
    pub(super) fn open(process: u32, path: &str) -> Option<Image> {
        let path = file_of(process, path);
        let cache = ReadCache::new(File::open(&path).ok()?);
        let object = object::File::parse(&cache).ok()?;
        let segments: Vec<(u64, u64, u64)> = object
            .segments()
            .filter(|segment| segment.permissions().executable())
            .map(|segment| {
                let (offset, length) = segment.file_range();
                let before = offset % PAGE;
                (
                    offset - before,
                    length.saturating_add(before),
                    segment.address().wrapping_sub(before),
                )
            })
            .collect();
        let section = |name: &str| {
            let section = object.section_by_name(name)?;
            let range = section.address()..section.address().saturating_add(section.size());
            Some((section, range))
        };
        let data = |name: &str| -> Option<Arc<[u8]>> {
            let (section, _) =
                section(name).filter(|(section, _)| section.size() <= MAX_SECTION)?;
            Some(section.uncompressed_data().ok()?.into())
        };
        let range = |name: &str| section(name).map(|(_, range)| range);
        let mut functions: Vec<(u64, u64)> = object
            .symbols()
            .chain(object.dynamic_symbols())
            .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition())
            .map(|symbol| {
                (
                    symbol.address(),
                    symbol.address().saturating_add(symbol.size()),
                )
            })
            .collect();
        functions.sort_unstable();
        functions.dedup();
        Some(Image {
            has_code: range(".text").is_some(),
            sections: ExplicitModuleSectionInfo {
                base_svma: 0,
                text_svma: range(".text"),
                got_svma: range(".got"),
                eh_frame_svma: range(".eh_frame"),
                eh_frame: data(".eh_frame"),
                eh_frame_hdr_svma: range(".eh_frame_hdr"),
                eh_frame_hdr: data(".eh_frame_hdr"),
                ..ExplicitModuleSectionInfo::default()
            },
            path,
            segments,
            functions,
            lines: OnceCell::new(),
        })
    }

    /// What is added to the file's addresses where it is mapped like this.
    pub(super) fn bias(&self, map: &Mapping) -> Option<u64> {
        let mut segments = self.segments.iter();
        let (start, _, address) = segments
            .find(|(start, length, _)| map.offset >= *start && map.offset - start < *length)?;
        Some(
            map.start
                .wrapping_sub(address.wrapping_add(map.offset - start)),
        )
    }

    /// The start of the function at an address.
    pub(super) fn function_start(&self, address: u64) -> Option<u64> {
        let after = self
            .functions
            .partition_point(|(start, _)| *start <= address);
        let (start, end) = *self.functions[..after].last()?;
        (address < end).then_some(start)
    }

    /// Whether a function starts at an address.
    pub(super) fn is_function(&self, address: u64) -> bool {
        self.function_start(address) == Some(address)
    }

    /// The calls at an address, the innermost first.
    pub(super) fn calls(&self, address: u64) -> Vec<Call> {
        let lines = self.lines.get_or_init(|| Loader::new(&self.path).ok());
        let Some(lines) = lines else {
            return Vec::new();
        };
        let mut calls = Vec::new();
        if let Ok(mut frames) = lines.find_frames(address) {
            while let Ok(Some(frame)) = frames.next() {
                let name = frame.function.as_ref();
                let name = name.and_then(|name| Some(name.demangle().ok()?.into_owned()));
                let location = frame.location;
                calls.push(Call {
                    function: name.as_deref().map_or("?", without_hash).into(),
                    path: location.as_ref().and_then(|at| at.file).map(Arc::from),
                    line: location.and_then(|at| at.line).filter(|line| *line > 0),
                });
                if calls.len() >= MAX_INLINED {
                    break;
                }
            }
        }
        // code without lines has a name at most
        if calls.is_empty()
            && let Some(name) = lines.find_symbol(address)
        {
            let name = addr2line::demangle_auto(name.into(), None);
            calls.push(Call {
                function: without_hash(&name).into(),
                path: None,
                line: None,
            });
        }
        calls
    }
}

/// The name of a function of Rust without the hash at its end.
fn without_hash(name: &str) -> &str {
    match name.rsplit_once("::h") {
        Some((name, hash))
            if hash.len() == 16 && hash.bytes().all(|one| one.is_ascii_hexdigit()) =>
        {
            name
        }
        _ => name,
    }
}
