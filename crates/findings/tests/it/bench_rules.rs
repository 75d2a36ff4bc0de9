//! The findings of a bench: why connections end, and what reuse delays.

use intact_document::{Finding, Severity};
use intact_experiment::{AxisValues, ConnectionSettings, TlsChoice};
use intact_experiments::bench::BenchFacts;
use intact_ledger::{
    Close, CloseKind, ClosePoint, Closed, Connection, ConnectionBytes, ConnectionId, Event,
    Exchange, Failure, Nanos, Outcome, Probes, Producer, Protocol, Reuse, Round, Run, Side, Sink,
    Span, Tally, Vantage, Variant,
};

const MS: u64 = 1_000_000;

/// A run of one variant per value of keep-alive.
fn run(keepalive: &[bool]) -> Run {
    let started = "2026-01-01T00:00:00Z".parse().unwrap();
    let mut run = Run::new(Producer::Bench, "0", Vantage::Client, started, 1, &[]);
    run.varied = vec!["keepalive".to_owned()];
    for &keepalive in keepalive {
        run.variants.push(Variant {
            name: format!("keepalive={keepalive}"),
            axes: AxisValues {
                keepalive,
                http: Protocol::Http11,
                tls: TlsChoice::None,
                resume: false,
                early_data: None,
                dns: None,
                concurrency: 1,
                streams: 1,
                connection: ConnectionSettings::default(),
                open_loop: None,
            }
            .axes(),
        });
    }
    run
}

fn round(tally: &mut Tally, variant: u32) {
    tally.record(Event::Round(&Round::new(
        variant,
        1,
        Span::new(Nanos(0), Nanos(1_000 * MS)),
    )));
}

fn exchange(tally: &mut Tally, variant: u32, reuse: Reuse, took_ms: u64) {
    let mut one = Exchange::new(1, Nanos(0));
    one.variant = Some(variant);
    one.round = Some(1);
    one.status = Some(200);
    one.warmup = variant == 0 && reuse == Reuse::Fresh;
    one.reuse = Some(reuse);
    one.end = Nanos(took_ms * MS);
    tally.record(Event::Exchange(&one));
}

fn of_rule(facts: &BenchFacts, rule: &str) -> Option<Finding> {
    facts.findings.iter().find(|one| one.rule == rule).cloned()
}

/// The finding about 20 connections that the server ended like this, after this number of requests
/// each.
fn ended(how: CloseKind, carried: u64) -> Finding {
    closed(&[(20, Some(how), carried)])
}

/// The finding about connections: how many, how the server ended them, and after how many requests
/// each. The client ended the others.
fn closed(kinds: &[(u64, Option<CloseKind>, u64)]) -> Finding {
    closed_at(&run(&[true]), ClosePoint::AfterExchange, kinds)
}

/// The same in a run, with connections that end at this point.
fn closed_at(run: &Run, point: ClosePoint, kinds: &[(u64, Option<CloseKind>, u64)]) -> Finding {
    let facts = facts_of(run, point, kinds);
    of_rule(&facts, "server-closes-early").unwrap()
}

/// The end of a connection by the server.
fn end(id: u64, point: ClosePoint, carried: u64) -> Closed {
    Closed {
        connection: ConnectionId(id),
        variant: Some(0),
        round: Some(1),
        close: Close {
            at: Nanos(10 * MS),
            by: Some(Side::Server),
            how: Some(CloseKind::Fin),
            other_end: None,
            announced_by: None,
            moment: Some(point),
            exchanges: Some(carried),
            bytes: ConnectionBytes::default(),
            probes: Probes::default(),
        },
    }
}

/// The facts about connections that ended at this point.
fn facts_of(run: &Run, point: ClosePoint, kinds: &[(u64, Option<CloseKind>, u64)]) -> BenchFacts {
    let mut tally = Tally::new();
    let each = kinds
        .iter()
        .flat_map(|&(count, how, carried)| (0..count).map(move |_| (how, carried)));
    for (id, (how, carried)) in (0..).zip(each) {
        let mut one = Connection::new(ConnectionId(id), Nanos(0));
        (one.variant, one.round) = (Some(0), Some(1));
        tally.record(Event::Opened(&one));
        for nth in 0..carried {
            let reuse = if nth == 0 {
                Reuse::Fresh
            } else {
                Reuse::Reused
            };
            exchange(&mut tally, 0, reuse, 1);
        }
        let closed = Closed {
            close: Close {
                by: Some(how.map_or(Side::Client, |_| Side::Server)),
                how: Some(how.unwrap_or(CloseKind::Fin)),
                ..end(id, point, carried).close
            },
            ..end(id, point, carried)
        };
        tally.record(Event::Closed(&closed));
    }
    // a run without a measured request has no findings
    exchange(&mut tally, 0, Reuse::Reused, 1);
    round(&mut tally, 0);
    BenchFacts::new(run, &tally, &[]).unwrap()
}

#[test]
fn bytes_after_a_response_are_the_reason_for_new_connections() {
    let facts = facts_of(&run(&[true]), ClosePoint::AfterExcess, &[(20, None, 1)]);
    let finding = of_rule(&facts, "bytes-after-response").unwrap();
    assert_eq!(finding.severity, Severity::Warning);
    assert!(
        finding.evidence.contains("closed 20 of 20"),
        "{}",
        finding.evidence
    );
    assert!(of_rule(&facts, "server-closes-early").is_none());
    let facts = facts_of(&run(&[true]), ClosePoint::AfterExchange, &[(20, None, 1)]);
    assert!(of_rule(&facts, "bytes-after-response").is_none());
}

#[test]
fn ends_that_come_with_errors_are_no_limit() {
    let fin = Some(CloseKind::Fin);
    let kinds = [(10, fin, 5), (10, fin, 3)];
    let cut = closed_at(&run(&[true]), ClosePoint::MidExchange, &kinds);
    assert_eq!(
        &*cut.claim,
        "the server ended 20 of 20 connections with an error or within a response: no limit explains that"
    );
    assert!(cut.fix.starts_with("Remove the errors first"));
    // error responses that announce the end
    let mut tally = Tally::new();
    // the end of the cut response counts with its close
    let cut = Outcome::Failed(Failure::Truncated);
    for (status, outcome) in [(200, Outcome::Ok), (503, Outcome::Ok), (503, cut)] {
        let mut one = Exchange::new(1, Nanos(0));
        (one.variant, one.round, one.status) = (Some(0), Some(1), Some(status));
        (one.outcome, one.close_sent_by) = (outcome, Some(Side::Server));
        tally.record(Event::Exchange(&one));
    }
    let cell = tally.of_variant(0).next().unwrap();
    assert_eq!(cell.connections.ended_with_errors, 1);
}

#[test]
fn ends_within_the_same_request_of_each_connection_are_a_limit() {
    for how in [CloseKind::Fin, CloseKind::Rst] {
        let kinds = [(10, Some(how), 4)];
        let found = closed_at(&run(&[true]), ClosePoint::MidExchange, &kinds);
        assert_eq!(
            &*found.claim,
            "the server closes connections after 3 requests"
        );
    }
    let kinds = [(10, Some(CloseKind::Fin), 4)];
    let found = closed_at(&run(&[true]), ClosePoint::Stale, &kinds);
    assert_eq!(
        &*found.claim,
        "the server closes connections after 3 requests"
    );
}

#[test]
fn a_connection_costs_the_setup_that_a_request_waited_for() {
    for (setup, cost) in [(1, 19), (8, 19 * 8)] {
        let mut tally = Tally::new();
        for id in 0..20 {
            let mut one = Connection::new(ConnectionId(id), Nanos(0));
            (one.variant, one.round) = (Some(0), Some(1));
            one.setup.connect = Some(Span::new(Nanos(0), Nanos(setup * MS)));
            tally.record(Event::Opened(&one));
            for (reuse, waited, took) in [(Reuse::Fresh, setup, 6), (Reuse::Reused, 0, 1)] {
                let mut one = Exchange::new(1, Nanos(0));
                let connect = Span::new(Nanos(0), Nanos(waited * MS));
                one.spans.connect = (waited > 0).then_some(connect);
                (one.variant, one.round) = (Some(0), Some(1));
                (one.reuse, one.status, one.end) =
                    (Some(reuse), Some(200), Nanos((waited + took) * MS));
                tally.record(Event::Exchange(&one));
            }
            tally.record(Event::Closed(&end(id, ClosePoint::AfterExchange, 2)));
        }
        round(&mut tally, 0);
        let facts = BenchFacts::new(&run(&[true]), &tally, &[]).unwrap();
        let found = of_rule(&facts, "server-closes-early").unwrap();
        assert_eq!(
            found.cost_ms.map(f64::round),
            Some(f64::from(cost)),
            "{found:?}"
        );
    }
}

#[test]
fn a_server_that_closes_within_each_pause_may_have_an_idle_limit() {
    let mut paused = run(&[true]);
    let axes = &mut paused.variants[0].axes;
    axes.insert("idle".to_owned(), "1.2s".to_owned());
    let found = closed_at(&paused, ClosePoint::Idle, &[(20, Some(CloseKind::Fin), 1)]);
    assert_eq!(
        &*found.claim,
        "the server closes connections after one request or within the pause of 1.20 s (--idle)"
    );
    assert!(found.fix.contains("without --idle"), "{}", found.fix);
}

#[test]
fn streams_that_the_server_does_not_allow_are_named() {
    let mut streams = run(&[true]);
    let axes = &mut streams.variants[0].axes;
    axes.insert("http".to_owned(), "2".to_owned());
    axes.insert("streams".to_owned(), "16".to_owned());
    let caveats = |allowed: Option<u32>| {
        let mut tally = Tally::new();
        let mut one = Exchange::new(1, Nanos(0));
        (one.variant, one.round, one.status) = (Some(0), Some(1), Some(200));
        one.terms.max_streams = allowed;
        one.end = Nanos(MS);
        tally.record(Event::Exchange(&one));
        round(&mut tally, 0);
        let facts = BenchFacts::new(&streams, &tally, &[]).unwrap();
        let caveats = facts
            .caveats
            .iter()
            .filter(|one| one.id == "streams-refused");
        caveats.map(|one| one.message.clone()).collect::<Vec<_>>()
    };
    assert!(caveats(None).is_empty() && caveats(Some(16)).is_empty());
    let limited = caveats(Some(4));
    assert!(limited[0].contains("4 streams"), "{limited:?}");
}

#[test]
fn a_reset_is_no_request_limit() {
    let limit = ended(CloseKind::Fin, 5);
    assert_eq!(
        &*limit.claim,
        "the server closes connections after 5 requests"
    );
    assert!(limit.fix.contains("`keepalive_requests`"));
    let rst = Some(CloseKind::Rst);
    let reset = closed(&[(6, rst, 5), (2, rst, 4), (2, rst, 6)]);
    assert_eq!(
        &*reset.claim,
        "the server resets connections after about 5 requests"
    );
    assert!(!reset.fix.contains("keepalive_requests"), "{}", reset.fix);
}

#[test]
fn a_close_that_other_connections_outlive_is_no_request_limit() {
    let fin = Some(CloseKind::Fin);
    let restart = closed(&[(1, fin, 93), (17, None, 400)]);
    assert_eq!(
        &*restart.claim,
        "the server ended 1 connection that others outlived: these carried up to 400 requests"
    );
    assert!(!restart.fix.contains("keepalive_requests"));
    assert_eq!(restart.severity, Severity::Info);
    // the last connection of a round ends before the limit
    let limit = closed(&[(10, fin, 100), (10, None, 30)]);
    assert_eq!(
        &*limit.claim,
        "the server closes connections after 100 requests"
    );
}

#[test]
fn ends_after_very_different_numbers_of_requests_are_no_request_limit() {
    let fin = Some(CloseKind::Fin);
    let aged = closed(&[(10, fin, 60), (10, fin, 240)]);
    assert_eq!(
        &*aged.claim,
        "the server closes connections after 60 to 240 requests: no limit of requests explains that"
    );
    assert!(aged.fix.contains("`MAX_CONNECTION_AGE`"), "{}", aged.fix);
    assert!(!aged.fix.contains("keepalive_requests"), "{}", aged.fix);
    // requests under way at a GOAWAY come on top of a limit
    let limit = closed(&[(10, fin, 100), (10, fin, 108)]);
    assert!(limit.fix.contains("`keepalive_requests`"), "{}", limit.fix);
}

#[test]
fn a_server_that_keeps_no_connection_has_no_request_limit_to_raise() {
    let at_once = ended(CloseKind::Fin, 1);
    let claim = "the server closes connections after 1 request";
    assert_eq!(&*at_once.claim, claim);
    assert!(
        !at_once.fix.contains("keepalive_requests"),
        "{}",
        at_once.fix
    );
    assert!(
        at_once.fix.contains("`keepalive_timeout`"),
        "{}",
        at_once.fix
    );
}

/// The finding about kept connections whose responses take 44 ms, but for the first.
fn slower(keepalive: &[bool]) -> Option<Finding> {
    let run = run(keepalive);
    let mut tally = Tally::new();
    for _ in 0..3 {
        exchange(&mut tally, 0, Reuse::Fresh, 2);
    }
    for _ in 0..60 {
        exchange(&mut tally, 0, Reuse::Reused, 44);
        if keepalive.len() > 1 {
            exchange(&mut tally, 1, Reuse::Fresh, 2);
        }
    }
    (0..keepalive.len() as u32).for_each(|variant| round(&mut tally, variant));
    let facts = BenchFacts::new(&run, &tally, &[]).unwrap();
    of_rule(&facts, "slower-when-reused")
}

#[test]
fn a_bench_finds_that_reuse_delays_responses() {
    let alone = slower(&[true]).unwrap();
    assert!(
        alone.claim.contains("60 of 60 took 17.0 ms or more"),
        "{}",
        alone.claim
    );
    assert!(
        alone.claim.contains("0 of 3"),
        "the warm-up: {}",
        alone.claim
    );
    let both = slower(&[true, false]).unwrap();
    assert_eq!(both.subject, "keepalive=true");
    assert!(both.claim.contains("0 of 63"), "{}", both.claim);
}
