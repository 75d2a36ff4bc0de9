//! The card of a program under faults: one golden ledger for each of eight kinds, put together.

use crate::written;
use intact_findings::{Document, Parts};
use intact_ledger::{Evidence, Producer, Row, Run, Sink, Vantage, Variant};
use intact_report::documents;
use intact_servers::fault::{AXIS, FaultAnalysis, FaultFacts};
use serde_json::Value;
use std::path::Path;

/// The ledger of each kind, and the run in it that the kind has; the first gives the run without a
/// fault.
const RUNS: [(&str, &str, u64); 9] = [
    ("none", "failed/no", 0),
    ("stale", "leaked/yes", 1),
    ("fin-race", "failed/yes", 1),
    ("rst", "failed/no", 1),
    ("reset-mid-response", "duplicated/yes", 1),
    ("early-close-after-headers", "truncated/yes", 1),
    ("nat-idle=5s", "hung/not-observed", 1),
    ("black-hole", "hung/yes", 1),
    ("drain", "leaked/no", 1),
];

fn run() -> Run {
    let started = "2026-01-01T00:00:00Z".parse().unwrap();
    let mut run = Run::new(Producer::Watch, "0", Vantage::OnPath, started, 1, &[])
        .with_evidence(Evidence::ALL);
    run.subject = Some("python3 client.py".to_owned());
    run.seed = Some(0);
    run.varied = vec![AXIS.to_owned()];
    let variant = |(name, ..): &(&str, &str, u64)| Variant {
        name: (*name).to_owned(),
        axes: [(AXIS.to_owned(), (*name).to_owned())].into(),
    };
    run.variants = RUNS.iter().map(variant).collect();
    run
}

/// The rows of one run of a golden ledger, as those of run `to`.
fn rows(ledger: &str, from: u64, to: u64) -> Vec<Row> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/golden-faults");
    let text = std::fs::read_to_string(folder.join(format!("{ledger}.jsonl"))).unwrap();
    let rows = text.lines().skip(1).map(|line| {
        let row: Value = serde_json::from_str(line).unwrap();
        row
    });
    let own = rows.filter(|row| row["variant"] == from);
    let moved = own.map(|mut row| {
        row["variant"] = to.into();
        for key in ["id", "connection"] {
            if let Some(id) = row.get(key).and_then(Value::as_u64) {
                row[key] = (to * 100 + id).into();
            }
        }
        serde_json::from_value(row).unwrap()
    });
    moved.collect()
}

fn facts(run: &Run) -> FaultFacts {
    let mut analysis = FaultAnalysis::new(run);
    for (to, (_, ledger, from)) in RUNS.iter().enumerate() {
        for row in rows(ledger, *from, to as u64) {
            analysis.record(row.as_event());
        }
    }
    analysis.facts()
}

#[test]
fn the_card_of_a_program_under_faults() {
    let run = run();
    let facts = facts(&run);
    let document = Document::new(run, Parts::Fault(Box::new(facts)));
    let page = || documents::page(&document);
    insta::assert_snapshot!("terminal", written::terminal(&[page()]));
    let (markdown, html) = written::files("fault", &[page()]);
    insta::assert_snapshot!("markdown", markdown);
    assert!(html.contains("sent twice") && html.contains("faults.csv"));
}
