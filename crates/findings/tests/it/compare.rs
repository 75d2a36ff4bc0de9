//! Two programs over interleaved rounds: the old one opens a connection for each request, the new one keeps one.

use intact_findings::compare::{
    CompareFacts, Comparison, CountStatistic, FindingState, TimeStatistic,
};
use intact_findings::requirement::{MetricSource, Requirement};
use intact_ledger::{
    Close, CloseKind, ClosePoint, Closed, Connection, ConnectionBytes, ConnectionId, Event,
    Exchange, Nanos, Origin, Probes, Producer, Reuse, Round, Run, Scheme, Setup, Side, Sink, Span,
    Vantage, Variant,
};

const MS: u64 = 1_000_000;

fn run() -> Run {
    let started = "2026-01-01T00:00:00Z".parse().unwrap();
    let mut run = Run::new(Producer::Compare, "0", Vantage::OnPath, started, 1, &[]);
    run.variants = ["old", "new"]
        .map(|name| Variant {
            name: name.to_owned(),
            axes: std::collections::BTreeMap::new(),
        })
        .to_vec();
    run
}

/// A round of a program: ten requests of 10 ms, each with 30 ms of setup where it opens a connection.
fn round(contest: &mut Comparison, numbers: &mut u64, variant: u32, round: u32) {
    let mut now = u64::from(round) * 10_000;
    let started = now;
    for nth in 0..10u64 {
        let fresh = variant == 0 || nth == 0;
        if fresh {
            *numbers += 1;
            let mut one = Connection::new(ConnectionId(*numbers), Nanos(now * MS));
            one.variant = Some(variant);
            one.round = Some(round);
            one.origin = Some(Origin {
                scheme: Scheme::Http,
                host: "api.example".into(),
                port: 80,
            });
            one.setup = Setup {
                connect: Some(Span::new(Nanos(now * MS), Nanos((now + 30) * MS))),
                ..Setup::default()
            };
            contest.record(Event::Opened(&one));
        }
        let took = if fresh { 40 } else { 10 };
        let mut exchange = Exchange::new(nth, Nanos(now * MS));
        exchange.variant = Some(variant);
        exchange.round = Some(round);
        exchange.connection = Some(ConnectionId(*numbers));
        exchange.reuse = Some(if fresh { Reuse::Fresh } else { Reuse::Reused });
        exchange.status = Some(200);
        now += took;
        exchange.end = Nanos(now * MS);
        contest.record(Event::Exchange(&exchange));
        if variant == 0 || nth == 9 {
            contest.record(Event::Closed(&Closed {
                connection: ConnectionId(*numbers),
                variant: Some(variant),
                round: Some(round),
                close: Close {
                    at: Nanos((now + 1) * MS),
                    by: Some(Side::Client),
                    how: Some(CloseKind::Fin),
                    announced_by: None,
                    moment: Some(ClosePoint::AfterExchange),
                    exchanges: Some(if variant == 0 { 1 } else { 10 }),
                    bytes: ConnectionBytes::default(),
                    probes: Probes::default(),
                },
            }));
        }
        now += 2;
    }
    contest.record(Event::Round(&Round {
        variant,
        round,
        // a little of everything differs from round to round
        span: Span::new(
            Nanos(started * MS),
            Nanos((now + u64::from(round * 3 % 7)) * MS),
        ),
        client_cpu: Some((20 + u64::from(round % 3)) * MS),
        client_threads: None,
        server_cpu: None,
    }));
}

fn facts(rounds: u32) -> CompareFacts {
    let mut contest = Comparison::new(&run());
    let mut numbers = 0;
    // round 0 warms up
    for nth in 0..=rounds {
        for variant in 0..2 {
            round(&mut contest, &mut numbers, variant, nth);
        }
    }
    contest.facts()
}

#[test]
fn the_round_is_the_unit_and_warm_up_is_left_out() {
    let facts = facts(10);
    assert_eq!(facts.rounds, 10);
    let [old, new] = &facts.variants[..] else {
        panic!()
    };
    assert_eq!((old.connections.opened, new.connections.opened), (100, 10));
    // every run needs one of its own
    assert_eq!((old.avoidable, new.avoidable), (90, 0));
    assert_eq!((old.reuse, new.reuse), (Some(0.0), Some(0.9)));
    let wall = facts
        .comparisons
        .iter()
        .find(|one| one.statistic == TimeStatistic::Wall)
        .unwrap();
    let saved = wall.saved_ms.unwrap();
    assert!(saved.covers(270.0), "{saved:?}");
    assert_eq!(wall.significant, Some(true));
    let cpu = facts
        .comparisons
        .iter()
        .find(|one| one.statistic == TimeStatistic::Cpu)
        .unwrap();
    assert_eq!(cpu.significant, Some(false));
    let connections = facts
        .counts
        .iter()
        .find(|one| one.count == CountStatistic::Connections)
        .unwrap();
    assert_eq!((connections.a_mean, connections.b_mean), (10.0, 1.0));
}

#[test]
fn a_finding_that_the_new_program_no_longer_has_is_gone() {
    let facts = facts(10);
    let gone: Vec<&str> = facts
        .changes
        .iter()
        .filter(|change| change.fate == FindingState::Gone)
        .map(|change| change.finding.rule)
        .collect();
    assert_eq!(gone, ["new-connection-per-request"]);
    assert!(
        facts.verdict[0].starts_with("new takes 6"),
        "{:?}",
        facts.verdict
    );
    assert!(
        facts.verdict[1].contains("connections 10 -> 1"),
        "{:?}",
        facts.verdict
    );
}

#[test]
fn few_rounds_give_no_interval_and_say_so() {
    let facts = facts(3);
    let wall = &facts.comparisons[0];
    assert!(wall.saved_ms.is_none() && wall.significant.is_none());
    assert!(
        facts.verdict[0].contains("too few for an interval"),
        "{:?}",
        facts.verdict
    );
}

#[test]
fn a_round_that_was_cut_off_is_left_out_and_said() {
    let run = run();
    let mut contest = Comparison::new(&run);
    let mut numbers = 0;
    round(&mut contest, &mut numbers, 0, 1);
    let mut one = Connection::new(ConnectionId(99), Nanos(0));
    one.variant = Some(1);
    contest.record(Event::Opened(&one));
    let facts = contest.facts();
    assert_eq!(facts.rounds, 0);
    assert!(facts.caveats.iter().any(|caveat| caveat.id == "cut-round"));
    assert!(facts.verdict[0].contains("nothing to compare"));
}

#[test]
fn requirements_are_about_the_programs_beside_the_baseline_unless_they_name_one() {
    let facts = facts(10);
    let holds = |expression: &str| {
        let requirement: Requirement = expression.parse().unwrap();
        requirement.evaluate(&facts).passed()
    };
    assert!(holds("connections == 1"));
    assert!(holds("variant=old: connections == 10"));
    assert!(holds("saved > 200ms"));
    assert!(!holds("variant=old: saved > 0"));
    assert!(holds("findings.new-connection-per-request == 0"));
    assert!(!holds(
        "variant=old: findings.new-connection-per-request == 0"
    ));
    assert!(!holds("p50 < 1s"), "what is not measured never passes");
}

/// Live rounds of two programs, whose events `events` gives.
fn live(mut events: impl FnMut(&mut Comparison, u32, u32)) -> CompareFacts {
    let mut comparison = Comparison::new(&run());
    for round in 1..=2 {
        for variant in 0..2 {
            events(&mut comparison, variant, round);
            comparison.record(Event::Round(&Round {
                variant,
                round,
                span: Span::new(Nanos(0), Nanos(MS)),
                client_cpu: None,
                client_threads: None,
                server_cpu: None,
            }));
        }
    }
    comparison.facts()
}

#[test]
fn opaque_connections_of_live_rounds_are_missing_traffic() {
    let facts = live(|comparison, variant, round| {
        let id = u64::from(variant * 10 + round);
        let mut one = Connection::new(ConnectionId(id), Nanos(0));
        one.variant = Some(variant);
        one.round = Some(round);
        comparison.record(Event::Opened(&one));
    });
    assert!(facts.findings.is_empty());
    assert_eq!(
        facts.unobserved().reason().unwrap(),
        "the requests on 4 connections cannot be seen"
    );
}

#[test]
fn requests_of_live_rounds_without_a_connection_are_missing_traffic() {
    let facts = live(|comparison, variant, round| {
        let mut one = Exchange::new(u64::from(variant * 10 + round), Nanos(0));
        one.variant = Some(variant);
        one.round = Some(round);
        one.status = Some(200);
        one.end = Nanos(MS);
        comparison.record(Event::Exchange(&one));
    });
    assert!(facts.findings.is_empty());
    assert_eq!(
        facts.unobserved().reason().unwrap(),
        "the input does not say which connection carried a request"
    );
}

#[test]
fn rounds_that_were_observed_miss_nothing() {
    assert_eq!(facts(3).unobserved().reason(), None);
}
