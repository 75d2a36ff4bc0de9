//! The task that waits for another one.
//!
//! A library may open a connection in a task of its own, which runs a function that is defined in
//! the one that waits. The two then have a cell in common: a variable of this very call. So any
//! task that the inner frame leads to is a candidate, and the one whose calls end in a frame with
//! the same cell is the one that waits. Without such a task, nothing is known.

use super::frames::{Codes, TAGS};
use super::layout::{FrameKind, Layout};
use crate::MAX_FRAMES;
use crate::code_root::RawFrame;
use crate::process::{Memory, half, word};
use std::collections::{HashMap, HashSet, VecDeque};

/// Functions whose task is waited for: the end of a file's path, the function, and the one that
/// waits.
const HANDOVERS: &[(&str, &str, &str)] = &[
    ("anyio/_core/_sockets.py", "try_connect", "connect_tcp"),
    (
        "trio/_highlevel_open_tcp_stream.py",
        "attempt_connect",
        "open_tcp_stream",
    ),
    (
        "aiohappyeyeballs/_staggered.py",
        "run_one_coro",
        "staggered_race",
    ),
    ("asyncio/staggered.py", "run_one_coro", "staggered_race"),
];
/// Objects that are looked at, at most.
const MAX_OBJECTS: usize = 256;
/// Variables of a frame, at most.
const MAX_VARIABLES: u64 = 64;
/// Types that are remembered.
const KNOWN: usize = 1024;
/// What is read of an object, in bytes: before its address, and from there on.
const BEFORE: u64 = 32;
const OBJECT: usize = 288;
/// What is read of the attributes of an object, and of a table of names and values.
const VALUES: usize = 24 * 8;
const TABLE: usize = 64 * 8;
const PAGE: u64 = 4096;
/// A type, in bytes: its name, the size of an object, flags.
const TYPE: usize = 176;
const TYPE_NAME: usize = 24;
const LONGEST_NAME: usize = 32;
const TYPE_SIZE: usize = 32;
const TYPE_FLAGS: usize = 168;
/// Of the flags: the class of a statement, attributes before the object, and behind it.
const IS_CLASS: u64 = 1 << 9;
const HAS_BEFORE: u64 = 1 << 4;
const HAS_BEHIND: u64 = 1 << 2;
/// Where a function has the variables of others that it uses: up to 3.9, and later.
const CLOSURES: [usize; 2] = [48, 72];
/// The state of a frame that waits.
const SUSPENDED: u8 = u8::MAX;

/// Where suspended frames and attributes of objects are, by the version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Suspended {
    /// The frame in a coroutine, or the pointer to it.
    pub(crate) frame: usize,
    /// The state of the frame in a coroutine.
    pub(crate) state: Option<usize>,
    /// The variables in a frame.
    pub(crate) variables: u64,
    /// What says where the stack of values ends.
    pub(crate) values: ValueStack,
    /// The number of variables in a code object.
    pub(crate) count: usize,
    pub(crate) attributes: Attributes,
}

/// Where the stack of values of a suspended frame ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueStack {
    /// An address, at this offset.
    End(usize),
    /// A number of values, at this offset.
    Depth(usize),
    /// A number of variables and values, at this offset.
    Count(usize),
}

/// Where an object has its attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attributes {
    /// In a dictionary.
    Dictionary,
    /// In an array four words before, or a dictionary three words before.
    Array,
    /// In an array or a dictionary three words before: an odd address is an array's.
    Either,
    /// Behind the object, or in a dictionary three words before.
    Behind,
}

/// What an object is.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    /// A coroutine or a generator.
    Coroutine,
    /// It stands for a coroutine or a generator.
    Wrapper,
    Task,
    Cell,
    Tuple,
    List,
    Dictionary,
    Function,
    /// Another object that may lead to a task.
    Object,
    Other,
}

#[derive(Clone, Copy)]
struct Type {
    kind: Kind,
    size: u64,
    flags: u64,
}

/// The types of a process.
#[derive(Default)]
pub(super) struct Types(HashMap<u64, Type>);

impl Types {
    fn of(&mut self, memory: Memory, address: u64) -> Option<Type> {
        if let Some(known) = self.0.get(&address) {
            return Some(*known);
        }
        let bytes = memory.bytes(address, TYPE)?;
        let name = memory.bytes(word(&bytes, TYPE_NAME)?, LONGEST_NAME)?;
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        let flags = word(&bytes, TYPE_FLAGS)?;
        let kind = match name {
            b"coroutine" | b"generator" | b"async_generator" => Kind::Coroutine,
            b"coroutine_wrapper" | b"async_generator_asend" | b"async_generator_athrow" => {
                Kind::Wrapper
            }
            b"_asyncio.Task" | b"Task" => Kind::Task,
            b"cell" => Kind::Cell,
            b"tuple" => Kind::Tuple,
            b"list" => Kind::List,
            b"dict" => Kind::Dictionary,
            b"function" => Kind::Function,
            b"_asyncio.Future"
            | b"TaskWakeupMethWrapper"
            | b"_asyncio.TaskWakeupMethWrapper"
            | b"builtin_function_or_method" => Kind::Object,
            // a loop leads to all tasks
            _ if flags & IS_CLASS != 0 && !name.ends_with(b"Loop") => Kind::Object,
            _ => Kind::Other,
        };
        let found = Type {
            kind,
            size: word(&bytes, TYPE_SIZE)?,
            flags,
        };
        if self.0.len() >= KNOWN {
            self.0.clear();
        }
        self.0.insert(address, found);
        Some(found)
    }

    fn kind(&mut self, memory: Memory, object: u64) -> Option<Kind> {
        Some(self.of(memory, memory.word(object.checked_add(8)?)?)?.kind)
    }
}

/// A frame and the code of its function.
pub(super) struct Site {
    pub(super) frame: u64,
    pub(super) code: u64,
}

/// A search for the task that waits for an inner frame.
pub(super) struct Search<'a> {
    pub(super) codes: &'a mut Codes,
    pub(super) types: &'a mut Types,
    pub(super) layout: &'a Layout,
    pub(super) suspended: Suspended,
    pub(super) memory: Memory,
}

/// The function that waits for the one of a frame, if there is such a function.
pub(super) fn outer(frame: &RawFrame) -> Option<&'static str> {
    let path = frame.path.as_deref()?;
    let function = plain(&frame.function);
    let found = HANDOVERS
        .iter()
        .find(|(file, inner, _)| *inner == function && path.ends_with(file));
    found.map(|(_, _, outer)| *outer)
}

/// The name of a function without those of what it is defined in.
fn plain(function: &str) -> &str {
    function.rsplit('.').next().unwrap_or_default()
}

impl Search<'_> {
    /// The calls of the task that waits in a function for this frame, the innermost first.
    pub(super) fn waiting(&mut self, inner: &Site, outer: &str) -> Option<Vec<RawFrame>> {
        let memory = self.memory;
        let variables = self.variables(inner)?;
        let cells: HashSet<u64> = variables
            .iter()
            .copied()
            .filter(|one| self.types.kind(memory, *one) == Some(Kind::Cell))
            .collect();
        let mut seen: HashSet<(Kind, u64)> = HashSet::new();
        // cells first: they are what the two have in common
        let variables = variables.into_iter().map(|one| (Kind::Other, one));
        let mut next: VecDeque<(Kind, u64)> = variables.collect();
        let mut looked_at = 0;
        while let Some((from, object)) = next.pop_front().filter(|_| looked_at < MAX_OBJECTS) {
            looked_at += 1;
            let Some((kind, leads_to)) = self.pointers(from, object) else {
                continue;
            };
            for address in leads_to {
                if kind == Kind::Task
                    && self.types.kind(memory, address) == Some(Kind::Coroutine)
                    && let Some(calls) = self.calls(address, outer, &cells)
                {
                    return Some(calls);
                }
                if seen.insert((kind, address)) {
                    next.push_back((kind, address));
                }
            }
        }
        None
    }

    /// The calls from a task's coroutine on to the one of this function that has one of the cells,
    /// the innermost first.
    fn calls(&mut self, task: u64, outer: &str, cells: &HashSet<u64>) -> Option<Vec<RawFrame>> {
        let memory = self.memory;
        let mut calls = Vec::new();
        let mut next = task;
        for _ in 0..MAX_FRAMES {
            let head = padded(memory, next, self.head())?;
            match self.types.of(memory, word(&head, 8)?)?.kind {
                Kind::Coroutine => {}
                Kind::Wrapper => {
                    next = word(&head, 16)?;
                    continue;
                }
                _ => return None,
            }
            let (frame, bytes) = self.frame(next, head)?;
            let (call, code) = self.codes.frame(self.layout, memory, &bytes)?;
            let is_outer = plain(&call.function) == outer;
            calls.push(call);
            if is_outer {
                let variables = self.variables(&Site { frame, code })?;
                if variables.iter().any(|one| cells.contains(one)) {
                    calls.reverse();
                    return Some(calls);
                }
            }
            next = memory.word(self.end(frame, &bytes)?.checked_sub(8)?)? & !TAGS;
        }
        None
    }

    /// What is read of a coroutine, in bytes: with its frame, where that is in it.
    fn head(&self) -> usize {
        match self.layout.frame_kind {
            FrameKind::Object { .. } => self.suspended.frame + 8,
            FrameKind::Structure => self.suspended.frame + self.layout.frame_size,
        }
    }

    /// The frame of a coroutine that is suspended, and its bytes.
    fn frame(&self, coroutine: u64, mut head: Vec<u8>) -> Option<(u64, Vec<u8>)> {
        let place = self.suspended.frame;
        let Some(state) = self.suspended.state else {
            let frame = word(&head, place)?;
            return Some((frame, self.memory.bytes(frame, self.layout.frame_size)?));
        };
        (*head.get(state)? == SUSPENDED).then_some(())?;
        let frame = coroutine.checked_add(place as u64)?;
        Some((frame, head.split_off(place)))
    }

    /// Where the stack of values of a suspended frame ends; the last one is waited for.
    fn end(&self, frame: u64, bytes: &[u8]) -> Option<u64> {
        let number = |at: usize| {
            let number = u64::from(half(bytes, at)?);
            (1..=4 * MAX_VARIABLES).contains(&number).then_some(number)
        };
        match self.suspended.values {
            ValueStack::End(at) => word(bytes, at),
            ValueStack::Depth(at) => {
                word(bytes, VALUE_STACK as usize)?.checked_add(8 * number(at)?)
            }
            ValueStack::Count(at) => frame.checked_add(self.suspended.variables + 8 * number(at)?),
        }
    }

    /// What the variables of a frame are.
    fn variables(&self, site: &Site) -> Option<Vec<u64>> {
        let memory = self.memory;
        let start = site.frame.checked_add(self.suspended.variables)?;
        let count = match self.layout.frame_kind {
            FrameKind::Object { .. } => {
                let end = memory.word(site.frame.checked_add(VALUE_STACK)?)?;
                end.checked_sub(start)? / 8
            }
            FrameKind::Structure => {
                let count = site.code.checked_add(self.suspended.count as u64)?;
                let mut bytes = [0; 4];
                memory.fill(count, &mut bytes)?;
                u64::from(half(&bytes, 0)?)
            }
        };
        let count = usize::try_from(count.min(MAX_VARIABLES)).ok()?;
        let bytes = memory.bytes(start, 8 * count)?;
        Some(
            words(&bytes)
                .map(|one| one & !TAGS)
                .filter(is_address)
                .collect(),
        )
    }

    /// What an object is that this kind led to, and the addresses that it has.
    fn pointers(&mut self, from: Kind, object: u64) -> Option<(Kind, Vec<u64>)> {
        let memory = self.memory;
        let bytes = padded(memory, object.checked_sub(BEFORE)?, OBJECT)?;
        let (before, own) = bytes.split_at(BEFORE as usize);
        let Type { kind, size, flags } = self.types.of(memory, word(own, 8)?)?;
        let size = usize::try_from(size).unwrap_or(OBJECT).min(own.len());
        let array = |address: u64, count: usize| {
            let bytes = padded(memory, address, count).unwrap_or_default();
            addresses(&bytes).collect::<Vec<u64>>()
        };
        let found = match kind {
            Kind::Coroutine | Kind::Wrapper | Kind::Other => Vec::new(),
            Kind::Dictionary if from != Kind::Object => Vec::new(),
            Kind::Tuple if from != Kind::Function => Vec::new(),
            Kind::Function => {
                let variables = CLOSURES.iter().filter_map(|at| word(own, *at));
                variables.filter(is_address).collect()
            }
            Kind::Dictionary => match word(own, 40)? {
                0 => array(word(own, 32)?, TABLE),
                values => array(values, VALUES),
            },
            Kind::Tuple => {
                let count = usize::try_from(word(own, 16)?).unwrap_or(0);
                addresses(&own[24..]).take(count).collect()
            }
            Kind::List => {
                let count = usize::try_from(word(own, 16)?).unwrap_or(0);
                array(word(own, 24)?, count.min(VALUES / 8) * 8)
            }
            Kind::Cell | Kind::Task | Kind::Object => {
                let mut found: Vec<u64> = addresses(own.get(16..size)?).collect();
                let (values, either) = (word(before, 0)?, word(before, 8)?);
                match self.suspended.attributes {
                    Attributes::Dictionary => {}
                    _ if flags & HAS_BEFORE == 0 => {}
                    Attributes::Array if values != 0 => found.extend(array(values, VALUES)),
                    Attributes::Either if either & 1 == 1 => {
                        found.extend(array(either.wrapping_add(1), VALUES));
                    }
                    Attributes::Behind if flags & HAS_BEHIND != 0 => {
                        let end = size + 8 * (1 + usize::from(*own.get(size)?));
                        found.extend(addresses(own.get(size + 8..end.min(own.len()))?));
                        found.push(either);
                    }
                    _ => found.push(either),
                }
                found
            }
        };
        Some((kind, found))
    }
}

/// Where a frame that is an object has the start of its stack of values.
const VALUE_STACK: u64 = 64;

/// Copies bytes. Behind a small object may be nothing: then zeros from the next page on.
fn padded(memory: Memory, address: u64, count: usize) -> Option<Vec<u8>> {
    if let Some(bytes) = memory.bytes(address, count) {
        return Some(bytes);
    }
    let left = usize::try_from(PAGE - address % PAGE).ok()?;
    let mut bytes = memory.bytes(address, count.min(left))?;
    bytes.resize(count, 0);
    Some(bytes)
}

/// The words that may be addresses of objects.
fn addresses(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    words(bytes).filter(is_address)
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    bytes.chunks_exact(8).filter_map(|bytes| word(bytes, 0))
}

fn is_address(word: &u64) -> bool {
    word.is_multiple_of(8) && (1 << 16..1 << 47).contains(word)
}

#[cfg(test)]
mod tests {
    use super::super::layout::{Version, table};
    use super::*;
    use crate::CodeKind;
    use proptest::prelude::*;
    use std::path::PathBuf;

    #[test]
    fn a_function_of_another_file_is_not_waited_for() {
        let call = |path: &str, function: &str| RawFrame {
            function: function.into(),
            path: Some(path.into()),
            line: None,
            kind: CodeKind::Other,
            defined: None,
        };
        let file = "/venv/site-packages/anyio/_core/_sockets.py";
        let inner = call(file, "connect_tcp.<locals>.try_connect");
        assert_eq!(outer(&inner), Some("connect_tcp"));
        assert_eq!(outer(&call(file, "connect_tcp")), None);
        assert_eq!(outer(&call("/app/sockets.py", "try_connect")), None);
    }

    const NAMES: [&[u8]; 5] = [
        b"coroutine",
        b"_asyncio.Task",
        b"cell",
        b"list",
        b"function",
    ];

    proptest! {
        /// Objects of these types that lead to one another.
        #[test]
        fn any_objects_end(words in prop::collection::vec(0..400usize, 256), seed in 0..5usize) {
            let names: Vec<Vec<u8>> = NAMES.iter().map(|name| [name, &[0; 32][..]].concat()).collect();
            let kinds: Vec<Vec<u64>> = names
                .iter()
                .map(|name| {
                    let mut kind = vec![0; TYPE / 8];
                    kind[TYPE_NAME / 8] = name.as_ptr() as u64;
                    kind[TYPE_SIZE / 8] = 64;
                    kind
                })
                .collect();
            let mut memory = vec![0; 512];
            let start = memory.as_ptr() as u64;
            for (nth, word) in words.iter().enumerate() {
                memory[nth + 64] = match word {
                    0..256 => start + 8 * *word as u64,
                    _ => kinds[(word + seed) % kinds.len()].as_ptr() as u64,
                };
            }
            for minor in [8, 10, 11, 12] {
                let layout = table(Version(3, minor)).unwrap();
                let mut search = Search {
                    codes: &mut Codes::new([kinds[0].as_ptr() as u64; 3], PathBuf::new()),
                    types: &mut Types::default(),
                    layout: &layout,
                    suspended: layout.suspended.unwrap(),
                    memory: Memory::of(std::process::id()),
                };
                let site = Site { frame: start + 512, code: start + 512 };
                let _ = search.waiting(&site, "connect_tcp");
            }
        }
    }
}
