//! `watch` of a program whose first requests take longer on some connections, over the emulated
//! link: each cause is named.

use crate::link::on_link;
use crate::peers::program;
use serde_json::Value;
use std::path::Path;

/// A server that responds once on each connection, on every third one in the manner of `SLOW`. With
/// `CONTINUE` it asks for the body of the request first: from then on the client's kernel delays
/// its acknowledgements.
const SERVER: &str = r#"
import os, socket, threading, time
slow, asks, base = os.environ["SLOW"], os.environ.get("CONTINUE"), float(os.environ.get("BASE", 0))
def read(peer, end):
    data = b""
    while not data.endswith(end):
        more = peer.recv(4096)
        if not more:
            raise SystemExit
        data += more
def serve(peer, third):
    # elsewhere Nagle's algorithm is on
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, not (third and slow == "nagle"))
    read(peer, b"\r\n\r\n")
    if asks:
        peer.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        read(peer, b"body")
    time.sleep(0.7 if third and slow == "wait" else base)
    head, body = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\n", b"hello"
    if third and slow in ("gap", "nagle"):
        peer.sendall(head)
        time.sleep(0.7 if slow == "gap" else 0)
        peer.sendall(body)
    else:
        peer.sendall(head + body)
    while peer.recv(4096):
        pass
listener = socket.create_server(("0.0.0.0", 80), backlog=100)
nth = 0
while True:
    peer = listener.accept()[0]
    nth += 1
    threading.Thread(target=serve, args=(peer, nth % 3 == 0), daemon=True).start()
"#;

/// Runs of a cause until it counts as not named.
const ATTEMPTS: usize = 3;

/// A client that opens a connection for each of its requests.
const CLIENT: &str = r#"
import os, socket
head = b"POST / HTTP/1.1\r\nHost: server.test\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n"
for _ in range(int(os.environ["CALLS"])):
    with socket.create_connection(("server.test", 80)) as server:
        if os.environ.get("CONTINUE"):
            server.sendall(head)
            server.recv(4096)
            server.sendall(b"body")
        else:
            server.sendall(b"GET / HTTP/1.1\r\nHost: server.test\r\n\r\n")
        data = b""
        while not data.endswith(b"hello"):
            data += server.recv(4096)
"#;

/// The causes of the slower tiers of the first requests, and the sentence.
fn tiers_under_watch(spec: &str, environment: &str) -> Option<(Vec<String>, String)> {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).display().to_string();
    let (server, client, json) = (file("server.py"), file("client.py"), file("watch.json"));
    std::fs::write(&server, SERVER).unwrap();
    std::fs::write(&client, CLIENT).unwrap();
    let server = format!("{environment} exec python3 {server}");
    let intact = env!("CARGO_BIN_EXE_intact");
    let watch =
        format!("{environment} exec {intact} watch --quiet --json={json} -- python3 {client}");
    let words = ["link", spec, "--server", &server, "--", "sh", "-c", &watch];
    let out = on_link(&words, "tiers of first requests")?;
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    Some(tiers_of(Path::new(&json)))
}

fn tiers_of(json: &Path) -> (Vec<String>, String) {
    let document: Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    let tiers = &document["destinations"][0]["tiers"];
    let levels = tiers["levels"].as_array().cloned().unwrap_or_default();
    let causes = levels.iter().filter_map(|one| one["cause"].as_str());
    let sentence = tiers["sentence"].as_str().unwrap_or_default();
    (causes.map(str::to_owned).collect(), sentence.to_owned())
}

#[test]
fn the_cause_of_slow_first_requests_of_a_program_is_named() {
    if program("python3", "tiers of first requests").is_none() {
        return;
    }
    // a response that takes a while leaves the noise of the machine small
    for (spec, environment, cause, words) in [
        (
            "rtt=4ms",
            "SLOW=wait BASE=0.1 CALLS=30",
            "server-wait",
            "server wait: ",
        ),
        (
            "rtt=4ms",
            "SLOW=gap BASE=0.1 CALLS=30",
            "headers-to-body",
            "headers-to-body gap: ",
        ),
        (
            "rtt=1ms",
            "SLOW=nagle CONTINUE=1 CALLS=60",
            "delayed-ack",
            "delayed ACK: ",
        ),
        (
            "rtt=4ms,loss=8%",
            "SLOW=never BASE=0.1 CALLS=80",
            "retransmission",
            "retransmission: in ",
        ),
    ] {
        let mut seen = Vec::new();
        // other programs on the machine can delay as many requests as the cause does: a run of its
        // own, up to three times
        let is_named = loop {
            let Some((causes, sentence)) = tiers_under_watch(spec, environment) else {
                return;
            };
            // the noise of a busy machine can make a tier of its own below the slowest
            if causes.last().is_some_and(|one| one == cause) && sentence.contains(words) {
                break true;
            }
            seen.push((causes, sentence));
            if seen.len() == ATTEMPTS {
                break false;
            }
        };
        assert!(is_named, "{spec}, {environment}: {seen:?}");
    }
}

#[test]
fn jitter_of_the_path_of_a_program_is_never_blamed_on_the_server() {
    if program("python3", "tiers of first requests").is_none() {
        return;
    }
    let found = tiers_under_watch("rtt=20ms,jitter=10ms", "SLOW=never CALLS=40");
    let Some((causes, sentence)) = found else {
        return;
    };
    assert!(
        causes.iter().all(|seen| seen == "jitter"),
        "{causes:?} {sentence}"
    );
}
