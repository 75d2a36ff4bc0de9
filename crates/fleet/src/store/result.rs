//! What a store keeps of a message: the result of a delivery, or why it was given up.

use intact_ledger::server_profile::ServerProfile;
use intact_ledger::{Exchange, Run, Tally};
use serde::{Deserialize, Serialize};

/// What one delivery of one message brought.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeliveryResult {
    /// [`FORMAT`].
    pub format: u32,
    /// The message.
    pub message: String,
    /// The plan.
    pub plan: String,
    /// The target's name.
    pub target: String,
    /// The label.
    pub label: String,
    /// Index into the plan's variants; a check has none.
    pub variant: Option<u32>,
    /// The repetition, from 0.
    pub repetition: u32,
    /// The slice, from 0.
    pub slice: u32,
    /// Which delivery this was, from 1.
    pub attempt: u32,
    /// Who worked on it.
    pub worker: String,
    /// The head of its ledger.
    pub run: Run,
    /// What was counted. Of a bench: one variant, round 0 the preflight, round 1 the measurement.
    pub tally: Tally,
    /// What a check found out; absent for a bench.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked: Option<CheckResult>,
}

/// What a check found out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckResult {
    /// The card of the server.
    pub card: ServerProfile,
    /// The exchanges that tell what a new connection costs (tagged [`intact_ledger::card::WATERFALL`]): a handful.
    pub waterfall: Vec<Exchange>,
}
