//! The page of a function: two variants in eight rounds; without keep-alive each invocation opens a
//! connection, with it a freeze ends one.

use crate::written;
use intact_experiments::lambda::Invocations;
use intact_findings::{Document, Parts};
use intact_ledger::{
    Close, CloseKind, ClosePoint, Closed, Connection, ConnectionBytes, ConnectionId, Event,
    Evidence, Exchange, Failure, Invocation, InvocationOutcome, Nanos, Outcome, Probes, Producer,
    Reuse, Run, Side, Sink, Span, Vantage, Variant,
};
use intact_report::documents;

const MS: u64 = 1_000_000;

fn at(ms: u64) -> Nanos {
    Nanos(ms * MS)
}

fn run() -> Run {
    let started = "2026-01-01T00:00:00Z".parse().unwrap();
    let mut run = Run::new(Producer::Lambda, "0", Vantage::OnPath, started, 1, &[])
        .with_evidence(Evidence::ALL);
    run.subject = Some("node function.js".to_owned());
    run.variants = ["keepalive=off", "keepalive=on"]
        .map(|name| Variant {
            name: name.to_owned(),
            axes: [].into(),
        })
        .to_vec();
    run
}

/// Takes what one environment does: a cold invocation, a warm one, and one after a freeze of 30 s.
fn environment(into: &mut Invocations, variant: u32, round: u32) {
    let environment = u64::from(round * 2 + variant);
    let from = environment * 100_000;
    let connection = |id: u64, from: u64| {
        let mut one = Connection::new(ConnectionId(id), at(from));
        one.variant = Some(variant);
        one.round = Some(round);
        one.environment = Some(environment);
        one.setup.connect = Some(Span::new(at(from), at(from + 30)));
        one
    };
    let mut connections = 0;
    for (nth, begin) in [from, from + 1_000, from + 40_000].into_iter().enumerate() {
        let nth = nth as u64;
        let is_kept = variant == 1 && nth > 0;
        let id = environment * 10 + if variant == 1 { 0 } else { nth };
        let is_lost = is_kept && nth == 2 && round == 1;
        let took = if is_kept { 30 } else { 60 } + u64::from(round);
        if !is_kept {
            into.record(Event::Opened(&connection(id, begin + 2)));
            connections += 1;
        }
        let mut exchange = Exchange::new(environment * 10 + nth, at(begin + 3));
        exchange.connection = Some(ConnectionId(id));
        exchange.variant = Some(variant);
        exchange.round = Some(round);
        exchange.reuse = Some(if is_kept { Reuse::Reused } else { Reuse::Fresh });
        exchange.end = at(begin + took - 1);
        if is_lost {
            exchange.outcome = Outcome::Failed(Failure::Stale);
        } else {
            exchange.status = Some(200);
        }
        into.record(Event::Exchange(&exchange));
        if variant == 0 || is_lost {
            let (by, how, end) = match is_lost {
                true => (Side::Server, CloseKind::Rst, begin + took - 1),
                false => (Side::Client, CloseKind::Fin, begin + took),
            };
            into.record(Event::Closed(&Closed {
                connection: ConnectionId(id),
                variant: Some(variant),
                round: Some(round),
                close: Close {
                    at: at(end),
                    by: Some(by),
                    how: Some(how),
                    other_end: None,
                    announced_by: None,
                    moment: Some(ClosePoint::AfterExchange),
                    exchanges: Some(1),
                    bytes: ConnectionBytes::default(),
                    probes: Probes::default(),
                },
            }));
        }
        into.record(Event::Invocation(&Invocation {
            id: environment * 10 + nth,
            variant: Some(variant),
            round: Some(round),
            environment,
            init: (nth == 0).then(|| Span::new(at(from - 500), at(from))),
            frozen: (nth == 2).then(|| Span::new(at(begin - 30_000), at(begin))),
            rest: (nth == 2).then_some(30_000 * MS),
            at: at(begin),
            end: at(begin + took),
            fate: if is_lost {
                InvocationOutcome::Error("ECONNRESET".to_owned())
            } else {
                InvocationOutcome::Answered(1)
            },
            duplicate_response: u32::from(variant == 0 && round == 1 && nth == 1),
        }));
    }
    assert!(connections > 0);
}

fn document() -> Document {
    let run = run();
    let mut all = Invocations::new(&run);
    for round in 1..=8 {
        environment(&mut all, 0, round);
        environment(&mut all, 1, round);
    }
    let facts = all.facts();
    Document::new(run, Parts::Lambda(Box::new(facts)))
}

#[test]
fn the_page_of_a_function() {
    let document = document();
    let page = || documents::page(&document);
    insta::assert_snapshot!("terminal", written::terminal(&[page()]));
    let (markdown, html) = written::files("lambda", &[page()]);
    insta::assert_snapshot!("markdown", markdown);
    for words in [
        "per warm invocation",
        "ECONNRESET",
        "Over the rounds",
        "invocations.csv",
    ] {
        assert!(html.contains(words), "{words}");
    }
}

#[test]
fn a_page_of_one_variant_does_not_name_it() {
    let mut run = run();
    run.variants.truncate(1);
    let mut all = Invocations::new(&run);
    environment(&mut all, 0, 1);
    let facts = all.facts();
    let document = Document::new(run, Parts::Lambda(Box::new(facts)));
    let page = documents::page(&document);
    assert!(!written::terminal(&[page]).contains("keepalive=off"));
}
