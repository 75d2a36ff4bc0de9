//! The progress of a campaign: counts of messages, shared by the producer of its results and their
//! readers.

use serde::{Deserialize, Serialize};

/// A message that was given up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeadLetter {
    /// The message's id.
    pub message: String,
    /// The reason.
    pub reason: String,
}

/// Number of messages of a campaign, by state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CampaignProgress {
    /// Messages of the plan.
    pub planned: u64,
    /// Messages with a result.
    pub finished: u64,
    /// Results of further deliveries of the same message, which are not counted.
    pub duplicates: u64,
    /// Messages that were given up, with the reasons.
    pub dead: Vec<DeadLetter>,
    /// Messages with neither a result nor a dead letter.
    pub missing: u64,
    /// Objects that could not be read; their messages are missing.
    pub unreadable: u64,
}
