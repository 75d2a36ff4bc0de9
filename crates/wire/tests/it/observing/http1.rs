//! Observed HTTP/1.

use intact_wire::Side::{self, Client, Server};
use intact_wire::exchange::{Event, Exchange, Outcome};
use intact_wire::http1::Http1Observer;
use proptest::collection::vec;
use proptest::prelude::*;

use super::Log;
use crate::pieces::cut;

/// The exchanges of a conversation. Piece n has the time n, and both directions end after the last
/// one.
fn observe(pieces: &[(Side, &str)]) -> Vec<String> {
    let mut observer = Http1Observer::default();
    let mut log = Log::default();
    for (at, (from, text)) in pieces.iter().enumerate() {
        observer.read(*from, text.as_bytes(), at as u64, |event| log.take(event));
    }
    end(&mut observer, pieces.len() as u64, &mut log);
    log.0
}

fn end(observer: &mut Http1Observer, at: u64, log: &mut Log) {
    observer.end(Client, at, |event| log.take(event));
    observer.end(Server, at, |event| log.take(event));
    assert_eq!(observer.outstanding(), 0);
}

const GET: (Side, &str) = (Client, "GET /a HTTP/1.1\r\nHost: h\r\n\r\n");
const OK: (Side, &str) = (Server, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");

#[test]
fn exchanges_follow_each_other_on_a_kept_connection() {
    assert_eq!(
        observe(&[GET, OK, GET, OK]),
        ["GET /a+0 -> 200+2 Complete", "GET /a+0 -> 200+2 Complete"]
    );
}

/// A client that waits for `100 Continue` and receives a final response sends no body (RFC 9110
/// section 10.1.1).
#[test]
fn a_body_that_the_server_did_not_want_is_not_the_next_request() {
    let expecting =
        "POST /up HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n";
    let refusal = "HTTP/1.1 417 No\r\nContent-Length: 0\r\n\r\n";
    let left_out = [(Client, expecting), (Server, refusal), GET, OK];
    assert_eq!(
        observe(&left_out),
        ["POST /up+0 -> 417+0 Complete", "GET /a+0 -> 200+2 Complete"]
    );
    // one that is sent all the same is no request, whatever it begins with
    let sent = [
        (Client, expecting),
        (Server, refusal),
        (Client, "GE"),
        (Client, "T /a234"),
        GET,
        OK,
    ];
    assert_eq!(
        observe(&sent),
        ["POST /up+9 -> 417+0 Complete", "GET /a+0 -> 200+2 Complete"]
    );
    let asked = "HTTP/1.1 100 Continue\r\n\r\n";
    let wanted = [
        (Client, expecting),
        (Server, asked),
        (Server, refusal),
        (Client, "GET /a234"),
        GET,
        OK,
    ];
    assert_eq!(
        observe(&wanted),
        [
            "POST /up+9 -> 417+0 interims 1 Complete",
            "GET /a+0 -> 200+2 Complete"
        ]
    );
}

#[test]
fn times_are_those_of_the_first_and_last_bytes() {
    let pieces = [
        (Client, "PO"),
        (
            Client,
            "ST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\na",
        ),
        (Client, "bc"),
        (Server, "HTTP/1.1 100 Continue\r\n\r\n"),
        (Server, "HTTP/1.1 2"),
        (Server, "00 OK\r\nContent-Length: 4\r\n\r\n"),
        (Server, "ab"),
        (Server, "cd"),
    ];
    let mut observer = Http1Observer::default();
    let mut done = None;
    for (at, (from, text)) in pieces.iter().enumerate() {
        observer.read(*from, text.as_bytes(), at as u64 * 10, |event| {
            if let Event::Done(exchange, _) = event {
                done = Some(exchange.clone());
            }
        });
    }
    let Some(Exchange {
        request: Some(request),
        response: Some(response),
        ..
    }) = done
    else {
        panic!("not done")
    };
    assert_eq!(
        (request.started_at, request.head_at, request.ended_at),
        (0, 10, Some(20))
    );
    assert_eq!(request.authority.as_deref(), Some(b"h".as_slice()));
    assert_eq!(
        (
            response.started_at,
            response.head_at,
            response.first_body_at,
            response.ended_at
        ),
        (40, 50, Some(60), Some(70))
    );
    assert_eq!((response.announced_len, response.head_len), (Some(4), 38));
}

#[test]
fn pipelined_requests_are_paired_in_order() {
    let two = "GET /1 HTTP/1.1\r\n\r\nHEAD /2 HTTP/1.1\r\n\r\n";
    let answers = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\naHTTP/1.1 204 No Content\r\n\r\n";
    assert_eq!(
        observe(&[(Client, two), (Server, answers)]),
        [
            "GET /1+0 -> 200+1 Complete",
            "HEAD /2+0 -> 204+0 pipelined Complete"
        ]
    );
}

#[test]
fn interim_responses_do_not_count_as_responses() {
    let interim = (Server, "HTTP/1.1 103 Early Hints\r\n\r\n");
    assert_eq!(
        observe(&[GET, interim, interim, OK]),
        ["GET /a+0 -> 200+2 interims 2 Complete"]
    );
    assert_eq!(
        observe(&[GET, interim]),
        ["GET /a+0 -> - interims 1 Unanswered"]
    );
}

#[test]
fn an_upgrade_ends_http() {
    let switch = (
        Server,
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\nHTTP/1.1",
    );
    assert_eq!(
        observe(&[GET, switch, (Client, "\x01\x02"), (Server, "x")]),
        ["GET /a+0 -> 101+0 Complete"]
    );
}

#[test]
fn a_refused_connect_continues_as_http() {
    let connect = (Client, "CONNECT h:1 HTTP/1.1\r\n\r\n");
    let refused = (Server, "HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(
        observe(&[connect, refused, GET, OK]),
        [
            "CONNECT h:1+0 -> 407+0 Complete",
            "GET /a+0 -> 200+2 Complete"
        ]
    );
    let accepted = (Server, "HTTP/1.1 200 OK\r\n\r\n");
    assert_eq!(
        observe(&[connect, accepted, GET, OK]),
        ["CONNECT h:1+0 -> 200+0 Complete"]
    );
}

#[test]
fn a_response_before_the_end_of_its_request_waits_for_it() {
    let post = (Client, "POST /p HTTP/1.1\r\nContent-Length: 4\r\n\r\nab");
    assert_eq!(
        observe(&[post, OK, (Client, "cd"), GET, OK]),
        ["POST /p+4 -> 200+2 Complete", "GET /a+0 -> 200+2 Complete"]
    );
    assert_eq!(observe(&[post, OK]), ["POST /p+2 -> 200+2 Complete"]);
}

#[test]
fn complete_unanswered_and_cut_ends_differ() {
    assert_eq!(
        observe(&[GET, OK, GET]),
        ["GET /a+0 -> 200+2 Complete", "GET /a+0 -> - Unanswered"]
    );
    assert_eq!(
        observe(&[
            GET,
            (Server, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc")
        ]),
        ["GET /a+0 -> 200+3 Cut"]
    );
    assert_eq!(
        observe(&[GET, (Server, "HTTP/1.1 200")]),
        ["GET /a+0 -> - Cut"]
    );
    assert_eq!(
        observe(&[GET, (Server, "HTTP/1.0 200 OK\r\n\r\nabc")]),
        ["GET /a+0 -> 200+3 close UntilClose"]
    );
}

#[test]
fn a_response_without_a_request_is_alone() {
    let timeout = (
        Server,
        "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    );
    assert_eq!(
        observe(&[GET, OK, timeout]),
        [
            "GET /a+0 -> 200+2 Complete",
            "? -> 408+0 close unsolicited Complete"
        ]
    );
}

#[test]
fn a_connection_joined_late_is_read_from_its_next_heads() {
    let mut observer = Http1Observer::mid_stream();
    let mut log = Log::default();
    for (from, text) in [
        (Server, "rest of a body"),
        (Client, "rest of another"),
        GET,
        OK,
    ] {
        observer.read(from, text.as_bytes(), 0, |event| log.take(event));
    }
    assert_eq!(log.0, ["GET /a+0 -> 200+2 Complete"]);
}

#[test]
fn a_gap_within_a_body_of_known_length_is_counted() {
    let mut observer = Http1Observer::default();
    let mut log = Log::default();
    let post = (Client, "POST /p HTTP/1.1\r\nContent-Length: 1000\r\n\r\nab");
    observer.read(Client, post.1.as_bytes(), 0, |event| log.take(event));
    observer.lose(Client, 998, 9, |event| log.take(event));
    observer.read(Client, GET.1.as_bytes(), 1, |event| log.take(event));
    observer.read(
        Server,
        b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n",
        2,
        |event| log.take(event),
    );
    observer.lose(Server, 499, 9, |event| log.take(event));
    observer.read(Server, b"x", 3, |event| log.take(event));
    assert_eq!(log.0, ["POST /p+1000 -> 200+500 Complete"]);
    assert_eq!(observer.outstanding(), 1);
}

#[test]
fn a_gap_at_the_end_of_a_body_ends_the_exchange() {
    let mut observer = Http1Observer::default();
    let mut log = Log::default();
    observer.read(Client, GET.1.as_bytes(), 0, |event| log.take(event));
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nx";
    observer.read(Server, head, 2, |event| log.take(event));
    let mut ended_at = None;
    observer.lose(Server, 499, 9, |event| {
        if let Event::Done(exchange, outcome) = event {
            assert_eq!(outcome, Outcome::Complete);
            ended_at = exchange.response.as_ref().and_then(|one| one.ended_at);
        }
    });
    assert_eq!(ended_at, Some(9));
}

#[test]
fn every_request_that_is_cut_off_or_refused_ends_once() {
    let cut = "GET /a HTTP/1.1\r\nHost: a.ex";
    let odd = "GET /a b HTTP/1.1\r\n\r\n";
    for (request, target) in [(cut, "/a"), (odd, "/a b")] {
        for end in ["HTTP/1.1 200 OK\r\nDate", OK.1, ""] {
            let mut observer = Http1Observer::default();
            let mut log = Log::default();
            observer.read(Client, request.as_bytes(), 0, |event| log.take(event));
            observer.lose(Client, 10, 1, |event| log.take(event));
            if !end.is_empty() {
                observer.read(Server, end.as_bytes(), 2, |event| log.take(event));
                observer.lose(Server, 10, 3, |event| log.take(event));
            }
            observer.read(Client, GET.1.as_bytes(), 4, |event| log.take(event));
            observer.read(Server, OK.1.as_bytes(), 5, |event| log.take(event));
            observer.end(Server, 6, |event| log.take(event));
            let begun = format!("GET {target}+0");
            assert!(
                log.0.iter().any(|line| line.starts_with(&begun)),
                "{:?}",
                log.0
            );
            assert!(
                log.0.len() == 2 && observer.outstanding() == 0,
                "{:?}",
                log.0
            );
        }
    }
}

#[test]
fn a_gap_elsewhere_loses_the_open_messages_and_no_more() {
    let mut observer = Http1Observer::default();
    let mut log = Log::default();
    observer.read(Client, GET.1.as_bytes(), 0, |event| log.take(event));
    observer.read(
        Server,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhe",
        1,
        |event| log.take(event),
    );
    observer.lose(Server, 100, 9, |event| log.take(event));
    observer.read(Server, b"0\r\n\r\n", 2, |event| log.take(event));
    for (from, text) in [GET, OK] {
        observer.read(from, text.as_bytes(), 3, |event| log.take(event));
    }
    assert_eq!(
        log.0,
        ["GET /a+0 -> 200+2 Unseen", "GET /a+0 -> 200+2 Complete"]
    );
    assert_eq!(observer.error(Server), None);
}

#[test]
fn bytes_that_are_not_http_are_reported_and_not_read() {
    let mut observer = Http1Observer::default();
    observer.read(Client, b"\x16\x03\x01\x02\x00", 0, |_| {
        panic!("nothing happened")
    });
    assert!(observer.error(Client).is_some());
}

proptest! {
    #[test]
    fn exchanges_do_not_depend_on_the_split(order in vec(0..8usize, 0..12), places in vec(any::<usize>(), 0..6)) {
        let pieces: Vec<(Side, &str)> = order.iter().map(|&n| [
            GET,
            OK,
            (Client, "POST /p HTTP/1.1\r\nContent-Length: 4\r\n\r\nabcd"),
            (Server, "HTTP/1.1 100 Continue\r\n\r\n"),
            (Server, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n"),
            (Client, "HEAD /h HTTP/1.0\r\n\r\n"),
            (Server, "HTTP/1.1 304 Not Modified\r\n\r\n"),
            (Server, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"),
        ][n]).collect();
        let mut observer = Http1Observer::default();
        let mut log = Log::default();
        for (from, text) in &pieces {
            for piece in cut(text.as_bytes(), &places) {
                observer.read(*from, piece, 0, |event| log.take(event));
            }
        }
        // out of step, it waits for a read that starts with a header section, so the split matters
        prop_assume!(observer.error(Client).is_none() && observer.error(Server).is_none());
        end(&mut observer, 0, &mut log);
        prop_assert_eq!(log.0, observe(&pieces));
    }

    #[test]
    fn arbitrary_bytes_and_holes_never_panic(pieces in vec((any::<bool>(), vec(any::<u8>(), 0..40), 0..3u64), 0..12), late in any::<bool>()) {
        let mut observer = if late { Http1Observer::mid_stream() } else { Http1Observer::default() };
        let mut log = Log::default();
        for (client, bytes, hole) in &pieces {
            let from = if *client { Client } else { Server };
            observer.read(from, GET.1.as_bytes(), 0, |event| log.take(event));
            observer.read(from, bytes, 0, |event| log.take(event));
            if *hole > 0 {
                observer.lose(from, *hole, 9, |event| log.take(event));
            }
        }
        end(&mut observer, 0, &mut log);
    }
}
