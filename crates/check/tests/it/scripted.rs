//! Checks every script of `fixtures/hostile/scripts/`. The check ends within its budget and in
//! time, and each response has the outcome that the file states.

use crate::hostile::Observed;
use intact_check::{Check, CheckProgress, Config, ProbeKind, ServerProfile};
use intact_client::tls::Verify;
use intact_client::{Clock, Family};
use intact_ledger::{Event, Failure, Method, Outcome, Protocol};
use intact_serve::{CertificateAuthority, TlsConfig};
use intact_test_servers::{Script, ScriptedServer, in_parallel};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The timeout of a request.
const TIMEOUT: Duration = Duration::from_secs(1);
/// A limit that no check reaches unless it hangs, also on a busy machine.
const HANG: Duration = Duration::from_secs(60);

/// A peer, and the CA of its TLS.
struct Trial {
    script: Script,
    tls: Option<TlsConfig>,
}

fn trials() -> Vec<Trial> {
    let folder = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../fixtures/hostile/scripts"
    );
    let scripts = Script::read_all(Path::new(folder)).unwrap();
    assert!(scripts.len() >= 100, "files are missing");
    let authority = Arc::new(CertificateAuthority::make(&[]).unwrap());
    scripts
        .into_iter()
        .map(|script| Trial {
            tls: script.needs_tls.then(|| script.tls_config(&authority)),
            script,
        })
        .collect()
}

impl Trial {
    fn start(&self) -> (ScriptedServer, Config) {
        let server = ScriptedServer::start(&self.script, self.tls.as_ref()).unwrap();
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let url = format!("{scheme}://localhost:{}/", server.address().port());
        let mut config = Config::new(&url).unwrap();
        config.route.family = Family::V4;
        config.timeout = TIMEOUT;
        config.idle = false;
        config.http = self.script.is_http2.then_some(Protocol::Http2);
        if let Some(tls) = &self.tls {
            let roots = tls.authority.ca_pem().unwrap();
            config.credentials.verify = Verify::Roots(roots.as_bytes().into());
        }
        (server, config)
    }

    /// Runs a check. Returns the differences from the expectation.
    fn run(&self) -> Option<String> {
        let (_server, config) = self.start();
        let check = Check::new(config).unwrap();
        let mut observed = Observed::default();
        let begun = Instant::now();
        let profile = check.run(Clock::start(), None, &mut observed).unwrap();
        let took = begun.elapsed();
        let mut wrong = self.outcomes(&observed);
        if profile.requests_sent > check.budget().requests() {
            wrong.insert(format!("{} requests", profile.requests_sent));
        }
        if observed.exchanges.is_empty() && observed.connections.is_empty() {
            wrong.insert("nothing was recorded".to_owned());
        }
        if took > HANG {
            wrong.insert(format!("it took {took:?}"));
        }
        let name = &self.script.name;
        (!wrong.is_empty()).then(|| format!("{name}: {wrong:?}, expected {:?}", self.script.expect))
    }

    /// The outcomes that differ from those in the file, for requests in the HTTP version of the
    /// peer.
    fn outcomes(&self, observed: &Observed) -> BTreeSet<String> {
        let mut wrong = BTreeSet::new();
        for exchange in &observed.exchanges {
            let connection = observed
                .connections
                .iter()
                .find(|connection| Some(connection.id) == exchange.connection);
            let is_asked = connection.is_some_and(|connection| {
                let is_http2 = connection.protocol == Some(Protocol::Http2);
                is_http2 == self.script.is_http2 && connection.tls.is_some() == self.tls.is_some()
            });
            // a response to HEAD has no body that could be damaged
            let bodiless = exchange.method == Some(Method::HEAD) && exchange.outcome.is_ok();
            // the time limit of the check may end before that of the response
            let cut = exchange.outcome == Outcome::Failed(Failure::Aborted);
            if is_asked && !bodiless && !cut && !self.script.expect.contains(&exchange.outcome) {
                let id = exchange.outcome.failure().map_or("ok", |kind| kind.id());
                wrong.insert(format!("{id} {:?}", exchange.detail));
            }
        }
        wrong
    }

    /// Runs a check that is stopped immediately. Returns what is wrong.
    fn stop(&self) -> Option<String> {
        let (_server, mut config) = self.start();
        config.timeout = Duration::from_secs(3600);
        config.max_time = Duration::from_secs(3600);
        let check = Check::new(config).unwrap();
        let mut stopping = Stopping(Instant::now());
        check.run(Clock::start(), None, &mut stopping).unwrap();
        let took = stopping.0.elapsed();
        (took > HANG / 2).then(|| format!("{}: it took {took:?} to stop", self.script.name))
    }
}

/// Stops the check after a delay.
struct Stopping(Instant);

impl CheckProgress for Stopping {
    fn event(&mut self, _: Event<'_>) {}
    fn stage(&mut self, _: ProbeKind, _: &ServerProfile) {}
    fn waiting(&mut self, _: Duration) {}
    fn stopped(&self) -> bool {
        self.0.elapsed() > Duration::from_millis(300)
    }
}

#[test]
fn every_script_is_survived_in_time_and_fails_by_kind() {
    let wrong = in_parallel(trials(), Trial::run);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_first_interrupt_ends_a_check_whatever_the_peer_does() {
    let timeout = Outcome::Failed(Failure::Timeout);
    let trials: Vec<Trial> = trials()
        .into_iter()
        .filter(|trial| trial.script.expect.contains(&timeout))
        .collect();
    assert!(trials.len() >= 15);
    let wrong = in_parallel(trials, Trial::stop);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
