//! The commands that follow an observation with findings: prove the fix, see it at a distance, keep
//! it. Must not conclude.

use super::facts::ObservedFacts;
use super::tracker::Tracker;
use intact_document::finding::Severity;
use intact_ledger::Producer;
use serde::Serialize;

/// A command to run next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NextStep {
    /// What it is for.
    pub purpose: &'static str,
    /// The command; `FIXED` stands for the program with the fix.
    pub command: String,
}

/// The commands for a run with a warning; none otherwise.
pub(super) fn next_steps(tracker: &Tracker, facts: &ObservedFacts) -> Vec<NextStep> {
    let grave = facts.findings.iter();
    let mut grave = grave.filter(|finding| finding.severity > Severity::Info);
    let Some(worst) = grave.next() else {
        return Vec::new();
    };
    // a gate on a count fails for clients that are fixed and open one more, by design
    let requirement = format!("findings.{} == 0", worst.rule);
    let step = |purpose, command| NextStep { purpose, command };
    let argv = &tracker.run().argv;
    let program = argv.iter().skip_while(|word| *word != "--").skip(1);
    let program = program
        .map(|word| quoted(word))
        .collect::<Vec<_>>()
        .join(" ");
    if tracker.run().producer == Producer::Watch && !program.is_empty() {
        let mut steps = vec![step(
            "prove the fix",
            format!("intact compare -- {program} -- FIXED"),
        )];
        if is_local(facts) && tracker.run().link.is_none() {
            steps.push(step(
                "see what it costs at a distance",
                format!("intact watch --rtt 30ms -- {program}"),
            ));
        }
        steps.push(step(
            "keep it",
            format!("intact watch --require '{requirement}' -- FIXED"),
        ));
        return steps;
    }
    match tracker.run().producer {
        Producer::Audit => vec![step(
            "keep it",
            format!("intact audit --require '{requirement}' FILE"),
        )],
        _ => Vec::new(),
    }
}

/// Whether every destination is this machine, where a setup costs next to nothing.
fn is_local(facts: &ObservedFacts) -> bool {
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
