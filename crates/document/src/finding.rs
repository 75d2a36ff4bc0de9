//! A finding: what is the case, the evidence, the cost, the remedy. The same in every document.

use crate::statement::{Statement, Value, merged};
use intact_ledger::{Evidence, StackFrame, kinds};
use intact_units::plural::counted;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

kinds! {
    json
    /// How much a finding matters.
    pub enum Severity, as_str {
        /// Good to know.
        Info = "info",
        /// Costs something, or may break.
        Warning = "warning",
        /// Broken.
        Error = "error",
    }
}

impl Severity {
    /// This one, unless it is the case: then the other.
    #[must_use]
    pub fn unless(self, is_case: bool, other: Severity) -> Severity {
        match is_case {
            true => other,
            false => self,
        }
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
#[derive(Clone, Debug, PartialEq, JsonSchema)]
#[schemars(into = "FindingDocument")]
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
    /// The places in the code that opened the connections that it counts, the most frequent first;
    /// empty where none is known.
    pub places: Vec<Place>,
    /// Whether it is about avoidable connections, which have one cause each: a finding of another
    /// rule can take its place.
    pub is_of_openings: bool,
}

/// A place in the user's code that opened connections.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Place {
    /// The source file, relative to the code root.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The name of the function.
    pub function: String,
    /// How many of the counted connections it opened.
    pub connections: u64,
    /// The calls at one of them, the innermost first.
    pub stack: Vec<StackFrame>,
}

impl Place {
    /// `app/billing.py:41`.
    pub fn position(&self) -> String {
        format!("{}:{}", self.file, self.line)
    }

    /// `app/billing.py:41 charge: 3 connections`.
    pub fn words(&self) -> String {
        let count = counted(self.connections, "connection");
        format!("{} {}: {count}", self.position(), self.function)
    }

    /// Whether a reader finds the file by its path below the code root.
    pub fn is_below_root(&self) -> bool {
        !(self.file.starts_with("..") || self.file.starts_with('/'))
    }
}

/// A finding, as in every JSON document.
#[derive(Serialize, JsonSchema)]
#[serde(remote = "Finding")]
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
    #[serde(getter = "Finding::values")]
    values: BTreeMap<String, Value>,
    /// What it costs, in milliseconds; absent where the cost is unknown.
    cost_ms: Option<f64>,
    /// The same as a share of the time of all exchanges.
    cost_share: Option<f64>,
    /// What to do about it.
    fix: Statement,
    /// What the remedy can break here, or what breaks without it; absent where no risk is known.
    risk: Option<Statement>,
    /// The places in the code that opened the connections that it counts, the most frequent first.
    /// Absent where none is known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    places: Vec<Place>,
}

impl Serialize for Finding {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        FindingDocument::serialize(self, serializer)
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
        let finding = Finding::new(doc.id, severity, subject, claim).evidence(evidence);
        finding.fix(doc.fix).risk(doc.risk)
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
            places: Vec::new(),
            is_of_openings: false,
        }
    }

    /// Adds a place in the code, or counts it to the same one.
    pub fn add_place(&mut self, place: Place) {
        let key = |one: &Place| (one.file.clone(), one.line, one.function.clone());
        let same = self.places.iter_mut().find(|one| key(one) == key(&place));
        match same {
            Some(known) => {
                let connections = known.connections + place.connections;
                if place.connections > known.connections {
                    *known = place;
                }
                known.connections = connections;
            }
            None => self.places.push(place),
        }
        let order = |one: &Place| (std::cmp::Reverse(one.connections), key(one));
        self.places.sort_by_key(order);
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

    /// With what shows it.
    pub fn evidence(self, evidence: impl Into<Statement>) -> Finding {
        let evidence = evidence.into();
        Finding { evidence, ..self }
    }

    /// With what to do about it.
    pub fn fix(self, fix: impl Into<Statement>) -> Finding {
        let fix = fix.into();
        Finding { fix, ..self }
    }

    /// With what the remedy can break, or what breaks without it; empty where no risk is known.
    pub fn risk(self, risk: impl Into<Statement>) -> Finding {
        let risk = Some(risk.into()).filter(|risk| !risk.is_empty());
        Finding { risk, ..self }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_named_once_and_the_most_frequent_comes_first() {
        let mut finding = Finding::new("rule", Severity::Warning, "a".to_owned(), "slow");
        for (line, connections) in [(1, 2), (2, 3), (1, 4)] {
            finding.add_place(Place {
                file: "app.py".to_owned(),
                line,
                function: "charge".to_owned(),
                connections,
                stack: Vec::new(),
            });
        }
        let seen = finding.places.iter().map(|one| (one.line, one.connections));
        assert_eq!(seen.collect::<Vec<_>>(), [(1, 6), (2, 3)]);
    }
}
