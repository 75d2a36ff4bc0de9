//! The commands that follow an observation with findings: prove the fix, see it at a distance, keep
//! it. Must not conclude.

use super::facts::ObservedFacts;
use intact_document::finding::{Finding, Severity};
use intact_ledger::redact::GONE;
use intact_ledger::{Producer, Run};
use serde::Serialize;

/// A command to run next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NextStep {
    /// What it is for.
    pub purpose: String,
    /// The command; `FIXED` stands for a program with the fix.
    pub command: String,
}

/// The commands for a run with a warning, or with failures that have none; none otherwise.
/// `is_near`: its destinations cost next to nothing to reach. `failures`: the figures of what
/// failed.
pub fn next_steps(
    run: &Run,
    findings: &[Finding],
    is_near: bool,
    failures: &[&str],
) -> Vec<NextStep> {
    let grave = findings
        .iter()
        .filter(|finding| finding.severity > Severity::Info);
    let worst = grave.clone().next();
    // a gate on a count fails for clients that are fixed and open one more, by design
    let mut gates: Vec<String> = Vec::new();
    for finding in grave {
        let gate = format!("--require 'findings.{} == 0'", finding.rule);
        if !gates.contains(&gate) {
            gates.push(gate);
        }
    }
    if gates.is_empty() {
        let failures = failures.iter();
        gates.extend(failures.map(|figure| format!("--require '{figure} == 0'")));
    }
    if gates.is_empty() {
        return Vec::new();
    }
    let requirement = gates.join(" ");
    let step = |purpose: &str, command| NextStep {
        purpose: purpose.to_owned(),
        command,
    };
    let joined = |words: &[String]| -> String {
        let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
        words.join(" ")
    };
    let end = program_at(run);
    let program = end.map(|end| joined(&run.argv[end + 1..]));
    let own = || joined(&repeatable(&run.argv[1..end.unwrap_or(run.argv.len())]));
    let mut steps = match (&run.producer, end, program) {
        (Producer::Watch, _, Some(program)) if !program.is_empty() => {
            let prove = worst.map(|_| {
                step(
                    "prove the fix: FIXED is the program with it",
                    format!("intact compare -- {program} -- FIXED"),
                )
            });
            // what fails costs no setup, but the request
            let far = worst.filter(|worst| is_near && worst.is_of_openings);
            let far = far.map(|_| {
                step(
                    "see what it costs at a distance",
                    format!("intact watch --rtt 30ms -- {program}"),
                )
            });
            let keep = step(
                "keep it",
                format!("intact watch {requirement} -- {program}"),
            );
            [prove, far, Some(keep)].into_iter().flatten().collect()
        }
        // the freezes are among its options
        (Producer::Lambda, Some(_), Some(program)) if run.variants.len() == 1 => vec![step(
            "keep it, with the environment variables of this run",
            format!("intact {} {requirement} -- {program}", own()),
        )],
        // a ledger from elsewhere may lack the command line
        _ if run.argv.len() <= 2 => Vec::new(),
        (Producer::Watch, None, _) => vec![step(
            "after the fix, with the new process id",
            format!("intact {} {requirement}", own()),
        )],
        (Producer::Audit, ..) => vec![step("keep it", format!("intact {} {requirement}", own()))],
        _ => Vec::new(),
    };
    if let Some(first) = steps.iter_mut().find(|one| one.command.contains(GONE)) {
        first.purpose += "; fill in each …, which may be a secret (--record-argv prints it)";
    }
    steps
}

/// The options of a command that can run again: without the folder of a ledger, which holds one.
fn repeatable(words: &[String]) -> Vec<String> {
    let mut words = words.iter();
    let mut kept = Vec::new();
    while let Some(word) = words.next() {
        match word.strip_prefix("--ledger") {
            Some("") => drop(words.next()),
            Some(rest) if rest.starts_with('=') => {}
            _ => kept.push(word.clone()),
        }
    }
    kept
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
    use intact_ledger::{Vantage, Variant};

    #[test]
    fn a_word_is_quoted_where_a_shell_would_change_it() {
        assert_eq!(quoted("http://a/b"), "http://a/b");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn a_command_that_runs_again_names_no_ledger_that_exists() {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        for line in [
            "lambda --ledger run -n 4",
            "lambda -n 4 --ledger=run",
            "lambda -n 4",
        ] {
            assert_eq!(repeatable(&words(line)), words("lambda -n 4"), "{line}");
        }
    }
    fn steps(producer: Producer, line: &[&str]) -> Vec<NextStep> {
        let words: Vec<String> = line.iter().map(|word| (*word).to_owned()).collect();
        let start = jiff::Timestamp::UNIX_EPOCH;
        let mut run = Run::new(producer, "0", Vantage::Client, start, 1, &words);
        run.variants = vec![Variant {
            name: String::new(),
            axes: Default::default(),
        }];
        let claim = intact_document::statement::Statement::text("slow");
        let finding = Finding::new("a-rule", Severity::Warning, String::new(), claim);
        next_steps(&run, &[finding], false, &[])
    }

    #[test]
    fn a_printed_command_is_complete_or_names_what_to_fill_in() {
        let audit = steps(Producer::Audit, &["intact", "audit", "my a.har", "b.har"]);
        let expected = "intact audit 'my a.har' b.har --require 'findings.a-rule == 0'";
        assert_eq!(audit[0].command, expected);
        assert_eq!(audit[0].purpose, "keep it");
        let lambda = [
            "intact",
            "lambda",
            "--ledger",
            "run",
            "-n",
            "4",
            "--",
            "env",
            "TOKEN=s3cret",
            "A=1",
            "app",
        ];
        let lambda = steps(Producer::Lambda, &lambda);
        let expected =
            "intact lambda -n 4 --require 'findings.a-rule == 0' -- env 'TOKEN=…' A=1 app";
        assert_eq!(lambda[0].command, expected);
        assert!(lambda[0].purpose.contains("fill in each …"), "{lambda:?}");
        let words = ["intact", "watch", "--", "app", "--password", "s3cret"];
        let watch = steps(Producer::Watch, &words);
        let noted = watch.iter().filter(|one| one.purpose.contains("fill in"));
        assert_eq!((watch.len(), noted.count()), (2, 1), "{watch:?}");
    }
}
