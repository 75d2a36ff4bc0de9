//! Every way in which a kept connection dies (`fixtures/dead-connections/`, named as in `watch
//! --fault`), under the engine: each request ends in its kind and in time. None is sent twice: the
//! server's ledger has no request that the engine's has not.

use crate::hostile::{all, id, outcomes};
use crate::rig::{Record, config, run};
use intact_bench::Length;
use intact_ledger::{Protocol, Row};
use intact_serve::{Config, Totals};
use intact_test_servers::{Hostile, TestServer, in_parallel};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

/// The engine's limit for a request.
const TIMEOUT: Duration = Duration::from_secs(2);
/// By how much a busy machine may exceed it.
const LATE: Duration = Duration::from_secs(20);

/// Requests a second, where connections have to idle between them.
const RATE: f64 = 3.0;

/// A bench of POST requests, which nothing may send twice.
fn bench(address: SocketAddr, protocol: Protocol) -> intact_bench::Config {
    let mut config = config(&format!("http://{address}/"));
    config.timeout = TIMEOUT;
    config.length = Length::Exchanges(6);
    config.axes.http = vec![protocol];
    config.method = "POST".to_owned();
    config.body = b"{}".to_vec();
    config
}

/// What is wrong with the ledgers of both sides, if anything.
fn compare(record: &Record, totals: &Totals, expected: &[&str]) -> Vec<String> {
    let mut wrong = Vec::new();
    let (ok, failed) = record.outcomes();
    let all = ok + failed.iter().map(|(_, count)| count).sum::<u64>();
    let found = outcomes(record);
    if found.is_empty() || !found.iter().all(|id| expected.contains(&id.as_str())) {
        wrong.push(format!("{found:?}, expected {expected:?}"));
    }
    if totals.requests.total > all {
        let there = totals.requests.total;
        wrong.push(format!("{all} requests here, {there} at the server"));
    }
    if totals.requests.ok < ok {
        wrong.push(format!("{ok} responses, {} sent", totals.requests.ok));
    }
    let longest = record.rows.iter().filter_map(|row| match row {
        Row::Exchange(exchange) => Some(exchange.end.since(exchange.at)),
        _ => None,
    });
    let longest = Duration::from_nanos(longest.max().unwrap_or(u64::MAX));
    if longest > TIMEOUT + LATE {
        wrong.push(format!("a request took {longest:?}"));
    }
    wrong
}

/// Runs one kind; what is wrong, if anything. At least one request ends in the first outcome that
/// the file lists.
fn check(kind: &Hostile, protocol: Protocol) -> Option<String> {
    let expected = match protocol {
        Protocol::Http2 => &kind.expect.http2,
        _ => &kind.expect.http1,
    };
    let expected: Vec<&str> = expected.iter().map(id).collect();
    let server = TestServer::start(kind.config.clone()).unwrap();
    let mut config = bench(server.addresses().plain.unwrap(), protocol);
    let ends_idle = kind.config.idle_timeout.is_some() || kind.config.max_age.is_some();
    config.requests_per_s = ends_idle.then_some(RATE);
    let record = run(config);
    let totals = server.end().unwrap();
    let mut wrong = compare(&record, &totals, &expected);
    if !outcomes(&record).iter().any(|id| id == expected[0]) {
        wrong.push(format!("no request ended in {}", expected[0]));
    }
    (!wrong.is_empty()).then(|| format!("{} in HTTP/{}: {wrong:?}", kind.name, protocol.as_str()))
}

#[test]
fn no_kind_of_dead_connection_hangs_the_engine_or_makes_it_send_twice() {
    let kinds = all("dead-connections");
    assert!(kinds.len() >= 10, "files are missing");
    let mut trials = Vec::new();
    for kind in &kinds {
        trials.extend([(kind, Protocol::Http11), (kind, Protocol::Http2)]);
    }
    let wrong = in_parallel(trials, |(kind, protocol)| check(kind, *protocol));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Requests that the server has answered so far, by its own ledger.
fn answered(address: SocketAddr) -> u64 {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = "GET /.intact/ledger HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (_, requests) = text.split_once("\"requests\"").unwrap();
    let (_, total) = requests.split_once("\"total\"").unwrap();
    let digits = total.trim_start_matches([':', ' ']);
    let end = digits.find(|letter: char| !letter.is_ascii_digit());
    digits[..end.unwrap()].parse().unwrap()
}

/// `drain`: our own server ends under our own engine.
#[test]
fn a_server_that_drains_loses_no_request_of_the_engine() {
    for protocol in [Protocol::Http11, Protocol::Http2] {
        let server = TestServer::start(Config {
            drain: LATE,
            delay: "5ms".parse().unwrap(),
            ..Config::default()
        })
        .unwrap();
        let address = server.addresses().plain.unwrap();
        let mut config = bench(address, protocol);
        config.axes.concurrency = vec![4];
        config.length = Length::Time(Duration::from_secs(2));
        let ending = thread::spawn(move || {
            let give_up = Instant::now() + LATE;
            while answered(address) < 20 && Instant::now() < give_up {
                thread::sleep(Duration::from_millis(5));
            }
            server.end().unwrap()
        });
        let record = run(config);
        let totals = ending.join().unwrap();
        // what was not announced in time may be refused by number, which is safe to send again
        let expected = ["ok", "refused", "refused-stream", "connect-reset"];
        let wrong = compare(&record, &totals, &expected);
        assert_eq!(wrong, Vec::<String>::new(), "HTTP/{}", protocol.as_str());
        let (ok, failed) = record.outcomes();
        assert!(ok >= 20 && !failed.is_empty(), "{ok} {failed:?}");
        assert_eq!(ok, totals.requests.ok, "every response arrived");
    }
}
