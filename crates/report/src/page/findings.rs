//! Findings as a page has them: those with one remedy together, the worst first. Must not look at
//! rule ids.

use super::{Text, sentence, text};
use intact_document::{Finding, Place, Severity};
use intact_units::Quantity::{Count, RoundShare, Time};
use intact_units::plural::counted;

/// Cases of one rule and severity from which on they are one group, whatever their remedies.
const MANY: usize = 6;
/// Cases that such a group shows, the worst.
const SHOWN: usize = 3;

/// Findings of one rule with one remedy.
pub struct FindingGroup {
    /// The severity of all of them.
    pub severity: Severity,
    /// The rule's id.
    pub rule: &'static str,
    /// The cases; at least one. The last one may stand for several.
    pub cases: Vec<Case>,
    /// How many findings they stand for.
    pub count: u64,
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
    /// Where in the code the connections were opened.
    pub places: Vec<Place>,
}

impl FindingGroup {
    /// Groups `findings`, the worst first, else in their order; `own` is the subject that the page
    /// has already. Many cases of one rule are one group, which shows the first of them and
    /// sums up the others.
    pub fn all(findings: &[Finding], own: &str) -> Vec<FindingGroup> {
        let mut sorted: Vec<&Finding> = findings.iter().collect();
        sorted.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        let mut groups: Vec<Vec<&Finding>> = Vec::new();
        for &finding in &sorted {
            let kind = |one: &Finding| (one.severity, one.rule);
            let of_kind = sorted.iter().filter(|one| kind(one) == kind(finding));
            let are_many = of_kind.take(MANY).count() == MANY;
            let is_same = |head: &Finding| {
                kind(head) == kind(finding)
                    && (are_many || (&head.fix, &head.risk) == (&finding.fix, &finding.risk))
            };
            match groups.iter_mut().find(|group| is_same(group[0])) {
                Some(group) => group.push(finding),
                None => groups.push(vec![finding]),
            }
        }
        groups
            .iter()
            .map(|group| FindingGroup::new(group, own))
            .collect()
    }

    /// The group of these findings, of which there is at least one.
    fn new(findings: &[&Finding], own: &str) -> FindingGroup {
        let count = findings.len() as u64;
        let shown = if findings.len() < MANY {
            findings.len()
        } else {
            SHOWN
        };
        let (shown, others) = findings.split_at(shown);
        let mut cases: Vec<Case> = shown.iter().map(|one| Case::new(one, own)).collect();
        cases.extend((!others.is_empty()).then(|| Case::of_others(others)));
        let worst = shown[0];
        FindingGroup {
            severity: worst.severity,
            rule: worst.rule,
            cases,
            count,
            fix: sentence(&worst.fix),
            risk: worst.risk.as_deref().map(sentence),
            is_note: worst.severity == Severity::Info,
        }
    }
}

impl Case {
    /// Position, function and count of the first `most` places, and how many are left out.
    pub(crate) fn place_lines(&self, most: usize) -> (Vec<[String; 3]>, usize) {
        let line = |place: &Place| {
            let count = counted(place.connections, "connection");
            [place.position(), place.function.clone(), count]
        };
        let shown = self.places.iter().take(most).map(line).collect();
        (shown, self.places.len().saturating_sub(most))
    }

    /// The cases that are not shown one by one.
    fn of_others(others: &[&Finding]) -> Case {
        let costs: Vec<f64> = others.iter().filter_map(|one| one.cost_ms).collect();
        let cost: f64 = costs.iter().sum();
        Case {
            subject: format!("{} others", Count(others.len() as u64)),
            claim: Text::prose("The same, in other numbers (`--json` has each)."),
            evidence: Text::default(),
            cost: (cost > 0.0).then(|| Time(cost).into()),
            places: Vec::new(),
        }
    }

    fn new(finding: &Finding, own: &str) -> Case {
        let cost = finding.cost_ms.filter(|cost| *cost > 0.0);
        Case {
            subject: match finding.subjects() {
                subject if subject == own => String::new(),
                subject => subject,
            },
            claim: sentence(&finding.claim),
            evidence: sentence(&finding.evidence),
            cost: cost.map(|cost| match finding.cost_share {
                Some(share) => text!("{} ({} of the time)", Time(cost), RoundShare(share)),
                None => Time(cost).into(),
            }),
            places: finding.places.clone(),
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
            also: Vec::new(),
            claim: "it is slow".into(),
            evidence: "it took long".into(),
            cost_ms: Some(0.0),
            cost_share: None,
            fix: "make it fast".into(),
            risk: None,
            places: Vec::new(),
            is_of_openings: false,
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

    #[test]
    fn one_finding_for_many_clients_is_one_group() {
        let of_client = |nth: u32| Finding {
            rule: "slow",
            severity: Severity::Warning,
            subject: format!("client {nth}"),
            also: Vec::new(),
            claim: "it is slow".into(),
            evidence: "it took long".into(),
            cost_ms: Some(2.0),
            cost_share: None,
            fix: "make it fast".into(),
            risk: None,
            places: Vec::new(),
            is_of_openings: false,
        };
        let findings: Vec<Finding> = (0..500).map(of_client).collect();
        let groups = FindingGroup::all(&findings, "");
        assert_eq!(groups.len(), 1);
        let subjects = groups[0].cases.iter().map(|one| one.subject.as_str());
        let subjects: Vec<&str> = subjects.collect();
        assert_eq!(subjects, ["client 0", "client 1", "client 2", "497 others"]);
        let cost = groups[0].cases[3].cost.as_ref().unwrap();
        assert_eq!(cost.to_string(), "994 ms");
        assert_eq!(FindingGroup::all(&findings[..5], "")[0].cases.len(), 5);
    }
}
