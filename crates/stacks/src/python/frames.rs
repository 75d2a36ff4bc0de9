//! The frames of a thread of CPython, and the names and lines of their code.

use super::WorkingFolder;
use super::layout::{FrameKind, Layout};
use super::line_table;
use super::text::{self, TextLayout};
use super::waiting::{self, Site};
use crate::code_root::RawFrame;
use crate::process::{Memory, half, word};
use crate::{CodeKind, MAX_FRAMES};
use std::collections::HashMap;
use std::sync::Arc;

/// Code objects that are remembered.
const KNOWN: usize = 4096;
/// The largest table of lines that is read, in bytes.
const LARGEST_TABLE: u64 = 1 << 16;
/// Bits of a reference that are no part of its address.
pub(super) const TAGS: u64 = 3;

/// The loops that run tasks and callbacks: the end of a file's path, and functions.
const LOOPS: &[(&str, &[&str])] = &[
    ("asyncio/events.py", &["_run", "Handle._run"]),
    (
        "asyncio/base_events.py",
        &[
            "run_forever",
            "run_until_complete",
            "_run_once",
            "BaseEventLoop.run_forever",
            "BaseEventLoop.run_until_complete",
            "BaseEventLoop._run_once",
        ],
    ),
    ("asyncio/runners.py", &["run", "Runner.run"]),
    ("trio/_core/_run.py", &["unrolled_run", "run"]),
    ("curio/kernel.py", &["run", "Kernel.run"]),
    ("gevent/baseserver.py", &["_do_read", "BaseServer._do_read"]),
    (
        "twisted/internet/base.py",
        &["mainLoop", "_BasicReactor.mainLoop", "ReactorBase.mainLoop"],
    ),
    ("eventlet/hubs/hub.py", &["run", "BaseHub.run"]),
];

/// The number of calls up to a frame that another task waits for, the frame, and the function that
/// waits.
pub(super) type WaitedFor = (usize, Site, &'static str);

/// The code objects of a process.
pub(crate) struct Codes {
    /// The addresses of the types of code, of strings, of bytes.
    types: [u64; 3],
    folder: WorkingFolder,
    known: HashMap<CodeKey, Option<Arc<Code>>>,
}

/// A code object. Its address is used again when it is gone, and hardly with the same parts.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct CodeKey {
    address: u64,
    file: u64,
    name: u64,
    lines: u64,
    first_line: u32,
}

struct Code {
    name: Arc<str>,
    file: Arc<str>,
    table: Vec<u8>,
    kind: CodeKind,
}

impl Codes {
    pub(crate) fn new(types: [u64; 3], folder: WorkingFolder) -> Codes {
        Codes {
            types,
            folder,
            known: HashMap::new(),
        }
    }

    /// The frames of a thread, the innermost first, and the one that another task waits for; `None`
    /// if one of them cannot be read.
    pub(super) fn stack(
        &mut self,
        layout: &Layout,
        memory: Memory,
        state: &[u8],
    ) -> Option<(Vec<RawFrame>, Option<WaitedFor>)> {
        let mut next = word(state, layout.state_frame)?;
        if let Some(offset) = layout.cframe {
            next = memory.word(next.checked_add(offset)?)?;
        }
        let (mut frames, mut waited_for) = (Vec::new(), None);
        // with the interpreter's own
        for _ in 0..2 * MAX_FRAMES {
            if next == 0 || frames.len() >= MAX_FRAMES {
                break;
            }
            let (address, frame) = (next, memory.bytes(next, layout.frame_size)?);
            next = word(&frame, layout.frame_back)?;
            let owner = layout.frame_owner.and_then(|at| frame.get(at));
            if owner.is_some_and(|owner| *owner >= layout.first_inner_owner) {
                continue;
            }
            let (call, code) = self.frame(layout, memory, &frame)?;
            frames.push(call);
            if let Some(outer) = frames.last().and_then(waiting::outer) {
                let site = Site {
                    frame: address,
                    code,
                };
                waited_for = Some((frames.len(), site, outer));
            }
        }
        Some((frames, waited_for))
    }

    /// The call of a frame, and the address of its code.
    pub(super) fn frame(
        &mut self,
        layout: &Layout,
        memory: Memory,
        frame: &[u8],
    ) -> Option<(RawFrame, u64)> {
        let address = word(frame, layout.frame_code)? & !TAGS;
        let bytes = memory.bytes(address, layout.code_size)?;
        if word(&bytes, 8)? != self.types[0] {
            return None;
        }
        let key = CodeKey {
            address,
            file: word(&bytes, layout.code_file)?,
            name: word(&bytes, layout.code_name)?,
            lines: word(&bytes, layout.code_lines)?,
            first_line: half(&bytes, layout.code_first_line)?,
        };
        let code = self.code(layout, memory, key)?;
        let at = match layout.frame_kind {
            FrameKind::Object { unit } => {
                let last = half(frame, layout.frame_instruction)?;
                Some(u64::from(last) * unit).filter(|_| last.cast_signed() >= 0)
            }
            FrameKind::Structure => {
                let start = address.checked_add(layout.code_start as u64)?;
                let units = word(&bytes, 16)?.min(LARGEST_CODE);
                let at = word(frame, layout.frame_instruction)?.checked_sub(start);
                at.filter(|at| *at < 2 * units)
            }
        };
        let line =
            at.and_then(|at| line_table::line(layout.line_format, key.first_line, &code.table, at));
        let call = RawFrame {
            function: code.name.clone(),
            path: Some(code.file.clone()).filter(|file| !file.starts_with('<')),
            line,
            kind: code.kind,
            defined: Some(key.first_line),
        };
        Some((call, address))
    }

    fn code(&mut self, layout: &Layout, memory: Memory, key: CodeKey) -> Option<Arc<Code>> {
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let read = self.read(layout, memory, key).map(Arc::new);
        if self.known.len() >= KNOWN {
            self.known.clear();
        }
        self.known.insert(key, read.clone());
        read
    }

    fn read(&self, layout: &Layout, memory: Memory, key: CodeKey) -> Option<Code> {
        let [_, kind, bytes] = self.types;
        let texts = TextLayout {
            kind,
            head: layout.text_head,
            wide_head: layout.wide_text_head,
        };
        let file = text::read(memory, texts, key.file)?;
        let name = text::read(memory, texts, key.name)?;
        let head = memory.bytes(key.lines, 32)?;
        let length = word(&head, 16).filter(|length| *length <= LARGEST_TABLE)?;
        if word(&head, 8)? != bytes {
            return None;
        }
        let table = memory.bytes(key.lines.checked_add(32)?, length as usize)?;
        let is_loop =
            |(path, names): &(&str, &[&str])| file.ends_with(path) && names.contains(&&*name);
        let kind = match LOOPS.iter().any(is_loop) {
            true => CodeKind::Loop,
            false => CodeKind::Other,
        };
        // the main program of 3.8 is named as the command line named it
        let file = match file.starts_with(['/', '<']) {
            true => file,
            false => self.folder.join(&*file).to_string_lossy().into(),
        };
        Some(Code {
            name,
            file,
            table,
            kind,
        })
    }
}

/// The largest code, in units.
const LARGEST_CODE: u64 = 1 << 24;
