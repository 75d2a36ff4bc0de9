//! Pools: who can share connections, and the one cause of what was opened in each.

use super::traffic_rules::{exchange, of_rule};
use intact_ledger::{Evidence, Producer, Row, Run, Sink, Vantage};
use intact_traffic::{ObservedFacts, TrafficAnalysis};
use serde_json::{Value, json};

const US: u64 = 1_000;

/// A connection of process 7 to `peer` that is open after 100 us; times in microseconds.
pub(crate) fn opened(id: u64, at: u64, peer: &str, host: &str) -> Value {
    json!({
        "event": "opened", "id": id, "at": at * US, "peer": peer, "dialled": "address",
        "origin": {"scheme": "http", "host": host, "port": 8080},
        "owner": {"pid": 7, "command": "shop"}, "protocol": "1.1",
        "setup": {"connect": [at * US, (at + 100) * US]},
    })
}

/// A request that is sent at once.
pub(crate) fn sent(id: u64, from: u64, to: u64, ordinal: u64) -> Value {
    let mut one = exchange(id, 0, 0, ordinal);
    (one["at"], one["end"]) = (json!(from * US), json!(to * US));
    one["spans"] = json!({"wait": [(from + 100) * US, to * US]});
    one
}

pub(crate) fn closed(id: u64, at: u64, exchanges: u64) -> Value {
    json!({
        "event": "closed", "connection": id, "at": at * US, "by": "client", "how": "fin",
        "moment": "after-exchange", "exchanges": exchanges, "bytes": {"sent": 1, "received": 1},
    })
}

pub(crate) fn facts(rows: &[Value]) -> ObservedFacts {
    let started = "2026-01-01T00:00:00Z".parse().unwrap();
    let run = Run::new(Producer::Watch, "0", Vantage::Client, started, 1, &[])
        .with_evidence(Evidence::ALL);
    let mut observed = TrafficAnalysis::new(&run);
    for row in rows {
        let row: Row = serde_json::from_value(row.clone()).unwrap();
        observed.record(row.as_event());
    }
    observed.facts()
}

/// Opened, needed and avoidable connections; the rules with a warning.
pub(crate) fn outcome(rows: &[Value]) -> (f64, f64, f64, Vec<&'static str>) {
    let facts = facts(rows);
    let value = |reading: &intact_reading::Reading| reading.value().unwrap();
    let connections = &facts.traffic.connections;
    let warned = facts.findings.iter();
    let warned = warned.filter(|one| one.severity > intact_document::Severity::Info);
    (
        value(&connections.opened),
        value(&connections.needed),
        value(&facts.traffic.avoidable),
        warned.map(|one| one.rule).collect(),
    )
}

pub(crate) const SERVER: &str = "127.0.0.1:8080";

/// A client per call; each closes 39 us before the next one opens its connection, and the rows of
/// the ends come `late` rows later.
pub(crate) fn calls(late: usize) -> Vec<Value> {
    let mut rows: Vec<Value> = Vec::new();
    let mut ends: Vec<Value> = Vec::new();
    for id in 0..20 {
        let at = id * 2_000;
        rows.push(opened(id, at, SERVER, "api.example"));
        rows.push(sent(id, at, at + 1_500, 1));
        ends.push(closed(id, at + 1_961, 1));
        if ends.len() > late {
            rows.push(ends.remove(0));
        }
    }
    rows.extend(ends);
    rows
}

#[test]
fn the_order_of_rows_decides_no_cause() {
    let expected = (20.0, 1.0, 19.0, vec!["new-connection-per-request"]);
    for late in 0..4 {
        assert_eq!(outcome(&calls(late)), expected, "{late}");
    }
}

#[test]
fn what_a_fast_program_keeps_to_its_end_is_not_closed_after_use() {
    let calls = |end: &dyn Fn(u64) -> u64| {
        let mut rows: Vec<Value> = Vec::new();
        for id in 0..12 {
            let at = id * 900;
            rows.push(opened(id, at, SERVER, "api.example"));
            rows.push(sent(id, at, at + 700, 1));
        }
        rows.extend((0..12).map(|id| closed(id, end(id), 1)));
        outcome(&rows)
    };
    let found = |rule| (12.0, 1.0, 11.0, vec![rule]);
    let all_at_the_end = calls(&|id| 11_000 + id);
    assert_eq!(all_at_the_end, found("new-client-per-request"));
    let each_late = calls(&|id| id * 900 + 1_700);
    assert_eq!(each_late, found("new-connection-per-request"));
}

#[test]
fn requests_name_a_destination_and_the_dialled_address_decides_it() {
    // a balancer in front of five servers, which has one connection to each
    let mut rows = Vec::new();
    for id in 0..5 {
        let peer = format!("10.0.0.{id}:8080");
        rows.push(opened(id, id * 1_000, &peer, "shop.example"));
        for nth in 1..10 {
            let at = nth * 50_000 + id * 10_000;
            rows.push(sent(id, at, at + 2_000, nth));
        }
    }
    assert_eq!(outcome(&rows), (5.0, 5.0, 0.0, vec![]));
    // a proxy that opens a connection for each of the tenants of one server
    let mut rows = Vec::new();
    for id in 0..40 {
        let (at, host) = (id * 10_000, format!("tenant-{id}.example"));
        rows.push(opened(id, at, SERVER, &host));
        rows.push(sent(id, at, at + 2_000, 1));
        rows.push(closed(id, at + 2_100, 1));
    }
    let (opened, needed, avoidable, warned) = outcome(&rows);
    assert_eq!((opened, needed, avoidable), (40.0, 1.0, 39.0));
    assert_eq!(warned, ["new-connection-per-request"]);
    let facts = facts(&rows);
    assert_eq!(facts.destinations[0].origin, "http://127.0.0.1:8080");
    assert!(facts.destinations[0].is_called("http://tenant-3.example:8080"));
}

#[test]
fn an_address_of_ipv6_has_one_pair_of_brackets() {
    let rows = [
        opened(0, 0, "[2001:db8::1]:8080", "a.example"),
        sent(0, 0, 2_000, 1),
        opened(1, 10_000, "[2001:db8::1]:8080", "b.example"),
        sent(1, 10_000, 12_000, 1),
    ];
    let facts = facts(&rows);
    let names: Vec<&str> = facts.destinations.iter().map(|one| &*one.origin).collect();
    assert_eq!(names, ["http://[2001:db8::1]:8080"]);
}

#[test]
fn the_ports_of_a_client_are_no_servers() {
    // a server's record of a client that makes a connection for every two of its calls
    let started = "2026-01-01T00:00:00Z".parse().unwrap();
    let run = Run::new(Producer::Audit, "0", Vantage::Server, started, 1, &[]);
    let mut observed = TrafficAnalysis::new(&run.with_evidence(Evidence::ALL));
    for id in 0..10 {
        let (at, peer) = (id * 10_000, format!("192.0.2.7:{}", 40_000 + id));
        let mut row = opened(id, at, &peer, "shop.example");
        for key in ["dialled", "owner"] {
            row.as_object_mut().unwrap().remove(key);
        }
        let both = [
            sent(id, at, at + 2_000, 1),
            sent(id, at + 4_000, at + 15_000, 2),
        ];
        for row in [row]
            .into_iter()
            .chain(both)
            .chain([closed(id, at + 15_100, 2)])
        {
            let row: Row = serde_json::from_value(row).unwrap();
            observed.record(row.as_event());
        }
    }
    let found = of_rule(&observed.facts(), "new-connection-per-request");
    let evidence = found[0].evidence.to_string();
    assert!(
        evidence.starts_with("8 opened after the client"),
        "{evidence}"
    );
}

#[test]
fn each_server_of_a_name_needs_a_connection_if_its_client_keeps_one_to_each() {
    let rows = |keeps: bool| {
        let mut rows = Vec::new();
        for nth in 0..40 {
            let (server, at) = (nth % 4, nth * 10_000);
            let id = if keeps { server } else { nth };
            if id == nth {
                let peer = format!("10.0.0.{server}:8080");
                let mut one = opened(id, at, &peer, "db.example");
                one["dialled"] = json!({"name": "db.example"});
                rows.push(one);
            }
            rows.push(sent(
                id,
                at,
                at + 2_000,
                if keeps { nth / 4 + 1 } else { 1 },
            ));
            if !keeps {
                rows.push(closed(id, at + 2_100, 1));
            }
        }
        rows
    };
    assert_eq!(outcome(&rows(true)), (4.0, 4.0, 0.0, vec![]));
    // a client per call that gets another address each time needs one connection
    let (opened, needed, avoidable, _) = outcome(&rows(false));
    assert_eq!((opened, needed, avoidable), (40.0, 1.0, 39.0));
}

#[test]
fn a_connection_in_the_hand_of_a_thread_is_not_idle() {
    // eight threads share a pool; each has its connection for 30 ms before it writes
    let mut rows = Vec::new();
    for id in 0..8 {
        rows.push(opened(id, id * 12_000, SERVER, "api.example"));
        for nth in 1..10 {
            let at = id * 12_000 + nth * 40_000;
            rows.push(sent(id, at, at + 5_000, nth));
        }
    }
    assert_eq!(outcome(&rows), (8.0, 8.0, 0.0, vec![]));
}

#[test]
fn a_few_connections_that_no_request_took_are_a_habit_and_many_are_not() {
    let with_unused = |unused: u64| {
        let mut rows = Vec::new();
        for id in 0..8 {
            rows.push(opened(id, id * 1_000, SERVER, "api.example"));
            rows.push(sent(id, id * 1_000, 30_000, 1));
            rows.push(sent(id, 40_000 + id * 1_000, 42_000 + id * 1_000, 2));
        }
        for id in 8..8 + unused {
            rows.push(opened(id, 20_000, SERVER, "api.example"));
            let mut end = closed(id, 60_000, 0);
            end["moment"] = json!("unused");
            rows.push(end);
        }
        outcome(&rows)
    };
    assert_eq!(with_unused(2), (10.0, 10.0, 0.0, vec![]));
    let rule = vec!["new-connection-per-request"];
    assert_eq!(with_unused(6), (14.0, 8.0, 6.0, rule));
}

#[test]
fn a_connection_whose_request_got_a_free_one_during_its_setup_is_no_waste() {
    // each of four is busy when four more are opened, 1 ms before their requests get the old ones
    let rows = |overtaken: bool| {
        let mut rows = Vec::new();
        let again = if overtaken { 30_100 } else { 90_000 };
        for id in 0..4 {
            rows.push(opened(id, id * 1_000, SERVER, "api.example"));
            rows.push(sent(id, id * 1_000, 30_000, 1));
            rows.push(sent(id, again, again + 2_000, 2));
        }
        for id in 4..8 {
            rows.push(opened(id, 29_990, SERVER, "api.example"));
            let mut end = closed(id, 200_000, 0);
            end["moment"] = json!("unused");
            rows.push(end);
        }
        outcome(&rows)
    };
    assert_eq!(rows(true), (8.0, 8.0, 0.0, vec![]));
    let rule = vec!["new-connection-per-request"];
    assert_eq!(rows(false), (8.0, 4.0, 4.0, rule));
}

#[test]
fn clients_that_a_program_without_threads_uses_in_turn_are_avoidable() {
    let mut rows = Vec::new();
    for nth in 0..48 {
        let (id, at) = (nth % 12, nth * 4_000);
        if nth < 12 {
            rows.push(opened(id, at, SERVER, "api.example"));
        }
        rows.push(sent(id, at, at + 3_000, nth / 12 + 1));
    }
    let found = (12.0, 1.0, 11.0, vec!["new-client-per-request"]);
    assert_eq!(outcome(&rows), found);
}

#[test]
fn clients_that_follow_one_another_are_avoidable_however_soon_they_do() {
    let in_turn = |clients: u64, ends: &dyn Fn(u64) -> u64| {
        let mut rows = Vec::new();
        for id in 0..clients {
            let at = id * 25_000;
            rows.push(opened(id, at, SERVER, "api.example"));
            for nth in 0..7 {
                let at = at + nth * 3_500;
                rows.push(sent(id, at, at + 3_000, nth + 1));
            }
        }
        rows.extend((0..clients).map(|id| closed(id, ends(id), 7)));
        outcome(&rows)
    };
    let found = (4.0, 1.0, 3.0, vec!["new-client-per-request"]);
    assert_eq!(in_turn(4, &|id| 110_000 + id), found);
    // the end of the program, in which a busy machine takes its time between two closes
    let of_two = (2.0, 2.0, 0.0, vec![]);
    assert_eq!(in_turn(2, &|_| 60_000), of_two);
    assert_eq!(in_turn(2, &|id| 50_000 + id * 9_000), of_two);
}

#[test]
fn an_overlap_at_the_start_changes_no_verdict_of_clients_in_turn() {
    let mut rows = Vec::new();
    for nth in 0..60 {
        let id = nth % 6;
        // the first two begin together
        let at = nth * 40_000 - if nth == 1 { 39_000 } else { 0 };
        if nth < 6 {
            rows.push(opened(id, at, SERVER, "api.example"));
        }
        rows.push(sent(id, at, at + 6_000, nth / 6 + 1));
    }
    let (opened, needed, _, warned) = outcome(&rows);
    assert_eq!((opened, warned), (6.0, vec!["new-client-per-request"]));
    assert!(needed <= 3.0, "{needed}");
}

#[test]
fn two_connections_that_a_client_uses_in_turn_are_its_habit() {
    let mut rows = Vec::new();
    for nth in 0..20 {
        let (id, at) = (nth % 2, nth * 60_000);
        if nth < 2 {
            rows.push(opened(id, at, SERVER, "api.example"));
        }
        rows.push(sent(id, at, at + 3_000, nth / 2 + 1));
    }
    assert_eq!(outcome(&rows), (2.0, 2.0, 0.0, vec![]));
}

#[test]
fn large_responses_that_a_client_holds_unread_are_found() {
    let mut rows: Vec<Value> = Vec::new();
    for id in 0..12 {
        let at = id * 50_000;
        rows.push(opened(id, at, SERVER, "api.example"));
    }
    for id in 0..12 {
        let at = id * 50_000;
        // what fits in the sockets comes while the next request is sent
        let mut one = sent(id, at, at + 70_000, 1);
        (one["outcome"], one["status"]) = (json!({"failed": "client-closed"}), json!(200));
        one["body"] = json!({"announced": 20_000_000, "read": 4_000_000, "left_after": one["end"]});
        one["spans"]["wait"] = json!([(at + 100) * US, (at + 5_000) * US]);
        rows.push(one);
        let mut end = closed(id, 2_000_000, 1);
        (end["how"], end["moment"]) = (json!("rst"), json!("mid-exchange"));
        rows.push(end);
    }
    assert_eq!(outcome(&rows), (12.0, 1.0, 11.0, vec!["body-not-drained"]));
}

/// The row of a process.
fn of_process(mut row: Value, pid: u64) -> Value {
    row["owner"]["pid"] = json!(pid);
    row
}

#[test]
fn each_process_needs_a_connection_of_its_own() {
    let mut rows = vec![of_process(opened(0, 0, SERVER, "api.example"), 1)];
    rows.push(sent(0, 0, 3_000, 1));
    // the children of a process that has warmed up
    for child in 1..3 {
        let at = child * 100_000;
        rows.push(of_process(
            opened(child, at, SERVER, "api.example"),
            1 + child,
        ));
        for nth in 0..5 {
            let from = at + nth * 4_000;
            rows.push(sent(child, from, from + 3_000, nth + 1));
        }
    }
    for id in 0..3 {
        rows.push(closed(id, 900_000 + id, if id == 0 { 1 } else { 5 }));
    }
    assert_eq!(outcome(&rows), (3.0, 3.0, 0.0, vec![]));
    // processes one after the other could have been one
    for id in 1..3 {
        rows.retain(|row| row["connection"] != id || row["event"] != "closed");
        rows.push(closed(id, id * 100_000 + 40_000, 5));
    }
    let (opened, needed, ..) = outcome(&rows);
    assert_eq!((opened, needed), (3.0, 2.0));
}

/// Calls to three hosts in turn by a client each, some of which end together when they are
/// collected as garbage.
fn collected() -> Vec<Value> {
    let mut rows = Vec::new();
    for call in 0..30 {
        let at = call * 5_000 + call % 4 * 700;
        let peer = format!("10.0.0.{}:8080", call * 7 % 3);
        rows.push(opened(call, at, &peer, "api.example"));
        rows.push(sent(call, at, at + 2_000, 1));
        if call % 6 == 5 {
            rows.extend((call - 5..call).map(|id| closed(id, at + 2_500 + id, 1)));
        }
    }
    rows
}

#[test]
fn clients_for_several_destinations_have_one_cause() {
    let (_, _, _, warned) = outcome(&collected());
    assert_eq!(warned, ["new-client-per-request"; 3]);
}

#[test]
fn a_pool_of_destinations_is_full_although_openings_come_late() {
    // 6 origins in turn, of which the client keeps 4; up to 16 ms after it made room
    let mut rows = Vec::new();
    let mut at = 0;
    for call in 0..24 {
        let late = call * 5 % 7 * 2_300;
        at += 20_000 + call * 11 % 5 * 13_000;
        if call >= 4 {
            rows.push(closed(call - 4, at, 1));
        }
        let peer = format!("10.0.0.{}:8080", call % 6);
        rows.push(opened(call, at + late, &peer, "api.example"));
        rows.push(sent(call, at + late, at + late + 3_000, 1));
    }
    let (_, _, _, warned) = outcome(&rows);
    assert_eq!(warned, ["pool-too-small"; 6]);
}

#[test]
fn a_few_late_closes_are_no_idle_limit() {
    let mut rows = Vec::new();
    for id in 0..20 {
        let at = id * 300_000;
        rows.push(opened(id, at, SERVER, "api.example"));
        rows.push(sent(id, at, at + 2_000, 1));
        let is_late = id % 7 == 0;
        let mut end = closed(id, at + if is_late { 215_000 } else { 3_000 }, 1);
        if is_late {
            end["moment"] = json!("idle");
        }
        rows.push(end);
    }
    let found = (20.0, 1.0, 19.0, vec!["new-connection-per-request"]);
    assert_eq!(outcome(&rows), found);
}

#[test]
fn clients_in_turn_are_no_full_pool() {
    let mut rows = Vec::new();
    for id in 0..8 {
        let at = id * 10_000;
        rows.push(opened(id, at, SERVER, "api.example"));
        for nth in 1..4 {
            let from = at + (nth - 1) * 3_000;
            rows.push(sent(id, from, from + 2_000, nth));
        }
        rows.push(closed(id, at + 9_900, 3));
    }
    let rule = vec!["new-connection-per-request"];
    assert_eq!(outcome(&rows), (8.0, 1.0, 7.0, rule));
    let found = facts(&rows);
    let found = of_rule(&found, "new-connection-per-request");
    let said = found[0].evidence.to_string();
    assert!(said.contains("it closes each after 3 requests"), "{said}");
}

/// Bursts of ten requests through a pool that keeps four idle connections.
fn bursts(count: u64) -> Vec<Value> {
    let mut rows = Vec::new();
    let mut next = 10;
    let mut open: Vec<(u64, u64)> = (0..10).map(|id| (id, 0)).collect();
    for burst in 0..count {
        let at = burst * 400_000;
        for (id, carried) in &mut open {
            if *carried == 0 {
                rows.push(opened(*id, at, SERVER, "api.example"));
            }
            for turn in 0..3 {
                *carried += 1;
                let at = at + turn * 21_000;
                rows.push(sent(*id, at, at + 20_000 + *id, *carried));
            }
        }
        for (id, carried) in open.drain(4..) {
            rows.push(closed(id, at + 62_500 + id, carried));
        }
        open.extend((next..next + 6).map(|id| (id, 0)));
        next += 6;
    }
    rows
}

#[test]
fn a_pool_that_is_too_small_is_one_cause_with_all_connections() {
    let (opened, needed, avoidable, warned) = outcome(&bursts(5));
    assert_eq!((opened, needed, avoidable), (34.0, 10.0, 24.0));
    assert_eq!(warned, ["pool-too-small"]);
    let found = of_rule(&facts(&bursts(5)), "pool-too-small");
    assert!(
        found[0].claim.starts_with("24 connections"),
        "{}",
        found[0].claim
    );
}

#[test]
fn a_client_per_call_next_to_a_shared_one_is_no_full_pool() {
    let mut rows = vec![opened(0, 0, SERVER, "api.example")];
    for nth in 0..20 {
        let at = nth * 5_000;
        rows.push(sent(0, at, at + 3_000, nth + 1));
        rows.push(opened(nth + 1, at + 500, SERVER, "api.example"));
        rows.push(sent(nth + 1, at + 500, at + 3_800, 1));
        rows.push(closed(nth + 1, at + 3_900, 1));
    }
    let (_, needed, avoidable, warned) = outcome(&rows);
    assert_eq!((needed, avoidable), (2.0, 19.0));
    assert_eq!(warned, ["new-connection-per-request"]);
}

/// Four workers share a client, whose connection each gets back; three of ten calls have their own
/// client. Rows in the order of their times.
fn next_to_a_pool(calls: u64) -> Vec<Value> {
    let mut rows: Vec<(u64, Value)> = Vec::new();
    let mut carried = [0; 4];
    let mut free = [0, 2_600, 5_200, 7_800];
    for nth in 0..calls {
        let worker = (0..4).min_by_key(|worker| free[*worker]).unwrap();
        let at = free[worker];
        let takes = 6_000 + nth * 7_919 % 13 * 700;
        free[worker] += takes + 1_000;
        let is_own = nth * 31 % 10 < 3;
        let id = if is_own { 10 + nth } else { worker as u64 };
        let ordinal = if is_own { 1 } else { carried[worker] + 1 };
        if ordinal == 1 {
            rows.push((at, opened(id, at, SERVER, "api.example")));
        }
        rows.push((at + 1, sent(id, at, at + takes, ordinal)));
        if is_own {
            rows.push((at + takes + 500, closed(id, at + takes + 500, 1)));
        } else {
            carried[worker] += 1;
        }
    }
    rows.sort_by_key(|(at, _)| *at);
    rows.into_iter().map(|(_, row)| row).collect()
}

#[test]
fn a_client_now_and_then_next_to_a_pool_of_many_is_no_full_pool() {
    let (opened, needed, _, warned) = outcome(&next_to_a_pool(100));
    assert_eq!((opened, needed), (34.0, 4.0));
    assert_eq!(warned, ["new-connection-per-request"]);
}

#[test]
fn a_destination_too_many_for_the_pool_is_found_in_a_fast_loop() {
    // 12 origins in turn, of which the client keeps 8; a round takes 10 ms
    let mut rows = Vec::new();
    for call in 0..36 {
        let (at, peer) = (call * 800, format!("10.0.0.{}:8080", call % 12));
        rows.push(opened(call, at, &peer, "api.example"));
        rows.push(sent(call, at, at + 500, 1));
        if call >= 8 {
            rows.push(closed(call - 8, at + 700, 1));
        }
    }
    let (_, _, _, warned) = outcome(&rows);
    assert_eq!(warned, vec!["pool-too-small"; 12]);
}

#[test]
fn what_a_program_closes_at_its_end_shows_no_idle_limit() {
    let mut rows = vec![opened(0, 0, SERVER, "api.example")];
    for nth in 1..5 {
        rows.push(sent(0, nth * 1_500_000, nth * 1_500_000 + 2_000, nth));
    }
    let mut end = closed(0, 6_400_000, 4);
    end["moment"] = json!("idle");
    rows.push(end);
    rows.push(opened(1, 7_000_000, "10.0.0.9:8080", "other.example"));
    let with_more = facts(&rows);
    rows.pop();
    let alone = facts(&rows);
    assert_eq!(alone.findings, []);
    assert_eq!(with_more.findings, []);
}

/// Requests in turn, 20 ms apart, each on a connection of its own that one side ended `after` it.
fn ended(by: &str, after: u64) -> Vec<Value> {
    let mut rows = Vec::new();
    for id in 0..20 {
        let at = id * 20_000;
        rows.push(opened(id, at, SERVER, "api.example"));
        rows.push(sent(id, at, at + 1_500, 1));
        let mut end = closed(id, at + 1_500 + after, 1);
        end["by"] = json!(by);
        rows.push(end);
    }
    rows
}

#[test]
fn what_the_server_ends_is_needed_and_avoidable_by_the_server_alone() {
    let of_server = facts(&ended("server", 50));
    assert_eq!(of_server.traffic.avoidable.value(), Some(0.0));
    assert_eq!(of_server.traffic.avoidable_by_server.value(), Some(19.0));
    assert_eq!(of_server.traffic.connections.needed.value(), Some(20.0));
    let first = &of_server.verdict[0].statement;
    let words = "20 connections were opened where 1 would do if the server kept connections";
    assert!(first.contains(words), "{first}");
    // it costs the same time if the client ends them
    let of_client = facts(&ended("client", 50));
    assert_eq!(of_client.traffic.avoidable.value(), Some(19.0));
    assert_eq!(of_client.traffic.avoidable_by_server.value(), Some(0.0));
    assert_eq!(of_client.totals.wasted_ms, of_server.totals.wasted_ms);
    for (facts, rule) in [
        (of_server, "close-announced-not-kept"),
        (of_client, "new-connection-per-request"),
    ] {
        let found = of_rule(&facts, rule);
        assert_eq!(found.len(), 1, "{rule}: {:?}", facts.findings);
        assert_eq!(found[0].cost_ms, facts.totals.wasted_ms.value());
    }
}

/// The same ten seconds later, on other connections.
fn later(mut rows: Vec<Value>) -> Vec<Value> {
    let later = |nanos: &mut Value| *nanos = json!(nanos.as_u64().unwrap() + 10_000_000 * US);
    for row in &mut rows {
        let id = match row["event"] == "opened" {
            true => "id",
            false => "connection",
        };
        row[id] = json!(row[id].as_u64().unwrap() + 1_000);
        later(&mut row["at"]);
        row.get_mut("end").into_iter().for_each(later);
        for spans in ["setup", "spans"] {
            let spans = row.get_mut(spans).and_then(Value::as_object_mut);
            let spans = spans.into_iter().flat_map(|all| all.values_mut());
            let ends = spans.flat_map(|span| span.as_array_mut().unwrap());
            ends.for_each(later);
        }
    }
    rows
}

#[test]
fn the_size_that_a_pool_needs_is_without_what_the_server_ends() {
    let rows = [ended("server", 50), later(bursts(5))].concat();
    let facts = facts(&rows);
    assert_eq!(facts.traffic.avoidable_by_server.value(), Some(20.0));
    let found = of_rule(&facts, "pool-too-small");
    let evidence = "up to 10 requests at the same time";
    let said = &found[0].evidence;
    assert!(said.starts_with(evidence), "{said}");
}
