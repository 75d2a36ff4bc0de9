//! The time limit of a check, and the idle timeout of a server that checks its connections at
//! intervals.

use intact_check::{Check, CheckProgress, Config, ProbeKind, ServerProfile};
use intact_client::Clock;
use intact_ledger::{Event, Failure};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

pub(crate) struct NullObserver;

impl CheckProgress for NullObserver {
    fn event(&mut self, _: Event<'_>) {}
    fn stage(&mut self, _: ProbeKind, _: &ServerProfile) {}
    fn waiting(&mut self, _: Duration) {}
    fn stopped(&self) -> bool {
        false
    }
}

/// A server with a thread per connection.
pub(crate) fn server(serve: fn(TcpStream)) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            thread::spawn(move || serve(stream.unwrap()));
        }
    });
    url
}

/// Reads a header section. Returns `false` at the end of the stream.
pub(crate) fn read_head(reader: &mut BufReader<TcpStream>) -> std::io::Result<bool> {
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            return Ok(false);
        }
    }
    Ok(true)
}

pub(crate) fn respond(reader: &mut BufReader<TcpStream>) -> std::io::Result<()> {
    let response = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    reader.get_mut().write_all(response)
}

/// Takes 300 ms for each response.
fn serve_slowly(stream: TcpStream) {
    let mut reader = BufReader::new(stream);
    while let Ok(true) = read_head(&mut reader) {
        thread::sleep(Duration::from_millis(300));
        if respond(&mut reader).is_err() {
            return;
        }
    }
}

#[test]
fn the_whole_check_has_a_limit() {
    let mut config = Config::new(&server(serve_slowly)).unwrap();
    config.timeout = Duration::from_millis(900);
    config.max_time = Duration::from_secs(1);
    let check = Check::new(config).unwrap();
    let profile = check.run(Clock::start(), None, &mut NullObserver).unwrap();
    // each takes 300 ms at least
    assert!(profile.requests_sent <= 4, "{}", profile.requests_sent);
    assert!(
        profile
            .contact
            .is_some_and(|contact| contact.outcome.is_ok())
    );
    let limited = profile
        .skipped
        .iter()
        .filter(|one| one.why.contains("--max-time"));
    assert!(limited.count() >= 5, "{:?}", profile.skipped);
}

/// Checks its connections every second since its start, and closes those that were idle for 600 ms.
fn serve_with_a_sweep(stream: TcpStream) {
    static SINCE: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    let since = SINCE.get_or_init(Instant::now);
    let next_sweep = || {
        let second = Duration::from_secs(since.elapsed().as_secs() + 1);
        second.saturating_sub(since.elapsed())
    };
    let mut active = Instant::now();
    let mut reader = BufReader::new(stream);
    loop {
        let wait = next_sweep().max(Duration::from_millis(1));
        reader.get_ref().set_read_timeout(Some(wait)).unwrap();
        match reader.fill_buf().map(<[u8]>::is_empty) {
            Ok(true) => return,
            Ok(false) => {
                if !read_head(&mut reader).unwrap_or(false) || respond(&mut reader).is_err() {
                    return;
                }
                active = Instant::now();
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if active.elapsed() >= Duration::from_millis(600) {
                    return;
                }
            }
            Err(_) => return,
        }
    }
}

/// Executes the second request of a connection, and closes immediately.
fn serve_once(stream: TcpStream) {
    let mut reader = BufReader::new(stream);
    if read_head(&mut reader).unwrap_or(false) && respond(&mut reader).is_ok() {
        let _ = read_head(&mut reader);
    }
}

/// Counts how exchanges failed.
#[derive(Default)]
struct Failures(BTreeMap<Failure, u32>);

impl CheckProgress for Failures {
    fn event(&mut self, event: Event<'_>) {
        if let Event::Exchange(exchange) = event
            && let Some(kind) = exchange.outcome.failure()
        {
            *self.0.entry(kind).or_default() += 1;
        }
    }
    fn stage(&mut self, _: ProbeKind, _: &ServerProfile) {}
    fn waiting(&mut self, _: Duration) {}
    fn stopped(&self) -> bool {
        false
    }
}

#[test]
fn a_request_that_was_executed_before_the_close_is_not_stale() {
    let mut config = Config::new(&server(serve_once)).unwrap();
    config.max_time = Duration::from_secs(5);
    config.idle_limit = Duration::from_millis(500);
    let mut failures = Failures::default();
    let check = Check::new(config).unwrap();
    check.run(Clock::start(), None, &mut failures).unwrap();
    let kinds: Vec<Failure> = failures.0.into_keys().collect();
    assert!(kinds.contains(&Failure::Closed), "{kinds:?}");
    assert!(!kinds.contains(&Failure::Stale), "{kinds:?}");
}

#[test]
fn an_idle_limit_is_sampled_on_several_connections() {
    let mut config = Config::new(&server(serve_with_a_sweep)).unwrap();
    config.idle_limit = Duration::from_secs(5);
    let check = Check::new(config).unwrap();
    let profile = check.run(Clock::start(), None, &mut NullObserver).unwrap();
    assert!(profile.requests_sent <= check.budget().requests());
    let idle = profile.idle.unwrap();
    let nanos: Vec<u64> = idle.samples.iter().map(|one| one.span.nanos()).collect();
    assert_eq!(nanos.len(), 4, "{idle:?}");
    assert!(idle.samples.iter().all(|one| one.ended.is_some()));
    assert!(nanos.iter().all(|one| *one >= 590_000_000), "{nanos:?}");
    // their waits differ, because they start at different times before a sweep
    let (first, last) = (nanos.iter().min().unwrap(), nanos.iter().max().unwrap());
    assert!(last - first >= 100_000_000, "{nanos:?}");
    assert_eq!(idle.between.map(|one| one.span.nanos()), Some(*first));
}
