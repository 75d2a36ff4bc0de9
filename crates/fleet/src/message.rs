//! One unit of work: a variant, a target, a label, a repetition. Small enough for any queue.

use crate::plan::{CHECK, Kind, Target, is_plain};
use intact_experiment::AxisValues;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Format of the plans, messages and results that this version reads and writes.
pub const FORMAT: u32 = 3;
/// Limit of the name of a variant, in bytes.
const LONGEST_NAME: usize = 128;
/// Limit of connections, and of streams on each, in a message and in the axes of a plan.
const MOST_AT_ONCE: u32 = 10_000;

/// One unit of work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// [`FORMAT`]; checked first.
    pub format: u32,
    /// Unique within the plan; part of the key of results.
    pub id: String,
    /// The plan's id.
    pub plan: String,
    /// The target's name.
    pub target: String,
    /// The label.
    pub label: String,
    /// Index into the plan's variants; `None` for a check.
    pub variant: Option<u32>,
    /// The variant's name, or `check`.
    pub variant_name: String,
    /// The repetition, from 0.
    pub repetition: u32,
    /// The slice of the repetition, from 0.
    pub slice: u32,
    /// The work.
    #[serde(rename = "recipe")]
    pub job: Job,
}

/// The work of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// The server to measure.
    pub target: Target,
    /// The variant's settings by axis; empty for a check.
    pub axes: BTreeMap<String, String>,
    /// Duration of a bench, or limit of the duration of a check, in milliseconds.
    pub ms: u64,
    /// Limit of requests, including preflight and warm-up.
    pub most_requests: u64,
    /// Limit of requests per second.
    pub rate_per_s: f64,
}

/// Why a message cannot be processed. A retry does not help.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadMessage {
    /// The text is no message of `intact fleet`.
    #[error("not a message of `intact fleet`: {0}")]
    Unreadable(String),
    /// A newer version wrote it.
    #[error("the message has format {0}, this worker knows {FORMAT}: update the worker")]
    Newer(u32),
    /// No plan makes such a message: a target without acknowledgement, or names that cannot be part
    /// of a key.
    #[error("the message is refused: {0}")]
    Refused(String),
}

impl Message {
    /// Parses a message and checks it like a plan: anyone who can write to the queue can write any
    /// message.
    ///
    /// # Errors
    /// If the message cannot be processed.
    pub fn parse(text: &str) -> Result<Message, BadMessage> {
        #[derive(Deserialize)]
        struct Format {
            format: u32,
        }
        let Format { format } = serde_json::from_str(text).map_err(|error| unreadable(&error))?;
        if format > FORMAT {
            return Err(BadMessage::Newer(format));
        }
        let message: Message = serde_json::from_str(text).map_err(|error| unreadable(&error))?;
        message.check().map_err(BadMessage::Refused)?;
        Ok(message)
    }

    fn check(&self) -> Result<(), String> {
        let plan = self.plan.rsplit_once('-');
        for (key, is_fine) in [
            (
                "plan",
                plan.is_some_and(|(name, digest)| is_plain(name) && is_plain(digest)),
            ),
            ("target", is_plain(&self.target)),
            ("label", is_plain(&self.label)),
        ] {
            if !is_fine {
                return Err(format!("{key}: is no name of a plan"));
            }
        }
        let id = id_of_message(
            &self.target,
            &self.label,
            self.variant,
            self.repetition,
            self.slice,
        );
        if self.id != id {
            return Err(format!(
                "id: is not the one of its target, label and variant, {id}"
            ));
        }
        let target = &self.job.target;
        if target.name != self.target {
            return Err("target: is not the one to be measured".to_owned());
        }
        target.may_be_sent_to()?;
        self.check_job()
    }

    /// Checks that the work is bounded and matches the key of its result.
    fn check_job(&self) -> Result<(), String> {
        let job = &self.job;
        if !(job.rate_per_s.is_finite() && job.rate_per_s >= 1e-9 && job.ms > 0) {
            return Err("rate or time: is no positive number".to_owned());
        }
        if job.target.measure == Kind::Check {
            let is_check = self.variant.is_none() && self.variant_name == CHECK;
            return is_check
                .then_some(())
                .ok_or_else(|| "variant: a check has none".to_owned());
        }
        let in_name = |c: char| c.is_ascii_alphanumeric() || "=._-() ".contains(c);
        if self.variant.is_none()
            || self.variant_name.is_empty()
            || self.variant_name.len() > LONGEST_NAME
            || !self.variant_name.chars().all(in_name)
            || self.variant_name.starts_with('.')
        {
            return Err("variant: is no name of a variant".to_owned());
        }
        let values = AxisValues::read(&self.variant_name, &job.axes)
            .map_err(|error| format!("axes: {error}"))?;
        if values.concurrency > MOST_AT_ONCE || values.streams > MOST_AT_ONCE {
            return Err(format!("axes: more than {MOST_AT_ONCE} at once"));
        }
        Ok(())
    }
}

/// Why a text is no message. The text is not repeated, because it may hold a secret.
fn unreadable(error: &serde_json::Error) -> BadMessage {
    let words = error.to_string();
    let is_of_the_format = !error.is_data() || words.starts_with("missing field");
    BadMessage::Unreadable(if is_of_the_format {
        words
    } else {
        format!(
            "a value of another type at line {} column {}",
            error.line(),
            error.column()
        )
    })
}

/// The id of a message: the names of what it measures, unique within its plan.
pub(crate) fn id_of_message(
    target: &str,
    label: &str,
    variant: Option<u32>,
    repetition: u32,
    slice: u32,
) -> String {
    match variant {
        Some(variant) => format!("{target}.{label}.{variant:03}.{repetition:04}.{slice:03}"),
        None => format!("{target}.{label}.{CHECK}.{repetition:04}"),
    }
}
