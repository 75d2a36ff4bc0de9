//! What a check found out about a server: figures of the profile, sentences, advice with numbers
//! and the names of client options.
//!
//! From the profile and the events that the probes caused, the same for a live check and for a
//! stored one. Must not guess: where a wait reached its limit the figure is a lower bound, and
//! where a probe did not run there is none.

mod clients;
mod connection;
mod drain;
mod fresh_vs_reused;
mod idle;
mod kept_connections;
mod limits;
mod outage;
mod security;
mod state;
mod subjects;
mod versions;

pub use clients::Setting;
pub(crate) use clients::below;
pub use drain::{DrainFacts, DrainRequests, DrainVersion, DrainedProcess, ProcessEnd};
pub use fresh_vs_reused::{FreshVsReused, MedianRequests, PHASES, SmallSample};
pub use kept_connections::KeptConnections;
pub use limits::{
    CloseFacts, HeldFacts, IdleTimeout, MaxAgeFacts, MaxRequests, RaceAttempt, RaceFacts,
};
pub use outage::OutageFacts;
pub use versions::{
    Address, Http2Facts, Http3ConnectionFacts, Http3Facts, Http3Idle, MethodFacts, NamesFacts,
    Resumption, Target, TlsFacts, VersionFacts,
};

use intact_advice::Server;
use intact_document::Claims;
use intact_document::error_responses::{ErrorResponses, ONLY_ERRORS};
use intact_document::figures::{Requests, TrafficCounts, add_counts, by_id, share};
use intact_document::finding::{Finding, Severity};
use intact_document::statement::Statement;
use intact_document::traffic_readings::{CountedTraffic, TrafficReadings};
use intact_document::unobserved::Unobserved;
use intact_ledger::server_profile::{ErrorClose, OldTls, ServerProfile, Skipped, State};
use intact_ledger::{Caveat, EndedBy, Failure, Row, Sink, Tally};
use intact_reading::{Reading, Why};
use outage::WithoutOutages;
use serde::Serialize;

/// The probe of the end of the server's process, which runs without the others.
const DRAIN: &str = "drain";
/// The probe that measures the idle limit while other connections idle.
const NEXT_TO_OTHERS: &str = "idle limit next to others";
/// The probe whose connections carry several requests each.
const WATERFALL_PROBE: &str = "fresh against reused";
/// The probe that every check has.
const FIRST: &str = "first request";

/// Why there is no limit where connections ended with error responses.
const ERROR_CLOSES: &str = "the server closes with error responses";
/// Why nothing is concluded from a figure that an outage cut short.
const OUTAGE: Why = Why::cannot_see("the server accepted no connections for a time");
/// Why connections of a check are not called avoidable.
const PROBES: Why = Why::cannot_see("probes open connections to measure them");
/// Why a check whose server stopped has no success.
const STOPPED: &str = "the server stopped accepting connections";

/// The findings that a check can have, and the probe that each rests on.
pub const RULES: &[(&str, &str)] = &[
    ("announced-not-kept", "idle limits"),
    ("bytes-after-response", "versions"),
    ("certificate-chain-large", "TLS"),
    ("closed-after-method", "methods"),
    ("connection-affinity", "fresh against reused"),
    ("connection-not-kept", "versions"),
    ("drain-not-announced", DRAIN),
    ("drain-not-ended", DRAIN),
    ("drain-not-handled", DRAIN),
    ("drain-refuses-at-once", DRAIN),
    ("early-data-accepted", "TLS"),
    ("first-request-costs-more", "fresh against reused"),
    ("http2-connection-fields", "versions"),
    ("http2-headers-and-data-apart", "fresh against reused"),
    ("idle-connection-blocks", "idle limits"),
    ("idle-timeout-below-balancer", "idle limits"),
    ("idle-timeout-race", "idle limits"),
    ("idle-timeout-shrinks", NEXT_TO_OTHERS),
    ("lost-in-drain", DRAIN),
    ("max-requests-low", "requests per connection"),
    ("no-response-after-idle", "idle limits"),
    ("not-2xx", FIRST),
    ("old-tls-accepted", "versions"),
    ("redirect", FIRST),
    ("reuse-saves-little", "fresh against reused"),
    ("shorter-before-first-request", "idle limits"),
    ("slower-when-reused", "fresh against reused"),
    ("state-carried-over", "fresh against reused"),
    ("stopped-accepting", FIRST),
    ("tls-never-resumed", "TLS"),
    ("unreachable", FIRST),
];

/// The ids of the rules whose probes run in a campaign: those that end a server or hold many
/// connections open do not.
pub fn rule_ids_of_campaigns() -> Vec<&'static str> {
    let run = |(_, probe): &&(&str, &str)| !matches!(*probe, DRAIN | NEXT_TO_OTHERS);
    RULES.iter().filter(run).map(|(id, _)| *id).collect()
}

/// The ids of the rules.
pub fn rule_ids() -> Vec<&'static str> {
    RULES.iter().map(|(id, _)| *id).collect()
}

/// Everything that a report of a check lays out.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct CheckFacts {
    /// A summary in a few sentences, the most important one first.
    pub verdict: Claims,
    /// The first request; absent when the check was stopped before it.
    pub target: Option<Target>,
    /// What the name leads to; absent for an address.
    pub names: Option<NamesFacts>,
    /// HTTP versions by TLS versions.
    pub versions: Vec<VersionFacts>,
    /// TLS versions that were looked at closely.
    pub tls: Vec<TlsFacts>,
    /// TLS versions before 1.2, offered and not spoken.
    pub tls_older: Vec<OldTls>,
    /// Resumption and early data by TLS version.
    pub resumption: Vec<Resumption>,
    /// A request on a new connection against the next ones on the same.
    pub phases_ms: FreshVsReused,
    /// How many connections were kept for a second request; absent if none responded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept_connections: Option<KeptConnections>,
    /// The first error response after which the server closed: such ends are no limits. Absent
    /// where there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_close: Option<ErrorClose>,
    /// How long an idle connection is kept.
    pub idle_timeout: Option<IdleTimeout>,
    /// How many requests a connection takes.
    pub max_requests: Option<MaxRequests>,
    /// Requests sent around the idle limit.
    pub race: Option<RaceFacts>,
    /// The idle limit while other connections idle too.
    pub idle_under_load: Option<HeldFacts>,
    /// How old a connection gets that is used now and then.
    pub max_age: Option<MaxAgeFacts>,
    /// Times in which the server refused connections, after it had responded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outages: Vec<OutageFacts>,
    /// The end of the server's process under kept connections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drain: Option<DrainFacts>,
    /// Whether connections survive other methods and statuses.
    pub methods: Vec<MethodFacts>,
    /// What HTTP/2 showed.
    pub http2: Option<Http2Facts>,
    /// HTTP/3, where the server announces it by `Alt-Svc`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http3: Option<Http3Facts>,
    /// What ties clients to a connection or a server.
    pub state: Option<State>,
    /// Client options for the idle limit that was found, ready to be copied.
    pub settings: Vec<Setting>,
    /// Requests and connections of all probes.
    #[serde(flatten)]
    pub traffic: TrafficReadings,
    /// What was counted of them.
    #[serde(skip)]
    pub counted: TrafficCounts,
    /// Probes that did not run, and why.
    pub skipped: Vec<Skipped>,
    /// What stands out, the worst first.
    pub findings: Vec<Finding>,
    /// What limits the figures.
    pub caveats: Vec<Caveat>,
    /// Responses with an error status that the user did not name; those to other methods and paths
    /// are left out.
    #[serde(skip)]
    pub errors: ErrorResponses,
}

impl CheckFacts {
    /// Works the facts out, from all that the probes caused.
    pub fn new(profile: &ServerProfile, rows: &[Row]) -> CheckFacts {
        let mut tally = Tally::new();
        for row in rows {
            tally.record(row.as_event());
        }
        CheckFacts::of(profile, &tally, rows)
    }

    /// Works the facts out where counts were kept apart: of the rows only those of the waterfall
    /// are needed then.
    pub fn of(profile: &ServerProfile, tally: &Tally, waterfall: &[Row]) -> CheckFacts {
        let mut without = WithoutOutages::of(profile);
        let kept = KeptConnections::of(profile, waterfall);
        let error_close = kept_connections::without_other_ends(&mut without.profile, kept);
        let profile = &without.profile;
        let mut facts = CheckFacts {
            target: profile.contact.as_ref().map(Target::of),
            names: profile.names.as_ref().map(NamesFacts::of),
            versions: profile.versions.iter().map(VersionFacts::of).collect(),
            tls: profile.tls.iter().map(TlsFacts::of).collect(),
            tls_older: profile.old_tls.clone(),
            resumption: profile.tls.iter().filter_map(Resumption::of).collect(),
            phases_ms: FreshVsReused::of(waterfall),
            kept_connections: kept,
            error_close,
            idle_timeout: profile.idle.as_ref().map(|idle| {
                let unseen = without_end(error_close);
                IdleTimeout::of(idle, profile.race.as_ref(), without.idle, unseen)
            }),
            max_requests: profile
                .requests
                .as_ref()
                .map(|tried| MaxRequests::of(tried, without.requests, profile.idle.as_ref())),
            race: profile.race.as_ref().map(RaceFacts::of),
            idle_under_load: profile.idle_under_load.as_ref().map(HeldFacts::of),
            max_age: profile.age.as_ref().map(MaxAgeFacts::of),
            outages: profile.outages.iter().map(OutageFacts::of).collect(),
            drain: profile.drain.as_ref().map(DrainFacts::of),
            methods: profile.methods.iter().map(MethodFacts::of).collect(),
            http2: profile.h2.as_ref().map(Http2Facts::of),
            http3: profile.h3.as_ref().map(Http3Facts::of),
            state: profile.state.clone(),
            counted: counts(tally),
            skipped: profile.skipped.clone(),
            caveats: tally.caveats.clone(),
            ..CheckFacts::default()
        };
        facts.read();
        facts.errors = errors(profile, &facts.counted.requests);
        facts.settings = facts
            .safe_idle_s()
            // the clients in the list use no HTTP/3
            .filter(|_| !facts.idles_over_http3())
            .map(clients::settings)
            .unwrap_or_default();
        facts.verdict = connection::claims(&facts);
        facts.findings = findings(&facts);
        facts
    }

    /// Adds what limits the figures.
    pub fn add_caveats(&mut self, caveats: impl IntoIterator<Item = Caveat>) {
        self.caveats.extend(caveats);
        self.read();
    }

    /// Makes the readings of what was counted.
    fn read(&mut self) {
        let counts = &self.counted;
        let traffic = TrafficReadings::of(CountedTraffic {
            counts,
            unobserved: &Unobserved::by_caveats(&self.caveats),
            avoidable: 0,
            reuse_known: counts.requests.total,
            lookups_in_vain: 0,
            has_dials: true,
        });
        self.traffic = TrafficReadings {
            avoidable: Reading::unknown(PROBES),
            ..traffic
        };
    }

    /// Whether the server was measured: the first request had a response, not every response was an
    /// error, and the server accepted connections to the end.
    pub fn any_success(&self) -> bool {
        self.no_success().is_none()
    }

    /// Why there is no success.
    fn no_success(&self) -> Option<&'static str> {
        match &self.target {
            None => Some("the first request was not sent"),
            Some(target) if target.failure.is_some() => Some("the first request failed"),
            Some(_) if self.has_stopped() => Some(STOPPED),
            Some(_) => self.errors.is_all().then_some(ONLY_ERRORS),
        }
    }

    /// Whether the server accepted no connections any more.
    pub fn has_stopped(&self) -> bool {
        let last = self.outages.last();
        last.is_some_and(|outage| outage.lasted_ms.is_none())
    }

    /// The server, where it names a product that is known.
    fn server(&self) -> Option<&'static Server> {
        Server::recognise(self.target.as_ref()?.server.as_deref())
    }

    /// Whether the idle timeout is that of HTTP/3.
    pub fn idles_over_http3(&self) -> bool {
        let idle = self.idle_timeout.as_ref();
        idle.is_some_and(IdleTimeout::is_http3)
    }

    /// Whether a connection carried a second request, in the version whose limits are measured;
    /// in any from HTTP/1.1 on where that version is not known. Absent when no request was
    /// answered.
    pub fn keeps(&self) -> Option<bool> {
        if let Some(counted) = self.kept_connections {
            return Some(counted.kept > 0);
        }
        self.versions
            .iter()
            .filter(|version| version.http != "1.0")
            .filter_map(|version| version.reused)
            .reduce(|one, other| one || other)
    }

    /// The version that keeps no connections, and the one that does, where the server speaks both.
    pub fn kept_by_version(&self) -> Option<(&'static str, &'static str)> {
        let first_that = |reused| {
            let mut new = self.versions.iter().filter(|one| one.http != "1.0");
            new.find(|one| one.reused == Some(reused))
                .map(|one| one.http)
        };
        let both = first_that(false).zip(first_that(true))?;
        (self.keeps() == Some(false)).then_some(both)
    }

    /// The idle time that a client can count on, in seconds. It is the shortest of three: the
    /// earliest possible end, the announced time, and the idle time before a request that was
    /// lost on a connection that still stood. Without an end, where a request was lost, it is the
    /// idle time before one that was not.
    pub fn safe_idle_s(&self) -> Option<f64> {
        let idle = self.idle_timeout.as_ref()?;
        let earliest = match idle.silent_s() {
            Some(_) => idle.confirmed_s(),
            None => idle.earliest_s(),
        };
        let earliest = earliest.filter(|_| self.keeps() != Some(false))?;
        // less than a second is announced as 0
        let announced = idle.announced_s.filter(|&announced| announced > 0);
        let announced = announced.map(f64::from);
        let lost = self
            .race
            .iter()
            .flat_map(|race| &race.attempts)
            .filter(|attempt| attempt.is_lost())
            .map(|attempt| attempt.idle_s);
        Some(announced.into_iter().chain(lost).fold(earliest, f64::min))
    }
}

/// Why no limit is known where no end of a connection was seen.
fn without_end(error_close: Option<ErrorClose>) -> Why {
    error_close.map_or(Why::NothingHappened, |_| Why::cannot_see(ERROR_CLOSES))
}

/// The counts of all probes.
fn counts(tally: &Tally) -> TrafficCounts {
    let mut all = TrafficCounts::default();
    let (requests, connections) = (&mut all.requests, &mut all.connections);
    for cell in &tally.cells {
        for group in &cell.groups {
            all.reused += requests.add_group(group);
        }
        add_counts(&mut requests.status, &cell.status);
        let counts = &cell.connections;
        connections.opened += counts.opened;
        add_counts(&mut connections.failed, &by_id(&counts.failed, Failure::id));
        add_counts(
            &mut connections.ended_by,
            &by_id(&counts.ended_by, EndedBy::id),
        );
    }
    // probes send one request at a time, so that one connection would do
    connections.needed = u64::from(requests.total > 0);
    all.reuse = share(all.reused, requests.total);
    all
}

/// The errors among the responses to the URL. The probe of methods asks for other responses on
/// purpose.
fn errors(profile: &ServerProfile, requests: &Requests) -> ErrorResponses {
    let mut status = requests.status.clone();
    for tried in profile.methods.iter().filter(|one| one.outcome.is_ok()) {
        if let Some(count) = tried.status.and_then(|one| status.get_mut(&one)) {
            *count = count.saturating_sub(1);
        }
    }
    let expected = profile.contact.as_ref().and_then(|contact| contact.expect);
    ErrorResponses::among(&status, expected)
}

fn findings(facts: &CheckFacts) -> Vec<Finding> {
    let mut found = connection::findings(facts);
    found.extend(outage::findings(facts));
    found.extend(idle::findings(facts));
    found.extend(drain::findings(facts));
    found.extend(fresh_vs_reused::findings(facts));
    found.extend(security::findings(facts));
    found.extend(state::findings(facts));
    found.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    found
}

/// A finding about the server as a whole, to be completed.
fn finding(
    facts: &CheckFacts,
    rule: &'static str,
    severity: Severity,
    claim: impl Into<Statement>,
) -> Finding {
    debug_assert!(
        RULES.iter().any(|(id, _)| *id == rule),
        "{rule} is missing in RULES"
    );
    let target = facts.target.as_ref();
    let subject = target.map_or_else(String::new, |target| target.url.clone());
    Finding::new(rule, severity, subject, claim)
}

/// The first response of a server, for tests.
#[cfg(test)]
fn responded() -> intact_ledger::server_profile::FirstRequest {
    intact_ledger::server_profile::FirstRequest {
        url: "http://localhost/".to_owned(),
        outcome: intact_ledger::Outcome::Ok,
        detail: None,
        status: Some(200),
        server: None,
        body: 2,
        by_head: false,
        followed: Vec::new(),
        redirect: None,
        other_scheme: None,
        expect: None,
    }
}
