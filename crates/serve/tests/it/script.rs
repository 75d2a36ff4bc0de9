//! What happens at set times, on the wire, and the times that the server records of it.

use crate::http2::Client;
use crate::rig::{Rig, answer, ask, get, rest};
use intact_ledger::{Exchange, Failure};
use intact_serve::{Config, Disturbance, Totals};
use std::io::ErrorKind;
use std::time::{Duration, Instant};

fn rig(script: &str) -> Rig {
    Rig::start(Config {
        script: script.parse().unwrap(),
        ..Config::default()
    })
}

/// How long the server had a request, by its own record.
fn held(exchange: &Exchange) -> Duration {
    Duration::from_nanos(exchange.end.since(exchange.at))
}

/// How many responses were disturbed, by the record of each and by the counts.
fn disturbed(totals: &Totals, kind: Disturbance) -> u64 {
    let detail = format!("script: {kind}");
    let records = totals.last.iter();
    let recorded = records.filter(|one| one.detail.as_deref() == Some(&*detail));
    let counted = totals.disturbed.get(&kind).copied().unwrap_or(0);
    assert_eq!(recorded.count() as u64, counted);
    counted
}

#[test]
fn a_pause_holds_every_connection_and_the_record_shows_for_how_long() {
    let server = rig("pause=300ms@0s");
    let begun = Instant::now();
    let mut streams = [server.connect(), server.connect()];
    for stream in &mut streams {
        ask(stream, "/");
    }
    for stream in &mut streams {
        answer(stream);
    }
    assert!(begun.elapsed() >= Duration::from_millis(300));
    // the server can be asked about itself meanwhile, and the pause is over
    get(&mut streams[0], "/");
    let totals = server.end();
    assert_eq!(disturbed(&totals, Disturbance::Pause), 2);
    let longest = totals.last.iter().map(held).max().unwrap();
    assert!(longest >= Duration::from_millis(300), "{longest:?}");
    assert_eq!((totals.requests.ok, totals.requests.total), (3, 3));
}

#[test]
fn every_nth_response_is_late_on_whichever_connection_and_version() {
    let server = rig("slow=200ms/3");
    let mut stream = server.connect();
    let mut client = Client::start(server.connect());
    for turn in 0..3 {
        get(&mut stream, "/");
        client.get(2 * turn + 1, "/");
        client.answer(2 * turn + 1);
    }
    let totals = server.end();
    assert_eq!(disturbed(&totals, Disturbance::Slow), 2);
    for number in [2, 5] {
        assert!(held(&totals.last[number]) >= Duration::from_millis(200));
    }
}

#[test]
fn a_stall_holds_one_connection_and_no_other() {
    let server = rig("stall=400ms@0s");
    let mut stalled = server.connect();
    ask(&mut stalled, "/");
    get(&mut server.connect(), "/bytes/7");
    answer(&mut stalled);
    let totals = server.end();
    assert_eq!(disturbed(&totals, Disturbance::Stall), 1);
    // by their ends: the second one was served first
    let paths: Vec<_> = totals.last.iter().map(|one| one.bytes.body).collect();
    assert_eq!(paths, [7, 100]);
    assert!(held(&totals.last[1]) >= Duration::from_millis(400));
}

#[test]
fn resets_meet_every_request_in_their_time() {
    let server = rig("reset=1h@0s");
    let mut stream = server.connect();
    ask(&mut stream, "/");
    let (bytes, ended) = rest(&mut stream);
    assert_eq!(bytes, b"");
    assert_eq!(ended.unwrap_err().kind(), ErrorKind::ConnectionReset);
    let mut client = Client::start(server.connect());
    client.get(1, "/");
    let ended = std::io::Read::read_to_end(&mut client.stream, &mut Vec::new());
    assert_eq!(ended.unwrap_err().kind(), ErrorKind::ConnectionReset);
    let totals = server.end();
    assert_eq!(disturbed(&totals, Disturbance::Reset), 2);
    assert_eq!(totals.requests.failed[&Failure::Reset], 2);
}

#[test]
fn a_ramp_delays_all_responses() {
    let server = rig("ramp=200ms/1ms");
    let mut stream = server.connect();
    get(&mut stream, "/");
    std::thread::sleep(Duration::from_millis(1));
    get(&mut stream, "/");
    let totals = server.end();
    assert!(held(&totals.last[1]) >= Duration::from_millis(200));
}

#[test]
fn threads_share_the_script() {
    let server = Rig::start(Config {
        script: "slow=1ms/2".parse().unwrap(),
        threads: 2,
        ..Config::default()
    });
    for _ in 0..10 {
        get(&mut server.connect(), "/");
    }
    assert_eq!(server.end().disturbed[&Disturbance::Slow], 5);
}
