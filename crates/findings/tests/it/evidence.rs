//! A producer that adds no evidence to its header, or a part of it: what it records is known, and
//! nothing else.

use intact_document::requirement::Requirement;
use intact_ledger::{
    Connection, ConnectionId, Event, Evidence, EvidenceSet, Exchange, Method, Nanos, Origin,
    Producer, Reuse, Run, Scheme, Setup, Sink, Span, Vantage,
};
use intact_traffic::{ObservedFacts, TrafficAnalysis, rules};

const MS: u64 = 1_000_000;

/// One connection, opened in 1 ms, with 20 requests of 100 ms: no producer could record better use.
fn facts(evidence: EvidenceSet) -> ObservedFacts {
    let started = "2026-01-01T00:00:00Z".parse().unwrap();
    let producer = Producer::Other("test".to_owned());
    let run = Run::new(producer, "0", Vantage::Client, started, 1, &[]).with_evidence(evidence);
    let mut observed = TrafficAnalysis::new(&run);
    let id = ConnectionId(1);
    let connect = Some(Span::new(Nanos(0), Nanos(MS)));
    let mut connection = Connection::new(id, Nanos(0));
    connection.origin = Some(Origin {
        scheme: Scheme::Http,
        host: "api.example".into(),
        port: 80,
    });
    connection.setup = Setup {
        connect,
        ..Setup::default()
    };
    observed.record(Event::Opened(&connection));
    for number in 0..20 {
        let is_first = number == 0;
        let mut one = Exchange::new(number, Nanos(number * 200 * MS));
        one.connection = Some(id);
        one.end = Nanos((number * 200 + 100) * MS);
        one.ordinal = Some(number as u32 + 1);
        one.reuse = Some(if is_first {
            Reuse::Fresh
        } else {
            Reuse::Reused
        });
        one.spans.connect = connect.filter(|_| is_first);
        one.method = Some(Method::new("GET"));
        one.status = Some(200);
        observed.record(Event::Exchange(&one));
    }
    observed.facts()
}

fn passes(facts: &ObservedFacts, expression: &str) -> bool {
    let requirement: Requirement = expression.parse().unwrap();
    requirement.evaluate(facts).passed()
}

const GATES: [&str; 15] = [
    "findings == 0",
    "warnings == 0",
    "errors == 0",
    "avoidable == 0",
    "needed <= 1",
    "connections <= 1",
    "connections-failed == 0",
    "requests-per-connection > 10",
    "reuse > 50%",
    "requests <= 20",
    "failed == 0",
    "stale == 0",
    "lookups == 0",
    "mean < 10s",
    "p50 < 10s",
];

#[test]
fn a_producer_without_evidence_passes_no_gate() {
    let all = facts(Evidence::ALL.into());
    let none = facts(EvidenceSet::default());
    let of_rules = rules::ids().map(|id| format!("findings.{id} == 0"));
    for gate in GATES.map(str::to_owned).into_iter().chain(of_rules) {
        assert!(passes(&all, &gate), "{gate}");
        assert!(!passes(&none, &gate), "{gate}");
    }
}

#[test]
fn a_producer_without_evidence_is_not_praised() {
    let all = facts(Evidence::ALL.into());
    assert!(all.has_evidence_of_no_gain());
    let none = facts(EvidenceSet::default());
    assert!(!none.has_evidence_of_no_gain());
    let reason =
        "a part of the traffic was not observed: the producer does not state what it observed";
    let [only] = &none.verdict[..] else {
        panic!("{:?}", none.verdict)
    };
    assert!(only.contains(reason), "{only:?}");
}

#[test]
fn a_rule_is_judged_only_with_the_evidence_that_it_needs() {
    let judged = |evidence: EvidenceSet| {
        let unobserved = facts(evidence).totals.counted.unobserved.clone();
        rules::ids()
            .filter(|rule| unobserved.sees(rules::needs(rule)).is_ok())
            .count()
    };
    let without_needs = judged(EvidenceSet::default());
    assert_eq!(judged(Evidence::ALL.into()), rules::ids().count());
    assert_eq!(without_needs, 2);
    let none = facts(EvidenceSet::default())
        .totals
        .counted
        .unobserved
        .clone();
    for (rule, needs) in [
        ("body-not-drained", vec![Evidence::Ends, Evidence::Bodies]),
        ("channel-per-call", vec![Evidence::Calls]),
        ("first-request-costs-more", vec![Evidence::Durations]),
        (
            "h2-available-unused",
            vec![Evidence::Ends, Evidence::Contents],
        ),
        ("lookup-per-request", vec![Evidence::Lookups]),
        ("old-tls", vec![Evidence::Handshakes]),
        ("pool-per-worker", vec![Evidence::Ends, Evidence::Owners]),
        ("retried-request", vec![Evidence::Repeats]),
        ("stale-reuse", vec![Evidence::Attempts, Evidence::Ends]),
        ("state-carried-over", vec![Evidence::Identities]),
    ] {
        assert!(none.sees(rules::needs(rule)).is_err(), "{rule}");
        let enough = facts(EvidenceSet::of(&needs))
            .totals
            .counted
            .unobserved
            .clone();
        assert!(enough.sees(rules::needs(rule)).is_ok(), "{rule}");
        for one in needs {
            let without = EvidenceSet::from(Evidence::ALL).without(one);
            let lacking = facts(without).totals.counted.unobserved.clone();
            assert!(
                lacking.sees(rules::needs(rule)).is_err(),
                "{rule} without {one:?}"
            );
        }
    }
}
