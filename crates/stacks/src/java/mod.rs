//! Stacks of Java: by a thread dump, which HotSpot makes when it is asked for one.
//!
//! The threads of the program stop while the dump is made, so dumps are made only as long as they
//! take a small part of the time. The thread that opens a connection stands still in native code
//! meanwhile, and is found by its number. Where the attach interface cannot be opened without a
//! risk, nothing is known.

mod attach;
mod dump;
mod sources;

use crate::code_root::RawFrame;
use crate::process::inner_id;
use crate::{CodeKind, NotKnown};
use sources::{Origin, Sources};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Dumps that are made in any case.
const AT_FIRST: u32 = 8;
/// How long all of them may take: one part in this number of the time, and this for each opening.
const ONE_PART_IN: u32 = 100;
const EACH: Duration = Duration::from_micros(200);
/// What runs tasks of others in the thread of the caller: the beginning of the method.
const LOOPS: [&str; 5] = [
    "java.util.concurrent.ForkJoinTask.doExec",
    "java.util.concurrent.FutureTask.run",
    "java.util.concurrent.CompletableFuture.post",
    "java.util.concurrent.CompletableFuture$",
    "io.netty.util.concurrent.AbstractEventExecutor.",
];

/// A process that runs a JVM.
pub(crate) struct Java {
    socket: PathBuf,
    sources: Sources,
    begun: Instant,
    openings: u32,
    dumps: u32,
    taken: Duration,
}

impl Java {
    /// The JVM of a process, with the user's code below a folder.
    pub(crate) fn new(process: u32, root: &Path) -> Result<Java, NotKnown> {
        let unclear = NotKnown::Unclear;
        Ok(Java {
            sources: Sources::find(root).ok_or(unclear("the many files of its code root"))?,
            socket: attach::open(process).ok_or(unclear("its thread dump"))?,
            begun: Instant::now(),
            openings: 0,
            dumps: 0,
            taken: Duration::ZERO,
        })
    }

    /// The calls in which a thread stands.
    pub(crate) fn stack(&mut self, thread: u32) -> Result<Vec<RawFrame>, NotKnown> {
        let begun = Instant::now();
        self.openings = self.openings.saturating_add(1);
        let may_take = EACH.saturating_mul(self.openings);
        let may_take = may_take.min((begun - self.begun) / ONE_PART_IN);
        if self.dumps >= AT_FIRST && self.taken > may_take {
            return Err(NotKnown::LeftOut);
        }
        self.dumps = self.dumps.saturating_add(1);
        let inner = inner_id(thread).ok_or(NotKnown::Unreadable)?;
        let dump = attach::dump(&self.socket);
        self.taken += begun.elapsed();
        let dump = dump.ok_or(NotKnown::Unclear("its thread dump"))?;
        let calls = dump::calls(&dump, inner).ok_or(NotKnown::Unclear("a thread of Java's"))?;
        Ok(calls.into_iter().map(|call| self.frame(call)).collect())
    }

    fn frame(&mut self, call: dump::Call) -> RawFrame {
        let is_loop = LOOPS.iter().any(|name| call.function.starts_with(name));
        let origin = match &call.file {
            Some(file) if !call.is_in_module => self.sources.origin(&call.function, file),
            _ => Origin::Library,
        };
        let (kind, path, line) = match origin {
            Origin::Own(path) => (CodeKind::Own, Some(path), call.line),
            Origin::Unclear => (CodeKind::Own, call.file, None),
            Origin::Library if is_loop => (CodeKind::Loop, call.file, call.line),
            Origin::Library => (CodeKind::Library, call.file, call.line),
        };
        RawFrame {
            function: call.function,
            path,
            line,
            kind,
            defined: None,
        }
    }
}

/// For the fuzzer: counters and a dump.
#[cfg(fuzzing)]
pub(crate) fn fuzz(bytes: &[u8], thread: u32) {
    let _ = attach::can_attach(bytes);
    let _ = dump::calls(&String::from_utf8_lossy(bytes), thread);
}
