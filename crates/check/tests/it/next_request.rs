//! The request after an idle time: it shows whether a connection without an end is still open.

use crate::limits::{NullObserver, read_head, respond, server};
use intact_check::{Check, Config, ServerProfile};
use intact_client::Clock;
use intact_ledger::server_profile::{IdleWait, NextRequest};
use intact_ledger::{Failure, Outcome};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

/// The idle time after which a connection is forgotten, and the age after which it ends.
const LIMIT: Duration = Duration::from_secs(1);

/// Runs a check that watches idle connections longer than [`LIMIT`].
fn check(serve: fn(TcpStream)) -> ServerProfile {
    let mut config = Config::new(&server(serve)).unwrap();
    config.idle_limit = LIMIT * 3 / 2;
    config.timeout = Duration::from_secs(2);
    config.hold = 2;
    let check = Check::new(config).unwrap();
    let profile = check.run(Clock::start(), None, &mut NullObserver).unwrap();
    assert!(profile.requests_sent <= check.budget().requests());
    profile
}

/// Every idle connection that was watched.
fn waits(profile: &ServerProfile) -> Vec<IdleWait> {
    let idle = profile.idle.as_ref().unwrap();
    assert_eq!(idle.samples.len(), 4, "{idle:?}");
    let held = profile.idle_under_load.and_then(|held| held.waited);
    let others = idle.before_first.into_iter().chain(held);
    idle.samples.iter().copied().chain(others).collect()
}

fn serve(stream: TcpStream) {
    let mut reader = BufReader::new(stream);
    while let Ok(true) = read_head(&mut reader) {
        if respond(&mut reader).is_err() {
            return;
        }
    }
}

/// Forgets a connection that is idle, as a NAT does: nothing shows it.
fn serve_and_forget(stream: TcpStream) {
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    let mut reader = BufReader::new(stream);
    while reader.fill_buf().is_ok() {
        if !read_head(&mut reader).unwrap_or(false) || respond(&mut reader).is_err() {
            return;
        }
    }
    thread::sleep(LIMIT * 60);
}

/// Announces the end of a connection that is old.
fn serve_the_young(stream: TcpStream) {
    let since = Instant::now();
    let mut reader = BufReader::new(stream);
    while let Ok(true) = read_head(&mut reader) {
        if since.elapsed() < LIMIT {
            if respond(&mut reader).is_err() {
                return;
            }
            continue;
        }
        let last = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok";
        let _ = reader.get_mut().write_all(last);
        return;
    }
}

#[test]
fn a_response_confirms_the_idle_time_of_every_connection() {
    let kept = NextRequest {
        outcome: Outcome::Ok,
        is_last: false,
    };
    let all = waits(&check(serve));
    assert_eq!(all.len(), 6);
    for waited in all {
        assert_eq!((waited.ended, waited.next), (None, Some(kept)));
    }
}

#[test]
fn a_connection_that_died_silently_is_not_kept() {
    let lost = Outcome::Failed(Failure::Timeout);
    let all = waits(&check(serve_and_forget));
    assert_eq!(all.len(), 6);
    for waited in all {
        let next = waited.next.map(|next| next.outcome);
        assert_eq!((waited.ended, next), (None, Some(lost)));
    }
}

#[test]
fn an_end_that_is_announced_after_an_idle_time_is_looked_at_as_an_age() {
    let profile = check(serve_the_young);
    let samples = &profile.idle.as_ref().unwrap().samples;
    let is_last = |one: &IdleWait| one.next.is_some_and(|next| next.is_last);
    assert!(samples.iter().all(is_last), "{samples:?}");
    let age = profile.age.unwrap();
    assert!(
        age.is_over() && age.span.nanos() >= LIMIT.as_nanos() as u64,
        "{age:?}"
    );
}
