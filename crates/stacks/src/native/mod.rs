//! Stacks of programs that are compiled to machine code and have unwind tables and debugging
//! information: C, C++, Rust.
//!
//! The kernel shows the stack pointer and the program counter of a thread in a system call, and no
//! other register. `.eh_frame` often needs no other. Where it needs the frame pointer, the
//! beginning of the function shows it, and what is there must be a return address. Otherwise the
//! stack ends.
//!
//! A function that ends with a jump to another one has no frame any more. The call before the
//! return address shows it: the function that was called is not the one that is there.

mod image;
mod prologue;

use crate::code_root::RawFrame;
use crate::process::{Mapping, Memory, mappings};
use crate::{CodeKind, MAX_FRAMES, NotKnown};
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{FrameAddress, Module, Unwinder};
use image::Image;
use std::collections::HashMap;
use std::sync::Arc;

/// Files with code that are opened, at most.
const MAX_IMAGES: usize = 256;
/// The frame pointer that is not known: no address.
const UNKNOWN: u64 = 0;

/// Parts of the names of functions that run tasks and callbacks.
const LOOPS: &[&str] = &[
    "tokio::runtime::task::",
    "async_task::raw::",
    "rayon_core::job::",
    "boost::asio::detail::scheduler::run",
];
/// The same, as whole names.
const LOOP_NAMES: &[&str] = &[
    "uv_run",
    "event_base_loop",
    "ev_run",
    "g_main_context_dispatch",
    "aeProcessEvents",
    "curl_multi_perform",
    "curl_multi_socket_action",
];

/// A process of machine code.
pub(crate) struct Native {
    process: u32,
    maps: Vec<Mapping>,
    images: HashMap<String, Option<Image>>,
    unwinder: UnwinderX86_64<Arc<[u8]>>,
    cache: CacheX86_64,
    /// The calls at an address, the innermost first: more than one where some are inlined.
    known: HashMap<u64, Arc<[Call]>>,
    /// The function that the call before a return address calls, if that is known.
    called: HashMap<u64, Option<u64>>,
}

/// Where a function of a stack stands.
#[derive(Clone, Copy)]
enum Position {
    /// At a call, or in the system call.
    At(u64),
    /// In its last jump, of which only the start of the function is known.
    Left(u64),
}

#[derive(Clone)]
struct Call {
    function: Arc<str>,
    path: Option<Arc<str>>,
    line: Option<u32>,
}

impl Native {
    pub(crate) fn new(process: u32, maps: Vec<Mapping>) -> Native {
        let mut native = Native {
            process,
            maps: Vec::new(),
            images: HashMap::new(),
            unwinder: UnwinderX86_64::new(),
            cache: CacheX86_64::new(),
            known: HashMap::new(),
            called: HashMap::new(),
        };
        native.map(maps);
        native
    }

    /// The calls in which a thread stands.
    pub(crate) fn stack(&mut self, thread: u32) -> Result<Vec<RawFrame>, NotKnown> {
        let (sp, pc) = registers(thread).ok_or(NotKnown::Unclear("its registers"))?;
        if self.mapping(pc).is_none() {
            // it has loaded a library since
            self.map(mappings(self.process));
        }
        let positions = self.unwind(Memory::of(thread), sp, pc);
        let calls = positions.into_iter().flat_map(|position| match position {
            Position::At(address) => self.calls(address).to_vec(),
            Position::Left(start) => {
                let own = self.calls(start).last().cloned();
                let without_line = own.map(|call| Call { line: None, ..call });
                without_line.into_iter().collect()
            }
        });
        let frames = calls.map(|call| RawFrame {
            kind: kind(&call.function),
            function: call.function,
            path: call.path,
            line: call.line,
            defined: None,
        });
        Ok(frames.take(MAX_FRAMES).collect())
    }

    /// Takes these mappings for those of the process.
    fn map(&mut self, maps: Vec<Mapping>) {
        self.unwinder = UnwinderX86_64::new();
        self.cache = CacheX86_64::new();
        self.known.clear();
        self.called.clear();
        self.maps = maps.into_iter().filter(|map| map.is_code).collect();
        for map in &self.maps {
            if self.images.len() < MAX_IMAGES && !self.images.contains_key(&map.path) {
                let image = Image::open(self.process, &map.path);
                self.images.insert(map.path.clone(), image);
            }
            let Some(Some(image)) = self.images.get(&map.path) else {
                continue;
            };
            let Some(bias) = image.bias(map) else {
                continue;
            };
            let module = Module::new(
                map.path.clone(),
                map.start..map.end,
                bias,
                image.sections.clone(),
            );
            self.unwinder.add_module(module);
        }
    }

    fn mapping(&self, address: u64) -> Option<&Mapping> {
        let mut maps = self.maps.iter();
        maps.find(|map| (map.start..map.end).contains(&address))
    }

    /// The image of an address, and the address in the file.
    fn image(&self, address: u64) -> Option<(&Image, u64)> {
        let map = self.mapping(address)?;
        let image = self.images.get(&map.path)?.as_ref()?;
        Some((image, address.wrapping_sub(image.bias(map)?)))
    }

    /// Where the functions stand, the innermost first.
    fn unwind(&mut self, memory: Memory, sp: u64, pc: u64) -> Vec<Position> {
        let mut registers = UnwindRegsX86_64::new(pc, sp, UNKNOWN);
        let mut frame = FrameAddress::from_instruction_pointer(pc);
        let mut found = Vec::new();
        let mut inner = None;
        let mut read = |address: u64| memory.word(address).ok_or(());
        while found.len() < MAX_FRAMES {
            let address = frame.address_for_lookup();
            if self.image(address).is_none() {
                break;
            }
            if let Some(inner) = inner
                && let Some(start) = self.left(memory, address + 1, inner)
            {
                found.push(Position::Left(start));
            }
            found.push(Position::At(address));
            inner = Some(address);
            let before = registers;
            let mut next = self
                .unwinder
                .unwind_frame(frame, &mut registers, &mut self.cache, &mut read)
                .ok()
                .flatten();
            if next.is_none() && before.bp() == UNKNOWN {
                registers = before;
                let pointer = self.frame_pointer(memory, address, before.sp());
                let Some(pointer) = pointer else { break };
                registers.set_bp(pointer);
                next = self
                    .unwinder
                    .unwind_frame(frame, &mut registers, &mut self.cache, &mut read)
                    .ok()
                    .flatten();
            }
            // a stack grows in one direction
            if registers.sp() <= before.sp() && found.len() > 1 {
                break;
            }
            let Some(next) = next.and_then(FrameAddress::from_return_address) else {
                break;
            };
            frame = next;
        }
        found
    }

    /// The function that was called before a return address, if it is not that of the inner frame.
    fn left(&mut self, memory: Memory, back: u64, inner: u64) -> Option<u64> {
        let called = match self.called.get(&back) {
            Some(known) => *known,
            None => {
                let called = self.called_before(memory, back);
                self.called.insert(back, called);
                called
            }
        };
        let start = |address: u64| {
            let (image, own) = self.image(address)?;
            Some(address - (own - image.function_start(own)?))
        };
        called.filter(|called| start(inner) != Some(*called))
    }

    /// The function that the call before a return address calls, if it has a name.
    fn called_before(&self, memory: Memory, back: u64) -> Option<u64> {
        let bytes = memory.bytes(back.checked_sub(8)?, 8)?;
        let to = match prologue::call_before(&bytes)? {
            prologue::Call::To(distance) => back.wrapping_add_signed(distance),
            prologue::Call::Through(distance) => memory.word(back.wrapping_add_signed(distance))?,
            prologue::Call::Indirect => return None,
        };
        let (image, own) = self.image(to)?;
        image.is_function(own).then_some(to)
    }

    /// The frame pointer of the function at an address, as its beginning sets it.
    fn frame_pointer(&self, memory: Memory, address: u64, sp: u64) -> Option<u64> {
        let (image, own) = self.image(address)?;
        let start = image.function_start(own)?;
        let begin = address.wrapping_sub(own - start);
        let length = usize::try_from(own - start).ok()?.min(prologue::LONGEST);
        let size = prologue::frame_size(&memory.bytes(begin, length)?)?;
        let pointer = sp.checked_add(size)?;
        let back = memory.word(pointer.checked_add(8)?)?;
        let (caller, _) = self.image(back.checked_sub(1)?)?;
        let bytes = memory.bytes(back.checked_sub(8)?, 8)?;
        let is_call = match prologue::call_before(&bytes)? {
            // a call of another function did not lead here; one through a table may have
            prologue::Call::To(distance) => {
                let to = back.wrapping_add_signed(distance);
                let (image, own) = self.image(to)?;
                to == begin || !image.is_function(own)
            }
            prologue::Call::Through(_) | prologue::Call::Indirect => true,
        };
        (is_call && caller.has_code).then_some(pointer)
    }

    fn calls(&mut self, address: u64) -> Arc<[Call]> {
        if let Some(known) = self.known.get(&address) {
            return known.clone();
        }
        let calls: Arc<[Call]> = match self.image(address) {
            Some((image, own)) => image.calls(own).into(),
            None => Arc::new([]),
        };
        self.known.insert(address, calls.clone());
        calls
    }
}

fn kind(function: &str) -> CodeKind {
    let is_loop =
        LOOPS.iter().any(|part| function.contains(part)) || LOOP_NAMES.contains(&function);
    match is_loop {
        true => CodeKind::Loop,
        false => CodeKind::Other,
    }
}

/// Stack pointer and program counter of a thread in a system call.
pub(crate) fn registers(thread: u32) -> Option<(u64, u64)> {
    let text = std::fs::read_to_string(format!("/proc/{thread}/syscall")).ok()?;
    let mut words = text.split_ascii_whitespace().rev();
    let mut number = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
    let (pc, sp) = (number()?, number()?);
    Some((sp, pc))
}

/// For the fuzzer: the beginning of a function, and the bytes before a return address.
#[cfg(fuzzing)]
pub(crate) fn fuzz(code: &[u8]) {
    let _ = (prologue::frame_size(code), prologue::call_before(code));
}
