//! The end of the server in good order: announced, with responses to what is in flight, within a
//! limit.

use crate::http2::{Client, Frame, GOAWAY, KIND_DATA};
use crate::rig::{Rig, answer, ask, get, rest};
use intact_ledger::EndedBy;
use intact_serve::{Config, Totals};
use std::net::TcpStream;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Far more than any of these tests takes.
const LIMIT: Duration = Duration::from_secs(20);

fn config(drain: Duration) -> Config {
    Config {
        drain,
        ..Config::default()
    }
}

/// Ends the server on another thread, and returns once it does not listen: from then on it drains.
fn end(rig: Rig) -> JoinHandle<Totals> {
    let address = rig.plain();
    let ending = thread::spawn(move || rig.end());
    let give_up = Instant::now() + LIMIT;
    while TcpStream::connect(address).is_ok() {
        assert!(Instant::now() < give_up, "it still listens");
        thread::sleep(Duration::from_millis(2));
    }
    ending
}

#[test]
fn the_next_response_announces_the_end() {
    let rig = Rig::start(config(LIMIT));
    let mut stream = rig.connect();
    assert_eq!(get(&mut stream, "/").field("connection"), None);
    let ending = end(rig);
    assert_eq!(get(&mut stream, "/").field("connection"), Some("close"));
    assert!(matches!(rest(&mut stream), (bytes, Ok(())) if bytes.is_empty()));
    let totals = ending.join().unwrap();
    assert_eq!((totals.requests.ok, totals.requests.total), (2, 2));
    assert_eq!(totals.connections.ended_by[&EndedBy::ServerAnnounced], 1);
}

#[test]
fn a_request_in_flight_gets_its_response_with_the_announcement() {
    let rig = Rig::start(config(LIMIT));
    let mut stream = rig.connect();
    ask(&mut stream, "/delay/300");
    let ending = end(rig);
    assert_eq!(answer(&mut stream).field("connection"), Some("close"));
    let totals = ending.join().unwrap();
    assert_eq!((totals.requests.ok, totals.requests.total), (1, 1));
}

#[test]
fn an_idle_connection_is_closed_without_a_byte() {
    let rig = Rig::start(config(Duration::from_millis(200)));
    let mut stream = rig.connect();
    get(&mut stream, "/");
    let mut unused = rig.connect();
    let ending = end(rig);
    for stream in [&mut stream, &mut unused] {
        assert!(matches!(rest(stream), (bytes, Ok(())) if bytes.is_empty()));
    }
    ending.join().unwrap();
}

#[test]
fn http2_gets_goaway_and_the_responses_to_its_open_streams() {
    let rig = Rig::start(config(LIMIT));
    let mut client = Client::start(rig.connect());
    client.get(1, "/delay/300");
    let ending = end(rig);
    let frames = client.rest();
    let goaway = frames.iter().position(|frame| frame.kind == GOAWAY);
    let goaway = goaway.expect("GOAWAY");
    // the last stream that is served, and no error
    assert_eq!(frames[goaway].payload[..8], [0, 0, 0, 1, 0, 0, 0, 0]);
    let ends = |frame: &Frame| frame.kind == KIND_DATA && frame.ends_stream();
    assert!(frames[goaway..].iter().any(ends), "{frames:?}");
    let totals = ending.join().unwrap();
    assert_eq!((totals.requests.ok, totals.requests.total), (1, 1));
    assert_eq!(totals.connections.ended_by[&EndedBy::ServerAnnounced], 1);
}

#[test]
fn a_response_that_never_comes_does_not_hold_the_end_up() {
    let rig = Rig::start(config(Duration::from_millis(200)));
    let mut stream = rig.connect();
    ask(&mut stream, "/fault/stall");
    let begun = Instant::now();
    let ending = end(rig);
    rest(&mut stream).1.ok();
    let totals = ending.join().unwrap();
    assert!(begun.elapsed() < LIMIT);
    assert_eq!(totals.requests.ok, 0);
}

#[test]
fn without_time_for_it_connections_are_cut_off() {
    let rig = Rig::start(config(Duration::ZERO));
    let mut stream = rig.connect();
    ask(&mut stream, "/delay/60000");
    let begun = Instant::now();
    end(rig).join().unwrap();
    assert!(begun.elapsed() < LIMIT);
    assert_eq!(rest(&mut stream).0, b"");
}
