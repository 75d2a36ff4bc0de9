//! Three golden ledgers for each rule: it fires, it does not, and a borderline case.
//! `fixtures/golden/RULE/{fires,does-not,borderline}.jsonl`: the first line says what the case is
//! and which findings, of all rules, are expected; the others are rows of a ledger. A fourth one,
//! `not-observable.jsonl`, is a recording that lacks what the rule needs: a gate on the rule does
//! not pass on it.

use intact_document::Finding;
use intact_document::requirement::Requirement;
use intact_ledger::{Evidence, EvidenceSet, Host, Identity, Producer, Row, Run, Sink, Vantage};
use intact_traffic::{ObservedFacts, TrafficAnalysis, rules};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

const KINDS: [&str; 3] = ["fires", "does-not", "borderline"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Head {
    case: String,
    #[serde(default)]
    run: Overrides,
    finds: Vec<Expected>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Overrides {
    host: Option<Host>,
    vantage: Option<Vantage>,
    /// The evidence that the recording lacks.
    #[serde(default)]
    lacks: EvidenceSet,
}

#[derive(Debug, Deserialize, PartialEq, PartialOrd)]
#[serde(deny_unknown_fields)]
struct Expected {
    rule: String,
    severity: String,
    cost_ms: Option<f64>,
}

/// What a ledger never holds, but the rules see in memory.
#[derive(Default, Deserialize)]
struct InMemory {
    identity: Option<Hashes>,
}

#[derive(Deserialize)]
struct Hashes {
    scheme: Option<String>,
    credential: Option<u64>,
    cookie: Option<u64>,
}

pub(crate) fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/golden")
}

pub(crate) fn replay(path: &Path) -> (Head, ObservedFacts) {
    let text =
        std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut lines = text.lines();
    let head: Head = serde_json::from_str(lines.next().unwrap_or_default())
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let started = "2026-01-01T00:00:00Z".parse().unwrap();
    let vantage = head.run.vantage.unwrap_or(Vantage::Client);
    let mut run =
        Run::new(Producer::Watch, "0", vantage, started, 1, &[]).with_evidence(Evidence::ALL);
    run.host = head.run.host.clone().unwrap_or_default();
    let lacks = head.run.lacks.iter();
    run.evidence = lacks.fold(run.evidence, EvidenceSet::without);
    let mut observed = TrafficAnalysis::new(&run);
    for line in lines {
        let parsed =
            serde_json::from_str(line).and_then(|row| Ok((row, serde_json::from_str(line)?)));
        let (mut row, more): (Row, InMemory) =
            parsed.unwrap_or_else(|error| panic!("{}: {error}: {line}", path.display()));
        if let (Row::Exchange(exchange), Some(hashes)) = (&mut row, more.identity) {
            exchange.identity = Identity {
                scheme: hashes.scheme.map(Into::into),
                credential: hashes.credential,
                cookie: hashes.cookie,
            };
        }
        observed.record(row.as_event());
    }
    (head, observed.facts())
}

fn as_expected(finding: &Finding) -> Expected {
    let severity = serde_json::to_value(finding.severity).unwrap();
    Expected {
        rule: finding.rule.to_owned(),
        severity: severity.as_str().unwrap().to_owned(),
        cost_ms: finding.cost_ms.map(|ms| (ms * 1e3).round() / 1e3),
    }
}

#[test]
fn each_rule_finds_what_its_golden_ledgers_hold_and_no_other_rule_speaks_unexpectedly() {
    let mut wrong = Vec::new();
    for rule in rules::all() {
        for kind in KINDS {
            let name = format!("{}/{kind}.jsonl", rule.doc().id);
            let (mut head, facts) = replay(&golden().join(&name));
            let order = |a: &Expected, b: &Expected| a.partial_cmp(b).unwrap();
            head.finds.sort_by(order);
            let mut found: Vec<Expected> = facts.findings.iter().map(as_expected).collect();
            found.sort_by(order);
            if found != head.finds {
                wrong.push(format!(
                    "{name}: {}\n  expected {:?}\n  found    {found:?}\n{:#?}",
                    head.case, head.finds, facts.findings
                ));
            }
            let speaks = found.iter().any(|one| one.rule == rule.doc().id);
            if kind != "borderline" && speaks != (kind == "fires") {
                wrong.push(format!(
                    "{name}: the rule must{} speak",
                    if speaks { " not" } else { "" }
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Rules that say what a recording must have, with a recording that has it not.
const NOT_OBSERVABLE: [(&str, &str); 14] = [
    ("body-not-drained", "not-observable"),
    ("cold-pool", "not-observable"),
    ("connection-shared-by-processes", "not-observable"),
    ("dead-connection-reused", "not-observable"),
    ("h2-stream-limit", "not-observable"),
    ("h2-stream-limit", "not-observable-announcements"),
    ("leaked-connections", "not-observable"),
    ("lost-in-drain", "not-observable"),
    ("lost-in-drain", "not-observable-announcements"),
    ("pinned-to-old-address", "not-observable"),
    ("state-carried-over", "not-observable"),
    ("unbalanced-by-reuse", "not-observable"),
    ("unbalanced-by-reuse", "not-observable-results"),
    ("waiting-for-pool", "not-observable"),
];

#[test]
fn a_gate_on_a_rule_passes_only_where_the_rule_could_be_applied() {
    let passes = |rule: &str, kind: &str| {
        let (head, facts) = replay(&golden().join(rule).join(format!("{kind}.jsonl")));
        let requirement = format!("findings.{rule} == 0");
        let requirement: Requirement = requirement.parse().unwrap();
        (head.case, requirement.evaluate(&facts).passed())
    };
    for (rule, kind) in NOT_OBSERVABLE {
        let (case, is_met) = passes(rule, "does-not");
        assert!(is_met, "{rule}: {case}");
        let (case, is_met) = passes(rule, kind);
        assert!(!is_met, "{rule}: {case}");
        let (head, facts) = replay(&golden().join(rule).join(format!("{kind}.jsonl")));
        assert!(
            facts.findings.iter().all(|one| one.rule != rule),
            "{}",
            head.case
        );
    }
}

/// What each rule writes about the ledger in which it fires, and the values that JSON has with it.
#[test]
fn the_sentences_of_each_rule_are_those_of_the_list() {
    let mut written = String::new();
    for rule in rules::all() {
        let id = rule.doc().id;
        let (_, facts) = replay(&golden().join(id).join("fires.jsonl"));
        for finding in facts.findings.iter().filter(|one| one.rule == id) {
            let json = serde_json::to_value(finding).unwrap();
            assert_eq!(json["claim"], *finding.claim);
            let number = json["values"].as_object().unwrap().values();
            assert!(number.clone().any(serde_json::Value::is_number), "{json}");
            let _ = writeln!(
                written,
                "{id}\n  {}\n  {}\n  {}",
                finding.claim, finding.evidence, json["values"]
            );
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/sentences.txt");
    if std::env::var_os("INTACT_UPDATE").is_some() {
        std::fs::write(&path, &written).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(written, kept, "INTACT_UPDATE=1 writes the list");
}

/// Connections that a server ends: of requests and age, the one that varies less is the limit.
#[test]
fn a_maximum_age_is_not_called_a_limit_of_requests() {
    for (kind, claim, evidence, fix) in [
        (
            "fires",
            "because the server ends connections after a number of requests",
            "it announced the end after 3 requests",
            "keepalive_requests",
        ),
        (
            "age",
            "because the server ends connections at an age",
            "after 4 to 20 requests; the connections were 9.2 s to 10.7 s old",
            "MAX_CONNECTION_AGE",
        ),
        (
            "requests-vary",
            "because the server ends connections after a number of requests",
            "it announced the end after 10 to 11 requests",
            "keepalive_requests",
        ),
        (
            "neither",
            "because the server ended the last one, as it had announced",
            "after 5 to 15 requests; the connections were 2 s to 6 s old",
            "Find out what ends them",
        ),
    ] {
        let name = format!("server-closes-early/{kind}.jsonl");
        let (head, facts) = replay(&golden().join(name));
        let found: Vec<Expected> = facts.findings.iter().map(as_expected).collect();
        assert_eq!(found, head.finds, "{}: {:#?}", head.case, facts.findings);
        let finding = &facts.findings[0];
        assert!(finding.claim.contains(claim), "{kind}: {:?}", finding.claim);
        assert!(
            finding.evidence.contains(evidence),
            "{kind}: {:?}",
            finding.evidence
        );
        assert!(finding.fix.contains(fix), "{kind}: {:?}", finding.fix);
    }
}

#[test]
fn no_golden_ledger_belongs_to_a_rule_that_is_gone() {
    let known: BTreeSet<String> = rules::all()
        .iter()
        .map(|rule| rule.doc().id.to_owned())
        .collect();
    let kept: BTreeSet<String> = std::fs::read_dir(golden())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(kept, known);
}

#[test]
fn findings_never_cost_more_than_what_was_wasted() {
    for rule in rules::all() {
        for kind in KINDS {
            let (head, facts) = replay(&golden().join(rule.doc().id).join(format!("{kind}.jsonl")));
            let claimed: f64 = facts
                .findings
                .iter()
                .filter_map(|finding| finding.cost_ms)
                .sum();
            let wasted = facts.totals.counted.wasted_ms.unwrap_or(0.0);
            let waited = facts.totals.setup_wait_ms.unwrap_or(0.0);
            let wasted = wasted.max(waited);
            let lost = facts.totals.lost_ms.unwrap_or(0.0);
            assert!(
                claimed <= wasted + lost + 1e-6,
                "{}: {claimed} ms of {wasted} and {lost}",
                head.case
            );
            assert!(
                facts.totals.counted.counts.connections.needed
                    <= facts.totals.counted.counts.connections.opened
            );
        }
    }
}
