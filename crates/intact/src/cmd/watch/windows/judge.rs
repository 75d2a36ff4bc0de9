//! The verdict at the end of a window, as a test prints it: requirements with their results, then
//! findings with their remedies.

use super::request::Begin;
use crate::cmd::gates::failing;
use intact_document::requirement::{self, Verdict};
use intact_document::{Facts as _, Finding, Severity};
use intact_traffic::ObservedFacts;
use std::fmt::Write as _;

/// Places in the code of one finding.
const PLACES: usize = 5;

/// Judges a window: whether it passes, and the text. One in which nothing was observed does not
/// pass.
pub(super) fn judge(begin: &Begin, facts: &ObservedFacts) -> (bool, String) {
    let verdicts = requirement::evaluate(&begin.requirements, facts);
    let unobserved = facts.unobserved();
    let fail_on = begin.fail_on;
    let mut failing = fail_on.map_or_else(Vec::new, |least| failing(least, facts, &unobserved));
    if unobserved.nothing {
        let nothing = "no connection and no request of this process was observed in the window";
        failing = vec![nothing.to_owned()];
    }
    let passed = failing.is_empty() && verdicts.iter().all(Verdict::passed);
    let mut text = String::new();
    let verdicts = verdicts.iter().map(ToString::to_string);
    for lines in verdicts.chain(failing) {
        for line in lines.lines() {
            let _ = writeln!(text, "  {line}");
        }
    }
    let matters = |finding: &&Finding| finding.severity > Severity::Info;
    for finding in facts.findings.iter().filter(matters) {
        write_finding(&mut text, finding);
    }
    (passed, text)
}

fn write_finding(text: &mut String, finding: &Finding) {
    let (severity, rule) = (finding.severity.as_str(), finding.rule);
    let subjects = finding.subjects();
    let _ = writeln!(text, "  {severity}: {subjects}: {} [{rule}]", finding.claim);
    for place in finding.places.iter().take(PLACES) {
        let _ = writeln!(text, "    at {}", place.words());
    }
    for (before, statement) in [("", &finding.evidence), ("-> ", &finding.fix)] {
        let line = statement.to_string();
        if !line.is_empty() {
            let _ = writeln!(text, "    {before}{line}");
        }
    }
}
