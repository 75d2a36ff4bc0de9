//! A finding: what is the case, the evidence, the cost, the remedy. The same in every document.

use crate::statement::{Statement, Value, merged};
use intact_ledger::{Evidence, kinds};
use serde::Serialize;
use std::collections::BTreeMap;

kinds! {
    /// How much a finding matters.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    #[serde(rename_all = "kebab-case")]
    pub enum Severity, as_str {
        /// Good to know.
        Info = "info",
        /// Costs something, or may break.
        Warning = "warning",
        /// Broken.
        Error = "error",
    }
}

/// The documentation of a rule.
#[derive(Debug)]
pub struct RuleDoc {
    /// The stable id.
    pub id: &'static str,
    /// What is wrong when the rule has a finding.
    pub what: &'static str,
    /// The events and figures that it uses.
    pub evidence: &'static str,
    /// From when on it has a finding, and why from there.
    pub threshold: &'static str,
    /// When a finding is wrong, or right and harmless.
    pub false_positives: &'static str,
    /// What to do.
    pub fix: &'static str,
    /// What the remedy can break, or what breaks without it.
    pub risk: &'static str,
    /// Without which evidence it cannot have a finding.
    pub needs: &'static [Evidence],
}

/// A finding; JSON has its statements as sentences, and their values by name.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(into = "FindingDocument")]
pub struct Finding {
    /// The rule's stable id.
    pub rule: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// What it is about: a variant's name, a destination.
    pub subject: String,
    /// Further destinations that it is about: others of the same name, or on the same server.
    pub also: Vec<String>,
    /// What is the case.
    pub claim: Statement,
    /// What shows it; empty where the claim shows itself.
    pub evidence: Statement,
    /// What it costs, in milliseconds; absent where the cost is unknown.
    pub cost_ms: Option<f64>,
    /// The same as a share of the time of all exchanges.
    pub cost_share: Option<f64>,
    /// What to do about it.
    pub fix: Statement,
    /// What the remedy can break here, or what breaks without it; absent where no risk is known.
    pub risk: Option<Statement>,
}

/// A finding, as in every JSON document.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct FindingDocument {
    /// The rule's stable id.
    rule: &'static str,
    /// How much it matters.
    severity: Severity,
    /// What it is about: a variant's name, a destination.
    subject: String,
    /// Further destinations that it is about: others of the same name, or on the same server.
    /// Absent where there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    also: Vec<String>,
    /// What is the case, as a sentence.
    claim: Statement,
    /// What shows it, as a sentence; empty where the claim shows itself.
    evidence: Statement,
    /// The values in the sentences, by name; a number has its unit at the end of its name, a count
    /// has none.
    values: BTreeMap<String, Value>,
    /// What it costs, in milliseconds; absent where the cost is unknown.
    cost_ms: Option<f64>,
    /// The same as a share of the time of all exchanges.
    cost_share: Option<f64>,
    /// What to do about it.
    fix: Statement,
    /// What the remedy can break here, or what breaks without it; absent where no risk is known.
    risk: Option<Statement>,
}

impl From<Finding> for FindingDocument {
    fn from(finding: Finding) -> FindingDocument {
        FindingDocument {
            values: finding.values(),
            rule: finding.rule,
            severity: finding.severity,
            subject: finding.subject,
            also: finding.also,
            claim: finding.claim,
            evidence: finding.evidence,
            cost_ms: finding.cost_ms,
            cost_share: finding.cost_share,
            fix: finding.fix,
            risk: finding.risk,
        }
    }
}

impl Finding {
    /// A finding of a rule, with the rule's own remedy and risk.
    pub fn by(
        doc: &'static RuleDoc,
        severity: Severity,
        subject: String,
        claim: impl Into<Statement>,
        evidence: impl Into<Statement>,
    ) -> Finding {
        Finding {
            evidence: evidence.into(),
            fix: doc.fix.into(),
            risk: (!doc.risk.is_empty()).then(|| doc.risk.into()),
            ..Finding::new(doc.id, severity, subject, claim)
        }
    }

    /// A finding without evidence, cost and remedy so far.
    pub fn new(
        rule: &'static str,
        severity: Severity,
        subject: String,
        claim: impl Into<Statement>,
    ) -> Finding {
        Finding {
            rule,
            severity,
            subject,
            also: Vec::new(),
            claim: claim.into(),
            evidence: Statement::default(),
            cost_ms: None,
            cost_share: None,
            fix: Statement::default(),
            risk: None,
        }
    }

    /// With further subjects.
    pub fn also(self, also: Vec<String>) -> Finding {
        Finding { also, ..self }
    }

    /// What it is about, for a person: `a`, `a and b`, `a and 3 others`.
    pub fn subjects(&self) -> String {
        let subject = &self.subject;
        match &self.also[..] {
            [] => subject.clone(),
            [other] => format!("{subject} and {other}"),
            others => format!("{subject} and {} others", others.len()),
        }
    }

    /// Whether it is about this subject.
    pub fn is_about(&self, subject: &str) -> bool {
        self.subject == subject || self.also.iter().any(|one| one == subject)
    }

    /// The values in its sentences, by name; a number has its unit at the end of its name.
    pub fn values(&self) -> BTreeMap<String, Value> {
        let always = [&self.claim, &self.evidence, &self.fix];
        merged(always.into_iter().chain(&self.risk))
    }

    /// With its cost in milliseconds, and the share that this is of the time of all exchanges.
    pub fn costing(self, cost_ms: Option<f64>, cost_share: Option<f64>) -> Finding {
        Finding {
            cost_ms,
            cost_share,
            ..self
        }
    }
}
