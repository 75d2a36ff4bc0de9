//! The objects that a store holds per message: the result of a delivery, or the reason why the
//! message was given up.

use intact_ledger::server_profile::ServerProfile;
use intact_ledger::{Exchange, Run, Tally};
use serde::{Deserialize, Serialize};

/// The result of one delivery of a message.
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
    /// Index into the plan's variants; `None` for a check.
    pub variant: Option<u32>,
    /// The repetition, from 0.
    pub repetition: u32,
    /// The slice, from 0.
    pub slice: u32,
    /// The number of this delivery, from 1.
    pub attempt: u32,
    /// Name of the worker.
    pub worker: String,
    /// The header of its ledger.
    pub run: Run,
    /// The counts. For a bench: one variant, round 0 is the preflight, round 1 the measurement.
    pub tally: Tally,
    /// The result of a check; `None` for a bench.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked: Option<CheckResult>,
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckResult {
    /// The server profile.
    #[serde(rename = "card")]
    pub profile: ServerProfile,
    /// The exchanges that show the cost of a new connection (tagged
    /// [`intact_ledger::server_profile::WATERFALL`]), about ten.
    pub waterfall: Vec<Exchange>,
}
