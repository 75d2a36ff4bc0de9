//! One piece of work: a variant, a target, a label, a repetition; small enough for any queue.

use crate::plan::{Target, acknowledged};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The format of plans, messages and results that this version writes and reads.
pub const FORMAT: u32 = 2;

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
    /// Its target is not acknowledged.
    #[error("the target is refused: {0}")]
    Refused(String),
}

impl Message {
    /// Reads a message and checks that its target is acknowledged.
    pub fn parse(text: &str) -> Result<Message, BadMessage> {
        #[derive(Deserialize)]
        struct Format {
            format: u32,
        }
        let unreadable = |error: serde_json::Error| BadMessage::Unreadable(error.to_string());
        let Format { format } = serde_json::from_str(text).map_err(unreadable)?;
        if format > FORMAT {
            return Err(BadMessage::Newer(format));
        }
        let message: Message = serde_json::from_str(text).map_err(unreadable)?;
        acknowledged(&message.recipe.target).map_err(BadMessage::Refused)?;
        Ok(message)
    }
}
