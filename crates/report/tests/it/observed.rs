//! The page and the document of an observed run, from a made-up one: a Node program that makes an
//! agent per call to one API, keeps its connection to another, and talks TLS that cannot be read to
//! a third.

use intact_document::Facts;
use intact_findings::Document;
use intact_ledger::{
    Caveat, Certainty, Close, CloseKind, ClosePoint, Closed, Connection, ConnectionBytes,
    ConnectionId, Event, Evidence, Exchange, Failure, Handshake, Lookup, Method, Nanos, Origin,
    Outcome, Owner, Probes, Producer, Protocol, Reuse, Row, Run, Scheme, Setup, Side, Sink, Span,
    Target, Tls, TlsVersion, Vantage,
};
use intact_report::documents;
use intact_report::page::Page;
use intact_report::terminal::{self, Length, TerminalOptions};
use intact_traffic::{ObservedFacts, TrafficAnalysis};
use std::path::Path;

const MS: u64 = 1_000_000;

fn at(ms: u64) -> Nanos {
    Nanos(ms * MS)
}

fn span(from: u64, to: u64) -> Option<Span> {
    Some(Span::new(at(from), at(to)))
}

pub(crate) fn connection(id: u64, from: u64, scheme: Scheme, host: &str, port: u16) -> Connection {
    let mut one = Connection::new(ConnectionId(id), at(from));
    one.origin = Some(Origin {
        scheme,
        host: host.into(),
        port,
    });
    one.owner = Some(Owner {
        pid: 4711,
        command: "node".into(),
    });
    one.protocol = Some(Protocol::Http11);
    let tls = scheme == Scheme::Https;
    one.setup = Setup {
        dns: span(from, from + 3),
        connect: span(from + 3, from + 33),
        ssl: span(from + 33, from + 93).filter(|_| tls),
    };
    one.tls = tls.then(|| Tls {
        version: Some(TlsVersion::Tls12),
        handshake: Some(Handshake::Full),
        resumption_offered: Some(false),
        ..Tls::default()
    });
    one
}

pub(crate) fn exchange(id: u64, connection: u64, from: u64, wait_from: u64, to: u64) -> Exchange {
    let mut one = Exchange::new(id, at(from));
    one.connection = Some(ConnectionId(connection));
    one.reuse = Some(if wait_from > from {
        Reuse::Fresh
    } else {
        Reuse::Reused
    });
    if wait_from > from {
        one.spans.connect = span(from + 3, from + 33);
        one.spans.ssl = span(from + 33, wait_from);
    }
    one.spans.wait = span(wait_from, to);
    one.end = at(to);
    one.method = Some(Method::GET);
    one.target = Some(Target::new("/v1/items"));
    one.status = Some(200);
    one
}

fn closed(
    connection: u64,
    when: u64,
    by: Side,
    moment: ClosePoint,
    exchanges: Option<u64>,
) -> Closed {
    Closed {
        connection: ConnectionId(connection),
        variant: None,
        round: None,
        close: Close {
            at: at(when),
            by: Some(by),
            how: Some(CloseKind::Fin),
            other_end: None,
            announced_by: None,
            moment: Some(moment),
            exchanges,
            bytes: ConnectionBytes::default(),
            probes: Probes::default(),
        },
    }
}

fn run() -> Run {
    let started = "2026-01-01T00:00:00Z".parse().unwrap();
    let mut run = Run::new(Producer::Watch, "0", Vantage::Client, started, 1, &[])
        .with_evidence(Evidence::ALL);
    run.subject = Some("node server.js".to_owned());
    run
}

pub(crate) fn facts() -> (Run, ObservedFacts) {
    let (run, seen) = observed();
    (run, seen.facts())
}

/// The made-up run, and what was gathered of it.
pub(crate) fn observed() -> (Run, TrafficAnalysis) {
    let run = run();
    let mut seen = TrafficAnalysis::new(&run);
    // forty calls, each with an agent of its own
    for nth in 0..40 {
        let from = nth * 200;
        let one = connection(nth, from, Scheme::Https, "api.example.com", 443);
        seen.record(Event::Lookup(&Lookup {
            variant: None,
            round: None,
            name: Some("api.example.com".into()),
            span: Span::new(at(from), at(from + 3)),
            answer: Some(Ok(vec!["192.0.2.1".parse().unwrap()])),
            ttl_s: Some(60),
            resolver: None,
            owner: None,
        }));
        seen.record(Event::Opened(&one));
        seen.record(Event::Exchange(&exchange(
            nth,
            nth,
            from,
            from + 93,
            from + 123,
        )));
        let end = closed(
            nth,
            from + 124,
            Side::Client,
            ClosePoint::AfterExchange,
            Some(1),
        );
        seen.record(Event::Closed(&end));
    }
    // one kept connection whose pauses come close to the server's limit, and lose the race once
    seen.record(Event::Opened(&connection(
        100,
        0,
        Scheme::Http,
        "metrics.internal",
        9090,
    )));
    let mut from = 3;
    for nth in 0..12 {
        let mut one = exchange(100 + nth, 100, from, from, from + 10);
        one.reuse = Some(if nth == 0 {
            Reuse::Fresh
        } else {
            Reuse::Reused
        });
        one.terms.timeout_s = Some(5);
        seen.record(Event::Exchange(&one));
        from += 10 + if nth % 3 == 2 { 4_600 } else { 700 };
    }
    let mut lost = exchange(150, 100, from, from, from + 1);
    lost.method = Some(Method::POST);
    lost.status = None;
    lost.outcome = Outcome::Failed(Failure::Stale);
    seen.record(Event::Exchange(&lost));
    seen.record(Event::Closed(&closed(
        100,
        from + 1,
        Side::Server,
        ClosePoint::Stale,
        Some(13),
    )));
    // a stream that cannot be read
    for nth in 0..3 {
        let mut one = connection(
            200 + nth,
            nth * 400,
            Scheme::Https,
            "login.example.com",
            443,
        );
        one.certainty = Certainty::Inferred("TLS without keys".into());
        seen.record(Event::Opened(&one));
        let end = closed(
            200 + nth,
            nth * 400 + 300,
            Side::Client,
            ClosePoint::Idle,
            None,
        );
        seen.record(Event::Closed(&end));
    }
    seen.record(Event::Caveat(&Caveat::new(
        "io-uring",
        "io_uring was refused to the program, so that its sockets can be seen",
    )));
    (run, seen)
}

/// Gives a page to `read`.
pub(crate) fn with_page<T>(run: &Run, seen: &TrafficAnalysis, read: impl Fn(Page<'_>) -> T) -> T {
    let document = Document::observed(run.clone(), seen.facts(), seen.pictures(run));
    read(documents::page(&document))
}

fn written(run: &Run, seen: &TrafficAnalysis, width: usize) -> String {
    let options = TerminalOptions::plain(width);
    with_page(run, seen, |page| terminal::write(&page, options))
}

fn page(width: usize) -> String {
    let (run, seen) = observed();
    written(&run, &seen, width)
}

#[test]
fn the_page_of_an_observed_run_on_a_terminal_of_80_columns() {
    let page = page(80);
    for line in page.lines() {
        assert!(line.chars().count() <= 80, "{line:?}");
    }
    insta::assert_snapshot!(page);
}

#[test]
fn the_page_of_an_observed_run_on_wide_paper() {
    insta::assert_snapshot!(page(140));
}

#[test]
fn what_a_server_or_a_file_said_cannot_drive_the_terminal() {
    let mut run = run();
    run.subject = Some("node \x1b[2Jserver.js".to_owned());
    let mut seen = TrafficAnalysis::new(&run);
    let mut one = connection(1, 0, Scheme::Http, "evil\x1b[31m.example", 80);
    one.owner = Some(Owner {
        pid: 1,
        command: "no\x07de".into(),
    });
    seen.record(Event::Opened(&one));
    let page = written(&run, &seen, 140);
    assert!(
        page.chars()
            .all(|letter| letter == '\n' || !letter.is_control()),
        "{page:?}"
    );
}

#[test]
fn the_document_of_every_golden_ledger_is_what_the_schema_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let schema =
        std::fs::read_to_string(root.join("docs/reference/schema/traffic.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&serde_json::from_str(&schema).unwrap()).unwrap();
    let run = run();
    let check = |seen: &TrafficAnalysis, name: &str| {
        let document = Document::observed(run.clone(), seen.facts(), seen.pictures(&run));
        let text = intact_report::json::document(&document).unwrap();
        let document = serde_json::from_str(&text).unwrap();
        let faults: Vec<String> = validator
            .iter_errors(&document)
            .map(|fault| format!("{fault} at {}", fault.instance_path()))
            .collect();
        assert!(faults.is_empty(), "{name}: {faults:#?}");
    };
    check(&observed().1, "the made-up run");
    check(&TrafficAnalysis::new(&run), "an empty run");
    let mut ledgers = 0;
    for folder in std::fs::read_dir(root.join("fixtures/golden")).unwrap() {
        for file in std::fs::read_dir(folder.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            let mut seen = TrafficAnalysis::new(&run);
            for line in std::fs::read_to_string(&path).unwrap().lines().skip(1) {
                let row: Row = serde_json::from_str(line).unwrap();
                seen.record(row.as_event());
            }
            check(&seen, &path.display().to_string());
            ledgers += 1;
        }
    }
    assert!(ledgers >= 66);
}

fn verdicts(facts: &ObservedFacts) -> Vec<intact_document::requirement::Verdict> {
    [
        "avoidable == 0",
        "host=metrics.internal:9090: reuse > 90%",
        "host=login.example.com: reuse > 50%",
        "findings.stale-reuse == 0",
    ]
    .map(|expression| {
        expression
            .parse::<intact_document::requirement::Requirement>()
            .unwrap()
            .evaluate(facts)
    })
    .to_vec()
}

#[test]
fn requirements_are_checked_for_all_and_for_each_destination() {
    let (_, facts) = facts();
    let held: Vec<bool> = verdicts(&facts).iter().map(|one| one.passed()).collect();
    // what cannot be seen does not pass
    assert_eq!(held, [false, true, false, false]);
}

#[test]
fn the_results_of_requirements_and_the_page_fit_on_one_screen() {
    let (run, seen) = observed();
    let verdicts = verdicts(&seen.facts());
    let screen = TerminalOptions {
        height: Some(50),
        length: Length::SCREEN,
        ..TerminalOptions::plain(80)
    };
    let page = with_page(&run, &seen, |mut page| {
        page.requirements.clone_from(&verdicts);
        terminal::write(&page, screen)
    });
    let results = terminal::requirements(&verdicts, screen);
    let both = format!("{page}{results}");
    assert!(both.lines().count() <= 40, "{both}");
    for line in both.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    // a log has each result on one line
    let log = terminal::requirements(&verdicts, TerminalOptions::plain(80));
    let whole: Vec<String> = verdicts.iter().map(ToString::to_string).collect();
    assert_eq!(log.trim_end(), whole.join("\n"));
}

#[test]
fn each_requirement_and_each_rule_is_a_test_for_a_ci() {
    let (run, facts) = facts();
    let fail_on = Some(intact_document::Severity::Warning);
    let all = facts.rules();
    insta::assert_snapshot!(intact_report::junit::document(
        run.producer.as_str(),
        &verdicts(&facts),
        &all,
        &facts.findings,
        fail_on,
        None,
    ));
    let quiet = intact_report::junit::document(
        run.producer.as_str(),
        &[],
        &all,
        &facts.findings,
        None,
        None,
    );
    assert!(quiet.contains("failures=\"0\"") && quiet.contains("<system-out>"));
    // what a command found without looking at rules is there too, and no rule is said to have
    // passed
    let own = intact_report::junit::document("check", &[], &[], &facts.findings, fail_on, None);
    assert!(
        own.contains("name=\"stale-reuse\">") && !own.contains("name=\"connection-close-sent\""),
        "{own}"
    );
}

#[test]
fn a_pull_request_gets_the_page_of_an_observed_run() {
    let (run, seen) = observed();
    let verdicts = verdicts(&seen.facts());
    insta::assert_snapshot!(with_page(&run, &seen, |mut page| {
        page.requirements.clone_from(&verdicts);
        intact_report::markdown::write(&[page])
    }));
}

#[test]
fn a_ci_gets_a_line_for_what_failed_and_what_was_found() {
    let (_, facts) = facts();
    let lines = intact_report::annotations::lines(
        intact_report::annotations::Ci::GitHub,
        &verdicts(&facts),
        &facts.findings,
    );
    let kinds: Vec<&str> = lines
        .iter()
        .map(|line| line.split("::").nth(1).unwrap())
        .collect();
    assert_eq!(
        kinds,
        [
            "error title=intact: requirement",
            "error title=intact: requirement",
            "error title=intact: requirement",
            "error title=intact: stale-reuse",
            "warning title=intact: new-connection-per-request",
            "warning title=intact: idle-timeout-race",
            "warning title=intact: tls-never-resumed",
        ]
    );
}
