//! The table of remedies: each against the baseline, with its risk, on the terminal, as HTML and as
//! JSON.

use intact_experiments::bench::{BenchFacts, Charts, EffectResult};
use intact_findings::{BenchParts, Document, Parts};
use intact_ledger::{
    Connection, ConnectionId, Event, Exchange, Handshake, Nanos, Producer, Reuse, Round, Run, Sink,
    Span, Tally, Tls, TlsVersion, Vantage, Variant,
};
use intact_report::documents;
use intact_report::terminal::TerminalOptions;
use intact_traffic::timeline::Timeline;

const MS: u64 = 1_000_000;

/// A variant: its axes that vary, the setup of a connection in milliseconds, whether connections
/// are kept, its handshakes.
const VARIANTS: [(&str, u64, bool, Handshake); 4] = [
    ("keepalive=off resume=off", 60, false, Handshake::Full),
    ("keepalive=on resume=off", 60, true, Handshake::Full),
    (
        "keepalive=off resume=on early-data=on",
        30,
        false,
        Handshake::EarlyData,
    ),
    // the server took none
    (
        "keepalive=off resume=on early-data=off",
        60,
        false,
        Handshake::Full,
    ),
];

fn facts() -> (Run, BenchFacts, Charts) {
    let started = "2026-01-01T00:00:00Z".parse().unwrap();
    let mut run = Run::new(Producer::Bench, "0", Vantage::Client, started, 1, &[]);
    run.seed = Some(7);
    run.varied = ["keepalive", "resume", "early-data"]
        .map(str::to_owned)
        .into();
    let mut tally = Tally::new();
    for (nth, (name, setup, keepalive, handshake)) in VARIANTS.into_iter().enumerate() {
        let fixed = "c=1 http=1.1 tls=1.3 streams=1";
        let axes = name.split(' ').chain(fixed.split(' '));
        let axes = axes.filter_map(|one| one.split_once('='));
        run.variants.push(Variant {
            name: name.to_owned(),
            axes: axes
                .map(|(axis, value)| (axis.to_owned(), value.to_owned()))
                .collect(),
        });
        let variant = Some(nth as u32);
        for round in 1..=10 {
            for request in 0..10u64 {
                let is_fresh = !keepalive || request == 0;
                let mut one = Exchange::new(request, Nanos(0));
                (one.variant, one.round, one.status) = (variant, Some(round), Some(200));
                one.warmup = keepalive && is_fresh;
                one.reuse = Some(if is_fresh {
                    Reuse::Fresh
                } else {
                    Reuse::Reused
                });
                let at = if is_fresh { setup * MS } else { 0 };
                if is_fresh {
                    one.spans.connect = Some(Span::new(Nanos(0), Nanos(at)));
                    let mut opened = Connection::new(ConnectionId(request), Nanos(0));
                    (opened.variant, opened.round) = (variant, Some(round));
                    opened.setup.connect = one.spans.connect;
                    opened.tls = Some(Tls {
                        version: Some(TlsVersion::Tls13),
                        handshake: Some(handshake),
                        ..Tls::default()
                    });
                    tally.record(Event::Opened(&opened));
                }
                // a little differs from round to round
                let wait = 30 * MS + request * 10_000 + u64::from(round) * (nth as u64 + 3) * 7_000;
                one.spans.wait = Some(Span::new(Nanos(at), Nanos(at + wait)));
                one.end = Nanos(at + wait);
                tally.record(Event::Exchange(&one));
            }
            tally.record(Event::Round(&Round::new(
                nth as u32,
                round,
                Span::new(Nanos(0), Nanos(1_000 * MS)),
            )));
        }
    }
    let facts = BenchFacts::new(&run, &tally, &[]).unwrap();
    let charts = Charts::new(&run, &tally, &facts, &Timeline::of_variants());
    (run, facts, charts)
}

#[test]
fn each_remedy_is_compared_with_the_baseline_and_the_largest_saving_is_first() {
    let (_, facts, _) = facts();
    assert_eq!(facts.effects_baseline, ["keepalive=off resume=off"]);
    let names: Vec<&str> = facts.effects.iter().map(|one| &*one.setting).collect();
    assert_eq!(names, ["keep-alive", "resumption + 0-RTT", "resumption"]);
    let results: Vec<EffectResult> = facts.effects.iter().map(|one| one.result).collect();
    assert_eq!(results[..2], [EffectResult::Saves; 2]);
    for (effect, saved) in facts.effects.iter().zip([60.0, 30.0, 0.0]) {
        assert!((effect.saved_ms - saved).abs() < 1.0, "{effect:?}");
        assert!(effect.interval_ms.is_some());
    }
    assert_eq!(facts.effects[2].inactive, ["no session was resumed"]);
    assert!(facts.effects[1].risks["0-RTT"].contains("replay"));
}

#[test]
fn the_table_of_remedies_is_on_each_page_and_in_the_json() {
    let (run, facts, charts) = facts();
    let document = Document::new(run, Parts::Bench(Box::new(BenchParts { facts, charts })));
    let page = documents::page(&document);
    let pages = [
        intact_report::terminal::write(&page, TerminalOptions::plain(120)),
        intact_report::markdown::write(std::slice::from_ref(&page)),
        intact_report::html::write(std::slice::from_ref(&page)).unwrap(),
    ];
    for text in pages {
        assert!(text.contains("What each remedy saves here per request"));
        assert!(!text.contains("What each setting saves"));
        assert!(text.contains("Risk of 0-RTT"), "{text}");
        assert!(text.contains("resumption + 0-RTT"), "{text}");
    }
    let json = intact_report::json::document(&document).unwrap();
    assert!(json.contains("\"effects_baseline\""));
    assert!(json.contains("\"risks\""));
}
