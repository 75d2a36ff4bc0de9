//! What an attacker sends: the server answers as the RFCs say or ends the connection, what it holds
//! is bounded, and it serves others meanwhile.

use crate::http2::{Client, GOAWAY, KIND_HEADERS, RST_STREAM, SETTINGS, WINDOW_UPDATE};
use crate::rig::{Rig, answer, get, is_timeout, rest, secure};
use intact_serve::Config;
use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

const KIND_DATA: u8 = 0x0;
const PING: u8 = 0x6;
const CONTINUATION: u8 = 0x9;
const END_HEADERS: u8 = 0x4;
const ACK: u8 = 0x1;
/// GOAWAY's codes (RFC 9113 section 7).
const COMPRESSION_ERROR: u8 = 0x9;

/// More than sockets and the server hold together: a server that accepts this much while no
/// response is read has no bound.
const UNBOUNDED: usize = 48 << 20;

fn rig() -> Rig {
    Rig::start(Config::default())
}

/// Sends bytes on a new connection; all that comes back until the server ends it.
fn conversation(rig: &Rig, bytes: &[u8]) -> String {
    let mut stream = rig.connect();
    stream.write_all(bytes).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    String::from_utf8_lossy(&rest(&mut stream).0).into_owned()
}

fn statuses(answers: &str) -> Vec<&str> {
    let heads = answers.split("HTTP/1.").skip(1);
    heads.map(|head| &head[2..5]).collect()
}

#[test]
fn a_request_has_one_host_that_can_be_one() {
    let rig = rig();
    for (fields, statuses_are) in [
        ("1.1\r\nHost: a\r\n", &["200", "200"][..]),
        ("1.1\r\nHost: a.test:8080\r\n", &["200", "200"]),
        ("1.1\r\nHost:\r\n", &["200", "200"]),
        ("1.0\r\nConnection: keep-alive\r\n", &["200", "200"]),
        ("1.1\r\n", &["400"]),
        ("1.1\r\nHost: a\r\nHost: a\r\n", &["400"]),
        ("1.1\r\nHost: a\r\nhOST: b\r\n", &["400"]),
        ("1.0\r\nHost: a\r\nHost: b\r\n", &["400"]),
        ("1.1\r\nHost: a b\r\n", &["400"]),
        ("1.1\r\nHost: a/b\r\n", &["400"]),
        ("1.1\r\nHost: http://a\r\n", &["400"]),
        ("1.1\r\nHost: a@b\r\n", &["400"]),
        ("1.1\r\nHost: a:b\r\n", &["400"]),
        ("1.1\r\nHost: [::1\r\n", &["400"]),
        ("1.0\r\nHost: a b\r\nConnection: keep-alive\r\n", &["400"]),
        (
            "1.1\r\nExpect: 100-continue\r\nContent-Length: 1\r\n",
            &["400"],
        ),
    ] {
        // what follows a refused request is not read as one
        let text = format!(
            "GET / HTTP/{fields}\r\nGET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        );
        let answers = conversation(&rig, text.as_bytes());
        assert_eq!(statuses(&answers), statuses_are, "{fields:?}");
    }
    assert_eq!(get(&mut rig.connect(), "/").status(), "200");
    let totals = rig.end();
    assert_eq!(totals.requests.status[&400], 12);
}

#[test]
fn in_http2_the_host_is_named_once_too() {
    let rig = rig();
    let mut client = Client::start(rig.connect());
    let literal = |name: &str, value: &str| {
        let mut field = vec![0, name.len() as u8];
        field.extend(name.as_bytes());
        field.push(value.len() as u8);
        field.extend(value.as_bytes());
        field
    };
    for (at, (fields, wanted)) in [
        (vec![(":authority", "a")], Ok(0x88)),
        (vec![("host", "a")], Ok(0x88)),
        (vec![(":authority", "a"), ("host", "A")], Ok(0x88)),
        (vec![], Err(400)),
        (vec![(":authority", "a b")], Err(400)),
        (vec![(":authority", "me@a")], Err(400)),
        (vec![(":authority", "a"), ("host", "b")], Ok(RST_STREAM)),
        (vec![("host", "a"), ("host", "a")], Ok(RST_STREAM)),
    ]
    .into_iter()
    .enumerate()
    {
        let stream = 2 * at as u32 + 1;
        let mut block = b"\x82\x86\x84".to_vec();
        for (name, value) in &fields {
            block.extend(literal(name, value));
        }
        client.frame(KIND_HEADERS, END_HEADERS | 0x1, stream, &block);
        let frame = loop {
            let frame = client.next().unwrap();
            if frame.stream == stream {
                break frame;
            }
        };
        match wanted {
            Ok(RST_STREAM) => assert_eq!(frame.kind, RST_STREAM, "{fields:?}"),
            // :status 400 by its static index
            Err(_) => assert_eq!(
                (frame.kind, frame.payload[0]),
                (KIND_HEADERS, 0x8c),
                "{fields:?}"
            ),
            Ok(index) => assert_eq!(
                (frame.kind, frame.payload[0]),
                (KIND_HEADERS, index),
                "{fields:?}"
            ),
        }
    }
    client.get(101, "/");
    assert_eq!(client.answer(101).1.len(), 100);
}

#[test]
fn no_shape_of_a_request_smuggles_another() {
    let rig = rig();
    const SMUGGLED: &str = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
    for (shape, status) in [
        // both lengths: the coding counts, and the connection ends
        (
            "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "200",
        ),
        (
            "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n0\r\n\r\n",
            "200",
        ),
        ("Content-Length: 0\r\nContent-Length: 5\r\n\r\n", "400"),
        ("Content-Length: 0, 5\r\n\r\n", "400"),
        ("Content-Length: +0\r\n\r\n", "400"),
        ("Content-Length: -1\r\n\r\n", "400"),
        ("Content-Length: 0x0\r\n\r\n", "400"),
        ("Content-Length: 18446744073709551616\r\n\r\n", "400"),
        ("Content-Length:\r\n\r\n", "400"),
        ("Content-Length : 0\r\n\r\n", "400"),
        ("Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", "400"),
        ("Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", "400"),
        (
            "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
            "400",
        ),
        (
            "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
            "400",
        ),
        (
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n0\r\n\r\n",
            "400",
        ),
        ("Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n", "400"),
        ("Transfer-Encoding:\r\n\r\n0\r\n\r\n", "400"),
        ("X: a\r\n b: c\r\n\r\n", "400"),
        (" X: a\r\n\r\n", "400"),
        ("X: a\rContent-Length: 0\r\n\r\n", "400"),
        ("X: a\0b\r\n\r\n", "400"),
        ("X\r\n\r\n", "400"),
        (": x\r\n\r\n", "400"),
        ("Transfer-Encoding: chunked\r\n\r\n0x0\r\n\r\n", "400"),
        ("Transfer-Encoding: chunked\r\n\r\n-0\r\n\r\n", "400"),
        (
            "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
            "400",
        ),
        (
            "Transfer-Encoding: chunked\r\n\r\n1\r\nxx\r\n0\r\n\r\n",
            "400",
        ),
        ("Transfer-Encoding: chunked\r\n\r\n\r\n", "400"),
    ] {
        let text = format!("POST / HTTP/1.1\r\nHost: a\r\n{shape}{SMUGGLED}");
        let answers = conversation(&rig, text.as_bytes());
        assert_eq!(statuses(&answers), [status], "{shape:?}: {answers:?}");
    }
    for line in [
        "GET  / HTTP/1.1",
        "GET / HTTP/1.1 ",
        "GET /\tHTTP/1.1",
        "GET / http/1.1",
        "GET / HTTP/1.1\rX",
        "GET /",
    ] {
        let text = format!("{line}\r\nHost: a\r\n\r\n{SMUGGLED}");
        let answers = conversation(&rig, text.as_bytes());
        let said = statuses(&answers);
        assert!(said.is_empty() || said == ["400"], "{line:?}: {answers:?}");
    }
    assert_eq!(get(&mut rig.connect(), "/").status(), "200");
    let totals = rig.end();
    let targets = totals
        .last
        .iter()
        .filter_map(|exchange| exchange.target.as_ref());
    assert!(
        targets
            .map(ToString::to_string)
            .all(|target| target != "/smuggled")
    );
}

#[test]
fn heads_without_end_are_cut_off() {
    let rig = rig();
    let line = format!("GET /{} HTTP/1.1\r\n", "a".repeat(100_000));
    assert_eq!(statuses(&conversation(&rig, line.as_bytes())), ["431"]);
    let fields = format!("GET / HTTP/1.1\r\nHost: a\r\n{}", "a:b\r\n".repeat(20_000));
    assert_eq!(statuses(&conversation(&rig, fields.as_bytes())), ["431"]);
    let trailers = format!(
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n{}",
        "a:b\r\n".repeat(20_000)
    );
    assert_eq!(statuses(&conversation(&rig, trailers.as_bytes())), ["431"]);
    let extension = format!(
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;{}",
        "a".repeat(200_000)
    );
    let said = conversation(&rig, extension.as_bytes());
    assert!(["400", "431"].contains(&statuses(&said)[0]), "{said}");
    assert_eq!(get(&mut rig.connect(), "/").status(), "200");
}

#[test]
fn clients_that_send_a_byte_at_a_time_delay_no_others() {
    let rig = rig();
    let request = b"GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n\r\n";
    let mut slow: Vec<TcpStream> = (0..100).map(|_| rig.connect()).collect();
    for byte in &request[..request.len() - 1] {
        for stream in &mut slow {
            stream.write_all(&[*byte]).unwrap();
        }
        assert_eq!(get(&mut rig.connect(), "/").status(), "200");
    }
    for stream in &mut slow {
        stream.write_all(b"\n").unwrap();
        assert_eq!(answer(stream).status(), "200");
    }
}

#[test]
fn clients_that_do_not_read_delay_no_others() {
    let rig = rig();
    let mut silent = Vec::new();
    for at in 0..100u32 {
        let mut stream = rig.connect();
        stream
            .write_all(b"GET /bytes/1073741824 HTTP/1.1\r\nHost: a\r\n\r\n")
            .unwrap();
        let mut client = Client::start(rig.connect());
        // windows as large as they get
        client.frame(SETTINGS, 0, 0, b"\0\x04\x7f\xff\xff\xff");
        client.frame(WINDOW_UPDATE, 0, 0, &0x7fff_0000u32.to_be_bytes());
        client.get(1, "/bytes/1073741824");
        silent.push((stream, client));
        if at % 10 == 0 {
            assert_eq!(get(&mut rig.connect(), "/").status(), "200");
        }
    }
    for _ in 0..20 {
        assert_eq!(get(&mut rig.connect(), "/").status(), "200");
    }
}

/// Writes the same bytes again and again until the server takes no more for a while, or has taken
/// too much. How much it took.
fn flood(stream: &mut impl Write, bytes: &[u8]) -> usize {
    let mut taken = 0;
    while taken < UNBOUNDED {
        match stream.write(bytes) {
            Ok(count) => taken += count,
            Err(error) => {
                assert!(is_timeout(&error), "{error}");
                break;
            }
        }
    }
    taken
}

/// Asserts that a client which asks and does not read is not listened to for long, while others are
/// served.
fn assert_backpressure(rig: &Rig, stream: &mut impl Write, bytes: &[u8]) {
    let taken = flood(stream, bytes);
    assert!(taken < UNBOUNDED, "{taken} bytes");
    assert_eq!(get(&mut rig.connect(), "/").status(), "200");
}

/// Frames of a client, many in one write.
fn frames(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags, 0, 0, 0, 0]);
    frame.extend(payload);
    frame.repeat(2_000)
}

#[test]
fn a_client_that_asks_and_does_not_read_is_not_listened_to() {
    const QUIET: Option<Duration> = Some(Duration::from_millis(1500));
    let requests = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n".repeat(2_000);
    let rig = rig();
    let mut stream = rig.connect();
    stream.set_write_timeout(QUIET).unwrap();
    assert_backpressure(&rig, &mut stream, &requests);
    let pings = frames(PING, 0, &[7; 8]);
    let settings = frames(SETTINGS, 0, b"\0\x04\0\0\0\x01\0\x04\0\0\xff\xff");
    for flood in [&pings, &settings] {
        let mut client = Client::start(rig.connect());
        client.stream.set_write_timeout(QUIET).unwrap();
        assert_backpressure(&rig, &mut client.stream, flood);
    }
    for (alpn, flood) in [
        (&b"h2"[..], &pings),
        (b"h2", &settings),
        (b"http/1.1", &requests),
    ] {
        let (rig, tls) = secure(Config::default(), alpn);
        let mut stream = rig.connect_tls(&tls);
        if alpn == b"h2" {
            stream = Client::start(stream).stream;
        } else {
            get(&mut stream, "/");
        }
        stream.sock.set_write_timeout(QUIET).unwrap();
        assert_backpressure(&rig, &mut stream, flood);
    }
}

#[test]
fn settings_that_change_256_windows_each_delay_no_others() {
    let rig = rig();
    let mut client = Client::start(rig.connect());
    client.frame(SETTINGS, 0, 0, b"\0\x04\0\0\0\0");
    for number in 0..256 {
        client.get(2 * number + 1, "/bytes/1000000");
    }
    // each opens all windows by a byte, or closes them again
    for _ in 0..100 {
        for at in 0..100 {
            client.frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, at % 2]);
        }
        let acks = std::iter::from_fn(|| client.next());
        assert_eq!(
            acks.filter(|frame| frame.kind == SETTINGS && frame.flags == ACK)
                .take(100)
                .count(),
            100
        );
    }
    assert_eq!(get(&mut rig.connect(), "/").status(), "200");
}

#[test]
fn windows_of_nothing_hold_nothing() {
    let rig = rig();
    let mut client = Client::start(rig.connect());
    client.frame(SETTINGS, 0, 0, b"\0\x04\0\0\0\0");
    for number in 0..256 {
        client.get(2 * number + 1, "/bytes/1073741824");
    }
    for number in 0..256 {
        assert_eq!(client.until(KIND_HEADERS).stream, 2 * number + 1);
    }
    assert_eq!(get(&mut rig.connect(), "/").status(), "200");
    client.frame(WINDOW_UPDATE, 0, 511, &3u32.to_be_bytes());
    let data = client.until(KIND_DATA);
    assert_eq!((data.stream, data.payload.len()), (511, 3));
}

#[test]
fn resets_at_once_cost_nothing_that_stays() {
    let rig = rig();
    let mut client = Client::start(rig.connect());
    // the connection's window is used up, so that nothing of these can be sent
    client.frame(WINDOW_UPDATE, 0, 0, &1u32.to_be_bytes());
    client.get(1, "/bytes/65536");
    let mut received = 0;
    while received < 65_535 {
        received += client.until(KIND_DATA).payload.len();
    }
    for number in 1..5_000u32 {
        client.get(2 * number + 1, "/");
        client.frame(RST_STREAM, 0, 2 * number + 1, &8u32.to_be_bytes());
    }
    client.frame(WINDOW_UPDATE, 0, 0, &1_000u32.to_be_bytes());
    client.get(10_001, "/");
    assert_eq!(client.answer(10_001).1.len(), 100);
    assert_eq!(get(&mut rig.connect(), "/").status(), "200");
}

/// Sends frames after the start of an HTTP/2 connection; the GOAWAY's code that ends it.
fn goaway(rig: &Rig, send: impl FnOnce(&mut Client<TcpStream>)) -> u8 {
    let mut client = Client::start(rig.connect());
    send(&mut client);
    let frames = client.rest();
    let goaway = frames.iter().find(|frame| frame.kind == GOAWAY);
    goaway.unwrap_or_else(|| panic!("{frames:?}")).payload[7]
}

#[test]
fn continuations_without_end_end_the_connection() {
    let rig = rig();
    for piece in [0, 1, 1000] {
        let code = goaway(&rig, |client| {
            client.frame(KIND_HEADERS, 0, 1, &[0x82]);
            let mut frame = (piece as u32).to_be_bytes()[1..].to_vec();
            frame.extend([CONTINUATION, 0, 0, 0, 0, 1]);
            frame.extend(vec![0x84; piece]);
            // what the server no longer reads may be refused
            let _ = client.stream.write_all(&frame.repeat(500));
        });
        assert_ne!(code, 0, "{piece}");
    }
    assert_eq!(get(&mut rig.connect(), "/").status(), "200");
}

#[test]
fn header_blocks_that_grow_are_refused() {
    let rig = rig();
    // a field of 4,000 bytes, indexed, and then named 12,000 times: 48 MB in 12 kB
    let mut bomb = b"\x82\x86\x84\x41\x01a".to_vec();
    bomb.extend(b"\x40\x01a\x7f\xa1\x1e");
    bomb.extend([b'x'; 4_000]);
    bomb.extend([0xbe; 12_000]);
    let code = goaway(&rig, |client| {
        client.frame(KIND_HEADERS, END_HEADERS | 0x1, 1, &bomb);
    });
    assert_ne!(code, 0);
    for block in [
        // an index, a length and a table size that are no numbers
        &b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f"[..],
        b"\x00\x7f\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
        b"\x3f\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
        b"\x3f\xe1\xff\x7f\x82",
        // an index that is not there
        b"\xc0",
        b"\x80",
    ] {
        let code = goaway(&rig, |client| {
            client.frame(KIND_HEADERS, END_HEADERS | 0x1, 1, block);
        });
        assert_eq!(code, COMPRESSION_ERROR, "{block:?}");
    }
    assert_eq!(get(&mut rig.connect(), "/").status(), "200");
}

#[test]
fn paths_that_ask_for_no_number_are_refused() {
    let rig = rig();
    let mut stream = rig.connect();
    for path in [
        "/status/1000",
        "/status/-1",
        "/bytes/-5",
        "/bytes/99999999999999999999999",
        "/bytes/1073741825",
        "/chunked/x",
        "/delay/-1",
    ] {
        let answer = get(&mut stream, path);
        assert_eq!(answer.status(), "400", "{path}");
        assert!(
            answer.body.starts_with(b"not a whole number from"),
            "{path}"
        );
    }
    let mut client = Client::start(rig.connect());
    client.get(1, "/status/1000");
    assert_eq!(client.answer(1).0[0], 0x8c);
}
