//! Observed facts as requirements ask for them: the run as a whole, then each destination.

use super::facts::{Destination, ObservedFacts};
use super::figures::Figures;
use crate::rules;
use intact_document::error_responses::ONLY_ERRORS;
use intact_document::facts::{add_findings, rule_states};
use intact_document::unobserved::Unobserved;
use intact_document::{Conclusions, Facts, Finding, RuleState, Subject};
use intact_reading::Why;

/// The subject of requirements without a selector.
const WHOLE: &str = "all destinations";

impl Facts for ObservedFacts {
    /// Requirements without a selector are about the whole; those with one about the destinations
    /// that it finds.
    fn subjects(&self) -> Vec<Subject> {
        let whole = self.subject(Subject::new(WHOLE), &self.totals, |_| true);
        let each = self.destinations.iter().map(|one| {
            let is_own = |finding: &Finding| finding.is_about(&one.origin);
            self.subject(labelled(one), &one.figures, is_own)
        });
        std::iter::once(whole).chain(each).collect()
    }

    fn default_subjects(&self) -> Option<usize> {
        Some(1)
    }

    fn conclusions(&self) -> Conclusions<'_> {
        Conclusions::new(&self.verdict, &self.findings, &self.caveats)
    }

    fn rules(&self) -> Vec<RuleState> {
        rule_states(rules::evidence(), &self.unobserved())
    }

    /// Also where connections were open without our seeing inside.
    fn any_success(&self) -> bool {
        let is_open = self.totals.open_before > 0;
        let counted = &self.totals.counted;
        counted.any_success() || (counted.requests.total == 0 && is_open)
    }

    fn unobserved(&self) -> Unobserved {
        unobserved(&self.totals)
    }
}

/// What is missing; all of it, where nothing worked.
fn unobserved(figures: &Figures) -> Unobserved {
    let mut all = figures.counted.unobserved.clone();
    all.nothing = figures.counted.is_empty();
    if let Some(reason) = figures.counted.no_response() {
        all.add(&Unobserved::because(reason));
    }
    all
}

/// Why no figure describes successful work, if none does.
fn no_success(figures: &Figures) -> Option<&'static str> {
    let counted = &figures.counted;
    let only_errors = counted.requests.only_errors().map(|_| ONLY_ERRORS);
    counted.no_response().or(only_errors)
}

impl ObservedFacts {
    /// A subject with its readings.
    fn subject(
        &self,
        subject: Subject,
        figures: &Figures,
        is_own: impl Fn(&Finding) -> bool,
    ) -> Subject {
        let unobserved = unobserved(figures);
        let rules = rule_states(rules::evidence(), &unobserved);
        let own = self.findings.iter().filter(|finding| is_own(finding));
        let mut readings = figures.readings();
        add_findings(&mut readings, own, &rules, &unobserved);
        Subject {
            readings,
            // a count of what did not work is no figure
            unjudged: no_success(figures)
                .map(Why::cannot_see)
                .or(figures.counted.unjudged()),
            ..subject
        }
    }
}

fn labelled(one: &Destination) -> Subject {
    let mut subject = Subject::new(one.origin.clone()).label("origin", one.origin.clone());
    for host in one.host.iter().chain(&one.aliases) {
        subject = subject.label("host", host.clone());
    }
    if let [protocol] = one.protocols.keys().collect::<Vec<_>>()[..] {
        subject = subject.label("http", *protocol);
    }
    let versions: Vec<_> = one.tls.iter().filter_map(|tls| tls.version).collect();
    match versions[..] {
        [] if one.origin.starts_with("http:") => subject.label("tls", "none"),
        [version] => subject.label("tls", version.as_str()),
        _ => subject,
    }
}
