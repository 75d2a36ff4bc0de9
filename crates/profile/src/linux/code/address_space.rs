//! The mappings of a process, and the unwinding of its stacks.

use super::image::{ImageId, Images};
use super::perf_map::PerfMap;
use framehop::{
    CacheNative, FrameAddress, MayAllocateDuringUnwind, Module, Unwinder, UnwinderNative,
};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// An address in code.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum CodeLocation {
    /// In a file, at the file's own address.
    File(ImageId, u64),
    /// In code that a process generated, at an address of that process.
    Made(u32, u64),
}

type Native = UnwinderNative<Arc<[u8]>, MayAllocateDuringUnwind>;

/// The mappings of a process.
pub(crate) struct AddressSpace {
    process: u32,
    mapped: BTreeMap<u64, Mapped>,
    unwinder: Native,
    cache: CacheNative<MayAllocateDuringUnwind>,
    made: PerfMap,
}

#[derive(Clone, Copy)]
struct Mapped {
    end: u64,
    /// The file, and the offset from its addresses to those of the process; `None` for generated
    /// code.
    file: Option<(ImageId, u64)>,
}

impl AddressSpace {
    pub(crate) fn new(process: u32) -> AddressSpace {
        AddressSpace {
            process,
            mapped: BTreeMap::new(),
            unwinder: Native::new(),
            cache: CacheNative::new_in(),
            made: PerfMap::default(),
        }
    }

    /// The mappings of a child after a fork.
    pub(crate) fn fork(&self, process: u32) -> AddressSpace {
        AddressSpace {
            process,
            mapped: self.mapped.clone(),
            unwinder: self.unwinder.clone(),
            cache: CacheNative::new_in(),
            made: self.made.clone(),
        }
    }

    /// Adds a mapping, which replaces older ones in its range.
    pub(crate) fn map(&mut self, images: &mut Images, range: Range<u64>, offset: u64, path: &[u8]) {
        let covered: Vec<u64> = self
            .mapped
            .range(..range.end)
            .filter(|(_, mapped)| mapped.end > range.start)
            .map(|(start, _)| *start)
            .collect();
        for start in covered {
            self.mapped.remove(&start);
            self.unwinder.remove_module(start);
        }
        // names without a folder are the kernel's: [vdso], //anon
        let is_file = path.starts_with(b"/")
            && ![
                b"//anon".as_slice(),
                b"/dev/zero",
                b"/memfd:",
                b"/SYSV",
                b"/anon_hugepage",
            ]
            .iter()
            .any(|other| path.starts_with(other));
        let mut file = None;
        if is_file {
            let id = images.open(self.process, path);
            if let Some(address) = images.address(id, offset) {
                let base = range.start.wrapping_sub(address);
                file = Some((id, base));
                let name = String::from_utf8_lossy(path).into_owned();
                let sections = images.sections(id);
                self.unwinder
                    .add_module(Module::new(name, range.clone(), base, sections));
            }
        }
        self.mapped.insert(
            range.start,
            Mapped {
                end: range.end,
                file,
            },
        );
    }

    /// The names of the process's generated code.
    pub(crate) fn into_made(self) -> PerfMap {
        self.made
    }

    /// Unwinds a stack from its registers, the innermost frame first.
    pub(crate) fn unwind(
        &mut self,
        registers: &[u64],
        stack: &[u8],
        most: usize,
        into: &mut Vec<CodeLocation>,
    ) {
        let Some((first, mut registers, bottom)) = arch::start(registers) else {
            return;
        };
        let mut read = |address: u64| -> Result<u64, ()> {
            let at = usize::try_from(address.checked_sub(bottom).ok_or(())?).map_err(|_| ())?;
            let word = stack.get(at..).and_then(<[u8]>::first_chunk).ok_or(())?;
            Ok(u64::from_ne_bytes(*word))
        };
        let mut frame = FrameAddress::from_instruction_pointer(first);
        while into.len() < most {
            // the call before a return address shows the function
            let Some(place) = self.place(frame.address_for_lookup()) else {
                break;
            };
            into.push(place);
            let next = match place {
                CodeLocation::Made(_, address) if self.is_python(address) => {
                    arch::leave_trampoline(&mut registers, &mut read)
                }
                _ => self
                    .unwinder
                    .unwind_frame(frame, &mut registers, &mut self.cache, &mut read)
                    .ok()
                    .flatten(),
            };
            let Some(address) = next.and_then(FrameAddress::from_return_address) else {
                break;
            };
            frame = address;
        }
    }

    fn place(&self, address: u64) -> Option<CodeLocation> {
        let (_, mapped) = self.mapped.range(..=address).next_back()?;
        if address >= mapped.end {
            return None;
        }
        Some(match mapped.file {
            Some((id, base)) => CodeLocation::File(id, address.wrapping_sub(base)),
            None => CodeLocation::Made(self.process, address),
        })
    }

    /// Whether the address is in a trampoline of Python. This code has no unwind tables and no
    /// frame pointer, but always the same shape.
    fn is_python(&mut self, address: u64) -> bool {
        if self.made.name(address).is_none() {
            self.made.read_on(self.process);
        }
        self.made
            .name(address)
            .is_some_and(|name| name.starts_with("py::"))
    }
}

#[cfg(target_arch = "x86_64")]
mod arch {
    use framehop::x86_64::UnwindRegsX86_64;

    /// Instruction pointer, registers and stack pointer of a sample.
    pub(super) fn start(registers: &[u64]) -> Option<(u64, UnwindRegsX86_64, u64)> {
        let [bp, sp, ip] = *registers else {
            return None;
        };
        Some((ip, UnwindRegsX86_64::new(ip, sp, bp), sp))
    }

    /// Leaves a trampoline, which moved the stack pointer by a word before its call (CPython,
    /// `Python/asm_trampoline.S`).
    pub(super) fn leave_trampoline(
        registers: &mut UnwindRegsX86_64,
        read: &mut impl FnMut(u64) -> Result<u64, ()>,
    ) -> Option<u64> {
        let address = read(registers.sp().checked_add(8)?).ok()?;
        registers.set_sp(registers.sp().checked_add(16)?);
        registers.set_ip(address);
        Some(address)
    }
}

#[cfg(target_arch = "aarch64")]
mod arch {
    use framehop::aarch64::UnwindRegsAarch64;

    /// Instruction pointer, registers and stack pointer of a sample.
    pub(super) fn start(registers: &[u64]) -> Option<(u64, UnwindRegsAarch64, u64)> {
        let [fp, lr, sp, pc] = *registers else {
            return None;
        };
        Some((pc, UnwindRegsAarch64::new(lr, sp, fp), sp))
    }

    /// Leaves a trampoline, which saved frame pointer and link register in two words (CPython,
    /// `Python/asm_trampoline.S`).
    pub(super) fn leave_trampoline(
        registers: &mut UnwindRegsAarch64,
        read: &mut impl FnMut(u64) -> Result<u64, ()>,
    ) -> Option<u64> {
        let fp = read(registers.sp()).ok()?;
        let address = read(registers.sp().checked_add(8)?).ok()?;
        registers.set_sp(registers.sp().checked_add(16)?);
        registers.set_fp(fp);
        registers.set_lr(address);
        Some(address)
    }
}
