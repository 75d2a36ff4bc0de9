//! The page of a check, from a made-up card: TLS 1.3 only, 60 ms of setup, an idle limit that is
//! announced and a request lost at it.

use crate::written;
use intact_findings::{Document, Parts};
use intact_ledger::server_profile::{
    DnsQuery, EarlyData, Ended, FirstRequest, Found, Http2Seen, Http3Connection, Http3Result,
    Http3Seen, IdleLimits, IdleWait, MethodResult, NameAnswer, Names, OldTls, QuicParameters, Race,
    RaceAttempt, RequestLimit, ServerProfile, Skipped, State, TlsResult, VersionResult, WATERFALL,
};
use intact_ledger::{
    CloseKind, Exchange, Failure, Handshake, Nanos, Outcome, Producer, Protocol, Reuse, Row, Run,
    Side, Span, TlsVersion, Vantage,
};
use intact_report::documents::{self, CheckPart, CheckRun, check};
use intact_report::page::Page;
use intact_report::terminal::{Length, TerminalOptions};
use intact_servers::check::CheckFacts;

const MS: u64 = 1_000_000;

fn span(from_ms: u64, to_ms: u64) -> Span {
    Span::new(Nanos(from_ms * MS), Nanos(to_ms * MS))
}

pub(crate) fn run() -> Run {
    let started = "2026-01-01T00:00:00Z".parse().unwrap();
    let mut run = Run::new(Producer::Check, "0", Vantage::Client, started, 1, &[]);
    run.subject = Some("https://my.server/health".to_owned());
    run
}

fn version(http: Protocol, tls: TlsVersion) -> VersionResult {
    let spoken = tls == TlsVersion::Tls13;
    VersionResult {
        http,
        tls: Some(tls),
        asks: false,
        outcome: if spoken {
            Outcome::Ok
        } else {
            Outcome::Failed(Failure::TlsVersion)
        },
        detail: None,
        status: spoken.then_some(200),
        response_version: spoken.then_some(http),
        says_kept: spoken.then_some(http != Protocol::Http10),
        reused: spoken.then_some(http != Protocol::Http10),
        cipher: spoken.then(|| "TLS_AES_128_GCM_SHA256".to_owned()),
        alpn: None,
        connection: (http == Protocol::Http10 && spoken).then(|| "close".to_owned()),
        keep_alive: (http == Protocol::Http11 && spoken).then(|| "timeout=5, max=100".to_owned()),
        forbidden: Vec::new(),
        excess: None,
    }
}

/// Three connections; the server ends none of them before its announced limit.
fn http3() -> Http3Result {
    let connection = |handshake, setup: Option<u64>| Http3Connection {
        handshake,
        setup: setup.map(|end| span(0, end)),
        to_first_answer: setup.map(|end| span(0, end - 1)),
        round_trips: setup.map(|_| 1),
        first_request: Some(span(0, setup.unwrap_or(0) + 31)),
    };
    Http3Result {
        outcome: Outcome::Ok,
        detail: None,
        status: Some(200),
        answered: 3,
        wanted: 3,
        connections: vec![
            connection(Handshake::Full, Some(33)),
            connection(Handshake::Resumed, Some(31)),
            connection(Handshake::EarlyData, None),
        ],
        early_data: Some(EarlyData::Accepted),
        parameters: Some(QuicParameters {
            max_idle_timeout_ms: 30_000,
            max_request_streams: 100,
        }),
        // the client's own timer: the server sends nothing at this limit
        idle: Some(IdleWait {
            span: span(0, 30_000),
            ended: Some(ended(CloseKind::Silent, false)),
            next: None,
        }),
    }
}

fn ended(how: CloseKind, announced: bool) -> Ended {
    Ended {
        by: Some(Side::Server),
        how,
        announced,
        unsolicited_status: None,
        error: None,
    }
}

pub(crate) fn profile() -> ServerProfile {
    let idle = |seconds: u64| IdleWait {
        span: span(0, seconds * 1_000 + 20),
        ended: Some(ended(CloseKind::CloseNotify, false)),
        next: None,
    };
    let attempt = |idle_ms: u64, outcome: Option<Outcome>| RaceAttempt {
        idle_ns: idle_ms * MS,
        outcome,
        ended_ns: None,
        ended: None,
    };
    ServerProfile {
        contact: Some(FirstRequest {
            url: "https://my.server/health".to_owned(),
            outcome: Outcome::Ok,
            detail: None,
            status: Some(200),
            server: Some("evil\x1b[31m/1.0".to_owned()),
            body: 5,
            by_head: false,
            followed: Vec::new(),
            redirect: None,
            other_scheme: None,
            expect: None,
        }),
        names: Some(Names {
            name: "my.server".to_owned(),
            system: Some(span(0, 12)),
            addresses: Found::Value(vec!["192.0.2.1".parse().unwrap()]),
            asked: vec![DnsQuery {
                kind: "A".to_owned(),
                server: "192.0.2.53:53".to_owned(),
                span: span(12, 23),
                answer: Found::Value(NameAnswer {
                    addresses: vec!["192.0.2.1".parse().unwrap()],
                    ttl_s: Some(60),
                    aliases: vec!["lb.example.net".to_owned()],
                }),
            }],
        }),
        versions: [TlsVersion::Tls12, TlsVersion::Tls13]
            .into_iter()
            .flat_map(|tls| {
                [Protocol::Http10, Protocol::Http11, Protocol::Http2].map(|http| version(http, tls))
            })
            .collect(),
        old_tls: vec![OldTls {
            version: TlsVersion::Tls10,
            accepted: Some(true),
            detail: None,
        }],
        tls: vec![TlsResult {
            version: TlsVersion::Tls13,
            cipher: Some("TLS_AES_128_GCM_SHA256".to_owned()),
            full: span(30, 62),
            to_first_answer: Some(span(30, 61)),
            received: 3_000,
            certificates: 2,
            chain_bytes: 2_400,
            tickets: Some(2),
            second: Some((span(30, 61), true)),
            early_data: Some(EarlyData::NotOffered),
        }],
        methods: vec![MethodResult {
            what: "HEAD".to_owned(),
            status: Some(200),
            outcome: Outcome::Ok,
            kept: Some(false),
        }],
        state: Some(State {
            cookies: vec!["sid".to_owned()],
            authentication: Vec::new(),
            affinity: Vec::new(),
            compared: 5,
        }),
        h3: Some(Http3Seen {
            announced: Some("h3=\":443\"; ma=3600".to_owned()),
            host: None,
            port: 443,
            tried: Some(http3()),
        }),
        h2: Some(Http2Seen {
            settings: [("max_concurrent_streams".to_owned(), 128)].into(),
            headers_to_data_ns: vec![Some(0), Some(3 * MS), None],
            request_heads: vec![40, 15, 15],
            answer_heads: vec![57, 12, 12],
        }),
        requests: Some(RequestLimit {
            http: Protocol::Http11,
            answered: 101,
            wanted: 110,
            announced: Some(100),
            last_announced: true,
            ended: Some(ended(CloseKind::CloseNotify, true)),
            failed: None,
            lasted: None,
            rested: None,
        }),
        idle: Some(IdleLimits {
            http: Protocol::Http11,
            announced_s: Some(5),
            between: Some(idle(6)),
            samples: Vec::new(),
            before_first: Some(IdleWait {
                ended: None,
                ..idle(90)
            }),
            answers_others: Some(true),
        }),
        race: Some(Race {
            limit_ns: 6_020 * MS,
            attempts: vec![
                attempt(5_020, Some(Outcome::Ok)),
                attempt(5_690, Some(Outcome::Failed(Failure::Stale))),
                attempt(6_070, None),
            ],
        }),
        idle_under_load: None,
        age: None,
        drain: None,
        outages: Vec::new(),
        skipped: vec![Skipped {
            probe: "nothing".to_owned(),
            cut_off: false,
            why: "made up".to_owned(),
        }],
        requests_sent: 140,
    }
}

/// Five connections with three requests each.
pub(crate) fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for id in 0..15 {
        let fresh = id % 3 == 0;
        let mut one = Exchange::new(id, Nanos(0));
        one.tag = Some(WATERFALL.into());
        one.reuse = Some(if fresh { Reuse::Fresh } else { Reuse::Reused });
        one.status = Some(200);
        let from = if fresh { 60 } else { 0 };
        if fresh {
            one.spans.connect = Some(span(0, 30));
            one.spans.ssl = Some(span(30, 60));
        }
        one.spans.wait = Some(span(from, from + 30 + id / 3));
        one.spans.receive = Some(span(from + 30 + id / 3, from + 30 + id / 3));
        one.end = Nanos((from + 30 + id / 3) * MS);
        rows.push(Row::Exchange(Box::new(one)));
    }
    rows
}

fn of<'a>(run: &'a Run, facts: &'a CheckFacts, part: CheckPart<'_>) -> Page<'a> {
    check(CheckRun { run, facts }, part)
}

fn page(profile: &ServerProfile, rows: &[Row], width: usize) -> String {
    let paper = TerminalOptions::plain(width);
    let facts = CheckFacts::new(profile, rows);
    intact_report::terminal::write(&of(&run(), &facts, CheckPart::All), paper)
}

#[test]
fn the_card_of_a_server_on_80_columns() {
    let page = page(&profile(), &rows(), 80);
    assert!(
        page.lines().all(|line| line.chars().count() <= 80),
        "{page}"
    );
    insta::assert_snapshot!(page);
}

#[test]
fn a_card_that_is_printed_early_and_what_follows_say_nothing_twice() {
    let paper = TerminalOptions::plain(80);
    let whole = profile();
    let early = ServerProfile {
        requests: None,
        idle: None,
        race: None,
        skipped: Vec::new(),
        ..whole.clone()
    };
    let known = CheckFacts::new(&early, &rows());
    let facts = CheckFacts::new(&whole, &rows());
    let run = run();
    let early = of(&run, &known, CheckPart::Early);
    let first = intact_report::terminal::write_first(&early, paper);
    let page = of(&run, &facts, CheckPart::Rest(&known));
    let rest = intact_report::terminal::write_rest(&page, paper, &first);
    let first = first.text;
    for (title, early) in [
        ("Versions", true),
        ("TLS\n", true),
        ("Limits of a connection", false),
        ("What stands out", false),
        ("Client settings", false),
        ("A first request takes", true),
        ("Keeps connections", true),
        ("dle for 6 s", false),
    ] {
        assert_eq!(first.contains(title), early, "{title:?}: {first}");
        assert_eq!(rest.contains(title), !early, "{title:?}: {rest}");
    }
}

#[test]
fn a_card_in_two_parts_fits_on_a_screen_and_names_what_both_leave_out() {
    let on = |length| TerminalOptions {
        length,
        ..TerminalOptions::plain(80)
    };
    let (first, rest) = Length::SCREEN.split(3);
    let facts = CheckFacts::new(&profile(), &rows());
    let run = run();
    let early = of(&run, &facts, CheckPart::Early);
    let first = intact_report::terminal::write_first(&early, on(first));
    let page = of(&run, &facts, CheckPart::Rest(&facts));
    let rest = intact_report::terminal::write_rest(&page, on(rest), &first);
    let lines = first.text.lines().count() + rest.lines().count();
    assert!(lines <= 37, "{lines} lines\n{}\n{rest}", first.text);
    assert!(!first.text.contains("--full adds"), "{}", first.text);
    let (_, left_out) = rest.split_once("--full adds").unwrap();
    // six of the first part, two of the second
    assert!(left_out.contains("8 sections"), "{rest}");
}

#[test]
fn the_page_of_a_check_as_markdown() {
    let facts = CheckFacts::new(&profile(), &rows());
    let document = Document::new(run(), Parts::Check(Box::new(facts)));
    let page = documents::page(&document);
    let (markdown, html) = written::files("check-profile", &[page]);
    insta::assert_snapshot!(markdown);
    for words in [
        "Time of a TLS handshake",
        "TLS_AES_128_GCM_SHA256",
        "check.json",
    ] {
        assert!(html.contains(words), "{words}");
    }
}

#[test]
fn a_server_that_refuses_has_a_short_card() {
    let profile = ServerProfile {
        contact: Some(FirstRequest {
            url: "https://my.server/health".to_owned(),
            outcome: Outcome::Failed(Failure::CertificateExpired),
            detail: Some("invalid peer certificate: Expired".to_owned()),
            status: None,
            server: None,
            body: 0,
            by_head: false,
            followed: Vec::new(),
            redirect: None,
            other_scheme: None,
            expect: None,
        }),
        skipped: ["versions", "TLS"]
            .map(|probe| Skipped {
                probe: probe.to_owned(),
                cut_off: false,
                why: "the first request was not answered".to_owned(),
            })
            .to_vec(),
        ..ServerProfile::default()
    };
    insta::assert_snapshot!(page(&profile, &[], 80));
}

#[test]
fn a_server_that_never_keeps_a_connection_is_described_by_what_it_sent() {
    let evidence = |response_version| {
        let mut profile = profile();
        for version in &mut profile.versions {
            version.reused = version.reused.map(|_| false);
            version.says_kept = version.says_kept.map(|_| false);
            version.connection = None;
            version.response_version = Some(response_version);
        }
        page(&profile, &[], 200)
    };
    let of_1_0 = evidence(Protocol::Http10);
    assert!(of_1_0.contains("HTTP/1.1: a response of HTTP/1.0 without `Connection: keep-alive`"));
    assert!(!of_1_0.contains("a body that ends with the connection"));
    let of_1_1 = evidence(Protocol::Http11);
    assert!(of_1_1.contains("HTTP/1.1: a body that ends with the connection"));
}

#[test]
fn a_check_that_was_stopped_before_it_began_says_so() {
    let page = page(&ServerProfile::default(), &[], 40);
    assert!(page.contains("Stopped before the first request."), "{page}");
}

#[test]
fn what_a_server_says_cannot_write_on_the_terminal() {
    assert!(!page(&profile(), &rows(), 120).contains('\x1b'));
}
