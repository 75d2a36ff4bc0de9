//! Files with code: their unwind tables and their symbols. Only the needed parts of a file are
//! read.
//!
//! The files are foreign input: an unreadable part gives no names and no tables, and nothing
//! panics.

use super::address_space::CodeLocation;
use super::perf_map::PerfMap;
use crate::Frame;
use framehop::ExplicitModuleSectionInfo;
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, ReadCache, SymbolKind};
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Size of the smallest page.
const PAGE: u64 = 4096;
/// Limit of the bytes of a section that are read.
const MAX_SECTION: u64 = 512 * 1024 * 1024;

/// Number of a file with code.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct ImageId(u32);

/// All files with sampled code.
#[derive(Default)]
pub(crate) struct Images {
    ids: HashMap<Vec<u8>, ImageId>,
    images: Vec<Image>,
    made: HashMap<u32, PerfMap>,
    names: HashMap<(ImageId, u64), Option<Arc<str>>>,
}

struct Image {
    /// Stays open: the file is in the root of a process that may end before names are resolved.
    file: Option<File>,
    name: Arc<str>,
    /// Segments of code: offset in the file, length, address.
    segments: Vec<(u64, u64, u64)>,
    sections: ExplicitModuleSectionInfo<Arc<[u8]>>,
    symbols: Option<Vec<Symbol>>,
}

struct Symbol {
    start: u64,
    end: u64,
    name: Arc<str>,
}

impl Images {
    /// Opens the file at a path. The path is resolved in the root of a living process, which may
    /// differ from ours.
    pub(super) fn open(&mut self, process: u32, path: &[u8]) -> ImageId {
        if let Some(id) = self.ids.get(path) {
            return *id;
        }
        let own = Path::new(std::ffi::OsStr::from_bytes(path));
        let inside = format!("/proc/{process}/root");
        let inside = Path::new(&inside).join(own.strip_prefix("/").unwrap_or(own));
        let path_now = if inside.exists() {
            inside
        } else {
            own.to_owned()
        };
        let image = Image::read(&path_now, own);
        let id = ImageId(self.images.len() as u32);
        self.images.push(image);
        self.ids.insert(path.to_vec(), id);
        id
    }

    /// Converts an offset in the file to the file's own address.
    pub(super) fn address(&self, id: ImageId, offset: u64) -> Option<u64> {
        let image = &self.images[id.0 as usize];
        let (start, _, address) = image
            .segments
            .iter()
            .find(|(start, len, _)| offset >= *start && offset - start < *len)?;
        Some(address.wrapping_add(offset - start))
    }

    pub(super) fn sections(&self, id: ImageId) -> ExplicitModuleSectionInfo<Arc<[u8]>> {
        self.images[id.0 as usize].sections.clone()
    }

    /// Keeps the names of a process's generated code.
    pub(crate) fn keep_made(&mut self, process: u32, mut made: PerfMap) {
        made.read_on(process);
        if !made.is_empty() {
            self.made.insert(process, made);
        }
    }

    /// The files with names of generated code.
    pub(crate) fn maps(&self) -> Vec<PathBuf> {
        self.made.keys().copied().map(PerfMap::path).collect()
    }

    /// The frame of an address, with its name.
    pub(crate) fn frame(&mut self, place: &CodeLocation) -> Frame {
        match place {
            CodeLocation::File(id, address) => {
                let name = self.name(*id, *address);
                Frame::File(self.images[id.0 as usize].name.clone(), name)
            }
            CodeLocation::Made(process, address) => {
                Frame::Made(self.made.get(process).and_then(|made| made.name(*address)))
            }
        }
    }

    fn name(&mut self, id: ImageId, address: u64) -> Option<Arc<str>> {
        if let Some(name) = self.names.get(&(id, address)) {
            return name.clone();
        }
        let image = &mut self.images[id.0 as usize];
        let symbols = image
            .symbols
            .get_or_insert_with(|| image.file.take().map(read_symbols).unwrap_or_default());
        let after = symbols.partition_point(|symbol| symbol.start <= address);
        let symbol = after.checked_sub(1).map(|place| &symbols[place]);
        let name = symbol
            .filter(|symbol| address < symbol.end)
            .map(|symbol| Arc::from(demangle(&symbol.name)));
        self.names.insert((id, address), name.clone());
        name
    }
}

impl Image {
    fn read(path: &Path, own: &Path) -> Image {
        let name = own.file_name().unwrap_or(own.as_os_str()).to_string_lossy();
        let mut image = Image {
            file: File::open(path).ok(),
            name: name.as_ref().into(),
            segments: Vec::new(),
            sections: ExplicitModuleSectionInfo::default(),
            symbols: None,
        };
        let Some(Ok(file)) = image.file.as_ref().map(File::try_clone) else {
            return image;
        };
        let cache = ReadCache::new(file);
        let Ok(object) = object::File::parse(&cache) else {
            return image;
        };
        image.segments = object
            .segments()
            .filter(|segment| segment.permissions().executable())
            .map(|segment| {
                let (offset, len) = segment.file_range();
                // the kernel maps whole pages
                let before = offset % PAGE;
                (
                    offset - before,
                    len.saturating_add(before),
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
            let (section, _) = section(name)?;
            if section.size() > MAX_SECTION {
                return None;
            }
            Some(section.uncompressed_data().ok()?.into())
        };
        let range = |name: &str| section(name).map(|(_, range)| range);
        image.sections = ExplicitModuleSectionInfo {
            base_svma: 0,
            text_svma: range(".text"),
            got_svma: range(".got"),
            eh_frame_svma: range(".eh_frame"),
            eh_frame: data(".eh_frame"),
            eh_frame_hdr_svma: range(".eh_frame_hdr"),
            eh_frame_hdr: data(".eh_frame_hdr"),
            debug_frame: data(".debug_frame"),
            ..ExplicitModuleSectionInfo::default()
        };
        image
    }
}

/// The functions of a file, sorted by address.
fn read_symbols(file: File) -> Vec<Symbol> {
    let cache = ReadCache::new(file);
    let Ok(object) = object::File::parse(&cache) else {
        return Vec::new();
    };
    let mut symbols: Vec<Symbol> = object
        .symbols()
        .chain(object.dynamic_symbols())
        .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition())
        .filter_map(|symbol| {
            Some(Symbol {
                start: symbol.address(),
                end: symbol.address().checked_add(symbol.size())?,
                name: symbol.name().ok()?.into(),
            })
        })
        .collect();
    symbols.sort_by_key(|symbol| (symbol.start, symbol.end));
    // several names for one address: the longest range is the function's
    symbols.reverse();
    symbols.dedup_by_key(|symbol| symbol.start);
    symbols.reverse();
    // assembly has no sizes: it ends at the next symbol
    let starts: Vec<u64> = symbols.iter().skip(1).map(|symbol| symbol.start).collect();
    for (symbol, next) in symbols.iter_mut().zip(starts) {
        if symbol.end == symbol.start {
            symbol.end = next;
        }
    }
    symbols
}

/// The name as in the source, without types of arguments.
fn demangle(name: &str) -> String {
    if let Ok(demangled) = rustc_demangle::try_demangle(name) {
        return format!("{demangled:#}");
    }
    let options = cpp_demangle::DemangleOptions::new()
        .no_params()
        .no_return_type();
    cpp_demangle::Symbol::new(name)
        .ok()
        .and_then(|symbol| symbol.demangle_with_options(&options).ok())
        .unwrap_or_else(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_of_a_file_is_found_by_its_address() {
        let own = std::env::current_exe().unwrap();
        let symbols = read_symbols(File::open(own).unwrap());
        let wanted = "a_function_of_a_file_is_found_by_its_address";
        assert!(
            symbols
                .iter()
                .any(|symbol| demangle(&symbol.name).contains(wanted)),
            "{}",
            symbols.len()
        );
    }
}
