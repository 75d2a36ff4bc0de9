//! Clients that close idle connections: by a limit of time, or because the pool is full.

use super::traffic_rules::{closed, exchange, facts, of_rule, opened};
use intact_document::Severity;
use intact_traffic::ObservedFacts;
use serde_json::{Value, json};

const HOSTS: u64 = 12;
const STEP: u64 = 100;

/// A connection per call of 12 hosts in turn, each closed when it was idle for `idle` calls; the
/// close is this number of ms before the next opening.
fn calls(idle: u64, before: u64) -> ObservedFacts {
    let mut rows: Vec<(u64, Value)> = Vec::new();
    for call in 0..4 * HOSTS {
        let (at, host) = (call * STEP, format!("tenant-{}.example", call % HOSTS));
        rows.push((at, opened(call, at, Some(&host))));
        rows.push((at + 20, exchange(call, at, at + 20, 1)));
        let end = at + idle * STEP - before;
        rows.push((end, closed(call, end, "client", "idle", 1)));
    }
    rows.sort_by_key(|(at, _)| *at);
    let rows: Vec<Value> = rows.into_iter().map(|(_, row)| row).collect();
    facts(&rows)
}

#[test]
fn a_pool_for_too_few_destinations_is_not_an_idle_limit() {
    for before in [0, 2] {
        let facts = calls(10, before);
        let found = of_rule(&facts, "pool-too-small");
        assert_eq!(found.len(), HOSTS as usize, "{:#?}", facts.findings);
        assert!(found.iter().all(|one| one.severity == Severity::Warning));
        assert!(
            found[0].fix.contains("pool_connections"),
            "{}",
            found[0].fix
        );
        assert!(of_rule(&facts, "new-connection-per-request").is_empty());
    }
}

#[test]
fn an_idle_limit_is_no_warning_unless_the_server_is_known_to_keep_for_longer() {
    // closed between two openings
    let facts = calls(10, 40);
    assert!(of_rule(&facts, "pool-too-small").is_empty());
    let found = of_rule(&facts, "new-connection-per-request");
    assert_eq!(found.len(), HOSTS as usize);
    assert!(found.iter().all(|one| one.severity == Severity::Info));
    assert!(
        found[0]
            .claim
            .to_string()
            .contains("3 connections were opened after the client"),
        "{}",
        found[0].claim
    );
    // what is not known is no number
    let avoidable = &facts.traffic.avoidable;
    assert_eq!((avoidable.low(), avoidable.high()), (0.0, 36.0));
}

#[test]
fn a_client_that_ends_with_all_its_connections_has_no_full_pool() {
    let mut rows = Vec::new();
    for job in 0..5 {
        let start = job * 1000;
        for (nth, host) in ["a.example", "b.example", "c.example"]
            .into_iter()
            .enumerate()
        {
            let (id, at) = (job * 3 + nth as u64, start + nth as u64 * 300);
            rows.push(opened(id, at, Some(host)));
            rows.push(exchange(id, at, at + 290, 1));
        }
        for nth in 0..3 {
            let moment = if nth == 2 { "after-exchange" } else { "idle" };
            rows.push(closed(job * 3 + nth, start + 998, "client", moment, 1));
        }
    }
    let facts = facts(&rows);
    assert!(of_rule(&facts, "pool-too-small").is_empty());
    assert_eq!(of_rule(&facts, "new-connection-per-request").len(), 3);
}

#[test]
fn a_client_that_gives_up_opens_again_because_responses_are_late() {
    // the server ends its side, and with it the record, after all of them
    let mut rows: Vec<Value> = (0..6)
        .map(|id| opened(id, id * 100, Some("api.example")))
        .collect();
    for id in 0..6 {
        let end = id * 100 + 95;
        let mut one = exchange(id, id * 100, end, 1);
        one["outcome"] = json!({"failed": "client-closed"});
        rows.push(one);
        rows.push(closed(id, end, "client", "mid-exchange", 1));
    }
    let found = of_rule(&facts(&rows), "abandoned-request");
    let [finding] = &found[..] else {
        panic!("{found:#?}");
    };
    assert!(finding.claim.starts_with("5 connections were opened"));
}
