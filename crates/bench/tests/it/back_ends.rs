//! epoll and io_uring are two ways to do the same: all tests pass on both, and both count the same
//! on one server.

#![allow(
    clippy::print_stdout,
    reason = "the output of a test shows latencies that it does not assert"
)]

use crate::rig::{ON_URING, Record, config, run};
use crate::skip::skip;
use intact_bench::{Arrival, Bench, BenchError, Coalesce, Config, IoChoice, Length, Scenario};
use intact_client::tls::Verify;
use intact_experiment::TlsChoice;
use intact_ledger::{EndedBy, Producer, Protocol, Run, TlsVersion, Vantage};
use intact_scenario::{Language, compile};
use intact_serve::{CertificateAuthority, TlsConfig, Totals};
use intact_test_servers::TestServer;
use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;

/// Whether the kernel allows io_uring here; if not, the reason is printed.
fn has_uring() -> bool {
    let mut wanted = config("http://127.0.0.1:9/");
    wanted.io = IoChoice::Uring;
    match Bench::new(wanted) {
        Ok(_) => true,
        Err(BenchError::Io(reason)) => {
            skip("bench on io_uring", &reason.to_string());
            false
        }
        Err(other) => panic!("{other}"),
    }
}

/// What both back ends have to agree on. Times are not in it.
#[derive(Debug, PartialEq, Eq)]
struct Counts {
    /// Exchanges and their bytes, by what they are.
    exchanges: BTreeMap<String, (u64, [u64; 4])>,
    opened: u64,
    ended_by: BTreeMap<EndedBy, u64>,
    handshakes: u64,
    /// Requests and connections, as the server counts them.
    server: (u64, u64, u64),
}

fn counts(record: &Record, totals: &Totals) -> Counts {
    let mut counts = Counts {
        exchanges: BTreeMap::new(),
        opened: record.opened(),
        ended_by: BTreeMap::new(),
        handshakes: 0,
        server: (
            totals.requests.total,
            totals.connections.opened,
            totals.reused,
        ),
    };
    for cell in &record.tally.cells {
        for group in &cell.groups {
            let bytes = &group.bytes;
            let bytes = [
                bytes.request_head,
                bytes.request_body,
                bytes.head,
                bytes.body,
            ];
            let key = format!("{:?} {:?} {:?}", cell.variant, cell.round, group.key);
            let before = counts.exchanges.insert(key, (group.count(), bytes));
            assert_eq!(before, None);
        }
        for (by, count) in &cell.connections.ended_by {
            *counts.ended_by.entry(*by).or_default() += count;
        }
        let handshakes = cell.connections.handshakes.iter();
        counts.handshakes += handshakes.map(|(_, _, count)| count).sum::<u64>();
    }
    counts
}

/// The median latency in microseconds. It is printed, never asserted.
fn median(record: &Record) -> f64 {
    let groups = record.tally.cells.iter().flat_map(|cell| &cell.groups);
    let mut all = intact_ledger::Histogram::new();
    for group in groups.filter(|group| !group.key.warmup) {
        all.merge(&group.latency);
    }
    all.quantile(0.5).unwrap_or(0.0) / 1e3
}

fn on(io: IoChoice, server: &intact_serve::Config, change: impl Fn(&mut Config)) -> (Counts, f64) {
    let server = TestServer::start(server.clone()).unwrap();
    let addresses = server.addresses();
    let mut config = config(&format!("http://{}/", addresses.plain.unwrap()));
    config.target.tls_port = addresses.tls.map(|address| address.port());
    config.axes.keepalive = vec![true, false];
    config.axes.concurrency = vec![1, 8];
    config.length = Length::Exchanges(160);
    config.timeout = std::time::Duration::from_secs(20);
    config.io = io;
    change(&mut config);
    let record = run(config);
    let totals = server.end().unwrap();
    (counts(&record, &totals), median(&record))
}

/// Runs the same on both.
fn compare(server: &intact_serve::Config, change: impl Fn(&mut Config)) -> Counts {
    let (epoll, median_of_epoll) = on(IoChoice::Epoll, server, &change);
    let (uring, median_of_uring) = on(IoChoice::Uring, server, &change);
    println!("median latency: epoll {median_of_epoll:.1} us, io_uring {median_of_uring:.1} us");
    assert_eq!(epoll, uring);
    epoll
}

#[test]
fn both_count_the_same_connections_requests_and_bytes() {
    if !has_uring() {
        return;
    }
    let authority = Arc::new(CertificateAuthority::make(&[]).unwrap());
    let roots = authority.ca_pem().unwrap().to_owned();
    let server = intact_serve::Config {
        tls: Some((
            ([127, 0, 0, 1], 0).into(),
            TlsConfig::new(authority, vec![TlsVersion::Tls12, TlsVersion::Tls13]),
        )),
        ..intact_serve::Config::default()
    };
    let all = compare(&server, |config| {
        config.axes.http = vec![Protocol::Http10, Protocol::Http11, Protocol::Http2];
        config.axes.tls = vec![TlsChoice::None, TlsChoice::Any];
        config.credentials.verify = Verify::Roots(roots.as_bytes().into());
    });
    let exchanges: u64 = all.exchanges.values().map(|(count, _)| count).sum();
    assert_eq!(exchanges, all.server.0, "{all:?}");
    assert_eq!(all.opened, all.server.1, "{all:?}");
    assert!(all.handshakes > 0);
}

#[test]
fn both_count_the_same_when_the_server_closes_after_each_seventh_request() {
    if !has_uring() {
        return;
    }
    let server = intact_serve::Config {
        max_requests: Some(7),
        ..intact_serve::Config::default()
    };
    compare(&server, |config| config.axes.concurrency = vec![1]);
}

#[test]
fn both_send_and_receive_bodies_that_fill_the_socket_buffers() {
    if !has_uring() {
        return;
    }
    let server = intact_serve::Config {
        body: 3_000_000,
        ..intact_serve::Config::default()
    };
    let all = compare(&server, |config| {
        config.axes.http = vec![Protocol::Http11, Protocol::Http2];
        config.method = "POST".to_owned();
        config.body = vec![b'x'; 2_000_000];
        config.length = Length::Exchanges(16);
        config.rounds = Some(1);
    });
    for (key, (count, bytes)) in &all.exchanges {
        // HTTP/2 adds the heads of its frames
        assert!(bytes[1] >= count * 2_000_000, "{key}");
        assert!(bytes[3] >= count * 3_000_000, "{key}");
    }
}

#[test]
fn many_connections_share_few_buffers() {
    if !has_uring() {
        return;
    }
    let server = intact_serve::Config::default();
    compare(&server, |config| {
        config.axes.concurrency = vec![900];
        config.axes.keepalive = vec![true];
        config.length = Length::Exchanges(9_000);
    });
}

/// The name of `--io epoll` on this system.
const READINESS: &str = if cfg!(target_os = "linux") {
    "epoll"
} else if cfg!(unix) {
    "kqueue"
} else {
    "poll"
};

/// The back end that the header of a run names, and the reason.
fn recorded(change: impl Fn(&mut Config)) -> (String, Option<String>) {
    let mut config = config("http://127.0.0.1:9/");
    config.io = IoChoice::Auto;
    config.axes.concurrency = vec![1, 64];
    config.length = Length::Exchanges(1_000);
    config.coalesce = Coalesce::Auto;
    change(&mut config);
    let bench = Bench::new(config).unwrap();
    let started = "2026-01-01T00:00:00Z".parse().unwrap();
    let mut head = Run::new(Producer::Bench, "0", Vantage::Client, started, 1, &[]);
    bench.describe(&mut head);
    let io = head.io.unwrap();
    (io.backend, io.reason)
}

#[test]
fn auto_is_io_uring_only_where_it_pays_and_the_run_says_why_not() {
    let epoll = recorded(|config| config.io = IoChoice::Epoll);
    assert_eq!(epoll, (String::from(READINESS), None));
    let without_gain: [fn(&mut Config); 6] = [
        |config| config.axes.keepalive = vec![true, false],
        |config| config.axes.concurrency = vec![1, 31],
        |config| config.axes.concurrency = vec![64, 1_001],
        |config| config.threads = 3,
        |config| config.axes.streams = vec![8],
        |config| config.coalesce = Coalesce::Never,
    ];
    for change in without_gain {
        let (backend, reason) = recorded(|config| {
            config.axes.http = vec![Protocol::Http2];
            change(config);
        });
        assert_eq!(backend, READINESS);
        assert!(reason.unwrap().contains("from -c 32"));
    }
    for coalesce in [Coalesce::Auto, Coalesce::Always] {
        let (backend, reason) = recorded(|config| config.coalesce = coalesce);
        // an older kernel has its reason
        assert_eq!(
            reason.is_none(),
            backend == "io_uring",
            "{backend} {reason:?}"
        );
    }
}

/// A configuration that io_uring would pay for, were it not for HTTP/3.
fn many_of_http3(config: &mut Config) {
    config.target.url = "https://127.0.0.1:9/".to_owned();
    config.axes.tls = vec![TlsChoice::Any];
    config.axes.http = vec![Protocol::Http11, Protocol::Http3];
}

#[test]
fn http3_uses_epoll_with_a_reason_and_refuses_io_uring() {
    let (backend, reason) = recorded(many_of_http3);
    assert_eq!(backend, READINESS);
    assert!(reason.unwrap().contains("HTTP/3 uses UDP"));
    let mut named = config("http://127.0.0.1:9/");
    many_of_http3(&mut named);
    named.io = IoChoice::Uring;
    match Bench::new(named) {
        Err(BenchError::Config(error)) => {
            let words = error.to_string();
            assert!(words.contains("HTTP/3 uses UDP"), "{words}");
            assert!(words.contains("--io epoll"), "{words}");
        }
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("io_uring was accepted"),
    }
}

#[test]
fn a_scenario_uses_epoll_with_a_reason_and_refuses_io_uring() {
    let made = |io| {
        let text = "definition.session('s', (session) => { session.get('/'); });";
        let limit = std::time::Duration::from_secs(5);
        let plan = compile("x.js", Language::JavaScript, text, limit).unwrap();
        let mut config = config("http://127.0.0.1:9/");
        config.io = io;
        Scenario::new(config, plan, "x.js", Arrival::default(), false)
    };
    let reason = |io| {
        let started = "2026-01-01T00:00:00Z".parse().unwrap();
        let mut head = Run::new(Producer::Bench, "0", Vantage::Client, started, 1, &[]);
        let scenario = made(io).unwrap_or_else(|error| panic!("{error}"));
        scenario.describe(&mut head);
        let io = head.io.unwrap();
        assert_eq!(io.backend, READINESS);
        io.reason
    };
    assert_eq!(reason(IoChoice::Epoll), None);
    assert!(reason(IoChoice::Auto).unwrap().contains("a scenario adds"));
    let refused = made(IoChoice::Uring).map(|_| "accepted").unwrap_err();
    assert!(refused.to_string().contains("--io epoll"), "{refused}");
}

/// Runs the other tests of this program again, with io_uring below them.
#[test]
fn all_other_tests_pass_on_io_uring_too() {
    if std::env::var_os(ON_URING).is_some() || !has_uring() {
        return;
    }
    let program = std::env::current_exe().unwrap();
    let output = Command::new(program)
        // io_uring serves neither of the last two
        .args(["--skip", "back_ends::"])
        .args(["--skip", "http3::", "--skip", "scenario::"])
        .env(ON_URING, "1")
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{printed}");
    assert!(printed.contains("test result: ok."), "{printed}");
}
