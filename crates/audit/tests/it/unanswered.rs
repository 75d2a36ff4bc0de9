//! Requests without a response in a capture: an acknowledgement shows whether the server received
//! the request before it closed.

use crate::packets::{ACK, Capture, End, FIN, RAW, RST, Tcp, plain};
use crate::reading;
use intact_audit::KeyLog;
use intact_ledger::{ClosePoint, Failure};

const REQUEST: &[u8] = b"POST /b HTTP/1.1\r\nHost: a.example\r\nContent-Length: 0\r\n\r\n";

/// A connection with a complete exchange.
fn used() -> Tcp {
    Tcp::opened(40_000).exchange("/a")
}

/// The outcome of the last exchange, whether its detail warns that the request may have been
/// executed, and the close point.
fn last(tcp: &Tcp) -> (Option<Failure>, bool, Option<ClosePoint>) {
    let capture = Capture::of(RAW, &tcp.all(), plain);
    let outcome = reading::bytes(&capture, KeyLog::default()).unwrap();
    let exchanges: Vec<_> = outcome.exchanges().collect();
    assert_eq!(exchanges.len(), 2);
    let connection = outcome.connections()[0].id;
    let close = &outcome.end_of(connection).unwrap().close;
    let detail = exchanges[1].detail.as_deref().unwrap_or_default();
    (
        exchanges[1].outcome.failure(),
        detail.ends_with("it may have executed it"),
        close.moment,
    )
}

#[test]
fn an_end_that_acknowledges_the_request_came_after_it() {
    for (flags, kind) in [(FIN, Failure::Closed), (RST, Failure::Reset)] {
        let mut tcp = used().say(End::Client, REQUEST);
        tcp.send(End::Server, flags | ACK, b"");
        // a millisecond after the request: by the time alone it would be stale
        let expected = (Some(kind), true, Some(ClosePoint::MidExchange));
        assert_eq!(last(&tcp), expected);
    }
}

#[test]
fn an_acknowledgement_before_the_end_counts_as_well() {
    let mut tcp = used().say(End::Client, REQUEST).say(End::Server, b"");
    tcp.send(End::Server, RST, b"");
    let expected = (Some(Failure::Reset), true, Some(ClosePoint::MidExchange));
    assert_eq!(last(&tcp), expected);
}

#[test]
fn a_server_that_closed_while_idle_makes_the_request_stale() {
    let expected = (Some(Failure::Stale), false, Some(ClosePoint::Stale));
    // the FIN came before the request
    let mut tcp = used();
    tcp.send(End::Server, FIN | ACK, b"");
    tcp = tcp.say(End::Client, REQUEST);
    let closed_before = tcp.packets.len();
    tcp.send(End::Server, RST, b"");
    assert_eq!(last(&tcp), expected);
    // a server that lingers acknowledges data that it never reads
    tcp.packets.truncate(closed_before);
    tcp.send(End::Server, ACK, b"");
    tcp.send(End::Server, RST, b"");
    assert_eq!(last(&tcp), expected);
    // request and FIN crossed: the FIN does not acknowledge the request
    let mut crossed = used();
    crossed.send(End::Server, FIN | ACK, b"");
    crossed = crossed.say(End::Client, REQUEST);
    let last_two = crossed.packets.len() - 2;
    crossed.packets.swap(last_two, last_two + 1);
    crossed.send(End::Server, RST, b"");
    assert_eq!(last(&crossed), expected);
    // the server has no state of the connection: a RST alone, without an acknowledgement
    let mut forgotten = used().say(End::Client, REQUEST);
    forgotten.send(End::Server, RST, b"");
    assert_eq!(last(&forgotten), expected);
}

/// The outcome of the last exchange, its number of retransmissions, and its latency in
/// milliseconds.
fn cut(resent: usize, answered: bool) -> (Option<Failure>, Option<u32>, u64) {
    let mut tcp = used().say(End::Client, REQUEST);
    let request = tcp.packets.last().unwrap().clone();
    if answered {
        tcp.send(End::Server, ACK, b"");
    }
    let mut capture = Capture::new(RAW);
    for (_, packet) in &tcp.packets {
        capture.add(packet);
    }
    for _ in 0..resent {
        capture.pass(400_000);
        capture.add(&request.1);
    }
    let outcome = reading::bytes(&capture.bytes(), KeyLog::default()).unwrap();
    let last = outcome.exchanges().last().unwrap();
    let latency = last.latency() / 1_000_000;
    (last.outcome.failure(), last.retransmissions, latency)
}

#[test]
fn a_capture_that_ends_while_a_request_is_sent_again_shows_that_no_acknowledgement_came() {
    let (failure, resent, latency) = cut(3, false);
    assert_eq!((failure, resent), (Some(Failure::Aborted), Some(3)));
    assert!(latency >= 1_200, "{latency} ms");
    // one may be a probe; after an acknowledgement there are other reasons for a retransmission
    assert_eq!(cut(1, false).0, None);
    assert_eq!(cut(0, true).0, None);
}

#[test]
fn a_client_that_closes_after_bytes_of_no_response_had_to() {
    let point = |response: &[u8]| {
        let tcp = Tcp::opened(40_000)
            .say(End::Client, b"GET /a HTTP/1.1\r\nHost: a.example\r\n\r\n")
            .say(End::Server, response)
            .close();
        let capture = Capture::of(RAW, &tcp.all(), plain);
        let outcome = reading::bytes(&capture, KeyLog::default()).unwrap();
        assert!(outcome.exchanges().all(|one| one.outcome.is_ok()));
        let connection = outcome.connections()[0].id;
        outcome.end_of(connection).unwrap().close.moment
    };
    let with = |body: &str| format!("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{body}");
    let complete = point(with("hel").as_bytes());
    assert_eq!(complete, Some(ClosePoint::AfterExchange));
    let excess = point(with("hello").as_bytes());
    assert_eq!(excess, Some(ClosePoint::AfterExcess));
    let second = point(with("hel").repeat(2).as_bytes());
    assert_eq!(second, Some(ClosePoint::AfterExcess));
}
