//! How the program ended, and what went by unseen.

use ledger::Span;
use std::collections::BTreeMap;
use std::time::Duration;

/// How the program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// With this exit code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

/// CPU time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cpu {
    /// In the programs themselves.
    pub user: Duration,
    /// In the kernel on their behalf.
    pub system: Duration,
}

/// Why a connection was left to the kernel, unrecorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unwatched {
    /// The process does not let itself be looked at (setuid, not dumpable).
    Unreadable,
    /// It lives in a network namespace of its own.
    OtherNamespace,
    /// It is bound to a device or a mark that a connection of ours could not share.
    Steered,
    /// It was made by a system call of 32-bit programs.
    ThirtyTwoBits,
    /// It speaks Multipath TCP.
    Multipath,
    /// It was open, and the program was never seen to make it.
    Unseen,
    /// The relay could not take it.
    NoRelay,
    /// Something in here broke.
    Fault,
}

impl Unwatched {
    /// What it means for the reader, after "N connections were not watched: ".
    pub fn words(self) -> &'static str {
        match self {
            Unwatched::Unreadable => "their process does not let itself be looked at",
            Unwatched::OtherNamespace => "they live in a network namespace of their own",
            Unwatched::Steered => "they are bound to a device or carry a mark",
            Unwatched::ThirtyTwoBits => "system calls of 32-bit programs made them",
            Unwatched::Multipath => "they speak Multipath TCP",
            Unwatched::Unseen => {
                "inherited, received from another process, or accepted by a listener that is gone"
            }
            Unwatched::NoRelay => "the relay could not take them",
            Unwatched::Fault => "something in intact broke; please report it",
        }
    }

    /// A stable id.
    pub fn id(self) -> &'static str {
        match self {
            Unwatched::Unreadable => "unwatched-unreadable",
            Unwatched::OtherNamespace => "unwatched-other-namespace",
            Unwatched::Steered => "unwatched-steered",
            Unwatched::ThirtyTwoBits => "unwatched-32-bits",
            Unwatched::Multipath => "unwatched-multipath",
            Unwatched::Unseen => "unwatched-unseen",
            Unwatched::NoRelay => "unwatched-no-relay",
            Unwatched::Fault => "unwatched-fault",
        }
    }
}

/// What is known when all is over.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// How the program ended.
    pub ended: Ended,
    /// From its start to its end, on the run's clock; what it left behind may have run on.
    pub span: Span,
    /// What it cost, with everything that it started and that has ended.
    pub cpu: Cpu,
    /// Connections that went by unseen, by reason. They are caveats in the ledger too.
    pub unwatched: BTreeMap<Unwatched, u64>,
    /// The person stopped waiting for processes that the program left behind.
    pub abandoned: bool,
}
