//! Why connections are opened, and how many were needed.

use super::traffic_rules::{closed, exchange, facts, meets, of_rule, opened};
use intact_document::Severity;
use serde_json::{Value, json};

#[test]
fn an_end_long_ago_is_no_reason_where_a_connection_was_there_since() {
    let mut rows = Vec::new();
    // one is closed by the server while it is idle, and replaced by a client of its own per request
    for (id, at) in [(1, 0), (2, 1000), (3, 1025), (4, 1050), (5, 1075)] {
        rows.push(opened(id, at, Some("api.example")));
        rows.push(exchange(id, at + 11, at + 23, 1));
        if id == 1 {
            rows.push(closed(1, 600, "server", "idle", 1));
        }
    }
    let found = facts(&rows);
    let limit = of_rule(&found, "server-closes-early");
    let claims: Vec<String> = limit.iter().map(|one| one.claim.to_string()).collect();
    let one = "1 connection was opened because the server closed the last one while it was idle";
    assert_eq!(claims, [one]);
    // no request reused one of those that the server kept
    assert_eq!(limit[0].severity, Severity::Info);
    assert!(limit[0].fix.starts_with("Let the client reuse"));
    let others = of_rule(&found, "new-client-per-request");
    // of the three others, one was opened 2 ms after a response: it has the cause of its pool
    assert_eq!(
        *others[0].claim,
        *"3 connections were opened though the same client had an idle one"
    );
}

#[test]
fn an_end_that_is_recorded_late_explains_one_opening() {
    // the client looks at the first connection, which the server closed, at its own end only
    let mut rows = vec![opened(1, 0, Some("api.example")), exchange(1, 11, 23, 1)];
    for (id, at) in [(2, 1000), (3, 1100), (4, 1200), (5, 1300)] {
        rows.push(opened(id, at, Some("api.example")));
        rows.push(exchange(id, at + 11, at + 23, 1));
        rows.push(closed(id, at + 24, "client", "after-exchange", 1));
    }
    rows.push(closed(1, 600, "server", "idle", 1));
    let found = facts(&rows);
    let limit = &of_rule(&found, "server-closes-early")[0];
    let one = "1 connection was opened because the server closed the last one while it was idle";
    assert_eq!(*limit.claim, *one);
    let others = &of_rule(&found, "new-connection-per-request")[0];
    let three = "3 opened after the client had closed the last one right after a response";
    assert_eq!(*others.evidence, *three);
}

#[test]
fn a_client_that_gives_up_requests_one_after_the_other_needs_one_connection() {
    // each request is given up after 300 ms, and the close is seen 1 ms after the next opening
    let mut rows = vec![opened(0, 0, Some("api.example"))];
    for id in 0..5 {
        let next = 300 * (id + 1);
        rows.push(opened(id + 1, next, Some("api.example")));
        let mut late = exchange(id, next - 290, next + 1, 1);
        late["outcome"] = json!({"failed": "client-closed"});
        rows.extend([late, closed(id, next + 1, "client", "mid-exchange", 1)]);
    }
    rows.push(exchange(5, 1510, 1520, 1));
    let found = facts(&rows);
    assert_eq!(found.totals.counted.counts.connections.needed, 1);
    let one = &of_rule(&found, "abandoned-request")[0];
    assert_eq!(
        *one.claim,
        *"5 connections were opened after the client had closed the last one before its response was complete"
    );
    assert!(
        one.evidence.starts_with("it waited for up to 281 ms"),
        "{one:?}"
    );
    assert!(of_rule(&found, "new-connection-per-request").is_empty());
    assert!(!one.fix.contains("Session"), "{}", one.fix);
}

#[test]
fn the_first_close_explains_an_opening_like_the_later_ones() {
    // a client per request; each close is seen 1 ms after the next opening
    let mut rows = vec![opened(0, 0, Some("api.example"))];
    for id in 0..5 {
        let next = 100 * (id + 1);
        rows.push(exchange(id, next - 90, next - 1, 1));
        rows.push(opened(id + 1, next, Some("api.example")));
        rows.push(closed(id, next + 1, "client", "after-exchange", 1));
    }
    rows.push(exchange(5, 510, 520, 1));
    let found = facts(&rows);
    let one = &of_rule(&found, "new-connection-per-request")[0];
    assert_eq!(
        *one.evidence,
        *"5 opened after the client had closed the last one right after a response"
    );
}

#[test]
fn a_percentile_counts_what_the_client_gave_up() {
    let mut rows = vec![opened(0, 0, Some("api.example"))];
    for nth in 1..=300 {
        rows.push(exchange(0, 20 * nth, 20 * nth + 5, nth));
    }
    let complete = facts(&rows);
    assert!(meets(&complete, "max < 200ms") && meets(&complete, "p90 < 200ms"));
    rows.push(opened(1, 7_000, Some("api.example")));
    let mut late = exchange(1, 7_010, 7_410, 1);
    late["outcome"] = json!({"failed": "client-closed"});
    rows.push(late);
    let given_up = facts(&rows);
    assert!(!meets(&given_up, "max < 200ms") && !meets(&given_up, "mean < 200ms"));
    assert!(meets(&given_up, "p90 < 200ms"));
}

#[test]
fn a_server_that_closes_what_it_accepts_has_no_idle_limit() {
    let mut rows = Vec::new();
    for id in 0..5 {
        rows.push(opened(id, 100 * id, Some("api.example")));
        rows.push(closed(id, 100 * id + 11, "server", "unused", 0));
    }
    let found = facts(&rows);
    assert!(of_rule(&found, "server-closes-early").is_empty());
    let fix = &of_rule(&found, "new-connection-per-request")[0].fix;
    assert!(fix.starts_with("Find out why the server closes"), "{fix}");
}

/// A clock with steps of a millisecond, as in the logs of nginx and HAProxy.
#[test]
fn requests_of_one_connection_do_not_overlap_however_coarse_the_clock_is() {
    let mut rows = vec![opened(1, 0, Some("api.example"))];
    rows.extend((1..=40).map(|nth| {
        let mut one = exchange(1, 50, 50, nth);
        one["id"] = json!(1000 + nth);
        one
    }));
    rows.push(closed(1, 51, "client", "after-exchange", 40));
    for id in 2..12 {
        rows.push(opened(id, 100 * id, Some("api.example")));
        rows.push(exchange(id, 100 * id + 10, 100 * id + 11, 1));
        rows.push(closed(id, 100 * id + 12, "client", "after-exchange", 1));
    }
    let found = facts(&rows);
    assert_eq!(
        (
            found.totals.counted.counts.connections.opened,
            found.totals.counted.counts.connections.needed
        ),
        (11, 1)
    );
    assert!(!meets(&found, "avoidable == 0"));
    // those of two connections do
    rows.push(opened(20, 2000, Some("api.example")));
    rows.push(opened(21, 2000, Some("api.example")));
    rows.push(exchange(20, 2010, 2020, 1));
    let mut other = exchange(21, 2010, 2011, 1);
    other["id"] = json!(9);
    rows.push(other);
    assert_eq!(facts(&rows).totals.counted.counts.connections.needed, 2);
}

#[test]
fn connections_that_carry_nothing_are_no_fault_of_the_requests() {
    let mut rows = vec![opened(1, 0, Some("api.example"))];
    for nth in 1..=4 {
        let at = 100 * nth;
        rows.push(exchange(1, at, at + 10, nth));
        rows.push(opened(10 + nth, at + 20, Some("api.example")));
        rows.push(closed(10 + nth, at + 40, "client", "unused", 0));
    }
    let found = of_rule(&facts(&rows), "new-connection-per-request");
    assert_eq!(
        *found[0].claim,
        *"5 connections for 4 requests, 1 needed; 75 % of the requests reused one"
    );
    assert_eq!(*found[0].evidence, *"4 opened and closed without a request");
    assert!(found[0].fix.contains("health check"), "{}", found[0].fix);
}

/// An HTTP/2 connection whose setup takes 10 ms.
fn opened_h2(id: u64, at: u64) -> Value {
    let mut row = opened(id, at, Some("api.example"));
    row["protocol"] = json!("2");
    row
}

/// Four callers that share a client of HTTP/2, and open a connection each while there is none; the
/// client keeps the first.
#[test]
fn callers_that_wait_for_one_connection_open_one_each_for_its_reason() {
    let callers = |first: u64, at: u64| {
        let opened = (first..first + 4).map(move |id| opened_h2(id, at));
        let spare =
            (first + 1..first + 4).map(move |id| closed(id, at + 11, "client", "unused", 0));
        opened.chain(spare)
    };
    let mut rows: Vec<Value> = callers(1, 0).collect();
    for nth in 1..=9 {
        rows.push(exchange(1, 20 * nth, 20 * nth + 10, nth));
    }
    let first = of_rule(&facts(&rows), "h2-not-multiplexed");
    assert_eq!(
        *first[0].claim,
        *"3 connections were opened while the first one was still being set up"
    );
    assert!(first[0].fix.starts_with("Make one request"), "{first:?}");

    // the server ends the first at its limit: the four that replace it have that reason
    let mut last = exchange(1, 200, 210, 10);
    last["close_sent_by"] = json!("server");
    rows.push(last);
    rows.extend(callers(11, 211));
    rows.push(exchange(11, 230, 240, 1));
    let found = facts(&rows);
    let limit = of_rule(&found, "server-closes-early");
    assert_eq!(
        *limit[0].claim,
        *"4 connections were opened because the server ended the last one, as it had announced"
    );
    let others = of_rule(&found, "h2-not-multiplexed");
    assert_eq!(*others[0].claim, *first[0].claim);

    // one that was ready had free streams
    for id in [21, 22] {
        rows.push(opened_h2(id, 300));
        rows.push(exchange(id, 311, 320, 1));
    }
    let found = of_rule(&facts(&rows), "h2-not-multiplexed");
    let claims: Vec<String> = found.iter().map(|one| one.claim.to_string()).collect();
    let free = "2 connections were opened though an HTTP/2 connection had free streams";
    assert!(claims.iter().any(|claim| claim == free), "{claims:?}");
}
