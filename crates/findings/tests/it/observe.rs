//! What holds for every stream of events, however odd: counts fit together, claims never exceed
//! what was avoidable, memory is bounded.

use intact_ledger::{
    Close, CloseKind, ClosePoint, Closed, Connection, ConnectionBytes, ConnectionId, Event,
    Evidence, Exchange, Failure, Fingerprint, Lookup, Nanos, Origin, Outcome, Owner, Producer,
    Protocol, Reuse, Row, Run, Scheme, Setup, Side, Sink, Span, Vantage,
};
use intact_traffic::{ObservedFacts, TrafficAnalysis};
use proptest::prelude::*;

const MS: u64 = 1_000_000;

fn run() -> Run {
    let started = "2026-01-01T00:00:00Z".parse().unwrap();
    Run::new(Producer::Watch, "0", Vantage::Client, started, 1, &[]).with_evidence(Evidence::ALL)
}

fn side() -> impl Strategy<Value = Option<Side>> {
    prop::option::of(prop_oneof![Just(Side::Client), Just(Side::Server)])
}

fn connection() -> impl Strategy<Value = Connection> {
    let protocol = prop::option::of(prop_oneof![
        Just(Protocol::Http10),
        Just(Protocol::Http11),
        Just(Protocol::Http2),
        Just(Protocol::Redis),
    ]);
    (0..12u64, 0..5_000u64, 0..3u16, 0..3u32, protocol, 0..50u64).prop_map(
        |(id, at, port, pid, protocol, took)| {
            let mut one = Connection::new(ConnectionId(id), Nanos(at * MS));
            one.origin = (port > 0).then(|| Origin {
                scheme: Scheme::Http,
                host: "api.example".into(),
                port,
            });
            one.owner = (pid > 0).then(|| Owner {
                pid,
                command: "shop".into(),
            });
            one.protocol = protocol;
            one.setup = Setup {
                connect: Some(Span::new(Nanos(at * MS), Nanos((at + took) * MS))),
                ..Setup::default()
            };
            one
        },
    )
}

fn exchange() -> impl Strategy<Value = Exchange> {
    let outcome = prop_oneof![
        4 => Just(Outcome::Ok),
        1 => Just(Outcome::Failed(Failure::Stale)),
        1 => Just(Outcome::Failed(Failure::Reset)),
    ];
    (
        0..12u64,
        0..5_000u64,
        0..200u64,
        prop::option::of(prop::sample::select(&Reuse::ALL[..])),
        outcome,
        side(),
        0..4u8,
    )
        .prop_map(|(id, at, took, fresh, outcome, close, print)| {
            let mut one = Exchange::new(1, Nanos(at * MS));
            one.end = Nanos((at + took) * MS);
            one.connection = (id > 0).then_some(ConnectionId(id));
            one.reuse = fresh;
            one.outcome = outcome;
            one.close_sent_by = close;
            one.fingerprint = Fingerprint::try_from(format!("{print:032x}")).ok();
            one.body.announced = Some(10);
            one.body.read = Some(u64::from(print) * 5);
            one.terms.timeout_s = Some(1);
            one
        })
}

fn closed() -> impl Strategy<Value = Closed> {
    let moment = prop::option::of(prop_oneof![
        Just(ClosePoint::Unused),
        Just(ClosePoint::AfterExchange),
        Just(ClosePoint::Idle),
        Just(ClosePoint::MidExchange),
        Just(ClosePoint::Stale),
    ]);
    (
        0..12u64,
        0..6_000u64,
        side(),
        moment,
        prop::option::of(0..3u64),
    )
        .prop_map(|(id, at, by, moment, exchanges)| Closed {
            connection: ConnectionId(id),
            variant: None,
            round: None,
            close: Close {
                at: Nanos(at * MS),
                by,
                how: Some(CloseKind::Fin),
                other_end: None,
                announced_by: None,
                moment,
                exchanges,
                bytes: ConnectionBytes::default(),
                probes: intact_ledger::Probes::default(),
            },
        })
}

fn row() -> impl Strategy<Value = Row> {
    let lookup = (0..5_000u64).prop_map(|at| {
        Row::Lookup(Lookup {
            variant: None,
            round: None,
            name: Some("api.example".into()),
            span: Span::new(Nanos(at * MS), Nanos((at + 2) * MS)),
            answer: Some(Ok(vec!["192.0.2.1".parse().unwrap()])),
            ttl_s: None,
            resolver: None,
            owner: None,
        })
    });
    prop_oneof![
        4 => connection().prop_map(|one| Row::Opened(Box::new(one))),
        1 => connection().prop_map(|one| Row::Revised(Box::new(one))),
        6 => exchange().prop_map(|one| Row::Exchange(Box::new(one))),
        3 => closed().prop_map(Row::Closed),
        1 => lookup,
    ]
}

fn check(facts: &ObservedFacts) {
    let totals = &facts.totals;
    assert!(totals.counted.counts.connections.needed <= totals.counted.counts.connections.opened);
    assert_eq!(
        totals.counted.avoidable,
        facts
            .destinations
            .iter()
            .map(|one| one.figures.counted.avoidable)
            .sum::<u64>()
    );
    assert_eq!(
        totals.counted.counts.requests.total,
        totals.counted.counts.requests.ok + totals.counted.counts.requests.failures()
    );
    let sums = |of: fn(&intact_traffic::Figures) -> u64| -> u64 {
        facts.destinations.iter().map(|one| of(&one.figures)).sum()
    };
    assert_eq!(
        totals.counted.counts.requests.total,
        sums(|one| one.counted.counts.requests.total)
    );
    assert_eq!(
        totals.counted.counts.connections.opened,
        sums(|one| one.counted.counts.connections.opened)
    );
    if let Some(reuse) = totals.traffic.reuse.value() {
        assert!((0.0..=1.0).contains(&reuse));
    }
    let claimed: f64 = facts
        .findings
        .iter()
        .filter_map(|finding| finding.cost_ms)
        .sum();
    let wasted = totals.counted.wasted_ms.unwrap_or(0.0) + totals.lost_ms.unwrap_or(0.0);
    assert!(claimed <= wasted + 1e-6);
}

proptest! {
    #[test]
    fn counts_fit_together_and_claims_never_exceed_what_was_avoidable(rows in prop::collection::vec(row(), 0..120)) {
        let mut observed = TrafficAnalysis::new(&run());
        for row in &rows {
            observed.record(row.as_event());
        }
        check(&observed.facts());
    }

    #[test]
    fn a_connection_that_is_recorded_twice_counts_once(rows in prop::collection::vec(row(), 0..60)) {
        let mut seen = std::collections::BTreeSet::new();
        let rows: Vec<Row> = rows
            .into_iter()
            .filter(|row| match row {
                Row::Opened(connection) => seen.insert(connection.id),
                Row::Revised(_) => false,
                _ => true,
            })
            .collect();
        let mut once = TrafficAnalysis::new(&run());
        let mut twice = TrafficAnalysis::new(&run());
        for row in &rows {
            once.record(row.as_event());
            twice.record(row.as_event());
            if let Row::Opened(connection) = row {
                twice.record(Event::Revised(connection));
            }
        }
        prop_assert_eq!(serde_json::to_value(once.facts()).unwrap(), serde_json::to_value(twice.facts()).unwrap());
    }
}

#[test]
fn more_destinations_than_fit_are_counted_together_with_a_caveat() {
    let mut observed = TrafficAnalysis::new(&run());
    for id in 0..5_000u64 {
        let mut one = Connection::new(ConnectionId(id), Nanos(id * MS));
        one.origin = Some(Origin {
            scheme: Scheme::Http,
            host: format!("host-{id}.example").into(),
            port: 80,
        });
        observed.record(Event::Opened(&one));
        let mut exchange = Exchange::new(id, Nanos(id * MS));
        exchange.connection = Some(ConnectionId(id));
        observed.record(Event::Exchange(&exchange));
    }
    let facts = observed.facts();
    assert_eq!(facts.totals.counted.counts.requests.total, 5_000);
    assert!(
        facts.destinations.len() <= 1_025,
        "{}",
        facts.destinations.len()
    );
    assert!(
        facts
            .caveats
            .iter()
            .any(|caveat| caveat.id == "many-destinations")
    );
    check(&facts);
}

#[test]
fn a_hundred_thousand_connections_left_open_are_let_go_and_said() {
    let mut observed = TrafficAnalysis::new(&run());
    for id in 0..100_000u64 {
        let mut one = Connection::new(ConnectionId(id), Nanos(id));
        one.owner = Some(Owner {
            pid: 1,
            command: "shop".into(),
        });
        observed.record(Event::Opened(&one));
    }
    let facts = observed.facts();
    assert_eq!(facts.totals.counted.counts.connections.opened, 100_000);
    assert!(
        facts
            .caveats
            .iter()
            .any(|caveat| caveat.id == "many-connections")
    );
}

/// A connection, and an exchange on it that is over, each in milliseconds.
fn used(observed: &mut TrafficAnalysis, id: u64, opened: u64, from: u64, to: u64) {
    if opened == from {
        let mut one = Connection::new(ConnectionId(id), Nanos(opened * MS));
        one.owner = Some(Owner {
            pid: 1,
            command: "shop".into(),
        });
        observed.record(Event::Opened(&one));
    }
    let mut exchange = Exchange::new(id, Nanos(from * MS));
    exchange.connection = Some(ConnectionId(id));
    exchange.end = Nanos(to * MS);
    observed.record(Event::Exchange(&exchange));
}

/// The rule that fires on two connections that are opened next to one which was used until 100 ms
/// and is used again from `again` on.
fn opened_next_to(again: u64) -> Vec<&'static str> {
    let mut observed = TrafficAnalysis::new(&run());
    used(&mut observed, 1, 0, 0, 100);
    used(&mut observed, 2, 200, 200, 201);
    used(&mut observed, 3, 202, 202, 203);
    used(&mut observed, 1, 0, again, again + 1);
    let facts = observed.facts();
    facts.findings.iter().map(|finding| finding.rule).collect()
}

#[test]
fn a_connection_that_is_about_to_be_used_was_not_idle_for_another_request() {
    // a thread that has taken a connection may be late with its request
    assert!(opened_next_to(204).is_empty());
    assert!(opened_next_to(300).is_empty());
    assert_eq!(opened_next_to(600), ["new-client-per-request"]);
}

/// How many requests `retried-request` names, where each is: connection, from, to, how it ended.
fn retries(exchanges: &[(u64, u64, u64, Outcome)], pids: [u32; 3]) -> usize {
    retries_to(["api.example"; 3], exchanges, pids)
}

fn retries_to(hosts: [&str; 3], exchanges: &[(u64, u64, u64, Outcome)], pids: [u32; 3]) -> usize {
    let mut observed = TrafficAnalysis::new(&run());
    for ((id, pid), host) in (1..).zip(pids).zip(hosts) {
        let mut one = Connection::new(ConnectionId(id), Nanos(0));
        let host = host.into();
        one.origin = Some(Origin {
            scheme: Scheme::Http,
            host,
            port: 80,
        });
        one.owner = Some(Owner {
            pid,
            command: "shop".into(),
        });
        observed.record(Event::Opened(&one));
    }
    for (number, &(connection, from, to, outcome)) in (1..).zip(exchanges) {
        let mut one = Exchange::new(number, Nanos(from * MS));
        one.connection = Some(ConnectionId(connection));
        one.end = Nanos(to * MS);
        one.outcome = outcome;
        one.fingerprint = Fingerprint::try_from("0".repeat(32)).ok();
        observed.record(Event::Exchange(&one));
    }
    let findings = observed.facts().findings;
    findings
        .iter()
        .filter(|one| one.rule == "retried-request")
        .count()
}

#[test]
fn an_equal_request_to_another_destination_is_no_retry() {
    let broken = Outcome::Failed(Failure::Reset);
    let webhooks = [(1, 10, 20, broken), (2, 30, 40, Outcome::Ok)];
    assert_eq!(
        retries_to(["a.example", "b.example", "c.example"], &webhooks, [7; 3]),
        0
    );
    // one that fails in between hides no retry
    let both = [
        (1, 10, 20, broken),
        (2, 22, 28, broken),
        (3, 30, 40, Outcome::Ok),
    ];
    assert_eq!(
        retries_to(["a.example", "b.example", "a.example"], &both, [7; 3]),
        1
    );
}

#[test]
fn a_request_is_a_retry_only_of_the_same_process_and_until_it_is_answered() {
    let broken = Outcome::Failed(Failure::Reset);
    let again = [(1, 10, 20, broken), (2, 30, 40, Outcome::Ok)];
    assert_eq!(retries(&again, [7; 3]), 1);
    assert_eq!(
        retries(&again, [7, 8, 7]),
        0,
        "another process asks the same"
    );
    let answered_elsewhere = [
        (1, 10, 20, broken),
        (2, 15, 25, Outcome::Ok),
        (3, 30, 40, Outcome::Ok),
    ];
    assert_eq!(
        retries(&answered_elsewhere, [7; 3]),
        0,
        "its like was answered meanwhile"
    );
}

#[test]
fn of_three_equal_requests_in_turn_that_fail_none_is_a_retry() {
    let broken = Outcome::Failed(Failure::Reset);
    let mut each = [
        (1, 10, 20, broken),
        (2, 21, 30, broken),
        (3, 31, 40, broken),
    ];
    assert_eq!(retries(&each[..2], [7; 3]), 1);
    assert_eq!(retries(&each, [7; 3]), 0);
    each[2].3 = Outcome::Ok;
    assert_eq!(retries(&each, [7; 3]), 1);
}

#[test]
fn the_next_request_of_a_loop_that_pauses_is_no_retry() {
    let broken = Outcome::Failed(Failure::Reset);
    // 20 ms after each response
    let next = |at| {
        [
            (1, 0, 5, Outcome::Ok),
            (1, 25, 30, broken),
            (2, at, at + 5, Outcome::Ok),
        ]
    };
    assert_eq!(retries(&next(50), [7; 3]), 0, "after the usual pause");
    assert_eq!(retries(&next(31), [7; 3]), 1, "sooner");
    let without_pause = [
        (1, 0, 5, Outcome::Ok),
        (1, 6, 10, broken),
        (2, 11, 15, Outcome::Ok),
    ];
    assert_eq!(
        retries(&without_pause, [7; 3]),
        1,
        "a loop that does not pause shows nothing"
    );
}

#[test]
fn a_heartbeat_is_no_retry_of_the_beat_before_it() {
    let broken = Outcome::Failed(Failure::Reset);
    let beat = |connection, at, outcome| (connection, at, at + 20, outcome);
    let steady = [
        beat(1, 0, Outcome::Ok),
        beat(1, 5_000, Outcome::Ok),
        beat(1, 10_000, broken),
        beat(2, 15_000, Outcome::Ok),
    ];
    assert_eq!(retries(&steady, [7; 3]), 0, "the next beat is on time");
    let first = [
        beat(1, 0, broken),
        beat(2, 5_000, Outcome::Ok),
        beat(2, 10_000, Outcome::Ok),
    ];
    assert_eq!(
        retries(&first, [7; 3]),
        0,
        "the third beat shows the rhythm"
    );
    let again = [
        beat(1, 0, Outcome::Ok),
        beat(1, 5_000, Outcome::Ok),
        beat(1, 10_000, broken),
        beat(2, 10_021, Outcome::Ok),
        beat(2, 15_000, Outcome::Ok),
    ];
    assert_eq!(
        retries(&again, [7; 3]),
        1,
        "sent again at once, and the beat after it"
    );
    let backed_off = [
        beat(1, 0, broken),
        beat(2, 1_000, Outcome::Ok),
        beat(2, 1_200, Outcome::Ok),
    ];
    assert_eq!(
        retries(&backed_off, [7; 3]),
        1,
        "the next equal request keeps no rhythm"
    );
}
