//! What to run, and how often.

use crate::{Event, Watcher};
use std::ffi::OsString;
use std::time::Duration;

/// A function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// The runtime client, or a program that speaks the Runtime API itself, and its arguments.
    pub command: Vec<OsString>,
    /// Variables that are set for it, after those of the platform.
    pub environment: Vec<(OsString, OsString)>,
    /// `_HANDLER`: `file.function` for most runtime clients.
    pub handler: Option<OsString>,
}

/// Where invocations belong in the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Index into the run's variants.
    pub variant: u32,
    /// The round, from 1.
    pub round: u32,
}

/// How a function is invoked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Invocations.
    pub invocations: u64,
    /// What each is given.
    pub event: Event,
    /// The function's limit.
    pub timeout: Duration,
    /// The limit until the process asks for its first event; on Lambda 10 s.
    pub init_timeout: Duration,
    /// A new environment after so many invocations; `None`: only where one has ended.
    pub cold_every: Option<u64>,
    /// How long the environment is idle before an invocation, taken in turn; zero: not frozen.
    pub idle: Vec<Duration>,
    /// Whether an idle environment is frozen.
    pub freeze: bool,
    /// How its connections are followed; `None`: they are not.
    pub watcher: Option<Watcher>,
}

impl Plan {
    /// So many invocations with an empty event, one right after the other.
    pub fn new(invocations: u64) -> Plan {
        Plan {
            invocations,
            event: crate::Shape::Empty.into(),
            timeout: Duration::from_secs(30),
            init_timeout: Duration::from_secs(10),
            cold_every: None,
            idle: vec![Duration::ZERO],
            freeze: true,
            watcher: None,
        }
    }

    /// The idle time before the invocation of this number, from 1.
    pub(crate) fn idle_before(&self, number: u64) -> Duration {
        let count = self.idle.len().max(1) as u64;
        let index = number.saturating_sub(2) % count;
        self.idle.get(index as usize).copied().unwrap_or_default()
    }
}
