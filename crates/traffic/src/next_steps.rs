//! The commands that follow an observation with findings: prove the fix, see it at a distance, keep
//! it. Must not conclude.

use super::facts::ObservedFacts;
use intact_document::finding::{Finding, Severity};
use intact_ledger::{Producer, Run};
use serde::Serialize;

/// A command to run next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NextStep {
    /// What it is for.
    pub purpose: &'static str,
    /// The command; `FIXED` stands for a program with the fix.
    pub command: String,
}

/// The commands for a run with a warning; none otherwise. `is_near`: its destinations cost next to
/// nothing to reach.
pub fn next_steps(run: &Run, findings: &[Finding], is_near: bool) -> Vec<NextStep> {
    let mut grave = findings
        .iter()
        .filter(|finding| finding.severity > Severity::Info);
    let Some(worst) = grave.next() else {
        return Vec::new();
    };
    // a gate on a count fails for clients that are fixed and open one more, by design
    let requirement = format!("--require 'findings.{} == 0'", worst.rule);
    let step = |purpose, command| NextStep { purpose, command };
    let joined = |words: &[String]| -> String {
        let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
        words.join(" ")
    };
    let end = program_at(run);
    let program = end.map(|end| joined(&run.argv[end + 1..]));
    match (&run.producer, end, program) {
        (Producer::Watch, _, Some(program)) if !program.is_empty() => {
            let prove = step(
                "prove the fix: FIXED is the program with it",
                format!("intact compare -- {program} -- FIXED"),
            );
            // what fails costs no setup, but the request
            let far = (is_near && worst.is_of_openings).then(|| {
                step(
                    "see what it costs at a distance",
                    format!("intact watch --rtt 30ms -- {program}"),
                )
            });
            let keep = step(
                "keep it",
                format!("intact watch {requirement} -- {program}"),
            );
            [Some(prove), far, Some(keep)]
                .into_iter()
                .flatten()
                .collect()
        }
        // the freezes are among its options
        (Producer::Lambda, Some(end), Some(program)) if run.variants.len() == 1 => vec![step(
            "keep it",
            format!(
                "intact {} {requirement} -- {program}",
                joined(&run.argv[1..end])
            ),
        )],
        // a service that runs; a ledger from elsewhere may lack the command line
        (Producer::Watch, None, _) if run.argv.len() > 2 => vec![step(
            "after the fix, with the new process id",
            format!("intact {} {requirement}", joined(&run.argv[1..])),
        )],
        (Producer::Audit, ..) => vec![step("keep it", format!("intact audit {requirement} FILE"))],
        _ => Vec::new(),
    }
}

/// Where the command line has the program that it started, if it did.
pub(super) fn program_at(run: &Run) -> Option<usize> {
    run.argv.iter().position(|word| word == "--")
}

/// Whether every destination is this machine, where a setup costs next to nothing.
pub(super) fn is_local(facts: &ObservedFacts) -> bool {
    let is_loopback = |host: &str| {
        let host = host.strip_prefix('[').unwrap_or(host);
        host.starts_with("localhost") || host.starts_with("127.") || host.starts_with("::1")
    };
    let hosts = facts.destinations.iter().map(|one| one.host.as_deref());
    hosts.into_iter().all(|host| host.is_some_and(is_loopback))
}

/// A word as a POSIX shell reads it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_quoted_where_a_shell_would_change_it() {
        assert_eq!(quoted("http://a/b"), "http://a/b");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
        assert_eq!(quoted(""), "''");
    }
}
