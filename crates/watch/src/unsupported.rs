//! Systems on which no program can be watched.

use crate::{AttachConfig, Clock, Config, Outcome, WatchError, WatchSink};
use intact_ledger::EvidenceSet;
use std::io;
use std::process::{Command, ExitStatus};

/// Whose connections would be followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subjects {
    /// Those of these processes and of their descendants.
    Processes(Vec<u32>),
    /// Those of processes with this name, and of their descendants.
    Named(String),
    /// Those of processes in a control group that has this text in its name.
    Group(String),
    /// Those of every process that we may look at.
    All,
}

/// No signals are kept here.
#[derive(Clone, Debug, Default)]
pub struct RunSignals;

impl RunSignals {
    /// Runs a command; no signal is kept.
    pub fn run(&self, command: &mut Command) -> io::Result<(ExitStatus, Option<i32>)> {
        Ok((command.status()?, None))
    }
}

/// An error: it cannot be done here, and the remedy.
pub fn run(
    _config: &Config,
    _clock: Clock,
    _observer: &mut dyn WatchSink,
) -> Result<Outcome, WatchError> {
    Err(WatchError::Unsupported)
}

/// Programs that would be followed.
pub enum Attached {}

/// An error: it cannot be done here, and the remedy.
pub fn attach(_config: AttachConfig, _clock: Clock) -> Result<Attached, WatchError> {
    Err(WatchError::Unsupported)
}

impl Attached {
    /// What would be observed.
    pub fn evidence(&self) -> EvidenceSet {
        match *self {}
    }

    /// Never called.
    pub fn follow(self, _observer: &mut dyn WatchSink) -> Option<i32> {
        match self {}
    }
}

/// Runs a function: without a program to watch no signals are to be kept for anybody.
pub fn without_signals<T>(run: impl FnOnce() -> T) -> T {
    run()
}

/// There is no `/proc` that has CPU times.
pub(crate) fn ticks_per_second() -> Option<f64> {
    None
}
