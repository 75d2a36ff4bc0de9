//! Peers that break a rule of HTTP/2 or TCP: what can be read is read, and what follows an
//! unreadable part is reported as not read.

use crate::packets::{ACK, Capture, End, RAW, RST, SYN, Tcp, plain};
use crate::reading::{self, Outcome};
use intact_audit::KeyLog;
use intact_ledger::Failure;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
const SETTINGS_ACK: &[u8] = &[0, 0, 0, 4, 1, 0, 0, 0, 0];
const WINDOW: &[u8] = &[0, 0, 4, 8, 0, 0, 0, 0, 0, 0, 0, 1, 0];

fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let len = payload.len() as u8;
    [&[0, 0, len, kind, flags, 0, 0, 0, stream][..], payload].concat()
}

/// A request, and its response without a body, on this stream.
fn request(stream: u8) -> Vec<u8> {
    frame(1, 5, stream, &[0x82, 0x86, 0x84, 0x41, 1, b'a'])
}

fn response(stream: u8) -> Vec<u8> {
    frame(1, 5, stream, &[0x88])
}

/// A connection whose client opens with these frames and sends `broken` after the first of two
/// requests.
fn connection(opening: &[u8], broken: &[u8]) -> Outcome {
    let first = [PREFACE, opening, &request(1)].concat();
    let tcp = Tcp::opened(40_000)
        .say(End::Client, &first)
        .say(
            End::Server,
            &[SETTINGS, SETTINGS_ACK, &response(1)].concat(),
        )
        .say(End::Client, &[broken, &request(3)[..]].concat())
        .say(End::Server, &response(3))
        .close();
    audited(&tcp)
}

fn audited(tcp: &Tcp) -> Outcome {
    reading::bytes(&Capture::of(RAW, &tcp.all(), plain), KeyLog::default()).unwrap()
}

fn requests(outcome: &Outcome) -> usize {
    outcome
        .exchanges()
        .filter(|one| one.status == Some(200))
        .count()
}

#[test]
fn the_first_frame_of_a_client_may_be_any() {
    for opening in [SETTINGS, SETTINGS_ACK, WINDOW, b""] {
        let outcome = connection(opening, b"");
        assert_eq!(requests(&outcome), 2, "{opening:?}");
        assert!(outcome.caveats().is_empty(), "{opening:?}");
    }
}

#[test]
fn frames_that_break_a_rule_are_passed_over() {
    for broken in [
        frame(8, 0, 0, &[0; 4]),
        frame(6, 0, 0, &[7; 5]),
        frame(6, 0, 1, &[7; 8]),
        frame(2, 0, 1, &[0; 4]),
        frame(4, 0, 0, &[0; 5]),
        frame(3, 0, 0, &[0; 4]),
    ] {
        let outcome = connection(SETTINGS, &broken);
        assert_eq!(requests(&outcome), 2, "{broken:?}");
        assert!(outcome.caveats().is_empty(), "{broken:?}");
    }
}

#[test]
fn what_follows_a_header_block_that_cannot_be_decoded_is_not_read() {
    for broken in [
        // an index beyond the tables; a block within a block; padding without end
        frame(1, 5, 5, &[0xff, 0xff, 0x03]),
        [frame(1, 1, 5, &[0x82]), frame(6, 0, 0, &[0; 8])].concat(),
        frame(1, 0x0d, 5, &[200, 0x82]),
    ] {
        let outcome = connection(SETTINGS, &broken);
        let caveat = outcome.caveat("http-not-read").unwrap();
        assert!(caveat.incomplete && caveat.all_connections, "{broken:?}");
        assert_eq!(requests(&outcome), 1, "{broken:?}");
        assert!(
            outcome
                .exchanges()
                .all(|one| one.outcome.failure().is_none())
        );
    }
    // nothing of the connection is read, and it is not one that carried nothing
    let tcp = Tcp::opened(40_000)
        .say(
            End::Client,
            &[PREFACE, SETTINGS, &frame(1, 5, 1, &[0xff; 3])].concat(),
        )
        .say(End::Server, &[SETTINGS, &response(1)[..]].concat())
        .close();
    let outcome = audited(&tcp);
    assert!(outcome.caveat("http-not-read").unwrap().incomplete);
    let close = &outcome.end_of(outcome.connections()[0].id).unwrap().close;
    assert_eq!(close.exchanges, None);
}

#[test]
fn a_reset_that_tcp_ignores_ends_nothing() {
    // numbers from before what the other side acknowledged
    for end in [End::Client, End::Server] {
        let mut tcp = Tcp::opened(40_000).exchange("/a").exchange("/b");
        let mut early = Tcp::joined(40_000);
        early.send(end, RST, b"");
        tcp.packets.extend(early.packets);
        let outcome = audited(&tcp.exchange("/c").close());
        assert_eq!(requests(&outcome), 3, "{end:?}");
        assert_eq!(outcome.connections().len(), 1, "{end:?}");
    }
    // one that nothing follows ends the connection
    let mut tcp = Tcp::opened(40_000).exchange("/a").exchange("/b");
    let mut early = Tcp::joined(40_000);
    early.send(End::Server, RST, b"");
    tcp.packets.extend(early.packets);
    let outcome = audited(&tcp);
    assert!(outcome.end_of(outcome.connections()[0].id).is_some());
}

#[test]
fn a_reset_that_does_not_acknowledge_the_syn_refuses_nothing() {
    let mut tcp = Tcp::joined(40_000);
    tcp.send(End::Client, SYN, b"");
    // as of a device that never saw the SYN: acknowledgement 0
    let mut stray = Tcp::joined(40_000);
    stray.send(End::Server, RST, b"");
    tcp.packets.extend(stray.packets);
    tcp.send(End::Server, SYN | ACK, b"");
    tcp.send(End::Client, ACK, b"");
    let outcome = audited(&tcp.exchange("/a").close());
    assert_eq!(requests(&outcome), 1);
    assert!(outcome.connections()[0].failed.is_none());
}

#[test]
fn a_refusal_that_carries_text_opened_nothing() {
    let mut tcp = Tcp::joined(40_000);
    tcp.send(End::Client, SYN, b"");
    tcp.send(End::Server, RST | ACK, b"go away");
    let outcome = audited(&tcp);
    let failed = outcome.connections()[0].failed.as_ref().unwrap();
    assert_eq!(failed.kind, Failure::Refused);
}

#[test]
fn what_follows_a_request_of_unknown_length_is_not_read() {
    let requests = |first: &str, rest: &str| {
        let text = format!("POST / HTTP/1.1\r\nHost: a\r\n{first}\r\n\r\n{rest}");
        let tcp = Tcp::opened(40_000).say(End::Client, text.as_bytes());
        let outcome = audited(&tcp.close());
        let is_marked = outcome
            .caveat("http-not-read")
            .is_some_and(|one| one.incomplete);
        (outcome.exchanges().count(), is_marked)
    };
    let next = "GET /b HTTP/1.1\r\nHost: a\r\n\r\n";
    for first in ["Content-Length: -1", "Transfer-Encoding: chunked, identity"] {
        assert_eq!(requests(first, next), (1, true), "{first}");
        assert_eq!(requests(first, ""), (1, false), "{first}");
    }
    let chunked = "Transfer-Encoding: chunked";
    assert_eq!(requests(chunked, &format!("x\r\n{next}")), (1, true));
    assert_eq!(requests(chunked, &format!("0\r\n\r\n{next}")), (2, false));
}
