//! Facts of a made tally: two sessions, of which one keeps its connection.

use super::ScenarioFacts;
use intact_document::Facts;
use intact_document::requirement::Requirement;
use intact_ledger::{
    ClientCounts, Event, Exchange, Failure, MachineUse, Nanos, Outcome, Producer, Reuse, Round,
    Run, Sink, Span, Tally, Vantage, Variant,
};
use intact_reading::Reading;
use std::collections::BTreeMap;

const MS: u64 = 1_000_000;

fn run() -> Run {
    let started = "2026-01-01T00:00:00Z".parse().unwrap();
    let mut run = Run::new(Producer::Bench, "0", Vantage::Client, started, 1, &[]);
    run.scenario = Some("x.js".to_owned());
    for name in ["kept", "closed"] {
        run.variants.push(Variant {
            name: name.to_owned(),
            axes: BTreeMap::from([("weight".to_owned(), "50".to_owned())]),
        });
    }
    run
}

/// Ten clients of each session: 1 + 26 requests on one connection, 25 on one each. `change` gets
/// the number of the exchange.
fn facts(change: impl Fn(&mut Exchange, u64)) -> ScenarioFacts {
    facts_on(None, change)
}

/// The same on a machine whose processors did this.
fn facts_on(machine: Option<MachineUse>, change: impl Fn(&mut Exchange, u64)) -> ScenarioFacts {
    let mut tally = Tally::new();
    let mut id = 0;
    let mut record = |session: u32, tag: &str, reuse: Reuse, ms: u64| {
        id += 1;
        let mut one = Exchange::new(id, Nanos(id * MS));
        (one.variant, one.round) = (Some(session), Some(1));
        one.tag = Some(tag.into());
        (one.reuse, one.status) = (Some(reuse), Some(200));
        // some scatter, so that the dip test has something to look at
        one.end = one.at.after(ms * MS + (id * 7919) % MS);
        change(&mut one, id);
        tally.record(Event::Exchange(&one));
    };
    for _ in 0..10 {
        record(0, "first", Reuse::Fresh, 60);
        (0..26).for_each(|_| record(0, "kept", Reuse::Reused, 30));
        (0..25).for_each(|_| record(1, "closed", Reuse::Fresh, 60));
    }
    for session in 0..2 {
        tally.record(Event::Round(&Round {
            client_cpu: Some(100 * MS),
            client_threads: Some(1),
            machine,
            ..Round::new(session, 1, Span::new(Nanos(0), Nanos(10_000 * MS)))
        }));
        let cell = tally.cell(Some(session), Some(1));
        cell.connections.opened = if session == 0 { 10 } else { 250 };
        cell.clients = Some(ClientCounts {
            started: 10,
            finished: 10,
        });
    }
    ScenarioFacts::new(&run(), &tally, &[])
}

fn passes(facts: &ScenarioFacts, expression: &str) -> bool {
    let requirement: Requirement = expression.parse().unwrap();
    requirement.evaluate(facts).passed()
}

#[test]
fn figures_are_of_the_run_of_each_session_and_of_each_tag() {
    let facts = facts(|_, _| {});
    assert_eq!(
        (facts.counted.requests.total, facts.counted.requests.ok),
        (520, 520)
    );
    assert_eq!(facts.counted.connections.opened, 260);
    assert_eq!(facts.counted.connections.needed, 20);
    assert_eq!(facts.counted.reuse, Some(0.5));
    let tags = facts.sessions.iter().flat_map(|one| &one.tags);
    let tags: Vec<(&str, u64, u64)> = tags
        .map(|one| (&*one.tag, one.counted.requests.total, one.counted.reused))
        .collect();
    assert_eq!(
        tags,
        [("first", 10, 0), ("kept", 260, 260), ("closed", 250, 0)]
    );
    assert_eq!(
        facts.sessions[0].counted.requests.status,
        BTreeMap::from([(200, 270)])
    );
    assert_eq!(facts.sessions[1].weight, Some(50.0));
    assert_eq!(facts.rate_per_s, Reading::known(52.0));
    assert_eq!(facts.client_busy, Some(0.01));
    assert!(facts.caveats.is_empty(), "{:?}", facts.caveats);
    assert!(facts.any_success());
}

#[test]
fn both_modes_are_named_with_their_shares() {
    let facts = facts(|_, _| {});
    let modes: Vec<(&str, f64)> = facts
        .modes
        .iter()
        .map(|one| (one.name, one.share))
        .collect();
    assert_eq!(modes, [("fresh", 0.5), ("reused", 0.5)]);
    assert!(facts.is_bimodal);
    assert!(
        facts.verdict[0].statement.starts_with(
            "The latency has two modes: 50 % of the requests waited for a new connection"
        ),
        "{:?}",
        facts.verdict
    );
    assert_eq!(
        &*facts.verdict[1].statement,
        "20 clients sent 520 requests on 260 connections in 10.0 s."
    );
}

#[test]
fn one_mode_is_not_called_two() {
    let facts = facts(|one, id| one.end = one.at.after(30 * MS + (id * 7919) % MS));
    assert!(!facts.is_bimodal);
    assert!(
        facts.verdict[0]
            .statement
            .starts_with("50 % of the requests waited for a new connection"),
        "{:?}",
        facts.verdict
    );
}

#[test]
fn requirements_are_about_the_run_unless_they_select_a_session_or_a_tag() {
    let facts = facts(|_, _| {});
    for holds in [
        "requests == 520",
        "session=kept: requests == 270",
        "session=kept: connections == 10",
        "session=kept: avoidable == 0",
        "avoidable == 240",
        "tag=kept: reuse == 100%",
        "tag=kept: p50 < 32ms",
        "tag=closed: p50 > 59ms",
        "session=closed: reuse == 0%",
        "throughput >= 52/s",
        "failed == 0",
        "findings == 0",
    ] {
        assert!(passes(&facts, holds), "{holds}");
    }
    for fails in [
        "reuse > 90%",
        "p50 < 1ms",
        "tag=kept: connections == 0",
        "session=kept: throughput > 1/s",
    ] {
        assert!(!passes(&facts, fails), "{fails}");
    }
}

#[test]
fn failures_are_findings_of_their_session_and_timeouts_are_in_the_percentiles() {
    let facts = facts(|one, id| {
        if one.variant == Some(1) && id % 2 == 0 {
            one.outcome = Outcome::Failed(Failure::Timeout);
            one.status = None;
        }
    });
    let [finding] = facts.findings.as_slice() else {
        panic!("{:?}", facts.findings)
    };
    assert_eq!(
        (finding.rule, &*finding.subject),
        ("failed-requests", "closed")
    );
    let closed = &facts.sessions[1].tags[0];
    assert!(closed.counted.requests.failures() > 100);
    assert!(closed.latency_ms.p90.is_unknown());
    assert!(!passes(&facts, "failed == 0"));
    assert!(!passes(&facts, "session=closed: p90 < 1h"));
    assert!(passes(&facts, "session=kept: failed == 0"));
}

#[test]
fn a_run_in_which_every_response_is_an_error_is_no_success() {
    let facts = facts(|one, _| one.status = Some(503));
    assert!(!facts.any_success());
    assert!(
        facts.verdict[0]
            .statement
            .contains("Every response was 503"),
        "{:?}",
        facts.verdict
    );
    assert!(!passes(&facts, "failed == 0"));
}

#[test]
fn without_the_number_of_clients_nothing_is_called_avoidable_or_not() {
    let mut tally = Tally::new();
    let mut one = Exchange::new(1, Nanos(0));
    (one.variant, one.round, one.status) = (Some(0), Some(1), Some(200));
    (one.reuse, one.end) = (Some(Reuse::Fresh), Nanos(MS));
    tally.record(Event::Exchange(&one));
    let facts = ScenarioFacts::new(&run(), &tally, &[]);
    assert!(facts.clients.is_none());
    assert!(!passes(&facts, "avoidable == 0"));
    assert_eq!(facts.caveats[0].id, "clients-unknown");
}

#[test]
fn a_machine_that_others_use_is_the_limit_and_not_the_server() {
    let busy = |busy| {
        Some(MachineUse {
            nanos: 10_000 * MS,
            cpus: 2,
            busy: Some(busy),
            ..MachineUse::default()
        })
    };
    let is_limit = |facts: &ScenarioFacts| {
        let mut caveats = facts.caveats.iter();
        caveats.any(|one| one.id == "machine-saturated")
    };
    let late = |one: &mut Exchange, _| {
        one.scheduling_error = Some(Span::new(one.at, one.at.after(20 * MS)));
    };
    let full = facts_on(busy(19_900 * MS), late);
    assert!(is_limit(&full), "{:?}", full.caveats);
    // a client that is on time shows no limit
    let on_time = facts_on(busy(19_900 * MS), |_, _| {});
    assert!(!is_limit(&on_time), "{:?}", on_time.caveats);
    assert!(on_time.caveats.iter().any(|one| one.id == "machine-busy"));
    assert_eq!(full.machine.unwrap().busy, Some(0.995));
    assert!(!is_limit(&facts_on(busy(5_000 * MS), late)));
    assert!(!is_limit(&facts(|_, _| {})));
}
