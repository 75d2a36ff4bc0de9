//! Stacks of Go programs: by the tables that Go's linker makes, which stripped programs have too.
//!
//! The stack pointer and the program counter of a thread in a system call are all that is needed:
//! the tables have the size of each frame. A library may open a connection in a goroutine of its
//! own. The goroutine that waits for that one is found by what they share (`waiting.rs`); its calls
//! follow those of the other. What does not fit ends the stack.

mod pclntab;
mod program;
mod sources;
mod waiting;

use crate::code_root::RawFrame;
use crate::process::{Mapping, Memory, ReadBytes};
use crate::{CodeKind, MAX_FRAMES, NotKnown, native};
use program::Program;
use sources::Sources;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// Addresses that are remembered.
const KNOWN: usize = 1 << 14;
/// Goroutines that wait for one another, at most.
const MAX_WAITING: usize = 4;
/// The function whose caller did not call: it was interrupted.
const INTERRUPTED: &str = "runtime.sigpanic";

/// A process of a Go program.
pub(crate) struct Go {
    program: Program,
    sources: Sources,
    known: HashMap<u64, Option<Arc<Site>>>,
}

/// What the tables have of an address.
struct Site {
    /// From the stack pointer to the return address.
    size: u64,
    /// Nothing called it.
    is_top: bool,
    /// The stack pointer is not the table's.
    is_opaque: bool,
    /// The innermost first: more than one where some are inlined.
    calls: Box<[Call]>,
}

#[derive(Clone)]
struct Call {
    function: Arc<str>,
    path: Option<Arc<str>>,
    line: Option<u32>,
}

/// A frame of a goroutine.
struct Frame {
    site: Arc<Site>,
    /// The stack pointer in it, and the one of its caller.
    start: u64,
    end: u64,
}

impl Go {
    /// The Go program of a process, with the user's code below a folder.
    pub(crate) fn new(process: u32, maps: &[Mapping], root: &Path) -> Result<Go, NotKnown> {
        let mut program = Program::find(process, maps).map_err(NotKnown::Runtime)?;
        let modules = std::mem::take(&mut program.modules);
        let library = program.tables.library(&Memory::of(process));
        Ok(Go {
            sources: Sources::new(modules, root, library),
            program,
            known: HashMap::new(),
        })
    }

    /// The calls in which a thread stands, then those of the goroutines that wait for it.
    pub(crate) fn stack(&mut self, thread: u32) -> Result<Vec<RawFrame>, NotKnown> {
        let (sp, pc) = native::registers(thread).ok_or(NotKnown::Unclear("its registers"))?;
        let memory = Memory::of(thread);
        let mut frames = self.walk(memory, &memory, sp, pc, false);
        if frames.is_empty() {
            return Err(NotKnown::Unclear("a call of other code than Go's"));
        }
        let mut all: Vec<RawFrame> = self.raw(&frames).collect();
        let mut stack: Box<dyn ReadBytes> = Box::new(memory);
        for _ in 0..MAX_WAITING {
            let Some(waiting) = self.waiting(memory, &*stack, &frames) else {
                break;
            };
            all.extend(self.raw(&waiting.frames[waiting.from..]));
            (frames, stack) = (waiting.frames, Box::new(waiting.stack));
        }
        all.truncate(MAX_FRAMES);
        Ok(all)
    }

    /// The frames of a goroutine, the innermost first.
    fn walk(
        &mut self,
        memory: Memory,
        stack: &dyn ReadBytes,
        sp: u64,
        pc: u64,
        is_parked: bool,
    ) -> Vec<Frame> {
        let mut frames: Vec<Frame> = Vec::new();
        let (mut sp, mut pc, mut is_return) = (sp, pc, is_parked);
        while frames.len() < MAX_FRAMES && sp.is_multiple_of(8) {
            let address = pc.saturating_sub(is_return.into());
            let Some(site) = self.site(memory, address) else {
                break;
            };
            let back = sp.checked_add(site.size);
            let Some(end) = back.and_then(|back| back.checked_add(8)) else {
                break;
            };
            let is_last = site.is_top || site.is_opaque;
            is_return = !site.calls.iter().any(|call| *call.function == *INTERRUPTED);
            frames.push(Frame {
                site,
                start: sp,
                end,
            });
            let Some(next) = stack.word(end - 8).filter(|_| !is_last) else {
                break;
            };
            (sp, pc) = (end, next);
        }
        frames
    }

    fn site(&mut self, memory: Memory, address: u64) -> Option<Arc<Site>> {
        if let Some(known) = self.known.get(&address) {
            return known.clone();
        }
        let site = self.program.tables.site(&memory, address).map(Arc::new);
        if self.known.len() >= KNOWN {
            self.known.clear();
        }
        self.known.insert(address, site.clone());
        site
    }

    fn raw<'a>(&'a self, frames: &'a [Frame]) -> impl Iterator<Item = RawFrame> + 'a {
        let calls = frames.iter().flat_map(|frame| &*frame.site.calls);
        calls.map(|call| {
            let named = call.path.as_ref().map(|path| self.sources.named(path));
            RawFrame {
                function: call.function.clone(),
                kind: named.as_ref().map_or(CodeKind::Other, |(_, kind)| *kind),
                path: named.map(|(name, _)| name),
                line: call.line,
                defined: None,
            }
        })
    }
}

/// For the fuzzer: the tables of a program with these bytes, and an address.
#[cfg(fuzzing)]
pub(crate) fn fuzz(bytes: &[u8], address: u64) {
    pclntab::fuzz(bytes, address);
}
