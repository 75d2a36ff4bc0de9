//! Outgoing calls that a response waits for: the ledger of the server and that of the upstream have
//! the same counts.

use crate::http2::Client;
use crate::rig::{Rig, ask, get};
use intact_client::tls::Verify;
use intact_ledger::Failure;
use intact_serve::{Config, Totals, UpstreamCalls, UpstreamConfig};
use socket2::SockRef;
use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};

/// A server that calls `upstream` three times before each response, and requests in HTTP/1 and
/// HTTP/2; what both recorded.
fn run(upstream: Config, path: &str, keepalive: bool) -> (Vec<String>, UpstreamCalls, Totals) {
    let upstream = Rig::start(upstream);
    let url = format!("http://{}{path}", upstream.plain());
    let server = Rig::start(Config {
        upstream: Some(UpstreamConfig::new(&url, 3, keepalive, &Verify::Insecure).unwrap()),
        ..Config::default()
    });
    let mut stream = server.connect();
    let mut statuses: Vec<String> = (0..4)
        .map(|_| get(&mut stream, "/").status().to_owned())
        .collect();
    let mut client = Client::start(server.connect());
    client.get(1, "/");
    client.get(3, "/");
    for (_, body) in client.answers([1, 3]) {
        statuses.push(String::from_utf8(body).unwrap());
    }
    // about the server itself: nothing is called for it
    get(&mut stream, "/.intact/health");
    let calls = server.end().upstream.unwrap();
    (statuses, calls, upstream.end())
}

#[test]
fn each_response_waits_for_its_calls_on_kept_connections_or_new_ones() {
    for keepalive in [true, false] {
        let (statuses, calls, upstream) = run(Config::default(), "/", keepalive);
        assert_eq!(statuses[..4], ["200"; 4]);
        assert_eq!((calls.total, calls.failed.len()), (18, 0));
        assert_eq!((upstream.requests.ok, upstream.requests.total), (18, 18));
        assert_eq!(calls.connections, upstream.connections.opened);
        if keepalive {
            // two streams may call at a time
            assert!((1..=2).contains(&calls.connections), "{calls:?}");
        } else {
            assert_eq!(calls.connections, 18);
        }
    }
}

#[test]
fn calls_that_fail_make_a_502() {
    let (statuses, calls, _) = run(Config::default(), "/status/503", true);
    assert_eq!(statuses[..4], ["502"; 4]);
    assert_eq!(statuses[4..], ["3 of 3 calls to the upstream failed\n"; 2]);
    assert_eq!(calls.failed[&Failure::UnexpectedStatus], 18);

    let closing = Config {
        faults: "close-before-answer".parse().unwrap(),
        ..Config::default()
    };
    let (statuses, calls, upstream) = run(closing, "/", true);
    assert_eq!(statuses[..4], ["502"; 4]);
    assert_eq!(calls.failed[&Failure::Closed], 18);
    assert_eq!((calls.connections, upstream.connections.opened), (18, 18));
}

#[test]
fn an_upstream_that_is_not_there_is_a_502_and_no_connection() {
    let url = "http://127.0.0.1:9/";
    let server = Rig::start(Config {
        upstream: Some(UpstreamConfig::new(url, 1, true, &Verify::Insecure).unwrap()),
        ..Config::default()
    });
    assert_eq!(get(&mut server.connect(), "/").status(), "502");
    let calls = server.end().upstream.unwrap();
    assert_eq!((calls.failed[&Failure::Refused], calls.connections), (1, 0));
}

#[test]
fn a_client_that_leaves_gives_its_calls_up() {
    for is_http2 in [false, true] {
        let upstream = Rig::start(Config {
            faults: "stall".parse().unwrap(),
            ..Config::default()
        });
        let url = format!("http://{}/", upstream.plain());
        let server = Rig::start(Config {
            upstream: Some(UpstreamConfig::new(&url, 1, true, &Verify::Insecure).unwrap()),
            ..Config::default()
        });
        let mut stream = server.connect();
        if is_http2 {
            let mut client = Client::start(stream);
            client.get(1, "/");
            wait_for(&upstream, "\"open\":1");
            drop(client);
        } else {
            ask(&mut stream, "/");
            wait_for(&upstream, "\"open\":1");
            let linger = SockRef::from(&stream).set_linger(Some(Duration::ZERO));
            linger.unwrap();
            drop(stream);
        }
        // the end of the call is the end of its connection, which the upstream waits for
        wait_for(&upstream, "\"open\":0");
        let totals = server.end();
        assert_eq!(totals.requests.failed[&Failure::ClientClosed], 1);
        upstream.end();
    }
}

/// Waits until the ledger of a server has this in it.
fn wait_for(server: &Rig, text: &str) {
    let give_up = Instant::now() + Duration::from_secs(20);
    let ledger = || get(&mut server.connect(), "/.intact/ledger").body;
    while !String::from_utf8(ledger()).unwrap().contains(text) {
        assert!(Instant::now() < give_up, "never {text}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A port that is free, for servers that must know their own.
fn free_port() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

#[test]
fn servers_that_call_themselves_end_after_a_few_calls() {
    let (first, second) = (free_port(), free_port());
    let start = |at: SocketAddr, upstream: SocketAddr| {
        let url = format!("http://{upstream}/");
        Rig::start(Config {
            plain: Some(at),
            upstream: Some(UpstreamConfig::new(&url, 1, true, &Verify::Insecure).unwrap()),
            ..Config::default()
        })
    };
    let alone = start(first, first);
    assert_eq!(get(&mut alone.connect(), "/").status(), "502");
    let totals = alone.end();
    assert_eq!(
        (totals.requests.total, totals.upstream.unwrap().total),
        (9, 8)
    );
    // by another server
    let [one, other] = [start(first, second), start(second, first)];
    assert_eq!(get(&mut one.connect(), "/").status(), "502");
    assert_eq!(one.end().requests.total, 5);
    assert_eq!(other.end().requests.total, 4);
}
