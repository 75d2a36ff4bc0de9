//! Every server of `fixtures/hostile/` and `fixtures/dead-connections/` under a whole check, idle limits included: the check comes to
//! its end within its budget, and each request and each connection ends as the file says a careful client's do.

use intact_check::{Check, CheckProgress, Config, ProbeKind, ServerProfile};
use intact_client::Clock;
use intact_client::tls::Verify;
use intact_ledger::{
    Connection, ConnectionId, Event, Exchange, Method, Outcome, Protocol, SetupPhase,
};
use intact_serve::hostile::{Expect, Hostile, in_parallel};
use intact_serve::{TestServer, Totals};
use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a check waits for an answer.
const TIMEOUT: Duration = Duration::from_secs(1);
/// How long it watches idle connections.
const IDLE_LIMIT: Duration = Duration::from_secs(1);
/// No hang: far more than the waits of one check together.
const HANG: Duration = Duration::from_secs(60);

/// What was told of a check's connections and exchanges.
#[derive(Default)]
pub(crate) struct Told {
    pub(crate) connections: Vec<Connection>,
    pub(crate) exchanges: Vec<Exchange>,
}

impl CheckProgress for Told {
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
    /// Runs it; what is wrong, if anything.
    fn run(&self) -> Vec<String> {
        let server = TestServer::start(self.hostile.config.clone()).unwrap();
        let check = Check::new(self.config(&server)).unwrap();
        let mut told = Told::default();
        let begun = Instant::now();
        let card = check.run(Clock::start(), None, &mut told).unwrap();
        let took = begun.elapsed();
        let totals = server.end().unwrap();
        let mut wrong = self.outcomes(&told);
        wrong.extend(self.counts(&told, &card, &totals));
        if card.requests_sent > check.budget().requests() {
            wrong.insert(format!("{} requests", card.requests_sent));
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

    /// What ended otherwise than the file says.
    fn outcomes(&self, told: &Told) -> BTreeSet<String> {
        let mut wrong = BTreeSet::new();
        let mut asked: HashMap<ConnectionId, Protocol> = HashMap::new();
        for connection in self.asked(told) {
            let protocol = connection.protocol.unwrap_or(self.protocol);
            asked.insert(connection.id, protocol);
            let failed = connection.failed.as_ref().map(|failed| failed.kind);
            if let Some(kind) = failed
                && !self.expected(protocol).contains(&Outcome::Failed(kind))
            {
                wrong.insert(format!("a connection ended in {}", kind.id()));
            }
        }
        for exchange in &told.exchanges {
            let Some(&protocol) = exchange.connection.and_then(|id| asked.get(&id)) else {
                continue;
            };
            // an answer to HEAD has no body that could be spoiled
            let bodiless = exchange.method == Some(Method::HEAD) && exchange.outcome.is_ok();
            if !bodiless && !self.expected(protocol).contains(&exchange.outcome) {
                let id = exchange.outcome.failure().map_or("ok", |kind| kind.id());
                wrong.insert(format!("HTTP/{} ended in {id}", protocol.as_str()));
            }
        }
        wrong
    }

    /// The connections that speak what the URL asks for. Two kinds do not, and the files say nothing of them: hellos of old TLS
    /// versions, and the look whether a port that gave no answer speaks the other of TLS and plain HTTP.
    fn asked<'a>(&self, told: &'a Told) -> impl Iterator<Item = &'a Connection> {
        let secure = self.secure;
        told.connections.iter().filter(move |connection| {
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

    /// Counts on which the two sides differ.
    fn counts(&self, told: &Told, card: &ServerProfile, totals: &Totals) -> Vec<String> {
        let mut wrong = Vec::new();
        if told.exchanges.is_empty() && told.connections.is_empty() {
            wrong.push("nothing was told of any connection".to_owned());
        }
        if card.requests_sent as usize != told.exchanges.len() {
            let (sent, told) = (card.requests_sent, told.exchanges.len());
            wrong.push(format!("{sent} requests were sent and {told} told"));
        }
        let looks = card.old_tls.len() + usize::from(told_of_other(card));
        // nothing is sent twice: the server counts no request but those that were told, and the TLS hello of a look
        let (here, there) = (told.exchanges.len() + looks, totals.requests.total);
        if there > here as u64 {
            wrong.push(format!("at most {here} requests here, {there} there"));
        }
        let beside = told.connections.len() - self.asked(told).count();
        if beside != looks {
            wrong.push(format!(
                "{beside} connections beside the question, {looks} looks"
            ));
        }
        // the server may not have heard of the end of a handshake that we gave up, nor we of a connection that it reset at once
        let spoken = |connection: &&Connection| connection.failed.is_none();
        let least = self.asked(told).filter(spoken).count() as u64;
        let most = told.connections.len() as u64;
        let there = totals.connections.opened;
        if !(least..=most).contains(&there) {
            wrong.push(format!("{least} to {most} connections here, {there} there"));
        }
        wrong
    }
}

/// Whether the check looked if the port speaks the other of TLS and plain HTTP.
fn told_of_other(card: &ServerProfile) -> bool {
    let contact = card.contact.as_ref();
    contact.is_some_and(|contact| contact.other_scheme.is_some())
}

/// Checks every server of a folder, in both versions, plain and over TLS.
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
