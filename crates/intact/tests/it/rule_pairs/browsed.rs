//! NetLogs of Chromium, which asks a server for each row.
//!
//! Chromium has one pool, reads each response and keeps what the server keeps. So it cannot show
//! most rules about clients.

use super::field::Load;
use super::traffic::words;
use super::{Field, Kind, Naming, Producer};
use crate::peers::program;
use serde_json::Value;

/// The rows of `browsed.py`.
const ROWS: [&str; 16] = [
    "closed-before-response",
    "broken-response",
    "abandoned-request",
    "connection-close-sent",
    "server-closes-early",
    "retried-request",
    "idle-timeout-race",
    "slower-when-reused",
    "first-request-costs-more",
    "new-connection-per-request",
    "cold-pool",
    "waiting-for-pool",
    "tls-never-resumed",
    "old-tls",
    "h2-stream-limit",
    "lost-in-drain",
];

const ONE_POOL: &str = "Chromium has one pool, whose size no page reaches";
const NO_TIME: &str = "the log shows the end of an idle connection when it is used next";

const LOAD: Load = Load {
    ports: 4000,
    openings: 0,
};

fn netlog(field: &Field, kind: Kind, rules: &[&str], gates: &[&str]) -> Value {
    let file = field.path("run.netlog");
    let script = field.path("browsed.py");
    let words_of_run = ["python3", &script, &file, kind.word()];
    let all = words_of_run.iter().chain(rules);
    let all: Vec<String> = all.map(|&word| word.to_owned()).collect();
    field.record(LOAD, &all);
    field.document(LOAD, &words(field, "audit", &[&file], gates))
}

#[test]
fn rules_of_netlogs() {
    let test = "rule_pairs::browsed::rules_of_netlogs";
    if program("chromium", test).is_none() {
        return;
    }
    Producer {
        test,
        rows: &ROWS,
        sound: &["server-closes-early"],
        naming: Naming::Each,
        left_out: &[
            (
                "dead-connection-reused",
                "a cancelled request counts as one without a response",
            ),
            ("stale-reuse", NO_TIME),
            ("close-announced-not-kept", NO_TIME),
            ("pool-too-small", ONE_POOL),
            ("new-client-per-request", ONE_POOL),
            ("leaked-connections", ONE_POOL),
            ("ports-running-out", ONE_POOL),
            ("h2-not-multiplexed", ONE_POOL),
        ],
        document: netlog,
    }
    .check();
}
