//! The sampled profile with names: plain data.

use crate::cpu_category::CpuCategory;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// What to sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SampleTarget {
    /// Programs that this thread starts from now on, from their `exec` on.
    Children,
    /// These processes and their children.
    Processes(Vec<u32>),
}

/// One level of a stack.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Frame {
    /// In the kernel, with the function's name if the kernel shows it.
    Kernel(Option<Arc<str>>),
    /// In a file: its name without folders, and the function if the file has symbols.
    File(Arc<str>, Option<Arc<str>>),
    /// Generated code, with its name if a perf map has it.
    Made(Option<Arc<str>>),
}

/// A stack and its number of samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stack {
    /// Index of the target: 0 for the program's tree, then the other watched processes in their
    /// order.
    pub subject: usize,
    /// The part of the run, by [`crate::Sampling::mark`]; 0 before the first mark.
    pub part: u32,
    /// The thread's name.
    pub command: Arc<str>,
    /// The frames, the innermost first.
    pub frames: Vec<Frame>,
    /// Number of samples.
    pub samples: u64,
    /// Its category.
    pub work: CpuCategory,
}

/// A part that could not be observed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gap {
    /// The kernel's frames are hidden, so time in the kernel is not sampled.
    NoKernel,
    /// The kernel hides its addresses (`kernel.kptr_restrict`), so its frames have no names.
    NoKernelNames,
    /// Number of samples that were lost or not kept.
    Lost(u64),
}

/// The samples of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// The stacks, in no particular order.
    pub stacks: Vec<Stack>,
    /// Samples a second of processor time.
    pub per_second: u64,
    /// The parts that could not be observed.
    pub gaps: Vec<Gap>,
    /// The lists of JIT compilers that were read. These files stay after their process ends.
    pub maps: Vec<PathBuf>,
}

impl Profile {
    /// Adds the samples of another run of the same program.
    pub fn add(&mut self, other: Profile) {
        self.stacks.extend(other.stacks);
        self.per_second = other.per_second;
        for gap in other.gaps {
            match (gap, &mut self.gaps[..]) {
                (Gap::Lost(more), [.., Gap::Lost(count)]) => *count += more,
                (gap, gaps) if gaps.contains(&gap) => {}
                (gap, _) => self.gaps.push(gap),
            }
        }
        self.maps.extend(other.maps);
    }

    /// The stacks that `keep` selects; everything else is the same.
    pub fn filtered(&self, keep: impl Fn(&Stack) -> bool) -> Profile {
        let stacks = self.stacks.iter().filter(|stack| keep(stack));
        Profile {
            stacks: stacks.cloned().collect(),
            ..self.clone()
        }
    }

    /// Number of samples of a target by category.
    pub fn shares(&self, subject: usize) -> BTreeMap<CpuCategory, u64> {
        let mut shares = BTreeMap::new();
        for stack in &self.stacks {
            if stack.subject == subject {
                *shares.entry(stack.work).or_default() += stack.samples;
            }
        }
        shares
    }
}
