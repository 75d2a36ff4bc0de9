//! One invocation, as every document reports it.

use super::frozen::{self, Freeze};
use super::traffic::{self, Traffic};
use intact_ledger::Invocation;
use serde::Serialize;

/// One invocation. Times in milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct InvocationFacts {
    /// Index into the run's variants.
    pub variant: usize,
    /// The round, from 1; each begins with a new environment.
    pub round: u32,
    /// The environment that took it, unique in the run.
    pub environment: u64,
    /// When it was invoked, since the start of the run.
    pub at_ms: f64,
    /// The function's own time, without the start of the environment.
    pub duration_ms: f64,
    /// From the start of the process until it asked for its first event; `None`: the environment
    /// was there (warm).
    pub init_ms: Option<f64>,
    /// How long the environment was frozen before; `None`: it was not.
    pub frozen_ms: Option<f64>,
    /// How long it was meant to rest before (`--idle`); `None`: not at all.
    pub idle_ms: Option<f64>,
    /// `answered`, `error`, `timeout`, `crash`, `no-start`, `unanswered`, `never-asked-again`.
    pub outcome: &'static str,
    /// What the function or the system said of it.
    pub detail: Option<String>,
    /// Answers after the first, all refused.
    pub duplicate_response: u32,
    /// Connections that were opened from its start (with its environment's, if it was cold) to the
    /// start of the next; absent where connections were not watched.
    pub connections: Option<u64>,
    /// Requests that the function began in that time.
    pub requests: Option<u64>,
    /// Those on a connection that was there already.
    pub reused: Option<u64>,
    /// The states of the connections that the freeze before it found open.
    pub freeze: Option<Freeze>,
}

impl InvocationFacts {
    /// Whether the function answered; an error that it reports is none.
    pub fn is_ok(&self) -> bool {
        self.outcome == "answered"
    }

    /// Cold, warm, or frozen for so long as was asked: the machine adds a few milliseconds to each
    /// pause.
    pub(super) fn kind(&self) -> String {
        let seconds = |ms: f64| (ms / 100.0).round() / 10.0;
        match (self.init_ms, self.frozen_ms, self.idle_ms) {
            (Some(_), ..) => "cold".to_owned(),
            (None, None, None) => "warm".to_owned(),
            (None, None, Some(ms)) => format!("rested {} s", seconds(ms)),
            (None, Some(_), Some(ms)) => format!("frozen {} s", seconds(ms)),
            (None, Some(ms), None) => format!("frozen {} s", seconds(ms)),
        }
    }
}

/// All invocations, with what they did on the network where connections were watched.
pub(super) fn calls(invocations: &[Invocation], traffic: Option<&Traffic>) -> Vec<InvocationFacts> {
    let ends = traffic::until(invocations);
    let ms = |nanos: u64| nanos as f64 / 1e6;
    let each = invocations.iter().zip(ends).map(|(one, until)| {
        let share = traffic.map(|all| all.between(one.environment, one.begins(), until));
        InvocationFacts {
            variant: one.variant.unwrap_or(0) as usize,
            round: one.round.unwrap_or(1),
            environment: one.environment,
            at_ms: one.at.as_ms(),
            duration_ms: ms(one.end.since(one.at)),
            init_ms: one.init.map(|init| ms(init.nanos())),
            frozen_ms: one.frozen.map(|frozen| ms(frozen.nanos())),
            idle_ms: one.rest.map(ms),
            outcome: one.fate.id(),
            detail: one.fate.words().map(str::to_owned),
            duplicate_response: one.duplicate_response,
            connections: share.map(|share| share.connections),
            requests: share.map(|share| share.requests),
            reused: share.map(|share| share.reused),
            freeze: traffic.and_then(|all| frozen::pause(all, one, until)),
        }
    });
    each.collect()
}
