//! What the server reports about itself while it runs.

use crate::rig::{Rig, answer, get};
use intact_serve::Config;
use std::io::Write;

#[test]
fn the_ledger_is_served_live_and_asking_for_it_is_not_counted() {
    let rig = Rig::start(Config {
        max_requests: Some(2),
        ..Config::default()
    });
    let mut used = rig.connect();
    get(&mut used, "/");
    let mut asking = rig.connect();
    for _ in 0..3 {
        let answer = get(&mut asking, "/.intact/ledger");
        let text = String::from_utf8(answer.body).unwrap();
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(json["schema"], "intact.serve/1");
        assert_eq!(json["requests"]["total"], 1);
        assert_eq!(json["connections"]["opened"], 1);
        assert_eq!(json["connections"]["open"], 1);
        assert_eq!(json["last"][0]["target"], "/");
    }
    assert_eq!(get(&mut asking, "/.intact/health").body, b"ok\n");
    assert_eq!(get(&mut asking, "/.intact/other").status(), "404");
    let totals = rig.end();
    assert_eq!((totals.requests.total, totals.connections.opened), (1, 1));
}

#[test]
fn a_page_of_another_site_learns_nothing() {
    let rig = Rig::start(Config {
        names: vec!["rig.test".to_owned()],
        ..Config::default()
    });
    let mut stream = rig.connect();
    let local = stream.peer_addr().unwrap();
    let mut status = |host: &str, path: &str| {
        stream
            .write_all(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes())
            .unwrap();
        answer(&mut stream).status().to_owned()
    };
    for path in [
        "/.intact/ledger",
        "/.intact/health",
        "/.intact/other",
        "/.intact/",
    ] {
        let found = if path.ends_with("ledger") || path.ends_with("health") {
            "200"
        } else {
            "404"
        };
        for ours in [
            "localhost",
            "localhost:8080",
            "127.0.0.1",
            &local.to_string(),
            "[::1]:1",
            "RIG.test",
        ] {
            assert_eq!(status(ours, path), found, "{ours} {path}");
        }
        // names that lead here by their DNS
        for other in [
            "evil.test",
            "localhost.evil.test",
            "127.0.0.1.evil.test",
            "",
            "192.0.2.1",
        ] {
            assert_eq!(status(other, path), "403", "{other} {path}");
        }
    }
    let mut client = crate::http2::Client::start(rig.connect());
    // its authority is `a`
    client.get(1, "/.intact/ledger");
    let (head, body) = client.answer(1);
    assert!(!body.is_empty() && body.len() < 200, "{head:?} {body:?}");
    assert_eq!(rig.end().requests.total, 0);
}

#[test]
fn an_open_connection_counts_before_it_asks_anything() {
    let rig = Rig::start(Config::default());
    let _unused = rig.connect();
    let mut asking = rig.connect();
    let open = |stream: &mut _| {
        let json: serde_json::Value =
            serde_json::from_slice(&get(stream, "/.intact/ledger").body).unwrap();
        json["connections"]["open"].as_u64().unwrap()
    };
    // connections are accepted in order, so the first one is there
    assert_eq!(open(&mut asking), 1);
}
