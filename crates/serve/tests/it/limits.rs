//! Limits of connections, what is announced of them, and pauses. Times are lower bounds.

use crate::rig::{Rig, answer, ask, get, rest};
use intact_ledger::EndedBy;
use intact_serve::{Announce, Config, Delay};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_millis(100);

#[test]
fn an_idle_connection_is_closed_before_its_first_request_and_after_one() {
    let rig = Rig::start(Config {
        idle_timeout: Some(LIMIT),
        ..Config::default()
    });
    let begun = Instant::now();
    let mut unused = rig.connect();
    rest(&mut unused).1.unwrap();
    assert!(begun.elapsed() >= LIMIT);
    let mut used = rig.connect();
    let asked = Instant::now();
    assert_eq!(get(&mut used, "/").field("connection"), None);
    rest(&mut used).1.unwrap();
    assert!(asked.elapsed() >= LIMIT);
    let totals = rig.end();
    assert_eq!(totals.connections.ended_by[&EndedBy::Server], 2);
    assert_eq!((totals.requests.ok, totals.connections.open), (1, 0));
}

#[test]
fn the_idle_limit_is_not_about_time_spent_answering() {
    let rig = Rig::start(Config {
        idle_timeout: Some(LIMIT),
        ..Config::default()
    });
    let mut stream = rig.connect();
    assert_eq!(get(&mut stream, "/delay/300").status(), "200");
    rig.end();
}

#[test]
fn the_last_response_of_a_connection_announces_the_close() {
    let rig = Rig::start(Config {
        max_requests: Some(3),
        ..Config::default()
    });
    let mut stream = rig.connect();
    let closing = [(); 3].map(|()| get(&mut stream, "/").field("connection").is_some());
    assert_eq!(closing, [false, false, true]);
    rest(&mut stream).1.unwrap();
    let totals = rig.end();
    assert_eq!(totals.connections.ended_by[&EndedBy::ServerAnnounced], 1);
    assert_eq!(totals.versions[0].requests_per_connection_max, Some(3));
}

#[test]
fn an_old_connection_is_closed_when_idle_and_after_an_answer() {
    let rig = Rig::start(Config {
        max_age: Some(LIMIT),
        ..Config::default()
    });
    let begun = Instant::now();
    let mut idle = rig.connect();
    let mut busy = rig.connect();
    let last = get(&mut busy, "/delay/150");
    // the age was not reached when it was asked, so nothing was announced
    assert_eq!(last.field("connection"), None);
    rest(&mut busy).1.unwrap();
    rest(&mut idle).1.unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(150));
    assert_eq!(rig.end().connections.ended_by[&EndedBy::Server], 2);
}

#[test]
fn announcements_are_none_or_true_or_as_configured() {
    let announced = |announce| {
        let rig = Rig::start(Config {
            announce,
            idle_timeout: Some(Duration::from_secs(5)),
            max_requests: Some(3),
            ..Config::default()
        });
        let mut stream = rig.connect();
        [(); 3].map(|()| {
            let answer = get(&mut stream, "/");
            answer.field("keep-alive").map(str::to_owned)
        })
    };
    assert_eq!(announced(Announce::Off), [None, None, None]);
    let true_words = ["timeout=5, max=2", "timeout=5, max=1"].map(str::to_owned);
    let [first, second] = true_words.map(Some);
    assert_eq!(announced(Announce::Honest), [first, second, None]);
    let lie = Some("timeout=60, max=1000".to_owned());
    assert_eq!(
        announced(Announce::Lie("timeout=60, max=1000".to_owned())),
        [lie.clone(), lie, None]
    );
}

#[test]
fn pauses_come_before_answers_and_the_first_one_costs_more() {
    let rig = Rig::start(Config {
        delay: Delay::Fixed(LIMIT),
        first_request_cost: LIMIT,
        ..Config::default()
    });
    let mut stream = rig.connect();
    for _ in 0..2 {
        get(&mut stream, "/");
    }
    let totals = rig.end();
    let waits: Vec<_> = totals
        .last
        .iter()
        .map(|exchange| exchange.spans.wait.unwrap().nanos())
        .collect();
    assert!(waits[0] >= 2 * LIMIT.as_nanos() as u64, "{waits:?}");
    assert!(waits[1] >= LIMIT.as_nanos() as u64, "{waits:?}");
}

#[test]
fn a_slow_answer_does_not_hold_up_other_connections() {
    let rig = Rig::start(Config::default());
    let mut slow = rig.connect();
    ask(&mut slow, "/delay/500");
    assert_eq!(get(&mut rig.connect(), "/").status(), "200");
    assert_eq!(answer(&mut slow).status(), "200");
    let totals = rig.end();
    let order: Vec<_> = totals
        .last
        .iter()
        .map(|exchange| exchange.target.as_ref().unwrap().to_string())
        .collect();
    assert_eq!(order, ["/", "/delay/500"]);
}

#[test]
fn threads_share_the_connections_and_their_counts_add_up() {
    let rig = Rig::start(Config {
        threads: 3,
        ..Config::default()
    });
    let mut streams: Vec<_> = (0..6).map(|_| rig.connect()).collect();
    for stream in &mut streams {
        get(stream, "/");
        get(stream, "/");
    }
    drop(streams);
    let totals = rig.end();
    assert_eq!((totals.requests.ok, totals.connections.opened), (12, 6));
    let mut ids: Vec<_> = totals.last.iter().map(|exchange| exchange.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 12, "ids are unique over threads");
}
