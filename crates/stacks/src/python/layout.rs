//! Where CPython keeps what leads to a stack, by its version.
//!
//! From 3.13 on the interpreter says it itself. The tables of earlier versions are of their headers
//! and of 64-bit Linux, and were tried with the interpreters; others are not read.

use super::waiting::{Attributes, Suspended, ValueStack};
use crate::process::{Memory, half, word};
use std::fmt;

/// A version of Python.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version(pub(crate) u8, pub(crate) u8);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

impl Version {
    /// From the constant that there is since 3.11, else from the name of the file.
    pub(crate) fn of(memory: Memory, runtime: u64, constant: u64, path: &str) -> Option<Version> {
        if let Some(own) = DebugOffsets::read(memory, runtime) {
            return Some(own.version());
        }
        let mut bytes = [0; 4];
        if memory.fill(constant, &mut bytes).is_some() {
            return Some(Version::of_hex(half(&bytes, 0)?));
        }
        let name = path.rsplit('/').next()?;
        let (_, digits) = name.split_once("python3.")?;
        let end = digits.find(|one: char| !one.is_ascii_digit());
        let minor = &digits[..end.unwrap_or(digits.len())];
        Some(Version(3, minor.parse().ok()?))
    }

    fn of_hex(hex: u32) -> Version {
        Version((hex >> 24) as u8, (hex >> 16) as u8)
    }
}

/// How a frame is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameKind {
    /// An object; its last instruction is a number of bytes (3.8, 3.9) or of code units (3.10).
    Object {
        /// Bytes for each number.
        unit: u64,
    },
    /// A structure of the interpreter; its instruction is an address.
    Structure,
}

/// How the lines of a code object are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineFormat {
    /// `co_lnotab`.
    Lnotab,
    /// `co_linetable` of PEP 626.
    Pep626,
    /// `co_linetable` with columns.
    Locations,
}

/// Offsets in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) interpreters_head: u64,
    pub(crate) next_interpreter: u64,
    pub(crate) threads_head: u64,
    pub(crate) state_size: usize,
    pub(crate) state_next: usize,
    pub(crate) state_interpreter: usize,
    pub(crate) thread_id: usize,
    pub(crate) native_id: Option<usize>,
    /// Of the frame, or of what leads to it.
    pub(crate) state_frame: usize,
    /// Of the frame in what the thread state leads to.
    pub(crate) cframe: Option<u64>,
    pub(crate) frame_kind: FrameKind,
    pub(crate) frame_size: usize,
    pub(crate) frame_back: usize,
    pub(crate) frame_code: usize,
    pub(crate) frame_instruction: usize,
    pub(crate) frame_owner: Option<usize>,
    /// Owners from this one on are the interpreter itself.
    pub(crate) first_inner_owner: u8,
    pub(crate) code_size: usize,
    pub(crate) code_file: usize,
    pub(crate) code_name: usize,
    pub(crate) code_first_line: usize,
    pub(crate) code_lines: usize,
    /// Where the instructions begin in the code object.
    pub(crate) code_start: usize,
    pub(crate) line_format: LineFormat,
    pub(crate) text_head: u64,
    pub(crate) wide_text_head: u64,
    /// Of tasks that wait, where it is known.
    pub(crate) suspended: Option<Suspended>,
}

impl Layout {
    /// Of a version; `None` where it is not known.
    pub(crate) fn of(version: Version, own: Option<&DebugOffsets>) -> Option<Layout> {
        match (version, own) {
            (Version(3, 13), Some(own)) => own.layout(&PLACES_313),
            (Version(3, 14), Some(own)) => own.layout(&PLACES_314),
            (_, Some(_)) => None,
            _ if cfg!(target_arch = "x86_64") => table(version),
            _ => None,
        }
    }
}

/// Of 3.13, on 64-bit machines.
const SUSPENDED: Suspended = Suspended {
    frame: 72,
    state: Some(67),
    variables: 72,
    values: ValueStack::Count(64),
    count: 72,
    attributes: Attributes::Behind,
};

/// The layouts of the versions that do not say it themselves.
pub(super) fn table(version: Version) -> Option<Layout> {
    let suspended = Suspended {
        frame: 16,
        state: None,
        variables: 360,
        values: ValueStack::End(72),
        count: 0,
        attributes: Attributes::Dictionary,
    };
    let before_311 = Layout {
        interpreters_head: 32,
        next_interpreter: 0,
        threads_head: 8,
        state_size: 264,
        state_next: 8,
        state_interpreter: 16,
        thread_id: 176,
        native_id: None,
        state_frame: 24,
        cframe: None,
        frame_kind: FrameKind::Object { unit: 1 },
        frame_size: 112,
        frame_back: 24,
        frame_code: 32,
        frame_instruction: 104,
        frame_owner: None,
        first_inner_owner: u8::MAX,
        code_size: 176,
        code_file: 104,
        code_name: 112,
        code_first_line: 40,
        code_lines: 120,
        code_start: 0,
        line_format: LineFormat::Lnotab,
        text_head: 48,
        wide_text_head: 72,
        suspended: Some(suspended),
    };
    let since_311 = Layout {
        interpreters_head: 40,
        state_size: 288,
        native_id: Some(160),
        thread_id: 152,
        threads_head: 16,
        state_frame: 56,
        cframe: Some(8),
        frame_kind: FrameKind::Structure,
        frame_size: 72,
        frame_back: 48,
        frame_code: 32,
        frame_instruction: 56,
        frame_owner: Some(69),
        code_size: 192,
        code_file: 112,
        code_name: 128,
        code_first_line: 72,
        code_lines: 136,
        code_start: 184,
        line_format: LineFormat::Locations,
        suspended: Some(Suspended {
            frame: 80,
            state: Some(75),
            count: 76,
            attributes: Attributes::Array,
            ..SUSPENDED
        }),
        ..before_311
    };
    match version {
        Version(3, 8 | 9) => Some(before_311),
        Version(3, 10) => Some(Layout {
            frame_kind: FrameKind::Object { unit: 2 },
            frame_instruction: 96,
            line_format: LineFormat::Pep626,
            suspended: Some(Suspended {
                variables: 352,
                values: ValueStack::Depth(80),
                ..suspended
            }),
            ..before_311
        }),
        Version(3, 11) => Some(since_311),
        Version(3, 12) => Some(Layout {
            native_id: Some(144),
            thread_id: 136,
            threads_head: 72,
            cframe: Some(0),
            frame_back: 8,
            frame_code: 0,
            frame_owner: Some(70),
            first_inner_owner: 3,
            code_size: 200,
            code_first_line: 68,
            code_start: 192,
            text_head: 40,
            wide_text_head: 56,
            suspended: Some(Suspended {
                attributes: Attributes::Either,
                ..SUSPENDED
            }),
            ..since_311
        }),
        _ => None,
    }
}

/// What an interpreter says of itself, from 3.13 on: `_Py_DebugOffsets` at the start of
/// `_PyRuntime`.
pub(crate) struct DebugOffsets(Vec<u8>);

/// The words of it that are the same in each version, counted from its start.
mod place {
    pub(super) const VERSION: usize = 1;
    pub(super) const FREE_THREADED: usize = 2;
    pub(super) const INTERPRETERS_HEAD: usize = 5;
    pub(super) const NEXT_INTERPRETER: usize = 8;
    pub(super) const THREADS_HEAD: usize = 9;
}

/// The first words of it about a structure, by the version.
struct Places {
    /// The next thread state, its interpreter, its frame, and both ids of its thread.
    state: usize,
    /// The frame before, the code, and the instruction.
    frame: usize,
    frame_owner: usize,
    /// The file.
    code: usize,
    code_start: usize,
    suspended: Suspended,
}

/// Of 3.13 and 3.14.
const PLACES_313: Places = Places {
    state: 21,
    frame: 29,
    frame_owner: 33,
    code: 35,
    code_start: 43,
    suspended: SUSPENDED,
};
const PLACES_314: Places = Places {
    state: 24,
    frame: 32,
    frame_owner: 36,
    code: 40,
    code_start: 48,
    suspended: Suspended {
        variables: 80,
        values: ValueStack::End(64),
        ..SUSPENDED
    },
};

/// Its cookie.
const COOKIE: &[u8; 8] = b"xdebugpy";
/// Words that are read of it.
const WORDS: usize = 80;
/// No structure is larger; the interpreter's state is, by far.
const LARGEST: u64 = 4096;
const LARGEST_STATE: u64 = 1 << 24;

impl DebugOffsets {
    pub(crate) fn read(memory: Memory, runtime: u64) -> Option<DebugOffsets> {
        let bytes = memory.bytes(runtime, 8 * WORDS)?;
        bytes.starts_with(COOKIE).then_some(DebugOffsets(bytes))
    }

    fn word(&self, place: usize) -> u64 {
        word(&self.0, 8 * place).unwrap_or(u64::MAX)
    }

    fn version(&self) -> Version {
        Version::of_hex(self.word(place::VERSION) as u32)
    }

    fn layout(&self, places: &Places) -> Option<Layout> {
        if self.word(place::FREE_THREADED) != 0 {
            return None;
        }
        let small = |at: usize| {
            let offset = self.word(at);
            (offset < LARGEST).then_some(offset as usize)
        };
        let large = |at: usize| Some(self.word(at)).filter(|offset| *offset < LARGEST_STATE);
        let after = |offsets: &[usize]| offsets.iter().max().map(|last| last + 8);
        let (state_next, state_interpreter) = (small(places.state)?, small(places.state + 1)?);
        let (state_frame, thread_id, native_id) = (
            small(places.state + 2)?,
            small(places.state + 3)?,
            small(places.state + 4)?,
        );
        let (frame_back, frame_code, frame_instruction, frame_owner) = (
            small(places.frame)?,
            small(places.frame + 1)?,
            small(places.frame + 2)?,
            small(places.frame_owner)?,
        );
        let (code_file, code_name, code_lines, code_first_line, code_start) = (
            small(places.code)?,
            small(places.code + 2)?,
            small(places.code + 3)?,
            small(places.code + 4)?,
            small(places.code_start)?,
        );
        Some(Layout {
            interpreters_head: large(place::INTERPRETERS_HEAD)?,
            next_interpreter: large(place::NEXT_INTERPRETER)?,
            threads_head: large(place::THREADS_HEAD)?,
            state_size: after(&[
                state_next,
                state_interpreter,
                state_frame,
                thread_id,
                native_id,
            ])?,
            state_next,
            state_interpreter,
            thread_id,
            native_id: Some(native_id),
            state_frame,
            cframe: None,
            frame_kind: FrameKind::Structure,
            frame_size: after(&[frame_back, frame_code, frame_instruction, frame_owner])?,
            frame_back,
            frame_code,
            frame_instruction,
            frame_owner: Some(frame_owner),
            first_inner_owner: 3,
            code_size: after(&[
                code_file,
                code_name,
                code_lines,
                code_first_line,
                code_start,
            ])?,
            code_file,
            code_name,
            code_first_line,
            code_lines,
            code_start,
            line_format: LineFormat::Locations,
            text_head: 40,
            wide_text_head: 56,
            suspended: cfg!(target_arch = "x86_64").then_some(places.suspended),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_that_was_not_tried_has_no_layout() {
        for minor in 8..=12 {
            assert!(table(Version(3, minor)).is_some());
        }
        for version in [Version(3, 7), Version(3, 13), Version(3, 15), Version(2, 7)] {
            assert_eq!(table(version), None);
        }
    }

    #[test]
    fn the_interpreters_own_offsets_are_bounded() {
        for places in [PLACES_313, PLACES_314] {
            let mut bytes = vec![0; 8 * WORDS];
            assert!(DebugOffsets(bytes.clone()).layout(&places).is_some());
            bytes[8 * places.frame..][..8].copy_from_slice(&u64::MAX.to_ne_bytes());
            assert_eq!(DebugOffsets(bytes.clone()).layout(&places), None);
            bytes[8 * place::FREE_THREADED] = 1;
            assert_eq!(DebugOffsets(bytes).layout(&places), None);
        }
    }
}
