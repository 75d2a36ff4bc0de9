//! Reads where in the code a thread of another process stands, while the thread waits in a system
//! call.
//!
//! The process is read from outside: nothing runs in it, and it is not stopped. Java is the
//! exception: HotSpot makes a thread dump when it is asked for one. Frames have names
//! and lines. Arguments, variables and source text are never read. What cannot be read for certain
//! is not known: a wrong line is worse than none. Must not decide when to look.
#![cfg(target_os = "linux")]

mod code_root;
mod elf;
#[cfg(target_arch = "x86_64")]
mod go;
mod java;
#[cfg(target_arch = "x86_64")]
mod native;
mod process;
mod python;
mod reader;

pub use code_root::CodeRoot;
pub use reader::StackReader;

use std::sync::Arc;

/// One call of a stack.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The name of the function.
    pub function: Arc<str>,
    /// The source file: relative to the code root, or from the name of its library on.
    pub file: Option<Arc<str>>,
    /// The line of the call, from 1.
    pub line: Option<u32>,
}

/// The calls in which a thread stands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ThreadStack {
    /// The innermost first.
    pub frames: Vec<Frame>,
    /// The innermost call in the user's code, as an index of `frames`.
    pub own: Result<usize, NoOwnCall>,
}

/// Why no call of a stack is the place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NoOwnCall {
    /// The line of the innermost call in the user's code is not known.
    NoLine,
    /// A thread or task was started for these calls: who waits for it is not among them.
    Started,
    /// No call is in the user's code.
    Outside,
}

/// A call that a program noted by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotedCall {
    /// The name of the function.
    pub function: Arc<str>,
    /// The path of the source file; empty where there is none.
    pub path: Arc<str>,
    /// The line of the call, from 1; 0 where it is not known.
    pub line: u32,
}

/// Why the stack of a thread is not known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NotKnown {
    /// This opening was left out: reading it would have taken too long.
    LeftOut,
    /// The process may not be read, or has ended.
    Unreadable,
    /// Stacks of this runtime, or of this version of it, are not read.
    Runtime(String),
    /// The runtime was read, and the thread is not one of its own, or something did not fit.
    Unclear(&'static str),
}

/// Which code a frame belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CodeKind {
    /// The user's or a library's, by its path.
    Other,
    /// The user's: its path is cut already.
    Own,
    /// A library's: its path is cut already.
    Library,
    /// The loop that runs tasks: what is outside of it did not make this call.
    Loop,
}

/// Calls that are read of a stack, at most.
const MAX_FRAMES: usize = 256;

/// For the fuzzer: bytes of another process as each reader of them takes them.
#[cfg(fuzzing)]
#[doc(hidden)]
pub fn fuzz(bytes: &[u8], first: u32, at: u64) {
    python::fuzz(bytes, first, at);
    java::fuzz(bytes, first);
    #[cfg(target_arch = "x86_64")]
    {
        native::fuzz(bytes);
        go::fuzz(bytes, at);
    }
}
