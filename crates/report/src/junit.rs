//! JUnit XML, so that a CI shows each requirement and each rule as a test. Must not decide what
//! counts as a failure: the caller says.
//!
//! There is no standard; what is written here is the part that Jenkins, GitLab, GitHub's reporters
//! and Azure all read: `testsuites` > `testsuite` > `testcase` > `failure`.

use super::annotations::{place, place_words};
use intact_document::requirement::Verdict;
use intact_document::{Finding, RuleState, Severity};
use intact_units::foreign_text::is_hidden;
use std::fmt::Write;

/// The document: a suite of requirements, and one of rules. A rule fails when it has a finding of
/// `fail_on` or worse. With `None` no rule fails, and its findings are its output. `missing`: why
/// traffic is missing, if some is; a rule without a finding is then skipped, not passed. `rules`:
/// the rules that were looked at. One without a finding has passed; one that could not judge is
/// skipped, with the reason. Others are there when they found something.
pub fn document(
    command: &str,
    verdicts: &[Verdict],
    rules: &[RuleState],
    findings: &[Finding],
    fail_on: Option<Severity>,
    missing: Option<&str>,
) -> String {
    let requirements: Vec<Case> = verdicts.iter().map(Case::of_requirement).collect();
    let mut all = rules.to_vec();
    for finding in findings {
        if all.iter().all(|rule| rule.id != finding.rule) {
            all.push(RuleState {
                id: finding.rule,
                unjudged: None,
            });
        }
    }
    let rules: Vec<Case> = all
        .iter()
        .map(|rule| Case::of_rule(rule, findings, fail_on, missing))
        .collect();
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let all = || requirements.iter().chain(&rules);
    let _ = writeln!(
        out,
        "<testsuites name=\"intact {}\" tests=\"{}\" failures=\"{}\">",
        escape(command),
        all().count(),
        all().filter(|case| case.failure.is_some()).count()
    );
    for (name, cases) in [("requirements", &requirements), ("rules", &rules)] {
        if cases.is_empty() {
            continue;
        }
        let _ = writeln!(
            out,
            "  <testsuite name=\"{name}\" tests=\"{}\" failures=\"{}\" skipped=\"{}\">",
            cases.len(),
            cases.iter().filter(|case| case.failure.is_some()).count(),
            cases.iter().filter(|case| case.skipped.is_some()).count()
        );
        for case in cases {
            case.write(&mut out, &format!("intact.{command}.{name}"));
        }
        out.push_str("  </testsuite>\n");
    }
    out.push_str("</testsuites>\n");
    out
}

struct Case {
    name: String,
    /// One line, and all of it.
    failure: Option<(String, String)>,
    /// Why it was neither met nor missed.
    skipped: Option<String>,
    output: Option<String>,
    /// The line of the code that is the most frequent place of its worst finding.
    place: Option<(String, u32)>,
}

impl Case {
    fn of_requirement(verdict: &Verdict) -> Case {
        let printed = verdict.to_string();
        let first = verdict.results().first().map(ToString::to_string);
        let failed = !verdict.passed();
        Case {
            name: verdict.requirement().to_string(),
            skipped: None,
            failure: failed.then(|| (first.unwrap_or_else(|| printed.clone()), printed.clone())),
            output: (!failed).then_some(printed),
            place: None,
        }
    }

    fn of_rule(
        rule: &RuleState,
        findings: &[Finding],
        fail_on: Option<Severity>,
        missing: Option<&str>,
    ) -> Case {
        let own = || findings.iter().filter(|finding| finding.rule == rule.id);
        let failing = |finding: &&Finding| fail_on.is_some_and(|least| finding.severity >= least);
        let words: Vec<String> = own().map(in_words).collect();
        let output = (!words.is_empty()).then(|| words.join("\n\n"));
        let worst = own().find(failing);
        let unjudged = rule.unjudged.as_ref().map(ToString::to_string);
        let unjudged = unjudged.or_else(|| {
            missing.map(|reason| format!("a part of the traffic was not observed: {reason}"))
        });
        let failure = worst.map(|one| format!("{}: {}", one.subjects(), one.claim));
        Case {
            name: rule.id.to_owned(),
            failure: failure.zip(output.clone()),
            skipped: unjudged.filter(|_| output.is_none()),
            output,
            place: worst
                .or(own().next())
                .and_then(place)
                .map(|place| (place.file.clone(), place.line)),
        }
    }

    fn write(&self, out: &mut String, class: &str) {
        let _ = write!(
            out,
            "    <testcase classname=\"{}\" name=\"{}\"",
            escape(class),
            escape(&self.name)
        );
        if let Some((file, line)) = &self.place {
            let _ = write!(out, " file=\"{}\" line=\"{line}\"", escape(file));
        }
        match (&self.failure, &self.output, &self.skipped) {
            (Some((message, all)), _, _) => {
                let _ = writeln!(
                    out,
                    ">\n      <failure message=\"{}\">{}</failure>\n    </testcase>",
                    escape(message),
                    escape(all)
                );
            }
            (None, None, Some(reason)) => {
                let _ = writeln!(
                    out,
                    ">\n      <skipped message=\"{}\"/>\n    </testcase>",
                    escape(reason)
                );
            }
            (None, Some(output), _) => {
                let _ = writeln!(
                    out,
                    ">\n      <system-out>{}</system-out>\n    </testcase>",
                    escape(output)
                );
            }
            (None, None, None) => out.push_str("/>\n"),
        }
    }
}

fn in_words(finding: &Finding) -> String {
    let risk = finding.risk.as_ref();
    format!(
        "[{}] {}: {}{}\n{}\nfix: {}{}",
        finding.severity.as_str(),
        finding.subjects(),
        finding.claim,
        place_words(finding),
        finding.evidence,
        finding.fix,
        risk.map_or_else(String::new, |risk| format!("\nbut: {risk}"))
    )
}

/// Text for XML 1.0, which has no place for most control characters at all.
fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\n' | '\t' => safe.push(letter),
            '\u{fffe}' | '\u{ffff}' => safe.push('\u{fffd}'),
            other if is_hidden(other) => safe.extend(other.escape_default()),
            other => safe.push(other),
        }
    }
    safe
}
