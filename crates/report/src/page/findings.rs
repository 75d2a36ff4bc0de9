//! Findings as a page has them: those with one remedy together, the worst first. Must not look at rule ids.

use super::{Text, sentence, text};
use intact_findings::{Finding, Severity};
use intact_units::Quantity::{Share, Time};

/// Findings of one rule with one remedy.
pub struct FindingGroup {
    /// The severity of all of them.
    pub severity: Severity,
    /// The rule's id.
    pub rule: &'static str,
    /// The cases; at least one.
    pub cases: Vec<Case>,
    /// The remedy.
    pub fix: Text,
    /// What the remedy can break.
    pub risk: Option<Text>,
    /// Whether pages shorten it or fold it away.
    pub is_note: bool,
}

/// One subject of a finding.
pub struct Case {
    /// The subject; empty where it is that of the page.
    pub subject: String,
    /// What is the case.
    pub claim: Text,
    /// The evidence.
    pub evidence: Text,
    /// The cost.
    pub cost: Option<Text>,
}

impl FindingGroup {
    /// Groups `findings`, the worst first, else in their order; `own` is the subject that the page has already.
    pub fn all(findings: &[Finding], own: &str) -> Vec<FindingGroup> {
        let mut sorted: Vec<&Finding> = findings.iter().collect();
        sorted.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        let mut groups: Vec<(&Finding, FindingGroup)> = Vec::new();
        for finding in sorted {
            let case = Case::new(finding, own);
            let key =
                |one: &'_ Finding| (one.severity, one.rule, one.fix.clone(), one.risk.clone());
            match groups
                .iter_mut()
                .find(|(head, _)| key(head) == key(finding))
            {
                Some((_, group)) => group.cases.push(case),
                None => groups.push((finding, FindingGroup::new(finding, case))),
            }
        }
        groups.into_iter().map(|(_, group)| group).collect()
    }

    fn new(finding: &Finding, case: Case) -> FindingGroup {
        FindingGroup {
            severity: finding.severity,
            rule: finding.rule,
            cases: vec![case],
            fix: sentence(&finding.fix),
            risk: finding.risk.as_deref().map(sentence),
            is_note: finding.severity == Severity::Info,
        }
    }
}

impl Case {
    fn new(finding: &Finding, own: &str) -> Case {
        let cost = finding.cost_ms.filter(|cost| *cost > 0.0);
        Case {
            subject: match finding.subject.as_str() {
                subject if subject == own => String::new(),
                subject => subject.to_owned(),
            },
            claim: sentence(&finding.claim),
            evidence: sentence(&finding.evidence),
            cost: cost.map(|cost| match finding.cost_share {
                Some(share) => text!("{} ({} of the time)", Time(cost), Share(share)),
                None => Time(cost).into(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_of_one_remedy_stand_together_and_the_worst_comes_first() {
        let finding = |rule, severity, subject: &str| Finding {
            rule,
            severity,
            subject: subject.to_owned(),
            claim: "it is slow".into(),
            evidence: "it took long".into(),
            cost_ms: Some(0.0),
            cost_share: None,
            fix: "make it fast".into(),
            risk: None,
        };
        let findings = [
            finding("slow", Severity::Warning, "a"),
            finding("broken", Severity::Error, "a"),
            finding("slow", Severity::Warning, "b"),
        ];
        let groups = FindingGroup::all(&findings, "a");
        let printed: Vec<(&str, usize)> = groups
            .iter()
            .map(|one| (one.rule, one.cases.len()))
            .collect();
        assert_eq!(printed, [("broken", 1), ("slow", 2)]);
        let subjects: Vec<&str> = groups[1]
            .cases
            .iter()
            .map(|one| one.subject.as_str())
            .collect();
        assert_eq!(subjects, ["", "b"]);
        assert_eq!(groups[1].cases[0].cost, None);
    }
}
