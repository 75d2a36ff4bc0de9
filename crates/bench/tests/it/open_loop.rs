//! Open loop: what is due is sent, counted and timed from the schedule, whatever the server does.
//!
//! The truth comes from the server's own clock and the schedule alone: when the server sent a
//! response, less the moment at which its request was due. The server knows nothing of the engine;
//! a response is found by its client port and its number on the connection.

use crate::rig::{Counts, HELLO, Record, config, request, run, send, server};
use intact_bench::{Config, Length};
use intact_experiment::{Arrivals, Load, RequestRate, WhenBusy};
use intact_ledger::{Exchange, Failure, Outcome, Phase, Reuse, Row};
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const MS: u64 = 1_000_000;

fn at_rate(url: &str, rate: &str, time: Duration) -> Config {
    let mut config = config(url);
    config.axes.load = Load {
        rate: vec![rate.parse().unwrap()],
        ..Load::default()
    };
    config.length = Length::Time(time);
    config.rounds = Some(1);
    config.timeout = Duration::from_secs(10);
    config
}

fn measured(record: &Record) -> Vec<&Exchange> {
    let rows = record.rows.iter();
    let mut measured: Vec<&Exchange> = rows
        .filter_map(|row| match row {
            Row::Exchange(one) if !one.warmup => Some(&**one),
            _ => None,
        })
        .collect();
    measured.sort_by_key(|one| (one.round, one.at));
    measured
}

fn answers_at_once() -> (std::net::SocketAddr, Arc<Counts>) {
    server(Box::new(|mut stream, _, counts| {
        while request(&mut stream, counts).is_some() {
            send(&mut stream, HELLO);
        }
    }))
}

/// When a server with a pause sent its responses, by its own clock.
#[derive(Default)]
struct Log {
    seen: u64,
    first: Option<Instant>,
    paused_until: Option<Instant>,
    sent: HashMap<u16, Vec<Instant>>,
}

/// A server that stops all its responses for `pause` when the request number `pauses_at` arrives,
/// and notes the arrival of number `from`.
fn pauses(from: u64, pauses_at: u64, pause: Duration) -> (std::net::SocketAddr, Arc<Mutex<Log>>) {
    let log = Arc::new(Mutex::new(Log::default()));
    let seen = log.clone();
    let (address, _) = server(Box::new(move |mut stream, _, counts| {
        let port = stream.peer_addr().unwrap().port();
        while request(&mut stream, counts).is_some() {
            let until = {
                let mut log = seen.lock().unwrap();
                log.seen += 1;
                let now = Instant::now();
                if log.seen == from {
                    log.first = Some(now);
                }
                if log.seen == pauses_at {
                    log.paused_until = Some(now + pause);
                }
                log.paused_until
            };
            if let Some(until) = until {
                std::thread::sleep(until.saturating_duration_since(Instant::now()));
            }
            let now = Instant::now();
            seen.lock().unwrap().sent.entry(port).or_default().push(now);
            send(&mut stream, HELLO);
        }
    }));
    (address, log)
}

#[test]
fn a_pause_of_the_server_is_in_the_latency_of_each_request_that_was_due_in_it() {
    const RATE: u64 = 400;
    const CONNECTIONS: u64 = 4;
    const LONG: u64 = 100 * MS;
    let before = 1 + CONNECTIONS;
    let pause = Duration::from_millis(600);

    let (address, log) = pauses(before + 1, before + 100, pause);
    let url = format!("http://{address}/");
    let mut open = at_rate(&url, "400/s", Duration::from_secs(2));
    open.axes.concurrency = vec![CONNECTIONS as u32];
    let record = run(open);
    let (_, failed) = record.outcomes();
    assert_eq!(failed, []);
    let exchanges = measured(&record);
    let log = log.lock().unwrap();
    assert_eq!(exchanges.len() as u64, 2 * RATE);
    let mut ports = HashMap::new();
    for row in &record.rows {
        if let Row::Opened(one) = row {
            ports.insert(one.id, one.local.unwrap().port());
        }
    }
    let first = log.first.unwrap();
    let mut truth = Vec::new();
    for (k, one) in (0..).zip(&exchanges) {
        // the first request was due before it arrived, so this is a little less than the truth
        let due = first + Duration::from_nanos(k * 1_000_000_000 / RATE);
        let of_connection = &log.sent[&ports[&one.connection.unwrap()]];
        let sent = of_connection[one.ordinal.unwrap() as usize - 1];
        let latency = sent.saturating_duration_since(due).as_nanos() as u64;
        assert!(one.latency() >= latency, "{k}: {} {latency}", one.latency());
        truth.push(latency);
    }
    truth.sort_unstable();
    let long = truth.iter().filter(|nanos| **nanos >= LONG).count();
    assert!(long >= 190, "{long}");
    let mut cells = record.tally.cells.iter();
    let cell = cells.find(|cell| cell.round == Some(1)).unwrap();
    let all = cell.merged(|key| !key.warmup).unwrap();
    for q in [0.5, 0.9, 0.95, 0.99] {
        let truth = truth[(q * truth.len() as f64).ceil() as usize - 1];
        let seen = all.latency.quantile(q).unwrap();
        // a bucket of the histogram is 0.4 % wide
        assert!(seen >= truth as f64 * 0.996, "{q}: {seen} {truth}");
    }
    // most of it is waiting for a connection, and none of that is the client's error
    let queued = exchanges.iter().filter(|one| {
        let error = one.scheduling_error.unwrap();
        error.start.since(one.at) >= LONG
    });
    assert!(queued.count() >= 190 - CONNECTIONS as usize);

    // a closed loop sends nothing while it waits: only as many requests as connections see the
    // pause
    let (address, _) = pauses(before + 1, before + 100, pause);
    let mut closed = config(&format!("http://{address}/"));
    closed.axes.concurrency = vec![CONNECTIONS as u32];
    closed.length = Length::Exchanges(2 * RATE);
    closed.rounds = Some(1);
    closed.timeout = Duration::from_secs(10);
    let record = run(closed);
    let seen: Vec<u64> = measured(&record).iter().map(|one| one.latency()).collect();
    assert_eq!(seen.len() as u64, 2 * RATE);
    let of_pause = seen.iter().filter(|nanos| **nanos >= 500 * MS).count();
    assert_eq!(of_pause as u64, CONNECTIONS);
}

#[test]
fn requests_are_due_at_equal_distances_and_their_spans_add_up() {
    for (keepalive, threads) in [(true, 1), (true, 2), (false, 1), (false, 2)] {
        let (address, counts) = answers_at_once();
        let url = format!("http://{address}/");
        let mut config = at_rate(&url, "200/s", Duration::from_secs(1));
        config.axes.keepalive = vec![keepalive];
        config.axes.concurrency = vec![4];
        config.rounds = Some(2);
        config.threads = threads;
        let record = run(config);
        let exchanges = measured(&record);
        assert_eq!(exchanges.len(), 200);
        let first = if keepalive { 2 * 4 } else { 0 };
        assert_eq!(counts.requests.load(Ordering::SeqCst), 1 + first + 200);
        assert_eq!(
            record.opened(),
            counts.connections.load(Ordering::SeqCst),
            "{keepalive} {threads}"
        );
        for round in exchanges.chunk_by(|a, b| a.round == b.round) {
            assert_eq!(round.len(), 100);
            for pair in round.windows(2) {
                let distance = pair[1].at.since(pair[0].at);
                assert!(distance.abs_diff(5 * MS) <= 1, "{distance}");
            }
        }
        for one in &exchanges {
            let spans: Vec<_> = Phase::ALL
                .iter()
                .filter_map(|&phase| one.spans.of(phase))
                .collect();
            let sum: u64 = spans.iter().map(|span| span.nanos()).sum();
            assert_eq!(sum, one.latency(), "{one:?}");
            let error = one.scheduling_error.unwrap();
            assert!(error.start >= one.at);
            assert_eq!(one.spans.blocked.unwrap().end, error.end);
            assert_eq!(one.reuse == Some(Reuse::Fresh), !keepalive);
        }
        for cell in record
            .tally
            .cells
            .iter()
            .filter(|cell| cell.round > Some(0))
        {
            let bounds = cell.bounds.as_ref().unwrap();
            let schedule = bounds.schedule.unwrap();
            assert_eq!(schedule.due.nanos(), 500 * MS);
            assert_eq!(schedule.due.start, bounds.span.start);
            assert!(bounds.span.end >= schedule.due.end);
        }
    }
}

#[test]
fn what_an_overloaded_server_leaves_over_is_counted_and_not_dropped() {
    // one response in 20 ms, one connection: 50 a second of 200
    let (address, counts) = server(Box::new(|mut stream, _, counts| {
        while request(&mut stream, counts).is_some() {
            std::thread::sleep(Duration::from_millis(20));
            send(&mut stream, HELLO);
        }
    }));
    let url = format!("http://{address}/");
    let mut config = at_rate(&url, "200/s", Duration::from_secs(1));
    config.timeout = Duration::from_millis(500);
    let record = run(config);
    let exchanges = measured(&record);
    assert_eq!(exchanges.len(), 200);
    let unsent = |one: &&&Exchange| one.connection.is_none();
    let never: Vec<&&Exchange> = exchanges.iter().filter(unsent).collect();
    assert!(never.len() >= 100, "{}", never.len());
    for one in &never {
        assert_eq!(one.outcome, Outcome::Failed(Failure::Timeout));
        assert!(one.latency() >= 500 * MS);
        assert_eq!((one.reuse, one.scheduling_error), (None, None));
    }
    // preflight and warm-up apart, the server has the others
    let sent = (exchanges.len() - never.len()) as u64;
    assert_eq!(counts.requests.load(Ordering::SeqCst), 2 + sent);
    assert!(sent >= 10);
}

#[test]
fn connections_are_opened_when_all_are_busy_up_to_the_limit() {
    // each response takes 100 ms, so that 60 requests a second need six connections at least
    let (address, counts) = server(Box::new(|mut stream, _, counts| {
        while request(&mut stream, counts).is_some() {
            std::thread::sleep(Duration::from_millis(100));
            send(&mut stream, HELLO);
        }
    }));
    let url = format!("http://{address}/");
    for (most, opened) in [(3, 3..4), (200, 6..61)] {
        let before = counts.connections.load(Ordering::SeqCst);
        let mut config = at_rate(&url, "60/s", Duration::from_secs(1));
        config.axes.load.when_busy = WhenBusy::Open;
        config.axes.concurrency = vec![most];
        let record = run(config);
        let exchanges = measured(&record);
        assert_eq!(exchanges.len(), 60);
        let now = counts.connections.load(Ordering::SeqCst);
        assert_eq!(record.opened(), now - before);
        // one is the preflight's
        assert!(
            opened.contains(&(record.opened() - 1)),
            "{}",
            record.opened()
        );
        let mut cells = record.tally.cells.iter();
        let bounds = cells.find_map(|cell| cell.bounds.as_ref()?.schedule);
        assert_eq!(u64::from(bounds.unwrap().at_once), record.opened() - 1);
        let fresh = exchanges
            .iter()
            .filter(|one| one.reuse == Some(Reuse::Fresh));
        assert_eq!(fresh.count() as u64, record.opened() - 1);
    }
}

#[test]
fn a_ramp_goes_over_all_rounds_and_variants_have_equal_arrivals() {
    let (address, _) = answers_at_once();
    let url = format!("http://{address}/");
    let mut config = at_rate(&url, "50/s..350/s", Duration::from_secs(1));
    config.rounds = Some(2);
    config.axes.keepalive = vec![true, false];
    config.axes.concurrency = vec![8];
    let record = run(config.clone());
    let of = |record: &Record, variant: u32, round: u32| {
        let start = record.tally.cells.iter().find_map(|cell| {
            let is_it = cell.variant == Some(variant) && cell.round == Some(round);
            is_it.then_some(cell.bounds.as_ref()?.span.start)
        });
        let all = measured(record).into_iter();
        let all = all.filter(|one| one.variant == Some(variant) && one.round == Some(round));
        let start = start.unwrap();
        all.map(|one| one.at.since(start)).collect::<Vec<u64>>()
    };
    // 50 to 200 a second, then 200 to 350, half a second each; the fraction of a request is left
    // out
    assert_eq!(of(&record, 0, 1).len(), 63);
    assert_eq!(of(&record, 0, 2).len(), 138);
    config.axes.load.rate = vec![RequestRate::constant(200.0)];
    config.axes.load.arrivals = Arrivals::Poisson;
    let record = run(config);
    for round in 1..=2 {
        assert_eq!(of(&record, 0, round), of(&record, 1, round));
    }
    assert_ne!(of(&record, 0, 1), of(&record, 0, 2));
}

#[test]
fn a_number_of_requests_is_due_however_the_rounds_share_it() {
    let (address, counts) = answers_at_once();
    let url = format!("http://{address}/");
    let mut config = at_rate(&url, "1000/s", Duration::ZERO);
    config.length = Length::Exchanges(101);
    config.rounds = Some(3);
    config.threads = 2;
    config.axes.concurrency = vec![3];
    let record = run(config);
    assert_eq!(measured(&record).len(), 101);
    assert_eq!(counts.requests.load(Ordering::SeqCst), 1 + 3 * 3 + 101);
}

#[test]
fn a_rate_that_sends_nothing_is_refused() {
    for (rate, time) in [
        (0.0, 10),
        (-1.0, 10),
        (f64::NAN, 10),
        (f64::INFINITY, 10),
        (0.01, 10),
    ] {
        let mut config = at_rate("http://127.0.0.1:9/", "1/s", Duration::from_secs(time));
        config.axes.load.rate = vec![RequestRate::constant(rate)];
        let error = intact_bench::Bench::new(config).err().unwrap().to_string();
        assert!(error.starts_with("--rate: "), "{error}");
    }
    let mut ramp = at_rate("http://127.0.0.1:9/", "1/s..2/s", Duration::ZERO);
    ramp.length = Length::Exchanges(10);
    let error = intact_bench::Bench::new(ramp).err().unwrap().to_string();
    assert!(error.starts_with("--ramp: "), "{error}");
    let mut open = at_rate("http://127.0.0.1:9/", "9/s", Duration::from_secs(9));
    open.axes.load.when_busy = WhenBusy::Open;
    open.axes.keepalive = vec![false];
    let error = intact_bench::Bench::new(open).err().unwrap().to_string();
    assert!(error.starts_with("--when-busy: "), "{error}");
}
