//! A finding: what is the case, what it rests on, what it costs, what to do. The same in every document.

use serde::Serialize;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Good to know.
    Info,
    /// Costs something, or may break.
    Warning,
    /// Broken.
    Error,
}

/// A finding, as in every JSON document.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The rule's stable id.
    pub rule: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// What it is about: a variant's name, a destination.
    pub subject: String,
    /// What is the case.
    pub claim: String,
    /// What it rests on.
    pub evidence: String,
    /// What it costs, in milliseconds, where that can be told.
    pub cost_ms: Option<f64>,
    /// The same as a share of the time of all exchanges.
    pub cost_share: Option<f64>,
    /// What to do about it.
    pub fix: String,
    /// What the remedy can break here, or what breaks without it; absent where nothing is known to.
    pub risk: Option<String>,
}
