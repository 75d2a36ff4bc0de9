//! Where CPython keeps what leads to a stack, by its version.
//!
//! From 3.13 on the interpreter says it itself. The tables of earlier versions are of their headers
//! and of 64-bit Linux, and were tried with the interpreters; others are not read.

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
}

impl Layout {
    /// Of a version; `None` where it is not known.
    pub(crate) fn of(version: Version, own: Option<&DebugOffsets>) -> Option<Layout> {
        match (version, own) {
            (Version(3, 13), Some(own)) => own.layout(),
            (_, Some(_)) => None,
            _ if cfg!(target_arch = "x86_64") => table(version),
            _ => None,
        }
    }
}

/// The layouts of the versions that do not say it themselves.
fn table(version: Version) -> Option<Layout> {
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
        ..before_311
    };
    match version {
        Version(3, 8 | 9) => Some(before_311),
        Version(3, 10) => Some(Layout {
            frame_kind: FrameKind::Object { unit: 2 },
            frame_instruction: 96,
            line_format: LineFormat::Pep626,
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
            ..since_311
        }),
        _ => None,
    }
}

/// What an interpreter says of itself, from 3.13 on: `_Py_DebugOffsets` at the start of
/// `_PyRuntime`.
pub(crate) struct DebugOffsets(Vec<u8>);

/// The words of it, counted from its start.
mod place {
    pub(super) const VERSION: usize = 1;
    pub(super) const FREE_THREADED: usize = 2;
    pub(super) const INTERPRETERS_HEAD: usize = 5;
    pub(super) const NEXT_INTERPRETER: usize = 8;
    pub(super) const THREADS_HEAD: usize = 9;
    pub(super) const STATE_NEXT: usize = 21;
    pub(super) const STATE_INTERPRETER: usize = 22;
    pub(super) const STATE_FRAME: usize = 23;
    pub(super) const THREAD_ID: usize = 24;
    pub(super) const NATIVE_ID: usize = 25;
    pub(super) const FRAME_BACK: usize = 29;
    pub(super) const FRAME_CODE: usize = 30;
    pub(super) const FRAME_INSTRUCTION: usize = 31;
    pub(super) const FRAME_OWNER: usize = 33;
    pub(super) const CODE_FILE: usize = 35;
    pub(super) const CODE_NAME: usize = 37;
    pub(super) const CODE_LINES: usize = 38;
    pub(super) const CODE_FIRST_LINE: usize = 39;
    pub(super) const CODE_START: usize = 43;
}

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

    fn layout(&self) -> Option<Layout> {
        if self.word(place::FREE_THREADED) != 0 {
            return None;
        }
        let small = |at: usize| {
            let offset = self.word(at);
            (offset < LARGEST).then_some(offset as usize)
        };
        let large = |at: usize| Some(self.word(at)).filter(|offset| *offset < LARGEST_STATE);
        let after = |offsets: &[usize]| offsets.iter().max().map(|last| last + 8);
        let (state_next, state_interpreter) =
            (small(place::STATE_NEXT)?, small(place::STATE_INTERPRETER)?);
        let (state_frame, thread_id, native_id) = (
            small(place::STATE_FRAME)?,
            small(place::THREAD_ID)?,
            small(place::NATIVE_ID)?,
        );
        let (frame_back, frame_code, frame_instruction, frame_owner) = (
            small(place::FRAME_BACK)?,
            small(place::FRAME_CODE)?,
            small(place::FRAME_INSTRUCTION)?,
            small(place::FRAME_OWNER)?,
        );
        let (code_file, code_name, code_lines, code_first_line, code_start) = (
            small(place::CODE_FILE)?,
            small(place::CODE_NAME)?,
            small(place::CODE_LINES)?,
            small(place::CODE_FIRST_LINE)?,
            small(place::CODE_START)?,
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
        for version in [Version(3, 7), Version(3, 13), Version(3, 14), Version(2, 7)] {
            assert_eq!(table(version), None);
        }
    }

    #[test]
    fn the_interpreters_own_offsets_are_bounded() {
        let mut bytes = vec![0; 8 * WORDS];
        assert!(DebugOffsets(bytes.clone()).layout().is_some());
        bytes[8 * place::FRAME_BACK..][..8].copy_from_slice(&u64::MAX.to_ne_bytes());
        assert_eq!(DebugOffsets(bytes.clone()).layout(), None);
        bytes[8 * place::FREE_THREADED] = 1;
        assert_eq!(DebugOffsets(bytes).layout(), None);
    }
}
