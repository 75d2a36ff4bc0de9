//! Lines that a CI turns into marks on its own page: GitHub's workflow commands, Azure's logging
//! commands. Must not look at the environment: the caller says which CI it is.

use intact_document::requirement::Verdict;
use intact_document::{Finding, Severity};
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
    let failed = failed.map(|verdict| line(ci, "error", "requirement", &verdict.to_string()));
    let found = findings
        .iter()
        .filter(|finding| finding.severity > Severity::Info)
        .map(|finding| {
            let printed = format!(
                "{}: {}\n{}\nfix: {}",
                finding.subjects(),
                finding.claim,
                finding.evidence,
                finding.fix
            );
            line(ci, finding.severity.as_str(), finding.rule, &printed)
        });
    failed.take(MOST).chain(found.take(MOST)).collect()
}

fn line(ci: Ci, kind: &str, title: &str, message: &str) -> String {
    match ci {
        Ci::GitHub => format!(
            "::{kind} title=intact: {}::{}",
            escape(title).replace(':', "%3A").replace(',', "%2C"),
            escape(message)
        ),
        Ci::Azure => format!(
            "##vso[task.logissue type={kind}]intact: {}: {}",
            escape(title),
            // a logging command is one line, and a bracket would end its head
            escape(message).replace("%0A", "; ")
        ),
    }
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
        let printed = line(Ci::GitHub, "warning", "a:b,c", "x\n::add-mask::y\r\x1b[2J");
        assert_eq!(printed.lines().count(), 1);
        assert!(printed.starts_with("::warning title=intact: a%3Ab%2Cc::x%0A::add-mask::y%0D"));
        assert!(!printed.contains('\x1b'));
        let printed = line(Ci::GitHub, "error", "rule", "x ##[error]y ##vso[task.z]");
        assert!(
            printed.ends_with("x ##\\[error]y ##vso\\[task.z]"),
            "{printed}"
        );
        let printed = line(Ci::Azure, "error", "rule", "x\n##vso[task.setvariable]y");
        assert_eq!(printed.lines().count(), 1);
    }
}
