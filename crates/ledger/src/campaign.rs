//! How far a campaign is: counts of messages, as the producer of its results and their readers share them.

use serde::{Deserialize, Serialize};

/// A message that was given up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeadLetter {
    /// The message's id.
    pub message: String,
    /// Why.
    pub reason: String,
}

/// Messages of a campaign by their state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CampaignProgress {
    /// In the plan.
    pub planned: u64,
    /// With a result.
    pub finished: u64,
    /// Results of further deliveries of the same message: not counted.
    pub duplicates: u64,
    /// Given up, with the reasons.
    pub dead: Vec<DeadLetter>,
    /// With neither result nor dead letter.
    pub missing: u64,
    /// Objects that could not be read; their messages are missing.
    pub unreadable: u64,
}
