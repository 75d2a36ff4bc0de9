//! How connections end, seen from the other side.

use crate::http2::{Client, Frame, GOAWAY, KIND_DATA};
use crate::rig::{Rig, assert_silent, get, rest, secure};
use intact_ledger::EndedBy;
use intact_serve::{Close, Config};
use std::io::{ErrorKind, Write};

/// Closes after one request, so.
fn config(close: Close) -> Config {
    Config {
        close,
        max_requests: Some(1),
        ..Config::default()
    }
}

#[test]
fn a_fin_comes_behind_the_answer() {
    for close in [Close::Fin, Close::Goaway, Close::NoCloseNotify] {
        let rig = Rig::start(config(close));
        let mut stream = rig.connect();
        assert_eq!(get(&mut stream, "/").field("connection"), Some("close"));
        assert!(matches!(rest(&mut stream), (bytes, Ok(())) if bytes.is_empty()));
        assert_eq!(rig.end().connections.ended_by[&EndedBy::ServerAnnounced], 1);
    }
}

#[test]
fn a_reset_comes_behind_the_answer() {
    let rig = Rig::start(config(Close::Rst));
    let mut stream = rig.connect();
    assert_eq!(get(&mut stream, "/").status(), "200");
    let (_, ended) = rest(&mut stream);
    assert_eq!(ended.unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(rig.end().connections.ended_by[&EndedBy::ServerReset], 1);
}

#[test]
fn a_forgotten_connection_says_nothing_any_more_and_takes_what_comes() {
    let rig = Rig::start(config(Close::Silent));
    let mut stream = rig.connect();
    // nothing is announced: neither side knows yet that it will be forgotten
    assert_eq!(get(&mut stream, "/").field("connection"), None);
    stream
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        .unwrap();
    assert_silent(&mut stream);
    drop(stream);
    let totals = rig.end();
    assert_eq!(totals.requests.total, 1, "the second one was not read");
    assert_eq!(totals.connections.ended_by[&EndedBy::Server], 1);
}

#[test]
fn tls_ends_with_close_notify_unless_it_is_left_out() {
    for (close, notified) in [
        (Close::Goaway, true),
        (Close::Fin, true),
        (Close::NoCloseNotify, false),
    ] {
        let (rig, client) = secure(config(close), b"http/1.1");
        let mut stream = rig.connect_tls(&client);
        assert_eq!(get(&mut stream, "/").status(), "200");
        let (bytes, ended) = rest(&mut stream);
        assert_eq!(bytes, b"");
        match ended {
            Ok(()) => assert!(notified, "{close:?}"),
            // as rustls calls a FIN without close_notify
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
                assert!(!notified, "{close:?}");
            }
        }
        rig.end();
    }
}

#[test]
fn http2_says_goaway_by_default() {
    for (close, said) in [
        (Close::Goaway, true),
        (Close::Fin, false),
        (Close::Rst, false),
    ] {
        let rig = Rig::start(config(close));
        let mut client = Client::start(rig.connect());
        client.get(1, "/");
        let frames = client.rest();
        let answered = |frame: &Frame| frame.kind == KIND_DATA && frame.ends_stream();
        assert!(frames.iter().any(answered), "{close:?}: {frames:?}");
        let goaway = frames.iter().find(|frame| frame.kind == GOAWAY);
        assert_eq!(goaway.is_some(), said, "{close:?}: {frames:?}");
        if let Some(goaway) = goaway {
            // the last stream that was served, and no error
            assert_eq!(goaway.payload[..8], [0, 0, 0, 1, 0, 0, 0, 0]);
        }
        let totals = rig.end();
        let by = match close {
            Close::Goaway => EndedBy::ServerAnnounced,
            Close::Rst => EndedBy::ServerReset,
            _ => EndedBy::Server,
        };
        assert_eq!(totals.connections.ended_by[&by], 1, "{close:?}");
    }
}

#[test]
fn a_slow_close_comes_2_s_after_its_announcement_unless_the_client_closes() {
    let rig = Rig::start(config(Close::Slow));
    let (mut patient, mut quick) = (rig.connect(), rig.connect());
    let begun = std::time::Instant::now();
    for stream in [&mut patient, &mut quick] {
        assert_eq!(get(stream, "/").field("connection"), Some("close"));
    }
    drop(quick);
    assert!(matches!(rest(&mut patient), (bytes, Ok(())) if bytes.is_empty()));
    assert!(begun.elapsed() >= std::time::Duration::from_secs(2));
    let ended_by = rig.end().connections.ended_by;
    assert_eq!(ended_by.values().sum::<u64>(), 2, "{ended_by:?}");
    assert_eq!(ended_by[&EndedBy::ServerAnnounced], 1, "{ended_by:?}");
}

#[test]
fn http2_streams_that_are_open_are_answered_before_the_end() {
    let rig = Rig::start(Config {
        max_requests: Some(3),
        ..Config::default()
    });
    let mut client = Client::start(rig.connect());
    // all at once; the fourth is one too many
    for stream in [1, 3, 5, 7] {
        client.get(stream, "/delay/20");
    }
    let frames = client.rest();
    let answered: Vec<_> = frames
        .iter()
        .filter(|frame| frame.kind == KIND_DATA && frame.ends_stream())
        .map(|frame| frame.stream)
        .collect();
    assert_eq!(answered, [1, 3, 5]);
    let totals = rig.end();
    assert_eq!((totals.requests.ok, totals.requests.total), (3, 3));
}

#[test]
fn an_idle_http2_connection_is_ended_with_goaway() {
    let rig = Rig::start(Config {
        idle_timeout: Some(std::time::Duration::from_millis(50)),
        ..Config::default()
    });
    let mut client = Client::start(rig.connect());
    client.get(1, "/");
    let frames = client.rest();
    assert_eq!(frames.last().unwrap().kind, GOAWAY);
    assert_eq!(rig.end().connections.ended_by[&EndedBy::ServerAnnounced], 1);
}

#[test]
fn who_closes_first_is_who_is_recorded() {
    let rig = Rig::start(Config::default());
    let mut stream = rig.connect();
    get(&mut stream, "/");
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    rest(&mut stream).1.unwrap();
    let totals = rig.end();
    assert_eq!(totals.connections.ended_by[&EndedBy::Client], 1);
}
