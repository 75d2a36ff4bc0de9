//! Cases that one golden ledger for each rule does not hold: destinations under several names, and
//! findings about the fix of another.

use intact_document::requirement::Requirement;
use intact_document::{Facts, Finding, Severity};
use intact_ledger::{Evidence, Producer, Row, Run, Sink, Vantage};
use intact_traffic::{ObservedFacts, TrafficAnalysis};
use serde_json::{Value, json};

const MS: u64 = 1_000_000;

pub(super) fn facts(rows: &[Value]) -> ObservedFacts {
    facts_of(rows, &[])
}

fn facts_of(rows: &[Value], argv: &[&str]) -> ObservedFacts {
    let started = "2026-01-01T00:00:00Z".parse().unwrap();
    let argv: Vec<String> = argv.iter().map(|&word| word.to_owned()).collect();
    let mut run = Run::new(Producer::Watch, "0", Vantage::Client, started, 1, &argv)
        .with_evidence(Evidence::ALL);
    run.host.ephemeral_ports = Some((40_000, 40_009));
    let mut observed = TrafficAnalysis::new(&run);
    for row in rows {
        let row: Row = serde_json::from_value(row.clone()).unwrap();
        observed.record(row.as_event());
    }
    observed.facts()
}

/// A connection that opens in 10 ms; `host` is absent where it has not shown its origin.
pub(super) fn opened(id: u64, at: u64, host: Option<&str>) -> Value {
    json!({
        "event": "opened", "id": id, "at": at * MS, "peer": "127.0.0.1:8080",
        "origin": host.map(|host| json!({"scheme": "http", "host": host, "port": 8080})),
        "owner": {"pid": 7, "command": "shop"}, "protocol": host.map(|_| "1.1"),
        "setup": {"connect": [at * MS, (at + 10) * MS]},
    })
}

pub(super) fn exchange(id: u64, at: u64, end: u64, ordinal: u64) -> Value {
    let is_fresh = ordinal == 1;
    json!({
        "event": "exchange", "id": at, "connection": id, "at": at * MS, "end": end * MS,
        "ordinal": ordinal, "reuse": if is_fresh { "fresh" } else { "reused" }, "outcome": "ok",
        "spans": {"connect": is_fresh.then(|| [at * MS, (at + 10) * MS])},
    })
}

pub(super) fn closed(id: u64, at: u64, by: &str, moment: &str, exchanges: u64) -> Value {
    json!({
        "event": "closed", "connection": id, "at": at * MS, "by": by, "how": "fin",
        "moment": moment, "exchanges": exchanges, "bytes": {"sent": 1, "received": 1},
    })
}

pub(super) fn of_rule(facts: &ObservedFacts, rule: &str) -> Vec<Finding> {
    let found = facts.findings.iter().filter(|one| one.rule == rule);
    found.cloned().collect()
}

pub(super) fn meets(facts: &ObservedFacts, expression: &str) -> bool {
    let requirement: Requirement = expression.parse().unwrap();
    requirement.evaluate(facts).passed()
}

#[test]
fn localhost_and_its_address_are_one_destination() {
    let mut rows = Vec::new();
    for nth in 0..6 {
        let host = ["localhost", "127.0.0.1"][nth as usize % 2];
        rows.push(opened(nth, nth * 100, Some(host)));
        rows.push(exchange(nth, nth * 100, nth * 100 + 20, 1));
        rows.push(closed(nth, nth * 100 + 21, "client", "after-exchange", 1));
    }
    let facts = facts(&rows);
    let [one] = &facts.destinations[..] else {
        panic!("{:?}", facts.destinations)
    };
    assert_eq!(one.origin, "http://localhost:8080");
    assert_eq!(one.aliases, ["127.0.0.1:8080"]);
    assert_eq!(facts.totals.counted.counts.connections.needed, 1);
    for host in ["localhost:8080", "127.0.0.1:8080"] {
        assert!(
            meets(&facts, &format!("host={host}: connections == 6")),
            "{host}"
        );
    }
    // 6 of 10 ports within 60 s: one server, one finding
    assert_eq!(of_rule(&facts, "ports-running-out").len(), 1);
}

#[test]
fn connections_that_ended_unused_before_the_origin_showed_belong_to_it() {
    let mut rows = Vec::new();
    for nth in 0..3 {
        rows.push(opened(nth, nth, None));
        rows.push(closed(nth, nth + 50, "client", "unused", 0));
    }
    rows.push(opened(9, 100, Some("api.example")));
    rows.push(exchange(9, 100, 120, 1));
    let facts = facts(&rows);
    let names: Vec<&str> = facts
        .destinations
        .iter()
        .map(|one| one.origin.as_str())
        .collect();
    assert_eq!(names, ["http://api.example:8080"]);
    assert_eq!(
        facts.destinations[0]
            .figures
            .counted
            .counts
            .connections
            .opened,
        4
    );
}

#[test]
fn a_cost_is_a_part_of_the_time_of_requests_and_setups() {
    // three connections are opened ahead and never used: their setup is 30 ms, the only request
    // takes 15 ms
    let mut rows: Vec<Value> = (0..4)
        .map(|nth| opened(nth, 0, Some("api.example")))
        .collect();
    rows.push(exchange(0, 0, 15, 1));
    rows.extend((1..4).map(|nth| closed(nth, 90, "client", "unused", 0)));
    let facts = facts(&rows);
    assert_eq!(facts.totals.wasted_ms.value(), Some(30.0));
    // 30 ms of 15 ms and the 30 ms that no request waited for
    assert!((facts.totals.wasted_share.value().unwrap() - 30.0 / 45.0).abs() < 1e-9);
    let share: f64 = facts.findings.iter().filter_map(|one| one.cost_share).sum();
    assert!(share <= 1.0, "{share}");
}

#[test]
fn two_virtual_hosts_of_one_server_use_the_same_ports() {
    let mut rows = Vec::new();
    for nth in 0..8 {
        let host = ["a.example", "b.example"][nth as usize % 2];
        rows.push(opened(nth, nth * 200, Some(host)));
        rows.push(exchange(nth, nth * 200, nth * 200 + 20, 1));
        rows.push(closed(nth, nth * 200 + 21, "client", "after-exchange", 1));
    }
    let facts = facts(&rows);
    assert_eq!(facts.destinations.len(), 2);
    let found = of_rule(&facts, "ports-running-out");
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0]
            .claim
            .contains("337 new connections in 60 s, projected from 1.42 s"),
        "{}",
        found[0].claim
    );
    // it is about both
    assert_eq!(
        found[0].subjects(),
        "http://a.example:8080 and http://b.example:8080"
    );
    for origin in ["http://a.example:8080", "http://b.example:8080"] {
        let none = format!("origin={origin}: findings.ports-running-out == 0");
        assert!(!meets(&facts, &none), "{none}");
    }
}

#[test]
fn a_host_that_shares_the_ports_of_an_address_is_not_hidden_by_another_address() {
    // a.example is on the busiest address alone, and shares the second one with b.example
    let mut rows = Vec::new();
    for nth in 0..20 {
        let (host, address) = match nth % 4 {
            0 | 1 => ("a.example", "127.0.0.1:8080"),
            2 => ("a.example", "127.0.0.2:8080"),
            _ => ("b.example", "127.0.0.2:8080"),
        };
        let mut row = opened(nth, nth * 200, Some(host));
        row["peer"] = address.into();
        rows.push(row);
        rows.push(exchange(nth, nth * 200, nth * 200 + 20, 1));
        rows.push(closed(nth, nth * 200 + 21, "client", "after-exchange", 1));
    }
    let facts = facts(&rows);
    for host in ["a.example:8080", "b.example:8080"] {
        let none = format!("host={host}: findings.ports-running-out == 0");
        assert!(!meets(&facts, &none), "{none}");
    }
    let subjects: Vec<String> = of_rule(&facts, "ports-running-out")
        .iter()
        .map(Finding::subjects)
        .collect();
    assert_eq!(subjects, ["http://a.example:8080", "http://b.example:8080"]);
}

/// `lookups` of a name that two destinations have, and a request on a new connection to each in
/// turn.
fn looked_up(hosts: [&str; 2], ports: [u16; 2]) -> ObservedFacts {
    let mut rows = Vec::new();
    for nth in 0..10 {
        let (host, port) = (hosts[nth as usize % 2], ports[nth as usize % 2]);
        rows.push(json!({
            "event": "lookup", "name": "localhost", "span": [nth * 200 * MS, (nth * 200 + 1) * MS],
            "answer": {"Ok": ["127.0.0.1"]},
        }));
        let mut row = opened(nth, nth * 200 + 2, Some(host));
        row["origin"]["port"] = port.into();
        row["peer"] = format!("127.0.0.1:{port}").into();
        rows.push(row);
        rows.push(exchange(nth, nth * 200 + 2, nth * 200 + 20, 1));
        rows.push(closed(nth, nth * 200 + 21, "client", "after-exchange", 1));
    }
    facts(&rows)
}

#[test]
fn lookups_of_a_name_concern_each_destination_of_that_name() {
    let facts = looked_up(["localhost", "localhost"], [8080, 8081]);
    let found = of_rule(&facts, "lookup-per-request");
    assert_eq!(found.len(), 1, "{found:?}");
    for port in [8080, 8081] {
        let none = format!("origin=http://localhost:{port}: findings.lookup-per-request == 0");
        assert!(!meets(&facts, &none), "{none}");
    }
    // the name that was looked up is the second one of its destination
    let facts = looked_up(["127.0.0.1", "localhost"], [8080, 8080]);
    assert_eq!(facts.destinations.len(), 1);
    assert_eq!(of_rule(&facts, "lookup-per-request").len(), 1);
}

/// Lookups of these names with these answers, and requests on one connection after them.
fn after_lookups(lookups: &[(&str, Value)], requests: u64) -> ObservedFacts {
    let mut rows = Vec::new();
    for (nth, (name, answer)) in lookups.iter().enumerate() {
        let at = nth as u64;
        rows.push(json!({
            "event": "lookup", "name": name, "span": [at * MS, (at + 1) * MS], "answer": answer,
        }));
    }
    if requests > 0 {
        rows.push(opened(1, 1000, Some("api.example")));
    }
    for nth in 0..requests {
        rows.push(exchange(1, 1001 + nth * 100, 1050 + nth * 100, nth + 1));
    }
    facts(&rows)
}

#[test]
fn failed_lookups_stand_in_the_headline() {
    let (found, refused) = (json!({"Ok": ["127.0.0.1"]}), json!({"Err": "SERVFAIL"}));
    let missing = json!({"Err": "NXDOMAIN"});
    let one = |name, answer: &Value| (name, answer.clone());
    // once in a hundred, and the name is there at other times
    let mut lookups = vec![one("api.example", &found); 99];
    lookups.insert(50, one("api.example", &refused));
    let sporadic = after_lookups(&lookups, 20);
    let sentence = "1 of 100 lookups failed (SERVFAIL 1), and their names were found at other times. A request on a reused connection needs no lookup";
    assert_eq!(sporadic.verdict[0], sentence);
    assert!(!sporadic.has_evidence_of_no_gain());
    assert_eq!(sporadic.totals.lookups.errors["SERVFAIL"], 1);
    // as rare, of a name that is never there: a search list
    lookups[50] = one("api.example.local", &missing);
    let searched = after_lookups(&lookups, 20);
    assert!(
        !searched
            .verdict
            .sentences()
            .collect::<String>()
            .contains("lookup"),
        "{:?}",
        searched.verdict
    );
    let mut lookups = vec![one("api.example", &found), one("b.example", &missing)];
    lookups.push(one("c.example", &json!({"Err": "a word of its own"})));
    let failed = after_lookups(&lookups, 20);
    assert_eq!(
        failed.verdict[0],
        "2 of 3 lookups failed (NXDOMAIN 1, other 1: c.example and 1 other name)"
    );
    // what waited for them was not sent
    for metric in ["failed", "failed.lookup"] {
        assert!(!meets(&failed, &format!("{metric} == 0")), "{metric}");
        assert!(meets(&failed, &format!("{metric} >= 2")), "{metric}");
        assert!(meets(&searched, &format!("{metric} == 0")), "{metric}");
    }
    assert!(!meets(&failed, "failed < 0.1 %"));
    // whether it failed is not known
    assert_eq!(
        after_lookups(&[one("b.example", &json!(null))], 0).verdict[..],
        ["No connection was opened. What 1 lookup found was not seen"]
    );
    // nothing else happened
    assert_eq!(
        after_lookups(&[one("b.example", &missing)], 0).verdict[..],
        ["No connection could be opened: 1 lookup failed (NXDOMAIN 1: b.example)"]
    );
}

/// Connections that are opened every second for one request, and that the server closes after an
/// idle time. The client closes its own end only when it exits: until then the sockets are in
/// CLOSE_WAIT.
fn kept_in_close_wait(idle: u64, ends: impl Iterator<Item = u64>) -> ObservedFacts {
    let mut rows = Vec::new();
    for nth in 0..16 {
        rows.push(opened(nth, nth * 1_000, Some("api.example")));
        rows.push(exchange(nth, nth * 1_000, nth * 1_000 + 20, 1));
    }
    rows.extend(ends.map(|nth| closed(nth, nth * 1_000 + 20 + idle, "server", "idle", 1)));
    facts(&rows)
}

#[test]
fn a_connection_that_the_server_had_closed_was_idle_for_no_client() {
    let facts = kept_in_close_wait(500, 0..16);
    assert!(of_rule(&facts, "new-client-per-request").is_empty());
    let found = of_rule(&facts, "server-closes-early");
    assert_eq!(found.len(), 1, "{:?}", facts.findings);
    assert!(
        found[0].claim.starts_with("15 connections"),
        "{}",
        found[0].claim
    );
}

#[test]
fn a_connection_that_the_server_had_not_closed_yet_was_idle() {
    for backwards in [false, true] {
        let facts = if backwards {
            kept_in_close_wait(1_300, (0..16).rev())
        } else {
            kept_in_close_wait(1_300, 0..16)
        };
        let found = of_rule(&facts, "new-client-per-request");
        assert_eq!(found.len(), 1, "{:?}", facts.findings);
        assert!(
            found[0].claim.starts_with("15 connections"),
            "{}",
            found[0].claim
        );
    }
}

#[test]
fn connections_that_a_restart_closed_were_idle_for_no_client() {
    // five threads with a connection each; the server closes all at 1 s, and each thread notices
    // with its next request
    let mut rows = Vec::new();
    rows.extend((0..5).map(|id| opened(id, 0, Some("api.example"))));
    rows.extend((0..5).map(|id| exchange(id, 0, 15, 1)));
    let mut later = Vec::new();
    for id in 0..5 {
        let at = 2_000 + id * 10;
        let mut stale = exchange(id, at, at, 2);
        stale["outcome"] = json!({"failed": "stale"});
        rows.extend([stale, closed(id, 1_000, "server", "stale", 2)]);
        rows.push(opened(10 + id, at + 1, Some("api.example")));
        later.push(exchange(10 + id, at + 1, at + 100, 1));
    }
    rows.extend(later);
    let facts = facts(&rows);
    assert!(
        of_rule(&facts, "new-client-per-request").is_empty(),
        "{:?}",
        facts.findings
    );
    let stale = of_rule(&facts, "stale-reuse");
    assert_eq!(stale[0].cost_ms, Some(50.0), "{stale:?}");
}

/// Connections with these numbers of requests, which the server announces to end in the given
/// millisecond, and their successors.
fn drained(requests: &[u64], end: impl Fn(u64) -> u64) -> Vec<Finding> {
    let mut rows = Vec::new();
    let (mut ends, mut later) = (Vec::new(), Vec::new());
    for (id, &count) in (0..).zip(requests) {
        rows.push(opened(id, 0, Some("api.example")));
        for nth in 1..=count {
            let at = if nth == count { end(id) } else { 20 * nth };
            let mut one = exchange(id, at, at + 10, nth);
            if nth == count {
                one["close_sent_by"] = json!("server");
                ends.push((at + 10, id, one));
            } else {
                rows.push(one);
            }
        }
    }
    ends.sort_by_key(|(at, id, _)| (*at, *id));
    for (at, id, one) in ends {
        rows.push(one);
        rows.push(closed(
            id,
            at + 1,
            "server",
            "after-exchange",
            requests[id as usize],
        ));
        rows.push(opened(100 + id, at + 10, Some("api.example")));
        // busy when the next one is opened
        later.push(exchange(100 + id, at + 10, 60_000, 1));
    }
    rows.extend(later);
    of_rule(&facts(&rows), "server-closes-early")
}

#[test]
fn a_graceful_drain_is_no_request_limit() {
    let drain = drained(&[3, 9, 17, 40], |_| 5_000);
    assert_eq!(drain.len(), 1, "{drain:?}");
    assert_eq!(drain[0].severity, Severity::Info);
    assert!(
        drain[0].evidence.contains("a restart or a drain"),
        "{}",
        drain[0].evidence
    );
    assert!(drain[0].fix.starts_with("Nothing"), "{}", drain[0].fix);
    // the same number on each, at one age: either may be the limit
    let both = drained(&[10, 10, 10, 10], |_| 5_000);
    assert_eq!(both[0].severity, Severity::Info);
    let limit = drained(&[10, 10, 10, 10], |id| 200 + 15 * id);
    assert_eq!(limit[0].severity, Severity::Warning, "{limit:?}");
    assert!(limit[0].fix.contains("keepalive_requests"));
    // different moments are no drain
    let spread = drained(&[3, 9, 17, 40], |id| 5_000 + 3_000 * id);
    assert!(spread[0].fix.contains("keepalive_requests"), "{spread:?}");
}

#[test]
fn a_program_whose_handshakes_all_fail_passes_no_requirement() {
    let fails = |id: u64| {
        let mut row = opened(id, 10 * id, Some("api.example"));
        row["origin"]["scheme"] = json!("https");
        row["failed"] = json!({"kind": "certificate-unknown", "phase": "ssl"});
        row
    };
    let mut rows: Vec<Value> = (1..4).map(fails).collect();
    let alone = facts(&rows);
    assert!(!alone.any_success());
    for metric in ["avoidable", "failed", "warnings"] {
        assert!(!meets(&alone, &format!("{metric} == 0")), "{metric}");
    }
    // next to a destination that works
    rows.push(opened(9, 100, Some("other.example")));
    rows.push(exchange(9, 110, 120, 1));
    let mixed = facts(&rows);
    assert!(meets(
        &mixed,
        "origin=http://other.example:8080: avoidable == 0"
    ));
    assert!(!meets(
        &mixed,
        "origin=https://api.example:8080: avoidable == 0"
    ));
}

/// The severity of `new-connection-per-request` where the client closes after 4 s, and the server
/// announces its limit.
fn client_closes_idle(server_s: u64) -> Option<Severity> {
    let mut rows = Vec::new();
    for nth in 0..6 {
        let at = nth * 10_000;
        rows.push(opened(nth, at, Some("api.example")));
        let mut one = exchange(nth, at, at + 20, 1);
        one["terms"] = json!({"timeout_s": server_s});
        rows.push(one);
        rows.push(closed(nth, at + 4_020, "client", "idle", 1));
    }
    let found = of_rule(&facts(&rows), "new-connection-per-request");
    found.first().map(|one| one.severity)
}

#[test]
fn an_idle_limit_below_the_servers_is_no_warning() {
    // the server would have closed them too
    assert_eq!(client_closes_idle(5), None);
    assert_eq!(client_closes_idle(60), Some(Severity::Warning));
}

#[test]
fn renewed_connections_are_no_warning() {
    let mut rows = Vec::new();
    for id in 0..5 {
        let start = id * 1_000;
        rows.push(opened(id, start, Some("api.example")));
        rows.extend((1..=12).map(|nth| exchange(id, start + nth * 50, start + nth * 50 + 10, nth)));
        rows.push(closed(id, start + 611, "client", "after-exchange", 12));
    }
    let found = of_rule(&facts(&rows), "new-connection-per-request");
    assert_eq!(found[0].severity, Severity::Info);
    assert!(
        found[0].fix.starts_with("Nothing, if the client renews"),
        "{}",
        found[0].fix
    );
}

#[test]
fn a_restart_is_no_idle_timer() {
    // the server ends an idle connection after 300 ms, and others were reused after 2 s
    let mut rows = vec![
        opened(1, 0, Some("api.example")),
        opened(2, 0, Some("api.example")),
    ];
    for nth in 1..=4 {
        let at = nth * 2_000;
        rows.push(exchange(1, at, at + 20, nth));
    }
    rows.push(exchange(2, 8_000, 8_020, 1));
    rows.push(closed(2, 8_320, "server", "idle", 1));
    let facts = facts(&rows);
    assert!(
        of_rule(&facts, "idle-timeout-race").is_empty(),
        "{:?}",
        facts.findings
    );
}

/// Six connections, each ended by an announcement of this side, of a client with this command.
fn announced(by: &str, command: &str) -> Finding {
    let mut rows = Vec::new();
    for id in 0..6 {
        let mut one = opened(id, id * 100, Some("api.example"));
        one["owner"]["command"] = json!(command);
        rows.push(one);
        let mut one = exchange(id, id * 100, id * 100 + 20, 1);
        one["close_sent_by"] = json!(by);
        rows.push(one);
        rows.push(closed(id, id * 100 + 21, by, "after-exchange", 1));
    }
    of_rule(&facts(&rows), "connection-close-sent").remove(0)
}

#[test]
fn advice_names_the_side_and_the_runtime() {
    let node = announced("client", "node").fix;
    assert!(
        node.contains("Node: an http.Agent") && !node.contains("DisableKeepAlives"),
        "{node}"
    );
    let unknown = announced("client", "shop").fix;
    assert!(unknown.contains("a header set by hand"), "{unknown}");
    let server = announced("server", "node").fix;
    assert!(
        server.contains("keepalive_timeout") && !server.contains("Agent"),
        "{server}"
    );
}

/// A connection of which only the address is known, or the name that was looked up for it.
fn unshown(id: u64, at: u64, host: &str, port: u16) -> Value {
    let mut one = opened(id, at, None);
    one["origin"] = json!({"scheme": "tcp", "host": host, "port": port});
    one
}

#[test]
fn connections_of_unknown_protocol_belong_to_the_origin_of_their_address() {
    let origins = |facts: &ObservedFacts| {
        let all = facts.destinations.iter();
        all.map(|one| one.origin.clone()).collect::<Vec<_>>()
    };
    let mut rows = vec![opened(1, 0, Some("api.example")), exchange(1, 0, 20, 1)];
    // ended with bytes that were not read, still open, never established
    rows.push(unshown(2, 10, "127.0.0.1", 8080));
    let mut unread = closed(2, 50, "server", "idle", 0);
    (unread["exchanges"], unread["moment"]) = (Value::Null, Value::Null);
    rows.push(unread);
    rows.push(unshown(3, 60, "127.0.0.1", 8080));
    let mut failed = unshown(4, 70, "127.0.0.1", 8080);
    failed["failed"] = json!({"phase": "connect", "kind": "connect-timeout"});
    rows.push(failed);
    let all = facts(&rows);
    assert_eq!(origins(&all), ["http://api.example:8080"]);
    let connections = &all.destinations[0].figures.counted.counts.connections;
    assert_eq!(connections.opened, 3);
    assert_eq!(connections.failed.values().sum::<u64>(), 1);
    let caveat = all
        .caveats
        .iter()
        .find(|one| one.id == "assigned-by-address");
    assert!(
        caveat.unwrap().message.contains("as HTTP: 1."),
        "{caveat:?}"
    );

    // another protocol, another origin that shows later, a tunnel: its address is that of the proxy
    let mut redis = unshown(5, 80, "127.0.0.1", 8080);
    redis["protocol"] = json!("redis");
    let mut other = opened(3, 60, Some("b.example"));
    other["event"] = json!("revised");
    rows.extend([redis, other, unshown(6, 90, "c.example", 443)]);
    let all = facts(&rows);
    let expected = [
        "http://api.example:8080",
        "http://b.example:8080",
        "tcp://127.0.0.1:8080",
        "tcp://c.example:443",
    ];
    let mut got = origins(&all);
    got.sort();
    assert_eq!(got, expected);
}

#[test]
fn advice_for_a_server_that_names_itself_is_its_line_of_configuration() {
    let fix = |products: &[&str]| {
        let mut rows = Vec::new();
        for id in 0..6 {
            let mut one = opened(id, id * 100, Some("api.example"));
            if let Some(product) = products.get(id as usize) {
                one["server"] = json!(product);
            }
            rows.push(one);
            let mut one = exchange(id, id * 100, id * 100 + 20, 1);
            one["close_sent_by"] = json!("server");
            rows.push(one);
            rows.push(closed(id, id * 100 + 21, "server", "after-exchange", 1));
        }
        of_rule(&facts(&rows), "connection-close-sent")
            .remove(0)
            .fix
    };
    let apache = fix(&["Apache/2.4.62"]);
    assert!(
        apache.contains("Apache: `KeepAlive On`") && !apache.contains("nginx"),
        "{apache}"
    );
    // which of the two ends the connections is unknown
    for unknown in [fix(&[]), fix(&["shop/1.0"]), fix(&["nginx", "gunicorn"])] {
        assert!(
            unknown.contains("nginx `keepalive_timeout` above 0") && unknown.contains("gunicorn"),
            "{unknown}"
        );
    }
}

#[test]
fn a_page_with_a_warning_ends_with_the_next_commands() {
    let mut rows = Vec::new();
    for id in 0..6 {
        rows.push(opened(id, id * 100, Some("localhost")));
        rows.push(exchange(id, id * 100, id * 100 + 20, 1));
        rows.push(closed(id, id * 100 + 21, "client", "after-exchange", 1));
    }
    let facts = facts_of(&rows, &["intact", "watch", "--", "node", "my app.js"]);
    let commands: Vec<&str> = facts.next.iter().map(|one| one.command.as_str()).collect();
    assert_eq!(
        commands,
        [
            "intact compare -- node 'my app.js' -- FIXED",
            "intact watch --rtt 30ms -- node 'my app.js'",
            "intact watch --require 'findings.new-connection-per-request == 0' --require 'findings.ports-running-out == 0' -- node 'my app.js'",
        ]
    );
    assert!(
        facts_of(&rows[..3], &["intact", "watch", "--", "node"])
            .next
            .is_empty()
    );
}

#[test]
fn connections_from_before_the_recording_take_no_new_ports() {
    let rows: Vec<_> = (0..20)
        .flat_map(|nth| {
            let mut row = opened(nth, nth * 200, Some("a.example"));
            row["open_before"] = true.into();
            let one = exchange(nth, nth * 200, nth * 200 + 20, 9);
            [
                row,
                one,
                closed(nth, nth * 200 + 21, "client", "after-exchange", 1),
            ]
        })
        .collect();
    assert!(of_rule(&facts(&rows), "ports-running-out").is_empty());
}

#[test]
fn connections_of_quic_take_no_ports() {
    let rows = |transport: &str| -> Vec<Value> {
        let each = |nth| {
            let mut row = opened(nth, nth * 200, Some("a.example"));
            row["transport"] = transport.into();
            let one = exchange(nth, nth * 200, nth * 200 + 20, nth);
            [
                row,
                one,
                closed(nth, nth * 200 + 21, "client", "after-exchange", 1),
            ]
        };
        (0..20).flat_map(each).collect()
    };
    for (transport, findings) in [("tcp", 1), ("quic", 0)] {
        let found = of_rule(&facts(&rows(transport)), "ports-running-out").len();
        assert_eq!(found, findings, "{transport}");
    }
}

#[test]
fn a_finding_that_ended_is_no_warning() {
    let rows = |fixed: u64, each: u64| -> Vec<Value> {
        let mut rows = Vec::new();
        for nth in 0..400 {
            rows.push(opened(nth, nth * 200, Some("a.example")));
            rows.push(exchange(nth, nth * 200, nth * 200 + 20, 1));
            rows.push(closed(nth, nth * 200 + 21, "client", "after-exchange", 1));
        }
        let begun = 400 * 200;
        for nth in 0..fixed {
            let at = begun + nth * 200;
            // the server ends a connection now and then
            let connection = 400 + nth / each;
            if nth % each == 0 {
                rows.push(opened(connection, at, Some("a.example")));
            }
            rows.push(exchange(connection, at, at + 20, nth % each + 1));
        }
        rows
    };
    let rules = |facts: &ObservedFacts, severity: Severity| -> Vec<&'static str> {
        let found = facts.findings.iter().filter(|one| one.severity == severity);
        found
            .map(|one| one.rule)
            .filter(|rule| rule.starts_with("new-"))
            .collect()
    };
    // without the fix, and with half of one
    let never = facts(&rows(0, 1));
    let warned = rules(&never, Severity::Warning);
    assert!(!warned.is_empty());
    assert!(!rules(&facts(&rows(400, 4)), Severity::Warning).is_empty());
    for each in [400, 40] {
        let fixed = facts(&rows(400, each));
        assert!(rules(&fixed, Severity::Warning).is_empty(), "{each}");
        let mut findings = fixed.findings.iter();
        let ended = findings.find(|one| one.rule == warned[0]).unwrap();
        let evidence = ended.evidence.to_string();
        assert!(evidence.contains("it has ended"), "{evidence}");
    }
}
