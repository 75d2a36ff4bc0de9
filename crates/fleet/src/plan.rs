//! The plan of a campaign: a TOML file that is checked completely before any message is sent.

mod checks;
mod source;
mod target;

use crate::message::{FORMAT, Job, Message, id_of_message};
use intact_ledger::Variant;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::time::Duration;

/// Stands for the variant in the keys of a check.
pub(crate) const CHECK: &str = "check";

pub use checks::CheckTargetError;
pub(crate) use source::is_plain;
pub use source::{PlanError, parse};
pub use target::{Acknowledged, Kind, Target};

/// A checked plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The format of plan, messages and results.
    pub format: u32,
    /// First part of every key in the store: the plan's name and a fingerprint of its content.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The servers to measure.
    pub targets: Vec<Target>,
    /// Regions, or other names of groups of workers.
    pub labels: Vec<String>,
    /// The variants, in the order of their axes' product.
    pub variants: Vec<Variant>,
    /// The axes with more than one value.
    pub varied: Vec<String>,
    /// Number of measurements of each variant, per target and label.
    pub repetitions: u32,
    /// Number of messages per repetition of a bench, so that each fits the time limit of a
    /// function.
    pub slices: u32,
    /// Duration of the bench of one message, in milliseconds.
    pub slice_ms: u64,
    /// Limits of the load.
    pub limits: Limits,
}

/// Limits of the load on each target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Limits {
    /// Requests to one target over the whole campaign, including repeated deliveries.
    pub requests: u64,
    /// Requests per second to one target, over all workers.
    pub rate: f64,
    /// Number of concurrent workers; each gets an equal share of the rate.
    pub workers: u32,
    /// Number of deliveries of a message before it becomes a dead letter.
    #[serde(default = "three")]
    pub deliveries: u32,
}

fn three() -> u32 {
    3
}

/// The load of a plan, printed before it is sent.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Estimate {
    /// Number of messages.
    pub messages: u64,
    /// Requests to the target with the most requests, if each message is delivered once.
    pub requests_per_target: u64,
    /// The same if each message is delivered as often as allowed.
    pub most_per_target: u64,
    /// Limit of requests per second to one target.
    pub rate_per_target: f64,
    /// Duration with all workers busy.
    #[serde(skip)]
    pub duration: Duration,
    /// Whether the limit of requests ends messages before their time is over.
    pub capped: bool,
}

impl Plan {
    /// Warnings, one sentence each: secrets that the queue would hold in plain text.
    pub fn warnings(&self) -> Vec<String> {
        self.targets
            .iter()
            .flat_map(Target::plain_secrets)
            .collect()
    }

    /// Number of messages of the plan.
    pub fn len(&self) -> u64 {
        let targets = self.targets.iter();
        targets.fold(0, |sum: u64, target| {
            sum.saturating_add(self.len_of(target))
        })
    }

    /// Always false; the lint that sees `len` requires it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of messages of a target. A stored plan is foreign input, so the product saturates.
    fn len_of(&self, target: &Target) -> u64 {
        let once = (self.labels.len() as u64).saturating_mul(u64::from(self.repetitions));
        let variants = self.variants.len() as u64;
        match target.measure {
            Kind::Bench => once
                .saturating_mul(variants)
                .saturating_mul(u64::from(self.slices)),
            Kind::Check => once,
        }
    }

    /// Limit of requests per delivery of a message of this target, including preflight and warm-up.
    fn requests_per_delivery(&self, target: &Target) -> u64 {
        self.limits.requests / self.len_of(target) / u64::from(self.limits.deliveries)
    }

    /// One worker's share of the rate.
    fn rate_of_worker(&self) -> f64 {
        self.limits.rate / f64::from(self.limits.workers)
    }

    /// Duration of the bench of a message, or limit of its check, in milliseconds.
    pub fn ms_of(&self, target: &Target) -> u64 {
        let longest = match target.measure {
            Kind::Bench => return self.slice_ms,
            // the plan was checked, so this target is valid
            Kind::Check => target.longest_check(self.rate_of_worker()),
        };
        longest.map_or(self.slice_ms, |time| {
            u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
        })
    }

    /// Requests of one delivery within its time; for a check its whole budget.
    fn requests_in_time(&self, target: &Target) -> u64 {
        match target.measure {
            Kind::Bench => {
                let in_time = self.rate_of_worker() * self.slice_ms as f64 / 1e3;
                (in_time.ceil() as u64).max(1)
            }
            // the plan was checked, so this target is valid
            Kind::Check => target.budget().map_or(0, u64::from),
        }
    }

    /// The load of the plan.
    pub fn estimate(&self) -> Estimate {
        let most = self.targets.iter().map(|target| {
            let in_time = self.requests_in_time(target);
            self.len_of(target) * in_time.min(self.requests_per_delivery(target))
        });
        let requests_per_target = most.max().unwrap_or(0);
        let times = self.targets.iter();
        let all = times.map(|target| self.ms_of(target).saturating_mul(self.len_of(target)));
        let all = all.fold(0, u64::saturating_add);
        Estimate {
            messages: self.len(),
            requests_per_target,
            most_per_target: requests_per_target * u64::from(self.limits.deliveries),
            rate_per_target: self.limits.rate,
            duration: Duration::from_millis(all.div_ceil(u64::from(self.limits.workers))),
            capped: self
                .targets
                .iter()
                .any(|target| self.requests_per_delivery(target) < self.requests_in_time(target)),
        }
    }

    /// The messages, interleaved: the variants of one repetition are close to each other in time.
    pub fn messages(&self) -> impl Iterator<Item = Message> + '_ {
        self.cells().map(|cell| self.message_of(&cell))
    }

    /// The message with this index, from 0; `None` after the last one.
    pub fn message(&self, index: u64) -> Option<Message> {
        // checks occur in the first slice of a repetition only
        let first = self.cells_of(0, 0).count() as u64;
        let other = self.cells_of(0, 1).count() as u64;
        let all = first + other * u64::from(self.slices - 1);
        let repetition = u32::try_from(index.checked_div(all)?).ok()?;
        let within = index % all;
        let (slice, at) = match within.checked_sub(first) {
            None => (0, within),
            Some(after) => (1 + after / other, after % other),
        };
        let mut cells = self.cells_of(repetition, slice as u32);
        let cell = cells
            .nth(at as usize)
            .filter(|_| repetition < self.repetitions)?;
        Some(self.message_of(&cell))
    }

    /// The ids of the messages, in the order of their indices.
    pub(crate) fn ids(&self) -> impl Iterator<Item = String> + '_ {
        self.cells().map(|cell| cell.id())
    }

    /// What each message measures, in the order of their indices.
    fn cells(&self) -> impl Iterator<Item = PlanCell<'_>> {
        (0..self.repetitions).flat_map(move |repetition| {
            (0..self.slices).flat_map(move |slice| self.cells_of(repetition, slice))
        })
    }

    /// What the messages of one repetition and slice measure.
    fn cells_of(&self, repetition: u32, slice: u32) -> impl Iterator<Item = PlanCell<'_>> {
        self.targets.iter().flat_map(move |target| {
            self.labels.iter().flat_map(move |label| {
                let variants = self.variants_of(target, repetition, slice);
                variants.into_iter().map(move |variant| PlanCell {
                    target,
                    label,
                    variant,
                    repetition,
                    slice,
                })
            })
        })
    }

    /// The variants of one repetition and slice. Their order differs in each, so that no variant is
    /// always the first. A check has no variant and occurs once per repetition.
    fn variants_of(&self, target: &Target, repetition: u32, slice: u32) -> Vec<Option<u32>> {
        match target.measure {
            Kind::Bench => {
                let count = self.variants.len() as u32;
                let first = (repetition * self.slices + slice) % count;
                (first..count).chain(0..first).map(Some).collect()
            }
            Kind::Check if slice == 0 => vec![None],
            Kind::Check => Vec::new(),
        }
    }

    fn message_of(&self, cell: &PlanCell<'_>) -> Message {
        let target = cell.target;
        let settings = cell.variant.map(|variant| &self.variants[variant as usize]);
        let job = Job {
            target: target.clone(),
            axes: settings.map_or_else(BTreeMap::new, |settings| settings.axes.clone()),
            ms: self.ms_of(target),
            most_requests: self.requests_per_delivery(target),
            rate_per_s: self.rate_of_worker(),
        };
        Message {
            format: FORMAT,
            id: cell.id(),
            plan: self.id.clone(),
            target: target.name.clone(),
            label: cell.label.to_owned(),
            variant: cell.variant,
            variant_name: settings.map_or(CHECK, |settings| &settings.name).to_owned(),
            repetition: cell.repetition,
            slice: cell.slice,
            job,
        }
    }
}

/// What one message measures.
struct PlanCell<'a> {
    target: &'a Target,
    label: &'a str,
    variant: Option<u32>,
    repetition: u32,
    slice: u32,
}

impl PlanCell<'_> {
    fn id(&self) -> String {
        let target = &self.target.name;
        id_of_message(
            target,
            self.label,
            self.variant,
            self.repetition,
            self.slice,
        )
    }
}

/// The plan's id: its name and the first 8 hexadecimal digits of the SHA-256 of its content. A
/// variable of a shell has no line ends at its end.
fn id_of(name: &str, text: &str) -> String {
    let digest = Sha256::digest(text.trim_end().as_bytes());
    let hex: String = digest[..4]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("{name}-{hex}")
}
