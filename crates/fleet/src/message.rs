//! One piece of work: a variant, a target, a label, a repetition; small enough for any queue.

use crate::plan::{CHECK, Kind, Target, is_plain};
use intact_experiment::AxisValues;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The format of plans, messages and results that this version writes and reads.
pub const FORMAT: u32 = 3;
/// Bytes of the longest name of a variant.
const LONGEST_NAME: usize = 128;
/// The most connections, and streams on each, that a message may ask for; a plan's axes end there too.
const MOST_AT_ONCE: u32 = 10_000;

/// One piece of work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// [`FORMAT`]; read before anything else.
    pub format: u32,
    /// Unique within the plan; results are keyed by it.
    pub id: String,
    /// The plan's id.
    pub plan: String,
    /// The target's name.
    pub target: String,
    /// The label.
    pub label: String,
    /// Index into the plan's variants; a check has none.
    pub variant: Option<u32>,
    /// The variant's name, or `check`.
    pub variant_name: String,
    /// The repetition, from 0.
    pub repetition: u32,
    /// The slice of the repetition, from 0.
    pub slice: u32,
    /// What to do.
    pub recipe: Job,
}

/// What a worker does for a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Where to.
    pub target: Target,
    /// The variant's settings by axis; a check has none.
    pub axes: BTreeMap<String, String>,
    /// How long to bench, or the longest that a check may take, in milliseconds.
    pub ms: u64,
    /// Requests that must not be exceeded, preflight and warm-up included.
    pub most_requests: u64,
    /// Requests a second that must not be exceeded.
    pub rate_per_s: f64,
}

/// Why a message cannot be worked on; trying again does not help.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadMessage {
    /// It is not a message of ours.
    #[error("not a message of `intact fleet`: {0}")]
    Unreadable(String),
    /// It comes from a newer version.
    #[error("the message has format {0}, this worker knows {FORMAT}: update the worker")]
    Newer(u32),
    /// It asks for what no plan would have it ask for: a target that is not acknowledged, names that are no part of a key.
    #[error("the message is refused: {0}")]
    Refused(String),
}

impl Message {
    /// Reads a message, and checks it as the plan was checked: who can write to a queue can write anything.
    ///
    /// # Errors
    /// It cannot be worked on.
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
        let target = &self.recipe.target;
        if target.name != self.target {
            return Err("target: is not the one to be measured".to_owned());
        }
        target.may_be_sent_to()?;
        self.check_recipe()
    }

    /// Whether its work is bounded, and fits the name under which the result is stored.
    fn check_recipe(&self) -> Result<(), String> {
        let recipe = &self.recipe;
        if !(recipe.rate_per_s.is_finite() && recipe.rate_per_s >= 1e-9 && recipe.ms > 0) {
            return Err("rate or time: is no positive number".to_owned());
        }
        if recipe.target.measure == Kind::Check {
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
        let values = AxisValues::read(&self.variant_name, &recipe.axes)
            .map_err(|error| format!("axes: {error}"))?;
        if values.concurrency > MOST_AT_ONCE || values.streams > MOST_AT_ONCE {
            return Err(format!("axes: more than {MOST_AT_ONCE} at once"));
        }
        Ok(())
    }
}

/// Why a text is no message. What the text holds is not repeated, because it may be a secret.
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

/// The id of a message: what it measures, which is unique within its plan.
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
