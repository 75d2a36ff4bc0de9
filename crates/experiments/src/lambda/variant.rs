//! One variant of a function: its kinds of invocations, its rounds, what it sent, what freezes did
//! to it.

use super::frozen::{self, DeadUse, FreezeEffect, FrozenConnection};
use super::invocation::InvocationFacts;
use crate::compare::is_fewer;
use intact_document::figures::{Latency, NANOS_PER_MS};
use intact_document::grouping::grouped;
use intact_document::population::buckets_ms;
use intact_ledger::Histogram;
use intact_reading::{Reading, Why};
use intact_statistics::mean;
use intact_traffic::ObservedFacts;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Invocations that have something in common.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Kind {
    /// `cold`, `warm`, or `frozen 30 s`.
    pub name: String,
    /// How many.
    pub count: u64,
    /// Of these, not answered.
    pub failed: u64,
    /// The function's own time of those answered.
    pub latency_ms: Latency,
    /// The start of the environment; of cold ones only.
    pub init_ms: Option<Latency>,
    /// Connections opened for each; absent where connections were not watched.
    pub connections_per_invocation: Option<f64>,
    /// Requests that each made.
    pub requests_per_invocation: Option<f64>,
    /// What the freezes before them did; of frozen ones only, where connections were watched.
    pub freezes: Option<Freezes>,
    /// What those said that failed, each with how often; the most frequent first, ten at most.
    pub failures: Vec<(String, u64)>,
    /// The histogram of `latency_ms`: low, high (milliseconds), count.
    #[serde(skip)]
    pub buckets: Vec<(f64, f64, u64)>,
}

/// What freezes of one length did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Freezes {
    /// Connections that were open when they began.
    pub open: u64,
    /// Their states after the freezes.
    pub connection_states: BTreeMap<FrozenConnection, u64>,
    /// What the invocations after them saw.
    pub effect: BTreeMap<FreezeEffect, u64>,
    /// What those saw that had a death of each kind before them.
    pub by_state: BTreeMap<FrozenConnection, BTreeMap<FreezeEffect, u64>>,
    /// Invocations that failed by how they used a connection that had died.
    pub dead_use: BTreeMap<DeadUse, u64>,
}

/// One round of a variant.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RoundMean {
    /// From 1.
    pub round: u32,
    /// Mean of the function's own time, answered and not cold, in milliseconds.
    pub mean_ms: f64,
}

/// What a variant sent.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Sent {
    /// Requests.
    pub requests: Reading,
    /// Those on a connection that was there already.
    pub reused: Reading,
    /// Their share of all requests.
    pub reuse: Reading,
    /// Connections opened.
    pub connections: Reading,
    /// Of these, more than the environments needed.
    pub avoidable: Reading,
    /// Of these, those that would not have been needed without the server's limits.
    pub avoidable_by_server: Reading,
    /// Opened for each invocation that found its environment there.
    pub connections_per_invocation: Reading,
    /// Opened for each environment.
    pub connections_per_environment: Option<f64>,
    /// Why figures are inferred; empty when all were observed.
    pub inferred: Vec<String>,
}

/// One variant.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct VariantFacts {
    /// Its name.
    pub name: String,
    /// Invocations by outcome.
    pub outcomes: BTreeMap<&'static str, u64>,
    /// Environments that were started.
    pub environments: u64,
    /// The mean of the first calls, the start of the environment included, in milliseconds.
    pub cold_start_ms: Reading,
    /// The function's own time of all that were answered and not cold.
    pub warm_ms: Latency,
    /// What it sent; absent where connections were not watched.
    pub sent: Option<Sent>,
    /// Cold, warm, and after each pause.
    pub kinds: Vec<Kind>,
    /// Rounds.
    pub rounds: Vec<RoundMean>,
    /// Its traffic as `watch` would report it.
    #[serde(skip)]
    pub observed: Option<Box<ObservedFacts>>,
}

impl VariantFacts {
    /// Its traffic, if connections were avoidable.
    pub fn wasteful(&self) -> Option<&ObservedFacts> {
        let observed = self.observed.as_deref();
        observed.filter(|observed| observed.totals.counted.avoidable > 0)
    }

    /// Connections that died in a freeze.
    pub(super) fn died_in_freeze(&self) -> u64 {
        let freezes = self.kinds.iter().filter_map(|kind| kind.freezes.as_ref());
        let states = freezes.flat_map(|freezes| &freezes.connection_states);
        let dead = states.filter(|(state, _)| state.is_death());
        dead.map(|(_, count)| count).sum()
    }

    /// Invocations that failed because of a connection that had died in a freeze.
    pub(super) fn failed_on_dead(&self, dead_use: DeadUse) -> u64 {
        let freezes = self.kinds.iter().filter_map(|kind| kind.freezes.as_ref());
        freezes
            .filter_map(|freezes| freezes.dead_use.get(&dead_use))
            .sum()
    }

    /// Whether any invocation failed so.
    pub(super) fn fails_on_dead(&self) -> bool {
        [DeadUse::Sent, DeadUse::Unsent]
            .iter()
            .any(|dead_use| self.failed_on_dead(*dead_use) > 0)
    }

    /// Requests per invocation, over all kinds; absent where connections were not watched.
    pub(super) fn requests_per_invocation(&self) -> Option<f64> {
        let sums = self.kinds.iter().map(|kind| {
            let requests = kind.requests_per_invocation? * kind.count as f64;
            Some((requests, kind.count as f64))
        });
        let sums: Vec<(f64, f64)> = sums.collect::<Option<_>>()?;
        let count: f64 = sums.iter().map(|one| one.1).sum();
        (count > 0.0).then(|| sums.iter().map(|one| one.0).sum::<f64>() / count)
    }

    /// Whether it sends fewer requests per invocation than the other.
    pub(super) fn sends_fewer(&self, other: &VariantFacts) -> bool {
        let each = [self, other].map(VariantFacts::requests_per_invocation);
        matches!(each, [Some(ours), Some(theirs)] if is_fewer(ours, theirs))
    }

    pub(super) fn new(
        name: &str,
        calls: &[&InvocationFacts],
        observed: Option<ObservedFacts>,
    ) -> VariantFacts {
        let observed = observed.map(|mut facts| {
            frozen::add_unsent(&mut facts.totals.traffic, calls.iter().copied());
            facts
        });
        let mut outcomes = BTreeMap::new();
        for call in calls {
            *outcomes.entry(call.outcome).or_default() += 1;
        }
        let kinds = grouped(calls.iter().map(|&call| (call.kind(), call)));
        let warm = |call: &&&InvocationFacts| call.init_ms.is_none() && call.is_ok();
        let mut rounds: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        for call in calls.iter().filter(warm) {
            rounds.entry(call.round).or_default().push(call.duration_ms);
        }
        let first = calls.iter().filter(|call| call.is_ok());
        let first: Vec<f64> = first
            .filter_map(|call| Some(call.init_ms? + call.duration_ms))
            .collect();
        let environments: BTreeSet<u64> = calls.iter().map(|call| call.environment).collect();
        let environments = environments.len() as u64;
        VariantFacts {
            name: name.to_owned(),
            outcomes,
            environments,
            cold_start_ms: Reading::of(mean(&first), Why::NothingHappened),
            warm_ms: latency(calls.iter().filter(warm).map(|call| call.duration_ms)),
            sent: observed
                .as_ref()
                .map(|facts| Sent::new(facts, calls, environments)),
            kinds: kinds
                .into_iter()
                .map(|(name, calls)| Kind::new(name, &calls))
                .collect(),
            rounds: rounds
                .into_iter()
                .filter_map(|(round, times)| {
                    let mean_ms = mean(&times)?;
                    Some(RoundMean { round, mean_ms })
                })
                .collect(),
            observed: observed.map(Box::new),
        }
    }
}

impl Sent {
    fn new(facts: &ObservedFacts, calls: &[&InvocationFacts], environments: u64) -> Sent {
        let warm = calls.iter().filter(|call| call.init_ms.is_none());
        let warm: Vec<f64> = warm
            .filter_map(|call| call.connections.map(|count| count as f64))
            .collect();
        let totals = &facts.totals;
        let traffic = &totals.traffic;
        let opened = totals.counted.connections.opened;
        let each = mean(&warm).map(|each| totals.counted.unobserved.at_least_connections(each));
        Sent {
            requests: traffic.requests.total.clone(),
            reused: traffic.reused.clone(),
            reuse: traffic.reuse.clone(),
            connections: traffic.connections.opened.clone(),
            avoidable: traffic.avoidable.clone(),
            avoidable_by_server: traffic.avoidable_by_server.clone(),
            connections_per_invocation: each.unwrap_or_default(),
            connections_per_environment: (environments > 0)
                .then(|| opened as f64 / environments as f64),
            inferred: facts.totals.inferred.clone(),
        }
    }
}

impl Kind {
    fn new(name: String, calls: &[&InvocationFacts]) -> Kind {
        let ok = || calls.iter().filter(|call| call.is_ok());
        let mut failures: BTreeMap<String, u64> = BTreeMap::new();
        for call in calls.iter().filter(|call| !call.is_ok()) {
            let words = match &call.detail {
                Some(detail) => format!("{}: {detail}", call.outcome),
                None => call.outcome.to_owned(),
            };
            *failures.entry(words).or_default() += 1;
        }
        let mut failures: Vec<(String, u64)> = failures.into_iter().collect();
        failures.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        failures.truncate(10);
        let init: Vec<f64> = calls.iter().filter_map(|call| call.init_ms).collect();
        let times = histogram(ok().map(|call| call.duration_ms));
        let each = |of: fn(&InvocationFacts) -> Option<u64>| {
            let counts = calls.iter().filter_map(|call| of(call));
            mean(&counts.map(|count| count as f64).collect::<Vec<f64>>())
        };
        Kind {
            name,
            count: calls.len() as u64,
            failed: (calls.len() - ok().count()) as u64,
            latency_ms: Latency::of(&times),
            buckets: buckets_ms(&times),
            init_ms: (!init.is_empty()).then(|| latency(init.into_iter())),
            connections_per_invocation: each(|call| call.connections),
            requests_per_invocation: each(|call| call.requests),
            freezes: Freezes::of(calls),
            failures,
        }
    }
}

impl Freezes {
    fn of(calls: &[&InvocationFacts]) -> Option<Freezes> {
        let mut all = Freezes::default();
        let mut any = false;
        for pause in calls.iter().filter_map(|call| call.freeze.as_ref()) {
            any = true;
            all.open += pause.connection_states.len() as u64;
            *all.effect.entry(pause.effect).or_default() += 1;
            if let Some(dead_use) = pause.dead_use {
                *all.dead_use.entry(dead_use).or_default() += 1;
            }
            for &case in &pause.connection_states {
                *all.connection_states.entry(case).or_default() += 1;
            }
            let deaths: BTreeSet<FrozenConnection> = pause
                .connection_states
                .iter()
                .copied()
                .filter(|case| case.is_death())
                .collect();
            for case in deaths {
                let saw = all.by_state.entry(case).or_default();
                *saw.entry(pause.effect).or_default() += 1;
            }
        }
        any.then_some(all)
    }
}

fn latency(values: impl Iterator<Item = f64>) -> Latency {
    Latency::of(&histogram(values))
}

fn histogram(values: impl Iterator<Item = f64>) -> Histogram {
    let mut histogram = Histogram::new();
    for ms in values {
        histogram.record((ms * NANOS_PER_MS) as u64);
    }
    histogram
}
