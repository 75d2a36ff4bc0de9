//! Stored ledgers of observers: shown, checked by requirements, written for a CI.

use crate::program::intact;
use intact_ledger::store::Writer;
use intact_ledger::{Evidence, Producer, Row, Run, Vantage};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A file of the golden ledgers.
pub(crate) fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures/golden")
        .join(name)
}

/// Stores a golden ledger as `watch` would; its folder.
pub(crate) fn store(folder: &Path, golden: &str) -> String {
    let path = self::golden(&format!("{golden}.jsonl"));
    let started = "2026-01-01T00:00:00Z".parse().unwrap();
    let mut run = Run::new(Producer::Watch, "0", Vantage::Client, started, 1, &[])
        .with_evidence(Evidence::ALL);
    run.subject = Some("node server.js".to_owned());
    let mut writer = Writer::create(folder, &run).unwrap();
    for line in std::fs::read_to_string(path).unwrap().lines().skip(1) {
        let row: Row = serde_json::from_str(line).unwrap();
        writer.append(row.as_event()).unwrap();
    }
    writer.finish(started).unwrap();
    folder.to_str().unwrap().to_owned()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn code(out: &Output) -> i32 {
    out.status.code().unwrap()
}

#[test]
fn a_stored_ledger_is_shown_with_its_findings() {
    let dir = tempfile::tempdir().unwrap();
    let folder = store(&dir.path().join("a"), "new-connection-per-request/fires");
    let out = intact(&["report", &folder]);
    let page = text(&out.stdout);
    assert_eq!(code(&out), 0, "{}", text(&out.stderr));
    assert!(
        page.contains("5 connections were opened where 1 would do"),
        "{page}"
    );
    assert!(page.contains("[new-connection-per-request]"), "{page}");
    let out = intact(&["report", &folder, "--json"]);
    let document: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(document["schema"], "intact.watch/1");
    assert_eq!(document["totals"]["avoidable"], 4);
}

#[test]
fn gates_close_on_requirements_and_on_findings() {
    let dir = tempfile::tempdir().unwrap();
    let folder = store(&dir.path().join("a"), "new-connection-per-request/fires");
    for (words, expected) in [
        (&["--require", "avoidable <= 4"][..], 0),
        (&["--require", "avoidable == 0"], 1),
        (&["--require", "host=api.example: connections == 5"], 0),
        (&["--require", "host=other.example: connections == 5"], 1),
        (
            &["--require", "findings.new-connection-per-request == 0"],
            1,
        ),
        (&["--require", "idle-timeout > 5s"], 2),
        (&["--require", "help"], 0),
        (&["--fail-on", "warning"], 1),
        (&["--fail-on", "error"], 0),
    ] {
        let mut all = vec!["report", &folder];
        all.extend_from_slice(words);
        let out = intact(&all);
        assert_eq!(code(&out), expected, "{words:?}: {}", text(&out.stderr));
    }
}

#[test]
fn a_ci_gets_tests_a_summary_and_annotations() {
    let dir = tempfile::tempdir().unwrap();
    let folder = store(&dir.path().join("a"), "stale-reuse/fires");
    let (junit, markdown) = (dir.path().join("j.xml"), dir.path().join("step_summary"));
    let out = Command::new(env!("CARGO_BIN_EXE_intact"))
        .args(["report", &folder, "--fail-on", "error", "--junit"])
        .arg(&junit)
        .arg("--report")
        .arg(&markdown)
        .env("GITHUB_ACTIONS", "true")
        .env("GITHUB_STEP_SUMMARY", &markdown)
        .env_remove("TF_BUILD")
        .output()
        .unwrap();
    assert_eq!(code(&out), 1);
    assert!(text(&out.stderr).contains("::error title=intact: stale-reuse::"));
    let junit = std::fs::read_to_string(junit).unwrap();
    assert!(junit.contains("failures=\"1\""), "{junit}");
    let markdown = std::fs::read_to_string(markdown).unwrap();
    assert!(markdown.contains("- **error** `stale-reuse`"), "{markdown}");
}

#[test]
fn a_file_that_cannot_be_written_is_an_error_that_names_the_option() {
    let dir = tempfile::tempdir().unwrap();
    let folder = store(&dir.path().join("a"), "stale-reuse/fires");
    let out = intact(&["report", &folder, "--junit", "/no/such/place/j.xml"]);
    assert_eq!(code(&out), 70);
    assert!(
        text(&out.stderr).contains("--junit"),
        "{}",
        text(&out.stderr)
    );
}
