//! The ledgers of `intact serve`: rules about its clients.

use super::field::OF_RECORDING as LOAD;
use super::traffic::words;
use super::{Field, Kind, Naming, Producer};
use crate::peers::program;
use serde_json::Value;

/// The rows of `served.py`.
const ROWS: [&str; 20] = [
    "closed-before-response",
    "broken-response",
    "abandoned-request",
    "body-not-drained",
    "connection-close-sent",
    "close-announced-not-kept",
    "server-closes-early",
    "channel-per-call",
    "pool-too-small",
    "h2-not-multiplexed",
    "leaked-connections",
    "new-client-per-request",
    "new-connection-per-request",
    "idle-timeout-race",
    "waiting-for-pool",
    "ports-running-out",
    "tls-never-resumed",
    "old-tls",
    "slower-when-reused",
    "first-request-costs-more",
];

fn served(field: &Field, kind: Kind, rules: &[&str], gates: &[&str]) -> Value {
    let serving = ["sh", &field.path("served.sh"), env!("CARGO_BIN_EXE_intact")];
    let serving = serving.map(str::to_owned);
    let rows = field.rows_of("served.py", kind, rules);
    field.record(LOAD, &[&serving[..], &rows].concat());
    let ledgers = [1, 2, 3].map(|nth| field.path(&format!("ledger-{nth}")));
    let ledgers = ledgers.each_ref().map(String::as_str);
    field.document(LOAD, &words(field, "audit", &ledgers, gates))
}

#[test]
fn rules_of_a_server_about_its_clients() {
    let test = "rule_pairs::served::rules_of_a_server_about_its_clients";
    if program("curl", test).is_none() {
        return;
    }
    Producer {
        test,
        rows: &ROWS,
        sound: &["new-connection-per-request", "old-tls"],
        naming: Naming::Each,
        left_out: &[],
        document: served,
    }
    .check();
}
