//! Checks every server of `fixtures/hostile/` and `fixtures/dead-connections/`, with idle timeouts.
//! The check ends within its budget. Each request and each connection has the outcome that the file
//! states.

use intact_check::{Check, CheckProgress, Config, ProbeKind, ServerProfile};
use intact_client::Clock;
use intact_client::tls::Verify;
use intact_ledger::{
    Connection, ConnectionId, Event, Exchange, Method, Outcome, Protocol, SetupPhase,
};
use intact_serve::Totals;
use intact_test_servers::{Expect, Hostile, TestServer, in_parallel};
use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::time::{Duration, Instant};

/// The timeout of a request.
const TIMEOUT: Duration = Duration::from_secs(1);
/// The longest wait on an idle connection.
const IDLE_LIMIT: Duration = Duration::from_secs(1);
/// A limit that no check reaches unless it hangs.
const HANG: Duration = Duration::from_secs(60);

/// The connections and exchanges that a check reported.
#[derive(Default)]
pub(crate) struct Observed {
    pub(crate) connections: Vec<Connection>,
    pub(crate) exchanges: Vec<Exchange>,
}

impl CheckProgress for Observed {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Opened(connection) => self.connections.push(connection.clone()),
            Event::Exchange(exchange) => self.exchanges.push(exchange.clone()),
            _ => {}
        }
    }
    fn stage(&mut self, _: ProbeKind, _: &ServerProfile) {}
    fn waiting(&mut self, _: Duration) {}
    fn stopped(&self) -> bool {
        false
    }
}

/// One check of one file.
struct Trial<'a> {
    hostile: &'a Hostile,
    protocol: Protocol,
    secure: bool,
}

impl Trial<'_> {
    /// Runs it. Returns the differences from the expectation.
    fn run(&self) -> Vec<String> {
        let server = TestServer::start(self.hostile.config.clone()).unwrap();
        let check = Check::new(self.config(&server)).unwrap();
        let mut observed = Observed::default();
        let begun = Instant::now();
        let profile = check.run(Clock::start(), None, &mut observed).unwrap();
        let took = begun.elapsed();
        let totals = server.end().unwrap();
        let mut wrong = self.outcomes(&observed);
        wrong.extend(self.counts(&observed, &profile, &totals));
        if profile.requests_sent > check.budget().requests() {
            wrong.insert(format!("{} requests", profile.requests_sent));
        }
        if took > HANG {
            wrong.insert(format!("it took {took:?}"));
        }
        let name = &self.hostile.name;
        let over = if self.secure { " and TLS" } else { "" };
        wrong
            .into_iter()
            .map(|wrong| format!("{name} over HTTP/{}{over}: {wrong}", self.protocol.as_str()))
            .collect()
    }

    fn config(&self, server: &TestServer) -> Config {
        let addresses = server.addresses();
        let url = if self.secure {
            format!("https://localhost:{}/", addresses.tls.unwrap().port())
        } else {
            format!("http://{}/", addresses.plain.unwrap())
        };
        let mut config = Config::new(&url).unwrap();
        config.timeout = TIMEOUT;
        config.idle_limit = IDLE_LIMIT;
        config.http = Some(self.protocol);
        let (_, tls) = self.hostile.config.tls.as_ref().unwrap();
        let roots = tls.authority.ca_pem().unwrap();
        config.credentials.verify = Verify::Roots(roots.as_bytes().into());
        config
    }

    /// The outcomes that differ from those in the file.
    fn outcomes(&self, observed: &Observed) -> BTreeSet<String> {
        let mut wrong = BTreeSet::new();
        let mut asked: HashMap<ConnectionId, Protocol> = HashMap::new();
        for connection in self.asked(observed) {
            let protocol = connection.protocol.unwrap_or(self.protocol);
            asked.insert(connection.id, protocol);
            let failed = connection.failed.as_ref().map(|failed| failed.kind);
            if let Some(kind) = failed
                && !self.expected(protocol).contains(&Outcome::Failed(kind))
            {
                wrong.insert(format!("a connection ended in {}", kind.id()));
            }
        }
        for exchange in &observed.exchanges {
            let Some(&protocol) = exchange.connection.and_then(|id| asked.get(&id)) else {
                continue;
            };
            // a response to HEAD has no body that could be damaged
            let bodiless = exchange.method == Some(Method::HEAD) && exchange.outcome.is_ok();
            if !bodiless && !self.expected(protocol).contains(&exchange.outcome) {
                let id = exchange.outcome.failure().map_or("ok", |kind| kind.id());
                wrong.insert(format!("HTTP/{} ended in {id}", protocol.as_str()));
            }
        }
        wrong
    }

    /// The connections in the protocol of the URL. The files do not describe two other kinds:
    /// hellos of old TLS versions, and the test whether a silent port expects TLS instead of
    /// plain HTTP, or the reverse.
    fn asked<'a>(&self, observed: &'a Observed) -> impl Iterator<Item = &'a Connection> {
        let secure = self.secure;
        observed.connections.iter().filter(move |connection| {
            let failed = connection.failed.as_ref().map(|failed| failed.phase);
            let is_hello = failed.is_some() && connection.tls.is_some();
            let is_other = match failed {
                None => connection.tls.is_some() != secure,
                Some(SetupPhase::Ssl) => !secure,
                Some(_) => false,
            };
            !is_hello && !is_other
        })
    }

    fn expected(&self, protocol: Protocol) -> &[Outcome] {
        let Expect {
            http1,
            http2,
            tls_http1,
            tls_http2,
        } = &self.hostile.expect;
        match (protocol, self.secure) {
            (Protocol::Http2, false) => http2,
            (Protocol::Http2, true) => tls_http2,
            (_, false) => http1,
            (_, true) => tls_http1,
        }
    }

    /// The counts that differ between client and server.
    fn counts(&self, observed: &Observed, profile: &ServerProfile, totals: &Totals) -> Vec<String> {
        let mut wrong = Vec::new();
        if observed.exchanges.is_empty() && observed.connections.is_empty() {
            wrong.push("nothing was recorded".to_owned());
        }
        if profile.requests_sent as usize != observed.exchanges.len() {
            let (sent, recorded) = (profile.requests_sent, observed.exchanges.len());
            wrong.push(format!("{sent} requests were sent and {recorded} recorded"));
        }
        let looks = profile.old_tls.len() + usize::from(observed_of_other(profile));
        // nothing is sent twice: the server counts no request except those recorded, and the TLS
        // hello of a port test
        let (here, there) = (observed.exchanges.len() + looks, totals.requests.total);
        if there > here as u64 {
            wrong.push(format!("at most {here} requests here, {there} there"));
        }
        let others = observed.connections.len() - self.asked(observed).count();
        if others != looks {
            wrong.push(format!("{others} other connections, {looks} port tests"));
        }
        // the server may miss the end of a handshake that the client gave up, and the client a
        // connection that was reset immediately
        let spoken = |connection: &&Connection| connection.failed.is_none();
        let least = self.asked(observed).filter(spoken).count() as u64;
        let most = observed.connections.len() as u64;
        let there = totals.connections.opened;
        if !(least..=most).contains(&there) {
            wrong.push(format!("{least} to {most} connections here, {there} there"));
        }
        wrong
    }
}

/// Whether the check tested if the port expects TLS instead of plain HTTP, or the reverse.
fn observed_of_other(profile: &ServerProfile) -> bool {
    let contact = profile.contact.as_ref();
    contact.is_some_and(|contact| contact.other_scheme.is_some())
}

/// Checks every server of a folder, in both HTTP versions, plain and over TLS.
fn check_all(folder: &str, least: usize) {
    let fixtures = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures"));
    let all = Hostile::read_all(&fixtures.join(folder)).unwrap();
    assert!(all.len() >= least, "files are missing");
    let mut trials = Vec::new();
    for hostile in &all {
        for protocol in [Protocol::Http11, Protocol::Http2] {
            trials.extend([false, true].map(|secure| Trial {
                hostile,
                protocol,
                secure,
            }));
        }
    }
    let wrong = in_parallel(trials, |trial| {
        let wrong = trial.run();
        (!wrong.is_empty()).then(|| wrong.join("\n"))
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_hostile_server_gets_a_card_and_is_counted_by_kind() {
    check_all("hostile", 24);
}

#[test]
fn no_kind_of_dead_connection_hangs_a_check_or_makes_it_send_twice() {
    check_all("dead-connections", 10);
}
