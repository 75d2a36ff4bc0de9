//! Invocations and connections made by hand, and what must be found in them.

use super::*;
use intact_document::Facts;
use intact_document::requirement::Requirement;
use intact_ledger::{
    Close, CloseKind, ClosePoint, Closed, CodeStack, Connection, ConnectionBytes, ConnectionId,
    Evidence, Exchange, Failure, Fingerprint, InvocationOutcome, Nanos, Origin, Outcome, Producer,
    Reuse, Scheme, Side, Span, StackFrame, StackId, Vantage, Variant,
};

const MS: u64 = 1_000_000;

fn run(names: &[&str]) -> Run {
    let start = jiff::Timestamp::UNIX_EPOCH;
    let mut run = Run::new(Producer::Lambda, "0", Vantage::OnPath, start, 1, &[])
        .with_evidence(Evidence::ALL);
    run.variants = names
        .iter()
        .map(|name| Variant {
            name: (*name).to_owned(),
            axes: BTreeMap::new(),
        })
        .collect();
    run
}

fn at(ms: u64) -> Nanos {
    Nanos(ms * MS)
}

/// An invocation of environment `environment` from one moment to another.
fn invocation(variant: u32, environment: u64, from: u64, to: u64) -> Invocation {
    Invocation {
        id: from,
        variant: Some(variant),
        round: Some(environment as u32),
        environment,
        init: None,
        frozen: None,
        rest: None,
        at: at(from),
        end: at(to),
        fate: InvocationOutcome::Answered(1),
        duplicate_response: 0,
    }
}

fn facts(names: &[&str], invocations: &[Invocation]) -> LambdaFacts {
    let mut invoked = Invocations::new(&run(names));
    for one in invocations {
        invoked.record(Event::Invocation(one));
    }
    invoked.facts()
}

#[test]
fn cold_calls_are_kept_out_of_what_is_compared() {
    let mut all = Vec::new();
    for round in 1..=8 {
        for (variant, ms) in [(0, 90 + round), (1, 30)] {
            let environment = round * 2 + u64::from(variant);
            let from = environment * 10_000;
            let mut cold = invocation(variant, environment, from, from + 1000);
            cold.init = Some(Span::new(at(from - 500), at(from)));
            let mut warm = invocation(variant, environment, from + 1000, from + 1000 + ms);
            (cold.round, warm.round) = (Some(round as u32), Some(round as u32));
            all.extend([cold, warm]);
        }
    }
    let facts = facts(&["off", "on"], &all);
    let saved = facts.comparisons[0].saved_ms.unwrap();
    assert!((saved.value - 64.5).abs() < 0.01, "{saved:?}");
    assert_eq!(facts.variants[0].cold_start_ms.value(), Some(1500.0));
    let first = &*facts.verdict[0].statement;
    assert!(first.starts_with("on saves 64.5 ms"), "{first}");
}

#[test]
fn what_fails_after_a_freeze_is_grouped_by_the_freeze() {
    let mut cold = invocation(0, 1, 10, 11);
    cold.init = Some(Span::new(at(0), at(10)));
    let mut late = invocation(0, 1, 3020, 3021);
    late.frozen = Some(Span::new(at(10), at(3020)));
    late.fate = InvocationOutcome::Error("Error: socket hang up".to_owned());
    let facts = facts(&["it"], &[cold, invocation(0, 1, 12, 13), late]);
    let kinds: Vec<(&str, u64)> = facts.variants[0]
        .kinds
        .iter()
        .map(|kind| (kind.name.as_str(), kind.failed))
        .collect();
    assert_eq!(kinds, [("cold", 0), ("warm", 0), ("frozen 3 s", 1)]);
    let words = "1 of 1 frozen 3 s invocations failed: error: Error: socket hang up";
    assert_eq!(&*facts.verdict[0].statement, words);
    assert_eq!((facts.counts.ok, facts.counts.failed["error"]), (2, 1));
}

#[test]
fn an_invocation_that_reached_its_limit_has_a_remedy() {
    let mut slow = invocation(0, 1, 0, 5);
    slow.fate = InvocationOutcome::Timeout;
    let sentence = facts(&["a"], &[slow]).verdict[0].statement.to_string();
    assert!(
        sentence.contains("failed: timeout; limit its requests"),
        "{sentence}"
    );
}

#[test]
fn few_rounds_give_no_interval() {
    let mut other = invocation(1, 2, 2, 3);
    other.round = Some(1);
    let facts = facts(&["a", "b"], &[invocation(0, 1, 0, 2), other]);
    assert!(facts.comparisons[0].saved_ms.is_none());
    assert!(facts.comparisons[0].no_interval_reason.is_some());
}

fn connection(id: u64, from: u64) -> Connection {
    let mut one = Connection::new(ConnectionId(id), at(from));
    one.variant = Some(0);
    one.environment = Some(1);
    one.origin = Some(Origin {
        scheme: Scheme::Http,
        host: "api.test".into(),
        port: 80,
    });
    one
}

fn exchange(connection: u64, from: u64, to: u64, outcome: Outcome) -> Exchange {
    let mut one = Exchange::new(from, at(from));
    one.connection = Some(ConnectionId(connection));
    one.variant = Some(0);
    one.end = at(to);
    one.reuse = Some(Reuse::Reused);
    one.outcome = outcome;
    one
}

fn closed(connection: u64, when: u64, by: Side, how: Option<CloseKind>) -> Closed {
    Closed {
        connection: ConnectionId(connection),
        variant: Some(0),
        round: None,
        close: Close {
            at: at(when),
            by: Some(by),
            how,
            other_end: None,
            announced_by: None,
            moment: Some(ClosePoint::Idle),
            exchanges: None,
            bytes: ConnectionBytes::default(),
            probes: intact_ledger::Probes::default(),
        },
    }
}

/// One connection, opened at 10 ms by an invocation from 5 to 20 ms; frozen from 30 to 3000; the
/// next from 3000 to 3100, after which its environment ends.
fn frozen(used: Option<Outcome>, end: Option<Closed>, fate: InvocationOutcome) -> LambdaFacts {
    let mut invoked = Invocations::new(&run(&["it"]));
    invoked.record(Event::Invocation(&invocation(0, 1, 5, 20)));
    invoked.record(Event::Opened(&connection(1, 10)));
    invoked.record(Event::Exchange(&exchange(1, 11, 19, Outcome::Ok)));
    if let Some(outcome) = used {
        invoked.record(Event::Exchange(&exchange(1, 3001, 3050, outcome)));
    }
    let end = end.unwrap_or_else(|| closed(1, 3200, Side::Client, Some(CloseKind::Fin)));
    invoked.record(Event::Closed(&end));
    let mut late = invocation(0, 1, 3000, 3100);
    late.frozen = Some(Span::new(at(30), at(3000)));
    late.fate = fate;
    invoked.record(Event::Invocation(&late));
    invoked.facts()
}

fn found_open(facts: &LambdaFacts) -> (Vec<FrozenConnection>, FreezeEffect) {
    let pause = facts.invocations[1].freeze.clone().unwrap();
    (pause.connection_states, pause.effect)
}

#[test]
fn connections_that_a_freeze_found_open_are_counted_by_state() {
    let failed = || InvocationOutcome::Error("ECONNRESET".to_owned());
    let stale = Some(Outcome::Failed(Failure::Stale));
    let fin = |ms| Some(closed(1, ms, Side::Server, Some(CloseKind::Fin)));
    let reset = Some(closed(1, 3031, Side::Server, Some(CloseKind::Rst)));
    let answered = || InvocationOutcome::Answered(1);
    let ok = Some(Outcome::Ok);
    for (facts, case, saw) in [
        (
            frozen(ok, None, answered()),
            FrozenConnection::Kept,
            FreezeEffect::Nothing,
        ),
        (
            frozen(None, None, answered()),
            FrozenConnection::Unused,
            FreezeEffect::Nothing,
        ),
        (
            frozen(stale, fin(2000), failed()),
            FrozenConnection::FinSeen,
            FreezeEffect::Failed,
        ),
        (
            frozen(None, fin(2000), answered()),
            FrozenConnection::FinSeen,
            FreezeEffect::Recovered,
        ),
        (
            frozen(None, fin(3001), answered()),
            FrozenConnection::FinLate,
            FreezeEffect::Recovered,
        ),
        (
            frozen(stale, reset, failed()),
            FrozenConnection::Reset,
            FreezeEffect::Failed,
        ),
        (
            frozen(
                Some(Outcome::Failed(Failure::Aborted)),
                None,
                InvocationOutcome::Timeout,
            ),
            FrozenConnection::BlackHole,
            FreezeEffect::Failed,
        ),
    ] {
        assert_eq!(found_open(&facts), (vec![case], saw));
    }
}

#[test]
fn an_invocation_that_failed_on_a_dead_connection_fails_the_gates() {
    let failed = || InvocationOutcome::Error("ECONNRESET".to_owned());
    let stale = Some(Outcome::Failed(Failure::Stale));
    let fin = || Some(closed(1, 2000, Side::Server, Some(CloseKind::Fin)));
    let met = |facts: &LambdaFacts, expression: &str| {
        let requirement: Requirement = expression.parse().unwrap();
        requirement.evaluate(facts).passed()
    };
    for (used, dead_use) in [(None, DeadUse::Unsent), (stale, DeadUse::Sent)] {
        let facts = frozen(used, fin(), failed());
        let freeze = facts.invocations[1].freeze.as_ref().unwrap();
        assert_eq!(freeze.dead_use, Some(dead_use));
        let finding = &facts.findings[0];
        assert_eq!(finding.rule, "died-in-freeze");
        assert_eq!(finding.severity, intact_document::Severity::Error);
        for expression in [
            "stale == 0",
            "failed == 0",
            "failed-share < 1%",
            "errors == 0",
        ] {
            assert!(!met(&facts, expression), "{dead_use:?}: {expression}");
        }
        let remedies = facts.findings.iter().map(|one| one.fix.to_string());
        assert!(remedies.into_iter().all(|one| !one.contains("Raise")));
    }
    // a client that goes on with a new connection, and one that has no request to send
    let answered = frozen(None, fin(), InvocationOutcome::Answered(1));
    for expression in ["stale == 0", "failed == 0", "errors == 0"] {
        assert!(met(&answered, expression), "{expression}");
    }
}

#[test]
fn a_failure_of_the_function_itself_is_not_that_of_a_connection() {
    let mut invoked = Invocations::new(&run(&["it"]));
    invoked.record(Event::Opened(&connection(1, 10)));
    invoked.record(Event::Exchange(&exchange(1, 11, 20, Outcome::Ok)));
    let end = closed(1, 2000, Side::Server, Some(CloseKind::Fin));
    invoked.record(Event::Closed(&end));
    invoked.record(Event::Invocation(&invocation(0, 1, 5, 25)));
    // the client opens another one, and its request succeeds
    invoked.record(Event::Opened(&connection(2, 3010)));
    invoked.record(Event::Exchange(&exchange(2, 3011, 3050, Outcome::Ok)));
    let mut late = invocation(0, 1, 3000, 3100);
    late.frozen = Some(Span::new(at(30), at(3000)));
    late.fate = InvocationOutcome::Error("no such order".to_owned());
    invoked.record(Event::Invocation(&late));
    let facts = invoked.facts();
    let freeze = facts.invocations[1].freeze.as_ref().unwrap();
    assert_eq!(
        (freeze.effect, freeze.dead_use),
        (FreezeEffect::Failed, None)
    );
    let mut rules = facts.findings.iter().map(|one| one.rule);
    assert!(rules.all(|rule| rule != "died-in-freeze"));
}

#[test]
fn what_an_environment_opens_belongs_to_the_invocation_during_which_it_does() {
    let mut invoked = Invocations::new(&run(&["it"]));
    let mut cold = invocation(0, 1, 100, 120);
    cold.init = Some(Span::new(at(10), at(100)));
    // rows of connections come late, and those of another environment are not its own
    invoked.record(Event::Invocation(&cold));
    invoked.record(Event::Invocation(&invocation(0, 1, 130, 150)));
    for (id, from, environment) in [(1, 20, 1), (2, 110, 1), (3, 135, 1), (4, 110, 2)] {
        let mut one = connection(id, from);
        one.environment = Some(environment);
        invoked.record(Event::Opened(&one));
    }
    let facts = invoked.facts();
    let counts: Vec<Option<u64>> = facts
        .invocations
        .iter()
        .map(|call| call.connections)
        .collect();
    assert_eq!(counts, [Some(2), Some(1)]);
}

#[test]
fn a_variant_that_sends_fewer_requests_saves_nothing() {
    let gate: Requirement = "variant=on: saved > 0ms".parse().unwrap();
    let facts = |without: u64| {
        let mut invoked = Invocations::new(&run(&["off", "on"]));
        for (variant, ms) in [(0, 90), (1, 30)] {
            for call in 0..20 {
                let environment = u64::from(variant) + 1;
                let from = environment * 100_000 + call * 1000;
                let mut one = invocation(variant, environment, from, from + ms + call % 3);
                one.round = Some(call as u32 / 2 + 1);
                if call >= without || variant == 0 {
                    let mut opened = connection(from, from + 1);
                    let mut sent = exchange(from, from + 1, from + 2, Outcome::Ok);
                    (opened.variant, opened.environment) = (Some(variant), Some(environment));
                    sent.variant = Some(variant);
                    invoked.record(Event::Opened(&opened));
                    invoked.record(Event::Exchange(&sent));
                }
                invoked.record(Event::Invocation(&one));
            }
        }
        invoked.facts()
    };
    let alike = facts(0);
    assert!(alike.comparisons[0].saved_ms.is_some());
    let held = |facts: &LambdaFacts| gate.evaluate(facts).passed();
    assert!(held(&alike), "{:?}", gate.evaluate(&alike));
    for without in [20, 4] {
        let fewer = facts(without);
        assert!(!held(&fewer), "{:?}", gate.evaluate(&fewer));
        assert!(
            fewer.verdict[0]
                .statement
                .contains("did not do the same work"),
            "{:?}",
            fewer.verdict
        );
    }
}

#[test]
fn connections_without_a_watcher_are_not_judged() {
    let mut invoked = Invocations::new(&run(&["it"]));
    invoked.record(Event::Caveat(&Caveat::new(
        CONNECTIONS_NOT_FOLLOWED,
        String::new(),
    )));
    invoked.record(Event::Invocation(&invocation(0, 1, 0, 2)));
    let facts = invoked.facts();
    assert!(facts.traffic.connections.opened.is_unknown());
    assert_eq!(facts.invocations[0].connections, None);
    assert!(facts.variants[0].sent.is_none());
    assert_eq!(
        facts.unobserved().reason().unwrap(),
        "its connections were not watched (--watch off)"
    );
}

#[test]
fn what_the_watcher_missed_bounds_the_findings_of_every_variant() {
    let mut invoked = Invocations::new(&run(&["it"]));
    let cut = Caveat::incomplete("watcher-cut", "the watcher was stopped");
    invoked.record(Event::Caveat(&cut));
    invoked.record(Event::Invocation(&invocation(0, 1, 0, 2)));
    let facts = invoked.facts();
    assert_eq!(facts.unobserved().reason().unwrap(), cut.message);
    for expression in ["findings == 0", "connections == 0"] {
        let requirement: Requirement = expression.parse().unwrap();
        assert!(!requirement.evaluate(&facts).passed(), "{expression}");
    }
}

#[test]
fn each_environment_needs_connections_of_its_own() {
    let mut invoked = Invocations::new(&run(&["it"]));
    for environment in 1..=5 {
        let from = environment * 100;
        invoked.record(Event::Invocation(&invocation(
            0,
            environment,
            from,
            from + 50,
        )));
        let mut one = connection(environment, from);
        one.environment = Some(environment);
        one.owner = Some(intact_ledger::Owner {
            pid: environment as u32,
            command: "node".into(),
        });
        invoked.record(Event::Opened(&one));
        let done = exchange(environment, from + 1, from + 20, Outcome::Ok);
        invoked.record(Event::Exchange(&done));
        let end = closed(environment, from + 60, Side::Client, Some(CloseKind::Fin));
        invoked.record(Event::Closed(&end));
    }
    let facts = invoked.facts();
    let sent = facts.variants[0].sent.as_ref().unwrap();
    let counts = [&sent.connections, &sent.avoidable].map(|count| count.value());
    assert_eq!(counts, [Some(5.0), Some(0.0)]);
    assert!(facts.findings.is_empty(), "{:?}", facts.findings);
    let is_avoidable = |sentence: &str| sentence.contains("would do");
    assert!(
        !facts.verdict.sentences().any(is_avoidable),
        "{:?}",
        facts.verdict
    );
}

#[test]
fn avoidable_connections_come_first_in_the_verdict() {
    let mut invoked = Invocations::new(&run(&["it"]));
    for call in 1..=5 {
        let from = call * 100;
        invoked.record(Event::Invocation(&invocation(0, 1, from, from + 50)));
        invoked.record(Event::Opened(&connection(call, from)));
        let mut sent = exchange(call, from + 1, from + 20, Outcome::Ok);
        sent.reuse = Some(Reuse::Fresh);
        invoked.record(Event::Exchange(&sent));
        let end = closed(call, from + 40, Side::Client, Some(CloseKind::Fin));
        invoked.record(Event::Closed(&end));
    }
    let facts = invoked.facts();
    assert!(
        facts.verdict[0]
            .statement
            .contains("5 connections were opened where 1 would do"),
        "{:?}",
        facts.verdict
    );
}

#[test]
fn the_same_request_in_the_next_invocation_is_no_retry() {
    let retries = |next: u64, environment: u64| {
        let mut invoked = Invocations::new(&run(&["it"]));
        let ask = |connection, from, to, outcome| {
            let mut one = exchange(connection, from, to, outcome);
            one.fingerprint = Fingerprint::try_from("0".repeat(32)).ok();
            one
        };
        let mut second = connection(2, 5000);
        second.environment = Some(environment);
        invoked.record(Event::Opened(&connection(1, 10)));
        let failed = ask(1, 3001, 3050, Outcome::Failed(Failure::Stale));
        invoked.record(Event::Exchange(&failed));
        invoked.record(Event::Opened(&second));
        invoked.record(Event::Exchange(&ask(2, 5000, 5100, Outcome::Ok)));
        // invocations are reported when they have ended
        invoked.record(Event::Invocation(&invocation(0, 1, 3000, 3100)));
        invoked.record(Event::Invocation(&invocation(0, environment, next, 6000)));
        let findings = invoked.facts().findings;
        findings
            .iter()
            .filter(|one| one.rule == "retried-request")
            .count()
    };
    assert_eq!(retries(4900, 1), 0, "an invocation began in between");
    assert_eq!(retries(5500, 1), 1, "both are of one invocation");
    assert_eq!(
        retries(5500, 2),
        0,
        "another environment is another process"
    );
}

#[test]
fn a_finding_names_the_places_of_all_environments() {
    let mut invoked = Invocations::new(&run(&["it"]));
    for environment in 1..=2 {
        let id = StackId(environment);
        invoked.record(Event::Stack(&CodeStack {
            id,
            frames: vec![StackFrame {
                function: "handler".into(),
                file: Some("function.js".into()),
                line: Some(7),
            }],
            own: Some(0),
        }));
        for call in 0..5 {
            let from = environment * 10_000 + call * 1000;
            let mut one = connection(from, from + 1);
            (one.variant, one.environment) = (Some(0), Some(environment));
            one.stack = Some(id);
            let mut sent = exchange(from, from + 1, from + 2, Outcome::Ok);
            sent.variant = Some(0);
            invoked.record(Event::Opened(&one));
            invoked.record(Event::Exchange(&sent));
            invoked.record(Event::Invocation(&invocation(
                0,
                environment,
                from,
                from + 9,
            )));
        }
    }
    let facts = invoked.facts();
    let findings = facts.variants[0]
        .observed
        .iter()
        .flat_map(|one| &one.findings);
    let places: Vec<_> = findings.flat_map(|one| &one.places).collect();
    assert!(!places.is_empty(), "{:?}", facts.variants[0].observed);
    assert!(
        places
            .iter()
            .all(|one| (&*one.file, one.line) == ("function.js", 7))
    );
}
