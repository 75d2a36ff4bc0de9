//! The first sentence of observed traffic: it uses all waiting that was seen, and praises only with
//! evidence.

use crate::golden::{golden, replay};
use intact_document::Claim;
use intact_document::requirement::Requirement;
use intact_ledger::{
    Certainty, Close, CloseKind, Closed, Connection, ConnectionBytes, ConnectionId, DialFailure,
    Event, Evidence, Exchange, Failure, Nanos, Origin, Outcome, Owner, Probes, Producer, Protocol,
    Reuse, Run, Scheme, Setup, SetupPhase, Side, Sink, Span, Vantage,
};
use intact_traffic::{ObservedFacts, TrafficAnalysis, rules};

const MS: u64 = 1_000_000;

/// A request on a connection: the connection's number, start and end in milliseconds, and how it
/// ended.
type Request = (u64, u64, u64, Outcome);

/// The facts of connections that open in `setup` milliseconds at their first request, in the order
/// of the requests' ends.
fn facts(protocol: Protocol, setup: u64, requests: &[Request]) -> ObservedFacts {
    observed(protocol, setup, requests).facts()
}

/// The events of [`facts`].
fn observed(protocol: Protocol, setup: u64, requests: &[Request]) -> TrafficAnalysis {
    let started = "2026-01-01T00:00:00Z".parse().unwrap();
    let run = Run::new(Producer::Watch, "0", Vantage::Client, started, 1, &[])
        .with_evidence(Evidence::ALL);
    let mut observed = TrafficAnalysis::new(&run);
    let mut opened: Vec<u64> = Vec::new();
    for &(id, at, ..) in requests {
        if opened.contains(&id) {
            continue;
        }
        opened.push(id);
        let mut one = Connection::new(ConnectionId(id), Nanos(at * MS));
        one.origin = Some(Origin {
            scheme: Scheme::Http,
            host: "api.example".into(),
            port: 80,
        });
        one.owner = Some(Owner {
            pid: 7,
            command: "shop".into(),
        });
        one.protocol = Some(protocol);
        one.setup = Setup {
            connect: Some(Span::new(Nanos(at * MS), Nanos((at + setup) * MS))),
            ..Setup::default()
        };
        observed.record(Event::Opened(&one));
    }
    let mut used: Vec<u64> = Vec::new();
    for (number, &(id, at, end, outcome)) in (1..).zip(requests) {
        let mut one = Exchange::new(number, Nanos(at * MS));
        one.connection = Some(ConnectionId(id));
        one.end = Nanos(end * MS);
        one.outcome = outcome;
        let is_first = !used.contains(&id);
        used.push(id);
        one.reuse = Some(if is_first {
            Reuse::Fresh
        } else {
            Reuse::Reused
        });
        if is_first {
            one.spans.connect = Some(Span::new(Nanos(at * MS), Nanos((at + setup) * MS)));
        }
        observed.record(Event::Exchange(&one));
    }
    observed
}

fn ok(id: u64, at: u64, end: u64) -> Request {
    (id, at, end, Outcome::Ok)
}

/// Requests of 100 ms on one connection, `pause` milliseconds apart.
fn in_turn(count: u64, pause: u64) -> Vec<Request> {
    let each = |nth| ok(1, nth * (100 + pause), nth * (100 + pause) + 100);
    (0..count).map(each).collect()
}

#[test]
fn a_connection_that_was_always_ready_gains_nothing_from_more_reuse() {
    let facts = facts(Protocol::Http11, 1, &in_turn(20, 50));
    assert_eq!(facts.verdict.len(), 1, "{:?}", facts.verdict);
    assert!(facts.has_evidence_of_no_gain());
}

#[test]
fn a_full_pool_is_no_all_clear() {
    // each request follows the last response at once, as from a queue in the client
    let facts = facts(Protocol::Http11, 1, &in_turn(20, 0));
    let queue = "Whether requests waited in the program for a free connection cannot be seen: compare with a larger pool";
    assert_eq!(&*facts.verdict[1], queue, "{:?}", facts.verdict);
    assert!(!facts.has_evidence_of_no_gain());
    assert_eq!(facts.totals.back_to_back, Some(19));
    // with another loss there is no all-clear to prevent
    let mut requests = in_turn(20, 0);
    requests.push((1, 2_000, 2_900, Outcome::Failed(Failure::Timeout)));
    let facts = self::facts(Protocol::Http11, 1, &requests);
    assert_eq!(facts.totals.back_to_back_share, Some(1.0));
    let is_said = |one: &Claim| **one == *queue;
    assert!(!facts.verdict.iter().any(is_said), "{:?}", facts.verdict);
}

#[test]
fn streams_of_one_connection_do_not_wait_for_each_other() {
    let facts = facts(Protocol::Http2, 1, &in_turn(20, 0));
    assert_eq!(facts.totals.back_to_back, None);
    assert!(facts.has_evidence_of_no_gain());
}

#[test]
fn a_cold_pool_is_no_all_clear() {
    // eight requests at the same time, each behind a setup of 60 ms, and two more later
    let mut requests: Vec<Request> = (1..=8).map(|id| ok(id, 0, 100)).collect();
    requests.extend([ok(1, 200, 240), ok(2, 200, 240)]);
    let facts = facts(Protocol::Http11, 60, &requests);
    assert_eq!(facts.totals.counted.avoidable, 0);
    assert!(!facts.has_evidence_of_no_gain());
    let setup =
        "Requests waited 480 ms of 880 ms (55 %) for the setup of connections that were needed";
    assert!(facts.verdict[0].starts_with(setup), "{:?}", facts.verdict);
    assert!(
        facts.verdict[0].ends_with("(HTTP/2)"),
        "{:?}",
        facts.verdict
    );
}

#[test]
fn setups_of_connections_of_another_protocol_are_no_part_of_what_requests_waited_for() {
    let mut observed = observed(Protocol::Http11, 60, &in_turn(4, 50));
    for id in 100..110 {
        let at = Nanos(id * 100 * MS);
        let end = Nanos(at.0 + 50 * MS);
        let mut one = Connection::new(ConnectionId(id), at);
        one.peer = Some("127.0.0.1:6379".parse().unwrap());
        one.protocol = Some(Protocol::Redis);
        one.setup.connect = Some(Span::new(at, end));
        observed.record(Event::Opened(&one));
        observed.record(Event::Closed(&Closed {
            connection: one.id,
            variant: None,
            round: None,
            close: Close {
                at: end,
                by: Some(Side::Client),
                how: Some(CloseKind::Fin),
                other_end: None,
                announced_by: None,
                moment: None,
                exchanges: None,
                bytes: ConnectionBytes::default(),
                probes: Probes::default(),
            },
        }));
    }
    let facts = observed.facts();
    assert!(
        facts.totals.wasted_ms.low() > 400.0,
        "{:?}",
        facts.totals.wasted_ms
    );
    let setup = "Requests waited 60.0 ms of 400 ms (15 %) for the setup of connections";
    // HTTP/2 cannot take the place of one connection
    let is_said = facts.verdict.iter().any(|one| {
        one.starts_with(setup) && one.ends_with("To avoid that, open them before the requests")
    });
    assert!(is_said, "{:?}", facts.verdict);
}

#[test]
fn the_time_of_requests_without_a_response_counts() {
    for kind in [Failure::Timeout, Failure::Aborted, Failure::ClientClosed] {
        let mut requests = in_turn(10, 50);
        requests.push((1, 2_000, 4_000, Outcome::Failed(kind)));
        let facts = facts(Protocol::Http2, 1, &requests);
        assert_eq!(facts.totals.lost_ms, Some(2_000.0));
        assert!(!facts.has_evidence_of_no_gain());
        let lost = format!(
            "1 of 11 requests got no complete response ({} 1): 2.00 s of 3.00 s waiting (67 %)",
            kind.id()
        );
        assert_eq!(*facts.verdict[0], *lost);
    }
}

#[test]
fn a_dead_connection_and_a_stream_limit_are_no_all_clear() {
    for rule in ["dead-connection-reused", "h2-stream-limit"] {
        let (_, facts) = replay(&golden().join(rule).join("fires.jsonl"));
        assert_eq!(facts.totals.counted.avoidable, 0, "{rule}");
        assert!(!facts.has_evidence_of_no_gain(), "{rule}");
    }
}

#[test]
fn connections_that_failed_in_tls_are_no_content_that_cannot_be_seen() {
    let started = "2026-01-01T00:00:00Z".parse().unwrap();
    let run = Run::new(Producer::Watch, "0", Vantage::Client, started, 1, &[])
        .with_evidence(Evidence::ALL);
    let mut observed = TrafficAnalysis::new(&run);
    let mut one = Connection::new(ConnectionId(1), Nanos(0));
    one.failed = Some(DialFailure {
        phase: SetupPhase::Ssl,
        kind: Failure::Certificate,
        detail: None,
    });
    observed.record(Event::Opened(&one));
    assert_eq!(
        observed.facts().verdict[0],
        "No request was sent: the TLS handshake of 1 connection failed (certificate 1)"
    );
}

#[test]
fn dials_that_failed_are_in_the_verdict() {
    let started = "2026-01-01T00:00:00Z".parse().unwrap();
    let run = Run::new(Producer::Watch, "0", Vantage::Client, started, 1, &[])
        .with_evidence(Evidence::ALL);
    let mut observed = TrafficAnalysis::new(&run);
    for id in 0..50 {
        let mut one = Connection::new(ConnectionId(id), Nanos(id * MS));
        one.failed = (id > 0).then_some(DialFailure {
            phase: SetupPhase::Connect,
            kind: Failure::Refused,
            detail: None,
        });
        observed.record(Event::Opened(&one));
    }
    let mut one = Exchange::new(1, Nanos(MS));
    one.connection = Some(ConnectionId(0));
    one.end = Nanos(2 * MS);
    observed.record(Event::Exchange(&one));
    let facts = observed.facts();
    assert!(!facts.has_evidence_of_no_gain());
    let verdict = facts.verdict;
    assert!(
        verdict
            .iter()
            .any(|one| *one == "49 of 50 connection attempts failed (refused 49)"),
        "{verdict:?}"
    );
}

/// The facts of requests that a run with these limits recorded: their connections and whether they
/// reused them.
fn recorded(limit: impl Fn(&mut Run), requests: &[(u64, Option<Reuse>)]) -> ObservedFacts {
    let started = "2026-01-01T00:00:00Z".parse().unwrap();
    let mut run = Run::new(Producer::Audit, "0", Vantage::Server, started, 1, &[])
        .with_evidence(Evidence::ALL);
    limit(&mut run);
    let mut observed = TrafficAnalysis::new(&run);
    for (number, &(id, reuse)) in (1..).zip(requests) {
        let connection = Connection::new(ConnectionId(id), Nanos(number * MS));
        if number == id {
            observed.record(Event::Opened(&connection));
        }
        let mut one = Exchange::new(number, Nanos(number * MS));
        one.connection = Some(ConnectionId(id));
        one.reuse = reuse;
        one.end = Nanos(number * MS);
        observed.record(Event::Exchange(&one));
    }
    observed.facts()
}

fn passes(facts: &ObservedFacts, expression: &str) -> bool {
    let requirement: Requirement = expression.parse().unwrap();
    requirement.evaluate(facts).passed()
}

#[test]
fn what_a_recording_lacks_passes_no_gate() {
    let requests = [(1, Some(Reuse::Fresh)), (1, Some(Reuse::Reused))];
    let log = recorded(
        |run| {
            run.evidence = [Evidence::Announcements, Evidence::Reuse].into();
        },
        &requests,
    );
    for expression in [
        "lookups == 0",
        "stale == 0",
        "failed.refused == 0",
        "connections-failed == 0",
        "mean < 1s",
        "findings.stale-reuse == 0",
        "findings.body-not-drained == 0",
        "findings.lookup-per-request == 0",
        "findings.slower-when-reused == 0",
    ] {
        assert!(!passes(&log, expression), "{expression}");
    }
    for expression in [
        "failed.client-closed == 0",
        "findings.new-connection-per-request == 0",
        "findings == 0",
    ] {
        assert!(passes(&log, expression), "{expression}");
    }
    assert!(
        log.totals
            .counted
            .unobserved
            .sees(rules::needs("stale-reuse"))
            .is_err()
    );
    let all = recorded(|run| run.vantage = Vantage::Client, &requests);
    for expression in ["lookups == 0", "stale == 0", "findings.stale-reuse == 0"] {
        assert!(passes(&all, expression), "{expression}");
    }
}

#[test]
fn findings_pass_no_gate_where_no_reuse_is_known() {
    let unknown = recorded(|_| {}, &[(1, None), (1, None)]);
    assert!(!passes(&unknown, "findings == 0"));
    assert!(!passes(&unknown, "warnings == 0"));
    assert!(unknown.totals.counted.unobserved.reason().is_some());
    let known = recorded(|_| {}, &[(1, None), (1, Some(Reuse::Reused))]);
    assert!(passes(&known, "warnings == 0"));
}

#[test]
fn requests_that_were_inferred_pass_no_gate_about_requests() {
    let started = "2026-01-01T00:00:00Z".parse().unwrap();
    let run = Run::new(Producer::Watch, "0", Vantage::Client, started, 1, &[])
        .with_evidence(Evidence::ALL);
    let facts = |is_read: bool| {
        let mut observed = TrafficAnalysis::new(&run);
        observed.record(Event::Opened(&Connection::new(ConnectionId(1), Nanos(0))));
        for number in 1..=4 {
            let mut one = Exchange::new(number, Nanos(number * MS));
            one.connection = Some(ConnectionId(1));
            one.end = Nanos(number * MS);
            one.reuse = Some(Reuse::of_position(number as u32));
            one.certainty = Certainty::Inferred("TLS without keys".into());
            one.status = is_read.then_some(200);
            observed.record(Event::Exchange(&one));
        }
        observed.facts()
    };
    let inferred = facts(false);
    for expression in ["requests == 4", "reuse >= 70%", "findings == 0", "p50 < 1s"] {
        assert!(!passes(&inferred, expression), "{expression}");
    }
    assert!(passes(&inferred, "connections == 1"));
    // the connection is inferred, the requests were read
    assert!(passes(&facts(true), "reuse >= 70%"));
}
