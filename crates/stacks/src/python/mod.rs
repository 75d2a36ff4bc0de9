//! Stacks of CPython: the frames that its thread state leads to.
//!
//! The interpreter's structures are read from outside. Each is checked before it is believed: a
//! thread state names its interpreter, a code object and a string have the addresses of their
//! types. A structure that does not fit ends the reading: the stack is then not known. The thread's
//! own frames stand still, although other threads may run.

mod frames;
mod layout;
mod line_table;
mod sources;
mod text;
mod waiting;

use crate::code_root::RawFrame;
use crate::process::{Mapping, Memory, half, inner_id, word};
use crate::{MAX_FRAMES, NotKnown, elf};
use frames::Codes;
use layout::{DebugOffsets, Layout, Version};
use std::collections::HashMap;
use std::path::PathBuf;
use waiting::{Search, Types};

pub(crate) use sources::PythonSources;

/// Threads and interpreters that are looked at, at most.
const MAX_THREADS: usize = 8192;
const MAX_INTERPRETERS: usize = 64;
/// Thread states that are remembered.
const KNOWN: usize = 1024;
/// Where the C library of a thread keeps the thread's id, from the address on that is its
/// pthread_t: glibc and musl on 64-bit machines. Before 3.11 a thread state has no other id.
#[cfg(target_arch = "x86_64")]
const TID_OFFSETS: [usize; 2] = [720, 48];
#[cfg(not(target_arch = "x86_64"))]
const TID_OFFSETS: [usize; 0] = [];

/// A process that runs CPython.
pub(crate) struct Python {
    layout: Layout,
    runtime: u64,
    codes: Codes,
    types: Types,
    /// Thread states by the thread.
    states: HashMap<u32, u64>,
}

/// What of an interpreter is found by its name.
const SYMBOLS: [&str; 5] = [
    "_PyRuntime",
    "PyCode_Type",
    "PyUnicode_Type",
    "PyBytes_Type",
    "Py_Version",
];

impl Python {
    /// The interpreter in a process; `None` where there is none.
    pub(crate) fn find(process: u32, maps: &[Mapping]) -> Option<Result<Python, NotKnown>> {
        let mut paths: Vec<&str> = maps
            .iter()
            .map(|map| &*map.path)
            .filter(|path| may_be_python(path))
            .collect();
        paths.dedup();
        // a program may be a few lines around its library
        paths.sort_by_key(|path| !path.contains("libpython"));
        let found = paths.into_iter().find_map(|path| {
            let found = elf::addresses(process, maps, path, SYMBOLS)?;
            (found[0] != 0).then_some((path, found))
        });
        let (path, [runtime, code, unicode, bytes, version]) = found?;
        if [code, unicode, bytes].contains(&0) {
            return Some(Err(NotKnown::Runtime("Python without symbols".to_owned())));
        }
        let memory = Memory::of(process);
        let version = Version::of(memory, runtime, version, path);
        let Some(version) = version else {
            return Some(Err(NotKnown::Runtime(
                "Python of an unknown version".to_owned(),
            )));
        };
        let own = DebugOffsets::read(memory, runtime);
        let Some(layout) = Layout::of(version, own.as_ref()) else {
            return Some(Err(NotKnown::Runtime(format!("Python {version}"))));
        };
        let folder = std::fs::read_link(format!("/proc/{process}/cwd")).unwrap_or_default();
        Some(Ok(Python {
            codes: Codes::new([code, unicode, bytes], folder),
            types: Types::default(),
            layout,
            runtime,
            states: HashMap::new(),
        }))
    }

    /// The calls in which a thread stands, and those of a task that waits for them.
    pub(crate) fn stack(&mut self, process: u32, thread: u32) -> Result<Vec<RawFrame>, NotKnown> {
        let memory = Memory::of(thread);
        let inner = inner_id(thread).ok_or(NotKnown::Unreadable)?;
        let state = self
            .state(memory, inner, process == thread)
            .ok_or(NotKnown::Unclear("a thread of Python's own"))?;
        let read = self.codes.stack(&self.layout, memory, &state);
        let (mut frames, waited_for) = read.ok_or(NotKnown::Unclear("a frame of Python"))?;
        if let (Some((count, inner, outer)), Some(suspended)) = (waited_for, self.layout.suspended)
        {
            let mut search = Search {
                codes: &mut self.codes,
                types: &mut self.types,
                layout: &self.layout,
                suspended,
                memory,
            };
            let waiting = search.waiting(&inner, outer).unwrap_or_default();
            frames.splice(count..count, waiting);
            frames.truncate(MAX_FRAMES);
        }
        Ok(frames)
    }

    /// The thread state of a thread, copied.
    fn state(&mut self, memory: Memory, thread: u32, is_main: bool) -> Option<Vec<u8>> {
        if let Some(&known) = self.states.get(&thread)
            && let Some(state) = self.copy(memory, known)
            && self.belongs(memory, &state, thread)
        {
            return Some(state);
        }
        let all = self.all_states(memory)?;
        let mut own = all
            .iter()
            .filter(|(_, state)| self.belongs(memory, state, thread));
        let found = match (own.next(), own.next()) {
            (Some(found), None) => found,
            // an old version with another C library, and one thread
            (None, _) if all.len() == 1 && is_main && self.layout.native_id.is_none() => &all[0],
            _ => return None,
        };
        if self.states.len() >= KNOWN {
            self.states.clear();
        }
        self.states.insert(thread, found.0);
        Some(found.1.clone())
    }

    /// Whether a thread state is that of a thread.
    fn belongs(&self, memory: Memory, state: &[u8], thread: u32) -> bool {
        if let Some(native_id) = self.layout.native_id {
            return word(state, native_id) == Some(u64::from(thread));
        }
        let Some(handle) = word(state, self.layout.thread_id) else {
            return false;
        };
        let is_it = |offset: &usize| {
            let mut bytes = [0; 4];
            let place = handle.checked_add(*offset as u64);
            let read = place.and_then(|place| memory.fill(place, &mut bytes));
            read.is_some() && half(&bytes, 0) == Some(thread)
        };
        TID_OFFSETS.iter().any(is_it)
    }

    /// Copies a thread state that names an interpreter.
    fn copy(&self, memory: Memory, address: u64) -> Option<Vec<u8>> {
        let state = memory.bytes(address, self.layout.state_size)?;
        (word(&state, self.layout.state_interpreter)? != 0).then_some(state)
    }

    fn all_states(&self, memory: Memory) -> Option<Vec<(u64, Vec<u8>)>> {
        let layout = &self.layout;
        let mut all = Vec::new();
        let mut interpreter = memory.word(self.runtime.checked_add(layout.interpreters_head)?)?;
        for _ in 0..MAX_INTERPRETERS {
            if interpreter == 0 {
                break;
            }
            let mut next = memory.word(interpreter.checked_add(layout.threads_head)?)?;
            while next != 0 && all.len() < MAX_THREADS {
                let state = self.copy(memory, next)?;
                // the list is another thread's to change: what does not fit is not believed
                if word(&state, layout.state_interpreter)? != interpreter {
                    return None;
                }
                let after = word(&state, layout.state_next)?;
                all.push((next, state));
                next = after;
            }
            interpreter = memory.word(interpreter.checked_add(layout.next_interpreter)?)?;
        }
        Some(all)
    }
}

/// Whether a file may be an interpreter, by its name: programs that embed one have its library.
fn may_be_python(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    name.starts_with("python3")
        || name.starts_with("libpython3")
        || name == "python"
        || name == "uwsgi"
}

/// For the fuzzer: the line of an instruction, by a table in each format.
#[cfg(fuzzing)]
pub(crate) fn fuzz(table: &[u8], first: u32, at: u64) {
    use layout::LineFormat::{Lnotab, Locations, Pep626};
    for format in [Lnotab, Pep626, Locations] {
        let _ = line_table::line(format, first, table, at);
    }
}

/// The folder in which a relative path is looked for.
pub(crate) type WorkingFolder = PathBuf;
