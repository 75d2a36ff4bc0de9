//! Requests of a file that take turns, and what the body of a response has to have.

use crate::rig::{Everything, HELLO, config, request, run, send, server};
use intact_bench::{Arrival, Bench, BenchError, Config, IoChoice, Scenario, Targets};
use intact_client::Clock;
use intact_experiment::Axes;
use intact_ledger::{Cell, Outcome, TagCell, Tally};
use intact_scenario::{Language, compile, targets};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What a server was asked for, as method and path.
type Asked = Arc<Mutex<Vec<String>>>;

/// A server that says hello.
fn greeting() -> (SocketAddr, Asked) {
    let asked = Asked::default();
    let seen = asked.clone();
    let (address, _) = server(Box::new(move |mut stream, _, counts| {
        while let Some(head) = request(&mut stream, counts) {
            let line = head.rsplit_once(" HTTP/").map_or("", |(line, _)| line);
            seen.lock().unwrap().push(line.to_owned());
            send(&mut stream, HELLO);
        }
    }));
    (address, asked)
}

fn with_targets(url: &str, text: &str) -> Config {
    let requests = targets("x.txt", text, &|_| Ok(Vec::new())).unwrap();
    let source = "x.txt".to_owned();
    Config {
        targets: Some(Targets { source, requests }),
        ..config(url)
    }
}

fn counts(tags: &[TagCell]) -> BTreeMap<&str, u64> {
    let count = |tag: &TagCell| tag.merged(|_| true).map_or(0, |group| group.count());
    tags.iter().map(|tag| (&*tag.tag, count(tag))).collect()
}

fn whole(tally: &Tally) -> Cell {
    let mut whole = Cell::new(None, None);
    tally.cells.iter().for_each(|cell| whole.merge(cell));
    whole
}

#[test]
fn each_target_is_sent_as_often_as_every_other_in_each_variant() {
    for threads in [1, 2] {
        let (address, asked) = greeting();
        let text = format!("GET /a\n\nGET http://{address}/b\n\nGET /c\n\nGET /d");
        let bench = Config {
            threads,
            axes: Axes {
                keepalive: vec![true, false],
                concurrency: vec![threads],
                ..Axes::default()
            },
            ..with_targets(&format!("http://{address}/"), &text)
        };
        let tally = run(bench).tally;
        for variant in 0..2 {
            let mut cell = Cell::new(None, None);
            tally.of_variant(variant).for_each(|one| cell.merge(one));
            let each = ["GET /a", "GET /b", "GET /c", "GET /d"].map(|tag| (tag, 5));
            assert_eq!(counts(&cell.tags), BTreeMap::from(each), "{threads}");
        }
        let asked = asked.lock().unwrap();
        assert_eq!(asked.iter().filter(|one| one.contains("//")).count(), 0);
        // 40 measured, 2 of the preflight, 2 rounds of warm-up
        assert_eq!(asked.len() as u32, 40 + 2 + 2 * threads, "{asked:?}");
    }
}

#[test]
fn a_target_elsewhere_or_one_that_cannot_be_sent_is_refused_with_its_line() {
    for (text, words) in [
        (
            "GET /a\n\nGET http://other:1/b",
            "x.txt:3: http://other:1 is outside",
        ),
        (
            "GET /a\nHost: x\nHost: y",
            "x.txt:1: -H \"Host\": a request has one Host",
        ),
        ("GET http://127.0.0.1:9x/", "x.txt:1: "),
    ] {
        let config = with_targets("http://127.0.0.1:9/", text);
        let error = Bench::new(config).map(|_| panic!("{text}")).unwrap_err();
        assert!(matches!(error, BenchError::Config(_)));
        assert!(error.to_string().starts_with(words), "{error}");
    }
}

/// The outcomes of one request with this check, of a server that says hello.
fn checked(check: &str) -> Result<Outcome, String> {
    let (address, _) = greeting();
    let text =
        format!("definition.session('s', (c) => c.get('/', {{ tag: 't', check: {check} }}));");
    let plan = compile("x.js", Language::JavaScript, &text, Duration::from_secs(5));
    let plan = plan.map_err(|error| error.to_string())?;
    let arrival = Arrival {
        clients: Some(1),
        ..Arrival::default()
    };
    let config = Config {
        io: IoChoice::Epoll,
        ..config(&format!("http://{address}/"))
    };
    let scenario = Scenario::new(config, plan, "x.js", arrival, false);
    let scenario = scenario.map_err(|error| error.to_string())?;
    let tally = scenario.run(Clock::start(), &mut Everything::default());
    let whole = whole(&tally.unwrap());
    assert_eq!(counts(&whole.tags), BTreeMap::from([("t", 1)]));
    Ok(whole.tags[0].groups[0].key.outcome)
}

#[test]
fn a_response_without_what_the_check_names_failed_under_its_tag() {
    for (check, outcome) in [
        ("{ status: 200, contains: 'ell' }", "ok"),
        ("{ contains: 'bye' }", "unexpected-body"),
        ("{ json: { '$.a': 1 } }", "unexpected-body"),
        ("{ status: '204' }", "unexpected-status"),
        ("{ status: 204, contains: 'bye' }", "unexpected-status"),
    ] {
        assert_eq!(checked(check).unwrap().id(), outcome, "{check}");
    }
    let words = "x.js:1: check: status 4xx: name error statuses for the whole run too";
    let error = checked("{ status: '4xx' }").unwrap_err();
    assert!(error.starts_with(words), "{error}");
    let error = checked("{ status: 'fine' }").unwrap_err();
    assert!(
        error.starts_with("x.js:1: check: status \"fine\": "),
        "{error}"
    );
}
