//! Three golden ledgers for each outcome of a fault: it is so, it is not, and it was not observed.
//! `fixtures/golden-faults/OUTCOME/{yes,no,not-observed}.jsonl`: the first line says what the case
//! is, which runs there are, what the card must hold (bounds as `{"low": 0, "high": 1}`), and which
//! requirements are met or not; the others are rows of a ledger.

use intact_document::Facts;
use intact_document::requirement::{DocumentKind, Requirement};
use intact_ledger::{Evidence, Producer, Row, Run, Sink, Vantage, Variant};
use intact_reading::{BOUNDS, with_bounds};
use intact_servers::fault::{AXIS, FaultAnalysis, FaultFacts, RULES};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

const OUTCOMES: [&str; 7] = [
    "recovered",
    "failed",
    "hung",
    "duplicated",
    "truncated",
    "leaked",
    "misled",
];
const KINDS: [&str; 3] = ["yes", "no", "not-observed"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    case: String,
    runs: Vec<String>,
    card: Vec<Map<String, Value>>,
    met: Vec<String>,
    unmet: Vec<String>,
}

fn run(names: &[String]) -> Run {
    let started = "2026-01-01T00:00:00Z".parse().unwrap();
    let mut run = Run::new(Producer::Watch, "0", Vantage::OnPath, started, 1, &[])
        .with_evidence(Evidence::ALL);
    run.varied = vec![AXIS.to_owned()];
    let variant = |name: &String| Variant {
        name: name.clone(),
        axes: [(AXIS.to_owned(), name.clone())].into(),
    };
    run.variants = names.iter().map(variant).collect();
    run
}

fn path(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/golden-faults");
    folder.join(format!("{name}.jsonl"))
}

fn read(name: &str) -> (Head, Vec<Row>) {
    let text =
        std::fs::read_to_string(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut lines = text.lines();
    let head = serde_json::from_str(lines.next().unwrap_or_default());
    let head = head.unwrap_or_else(|error| panic!("{name}: {error}"));
    let row = |line: &str| {
        serde_json::from_str(line).unwrap_or_else(|error| panic!("{name}: {error}: {line}"))
    };
    (head, lines.map(row).collect())
}

fn facts(runs: &[String], rows: &[Row]) -> FaultFacts {
    let mut analysis = FaultAnalysis::new(&run(runs));
    for row in rows {
        analysis.record(row.as_event());
    }
    analysis.facts()
}

fn passes(expression: &str, facts: &FaultFacts) -> bool {
    let requirement: Requirement = expression.parse().unwrap_or_else(|error| panic!("{error}"));
    let rules = |_| RULES.to_vec();
    requirement.check_for(DocumentKind::Fault, rules).unwrap();
    requirement.evaluate(facts).passed()
}

/// The value of a key, or the bounds of a reading that is not known.
fn stated(cell: &Value, key: &str) -> Value {
    let Some(Value::Object(bounds)) = cell[BOUNDS].get(key) else {
        return cell[key].clone();
    };
    let mut bounds = bounds.clone();
    bounds.remove("why");
    match bounds.is_empty() {
        true => Value::Null,
        false => bounds.into(),
    }
}

/// What a golden ledger's card and requirements are, where they are not what its first line says;
/// then the facts.
fn compare(name: &str) -> (Vec<String>, FaultFacts) {
    let (head, rows) = read(name);
    let facts = facts(&head.runs, &rows);
    let cells = with_bounds(&facts.cells).unwrap();
    let cells = cells.as_array().unwrap();
    let mut wrong = Vec::new();
    if cells.len() != head.card.len() {
        wrong.push(format!("{name}: {} cells", cells.len()));
    }
    for (cell, expected) in cells.iter().zip(&head.card) {
        for (key, value) in expected {
            let found = stated(cell, key);
            if found == *value {
                continue;
            }
            let case = &head.case;
            wrong.push(format!("{name}: {case}\n  {key} is {found}, not {value}"));
        }
    }
    let met = head.met.iter().map(|one| (one, true));
    for (expression, is_met) in met.chain(head.unmet.iter().map(|one| (one, false))) {
        if passes(expression, &facts) != is_met {
            wrong.push(format!("{name}: `{expression}` must be {is_met}"));
        }
    }
    (wrong, facts)
}

#[test]
fn each_outcome_has_a_ledger_in_which_it_is_so_one_in_which_it_is_not_and_one_that_does_not_show_it()
 {
    let mut wrong = Vec::new();
    for outcome in OUTCOMES {
        for kind in KINDS {
            let name = format!("{outcome}/{kind}");
            let (differences, facts) = compare(&name);
            wrong.extend(differences);
            let outcomes = facts.cells.iter();
            let mut outcomes = outcomes.map(|cell| serde_json::to_value(cell.outcome).unwrap());
            let is_found = outcomes.any(|found| found == outcome);
            if is_found != (kind == "yes") {
                wrong.push(format!("{name}: the outcome is {is_found}"));
            }
            if kind == "not-observed" {
                assert!(!facts.is_safe, "{name}: {:?}", facts.verdict);
                assert!(!passes("fault: failed == 0", &facts), "{name}");
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn borderline_ledgers_are_judged_as_they_say() {
    let borderline = [
        "failed/moved",
        "failed/next-dead",
        "failed/next-equal",
        "failed/one-next-equal",
        "failed/unread-retry",
        "failed/unsent",
        "failed/unsent-alone",
        "hung/held",
        "hung/held-closed",
        "hung/held-fewer",
        "hung/held-ping",
        "hung/held-small",
        "hung/inferred",
        "hung/parallel",
        "hung/silent-not-reused",
        "hung/slow-server",
        "recovered/seen-late",
        "truncated/failed-at-end",
    ];
    let wrong: Vec<String> = borderline.iter().flat_map(|name| compare(name).0).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_a_fault_was_not_applied_to_is_unknown_and_is_said_first() {
    let (head, rows) = read("leaked/not-observed");
    let facts = facts(&head.runs, &rows);
    let cell = &facts.cells[0];
    let why = "no connection was kept after a response";
    for reading in [&cell.failed, &cell.leaked, &cell.affected, &cell.hung_ms] {
        assert!(reading.is_unknown());
        assert_eq!(reading.why().unwrap().to_string(), why);
    }
    assert!(!passes("fault: struck == 0", &facts));
    assert!(facts.rules().iter().all(|rule| rule.unjudged.is_some()));
    let first = &*facts.verdict[0].statement;
    let expected = format!("No fault was applied, so nothing was shown: stale ({why})");
    assert_eq!(first, expected);
}
