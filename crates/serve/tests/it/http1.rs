//! HTTP/1.0 and 1.1: paths, framing, versions, and requests in any pieces.

use crate::rig::{Rig, answer, ask, get, head, rest};
use intact_serve::Config;
use std::io::{Read, Write};

fn rig() -> Rig {
    Rig::start(Config::default())
}

#[test]
fn each_path_is_answered_as_it_asks() {
    let rig = rig();
    let mut stream = rig.connect();
    assert_eq!(get(&mut stream, "/").body, [b'x'; 100]);
    assert_eq!(get(&mut stream, "/bytes/70000?x").body.len(), 70_000);
    assert!(get(&mut stream, "/bytes/0").body.is_empty());
    assert_eq!(get(&mut stream, "/status/404").status(), "404");
    assert_eq!(get(&mut stream, "/delay/1").status(), "200");
    let redirect = get(&mut stream, "/redirect");
    assert_eq!(
        (redirect.status(), redirect.field("location")),
        ("302", Some("/"))
    );
    let empty = get(&mut stream, "/status/204");
    assert_eq!(empty.field("content-length"), None);
    let last = get(&mut stream, "/close");
    assert_eq!(last.field("connection"), Some("close"));
    assert_eq!(rest(&mut stream).0, b"");
    let totals = rig.end();
    assert_eq!((totals.requests.ok, totals.connections.opened), (8, 1));
    assert_eq!(totals.requests.status[&404], 1);
    assert_eq!((totals.reused, totals.reuse), (7, Some(7.0 / 8.0)));
}

#[test]
fn chunks_add_up_to_the_body() {
    let rig = rig();
    let mut stream = rig.connect();
    ask(&mut stream, "/chunked/16386");
    let head = head(&mut stream);
    assert!(head.contains("Transfer-Encoding: chunked"), "{head}");
    assert!(!head.contains("Content-Length"), "{head}");
    let wanted = [
        &b"4000\r\n"[..],
        &[b'x'; 16384],
        b"\r\n2\r\nxx\r\n",
        b"0\r\n\r\n",
    ]
    .concat();
    let mut body = vec![0; wanted.len()];
    stream.read_exact(&mut body).unwrap();
    assert!(body == wanted);
    // the connection goes on behind it
    assert_eq!(get(&mut stream, "/").status(), "200");
}

#[test]
fn head_has_the_fields_of_get_and_no_body() {
    let rig = rig();
    let mut stream = rig.connect();
    stream
        .write_all(b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n")
        .unwrap();
    assert!(head(&mut stream).contains("Content-Length: 100"));
    assert_eq!(get(&mut stream, "/").status(), "200");
}

#[test]
fn the_old_version_is_kept_only_when_it_asks() {
    let rig = rig();
    let mut stream = rig.connect();
    stream
        .write_all(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
        .unwrap();
    let kept = answer(&mut stream);
    assert!(kept.head.starts_with("HTTP/1.0 200"), "{}", kept.head);
    assert_eq!(kept.field("connection"), Some("keep-alive"));
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    let last = answer(&mut stream);
    assert_eq!(last.field("connection"), Some("close"));
    assert_eq!(rest(&mut stream).0, b"");
    let mut stream = rig.connect();
    stream
        .write_all(b"GET /chunked/5 HTTP/1.0\r\n\r\n")
        .unwrap();
    // no chunks are known to it: the end of the connection ends the body
    let head = head(&mut stream);
    assert!(!head.contains("Transfer-Encoding"), "{head}");
    assert_eq!(rest(&mut stream).0, b"xxxxx");
}

#[test]
fn a_body_comes_back_whole_whatever_frames_it() {
    let rig = rig();
    let mut stream = rig.connect();
    stream
        .write_all(b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello")
        .unwrap();
    assert_eq!(answer(&mut stream).body, b"hello");
    stream
        .write_all(
            b"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
              3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n",
        )
        .unwrap();
    assert_eq!(answer(&mut stream).body, b"hello");
    let much = vec![b'a'; (1 << 20) + 1];
    let head = format!(
        "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n",
        much.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(&much).unwrap();
    assert_eq!(answer(&mut stream).status(), "413");
    assert_eq!(get(&mut stream, "/").status(), "200");
}

#[test]
fn a_client_that_waits_for_leave_to_send_gets_it() {
    let rig = rig();
    let mut stream = rig.connect();
    stream
        .write_all(
            b"POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n",
        )
        .unwrap();
    assert_eq!(head(&mut stream), "HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(b"hi").unwrap();
    assert_eq!(answer(&mut stream).body, b"hi");
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let rig = rig();
    let mut stream = rig.connect();
    for bytes in 1..=5 {
        ask(&mut stream, &format!("/bytes/{bytes}"));
    }
    for bytes in 1..=5 {
        assert_eq!(answer(&mut stream).body.len(), bytes);
    }
    assert_eq!(rig.end().requests.ok, 5);
}

#[test]
fn a_request_may_come_a_byte_at_a_time() {
    let rig = rig();
    let mut stream = rig.connect();
    for byte in b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc" {
        stream.write_all(&[*byte]).unwrap();
    }
    assert_eq!(answer(&mut stream).body, b"abc");
    let totals = rig.end();
    assert_eq!(totals.requests.total, 1);
    assert_eq!(totals.last[0].bytes.request_body, 3);
}

#[test]
fn what_is_no_request_is_refused_by_status_or_without_a_word() {
    let rig = rig();
    let refusal = |bytes: &[u8]| {
        let mut stream = rig.connect();
        stream.write_all(bytes).unwrap();
        let (answer, ended) = rest(&mut stream);
        ended.unwrap();
        String::from_utf8(answer[..answer.len().min(12)].to_vec()).unwrap()
    };
    assert_eq!(
        refusal(b"GET / HTTP/1.1\r\nno field\r\n\r\n"),
        "HTTP/1.1 400"
    );
    let long = [b"GET / HTTP/1.1\r\nA: ", &[b'a'; 100_000][..]].concat();
    assert_eq!(refusal(&long), "HTTP/1.1 431");
    // neither version of HTTP: nothing that we say would be understood
    assert_eq!(refusal(b"HELLO THERE FRIEND\r\n\r\n"), "");
    assert_eq!(refusal(b"GET / HTTP/3.0\r\n\r\n"), "");
    // a TLS client gets plain text
    assert_eq!(refusal(b"\x16\x03\x01\x02\x00\x01"), "HTTP/1.1 400");
    let totals = rig.end();
    assert_eq!(
        totals.requests.failed[&intact_ledger::Failure::Malformed],
        5
    );
    assert_eq!(totals.requests.ok, 0);
}

#[test]
fn a_tunnel_is_refused() {
    let rig = rig();
    let mut stream = rig.connect();
    stream
        .write_all(b"CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n")
        .unwrap();
    assert_eq!(answer(&mut stream).status(), "501");
    assert_eq!(rest(&mut stream).0, b"");
}

#[test]
fn further_fields_are_sent_as_given() {
    let rig = Rig::start(Config {
        status: 503,
        body: 3,
        headers: vec![
            ("X-One".into(), "1".into()),
            ("Retry-After".into(), "2".into()),
        ],
        ..Config::default()
    });
    let answer = get(&mut rig.connect(), "/");
    assert_eq!((answer.status(), answer.body.len()), ("503", 3));
    assert!(answer.head.contains("X-One: 1\r\nRetry-After: 2\r\n"));
}

#[test]
fn a_client_that_leaves_in_the_middle_is_recorded_so() {
    let rig = rig();
    let mut stream = rig.connect();
    stream
        .write_all(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhe")
        .unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(rest(&mut stream).0, b"");
    let totals = rig.end();
    assert_eq!(
        totals.requests.failed[&intact_ledger::Failure::ClientClosed],
        1
    );
    assert_eq!(
        totals.connections.ended_by[&intact_ledger::EndedBy::Client],
        1
    );
}

#[test]
fn a_client_that_resets_during_a_pause_is_recorded_so() {
    let rig = rig();
    let mut stream = rig.connect();
    assert_eq!(get(&mut stream, "/").status(), "200");
    ask(&mut stream, "/delay/60000");
    // a socket that is closed with bytes unread resets; with this option it always does
    socket2::SockRef::from(&stream)
        .set_linger(Some(std::time::Duration::ZERO))
        .unwrap();
    std::thread::sleep(std::time::Duration::from_millis(100));
    drop(stream);
    std::thread::sleep(std::time::Duration::from_millis(100));
    let totals = rig.end();
    assert_eq!(
        totals.requests.failed[&intact_ledger::Failure::ClientClosed],
        1
    );
    assert_eq!(
        totals.connections.ended_by[&intact_ledger::EndedBy::Client],
        1
    );
}
