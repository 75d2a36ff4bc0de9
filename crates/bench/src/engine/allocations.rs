//! A guard of the hot path: how many allocations an exchange costs, and how many a connection.
//! Counted on the engine's thread, so the same on every machine.
//!
//! Two runs that differ only in their length are compared. What differs is the cost of the
//! additional exchanges. A few allocations more are histograms that a rare latency has grown.

use super::{Engine, Gauge, IoBackend, RoundTask, WarmUp};
use crate::closed_loop::ClosedLoop;
use crate::config::{Coalesce, Config, IoChoice, Length, RowPolicy};
use crate::io_backend;
use crate::pace::Pace;
use crate::recorder::Recorder;
use intact_client::Clock;
use intact_client::tls::{Credentials, Trust, Verify};
use intact_experiment::{Axes, AxisValues, TlsChoice};
use intact_ledger::{Protocol, TlsVersion};
use intact_serve::{CertificateAuthority, TlsConfig};
use intact_test_servers::TestServer;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

/// Exchanges of the short run, and of the long one in addition.
const EXCHANGES: u64 = 1_000;
/// Connections at once.
const CONNECTIONS: usize = 4;

/// What is measured.
#[derive(Clone, Copy, Debug)]
struct Trial {
    http: Protocol,
    tls: bool,
    keepalive: bool,
}

fn config(server: &TestServer, roots: &[u8], trial: Trial) -> Config {
    let addresses = server.addresses();
    let url = match (trial.tls, addresses.tls, addresses.plain) {
        (true, Some(tls), _) => format!("https://{tls}/"),
        (_, _, plain) => format!("http://{}/", plain.unwrap()),
    };
    let tls = match trial.tls {
        true => TlsChoice::Version(TlsVersion::Tls13),
        false => TlsChoice::None,
    };
    let axes = Axes {
        keepalive: vec![trial.keepalive],
        http: vec![trial.http],
        tls: vec![tls],
        concurrency: vec![CONNECTIONS as u32],
        ..Axes::default()
    };
    Config {
        length: Length::Exchanges(EXCHANGES),
        rounds: Some(1),
        seed: 7,
        timeout: Duration::from_secs(60),
        credentials: Credentials {
            verify: Verify::Roots(roots.into()),
            certificate: None,
        },
        coalesce: Coalesce::Never,
        io: IoChoice::Epoll,
        ..Config::new(url, axes)
    }
}

/// Allocations of a round with this number of exchanges.
fn allocations(config: &Config, io: IoBackend, exchanges: u64) -> u64 {
    let (rows, received) = sync_channel(64);
    let recorder = Recorder::new(RowPolicy::First, 7, rows);
    let gauge = Arc::new(Gauge::default());
    let mut engine = Engine::new(0, Clock::start(), recorder, gauge, io).unwrap();
    let choice: &AxisValues = &config.axes.choices()[0];
    let trust = Trust::load(&config.credentials.verify).unwrap();
    let variant_plan = config.variant_plan(0, choice, &trust, true).unwrap();
    let warms_up = variant_plan.warms_up(1);
    let task = RoundTask {
        variant_plan: Arc::new(variant_plan),
        round: 1,
        connections: CONNECTIONS,
        pace: Pace::Closed(ClosedLoop::new(Some(exchanges), None)),
        warm_up: Arc::new(WarmUp::new(if warms_up { CONNECTIONS } else { 0 })),
        clients: None,
        windows: None,
        turn: 0,
    };
    let mut result = None;
    let info = allocation_counter::measure(|| result = Some(engine.run(task)));
    let mut tally = result.unwrap().unwrap().tally;
    let cell = tally.cell(Some(0), Some(1));
    let ok = cell.merged(|key| key.outcome.is_ok() && !key.warmup);
    assert_eq!(ok.unwrap().count(), exchanges, "not all went well");
    drop(received);
    info.count_total
}

/// Allocations per exchange that a longer run has in addition.
fn per_exchange(trial: Trial, io: IoBackend) -> f64 {
    let authority = Arc::new(CertificateAuthority::make(&[]).unwrap());
    let roots = authority.ca_pem().unwrap().as_bytes().to_vec();
    let tls = TlsConfig {
        authority,
        versions: vec![TlsVersion::Tls13],
        tickets: 0,
        early_data: 0,
    };
    let server = TestServer::start(intact_serve::Config {
        tls: Some((([127, 0, 0, 1], 0).into(), tls)),
        ..intact_serve::Config::default()
    });
    let server = server.unwrap();
    let config = config(&server, &roots, trial);
    let short = allocations(&config, io, EXCHANGES);
    let long = allocations(&config, io, 2 * EXCHANGES);
    server.end().unwrap();
    (long as f64 - short as f64) / EXCHANGES as f64
}

/// io_uring is left out where it is forbidden; the tests of the back ends report that.
fn back_ends() -> impl Iterator<Item = IoBackend> {
    let choices = [IoChoice::Epoll, IoChoice::Uring].into_iter();
    choices.filter_map(|choice| Some(io_backend::choose(choice, &[], 1).ok()?.0))
}

/// What an exchange may cost: HTTP version, TLS, keep-alive, allocations. Lower a figure when it
/// falls.
#[rustfmt::skip] // a table is read by its rows
const ALLOWED: &[(Protocol, bool, bool, f64)] = &[
    (Protocol::Http11, false, true,   0.0),
    (Protocol::Http2,  false, true,   0.0),
    // rustls: one for the record that is sent, one for the record that is received
    (Protocol::Http11, true,  true,   2.0),
    (Protocol::Http2,  true,  true,   2.0),
    // a connection
    (Protocol::Http11, false, false,  8.0),
    (Protocol::Http2,  false, false, 19.0),
    // a handshake, most of it in rustls
    (Protocol::Http11, true,  false, 99.0),
];

#[test]
fn no_exchange_allocates_more_than_is_allowed() {
    // on Windows mio allocates for each socket that it watches
    let is_counted = |keepalive: bool| keepalive || !cfg!(windows);
    let table = ALLOWED.iter().filter(|row| is_counted(row.2));
    for &(http, tls, keepalive, allowed) in table {
        let trial = Trial {
            http,
            tls,
            keepalive,
        };
        for io in back_ends() {
            let found = per_exchange(trial, io);
            // histograms grow now and then; an allocation in each exchange would be 1 more
            assert!(
                found < allowed + 0.1,
                "{trial:?} on {io:?}: {found:.3} allocations per exchange, {allowed} are allowed"
            );
            // the counter counts
            assert!(found > allowed / 2.0 - 0.1, "{trial:?}: {found:.3}");
        }
    }
}
