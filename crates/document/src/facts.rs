//! A document as gates and pages of gates read it: subjects with readings, findings, rules.

use crate::claim::Claims;
use crate::finding::{Finding, Severity};
use crate::readings::Readings;
use crate::unobserved::Unobserved;
use intact_ledger::{Caveat, Evidence};
use intact_reading::Why;

/// Something that was measured by itself: a variant of `bench`, a destination of `watch`, the run
/// as a whole.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Subject {
    /// What a person calls it.
    pub name: String,
    /// What selectors find it by: (key, value), such as ("keepalive", "on").
    pub labels: Vec<(&'static str, String)>,
    /// What was read of it.
    pub readings: Readings,
    /// Why no requirement on it is judged, though its figures may be known: nothing worked, so that
    /// no figure describes successful work.
    pub unjudged: Option<Why>,
}

impl Subject {
    /// A subject without labels and readings.
    pub fn new(name: impl Into<String>) -> Subject {
        Subject {
            name: name.into(),
            ..Subject::default()
        }
    }

    /// With a further label.
    pub fn label(mut self, key: &'static str, value: impl Into<String>) -> Subject {
        self.labels.push((key, value.into()));
        self
    }
}

/// A rule of a document, and why it could not judge, if it could not.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleState {
    /// The rule's stable id.
    pub id: &'static str,
    /// Why it could not judge: a gate on its findings is then not met.
    pub unjudged: Option<Why>,
}

/// What the facts of a document say.
#[derive(Clone, Copy, Debug)]
pub struct Conclusions<'a> {
    verdict: &'a Claims,
    findings: &'a [Finding],
    caveats: &'a [Caveat],
}

impl<'a> Conclusions<'a> {
    /// What they mean, what stands out, and what limits the figures.
    pub fn new(verdict: &'a Claims, findings: &'a [Finding], caveats: &'a [Caveat]) -> Self {
        Conclusions {
            verdict,
            findings,
            caveats,
        }
    }
}

/// The facts of a document.
pub trait Facts {
    /// All subjects, in the order in which they are reported.
    fn subjects(&self) -> Vec<Subject>;

    /// How many of the first subjects a requirement without selectors is about; all where there is
    /// no such number.
    fn default_subjects(&self) -> Option<usize> {
        None
    }

    /// What the facts say.
    fn conclusions(&self) -> Conclusions<'_>;

    /// What it means, ranked.
    fn verdict(&self) -> &Claims {
        self.conclusions().verdict
    }

    /// What stands out.
    fn findings(&self) -> &[Finding] {
        self.conclusions().findings
    }

    /// What limits the figures.
    fn caveats(&self) -> &[Caveat] {
        self.conclusions().caveats
    }

    /// The rules that were asked, and which could not judge.
    fn rules(&self) -> Vec<RuleState>;

    /// Whether anything worked: a complete response, or a connection whose content cannot be read.
    fn any_success(&self) -> bool;

    /// What is missing from what was measured. A gate that needs all of it stays closed with its
    /// reason.
    fn unobserved(&self) -> Unobserved;
}

/// Rules that all could judge, or none for this reason.
pub fn rules_alike(ids: &[&'static str], unjudged: Option<&Why>) -> Vec<RuleState> {
    let ids = ids.iter();
    ids.map(|&id| RuleState {
        id,
        unjudged: unjudged.cloned(),
    })
    .collect()
}

/// The rules of a document that need this evidence each.
pub fn rule_states(
    rules: impl IntoIterator<Item = (&'static str, &'static [Evidence])>,
    unobserved: &Unobserved,
) -> Vec<RuleState> {
    let rules = rules.into_iter();
    rules
        .map(|(id, needs)| RuleState {
            id,
            unjudged: unobserved
                .sees(needs)
                .err()
                .or_else(|| unobserved.judges_nothing()),
        })
        .collect()
}

/// Adds the counts of these findings: of all, by severity, by rule.
pub fn add_findings<'a>(
    readings: &mut Readings,
    findings: impl IntoIterator<Item = &'a Finding>,
    rules: &[RuleState],
    unobserved: &Unobserved,
) {
    let findings: Vec<&Finding> = findings.into_iter().collect();
    let count = |is_counted: &dyn Fn(&Finding) -> bool| {
        let counted = findings.iter().filter(|one| is_counted(one));
        unobserved.findings(counted.count())
    };
    readings.set("findings", count(&|_| true));
    let of = |severity: Severity| count(&|one: &Finding| one.severity == severity);
    readings.set("warnings", of(Severity::Warning));
    readings.set("errors", of(Severity::Error));
    for rule in rules {
        let found = count(&|one: &Finding| one.rule == rule.id);
        let reading = match &rule.unjudged {
            Some(why) if !found.is_positive() => intact_reading::Reading::unknown(why.clone()),
            _ => found,
        };
        readings.set(&format!("findings.{}", rule.id), reading);
    }
}
