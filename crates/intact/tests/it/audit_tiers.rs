//! `intact audit` of captures in which the first requests of some connections take longer: each
//! cause is named, by the packets.

use crate::audit::packets::{ACK, Capture, End, RAW, SYN, Tcp, plain};
use crate::program::intact;
use End::{Client, Server};
use serde_json::Value;

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n";
const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n";

/// Packets of a connection, each with the milliseconds after the one before.
struct Timed {
    tcp: Tcp,
    after_ms: Vec<u64>,
}

impl Timed {
    /// The handshake over a path of 10 ms, captured at the client.
    fn opened(port: u16, handshake_ms: u64) -> Timed {
        let mut one = Timed {
            tcp: Tcp::joined(port),
            after_ms: Vec::new(),
        };
        one.send(50, Client, SYN, b"");
        one.send(handshake_ms, Server, SYN | ACK, b"");
        one.send(0, Client, ACK, b"");
        one
    }

    fn send(&mut self, after_ms: u64, end: End, flags: u8, payload: &[u8]) {
        self.tcp.send(end, flags, payload);
        self.after_ms.push(after_ms);
    }

    fn say(mut self, after_ms: u64, end: End, payload: &[u8]) -> Timed {
        self.send(after_ms, end, ACK, payload);
        self
    }

    /// The last packet again.
    fn again(mut self, after_ms: u64) -> Timed {
        let last = self.tcp.packets.last().unwrap();
        let last = (last.0, last.1.clone());
        self.tcp.packets.push(last);
        self.after_ms.push(after_ms);
        self
    }

    /// The response in one piece, after this time.
    fn respond(self, after_ms: u64) -> Timed {
        let response = [HEAD, b"ok"].concat();
        self.say(after_ms, Server, &response).say(0, Client, b"")
    }

    fn close(mut self) -> Timed {
        let before = self.tcp.packets.len();
        self.tcp = self.tcp.close();
        let more = self.tcp.packets.len() - before;
        self.after_ms.extend(vec![1; more]);
        self
    }
}

/// A connection with its request.
fn asked(port: u16) -> Timed {
    Timed::opened(port, 10).say(0, Client, REQUEST)
}

/// 30 connections with a request each: 10 ms for the handshake, 10 ms for the response; every third
/// is `slow`.
fn capture(slow: impl Fn(u16) -> Timed) -> Vec<u8> {
    let mut capture = Capture::new(RAW);
    for nth in 0..30 {
        let port = 40_000 + nth;
        let one = match nth % 3 {
            0 => slow(port),
            _ => asked(port).respond(10 + u64::from(nth % 2)),
        };
        let one = one.close();
        for (packet, after) in one.tcp.all().iter().zip(&one.after_ms) {
            capture.pass(after * 1_000);
            capture.add(&plain(packet));
        }
    }
    capture.bytes()
}

/// The cause of the slow tier in the document, and its sentence on the page.
fn audited(capture: &[u8]) -> (Value, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.pcap");
    std::fs::write(&path, capture).unwrap();
    let path = path.to_str().unwrap();
    let out = intact(&["audit", "--json", path]);
    let document: Value = serde_json::from_slice(&out.stdout).unwrap();
    let tiers = &document["destinations"][0]["tiers"];
    let levels = tiers["levels"].as_array().map_or(0, Vec::len);
    assert_eq!(levels, 2, "{tiers:#}");
    let page = intact(&["audit", path]);
    let page = String::from_utf8_lossy(&page.stdout).into_owned();
    let words: Vec<&str> = page.split_whitespace().collect();
    (tiers["levels"][1]["cause"].clone(), words.join(" "))
}

#[test]
fn the_cause_of_slow_first_requests_in_a_capture_is_named() {
    type Slow = fn(u16) -> Timed;
    let cases: [(&str, Slow, &str); 8] = [
        (
            "server-wait",
            |port| asked(port).respond(50),
            "server wait: ",
        ),
        // 40 ms between header section and body, which no acknowledgement explains
        (
            "headers-to-body",
            |port| {
                asked(port)
                    .say(10, Server, HEAD)
                    .say(0, Client, b"")
                    .say(41, Server, b"ok")
            },
            "headers-to-body gap: ",
        ),
        // the same with an acknowledgement that the client's kernel delayed
        (
            "delayed-ack",
            |port| {
                asked(port)
                    .say(10, Server, HEAD)
                    .say(40, Client, b"")
                    .say(10, Server, b"ok")
            },
            "delayed ACK: in 10 of the 10 slow ones data was sent only after an acknowledgement that came late",
        ),
        // a body that Nagle's algorithm held back until the server acknowledged the header section
        (
            "delayed-ack",
            |port| {
                Timed::opened(port, 10)
                    .say(
                        0,
                        Client,
                        b"POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 2\r\n\r\n",
                    )
                    .say(50, Server, b"")
                    .say(0, Client, b"hi")
                    .respond(10)
            },
            "delayed ACK: in 10 of the 10",
        ),
        (
            "retransmission",
            |port| asked(port).again(210).respond(10),
            "retransmission: in 10 of the 10 slow ones segments were sent again",
        ),
        // a SYN without an answer
        (
            "retransmission",
            |port| {
                let mut one = Timed::opened(port, 10);
                let rest = one.tcp.packets.split_off(1);
                let after = one.after_ms.split_off(1);
                let mut one = one.again(1_000);
                one.tcp.packets.extend(rest);
                one.after_ms.extend(after);
                one.say(0, Client, REQUEST).respond(10)
            },
            "retransmission: ",
        ),
        (
            "jitter",
            |port| Timed::opened(port, 30).say(0, Client, REQUEST).respond(30),
            "jitter: the TCP handshakes",
        ),
        // a request that comes late is the client's own time
        (
            "other-phase",
            |port| Timed::opened(port, 10).say(60, Client, REQUEST).respond(10),
            "the time before the request was sent",
        ),
    ];
    for (cause, slow, words) in cases {
        let (seen, page) = audited(&capture(slow));
        assert_eq!(seen, cause, "{words}");
        assert!(page.contains(words), "{words}: {page}");
        let first = "http://a.example: 20 of the 30 first requests of new connections take 2";
        assert!(page.contains(first), "{page}");
    }
}

#[test]
fn a_log_with_durations_shows_tiers_and_not_their_cause() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("access.log");
    let line = |nth: u32| {
        let time = if nth.is_multiple_of(3) {
            "0.240"
        } else {
            "0.010"
        };
        format!(
            "::1 - - [10/Oct/2000:13:55:{:02} +0000] \"GET /{nth} HTTP/1.1\" 200 5 \"-\" \"-\" conn={nth} reqs=1 rt={time} msec=971186100.{nth:03}\n",
            nth % 60
        )
    };
    std::fs::write(&log, (0..30).map(line).collect::<String>()).unwrap();
    let out = intact(&["audit", "--json", log.to_str().unwrap()]);
    let document: Value = serde_json::from_slice(&out.stdout).unwrap();
    let tiers = &document["destinations"][0]["tiers"];
    assert_eq!(tiers["levels"][1]["cause"], "not-seen", "{document:#}");
    let sentence = tiers["sentence"].as_str().unwrap();
    assert!(
        sentence.ends_with("no cause was seen: the phases of these calls were not recorded, and retransmissions could not be counted"),
        "{sentence}"
    );
}
