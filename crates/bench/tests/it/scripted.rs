//! Every script of `fixtures/hostile/scripts/` against the engine, plain and over TLS: each request
//! ends as the file says, in time and within bounded memory, and Ctrl-C ends the run whatever the
//! peer does.

use crate::hostile::outcomes;
use crate::rig::{Everything, Record, config, run};
use intact_bench::{Bench, BenchObserver, Config, Gauge, Length, Position};
use intact_client::Clock;
use intact_client::tls::Verify;
use intact_experiment::TlsChoice;
use intact_ledger::{Outcome, Protocol, Row, Tally};
use intact_serve::{CertificateAuthority, TlsConfig};
use intact_test_servers::{Script, ScriptedServer, in_parallel};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How long the engine waits for a response.
const TIMEOUT: Duration = Duration::from_secs(3);
/// No hang: three first requests time out, and the machine may be busy.
const HANG: Duration = Duration::from_secs(30);
/// The most memory that the process may have taken after all peers, in kilobytes.
#[cfg(target_os = "linux")]
const MOST_MEMORY: u64 = 512 * 1024;

/// A peer, and whether it is reached over TLS.
struct Trial {
    script: Script,
    tls: Option<TlsConfig>,
}

impl Trial {
    fn all() -> Vec<Trial> {
        let folder = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../fixtures/hostile/scripts"
        );
        let scripts = Script::read_all(Path::new(folder)).unwrap();
        assert!(scripts.len() >= 100, "files are missing");
        let authority = Arc::new(CertificateAuthority::make(&[]).unwrap());
        let mut all = Vec::new();
        for script in scripts {
            all.push(Trial {
                tls: Some(script.tls_config(&authority)),
                script: script.clone(),
            });
            if !script.needs_tls {
                all.push(Trial { script, tls: None });
            }
        }
        all
    }

    fn name(&self) -> String {
        let over = if self.tls.is_some() { " and TLS" } else { "" };
        format!("{}{over}", self.script.name)
    }

    fn start(&self) -> (ScriptedServer, Config) {
        let server = ScriptedServer::start(&self.script, self.tls.as_ref()).unwrap();
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let url = format!("{scheme}://localhost:{}/", server.address().port());
        let mut config = config(&url);
        config.route.family = intact_client::Family::V4;
        config.timeout = TIMEOUT;
        config.length = Length::Exchanges(4);
        if self.script.is_http2 {
            config.axes.http = vec![Protocol::Http2];
        }
        if let Some(tls) = &self.tls {
            config.axes.tls = vec![TlsChoice::Any];
            let roots = tls.authority.ca_pem().unwrap();
            config.credentials.verify = Verify::Roots(roots.as_bytes().into());
        }
        (server, config)
    }

    /// Runs a bench; what is wrong, if anything.
    fn run(&self) -> Option<String> {
        let (_server, config) = self.start();
        let begun = Instant::now();
        let record = run(config);
        let took = begun.elapsed();
        let found = outcomes(&record);
        let expected = &self.script.expect;
        let expects = |id: &String| {
            let ids = expected
                .iter()
                .map(|one| one.failure().map_or("ok", |kind| kind.id()));
            ids.into_iter().any(|expected| expected == id)
        };
        let fits = !found.is_empty() && found.iter().all(expects);
        (!fits || took > HANG).then(|| {
            format!(
                "{}: {found:?} in {took:?}, expected {expected:?}; {}",
                self.name(),
                details(&record)
            )
        })
    }

    /// Runs a bench that is stopped at once; what is wrong, if anything.
    fn stop(&self) -> Option<String> {
        let (_server, mut config) = self.start();
        config.timeout = Duration::from_secs(3600);
        config.length = Length::Time(Duration::from_secs(3600));
        let bench = Bench::new(config).unwrap();
        let mut stopping = Stopping {
            gauge: bench.gauge(),
            begun: Instant::now(),
            rows: Everything::default(),
        };
        bench.run(Clock::start(), &mut stopping).unwrap();
        let took = stopping.begun.elapsed();
        (took > HANG).then(|| format!("{}: it took {took:?} to stop", self.name()))
    }
}

/// What the failures say of themselves.
fn details(record: &Record) -> String {
    let details = record.rows.iter().filter_map(|row| match row {
        Row::Exchange(exchange) => exchange.detail.clone(),
        _ => None,
    });
    format!("{:?}", details.collect::<std::collections::BTreeSet<_>>())
}

/// Presses Ctrl-C after a moment.
struct Stopping {
    gauge: Arc<Gauge>,
    begun: Instant,
    rows: Everything,
}

impl BenchObserver for Stopping {
    fn rows(&mut self, rows: &[Row]) {
        self.rows.rows(rows);
    }
    fn round_over(&mut self, _: &Tally) {}
    fn warn(&mut self, _: &str) {}
    fn tick(&mut self, _: Position) {
        if self.begun.elapsed() > Duration::from_millis(300) {
            self.gauge.stop.store(true, Ordering::Relaxed);
        }
    }
}

/// The most memory that this process has had, in kilobytes.
#[cfg(target_os = "linux")]
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn every_script_is_survived_in_time_and_fails_by_kind() {
    let wrong = in_parallel(Trial::all(), |trial| trial.run());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    #[cfg(target_os = "linux")]
    assert!(peak_memory() < MOST_MEMORY, "{} kB", peak_memory());
}

#[test]
fn the_first_interrupt_ends_a_run_whatever_the_peer_does() {
    let times_out = |trial: &Trial| {
        let timeout = Outcome::Failed(intact_ledger::Failure::Timeout);
        trial.script.expect.contains(&timeout)
    };
    let trials: Vec<Trial> = Trial::all().into_iter().filter(times_out).collect();
    assert!(trials.len() >= 20);
    let wrong = in_parallel(trials, |trial| trial.stop());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
