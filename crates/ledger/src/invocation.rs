//! Invocations of a function: what `intact lambda` asked of it, and what became of that.

use crate::time::{Nanos, Span};
use serde::{Deserialize, Serialize};

/// The caveat of a run whose function's connections were not followed.
pub const CONNECTIONS_NOT_FOLLOWED: &str = "connections-not-followed";

/// One invocation. The connections of its environment that were opened, and the exchanges that began, from its start until the
/// start of the next belong to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Invocation {
    /// Unique within the run.
    pub id: u64,
    /// Index into the run's variants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<u32>,
    /// The round, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round: Option<u32>,
    /// The environment that took it, unique within the run.
    pub environment: u64,
    /// From the start of the environment until it asked for its first event; absent where it was there already (warm).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub init: Option<Span>,
    /// How long the environment stood still before; absent where it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frozen: Option<Span>,
    /// How long it was meant to rest before, in nanoseconds; `frozen` tells how long it did, and a run may pass that time faster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rest: Option<u64>,
    /// When the event was there and the environment was running.
    pub at: Nanos,
    /// When the answer was complete, or what else ended it.
    pub end: Nanos,
    /// What came of it.
    #[serde(flatten)]
    pub fate: InvocationOutcome,
    /// Answers after the first, all refused.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub duplicate_response: u32,
}

impl Invocation {
    /// When what belongs to it begins: with the start of its environment, where it had to be started.
    pub fn begins(&self) -> Nanos {
        self.init.map_or(self.at, |init| init.start)
    }
}

/// What came of an invocation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "outcome", content = "detail", rename_all = "kebab-case")]
pub enum InvocationOutcome {
    /// An answer of so many bytes.
    Answered(u64),
    /// The function reported an error, in its own words.
    Error(String),
    /// It did not answer within the limit, and was ended.
    Timeout,
    /// The process ended without an answer.
    Crash(String),
    /// The process could not begin: it reported an error, ended, or did not ask for an event within the limit.
    NoStart(String),
    /// It asked for the next event without having answered.
    Unanswered,
    /// It answered, and did not ask for the next event within the limit: it was ended.
    NeverAskedAgain,
}

impl InvocationOutcome {
    /// A stable kebab-case id.
    pub fn id(&self) -> &'static str {
        match self {
            InvocationOutcome::Answered(_) => "answered",
            InvocationOutcome::Error(_) => "error",
            InvocationOutcome::Timeout => "timeout",
            InvocationOutcome::Crash(_) => "crash",
            InvocationOutcome::NoStart(_) => "no-start",
            InvocationOutcome::Unanswered => "unanswered",
            InvocationOutcome::NeverAskedAgain => "never-asked-again",
        }
    }

    /// What the function or the system said of it.
    pub fn words(&self) -> Option<&str> {
        match self {
            InvocationOutcome::Error(words)
            | InvocationOutcome::Crash(words)
            | InvocationOutcome::NoStart(words) => Some(words),
            _ => None,
        }
    }

    /// Whether the function answered; an error that it reports is none.
    pub fn is_answer(&self) -> bool {
        matches!(self, InvocationOutcome::Answered(_))
    }
}

/// For serde: a count that need not be written.
fn is_zero(count: &u32) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_of_an_invocation_reads_back() {
        for fate in [
            InvocationOutcome::Answered(7),
            InvocationOutcome::Error("Error: socket hang up".to_owned()),
            InvocationOutcome::NeverAskedAgain,
        ] {
            let one = Invocation {
                id: 1,
                variant: None,
                round: Some(1),
                environment: 2,
                init: None,
                frozen: Some(Span::new(Nanos(1), Nanos(2))),
                rest: Some(1),
                at: Nanos(3),
                end: Nanos(4),
                fate,
                duplicate_response: 0,
            };
            let json = serde_json::to_string(&one).unwrap();
            assert!(
                json.contains(&format!("\"outcome\":\"{}\"", one.fate.id())),
                "{json}"
            );
            assert_eq!(serde_json::from_str::<Invocation>(&json).unwrap(), one);
        }
    }
}
