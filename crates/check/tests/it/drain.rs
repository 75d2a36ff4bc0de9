//! The end of a server during a check: as a probe, with a process that the test simulates, and
//! during other probes.

use crate::hostile::Observed;
use crate::http3::secure_server;
use intact_check::{
    Check, CheckProgress, Config, DrainConfig, EndSignal, ExtraRequest, ProbeKind, ProcessState,
    ServerProcess, ServerProfile,
};
use intact_client::Clock;
use intact_ledger::server_profile::{Drain, DrainConnection, DrainRequest, DrainRole};
use intact_ledger::{Event, Failure, Outcome, Protocol};
use intact_serve::Totals;
use intact_test_servers::TestServer;
use std::io;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A limit that no correct run reaches.
const HANG: Duration = Duration::from_secs(60);

/// A server that ends like a process.
struct Played {
    server: Option<TestServer>,
    ending: Option<JoinHandle<Totals>>,
    ignores: bool,
    killed: bool,
}

impl Played {
    fn start(drain: Duration, ignores: bool) -> (Played, String) {
        let config = intact_serve::Config {
            drain,
            ..intact_serve::Config::default()
        };
        let server = TestServer::start(config).unwrap();
        let url = format!("http://{}/", server.addresses().plain.unwrap());
        (Played::of(server, ignores), url)
    }

    fn of(server: TestServer, ignores: bool) -> Played {
        Played {
            server: Some(server),
            ending: None,
            ignores,
            killed: false,
        }
    }

    fn end(&mut self) {
        let server = self.server.take();
        self.ending = server.map(|server| std::thread::spawn(|| server.end().unwrap()));
    }
}

impl ServerProcess for Played {
    fn ask_to_end(&mut self, _: EndSignal) -> io::Result<()> {
        if !self.ignores {
            self.end();
        }
        Ok(())
    }

    fn state(&mut self) -> io::Result<ProcessState> {
        let is_over = self.ending.as_ref().is_some_and(JoinHandle::is_finished);
        Ok(ProcessState {
            ended: is_over.then(|| "exit code 0".to_owned()),
            is_left: !is_over,
        })
    }

    fn kill(&mut self) -> io::Result<()> {
        self.killed = true;
        self.end();
        Ok(())
    }
}

/// A drain check, with a request that takes 0.5 s.
fn measure(played: &mut Played, url: &str, limit: Duration) -> (Drain, Observed, u32) {
    measure_with(Config::new(url).unwrap(), played, limit)
}

fn measure_with(
    mut config: Config,
    played: &mut Played,
    limit: Duration,
) -> (Drain, Observed, u32) {
    config.drain = Some(DrainConfig {
        limit,
        slow: Some("/delay/500".parse::<ExtraRequest>().unwrap()),
        ..DrainConfig::default()
    });
    let check = Check::new(config).unwrap();
    let mut observed = Observed::default();
    let profile = check
        .run_drain(Clock::start(), played, &mut observed)
        .unwrap();
    assert!(profile.requests_sent <= check.budget().requests());
    (profile.drain.unwrap(), observed, profile.requests_sent)
}

#[test]
fn over_http3_each_kept_connection_gets_its_goaway() {
    let (server, mut config) = secure_server(|server| {
        server.http3 = true;
        server.drain = HANG;
    });
    config.http = Some(Protocol::Http3);
    let mut played = Played::of(server, false);
    let (drain, ..) = measure_with(config, &mut played, HANG);
    played.ending.unwrap().join().unwrap();
    // a request that crosses the GOAWAY is refused, so that it may be sent again
    let is_lost = |one: &&DrainRequest| {
        !matches!(one.outcome, Outcome::Ok | Outcome::Failed(Failure::Refusal))
    };
    assert_eq!(
        drain.requests.iter().filter(is_lost).count(),
        0,
        "{drain:?}"
    );
    let mut open = 0;
    let is_kept = |one: &&DrainConnection| one.role != DrainRole::New;
    for one in drain.connections.iter().filter(is_kept) {
        assert_eq!(one.http, Protocol::Http3);
        assert!(one.announced_at.is_some(), "{one:?}");
        open += 1;
    }
    assert!(open >= 4, "{drain:?}");
}

#[test]
fn a_drain_in_good_order_is_recorded_connection_by_connection() {
    let (mut played, url) = Played::start(HANG, false);
    let (drain, observed, sent) = measure(&mut played, &url, HANG);
    let totals = played.ending.unwrap().join().unwrap();
    assert!(
        drain.requests.iter().all(|one| one.outcome.is_ok()),
        "{drain:?}"
    );
    let in_flight: Vec<_> = drain
        .requests
        .iter()
        .filter(|one| one.sent_at <= drain.at)
        .collect();
    assert!(
        in_flight.len() >= 3,
        "one of each connection: {in_flight:?}"
    );
    let slow = |version| {
        in_flight.iter().any(|one| {
            let connection = &drain.connections[one.connection];
            connection.role == DrainRole::InFlight && connection.http == version && one.announced
        })
    };
    assert!(slow(Protocol::Http11) && slow(Protocol::Http2));
    let goaways = drain
        .connections
        .iter()
        .filter(|one| one.last_stream.is_some());
    assert!(goaways.count() >= 4, "every connection of HTTP/2");
    assert!(drain.process.group_at > Some(drain.at) && drain.process.killed_at.is_none());
    // both sides count the same requests
    assert_eq!(observed.exchanges.len(), sent as usize);
    assert_eq!(totals.requests.total, u64::from(sent));
    assert_eq!(totals.requests.ok, totals.requests.total);
}

#[test]
fn a_server_that_ignores_the_signal_is_killed_in_time_and_goes_on_until_then() {
    let (mut played, url) = Played::start(Duration::ZERO, true);
    let limit = Duration::from_secs(1);
    let (drain, ..) = measure(&mut played, &url, limit);
    assert!(played.killed);
    let killed = drain.process.killed_at.unwrap();
    assert!(killed.since(drain.at) >= limit.as_nanos() as u64);
    assert_eq!(
        (drain.process.command_at, drain.process.group_at),
        (None, None)
    );
    let used = |one: &&DrainRequest| {
        one.outcome.is_ok() && drain.connections[one.connection].role == DrainRole::Used
    };
    assert!(drain.requests.iter().filter(used).count() >= 2);
    let is_new = |one: &&DrainRequest| {
        one.outcome.is_ok() && drain.connections[one.connection].role == DrainRole::New
    };
    assert!(drain.requests.iter().filter(is_new).count() >= 1);
    assert!(
        drain
            .connections
            .iter()
            .all(|one| one.announced_at.is_none())
    );
}

/// Ends the server when the requests on one connection begin.
struct EndsIt {
    played: Played,
    observed: Observed,
}

impl CheckProgress for EndsIt {
    fn event(&mut self, event: Event<'_>) {
        self.observed.event(event);
    }
    fn stage(&mut self, stage: ProbeKind, _: &ServerProfile) {
        if stage == ProbeKind::Requests {
            self.played.end();
        }
    }
    fn waiting(&mut self, _: Duration) {}
    fn stopped(&self) -> bool {
        false
    }
}

#[test]
fn a_server_that_drains_in_the_middle_of_a_check_does_not_hang_it() {
    let (played, url) = Played::start(HANG, false);
    let mut config = Config::new(&url).unwrap();
    config.timeout = Duration::from_secs(1);
    config.idle_limit = Duration::from_secs(1);
    let check = Check::new(config).unwrap();
    let observed = Observed::default();
    let mut ends = EndsIt { played, observed };
    let begun = Instant::now();
    let profile = check.run(Clock::start(), None, &mut ends).unwrap();
    assert!(begun.elapsed() < HANG);
    let totals = ends.played.ending.unwrap().join().unwrap();
    // a request on a refused connection did not reach the server, and no request reached it twice
    assert!(totals.requests.total <= u64::from(profile.requests_sent));
    assert_eq!(totals.requests.ok, totals.requests.total);
}
