//! Invocations of a function by `intact lambda`, and their outcomes.

use crate::time::{Nanos, Span};
use serde::{Deserialize, Serialize};

/// Id of the caveat of a run whose function's connections were not followed.
pub const CONNECTIONS_NOT_FOLLOWED: &str = "connections-not-followed";

/// One invocation. It includes the connections that its environment opened, and the exchanges that
/// began, from its start until the start of the next one.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Invocation {
    /// Unique within the run.
    pub id: u64,
    /// Index into the run's variants.
    pub variant: Option<u32>,
    /// The round, from 1.
    pub round: Option<u32>,
    /// The environment, unique within the run.
    pub environment: u64,
    /// From the start of the environment until it requested its first event; absent if it was
    /// warm.
    pub init: Option<Span>,
    /// How long the environment was frozen before; absent if it was not.
    pub frozen: Option<Span>,
    /// The planned freeze before it, in nanoseconds. `frozen` has the actual duration, which
    /// `--time-scale` may shorten.
    pub rest: Option<u64>,
    /// When the event was available and the environment was running.
    pub at: Nanos,
    /// When the response was complete, or when it ended otherwise.
    pub end: Nanos,
    /// The outcome.
    #[serde(flatten)]
    pub fate: InvocationOutcome,
    /// Number of responses after the first, all refused.
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub duplicate_response: u32,
}

impl Invocation {
    /// The start of its events: the start of its environment, if that had to be started.
    pub fn begins(&self) -> Nanos {
        self.init.map_or(self.at, |init| init.start)
    }
}

/// The outcome of an invocation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "outcome", content = "detail", rename_all = "kebab-case")]
pub enum InvocationOutcome {
    /// A response of this number of bytes.
    Answered(u64),
    /// The function reported an error with this message.
    Error(String),
    /// It did not respond within the limit, and was ended.
    Timeout,
    /// The process ended without a response.
    Crash(String),
    /// The process could not start: it reported an error, ended, or did not request an event within
    /// the limit.
    NoStart(String),
    /// It requested the next event without a response to the last one.
    Unanswered,
    /// It responded, but did not request the next event within the limit: it was ended.
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

    /// The message of the function or the system.
    pub fn words(&self) -> Option<&str> {
        match self {
            InvocationOutcome::Error(words)
            | InvocationOutcome::Crash(words)
            | InvocationOutcome::NoStart(words) => Some(words),
            _ => None,
        }
    }

    /// Whether the function responded. A reported error does not count.
    pub fn is_answer(&self) -> bool {
        matches!(self, InvocationOutcome::Answered(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outcome_of_an_invocation_reads_back() {
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
