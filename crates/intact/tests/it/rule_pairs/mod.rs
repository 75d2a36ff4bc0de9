//! Each rule that a document claims, on real traffic: a program and a server with which it fires,
//! and ones with which it does not.
//!
//! The rules of traffic have one table (`rows.py`), which every producer of such a document runs.
//! A rule counts as claimed if the JUnit file of a run without a fault has it as a test that
//! passed. A claimed rule without a row fails, except those that a producer lists with a reason.

mod audit;
mod browsed;
mod campaign;
mod checks;
mod documents;
pub(crate) mod field;
mod served;
mod traffic;

use field::Field;
use serde_json::Value;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The rows, in the order of their addresses.
const ROWS: [&str; 34] = [
    "connection-shared-by-processes",
    "stale-reuse",
    "lost-in-drain",
    "closed-before-response",
    "dead-connection-reused",
    "broken-response",
    "abandoned-request",
    "body-not-drained",
    "connection-close-sent",
    "close-announced-not-kept",
    "server-closes-early",
    "channel-per-call",
    "new-connection-per-query",
    "pool-too-small",
    "h2-not-multiplexed",
    "leaked-connections",
    "new-client-per-request",
    "pool-per-worker",
    "new-connection-per-request",
    "cold-pool",
    "retried-request",
    "idle-timeout-race",
    "h2-stream-limit",
    "waiting-for-pool",
    "lookup-per-request",
    "ports-running-out",
    "tls-never-resumed",
    "old-tls",
    "h2-available-unused",
    "slower-when-reused",
    "first-request-costs-more",
    "unbalanced-by-reuse",
    "state-carried-over",
    "tcp-keepalive-is-not-reuse",
];

/// Rows whose programs have no fault: requests, and a lookup.
const SOUND: [&str; 2] = ["new-connection-per-request", "lookup-per-request"];

/// Whether a rule fires, or the cause is missing.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Fires,
    DoesNot,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Kind::Fires => "fires",
            Kind::DoesNot => "does-not",
        }
    }
}

/// What a finding names.
#[derive(Clone, Copy)]
enum Naming {
    /// The destination of its row.
    Each,
    /// One destination for each rule: the document has a finding of a rule once.
    OncePerRule,
}

/// A producer of documents about traffic.
struct Producer<F> {
    test: &'static str,
    /// The rules that have a row.
    rows: &'static [&'static str],
    /// Rows whose programs have no fault, and show what the producer can judge.
    sound: &'static [&'static str],
    naming: Naming,
    /// Rules without a pair, and why.
    left_out: &'static [(&'static str, &'static str)],
    /// The document of these rows, with the options of its gates.
    document: F,
}

impl<F: Fn(&Field, Kind, &[&str], &[&str]) -> Value> Producer<F> {
    /// Checks that each rule that the producer claims has a row, fires there, and does not fire
    /// where the cause is missing.
    fn check(&self) {
        let Some(field) = Field::set(self.test) else {
            return;
        };
        let claimed = self.claimed(&field);
        let of = |kind| (self.document)(&field, kind, self.rows, &[]);
        let [fires, does_not] = [Kind::Fires, Kind::DoesNot].map(of);
        let mut faults = Vec::new();
        for rule in &claimed {
            if self.left_out.iter().any(|(left, _)| left == rule) {
                continue;
            }
            let Some(row) = self.rows.iter().position(|row| row == rule) else {
                faults.push(format!("{rule} is claimed and has no row"));
                continue;
            };
            let is_found = match self.naming {
                Naming::Each => is_found(&fires, rule, Some(row)),
                Naming::OncePerRule => is_found(&fires, rule, None),
            };
            if !is_found {
                let others = rules_of_row(&fires, row);
                faults.push(format!("{rule} does not fire; its row has {others:?}"));
            }
            if self::is_found(&does_not, rule, Some(row)) {
                faults.push(format!("{rule} fires without its cause"));
            }
        }
        for (rule, why) in self.left_out {
            if !claimed.iter().any(|one| one == rule) {
                faults.push(format!("{rule} is left out ({why}) and not claimed"));
            }
        }
        assert!(faults.is_empty(), "{}: {faults:#?}", self.test);
    }

    /// The rules of traffic that could judge a run without a fault.
    fn claimed(&self, field: &Field) -> Vec<String> {
        let junit = field.path("junit.xml");
        let gates = ["--junit", junit.as_str()];
        (self.document)(field, Kind::DoesNot, self.sound, &gates);
        let text = std::fs::read_to_string(&junit).unwrap();
        let mut claimed = passed(&text);
        claimed.retain(|rule| intact_traffic::rules::ids().any(|id| id == rule));
        claimed
    }
}

/// What `work` makes of each, some at a time: more would make each other late.
fn in_threads<T: Sync, R: Send>(all: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let one_thread = || {
        let numbers = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
        let own = numbers.map_while(|nth| Some((nth, work(all.get(nth)?))));
        own.collect::<Vec<_>>()
    };
    let mut done: Vec<(usize, R)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3).map(|_| scope.spawn(one_thread)).collect();
        let done = threads.into_iter().flat_map(|one| one.join().unwrap());
        done.collect()
    });
    done.sort_by_key(|(nth, _)| *nth);
    done.into_iter().map(|(_, result)| result).collect()
}

/// The tests that passed in a JUnit file.
fn passed(junit: &str) -> Vec<String> {
    let cases = junit.split("<testcase ").skip(1);
    let passed = cases.filter(|case| !case.contains("<skipped") && !case.contains("<failure"));
    passed
        .map(|case| {
            let name = case.split("name=\"").nth(2).unwrap();
            name.split('"').next().unwrap().to_owned()
        })
        .collect()
}

/// What a finding is about: its subject, and others.
fn subjects(finding: &Value) -> impl Iterator<Item = &str> {
    let also = finding["also"].as_array().into_iter().flatten();
    let all = std::iter::once(&finding["subject"]).chain(also);
    all.filter_map(Value::as_str)
}

/// Whether a finding names the address or the name of a row.
fn is_of_row(finding: &Value, row: usize) -> bool {
    let number = row + 1;
    let places = [
        format!("127.1.{number}.1"),
        format!("row-{number}-1.example"),
        format!("wide-{number}-1.example"),
    ];
    subjects(finding).any(|subject| {
        let words = subject.split(['/', ':', ' ', ',']);
        words
            .into_iter()
            .any(|word| places.iter().any(|place| word == place))
    })
}

fn findings(document: &Value) -> &[Value] {
    document["findings"].as_array().unwrap()
}

/// Whether the document has a finding of the rule, about the row if one is given.
fn is_found(document: &Value, rule: &str, row: Option<usize>) -> bool {
    let mut own = findings(document).iter().filter(|one| one["rule"] == rule);
    own.any(|one| row.is_none_or(|row| is_of_row(one, row)))
}

fn rules_of_row(document: &Value, row: usize) -> Vec<&str> {
    let own = findings(document).iter().filter(|one| is_of_row(one, row));
    own.filter_map(|one| one["rule"].as_str()).collect()
}
