//! What a plan will send and how far a queue is, in words and as JSON. Must not print: the caller does.

use crate::plan::{Estimate, Kind, Plan};
use crate::queue::Counts;
use crate::store::{Store, StoreError};
use intact_units::number;
use intact_units::plural::counted;
use serde::Serialize;
use std::fmt::Write;
use std::time::Duration;

/// What a plan will send.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlanDocument<'a> {
    /// `intact.fleet-plan/1`.
    schema: &'static str,
    /// The plan's name, and the first 8 hexadecimal digits of the SHA-256 of its content.
    plan: &'a str,
    /// Messages and requests.
    estimate: Estimate,
    /// The duration with all workers busy, in seconds.
    duration_s: f64,
    /// The variants, by name.
    variants: Vec<&'a str>,
    /// The labels of the workers.
    labels: &'a [String],
}

/// The state of a queue.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StatusDocument {
    /// `intact.fleet-status/1`.
    schema: &'static str,
    /// Messages by state.
    queue: Counts,
    /// The campaign by what is in its store; absent where no store was named.
    store: Option<StoreProgress>,
}

/// How far a campaign is, counted by the names in its store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StoreProgress {
    /// The plan's id.
    pub plan: String,
    /// Messages of the plan.
    pub planned: u64,
    /// Messages with a result.
    pub finished: u64,
    /// Messages that were given up.
    pub dead: u64,
    /// Messages with neither.
    pub missing: u64,
}

impl StoreProgress {
    /// Counts the names of a plan's results and dead letters; no object is read.
    pub fn list(store: &Store, plan: &Plan) -> Result<StoreProgress, StoreError> {
        let finished = store.finished(&plan.id)?;
        let dead = store.keys(&format!("dead/plan={}", plan.id))?.len() as u64;
        let planned = plan.len();
        Ok(StoreProgress {
            plan: plan.id.clone(),
            planned,
            finished,
            dead,
            missing: planned.saturating_sub(finished + dead),
        })
    }
}

/// Prints what a plan will send.
pub fn plan_page(plan: &Plan) -> String {
    let estimate = plan.estimate();
    let mut page = format!("plan {}\n", plan.id);
    let mut line = |words: String| {
        let _ = writeln!(page, "  {words}");
    };
    let of = |kind| {
        let targets = plan.targets.iter();
        targets.filter(|target| target.measure == kind).count()
    };
    line(counted(estimate.messages, "message"));
    if of(Kind::Bench) > 0 {
        line(format!(
            "benches: {} targets x {} labels x {} variants x {} repetitions x {} slices of {}",
            of(Kind::Bench),
            plan.labels.len(),
            plan.variants.len(),
            plan.repetitions,
            plan.slices,
            number::long_time(Duration::from_millis(plan.slice_ms)),
        ));
    }
    let checks = plan.targets.iter();
    let checks = checks.filter(|target| target.measure == Kind::Check);
    if let Some(longest) = checks.map(|target| plan.ms_of(target)).max() {
        line(format!(
            "checks: {} targets x {} labels x {} repetitions, each within {}",
            of(Kind::Check),
            plan.labels.len(),
            plan.repetitions,
            number::long_time(Duration::from_millis(longest)),
        ));
    }
    line(format!(
        "to each target: at most {} requests/s; up to {} requests, {} at the very most if every message is delivered {} times",
        estimate.rate_per_target,
        number::count(estimate.requests_per_target),
        number::count(estimate.most_per_target),
        plan.limits.deliveries,
    ));
    if estimate.capped {
        line("the cap on requests ends messages before their time is over".to_owned());
    }
    line(format!(
        "{} {} with {} workers",
        // a check ends when it knows enough
        if of(Kind::Check) > 0 {
            "at most"
        } else {
            "about"
        },
        number::long_time(estimate.duration),
        plan.limits.workers
    ));
    for target in &plan.targets {
        line(format!(
            "target {}: {}, acknowledged{}",
            target.name,
            intact_ledger::redact::url(&target.url),
            if target.measure == Kind::Check {
                ", checked"
            } else {
                ""
            }
        ));
    }
    page
}

/// The same as JSON.
pub fn plan_json(plan: &Plan) -> serde_json::Result<String> {
    let estimate = plan.estimate();
    let variants: Vec<&str> = plan
        .variants
        .iter()
        .map(|variant| variant.name.as_str())
        .collect();
    pretty(&PlanDocument {
        schema: "intact.fleet-plan/1",
        plan: &plan.id,
        duration_s: estimate.duration.as_secs_f64(),
        estimate,
        variants,
        labels: &plan.labels,
    })
}

/// How far a queue is, and the campaign where its store is known.
pub fn queue_page(counts: &Counts, store: Option<&StoreProgress>) -> String {
    let count = number::count;
    let mut rows = vec![
        ("waiting", count(counts.waiting)),
        ("with a worker", count(counts.claimed)),
    ];
    match store {
        Some(seen) => rows.extend([
            ("planned", count(seen.planned)),
            ("finished", count(seen.finished)),
            ("dead letters", count(seen.dead)),
            ("missing", count(seen.missing)),
        ]),
        None => {
            // SQS forgets what was finished
            let unknown = || "not known to this queue; --store STORE counts the results".to_owned();
            rows.push(("finished", counts.done.map_or_else(unknown, count)));
            let unknown = || "not known to this queue".to_owned();
            rows.push(("dead letters", counts.dead.map_or_else(unknown, count)));
        }
    }
    let mut page = store.map_or_else(String::new, |seen| format!("plan {}\n", seen.plan));
    for (name, value) in rows {
        let _ = writeln!(page, "{name:<13}  {value}");
    }
    page
}

/// The same as JSON.
pub fn queue_json(counts: &Counts, store: Option<StoreProgress>) -> serde_json::Result<String> {
    pretty(&StatusDocument {
        schema: "intact.fleet-status/1",
        queue: *counts,
        store,
    })
}

fn pretty(value: &impl Serialize) -> serde_json::Result<String> {
    Ok(serde_json::to_string_pretty(value)? + "\n")
}
