//! Scenarios: what clients send is what the server saw, by path and by connection.

use crate::rig::{Everything, HELLO, config, request, send, server};
use intact_bench::{Arrival, Config, Scenario, ScenarioConfigError};
use intact_client::Clock;
use intact_experiment::Arrivals;
use intact_ledger::{Event, Exchange, Failure, Outcome, Reuse, Row, Tally};
use intact_scenario::{Language, Plan, compile};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const MS: u64 = 1_000_000;

fn plan(text: &str) -> Plan {
    let plan = compile("x.js", Language::JavaScript, text, Duration::from_secs(5));
    plan.unwrap_or_else(|error| panic!("{error}"))
}

/// The paths of each connection in order, and when each request was read.
type Log = Arc<Mutex<Vec<Vec<(String, Instant)>>>>;

/// A server that answers, closes where it is asked to, and logs.
fn logging() -> (SocketAddr, Log) {
    let log = Log::default();
    let seen = log.clone();
    let (address, _) = server(Box::new(move |mut stream, _, counts| {
        let own = {
            let mut log = seen.lock().unwrap();
            log.push(Vec::new());
            log.len() - 1
        };
        while let Some(head) = request(&mut stream, counts) {
            let path = head.split(' ').nth(1).unwrap().to_owned();
            seen.lock().unwrap()[own].push((path, Instant::now()));
            if head.to_ascii_lowercase().contains("connection: close") {
                send(
                    &mut stream,
                    b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello",
                );
                return;
            }
            send(&mut stream, HELLO);
        }
    }));
    (address, log)
}

struct Ran {
    tally: Tally,
    exchanges: Vec<Exchange>,
}

impl Ran {
    /// Exchanges by tag and state of their connection, of one session.
    fn tags(&mut self, session: u32) -> BTreeMap<(String, Option<Reuse>), u64> {
        let cell = self.tally.cell(Some(session), Some(1));
        let mut counts = BTreeMap::new();
        for tag in &cell.tags {
            for group in &tag.groups {
                *counts
                    .entry((tag.tag.to_string(), group.key.reuse))
                    .or_default() += group.count();
            }
        }
        counts
    }
}

fn run(config: Config, plan: Plan, arrival: Arrival) -> Ran {
    let scenario = Scenario::new(config, plan, "x.js", arrival, false).unwrap();
    let mut everything = Everything::default();
    let tally = scenario.run(Clock::start(), &mut everything).unwrap();
    let exchanges = everything.rows.into_iter().filter_map(|row| match row {
        Row::Exchange(one) => Some(*one),
        _ => None,
    });
    let mut exchanges: Vec<Exchange> = exchanges.collect();
    exchanges.sort_by_key(|one| one.at);
    Ran { tally, exchanges }
}

const TWO_SESSIONS: &str = "
    definition.session('kept', function (session) {
      context.get('/first', { tag: 'first' });
      session.times(26, function (context) { context.get('/kept', { tag: 'kept' }); context.waitExp(0.002); });
    });
    definition.session('closed', function (session) {
      session.times(25, function (context) {
        context.get('/closed', { tag: 'closed', headers: { Connection: 'close' } });
        context.waitExp(0.002);
      });
    });";

/// How often a path was requested.
fn requested(log: &Log, path: &str) -> u64 {
    let log = log.lock().unwrap();
    log.iter().flatten().filter(|(one, _)| one == path).count() as u64
}

#[test]
fn each_client_is_a_new_environment_and_counts_are_those_of_the_server() {
    for threads in [1, 2] {
        let (address, log) = logging();
        let mut config = config(&format!("http://{address}/"));
        config.threads = threads;
        let arrival = Arrival {
            clients: Some(12),
            at_once: Some(4),
            ..Arrival::default()
        };
        let mut ran = run(config, plan(TWO_SESSIONS), arrival);
        let clients: Vec<_> = (0..2)
            .map(|one| ran.tally.cell(Some(one), Some(1)).clients.unwrap())
            .collect();
        assert_eq!(clients[0].started + clients[1].started, 12);
        assert!(
            clients
                .iter()
                .all(|one| one.started == one.finished && one.started > 0),
            "{clients:?}"
        );
        let (kept, closed) = (clients[0].started, clients[1].started);
        let count = |tag: &str, reuse| ((tag.to_owned(), Some(reuse)), reuse);
        let expected = BTreeMap::from([
            (count("first", Reuse::Fresh).0, kept),
            (count("kept", Reuse::Reused).0, 26 * kept),
        ]);
        assert_eq!(ran.tags(0), expected);
        let expected = BTreeMap::from([(count("closed", Reuse::Fresh).0, 25 * closed)]);
        assert_eq!(ran.tags(1), expected);
        // the server's own counts
        assert_eq!(requested(&log, "/first"), kept);
        assert_eq!(requested(&log, "/kept"), 26 * kept);
        assert_eq!(requested(&log, "/closed"), 25 * closed);
        for connection in log.lock().unwrap().iter() {
            let paths: Vec<&str> = connection.iter().map(|(path, _)| &**path).collect();
            match paths[0] {
                "/first" => assert_eq!(paths.len(), 27),
                _ => assert_eq!(paths, ["/closed"]),
            }
        }
        let opened: u64 = ran
            .tally
            .cells
            .iter()
            .map(|cell| cell.connections.opened)
            .sum();
        assert_eq!(opened, kept + 25 * closed);
        assert_eq!(opened, log.lock().unwrap().len() as u64);
    }
}

#[test]
fn clients_arrive_by_the_phases_whatever_the_responses_take() {
    // each response takes 300 ms, and clients arrive every 10 ms
    let (address, _) = server(Box::new(|mut stream, _, counts| {
        while request(&mut stream, counts).is_some() {
            std::thread::sleep(Duration::from_millis(300));
            send(&mut stream, HELLO);
        }
    }));
    let plan = plan(
        "definition.setArrivalPhases([{ duration: 0.5, rate: 100 }, { duration: 0.5, rate: 20, max_clients: 5 }]);
         definition.session('s', (session) => { session.get('/a'); session.get('/b'); });",
    );
    let arrival = Arrival {
        spacing: Arrivals::Constant,
        ..Arrival::default()
    };
    let mut config = config(&format!("http://{address}/"));
    config.timeout = Duration::from_secs(10);
    let mut ran = run(config, plan, arrival);
    // places are added, so no client waited for one
    let cell = ran.tally.cell(Some(0), Some(1));
    let times = cell.merged(|_| true).unwrap().open_loop.unwrap();
    assert_eq!(times.queued.count(), 0);
    let first = |path: &str| {
        let of_path = ran.exchanges.iter();
        let of_path = of_path.filter(|one| one.target.as_ref().unwrap().as_str() == path);
        of_path.collect::<Vec<_>>()
    };
    assert_eq!((first("/a").len(), first("/b").len()), (55, 55));
    let start = first("/a")[0].at;
    for (nth, one) in first("/a").iter().enumerate() {
        let due = match nth {
            0..50 => nth as u64 * 10 * MS,
            _ => (500 + (nth as u64 - 50) * 50) * MS,
        };
        assert!(
            one.at.since(start).abs_diff(due) < MS,
            "{nth}: {:?}",
            one.at
        );
        assert_eq!(one.reuse, Some(Reuse::Fresh));
        assert!(one.latency() >= 300 * MS);
    }
    assert!(
        first("/b")
            .iter()
            .all(|one| one.reuse == Some(Reuse::Reused))
    );
}

#[test]
fn a_client_that_finds_no_place_is_late_and_its_first_request_shows_it() {
    let (address, _) = server(Box::new(|mut stream, _, counts| {
        while request(&mut stream, counts).is_some() {
            std::thread::sleep(Duration::from_millis(100));
            send(&mut stream, HELLO);
        }
    }));
    let plan = plan(
        "definition.setArrivalPhases([{ duration: 0.05, rate: 60 }]);
         definition.session('s', (session) => session.get('/'));",
    );
    let arrival = Arrival {
        at_once: Some(1),
        ..Arrival::default()
    };
    let mut config = config(&format!("http://{address}/"));
    config.timeout = Duration::from_secs(10);
    let mut ran = run(config, plan, arrival);
    // three in 50 ms, one after the other
    assert_eq!(ran.exchanges.len(), 3);
    let last = ran.exchanges[2].latency();
    assert!(last >= 250 * MS, "{last}");
    let cell = ran.tally.cell(Some(0), Some(1));
    let times = cell.merged(|_| true).unwrap().open_loop.unwrap();
    assert_eq!(times.queued.count(), 2);
}

#[test]
fn a_client_thinks_between_requests_and_keeps_its_connection() {
    let (address, log) = logging();
    let plan = plan(
        "definition.session('s', (session) => { session.get('/a'); session.wait(0.2); session.get('/b'); });",
    );
    let arrival = Arrival {
        clients: Some(1),
        ..Arrival::default()
    };
    let ran = run(config(&format!("http://{address}/")), plan, arrival);
    let log = log.lock().unwrap();
    assert_eq!((log.len(), log[0].len()), (1, 2));
    assert!(log[0][1].1 - log[0][0].1 >= Duration::from_millis(200));
    // the wait is in no latency
    let (a, b) = (&ran.exchanges[0], &ran.exchanges[1]);
    assert!(b.at.since(a.end) >= 200 * MS);
    assert_eq!(b.reuse, Some(Reuse::Reused));
}

#[test]
fn a_failed_request_does_not_end_its_client() {
    let (address, _) = server(Box::new(|mut stream, number, counts| {
        while request(&mut stream, counts).is_some() {
            // the first connection is cut
            if number == 0 {
                return;
            }
            send(&mut stream, HELLO);
        }
    }));
    let plan = plan(
        "definition.session('s', (session) => { session.get('/a'); session.get('/b'); session.get('/c'); });",
    );
    let arrival = Arrival {
        clients: Some(1),
        ..Arrival::default()
    };
    let mut ran = run(config(&format!("http://{address}/")), plan, arrival);
    let states: Vec<_> = ran
        .exchanges
        .iter()
        .map(|one| (one.outcome.is_ok(), one.reuse))
        .collect();
    let fresh = Some(Reuse::Fresh);
    assert_eq!(
        states,
        [(false, fresh), (true, fresh), (true, Some(Reuse::Reused))]
    );
    let clients = ran.tally.cell(Some(0), Some(1)).clients.unwrap();
    assert_eq!((clients.started, clients.finished), (1, 1));
}

#[test]
fn a_server_that_is_not_there_fails_each_request_and_the_run_ends() {
    let plan = plan(
        "definition.session('s', (session) => session.times(3, (c) => c.get('/', { tag: 't' })));",
    );
    let arrival = Arrival {
        clients: Some(2),
        ..Arrival::default()
    };
    let mut ran = run(config("http://127.0.0.1:9/"), plan, arrival);
    assert_eq!(ran.exchanges.len(), 6);
    let refused = Outcome::Failed(Failure::Refused);
    assert!(ran.exchanges.iter().all(|one| one.outcome == refused));
    assert_eq!(ran.tags(0)[&("t".to_owned(), Some(Reuse::Fresh))], 6);
}

#[test]
fn sessions_without_an_end_stop_when_the_time_is_over() {
    let (address, log) = logging();
    // the last wait is cut short
    let plan = plan(
        "definition.session('s', (session) => session.forEver((c) => { c.times(8, (d) => { d.get('/'); d.wait(0.01); }); c.wait(3600); }));",
    );
    let arrival = Arrival {
        time: Some(Duration::from_millis(300)),
        at_once: Some(3),
        ..Arrival::default()
    };
    let mut ran = run(config(&format!("http://{address}/")), plan, arrival);
    let clients = ran.tally.cell(Some(0), Some(1)).clients.unwrap();
    assert_eq!((clients.started, clients.finished), (3, 3));
    assert_eq!(log.lock().unwrap().len(), 3);
    assert_eq!(ran.exchanges.len() as u64, requested(&log, "/"));
    // no client gets beyond its long wait, and on a slow machine not all get so far
    assert!(
        (3..=24).contains(&ran.exchanges.len()),
        "{}",
        ran.exchanges.len()
    );
}

#[test]
fn a_stop_ends_clients_that_think_and_is_reported() {
    let (address, _) = logging();
    let plan = plan(
        "definition.setArrivalPhases([{ duration: 3600, rate: 50 }]);
         definition.session('s', (session) => { session.get('/'); session.wait(3600); session.get('/'); });",
    );
    let scenario = Scenario::new(
        config(&format!("http://{address}/")),
        plan,
        "x.js",
        Arrival::default(),
        false,
    )
    .unwrap();
    let gauge = scenario.gauge();
    let stopper = std::thread::spawn(move || {
        while gauge.exchanges.load(Ordering::Relaxed) < 5 {
            std::thread::yield_now();
        }
        gauge.stop.store(true, Ordering::Relaxed);
    });
    let mut everything = Everything::default();
    let mut tally = scenario.run(Clock::start(), &mut everything).unwrap();
    stopper.join().unwrap();
    let clients = tally.cell(Some(0), Some(1)).clients.unwrap();
    assert!(clients.started >= 5 && clients.finished == 0, "{clients:?}");
    assert!(tally.caveats.iter().any(|one| one.id == "interrupted"));
    let closed = everything.rows.iter();
    let closed = closed.filter(|row| matches!(row.as_event(), Event::Closed(_)));
    assert_eq!(closed.count() as u64, clients.started);
}

/// Why a scenario is refused.
fn refusal(url: &str, text: &str, arrival: Arrival) -> String {
    match Scenario::new(config(url), plan(text), "x.js", arrival, false) {
        Ok(_) => panic!("accepted: {text}"),
        Err(error @ (ScenarioConfigError::Scenario(_) | ScenarioConfigError::Config(_))) => {
            error.to_string()
        }
    }
}

#[test]
fn a_target_outside_of_the_plan_and_a_run_without_an_end_are_refused_with_their_lines() {
    let outside = "definition.session('s', (session) => {\n  session.get('http://a.example:80/x');\n  session.get('http://b.example/');\n});";
    let words = refusal("http://a.example/", outside, Arrival::default());
    assert!(
        words.starts_with("x.js:3: http://b.example is outside of the plan"),
        "{words}"
    );
    let endless = "\ndefinition.session('s', (session) => session.forEver((c) => c.get('/')));";
    let words = refusal("http://127.0.0.1/", endless, Arrival::default());
    assert!(
        words.starts_with("x.js:2: ") && words.contains("-z"),
        "{words}"
    );
    let path = "definition.session('s', (session) =>\n  session.get('/a b'));";
    let words = refusal("http://127.0.0.1/", path, Arrival::default());
    assert!(words.starts_with("x.js:2: "), "{words}");
}

#[test]
fn a_remote_server_gets_few_requests_and_connections_unless_more_are_asked_for() {
    let url = "http://192.0.2.1/";
    let short = "definition.setArrivalPhases([{ duration: 60, rate: 100 }]);
        definition.session('s', (session) => session.times(30, (c) => c.get('/')));";
    let size = |arrival: Arrival| {
        Scenario::new(config(url), plan(short), "x.js", arrival, false)
            .unwrap()
            .size()
    };
    let polite = size(Arrival::default());
    assert_eq!((polite.clients, polite.requests), (Some(6.0), Some(180.0)));
    assert_eq!(polite.opening_per_s, Some(10.0));
    let asked = size(Arrival {
        time: Some(Duration::from_secs(30)),
        ..Arrival::default()
    });
    assert_eq!((asked.clients, asked.opening_per_s), (Some(3_000.0), None));
    assert_eq!(asked.time, Some(Duration::from_secs(30)));
    let long = "definition.session('s', (session) => session.times(300, (c) => c.get('/')));";
    assert!(refusal(url, long, Arrival::default()).contains("200 allowed by default"));
    let endless = "definition.session('s', (session) => session.forEver((c) => c.get('/')));";
    assert!(refusal(url, endless, Arrival::default()).contains("-z"));
}

#[test]
fn new_connections_keep_to_their_limit() {
    let (address, log) = logging();
    let mut config = config(&format!("http://{address}/"));
    config.opening_per_s = Some(20.0);
    let plan = plan(
        "definition.session('s', (session) => session.times(3, (c) => c.get('/', { headers: { Connection: 'close' } })));",
    );
    let arrival = Arrival {
        clients: Some(2),
        at_once: Some(2),
        ..Arrival::default()
    };
    let ran = run(config, plan, arrival);
    let log = log.lock().unwrap();
    assert_eq!((log.len(), ran.exchanges.len()), (6, 6));
    let mut times: Vec<Instant> = log.iter().map(|one| one[0].1).collect();
    times.sort();
    // five distances of 50 ms
    assert!(times[5] - times[0] >= Duration::from_millis(240));
    // our own limit is no latency of the server: a request is due when the limit allows it
    assert!(ran.exchanges[5].at.since(ran.exchanges[0].at) >= 240 * MS);
}
