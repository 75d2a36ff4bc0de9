//! The estimate of a plan and the state of a campaign, as text and as JSON. Must not print: the
//! caller does.

use crate::plan::{Estimate, Kind, Plan};
use crate::store::{Store, StoreError};
use intact_units::number;
use intact_units::plural::counted;
use serde::Serialize;
use std::fmt::Write;
use std::time::Duration;

/// The estimate of a plan.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlanDocument<'a> {
    /// `intact.fleet-plan/1`.
    schema: &'static str,
    /// The plan's name, and the first 8 hexadecimal digits of the SHA-256 of its content.
    plan: &'a str,
    /// Number of messages and requests.
    estimate: Estimate,
    /// Duration in seconds, with all workers busy.
    duration_s: f64,
    /// The variants, by name.
    variants: Vec<&'a str>,
    /// The labels of the workers.
    labels: &'a [String],
}

/// The state of a campaign.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StatusDocument {
    /// `intact.fleet-status/1`.
    schema: &'static str,
    /// Number of messages by state in a queue; `None` if no queue was given.
    queue: Option<Counts>,
    /// State of the campaign according to its store.
    store: StoreProgress,
}

/// Number of messages of a queue by state. A queue deletes finished messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Counts {
    /// Available for a worker.
    pub waiting: u64,
    /// Held by a worker.
    pub claimed: u64,
    /// In the dead-letter queue; `None` if there is none.
    pub dead: Option<u64>,
}

/// State of a campaign, counted by the keys in its store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StoreProgress {
    /// The plan's id.
    pub plan: String,
    /// Number of messages of the plan.
    pub planned: u64,
    /// Number of messages with a result.
    pub finished: u64,
    /// Number of messages that were given up.
    pub dead: u64,
    /// Number of messages with neither.
    pub missing: u64,
}

impl StoreProgress {
    /// Counts the keys of a plan's results and dead letters. Reads no object.
    pub fn list(store: &Store, plan: &Plan) -> Result<StoreProgress, StoreError> {
        let finished = store.finished(&plan.id)?.len() as u64;
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

/// The estimate of a plan as text.
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
    line(format!(
        "{}: indices 0 to {}",
        counted(estimate.messages, "message"),
        estimate.messages.saturating_sub(1)
    ));
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
        "to each target: at most {} requests/s; up to {} requests, or {} if every message is delivered {} times",
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
        // a check ends before its limit if its probes are complete
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

/// The estimate of a plan as JSON.
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

/// The state of a campaign as text, with that of its queue if one was given.
pub fn status_page(store: &StoreProgress, queue: Option<&Counts>) -> String {
    let count = number::count;
    let mut rows = vec![
        ("planned", count(store.planned)),
        ("finished", count(store.finished)),
        ("dead letters", count(store.dead)),
        ("missing", count(store.missing)),
    ];
    if let Some(counts) = queue {
        rows.push(("waiting", count(counts.waiting)));
        rows.push(("with a worker", count(counts.claimed)));
    }
    let mut page = format!("plan {}\n", store.plan);
    for (name, value) in rows {
        let _ = writeln!(page, "{name:<13}  {value}");
    }
    page
}

/// The state of a campaign as JSON.
pub fn status_json(store: StoreProgress, queue: Option<Counts>) -> serde_json::Result<String> {
    pretty(&StatusDocument {
        schema: "intact.fleet-status/1",
        queue,
        store,
    })
}

fn pretty(value: &impl Serialize) -> serde_json::Result<String> {
    Ok(serde_json::to_string_pretty(value)? + "\n")
}
