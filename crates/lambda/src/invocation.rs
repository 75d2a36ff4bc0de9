//! What became of an invocation.

use ledger::{Nanos, Span};
use std::time::Duration;

/// One invocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    /// From 1.
    pub number: u64,
    /// The environment that took it, from 1.
    pub environment: u64,
    /// How long the environment was frozen before it; `None`: not at all.
    pub frozen: Option<Duration>,
    /// From the start of the process until it asked for its first event; `None`: the environment was there already (hot).
    pub init: Option<Span>,
    /// When the event was there and the environment was running.
    pub at: Nanos,
    /// When the answer was complete, or what else ended it.
    pub end: Nanos,
    /// What came of it.
    pub outcome: Outcome,
    /// Answers after the first; each was refused with 400.
    pub answered_again: u32,
}

/// What came of an invocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// An answer of so many bytes.
    Answered(u64),
    /// The function reported an error, in its own words (`errorType: errorMessage`, cut at 1 KiB).
    Error(String),
    /// It did not answer within the limit, and was ended.
    Timeout,
    /// The process ended without an answer.
    Crashed(String),
    /// The process could not begin: it reported an error, ended, or did not ask for an event within the limit.
    NoStart(String),
    /// It asked for the next event without having answered.
    Unanswered,
    /// It answered, and did not ask for the next event within the limit: it was ended.
    NeverAskedAgain,
}

impl Outcome {
    /// A stable kebab-case id.
    pub fn id(&self) -> &'static str {
        match self {
            Outcome::Answered(_) => "answered",
            Outcome::Error(_) => "error",
            Outcome::Timeout => "timeout",
            Outcome::Crashed(_) => "crash",
            Outcome::NoStart(_) => "no-start",
            Outcome::Unanswered => "unanswered",
            Outcome::NeverAskedAgain => "never-asked-again",
        }
    }

    /// What the function or the system said of it.
    pub fn detail(&self) -> Option<&str> {
        match self {
            Outcome::Error(words) | Outcome::Crashed(words) | Outcome::NoStart(words) => {
                Some(words)
            }
            _ => None,
        }
    }

    /// Whether the environment can take another invocation.
    pub(crate) fn leaves_environment(&self) -> bool {
        matches!(
            self,
            Outcome::Answered(_) | Outcome::Error(_) | Outcome::Unanswered
        )
    }
}
