//! The table of remedies: each against the baseline, with its risk, on the terminal, as HTML and as
//! JSON.

use intact_experiments::bench::{BenchFacts, Charts, Effect, EffectResult};
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
    facts_of(&[], None)
}

/// The same with these further settings of each variant but the baseline, and rounds whose
/// responses may be stored for this time.
fn facts_of(further: &[(&str, &str)], fresh_for_s: Option<u64>) -> (Run, BenchFacts, Charts) {
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
        let further = further.iter().copied().filter(|_| nth > 0);
        let axes = axes.chain(further);
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
            let span = Span::new(Nanos(0), Nanos(1_000 * MS));
            tally.record(Event::Round(&Round {
                fresh_for_s: fresh_for_s.filter(|_| nth > 0),
                ..Round::new(nth as u32, round, span)
            }));
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
    assert_eq!(facts.effects[2].result, EffectResult::NothingActed);
    let acted = |nth: usize| -> Vec<_> {
        let acted = facts.effects[nth].acted.iter();
        acted.map(|one| (one.remedy, one.times, one.of)).collect()
    };
    assert_eq!(acted(0), [("keep-alive", 90, 90)]);
    assert_eq!(acted(1), [("resumption", 100, 100), ("0-RTT", 100, 100)]);
    assert_eq!(acted(2), []);
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
        assert!(text.contains("90 of 90 requests reused"), "{text}");
        // what never acted has no saving
        assert!(text.contains("unknown"), "{text}");
        assert!(text.contains("no session was resumed"), "{text}");
        // a cache is not among the variants
        assert!(!text.contains("fresh cache entries"), "{text}");
    }
    let json = intact_report::json::document(&document).unwrap();
    assert!(json.contains("\"effects_baseline\""));
    assert!(json.contains("\"risks\""));
}

#[test]
fn fresh_entries_save_what_a_request_costs_times_the_share_that_finds_one() {
    let revalidate = [("cache", "revalidate")];
    let (_, facts, _) = facts_of(&revalidate, Some(9));
    let of = |name: &str| -> &Effect {
        let mut effects = facts.effects.iter();
        effects.find(|one| one.setting == name).unwrap()
    };
    let (entries, ahead) = (of("fresh cache entries"), of("pre-fetching"));
    assert_eq!(entries.result, EffectResult::Computed);
    let share = entries.computed.unwrap();
    assert_eq!(share.max_age_s, 9);
    // 10 requests a second, one of which fetches the entry for 9 s
    assert_eq!(share.requests_per_s, Some(10.0));
    assert!(!share.rate_is_measured);
    assert!((share.share - 90.0 / 91.0).abs() < 1e-9, "{share:?}");
    let cost = entries.reference_ms;
    assert!((entries.saved_ms - cost * share.share).abs() < 1e-9);
    let interval = entries.interval_ms.unwrap();
    assert!(interval.low < entries.saved_ms && entries.saved_ms < interval.high);
    assert_eq!(ahead.saved_ms, cost);
    assert_eq!(ahead.computed.unwrap().requests_per_s, None);
    // no entry is fresh where the server names no time: no credit
    let (_, facts, _) = facts_of(&revalidate, None);
    let mut effects = facts.effects.iter();
    let entries = effects.find(|one| one.setting == "fresh cache entries");
    let entries = entries.unwrap();
    assert_eq!(entries.result, EffectResult::NothingActed);
    assert_eq!(entries.inactive, ["no response had a max-age"]);
    assert!(
        facts
            .effects
            .iter()
            .all(|one| one.setting != "pre-fetching")
    );
}

#[test]
fn the_model_has_the_bounds_of_distance_and_caching() {
    let (_, facts, _) = facts();
    let model = facts.model.unwrap();
    assert_eq!(model.variant, "keepalive=off resume=off");
    // the whole setup of the rows is the transport handshake
    assert!((model.rtt_ms - 60.0).abs() < 0.5, "{model:?}");
    assert_eq!(model.what_if.len(), 2);
}
