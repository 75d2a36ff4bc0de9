//! Reads a campaign from the store: streams over the results, counts each message once, merges per
//! target and label.

use crate::plan::{Kind, Plan, Target};
use crate::store::{CheckResult, DeliveryResult, Store, StoreError};
use intact_ledger::{
    CampaignProgress, Caveat, Cell, DeadLetter, Nanos, Producer, Round, Run, Span, Tally, Vantage,
};
use intact_units::plural::counted;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Limit of separate rounds per variant. Further repetitions share them, so memory stays bounded.
const MOST_ROUNDS: u32 = 200;
/// Number of unreadable results that are named.
const NAMED: usize = 5;

/// The figures of one message, to find workers that stand out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MessageFigures {
    /// Name of the worker that measured it.
    pub worker: String,
    /// Target, label and variant: messages with the same key are comparable.
    pub of: (String, String, u32),
    /// Mean latency of measured requests, in milliseconds.
    pub mean_ms: f64,
    /// Number of measured requests.
    pub requests: u64,
}

/// The merged results of one target and label: a bench whose rounds are the repetitions.
#[derive(Clone, Debug)]
pub struct Group {
    /// The target's name.
    pub target: String,
    /// The label.
    pub label: String,
    /// The header of the merged ledger.
    pub run: Run,
    /// The merged tally.
    pub tally: Tally,
}

/// A campaign as it is stored.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// The plan.
    pub plan: Plan,
    /// Number of messages by state.
    pub progress: CampaignProgress,
    /// The benches, by target and label, in the plan's order.
    pub groups: Vec<Group>,
    /// The figures of each message of a bench.
    pub messages: Vec<MessageFigures>,
}

impl Campaign {
    /// Reads a campaign. `started` is the wall time to record if no result has one. Results of
    /// checks are passed to `checks` one by one, so that they are not all in memory.
    pub fn read(
        store: &Store,
        plan: Plan,
        started: jiff::Timestamp,
        checks: &mut dyn FnMut(&DeliveryResult, &CheckResult),
    ) -> Result<Campaign, StoreError> {
        let mut groups: Vec<Group> = Vec::new();
        let targets = plan.targets.iter();
        for target in targets.filter(|target| target.measure == Kind::Bench) {
            for label in &plan.labels {
                groups.push(Group {
                    target: target.name.clone(),
                    label: label.clone(),
                    run: head(&plan, target, label, started),
                    tally: Tally::new(),
                });
            }
        }
        let mut progress = CampaignProgress {
            planned: plan.len(),
            ..CampaignProgress::default()
        };
        let mut seen = BTreeSet::new();
        let mut messages = Vec::new();
        let mut unreadable = Vec::new();
        // sorted: the first finished attempt of a message is the one that counts
        let mut keys = store.keys(&format!("results/plan={}", plan.id))?;
        keys.sort_unstable();
        store.each(&keys, |key, bytes| {
            let message = key.rsplit('/').nth(1).unwrap_or_default().to_owned();
            if seen.contains(&message) {
                progress.duplicates += 1;
                return;
            }
            let outcome: DeliveryResult = match bytes.and_then(|bytes| store.parse(key, &bytes)) {
                Ok(outcome) => outcome,
                Err(error) => {
                    progress.unreadable += 1;
                    if unreadable.len() < NAMED {
                        unreadable.push(error.to_string());
                    }
                    return;
                }
            };
            seen.insert(message);
            progress.finished += 1;
            if let Some(checked) = &outcome.checked {
                checks(&outcome, checked);
                return;
            }
            let at = groups
                .iter()
                .position(|group| group.target == outcome.target && group.label == outcome.label);
            if let (Some(at), Some(variant)) = (at, outcome.variant) {
                messages.extend(figures(&outcome, variant));
                groups[at].add(&plan, outcome, variant);
            }
        });
        let letters = store.keys(&format!("dead/plan={}", plan.id))?;
        let mut dead: BTreeMap<String, DeadLetter> = BTreeMap::new();
        store.each(&letters, |key, bytes| {
            if let Ok(letter) = bytes.and_then(|bytes| store.parse::<DeadLetter>(key, &bytes))
                && !seen.contains(&letter.message)
            {
                dead.insert(letter.message.clone(), letter);
            }
        });
        progress.dead = dead.into_values().collect();
        progress.missing = progress
            .planned
            .saturating_sub(progress.finished + progress.dead.len() as u64);
        for group in &mut groups {
            group.note(&progress, &unreadable);
        }
        Ok(Campaign {
            plan,
            progress,
            groups,
            messages,
        })
    }
}

impl Group {
    /// Adds a result as a round of its own, or to a shared round.
    fn add(&mut self, plan: &Plan, outcome: DeliveryResult, variant: u32) {
        if self.run.host.os.is_empty() {
            self.run.host = outcome.run.host.clone();
            self.run.started.clone_from(&outcome.run.started);
            self.run.evidence = outcome.run.evidence;
        }
        self.run.evidence = self.run.evidence.intersection(outcome.run.evidence);
        let first = u64::from(outcome.repetition) * u64::from(plan.slices);
        let number = first + u64::from(outcome.slice);
        let round = (number % u64::from(MOST_ROUNDS)) as u32 + 1;
        for mut cell in outcome.tally.cells {
            let round = if cell.round == Some(0) { 0 } else { round };
            let ours = self.tally.cell(Some(variant), Some(round));
            let bounds = ours.bounds.take();
            let theirs = cell.bounds.take();
            ours.merge(&cell);
            ours.bounds = joined(bounds, theirs, variant, round);
        }
    }

    fn note(&mut self, progress: &CampaignProgress, unreadable: &[String]) {
        let mut add = |id: &str, words: String| {
            self.tally.caveats.push(Caveat::incomplete(id, words));
        };
        if progress.missing > 0 {
            add(
                "messages-missing",
                format!(
                    "{} of {} messages have no result yet",
                    progress.missing, progress.planned
                ),
            );
        }
        if !progress.dead.is_empty() {
            add(
                "messages-dead",
                format!(
                    "given up: {}",
                    counted(progress.dead.len() as u64, "message")
                ),
            );
        }
        for words in unreadable {
            add("result-unreadable", words.clone());
        }
    }
}

/// Joins two messages that share a round: times and CPU add up, as if the two had run in sequence.
fn joined(ours: Option<Round>, theirs: Option<Round>, variant: u32, round: u32) -> Option<Round> {
    let (ours, theirs) = match (ours, theirs) {
        (Some(ours), Some(theirs)) => (ours, theirs),
        (one, other) => {
            return one.or(other).map(|bounds| Round {
                variant,
                round,
                ..bounds
            });
        }
    };
    let sum = |a: Option<u64>, b: Option<u64>| a.zip(b).map(|(a, b)| a + b);
    Some(Round {
        client_cpu: sum(ours.client_cpu, theirs.client_cpu),
        client_threads: ours.client_threads.max(theirs.client_threads),
        server_cpu: sum(ours.server_cpu, theirs.server_cpu),
        ..Round::new(
            variant,
            round,
            Span::new(Nanos(0), Nanos(ours.span.nanos() + theirs.span.nanos())),
        )
    })
}

/// The header of a merged ledger.
fn head(plan: &Plan, target: &Target, label: &str, started: jiff::Timestamp) -> Run {
    let mut run = Run::new(
        Producer::Bench,
        env!("CARGO_PKG_VERSION"),
        Vantage::Client,
        started,
        0,
        &[
            "fleet".to_owned(),
            plan.id.clone(),
            target.name.clone(),
            label.to_owned(),
        ],
    );
    run.id = format!("{}.{}.{label}", plan.id, target.name);
    run.subject = Some(intact_ledger::redact::url(&target.url));
    run.expect = target.expect;
    run.varied.clone_from(&plan.varied);
    run.variants.clone_from(&plan.variants);
    run
}

/// The mean over the measured requests of a result.
fn figures(outcome: &DeliveryResult, variant: u32) -> Option<MessageFigures> {
    let measured = |cell: &Cell| {
        (cell.round != Some(0))
            .then(|| cell.merged(|key| !key.warmup && key.outcome.is_ok()))
            .flatten()
    };
    let mut requests = 0;
    let mut nanos = 0;
    for group in outcome.tally.cells.iter().filter_map(measured) {
        requests += group.count();
        nanos += group.latency.sum();
    }
    (requests > 0).then(|| MessageFigures {
        worker: outcome.worker.clone(),
        of: (outcome.target.clone(), outcome.label.clone(), variant),
        mean_ms: nanos as f64 / requests as f64 / 1e6,
        requests,
    })
}
