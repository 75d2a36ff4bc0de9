//! The page and the short page of a comparison: the program of `observed` against one that keeps
//! its connection.

use crate::observed;
use intact_experiments::compare::Comparison;
use intact_findings::{Document, Parts};
use intact_ledger::{ConnectionId, Event, Evidence, Producer, Run, Scheme, Sink, Vantage, Variant};
use intact_report::documents;
use intact_report::terminal::TerminalOptions;
use intact_traffic::TrafficAnalysis;
use std::collections::BTreeMap;

const MS: u64 = 1_000_000;

pub(crate) fn made() -> Document {
    let started = "2026-01-01T00:00:00Z".parse().unwrap();
    let mut run = Run::new(Producer::Compare, "0", Vantage::OnPath, started, 1, &[])
        .with_evidence(Evidence::ALL);
    run.link = Some("30 ms of added round trip (--rtt)".to_owned());
    run.variants = ["old.js", "new.js --with-a-rather-long-option=yes"]
        .map(|name| Variant {
            name: name.to_owned(),
            axes: BTreeMap::new(),
        })
        .to_vec();
    let (_, old) = observed::facts();
    let mut seen = TrafficAnalysis::new(&run);
    let one = observed::connection(1, 0, Scheme::Https, "api.example.com", 443);
    seen.record(Event::Opened(&one));
    for nth in 0..40u64 {
        let from = nth * 50;
        let waits = if nth == 0 { 93 } else { from };
        let mut exchange = observed::exchange(nth, 1, from, waits, from.max(waits) + 30);
        exchange.connection = Some(ConnectionId(1));
        seen.record(Event::Exchange(&exchange));
    }
    let new = seen.facts();
    let mut contest = Comparison::new(&run);
    for round in 0..10u64 {
        let noise = round * 7 % 10 * MS;
        contest.take(0, Some(5_200 * MS + noise), Some(90 * MS + noise / 2), &old);
        contest.take(
            1,
            Some(1_300 * MS + noise / 3),
            Some(91 * MS + noise / 3),
            &new,
        );
    }
    let facts = contest.facts();
    Document::new(run, Parts::Compare(Box::new(facts)))
}

fn page(width: usize) -> String {
    let paper = TerminalOptions::plain(width);
    intact_report::terminal::write(&documents::page(&made()), paper)
}

#[test]
fn the_page_of_a_comparison_on_a_terminal_of_80_columns() {
    let page = page(80);
    for line in page.lines() {
        assert!(line.chars().count() <= 80, "{line:?}");
    }
    insta::assert_snapshot!(page);
}

#[test]
fn a_pull_request_gets_programs_and_the_state_of_findings() {
    let document = made();
    let page = documents::page(&document);
    insta::assert_snapshot!(intact_report::markdown::write(&[page]));
}
