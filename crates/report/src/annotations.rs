//! Lines that a CI turns into marks on its own page: GitHub's workflow commands, Azure's logging
//! commands. Must not look at the environment: the caller says which CI it is.

use intact_document::requirement::Verdict;
use intact_document::{Finding, Place, Severity};
use intact_units::foreign_text::is_hidden;

/// A CI that understands annotations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ci {
    /// GitHub Actions, and Forgejo and Gitea, which speak the same.
    GitHub,
    /// Azure Pipelines.
    Azure,
}

/// GitHub shows ten of each kind for a step.
const MOST: usize = 10;

/// A line for each requirement that is not met and each finding that is more than a note.
pub fn lines(ci: Ci, verdicts: &[Verdict], findings: &[Finding]) -> Vec<String> {
    let failed = verdicts.iter().filter(|verdict| !verdict.passed());
    let failed = failed.map(|verdict| line(ci, "error", "requirement", None, &verdict.to_string()));
    let found = findings
        .iter()
        .filter(|finding| finding.severity > Severity::Info)
        .map(|finding| {
            let printed = format!(
                "{}: {}{}\n{}\nfix: {}",
                finding.subjects(),
                finding.claim,
                place_words(finding),
                finding.evidence,
                finding.fix
            );
            line(
                ci,
                finding.severity.as_str(),
                finding.rule,
                place(finding),
                &printed,
            )
        });
    failed.take(MOST).chain(found.take(MOST)).collect()
}

/// The line of the code that a mark is shown at: the most frequent place, if it is in the sources.
pub(crate) fn place(finding: &Finding) -> Option<&Place> {
    finding.places.first().filter(|place| place.is_below_root())
}

/// The places of a finding, a line each.
pub(crate) fn place_words(finding: &Finding) -> String {
    let places = finding.places.iter().take(MOST);
    places
        .map(|place| format!("\nat {}", place.words()))
        .collect()
}

fn line(ci: Ci, kind: &str, title: &str, place: Option<&Place>, message: &str) -> String {
    match ci {
        Ci::GitHub => format!(
            "::{kind} {}title=intact: {}::{}",
            place.map_or_else(String::new, |place| {
                format!("file={},line={},", property(&place.file), place.line)
            }),
            property(title),
            escape(message)
        ),
        Ci::Azure => format!(
            "##vso[task.logissue type={kind}{}]intact: {}: {}",
            place.map_or_else(String::new, |place| {
                // these would end the value or the head
                let file = escape(&place.file).replace([';', ']'], "?");
                format!(";sourcepath={file};linenumber={}", place.line)
            }),
            escape(title),
            // a logging command is one line, and a bracket would end its head
            escape(message).replace("%0A", "; ")
        ),
    }
}

/// A value in the head of a workflow command.
fn property(text: &str) -> String {
    escape(text).replace(':', "%3A").replace(',', "%2C")
}

/// Line breaks would end the command, and what follows be read as another one. Some commands are
/// recognised within a line.
fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '%' => safe.push_str("%25"),
            '\r' => safe.push_str("%0D"),
            '\n' => safe.push_str("%0A"),
            other if is_hidden(other) => safe.extend(other.escape_default()),
            other => safe.push(other),
        }
    }
    safe.replace("##[", "##\\[").replace("##vso[", "##vso\\[")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_said_cannot_smuggle_a_command_into_the_log() {
        let printed = line(
            Ci::GitHub,
            "warning",
            "a:b,c",
            None,
            "x\n::add-mask::y\r\x1b[2J",
        );
        assert_eq!(printed.lines().count(), 1);
        assert!(printed.starts_with("::warning title=intact: a%3Ab%2Cc::x%0A::add-mask::y%0D"));
        assert!(!printed.contains('\x1b'));
        let printed = line(
            Ci::GitHub,
            "error",
            "rule",
            None,
            "x ##[error]y ##vso[task.z]",
        );
        assert!(
            printed.ends_with("x ##\\[error]y ##vso\\[task.z]"),
            "{printed}"
        );
        let printed = line(
            Ci::Azure,
            "error",
            "rule",
            None,
            "x\n##vso[task.setvariable]y",
        );
        assert_eq!(printed.lines().count(), 1);
    }

    #[test]
    fn a_mark_points_at_the_line_of_the_code() {
        let place = |file: &str| Place {
            file: file.to_owned(),
            line: 41,
            function: "charge".to_owned(),
            connections: 3,
            stack: Vec::new(),
        };
        let mut finding = Finding::new("rule", Severity::Warning, "a".to_owned(), "slow");
        finding.places = vec![place("app/a,b:c.py")];
        let printed = lines(Ci::GitHub, &[], std::slice::from_ref(&finding));
        assert!(
            printed[0].starts_with("::warning file=app/a%2Cb%3Ac.py,line=41,title=intact: rule::"),
            "{printed:?}"
        );
        assert!(printed[0].contains("%0Aat app/a,b:c.py:41 charge: 3 connections"));
        let printed = lines(Ci::Azure, &[], std::slice::from_ref(&finding));
        assert!(
            printed[0].contains("type=warning;sourcepath=app/a,b:c.py;linenumber=41]"),
            "{printed:?}"
        );
        finding.places = vec![place("../other.py")];
        let printed = lines(Ci::GitHub, &[], &[finding]);
        assert!(printed[0].starts_with("::warning title="), "{printed:?}");
    }
}
