//! Two programs over interleaved rounds: the old one opens a connection for each request, the new
//! one keeps one.

use intact_document::Facts;
use intact_document::requirement::{DocumentKind, FIGURES, Requirement, SELECTORS};
use intact_experiments::compare::{
    COMMIT_AXIS, CompareFacts, Comparison, CountStatistic, FindingState, TimeStatistic, Verdict,
};
use intact_findings::check_requirement;
use intact_ledger::{
    Close, CloseKind, ClosePoint, Closed, Connection, ConnectionBytes, ConnectionId, DialFailure,
    Event, Evidence, Exchange, Failure, Handshake, Nanos, Origin, Probes, Producer, Reuse, Round,
    Run, Scheme, Setup, SetupPhase, Side, Sink, Span, Tls, Vantage, Variant,
};
use intact_traffic::{ObservedFacts, TrafficAnalysis};

const MS: u64 = 1_000_000;

fn run() -> Run {
    let started = "2026-01-01T00:00:00Z".parse().unwrap();
    let mut run = Run::new(Producer::Compare, "0", Vantage::OnPath, started, 1, &[])
        .with_evidence(Evidence::ALL);
    run.variants = ["old", "new"]
        .map(|name| Variant {
            name: name.to_owned(),
            axes: std::collections::BTreeMap::new(),
        })
        .to_vec();
    run
}

fn origin() -> Origin {
    Origin {
        scheme: Scheme::Http,
        host: "api.example".into(),
        port: 80,
    }
}

/// A round of a program: ten requests of 10 ms, each with 30 ms of setup where it opens a
/// connection.
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
            one.origin = Some(origin());
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
                    other_end: None,
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
        client_cpu: Some((20 + u64::from(round % 3)) * MS),
        ..Round::new(
            variant,
            round,
            // a little of everything differs from round to round
            Span::new(
                Nanos(started * MS),
                Nanos((now + u64::from(round * 3 % 7)) * MS),
            ),
        )
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

/// Found by fuzzing: the page of such a ledger panicked.
#[test]
fn a_ledger_without_programs_compares_nothing() {
    let mut run = run();
    run.variants.clear();
    let facts = Comparison::new(&run).facts();
    assert!(
        facts.verdict[0].contains("nothing to compare"),
        "{:?}",
        facts.verdict
    );
    assert!(facts.variants.is_empty());
}

#[test]
fn the_round_is_the_unit_and_warm_up_is_left_out() {
    let facts = facts(10);
    assert_eq!(facts.rounds, 10);
    let [old, new] = &facts.variants[..] else {
        panic!()
    };
    assert_eq!(
        (
            old.counted.counts.connections.opened,
            new.counted.counts.connections.opened
        ),
        (100, 10)
    );
    // every run needs one of its own
    assert_eq!((old.counted.avoidable, new.counted.avoidable), (90, 0));
    assert_eq!(
        (
            old.observed.traffic.reuse.value(),
            new.observed.traffic.reuse.value()
        ),
        (Some(0.0), Some(0.9))
    );
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
    assert_eq!(
        facts.verdict[..],
        [
            "new against old: 90 % fewer connections (10 → 1), 64 % less wall time (423 ms → 153 ms)",
            "No difference was shown in CPU time (21.0 ms each)",
            "In each run also: avoidable connections 9 → 0",
            "Gone with new: new-connection-per-request",
        ]
    );
}

/// Ten rounds of programs that `each` describes: requests, how many of them have status 500,
/// connections, wall time in ms.
fn programs(each: [(u64, u64, u64, u64); 2]) -> CompareFacts {
    rounds_of(&run(), each)
}

fn rounds_of(run: &Run, each: [(u64, u64, u64, u64); 2]) -> CompareFacts {
    let mut comparison = Comparison::new(run);
    let mut ids = 0;
    for number in 1..=10 {
        for (variant, (requests, errors, connections, wall)) in (0..2).zip(each) {
            for nth in 0..requests {
                ids += 1;
                let opens = nth < connections;
                let id = ConnectionId(if opens { ids } else { ids - nth });
                if opens {
                    let mut one = Connection::new(id, Nanos(nth * MS));
                    one.variant = Some(variant);
                    one.round = Some(number);
                    one.origin = Some(origin());
                    comparison.record(Event::Opened(&one));
                }
                let mut one = Exchange::new(ids, Nanos(nth * MS));
                one.variant = Some(variant);
                one.round = Some(number);
                one.connection = Some(id);
                one.reuse = Some(if opens { Reuse::Fresh } else { Reuse::Reused });
                one.status = Some(if nth < errors { 500 } else { 200 });
                one.end = Nanos((nth + 1) * MS);
                comparison.record(Event::Exchange(&one));
            }
            comparison.record(Event::Round(&Round::new(
                variant,
                number,
                Span::new(Nanos(0), Nanos((wall + u64::from(number % 3)) * MS)),
            )));
        }
    }
    comparison.facts()
}

#[test]
fn a_change_is_answered_in_one_sentence() {
    let mut run = run();
    run.varied = vec![COMMIT_AXIS.to_owned()];
    for (each, verdict, words) in [
        (
            [(20, 0, 20, 100), (20, 0, 1, 100)],
            Verdict::Yes,
            "19 of 19 avoidable",
        ),
        (
            [(20, 0, 20, 100), (20, 0, 20, 50)],
            Verdict::No,
            "19 of 19 avoidable",
        ),
        (
            [(20, 0, 1, 100), (20, 0, 20, 100)],
            Verdict::No,
            ": new-client-per-request at http://api.example",
        ),
        (
            [(20, 0, 20, 100), (20, 20, 1, 9)],
            Verdict::No,
            "failed requests 0 of 200 → 200 of 200",
        ),
        (
            [(20, 0, 1, 100), (20, 0, 1, 100)],
            Verdict::NotShown,
            "opens no avoidable connection",
        ),
        (
            [(20, 0, 20, 100), (2, 0, 1, 10)],
            Verdict::NotShown,
            "not do the same work",
        ),
        // what does more opens more
        (
            [(20, 0, 20, 100), (40, 0, 40, 100)],
            Verdict::NotShown,
            "the number of requests is 40 in new",
        ),
    ] {
        let facts = rounds_of(&run, each);
        let answer = &facts.answers[0];
        assert_eq!(answer.verdict, verdict, "{}", answer.sentence);
        assert!(answer.sentence.contains(words), "{}", answer.sentence);
        assert_eq!(facts.verdict[0], &*answer.sentence);
        let brought: Requirement = "brought == 0".parse().unwrap();
        let is_harmless =
            verdict == Verdict::Yes || answer.brought.is_empty() && each[1].0 >= each[0].0;
        assert_eq!(brought.evaluate(&facts).passed(), is_harmless, "{words}");
    }
    assert!(
        programs([(20, 0, 20, 100), (20, 0, 1, 100)])
            .answers
            .is_empty()
    );
}

/// A test starts its server on any free port: each round has another one.
#[test]
fn a_finding_is_the_same_on_another_port_of_this_machine() {
    let facts = live(|comparison, variant, round| {
        for nth in 0..if variant == 0 { 6 } else { 1 } {
            let number = u64::from(variant) * 1000 + u64::from(round) * 10 + nth;
            let mut one = Connection::new(ConnectionId(number), Nanos(nth * MS));
            (one.variant, one.round) = (Some(variant), Some(round));
            one.origin = Some(Origin {
                scheme: Scheme::Http,
                host: "127.0.0.1".into(),
                port: 40_000 + (variant * 100 + round) as u16,
            });
            comparison.record(Event::Opened(&one));
            for further in 0..if variant == 0 { 1 } else { 6 } {
                let at = (nth + further) * MS;
                let mut exchange = Exchange::new(number * 10 + further, Nanos(at));
                (exchange.variant, exchange.round) = (Some(variant), Some(round));
                exchange.connection = Some(ConnectionId(number));
                exchange.reuse = Some(if further == 0 {
                    Reuse::Fresh
                } else {
                    Reuse::Reused
                });
                exchange.status = Some(200);
                exchange.end = Nanos(at + MS / 2);
                comparison.record(Event::Exchange(&exchange));
            }
        }
    });
    let fates: Vec<FindingState> = facts.changes.iter().map(|one| one.fate).collect();
    assert_eq!(fates, [FindingState::Gone], "{:#?}", facts.changes);
}

#[test]
fn fewer_connections_are_the_headline_where_wall_time_shows_no_difference() {
    let facts = programs([(20, 0, 20, 100), (20, 0, 2, 100)]);
    let outcome = &facts.outcomes[0];
    let shown: Vec<&str> = outcome.shown().map(|one| one.name()).collect();
    let not_shown: Vec<&str> = outcome.not_shown().map(|one| one.name()).collect();
    assert_eq!((shown, not_shown), (vec!["connections"], vec!["wall time"]));
    assert_eq!(outcome.is_less(), Some(true));
    assert_eq!(
        facts.verdict[..2],
        [
            "new against old: 90 % fewer connections (20 → 2)",
            "No difference was shown in wall time (101 ms each)",
        ]
    );
}

#[test]
fn more_is_a_multiple_and_never_a_negative_number() {
    let facts = programs([(100, 0, 1, 100), (100, 0, 100, 400)]);
    assert_eq!(
        facts.verdict[0],
        "new against old: 100 times the connections (1 → 100), 4 times the wall time (101 ms → 401 ms)"
    );
    assert_eq!(facts.outcomes[0].is_less(), Some(false));
}

#[test]
fn a_program_whose_responses_are_errors_is_no_improvement() {
    let facts = programs([(20, 0, 20, 100), (20, 20, 1, 10)]);
    assert_eq!(facts.outcomes[0].is_less(), None);
    assert!(
        facts.verdict[0].contains("every response was 4xx or 5xx"),
        "{:?}",
        facts.verdict
    );
    let saved: Requirement = "saved > 0ms".parse().unwrap();
    assert!(!saved.evaluate(&facts).passed());
    let changes = facts.changes.iter().map(|change| change.fate);
    assert!(changes.clone().count() > 0);
    assert!(changes.clone().all(|fate| fate == FindingState::NotTested));
    // a part of the requests, or fewer of them
    for (work, words) in [
        ((20, 10, 1, 10), "50 % of new's requests and 0 % of old's"),
        (
            (10, 0, 1, 10),
            "the number of requests is 10 in new and 20 in old",
        ),
    ] {
        let facts = programs([(20, 0, 20, 100), work]);
        assert_eq!(facts.outcomes[0].is_less(), None);
        assert!(facts.verdict[0].contains(words), "{:?}", facts.verdict);
        assert!(!saved.evaluate(&facts).passed());
    }
}

#[test]
fn a_program_that_does_less_saves_nothing_and_proves_no_finding_gone() {
    let passes = |facts: &CompareFacts, expression: &str| {
        let requirement: Requirement = expression.parse().unwrap();
        requirement.evaluate(facts).passed()
    };
    let facts = programs([(20, 0, 20, 100), (2, 0, 2, 10)]);
    assert!(!passes(&facts, "saved > 0ms"));
    assert!(
        facts
            .changes
            .iter()
            .all(|one| one.fate == FindingState::NotTested)
    );
    assert!(passes(&facts, "connections <= 4"));
    // none at all is no result
    let facts = programs([(20, 0, 20, 100), (0, 0, 0, 10)]);
    for expression in [
        "connections <= 4",
        "avoidable == 0",
        "failed == 0",
        "saved > 0ms",
    ] {
        assert!(!passes(&facts, expression), "{expression}");
    }
    assert!(passes(&facts, "variant=old: connections == 20"));
}

#[test]
fn a_program_that_reaches_no_server_passes_no_gate() {
    let facts = live(|comparison, variant, round| {
        let mut one = Connection::new(ConnectionId(u64::from(variant * 10 + round)), Nanos(0));
        one.variant = Some(variant);
        one.round = Some(round);
        one.origin = Some(origin());
        one.failed = (variant == 1).then_some(DialFailure {
            phase: SetupPhase::Connect,
            kind: Failure::Refused,
            detail: None,
        });
        comparison.record(Event::Opened(&one));
    });
    for expression in ["avoidable == 0", "connections <= 1", "saved-share > -1"] {
        let requirement: Requirement = expression.parse().unwrap();
        assert!(!requirement.evaluate(&facts).passed(), "{expression}");
    }
    let sentences: Vec<&str> = facts.verdict.sentences().collect();
    assert!(
        sentences[0].starts_with("Failed connection attempts: 0 of "),
        "{sentences:?}"
    );
    assert_eq!(
        sentences[1],
        "The programs did not do the same work: new has no success: no connection could be opened"
    );
    assert_eq!(
        facts.unobserved().reason().unwrap(),
        "new: no connection could be opened"
    );
}

/// TLS connections of one run, opened at these milliseconds.
fn tls_connections(comparison: &mut Comparison, variant: u32, round: u32, opened: &[u64]) {
    for (nth, &at) in (0..).zip(opened) {
        let mut one = Connection::new(
            ConnectionId(u64::from(round * 100 + variant * 50) + nth),
            Nanos(at * MS),
        );
        one.variant = Some(variant);
        one.round = Some(round);
        one.origin = Some(origin());
        one.tls = Some(Tls {
            handshake: Some(Handshake::Full),
            ..Tls::default()
        });
        one.setup.ssl = Some(Span::new(Nanos((at + 1) * MS), Nanos((at + 3) * MS)));
        comparison.record(Event::Opened(&one));
    }
}

#[test]
fn connections_that_open_together_have_no_session_to_resume() {
    let facts = live(|comparison, variant, round| {
        let together = [0; 12];
        let in_turn: Vec<u64> = (0..12).map(|nth| nth * 10).collect();
        let opened = if variant == 0 {
            &in_turn[..]
        } else {
            &together
        };
        tls_connections(comparison, variant, round, opened);
    });
    let has = |at: usize| {
        let mut findings = facts.variants[at].findings.iter();
        findings.any(|one| one.finding.rule == "tls-never-resumed")
    };
    assert!(has(0) && !has(1), "{:?}", facts.variants[1].findings);
}

#[test]
fn a_destination_that_is_no_longer_called_proves_no_finding_gone() {
    let facts = live(|comparison, variant, round| {
        if variant == 0 {
            let in_turn: Vec<u64> = (0..12).map(|nth| nth * 10).collect();
            tls_connections(comparison, variant, round, &in_turn);
        }
    });
    let [change] = &facts.changes[..] else {
        panic!("{:?}", facts.changes)
    };
    assert_eq!(change.fate, FindingState::NotTested);
    assert_eq!(change.not_tested.as_deref(), Some("new does not call it"));
    assert!(
        facts
            .verdict
            .iter()
            .any(|claim| *claim == "Not tested with new: tls-never-resumed"),
        "{:?}",
        facts.verdict
    );
}

#[test]
fn every_metric_of_compare_has_a_value_and_no_other_has() {
    let facts = facts(10);
    for entry in FIGURES
        .iter()
        // `--like` names the production ledger, and these rounds have no TLS
        .filter(|entry| {
            !["findings.<rule>", "unlike", "brought", "resumed-share"].contains(&entry.name)
        })
    {
        let name = entry
            .name
            .replace("<kind>", "refused")
            .replace("<code>", "2xx");
        let requirement: Requirement = format!("{name} >= 0").parse().unwrap();
        let listed = check_requirement(&requirement, DocumentKind::Compare).is_ok();
        let subjects = facts.subjects();
        let mut readings = subjects.iter().map(|one| one.readings.get(&name));
        assert_eq!(readings.any(|one| !one.is_unknown()), listed, "{name}");
    }
    for selector in SELECTORS {
        let found = facts.subjects().iter().any(|subject| {
            let mut labels = subject.labels.iter();
            labels.any(|(key, _)| *key == selector.key)
        });
        assert_eq!(
            found,
            selector.documents.contains(&DocumentKind::Compare),
            "{}",
            selector.key
        );
    }
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
fn an_experiment_without_a_completed_round_is_no_pair_of_stored_ledgers() {
    assert!(Comparison::new(&run()).facts().is_experiment);
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
    // the baseline's round has no partner, so it is in no figure either
    assert_eq!(facts.variants[0].rounds, []);
    assert_eq!(facts.variants[0].counted.counts.requests.total, 0);
}

#[test]
fn requirements_are_about_all_programs_but_the_baseline_unless_they_name_one() {
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
            comparison.record(Event::Round(&Round::new(
                variant,
                round,
                Span::new(Nanos(0), Nanos(MS)),
            )));
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

#[test]
fn stored_ledgers_are_described_and_none_is_called_better() {
    let run = run();
    let mut comparison = Comparison::new(&run);
    for (variant, connections) in [(0, 20), (1, 1)] {
        let observed = observed(connections);
        comparison.take(variant, None, None, &observed);
    }
    let facts = comparison.facts();
    assert!(!facts.is_experiment);
    assert_eq!(facts.outcomes[0].is_less(), None);
    let words = facts.verdict.sentences().collect::<Vec<_>>().join("\n");
    assert!(
        words.starts_with("new does not behave like old: 95 % of its requests reused a connection, 0 % of old's; it opens 0.05 connections per request, old opens 1.00"),
        "{words}"
    );
    assert!(
        words.contains("Only in old: new-client-per-request\n"),
        "{words}"
    );
    assert!(words.contains("recorded separately"), "{words}");
    assert!(
        !words.contains("Gone") && !words.contains("fewer"),
        "{words}"
    );
}

/// Twenty requests of a stored ledger on this number of connections.
fn observed(connections: u64) -> ObservedFacts {
    let run = run();
    let mut traffic = TrafficAnalysis::new(&run);
    for nth in 0..20 {
        let opens = nth < connections;
        let id = ConnectionId(if opens { nth } else { 0 });
        if opens {
            let mut one = Connection::new(id, Nanos(nth * MS));
            one.origin = Some(origin());
            traffic.record(Event::Opened(&one));
        }
        let mut one = Exchange::new(nth, Nanos(nth * MS));
        one.connection = Some(id);
        one.reuse = Some(if opens { Reuse::Fresh } else { Reuse::Reused });
        one.status = Some(200);
        one.end = Nanos((nth + 1) * MS);
        traffic.record(Event::Exchange(&one));
    }
    traffic.facts()
}
