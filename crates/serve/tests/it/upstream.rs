//! Outgoing calls that a response waits for: the ledger of the server and that of the upstream have the same counts.

use crate::http2::Client;
use crate::rig::{Rig, get};
use intact_client::tls::Verify;
use intact_ledger::Failure;
use intact_serve::{Config, Totals, UpstreamCalls, UpstreamConfig};

/// A server that calls `upstream` three times before each response, and requests in HTTP/1 and HTTP/2; what both recorded.
fn run(upstream: Config, path: &str, keepalive: bool) -> (Vec<String>, UpstreamCalls, Totals) {
    let upstream = Rig::start(upstream);
    let url = format!("http://{}{path}", upstream.plain());
    let server = Rig::start(Config {
        upstream: Some(UpstreamConfig::new(&url, 3, keepalive, Verify::Insecure).unwrap()),
        ..Config::default()
    });
    let mut stream = server.connect();
    let mut statuses: Vec<String> = (0..4)
        .map(|_| get(&mut stream, "/").status().to_owned())
        .collect();
    let mut client = Client::start(server.connect());
    client.get(1, "/");
    client.get(3, "/");
    for stream in [1, 3] {
        let (_, body) = client.answer(stream);
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
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", free.local_addr().unwrap());
    drop(free);
    let server = Rig::start(Config {
        upstream: Some(UpstreamConfig::new(&url, 1, true, Verify::Insecure).unwrap()),
        ..Config::default()
    });
    assert_eq!(get(&mut server.connect(), "/").status(), "502");
    let calls = server.end().upstream.unwrap();
    assert_eq!((calls.failed[&Failure::Refused], calls.connections), (1, 0));
}

#[test]
fn a_client_that_resets_gives_its_call_up() {
    let upstream = Rig::start(Config {
        faults: "stall".parse().unwrap(),
        ..Config::default()
    });
    let url = format!("http://{}/", upstream.plain());
    let server = Rig::start(Config {
        upstream: Some(UpstreamConfig::new(&url, 1, true, Verify::Insecure).unwrap()),
        ..Config::default()
    });
    let mut stream = server.connect();
    crate::rig::ask(&mut stream, "/");
    crate::rig::assert_silent(&mut stream);
    socket2::SockRef::from(&stream)
        .set_linger(Some(std::time::Duration::ZERO))
        .unwrap();
    drop(stream);
    // its end is the end of the call's connection, which the upstream waits for
    while get(&mut upstream.connect(), "/.intact/ledger")
        .body
        .windows(8)
        .all(|bytes| bytes != b"\"open\":0")
    {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    let totals = server.end();
    assert_eq!(totals.requests.failed[&Failure::ClientClosed], 1);
    upstream.end();
}
