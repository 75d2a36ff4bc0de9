//! The page of a bench, from a made-up run: kept connections that the server closes after five
//! requests, against none kept.

use intact_experiments::bench::{BenchFacts, Charts};
use intact_findings::{BenchParts, Document, Parts};
use intact_ledger::{
    Close, CloseKind, ClosePoint, Closed, Connection, ConnectionBytes, ConnectionId, Event,
    Exchange, Failure, Nanos, Outcome, Probes, Producer, Reuse, Round, Run, Side, Sink, Sockets,
    Span, Tally, Vantage, Variant,
};
use intact_report::documents;
use intact_report::terminal::TerminalOptions;
use intact_traffic::timeline::Timeline;

const MS: u64 = 1_000_000;

fn run() -> Run {
    let started = "2026-01-01T00:00:00Z".parse().unwrap();
    let mut run = Run::new(Producer::Bench, "0", Vantage::Client, started, 1, &[]);
    run.subject = Some("https://my.server/health".to_owned());
    run.seed = Some(7);
    run.varied = vec!["keepalive".to_owned()];
    for on in ["on", "off"] {
        run.variants.push(Variant {
            name: format!("keepalive={on}"),
            axes: [
                ("keepalive", on),
                ("c", "1"),
                ("tls", "1.3"),
                ("http", "1.1"),
                ("resume", "off"),
                ("streams", "1"),
            ]
            .map(|(axis, value)| (axis.to_owned(), value.to_owned()))
            .into(),
        });
    }
    run
}

/// One exchange of 30 ms; 60 ms of setup before it if it is fresh.
fn exchange(variant: u32, round: u32, nth: u64, fresh: bool) -> Exchange {
    let mut one = Exchange::new(nth, Nanos(0));
    one.variant = Some(variant);
    one.round = Some(round);
    one.reuse = Some(if fresh { Reuse::Fresh } else { Reuse::Reused });
    one.status = Some(200);
    let mut at = 0;
    if fresh {
        one.spans.connect = Some(Span::new(Nanos(0), Nanos(30 * MS)));
        one.spans.ssl = Some(Span::new(Nanos(30 * MS), Nanos(60 * MS)));
        at = 60 * MS;
    }
    // a little of everything differs from round to round
    let wait = 30 * MS + nth * 10_000 + u64::from(round) * 20_000;
    one.spans.wait = Some(Span::new(Nanos(at), Nanos(at + wait)));
    one.end = Nanos(at + wait);
    one
}

fn document() -> Document {
    let run = run();
    let mut tally = Tally::new();
    let mut first = Vec::new();
    let mut connections = 0;
    for at in [0, 1] {
        tally.record(Event::Sockets(&Sockets {
            at: Nanos(at),
            time_wait: 5 + at * 300,
            free_ports: Some(28_000 - at * 300),
        }));
    }
    for round in 1..=10 {
        for variant in 0..2u32 {
            for nth in 0..30u64 {
                let fresh = variant == 1 || nth % 5 == 0;
                let mut one = exchange(variant, round, nth, fresh);
                if variant == 0 && round == 3 && nth == 7 {
                    one.outcome = Outcome::Failed(Failure::Reset);
                }
                if fresh {
                    connections += 1;
                    let id = ConnectionId(connections);
                    let mut connection = Connection::new(id, Nanos(0));
                    connection.variant = Some(variant);
                    connection.round = Some(round);
                    connection.setup.connect = one.spans.connect;
                    connection.setup.ssl = one.spans.ssl;
                    tally.record(Event::Opened(&connection));
                    tally.record(Event::Closed(&Closed {
                        connection: id,
                        variant: Some(variant),
                        round: Some(round),
                        close: Close {
                            at: Nanos(1),
                            by: Some(Side::Server),
                            how: Some(CloseKind::Fin),
                            other_end: None,
                            announced_by: (variant == 0).then_some(Side::Server),
                            moment: Some(ClosePoint::AfterExchange),
                            exchanges: Some(if variant == 0 { 5 } else { 1 }),
                            bytes: ConnectionBytes::default(),
                            probes: Probes::default(),
                        },
                    }));
                }
                tally.record(Event::Exchange(&one));
                if first.len() < 200 {
                    first.push(one);
                }
            }
            tally.record(Event::Round(&Round {
                client_cpu: Some(3 * MS),
                server_cpu: Some(6 * MS),
                ..Round::new(variant, round, Span::new(Nanos(0), Nanos(3_000 * MS)))
            }));
        }
    }
    let facts = BenchFacts::new(&run, &tally, &first).unwrap();
    let charts = Charts::new(&run, &tally, &facts, &Timeline::of_variants());
    Document::new(run, Parts::Bench(Box::new(BenchParts { facts, charts })))
}

fn page(width: usize, colour: bool) -> String {
    intact_report::terminal::write(
        &documents::page(&document()),
        TerminalOptions {
            colour,
            ..TerminalOptions::plain(width)
        },
    )
}

#[test]
fn the_page_on_wide_paper() {
    insta::assert_snapshot!(page(120, false));
}

#[test]
fn the_page_on_narrow_paper_drops_columns_and_says_which() {
    let page = page(60, false);
    for line in page.lines() {
        assert!(line.chars().count() <= 60, "{line:?}");
    }
    insta::assert_snapshot!(page);
}

#[test]
fn colour_changes_nothing_but_escape_sequences() {
    let coloured = page(100, true);
    assert!(coloured.contains("\x1b[1m"));
    let mut plain = String::new();
    let mut rest = coloured.as_str();
    while let Some(at) = rest.find('\x1b') {
        plain.push_str(&rest[..at]);
        rest = &rest[at..][rest[at..].find('m').unwrap() + 1..];
    }
    plain.push_str(rest);
    assert_eq!(plain, page(100, false));
}
