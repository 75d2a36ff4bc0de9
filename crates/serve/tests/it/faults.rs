//! Each fault on the wire, in both versions, and in the server's own counts.

use crate::http2::{Client, KIND_DATA, KIND_HEADERS, RST_STREAM};
use crate::rig::{Rig, answer, ask, assert_silent, get, head, rest};
use intact_ledger::{Failure, Protocol};
use intact_serve::{Config, Fault, Totals};
use std::io::{ErrorKind, Read};

fn rig() -> Rig {
    Rig::start(Config::default())
}

/// The server has made one fault, and expects a careful client to count it so.
fn assert_counted(totals: &Totals, fault: Fault, failure: Option<Failure>) {
    assert_eq!(totals.faults[&fault], 1);
    let failed: Vec<_> = totals.requests.failed.iter().collect();
    match failure {
        Some(kind) => assert_eq!(failed, [(&kind, &1)], "{fault}"),
        None => assert_eq!(failed, [], "{fault}"),
    }
}

#[test]
fn http1_stalls_are_silent_before_or_within_the_answer() {
    let server = rig();
    let mut stream = server.connect();
    ask(&mut stream, "/fault/stall");
    assert_silent(&mut stream);
    drop(stream);
    assert_counted(&server.end(), Fault::Stall, Some(Failure::Timeout));

    let server = rig();
    let mut stream = server.connect();
    ask(&mut stream, "/fault/stall-mid-body");
    assert!(head(&mut stream).contains("Content-Length: 100"));
    stream.read_exact(&mut [0; 50]).unwrap();
    assert_silent(&mut stream);
    drop(stream);
    assert_counted(&server.end(), Fault::StallMidBody, Some(Failure::Timeout));
}

#[test]
fn http1_bodies_are_cut_by_fin_or_reset() {
    let server = rig();
    let mut stream = server.connect();
    ask(&mut stream, "/fault/truncated-body");
    assert!(head(&mut stream).contains("Content-Length: 100"));
    let (bytes, ended) = rest(&mut stream);
    ended.unwrap();
    assert_eq!(bytes.len(), 50);
    assert_counted(
        &server.end(),
        Fault::TruncatedBody,
        Some(Failure::Truncated),
    );

    let server = rig();
    let mut stream = server.connect();
    ask(&mut stream, "/fault/close-after-head");
    assert!(head(&mut stream).contains("Content-Length: 100"));
    assert!(matches!(rest(&mut stream), (bytes, Ok(())) if bytes.is_empty()));
    assert_counted(
        &server.end(),
        Fault::CloseAfterHead,
        Some(Failure::Truncated),
    );

    let server = rig();
    let mut stream = server.connect();
    ask(&mut stream, "/fault/reset-mid-body");
    let (bytes, ended) = rest(&mut stream);
    assert_eq!(ended.unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert!(bytes.ends_with(b"xxxx"));
    assert_counted(&server.end(), Fault::ResetMidBody, Some(Failure::Reset));
}

#[test]
fn http1_garbage_and_bad_chunks_are_no_http() {
    let server = rig();
    let mut stream = server.connect();
    ask(&mut stream, "/fault/garbage");
    let (bytes, _) = rest(&mut stream);
    assert!(!bytes.is_empty() && !bytes.starts_with(b"HTTP"));
    assert_counted(&server.end(), Fault::Garbage, Some(Failure::Malformed));

    let server = rig();
    let mut stream = server.connect();
    ask(&mut stream, "/fault/bad-chunk");
    assert!(head(&mut stream).contains("Transfer-Encoding: chunked"));
    assert_eq!(rest(&mut stream).0, b"xyz\r\n");
    assert_counted(&server.end(), Fault::BadChunk, Some(Failure::Malformed));
}

#[test]
fn http1_endless_answers_go_on_until_the_client_leaves() {
    for (fault, line) in [
        (Fault::EndlessInterim, "HTTP/1.1 102 Processing"),
        (Fault::EndlessHead, "X-Padding: a"),
    ] {
        let server = rig();
        let mut stream = server.connect();
        ask(&mut stream, &format!("/fault/{fault}"));
        let mut much = vec![0; 1 << 20];
        stream.read_exact(&mut much).unwrap();
        drop(stream);
        let text = String::from_utf8(much).unwrap();
        assert!(text.matches(line).count() > 10_000, "{fault}");
        assert_counted(&server.end(), fault, Some(Failure::TooLarge));
    }
}

#[test]
fn http1_two_answers_come_for_one_request() {
    let server = rig();
    let mut stream = server.connect();
    ask(&mut stream, "/fault/two-answers");
    assert_eq!(answer(&mut stream), answer(&mut stream));
    assert_silent(&mut stream);
    assert_counted(&server.end(), Fault::TwoAnswers, None);
}

#[test]
fn http1_connections_end_without_an_answer_or_against_the_word() {
    let server = rig();
    let mut stream = server.connect();
    ask(&mut stream, "/fault/close-before-answer");
    assert!(matches!(rest(&mut stream), (bytes, Ok(())) if bytes.is_empty()));
    assert_counted(
        &server.end(),
        Fault::CloseBeforeAnswer,
        Some(Failure::Closed),
    );

    let server = rig();
    let mut stream = server.connect();
    get(&mut stream, "/");
    ask(&mut stream, "/fault/close-before-answer");
    assert!(matches!(rest(&mut stream), (bytes, Ok(())) if bytes.is_empty()));
    assert_counted(
        &server.end(),
        Fault::CloseBeforeAnswer,
        Some(Failure::Closed),
    );

    let server = rig();
    let mut stream = server.connect();
    let kept = get(&mut stream, "/fault/keep-alive-then-close");
    assert_eq!(kept.field("connection"), Some("keep-alive"));
    assert!(matches!(rest(&mut stream), (bytes, Ok(())) if bytes.is_empty()));
    assert_counted(&server.end(), Fault::KeepAliveThenClose, None);
}

#[test]
fn http1_trickles_a_byte_at_a_time_to_the_end() {
    let server = Rig::start(Config {
        body: 3,
        ..Config::default()
    });
    let mut stream = server.connect();
    ask(&mut stream, "/fault/trickle");
    let begun = std::time::Instant::now();
    assert_eq!(answer(&mut stream).body, b"xxx");
    assert!(begun.elapsed().as_millis() >= 100);
    assert_eq!(server.end().faults[&Fault::Trickle], 1);
}

/// Asks for a fault, and again for a good answer; the frames up to the end of what comes.
fn http2(fault: Fault) -> (Rig, Client<std::net::TcpStream>) {
    let rig = rig();
    let mut client = Client::start(rig.connect());
    client.get(1, &format!("/fault/{fault}"));
    (rig, client)
}

#[test]
fn http2_stalls_one_stream_and_serves_the_others() {
    for fault in [Fault::Stall, Fault::StallMidBody] {
        let (rig, mut client) = http2(fault);
        client.get(3, "/bytes/7");
        let ended = loop {
            let frame = client.next().unwrap();
            if frame.ends_stream() && frame.kind == KIND_DATA {
                break frame.stream;
            }
        };
        assert_eq!(ended, 3, "{fault}");
        drop(client);
        assert_counted(&rig.end(), fault, Some(Failure::Timeout));
    }
}

#[test]
fn http2_resets_one_stream_and_serves_the_others() {
    let (rig, mut client) = http2(Fault::ResetMidBody);
    assert_eq!(client.until(KIND_DATA).payload.len(), 50);
    assert_eq!(client.until(RST_STREAM).stream, 1);
    client.get(3, "/");
    assert_eq!(client.answer(3).1.len(), 100);
    assert_counted(&rig.end(), Fault::ResetMidBody, Some(Failure::StreamReset));
}

#[test]
fn http2_cuts_the_body_with_the_connection() {
    let (rig, mut client) = http2(Fault::TruncatedBody);
    let data = client.until(KIND_DATA);
    assert_eq!((data.payload.len(), data.ends_stream()), (50, false));
    assert_eq!(client.rest(), []);
    assert_counted(&rig.end(), Fault::TruncatedBody, Some(Failure::Truncated));

    let (rig, mut client) = http2(Fault::CloseAfterHead);
    assert!(!client.until(KIND_HEADERS).ends_stream());
    assert_eq!(client.rest(), []);
    assert_counted(&rig.end(), Fault::CloseAfterHead, Some(Failure::Truncated));
}

#[test]
fn http2_breaks_frames() {
    let (rig, mut client) = http2(Fault::Garbage);
    let mut bytes = Vec::new();
    client.stream.read_to_end(&mut bytes).unwrap();
    let garbage = bytes
        .windows(9)
        .any(|nine| nine.starts_with(b"\xff\xff\xff\xee"));
    assert!(garbage, "a frame of 16 MB of no type");
    assert_counted(&rig.end(), Fault::Garbage, Some(Failure::Malformed));

    let (rig, mut client) = http2(Fault::BadChunk);
    let data = client.until(KIND_DATA);
    // padded, by more than there is
    assert_eq!((data.flags & 0x8, data.payload), (0x8, b"\xffx".to_vec()));
    assert_counted(&rig.end(), Fault::BadChunk, Some(Failure::Malformed));
}

#[test]
fn http2_goes_on_endlessly() {
    for (fault, kind) in [
        (Fault::EndlessInterim, KIND_HEADERS),
        (Fault::EndlessHead, 0x9),
    ] {
        let (rig, mut client) = http2(fault);
        for _ in 0..500 {
            let frame = client.until(kind);
            assert!(!frame.ends_stream());
        }
        drop(client);
        assert_counted(&rig.end(), fault, Some(Failure::TooLarge));
    }
}

#[test]
fn http2_answers_twice_or_leaves() {
    let (rig, mut client) = http2(Fault::TwoAnswers);
    assert_eq!(client.answer(1), client.answer(1));
    assert_counted(&rig.end(), Fault::TwoAnswers, None);

    let (rig, mut client) = http2(Fault::CloseBeforeAnswer);
    let frames = client.rest();
    assert!(frames.iter().all(|frame| frame.stream == 0), "{frames:?}");
    assert_counted(&rig.end(), Fault::CloseBeforeAnswer, Some(Failure::Closed));

    let (rig, mut client) = http2(Fault::KeepAliveThenClose);
    assert_eq!(client.answer(1).1.len(), 100);
    // not a word of it
    assert_eq!(client.rest(), []);
    assert_counted(&rig.end(), Fault::KeepAliveThenClose, None);

    let (rig, mut client) = http2(Fault::Trickle);
    assert_eq!(client.until(KIND_DATA).payload, b"x");
    assert_eq!(client.until(KIND_DATA).payload, b"x");
    drop(client);
    assert_counted(&rig.end(), Fault::Trickle, Some(Failure::Timeout));
}

#[test]
fn faults_come_as_often_as_asked_for_and_again_with_their_seed() {
    let made = |seed| {
        let rig = Rig::start(Config {
            faults: "keep-alive-then-close=0.3".parse().unwrap(),
            seed,
            ..Config::default()
        });
        let kept: Vec<bool> = (0..60)
            .map(|_| get(&mut rig.connect(), "/").field("connection").is_none())
            .collect();
        let totals = rig.end();
        assert_eq!(totals.requests.ok, 60);
        assert_eq!(
            totals.faults[&Fault::KeepAliveThenClose] as usize,
            kept.iter().filter(|kept| !**kept).count()
        );
        kept
    };
    assert_eq!(made(1), made(1));
    assert_ne!(made(1), made(2));
}

#[test]
fn every_fault_says_what_a_careful_client_counts() {
    for fault in Fault::ALL {
        let http1 = fault.failure(Protocol::Http11);
        let http2 = fault.failure(Protocol::Http2);
        assert_eq!(http1.is_some(), http2.is_some(), "{fault}");
    }
}
