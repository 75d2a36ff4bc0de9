//! Searches for the capacity of a server, and overload tests: their terms, and the purpose of each
//! round. Must not decide whether a rate met the conditions; that is computed from the tally.

use crate::time::Nanos;
use serde::{Deserialize, Serialize};

/// Why a round of an open loop was run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LoadPurpose {
    /// To find the two neighbouring rates between which the conditions cease to hold.
    Search,
    /// A fresh run at one of these two rates.
    Confirm,
    /// The load that follows the overload, before it.
    Before,
    /// More than the server can carry.
    Overload,
    /// A lower rate after the overload, until the traffic stops.
    After,
    /// The same lower rate on new connections, after a pause without traffic.
    Restart,
}

/// The load of a round whose rate a search or an overload chose.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadStep {
    /// The number of the step, from 1. The rounds of a step have the same connections.
    pub step: u32,
    /// Its purpose.
    pub purpose: LoadPurpose,
    /// Requests that fell due a second.
    pub rate: f64,
    /// Whether its connections were opened, and used once, before requests were due.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub warm: bool,
}

/// The overload that a run applies, and what follows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OverloadTerms {
    /// The overload as a multiple of `rate`, or of the highest rate that met the conditions.
    pub factor: f64,
    /// The rate that the user set; absent: the result of the search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// The rate before and after it, as a share of the same.
    pub share: f64,
    /// How long it lasts.
    pub lasts: Nanos,
    /// How long the lower rate follows, until the traffic stops.
    pub follows: Nanos,
}

/// The terms of a search for capacity.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchTerms {
    /// The rate of the first step.
    pub start: f64,
    /// The lowest rate that is tried.
    pub least: f64,
    /// The highest rate that is tried.
    pub most: f64,
    /// The ratio of neighbouring rates.
    pub ratio: f64,
}

/// What a run looked for, if its rounds were chosen one after another by their results.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CapacityTerms {
    /// The conditions that a rate has to meet, as expressions of `--require`.
    pub conditions: Vec<String>,
    /// The search; absent where the rate was named.
    pub search: Option<SearchTerms>,
    /// The overload, if there was one.
    pub overload: Option<OverloadTerms>,
}
