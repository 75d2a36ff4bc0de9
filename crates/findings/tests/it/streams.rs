//! Why clients of HTTP/2 open several connections: a GOAWAY after a number of requests, a race.

use super::traffic_rules::{closed, exchange, facts, of_rule, opened};
use intact_document::Severity;
use serde_json::{Value, json};

/// Bursts of 8 streams on connections that take 5 each: the server refuses the rest, which the
/// client repeats on the next one.
fn bursts(connections: u64) -> Vec<Value> {
    let mut rows = Vec::new();
    for id in 0..connections {
        let at = id * 100;
        let mut one = opened(id, at, Some("api.example"));
        one["protocol"] = json!("2");
        rows.push(one);
        // refused streams end before those that are served
        for ordinal in [6, 7, 8, 1, 2, 3, 4, 5] {
            let is_refused = ordinal > 5;
            let end = if is_refused { at + 12 } else { at + 60 };
            let mut one = exchange(id, at + 10, end, ordinal);
            one["reuse"] = json!("fresh");
            if is_refused {
                one["outcome"] = json!({"failed": "refused-stream"});
                one["close_announced_at"] = json!((at + 12) * 1_000_000);
            }
            rows.push(one);
        }
        let mut end = closed(id, at + 61, "server", "after-exchange", 5);
        (end["how"], end["announced_by"]) = (json!("goaway"), json!("server"));
        rows.push(end);
    }
    rows
}

#[test]
fn a_goaway_after_a_number_of_streams_is_a_request_limit() {
    let facts = facts(&bursts(7));
    assert!(of_rule(&facts, "connection-close-sent").is_empty());
    let found = of_rule(&facts, "server-closes-early");
    let [limit] = &found[..] else {
        panic!("{found:#?}");
    };
    assert_eq!(limit.severity, Severity::Warning);
    let claim = limit.claim.to_string();
    assert!(claim.contains("6 connections were opened because the server ends connections after a number of requests"), "{claim}");
    let evidence = limit.evidence.to_string();
    assert!(
        evidence.contains("it announced the end after 5 requests"),
        "{evidence}"
    );
    assert!(limit.fix.contains("request limit"), "{}", limit.fix);
}

/// Calls of HTTP/2, each on a connection of its own, and the close of each.
fn calls(pause: u64, close: impl Fn(u64, u64) -> Value) -> Vec<Value> {
    let mut rows = Vec::new();
    for id in 0..8 {
        let at = id * pause;
        let mut one = opened(id, at, Some("api.example"));
        one["protocol"] = json!("2");
        rows.extend([one, exchange(id, at, at + 20, 1), close(id, at + 20)]);
    }
    rows
}

#[test]
fn who_closes_first_after_a_goaway_of_the_client_makes_no_difference() {
    let rows = calls(25, |id, at| {
        let by = if id % 2 == 0 { "server" } else { "client" };
        let mut end = closed(id, at + 6, by, "after-exchange", 1);
        (end["how"], end["announced_by"]) = (json!("close-notify"), json!("client"));
        end
    });
    let facts = facts(&rows);
    assert!(of_rule(&facts, "close-announced-not-kept").is_empty());
    let found = of_rule(&facts, "new-connection-per-request");
    assert_eq!(found.len(), 1, "{:#?}", facts.findings);
}

#[test]
fn a_goaway_long_after_the_response_is_an_idle_limit() {
    let rows = calls(600, |id, at| {
        // one client closes before its observer has seen the GOAWAY
        let by = if id == 3 { "client" } else { "server" };
        let mut end = closed(id, at + 300, by, "after-exchange", 1);
        (end["how"], end["announced_by"]) = (json!("goaway"), json!("server"));
        end
    });
    let facts = facts(&rows);
    assert!(of_rule(&facts, "connection-close-sent").is_empty());
    let found = of_rule(&facts, "server-closes-early");
    let [limit] = &found[..] else {
        panic!("{:#?}", facts.findings);
    };
    assert!(limit.claim.contains("idle"), "{}", limit.claim);
    assert!(limit.evidence.contains("300 ms"), "{}", limit.evidence);
}

#[test]
fn a_client_may_know_of_a_goaway_before_the_observer() {
    // each next connection is opened 1 ms before the end of the last one was recorded
    let mut rows = Vec::new();
    for id in 0..6 {
        let at = id * 99;
        let mut one = opened(id, at, Some("api.example"));
        one["protocol"] = json!("2");
        rows.push(one);
        let carried = (0..5).map(|nth| exchange(id, at + nth * 18, at + nth * 18 + 15, nth + 1));
        rows.extend(carried);
        let mut end = closed(id, at + 100, "server", "after-exchange", 5);
        (end["how"], end["announced_by"]) = (json!("goaway"), json!("server"));
        rows.push(end);
    }
    let facts = facts(&rows);
    assert!(of_rule(&facts, "h2-not-multiplexed").is_empty());
    assert_eq!(of_rule(&facts, "server-closes-early").len(), 1);
}

#[test]
fn connections_that_race_for_the_first_streams_are_not_multiplexed() {
    // the unused ones end, and are recorded, before the first request
    let mut rows = Vec::new();
    for id in 1..8 {
        let mut spare = opened(id, id, Some("api.example"));
        spare["protocol"] = Value::Null;
        rows.extend([spare, closed(id, 21, "client", "unused", 0)]);
    }
    let mut used = opened(0, 3, Some("api.example"));
    used["protocol"] = json!("2");
    rows.push(used);
    rows.extend((1..9).map(|ordinal| exchange(0, 15, 60, ordinal)));
    let facts = facts(&rows);
    let found = of_rule(&facts, "h2-not-multiplexed");
    let [finding] = &found[..] else {
        panic!("{:#?}", facts.findings);
    };
    let claim = finding.claim.to_string();
    assert!(
        claim.starts_with("7 connections were opened while the first one"),
        "{claim}"
    );
}
