//! `audit`: packets of the rows, recorded on loopback, HAR files of their requests, and the log of
//! an nginx that serves rows of its own.

use super::field::OF_RECORDING as LOAD;
use super::traffic::{SLOW, words};
use super::{Field, Kind, Naming, Producer, ROWS, SOUND};
use crate::peers::program;
use serde_json::Value;

/// Records the packets of the rows; the file.
fn record(field: &Field, kind: Kind, rules: &[&str]) -> String {
    let file = field.path("run.pcapng");
    let record = [
        "sh".to_owned(),
        field.path("capture.sh"),
        field.path(""),
        file.clone(),
    ];
    field.record(LOAD, &[&record[..], &field.rows(kind, rules)].concat());
    file
}

/// What `audit` makes of a file.
fn read(field: &Field, file: &str, options: &[&str]) -> Value {
    field.document(LOAD, &words(field, "audit", &[file], options))
}

fn capture(field: &Field, kind: Kind, rules: &[&str], options: &[&str]) -> Value {
    let file = record(field, kind, rules);
    let keys = field.path("keys.txt");
    let has_keys = std::fs::exists(&keys).unwrap();
    let keys: &[&str] = if has_keys { &["--keylog", &keys] } else { &[] };
    read(field, &file, &[keys, options].concat())
}

#[test]
fn rules_of_captures() {
    let test = "rule_pairs::audit::rules_of_captures";
    if program("dumpcap", test).is_none() {
        return;
    }
    Producer {
        test,
        rows: &ROWS,
        sound: &SOUND,
        naming: Naming::Each,
        left_out: &[SLOW],
        document: capture,
    }
    .check();
}

fn har(field: &Field, kind: Kind, rules: &[&str], gates: &[&str]) -> Value {
    let file = field.path("run.har");
    let words = words(field, "watch", &["--quiet", "--har", &file], &["--"]);
    field.document(LOAD, &[words, field.rows(kind, rules)].concat());
    read(field, &file, gates)
}

#[test]
fn rules_of_har_files() {
    let test = "rule_pairs::audit::rules_of_har_files";
    Producer {
        test,
        rows: &ROWS,
        sound: &SOUND,
        naming: Naming::Each,
        left_out: &[],
        document: har,
    }
    .check();
}

/// The rows of `logged.py`.
const LOGGED: [&str; 7] = [
    "new-connection-per-request",
    "waiting-for-pool",
    "ports-running-out",
    "tls-never-resumed",
    "old-tls",
    "slower-when-reused",
    "first-request-costs-more",
];

fn log(field: &Field, kind: Kind, rules: &[&str], gates: &[&str]) -> Value {
    let [with_server, logged] = ["with_server.sh", "logged.sh"].map(|name| field.path(name));
    let serving = ["sh", &with_server, "as-asked", "sh", &logged].map(str::to_owned);
    let rows = field.rows_of("logged.py", kind, rules);
    field.record(LOAD, &[&serving[..], &rows].concat());
    read(field, &field.path("access.log"), gates)
}

#[test]
fn rules_of_access_logs() {
    let test = "rule_pairs::audit::rules_of_access_logs";
    if program("nginx", test).is_none() {
        return;
    }
    Producer {
        test,
        rows: &LOGGED,
        sound: &["new-connection-per-request", "old-tls"],
        naming: Naming::Each,
        left_out: &[],
        document: log,
    }
    .check();
}
