//! What to run, and how often.

use crate::{Event, system};
use intact_watch::FaultConfig;
use std::ffi::OsString;
use std::path::PathBuf;
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
    /// The path that invocations request, if the function serves HTTP at the port in `PORT`;
    /// `None`: it uses the Runtime API.
    pub serves: Option<String>,
}

/// Where invocations belong in the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunPosition {
    /// Index into the run's variants.
    pub variant: u32,
    /// The round, from 1.
    pub round: u32,
}

/// How processes are frozen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freezer {
    /// SIGSTOP to one process after the other.
    Signals,
    /// A control group, all at once; needs the right to make one.
    ControlGroup,
}

impl Freezer {
    /// A control group if this process may create one, else signals.
    pub fn best() -> Freezer {
        if system::can_freeze_groups() {
            Freezer::ControlGroup
        } else {
            Freezer::Signals
        }
    }
}

/// How the connections of environments are followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watcher {
    /// The command that calls [`crate::follow`] with the words that come after it.
    pub command: Vec<OsString>,
    /// The key of the run's fingerprints.
    pub fingerprint_key: [u8; 32],
    /// The folder of the function's code, whose lines that open connections are named.
    pub code_root: Option<PathBuf>,
    /// A fault that strikes the connections of each environment.
    pub fault: Option<FaultConfig>,
}

/// How a function is invoked.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Invocations.
    pub invocations: u64,
    /// What each is given.
    pub event: Event,
    /// The function's limit.
    pub timeout: Duration,
    /// The limit until the process asks for its first event; on Lambda 10 s.
    pub init_timeout: Duration,
    /// A new environment after this number of invocations; `None`: only after one has ended.
    pub cold_every: Option<u64>,
    /// How long the environment is idle before an invocation, taken in turn; zero: not frozen.
    pub idle: Vec<Duration>,
    /// Each idle time is divided by this number.
    pub time_scale: f64,
    /// How an idle environment is frozen; `None`: it is not.
    pub freezer: Option<Freezer>,
    /// The share of one processor that an environment gets; `None`: all of it.
    pub cpu_share: Option<f64>,
    /// Environments at once: this number of invocations begin together.
    pub concurrency: u64,
    /// How its connections are followed; `None`: they are not.
    pub watcher: Option<Watcher>,
}

impl Plan {
    /// This number of invocations with an empty event, one right after the other.
    pub fn new(invocations: u64) -> Plan {
        Plan {
            invocations,
            event: Event::EMPTY.into(),
            timeout: Duration::from_secs(30),
            init_timeout: Duration::from_secs(10),
            cold_every: None,
            idle: vec![Duration::ZERO],
            time_scale: 1.0,
            freezer: Some(Freezer::Signals),
            cpu_share: None,
            concurrency: 1,
            watcher: None,
        }
    }

    /// Whether a share of the processor can be given here.
    pub fn can_share_cpu() -> bool {
        system::can_share_cpu()
    }

    /// The idle time before the turn of this number, from 1.
    pub(crate) fn idle_before(&self, turn: u64) -> Duration {
        let count = self.idle.len().max(1) as u64;
        let index = turn.saturating_sub(2) % count;
        self.idle.get(index as usize).copied().unwrap_or_default()
    }
}
