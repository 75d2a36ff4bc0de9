//! The plan of a campaign: a TOML file, checked as a whole before anything is sent.

mod source;

use crate::message::{FORMAT, Message, Recipe};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::time::Duration;

pub(crate) use source::acknowledged;
pub use source::{PlanError, parse};

/// A checked plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The format of plan, messages and results.
    pub format: u32,
    /// The first part of every key in the store: the plan's name and a fingerprint of its content.
    pub id: String,
    /// Its name.
    pub name: String,
    /// What is measured.
    pub targets: Vec<Target>,
    /// Regions, or whatever tells groups of workers apart.
    pub labels: Vec<String>,
    /// The variants, in the order of their axes' product.
    pub variants: Vec<Variant>,
    /// The axes in which the variants differ.
    pub varied: Vec<String>,
    /// Each variant is measured so many times per target and label.
    pub repetitions: u32,
    /// Messages that one repetition is split into, so that a function's time limit holds.
    pub slices: u32,
    /// How long one message measures, in milliseconds.
    pub slice_ms: u64,
    /// What may be sent.
    pub limits: Limits,
}

/// One combination of settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variant {
    /// Its name: the settings in which the variants differ.
    pub name: String,
    /// Every setting by its axis, as in a bench.
    pub axes: BTreeMap<String, String>,
}

/// A server to measure, acknowledged as one's own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Target {
    /// Its name in keys and tables.
    pub name: String,
    /// Its URL.
    pub url: String,
    /// The host, once more, as the acknowledgement that load on it is allowed.
    pub i_own_this: String,
    /// Port for variants without TLS where the URL is https with a port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plain_port: Option<u16>,
    /// Port for variants with TLS where the URL is http with a port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_port: Option<u16>,
    /// Check neither chain nor name of the certificate.
    #[serde(default)]
    pub insecure: bool,
    /// PEM text of the roots to trust.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roots: Option<String>,
    /// `host:port:address`, as curl's `--resolve`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resolve: Vec<String>,
    /// Header fields as `Name: value`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<String>,
}

/// What may be sent to each target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Limits {
    /// Requests to one target, over the whole campaign, repeated deliveries included.
    pub requests: u64,
    /// Requests a second to one target, over all workers.
    pub rate: f64,
    /// Workers at once; each takes its share of the rate.
    pub workers: u32,
    /// Deliveries of a message before it goes to the dead letters.
    #[serde(default = "three")]
    pub deliveries: u32,
}

fn three() -> u32 {
    3
}

/// What a plan will send, stated before it is sent.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// Messages.
    pub messages: u64,
    /// Requests to each target, if no message is delivered twice.
    pub requests_per_target: u64,
    /// Requests to each target at the very most: every message delivered as often as may be.
    pub most_per_target: u64,
    /// Requests a second to one target, at most.
    pub rate_per_target: f64,
    /// How long it takes with all workers busy.
    #[serde(skip)]
    pub duration: Duration,
    /// Whether the cap on requests ends messages before their time is over.
    pub capped: bool,
}

impl Plan {
    /// How many messages the plan has.
    pub fn len(&self) -> u64 {
        [
            self.targets.len() as u64,
            self.labels.len() as u64,
            self.variants.len() as u64,
            u64::from(self.repetitions),
            u64::from(self.slices),
        ]
        .iter()
        .product()
    }

    /// A plan always has messages; this is for the lint that wants it beside `len`.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Requests that one delivery of one message may send, preflight and warm-up included.
    fn requests_per_delivery(&self) -> u64 {
        let messages_of_target = self.len() / self.targets.len() as u64;
        self.limits.requests / messages_of_target / u64::from(self.limits.deliveries)
    }

    /// The share of one worker in the rate.
    fn rate_of_worker(&self) -> f64 {
        self.limits.rate / f64::from(self.limits.workers)
    }

    /// What the plan will send.
    pub fn estimate(&self) -> Estimate {
        let messages_of_target = self.len() / self.targets.len() as u64;
        let in_time = (self.rate_of_worker() * self.slice_ms as f64 / 1e3).ceil() as u64;
        let per_delivery = self.requests_per_delivery().min(in_time.max(1));
        let rounds = self.len().div_ceil(u64::from(self.limits.workers));
        Estimate {
            messages: self.len(),
            requests_per_target: per_delivery * messages_of_target,
            most_per_target: per_delivery * messages_of_target * u64::from(self.limits.deliveries),
            rate_per_target: self.limits.rate,
            duration: Duration::from_millis(self.slice_ms.saturating_mul(rounds)),
            capped: self.requests_per_delivery() < in_time,
        }
    }

    /// The messages: interleaved, so that the variants of one repetition lie next to each other in time.
    pub fn messages(&self) -> impl Iterator<Item = Message> + '_ {
        (0..self.repetitions).flat_map(move |repetition| {
            (0..self.slices).flat_map(move |slice| {
                self.targets.iter().flat_map(move |target| {
                    self.labels.iter().flat_map(move |label| {
                        // another order in each repetition, so that no variant always comes first
                        let count = self.variants.len();
                        (0..count).map(move |at| {
                            let variant =
                                (at + (repetition * self.slices + slice) as usize) % count;
                            self.message(target, label, variant, repetition, slice)
                        })
                    })
                })
            })
        })
    }

    fn message(
        &self,
        target: &Target,
        label: &str,
        variant: usize,
        repetition: u32,
        slice: u32,
    ) -> Message {
        let recipe = Recipe {
            target: target.clone(),
            axes: self.variants[variant].axes.clone(),
            ms: self.slice_ms,
            most_requests: self.requests_per_delivery(),
            rate_per_s: self.rate_of_worker(),
        };
        Message {
            format: FORMAT,
            id: format!(
                "{}.{}.{variant:03}.{repetition:04}.{slice:03}",
                target.name, label
            ),
            plan: self.id.clone(),
            target: target.name.clone(),
            label: label.to_owned(),
            variant: variant as u32,
            variant_name: self.variants[variant].name.clone(),
            repetition,
            slice,
            recipe,
        }
    }
}

/// The plan's id: its name and the first 8 hexadecimal digits of its content's SHA-256.
fn id_of(name: &str, text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    let hex: String = digest[..4]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("{name}-{hex}")
}
