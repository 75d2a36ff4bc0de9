//! What was sampled, with names: plain data.

use crate::cpu_category::{CategoryShares, CpuCategory};
use std::path::PathBuf;
use std::sync::Arc;

/// One level of a stack.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Frame {
    /// In the kernel: the function's name where the kernel tells it.
    Kernel(Option<Arc<str>>),
    /// In a file: its name without folders, and the function where the file has symbols.
    File(Arc<str>, Option<Arc<str>>),
    /// Code that was made while the program ran: its name where a perf map tells it.
    Made(Option<Arc<str>>),
}

/// A stack, and how often it was met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stack {
    /// Index of the subject: 0 for the program's tree, then those that were watched beside it, in their order.
    pub subject: usize,
    /// The thread's name.
    pub command: Arc<str>,
    /// The innermost first.
    pub frames: Vec<Frame>,
    /// How many samples.
    pub samples: u64,
    /// What it was doing.
    pub work: CpuCategory,
}

/// Something that could not be seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gap {
    /// The kernel's own frames are hidden from us: time in the kernel is not sampled.
    NoKernel,
    /// The kernel does not tell its functions' addresses (`kernel.kptr_restrict`): its frames have no names.
    NoKernelNames,
    /// So many samples were lost or not kept.
    Lost(u64),
}

/// What was sampled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// The stacks, without order.
    pub stacks: Vec<Stack>,
    /// Samples a second of processor time.
    pub per_second: u64,
    /// What could not be seen.
    pub gaps: Vec<Gap>,
    /// The lists of JIT compilers that were read: files that lie on after their process.
    pub maps: Vec<PathBuf>,
}

impl Profile {
    /// How many samples of a subject went to each kind of work.
    pub fn shares(&self, subject: usize) -> CategoryShares {
        let mut shares = CategoryShares::default();
        for stack in &self.stacks {
            if stack.subject == subject {
                shares.add(stack.work, stack.samples);
            }
        }
        shares
    }
}
