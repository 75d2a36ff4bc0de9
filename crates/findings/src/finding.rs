//! A finding: what is the case, what it rests on, what it costs, what to do. The same in every document.

use crate::rules::{Claim, Client, Doc, Remedy};
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

impl Severity {
    /// `info`, `warning`, `error`.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Info => "info",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
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

impl Finding {
    /// A finding of a rule, with the rule's own remedy and risk.
    pub(crate) fn by(
        doc: &'static Doc,
        severity: Severity,
        subject: String,
        claim: String,
        evidence: String,
    ) -> Finding {
        Finding {
            rule: doc.id,
            severity,
            subject,
            claim,
            evidence,
            cost_ms: None,
            cost_share: None,
            fix: doc.fix.to_owned(),
            risk: (!doc.risk.is_empty()).then(|| doc.risk.to_owned()),
        }
    }

    /// With the cost of the setups that it claims.
    pub(crate) fn costing(self, claim: Claim) -> Finding {
        Finding {
            cost_ms: claim.cost_ms,
            cost_share: claim.share,
            ..self
        }
    }

    /// With what the client at hand calls the remedy, where it is recognised.
    pub(crate) fn in_words_of(mut self, client: Option<Client>, remedy: Remedy) -> Finding {
        if let Some(advice) = client.and_then(|client| client.advice(remedy)) {
            self.fix = format!("{}. {advice}", self.fix);
        }
        if let Some(command) = client.and_then(Client::fix_command) {
            self.fix = format!("{}; `{command}` has what was measured", self.fix);
        }
        self
    }
}
