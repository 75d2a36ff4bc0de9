//! What a scenario found out: figures of each session and tag, the two modes of new and reused
//! connections, sentences. From a run's head and its tally; the same for a live run and for a
//! stored ledger. Must not compare sessions: they do different things.

mod figures;
mod subjects;
mod verdict;

pub use figures::{SessionFacts, TagFacts};
pub(crate) use subjects::tag_subject;

use crate::bench::{
    ErrorResponses, MachineFacts, Mode, SERVER_UNKNOWN, SHARED, explains, failure_kinds, modes,
    no_success, not_2xx,
};
use crate::traffic;
use figures::{MeasuredRequests, churn};
use intact_document::Claims;
use intact_document::figures::{Connections, Latency, Requests, TrafficCounts, share};
use intact_document::finding::{Finding, Severity};
use intact_document::population::{Population, buckets_ms};
use intact_document::statement::{Value, requests, statement};
use intact_document::traffic_readings::TrafficReadings;
use intact_document::unobserved::Unobserved;
use intact_ledger::{
    Caveat, Cell, ClientCounts, Exchange, OpenLoopTimes, Round, Run, Sockets, Tally,
};
use intact_reading::{Reading, Why};
use intact_statistics::two_modes;
use serde::Serialize;

/// The ids of the findings that a scenario can have.
pub const RULES: &[&str] = &["failed-requests", "not-2xx"];

/// The share of its processors from which the client is the limit.
const CLIENT_BUSY: f64 = 0.9;
/// The share of the latency from which the client's own lateness distorts it.
const LATE: f64 = 0.25;
/// The share of clients that wait for a place from which it is worth a caveat.
const QUEUED: f64 = 0.01;

/// Everything that a report of a scenario lays out. Times are in milliseconds where the name says
/// so.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ScenarioFacts {
    /// What the clients did, and the modes of the latency.
    pub verdict: Claims,
    /// All requests and connections.
    #[serde(flatten)]
    pub traffic: TrafficReadings,
    /// What was counted of them, whatever is missing.
    #[serde(skip)]
    pub counted: TrafficCounts,
    /// Requests for each connection opened.
    pub requests_per_connection: Reading,
    /// New connections a second.
    pub churn_per_s: Reading,
    /// Simulated clients; absent where their number is unknown.
    pub clients: Option<ClientCounts>,
    /// Clients that had a place at once, at the most; absent where none arrived by phases.
    pub clients_at_once: Option<u64>,
    /// From the first start to the last end, in seconds.
    pub seconds: Option<f64>,
    /// Complete requests a second.
    pub rate_per_s: Reading,
    /// Latency of complete requests, setup included; a percentile counts timeouts as longer than
    /// all others.
    pub latency_ms: Latency,
    /// The same without connection setup.
    pub latency_without_setup_ms: Latency,
    /// New and reused connections where both occur, else the two modes of the histogram if it has
    /// two.
    pub modes: Vec<Mode>,
    /// Whether the dip test rejects a single mode.
    pub is_bimodal: bool,
    /// The sessions, in the order of the definition.
    pub sessions: Vec<SessionFacts>,
    /// How late the client was, after a wait or for an arrival, in milliseconds.
    pub scheduling_error_ms: Latency,
    /// Its sum as a share of the sum of latencies.
    pub scheduling_error_share: Option<f64>,
    /// Clients that waited for a place, because as many as allowed were there.
    pub queued: u64,
    /// CPU of the engine's threads per request, in microseconds.
    pub cpu_us_per_request: Option<f64>,
    /// CPU time of the client's threads over the time measured on them.
    pub client_busy: Option<f64>,
    /// What all processes of this machine did with its processors; absent where that was not
    /// counted.
    pub machine: Option<MachineFacts>,
    /// CPU of the server per request, in microseconds.
    pub server_cpu_us_per_request: Option<f64>,
    /// What stands out.
    pub findings: Vec<Finding>,
    /// What limits the figures.
    pub caveats: Vec<Caveat>,
    /// The machine's sockets before and after.
    pub sockets: Vec<Sockets>,
    /// New and reused connections for pictures.
    #[serde(skip)]
    pub populations: Vec<Population>,
    /// Responses with an error status that the user did not name.
    #[serde(skip)]
    pub errors: ErrorResponses,
}

impl ScenarioFacts {
    /// Computes the facts. `first` holds the first exchanges, for the reason where nothing
    /// succeeded.
    pub fn new(run: &Run, tally: &Tally, first: &[Exchange]) -> ScenarioFacts {
        let cells: Vec<Cell> = (0..run.variants.len() as u32)
            .map(|index| {
                let mut all = Cell::new(Some(index), None);
                tally.of_variant(index).for_each(|cell| all.merge(cell));
                all
            })
            .collect();
        let mut whole = Cell::new(None, None);
        cells.iter().for_each(|cell| whole.merge(cell));
        let bounds = tally.cells.iter().find_map(|cell| cell.bounds.as_ref());
        let measured = MeasuredRequests::of_cell(&whole);
        let seconds = bounds.map(|round| round.span.nanos() as f64 / 1e9);
        let seconds = seconds.filter(|seconds| *seconds > 0.0);
        let times = open_loop_times(&whole);
        let latencies = whole
            .merged(|_| true)
            .map_or(0, |group| group.latency.sum());
        let mut caveats = tally.caveats.clone();
        if whole.clients.is_none() {
            caveats.push(Caveat::incomplete(
                "clients-unknown",
                "the run was cut off, so the number of clients is unknown, and with it how many connections were needed",
            ));
        }
        let missing = Unobserved::by_caveats(&caveats);
        let sessions = run.variants.iter().zip(&cells);
        let sessions: Vec<SessionFacts> = sessions
            .map(|(variant, cell)| SessionFacts::new(variant, cell, seconds, &missing))
            .collect();
        let counted = TrafficCounts {
            connections: connections(&whole),
            ..measured.counted.clone()
        };
        let errors = ErrorResponses::among(&counted.requests.status, run.expect);
        let (total, opened) = (counted.requests.total, counted.connections.opened);
        let rate = seconds.map(|seconds| counted.requests.ok as f64 / seconds);
        let cpu = |nanos: Option<u64>| {
            let nanos = nanos.filter(|_| total > 0)?;
            Some(nanos as f64 / total as f64 / 1e3)
        };
        let mut facts = ScenarioFacts {
            verdict: Claims::default(),
            clients: whole.clients,
            clients_at_once: bounds
                .and_then(|round| round.schedule)
                .map(|schedule| schedule.at_once.into()),
            rate_per_s: missing.statistic(Reading::of(rate, Why::NothingHappened)),
            requests_per_connection: missing.ratio(share(total, opened)),
            churn_per_s: churn(&counted, seconds, &missing),
            seconds,
            modes: modes(&whole),
            is_bimodal: is_bimodal(&whole),
            scheduling_error_ms: Latency::of(&times.scheduling_error).observed(&missing),
            scheduling_error_share: share(times.scheduling_error.sum(), latencies),
            queued: times.queued.count(),
            cpu_us_per_request: cpu(bounds.and_then(|round| round.client_cpu)),
            client_busy: bounds.and_then(client_busy),
            machine: bounds.and_then(machine),
            server_cpu_us_per_request: cpu(bounds.and_then(|round| round.server_cpu)),
            findings: findings(&sessions, run),
            caveats,
            sockets: tally.sockets.clone(),
            populations: Population::all(&[&whole]),
            traffic: figures::traffic(&counted, &missing),
            counted,
            latency_ms: measured.latency_ms.observed(&missing),
            latency_without_setup_ms: measured.latency_without_setup_ms.observed(&missing),
            sessions,
            errors,
        };
        facts.caveats.extend(facts.limits());
        facts.verdict = verdict::claims(&facts, tally, first);
        facts
    }

    /// Why nothing succeeded, if nothing did.
    fn no_success(&self) -> Option<&'static str> {
        no_success(&self.counted, &self.errors)
    }

    /// What limits the figures, beyond what the run itself recorded.
    fn limits(&self) -> Vec<Caveat> {
        let mut limits = Vec::new();
        let is_late = self.scheduling_error_share.is_some_and(|late| late > LATE);
        if self.client_busy.is_some_and(|busy| busy > CLIENT_BUSY) {
            limits.push(Caveat::new(
                "client-saturated",
                "the client used its processors to the full: it was the limit, not the server (--threads, or fewer clients)",
            ));
        } else if let Some(machine) = &self.machine {
            let is_delayed = is_late || explains(&self.scheduling_error_ms, &self.latency_ms);
            if machine.is_limit(is_delayed) {
                limits.push(Caveat::new(
                    "machine-saturated",
                    format!("this machine was the limit: {SHARED}, so the latency says little about the server"),
                ));
            // a busy machine slows responses, it does not keep all of them back
            } else if self.no_success().is_none()
                && let Some(busy) = machine.may_limit_server()
            {
                limits.push(Caveat::new(
                    "machine-busy",
                    format!("{busy}: {SERVER_UNKNOWN}"),
                ));
            }
        }
        if is_late {
            limits.push(Caveat::new(
                "client-late",
                "the client's own lateness is a large part of the latency: requests started after they were due (--threads, or fewer clients)",
            ));
        }
        let started = self.clients.map_or(0, |clients| clients.started);
        if share(self.queued, started).is_some_and(|share| share > QUEUED) {
            limits.push(Caveat::new(
                "clients-waited",
                "clients arrived while as many as -c allows were there; the wait is in the latency of their first request",
            ));
        }
        limits
    }
}

/// Each client needs a connection of its own.
fn connections(cell: &Cell) -> Connections {
    let clients = cell.clients.map(|clients| clients.started);
    let counts = &cell.connections;
    traffic::connections(counts, clients.unwrap_or(counts.opened))
}

fn open_loop_times(cell: &Cell) -> OpenLoopTimes {
    let mut all = OpenLoopTimes::default();
    let times = cell
        .groups
        .iter()
        .filter_map(|group| group.open_loop.as_deref());
    times.for_each(|times| all.merge(times));
    all
}

fn machine(round: &Round) -> Option<MachineFacts> {
    let times = (round.client_cpu, round.server_cpu);
    MachineFacts::of(round.machine.as_ref()?, times, round.span.nanos())
}

fn client_busy(round: &Round) -> Option<f64> {
    let threads = u64::from(round.client_threads.unwrap_or(1));
    let nanos = round.span.nanos().saturating_mul(threads);
    share(round.client_cpu?, nanos)
}

/// Whether the latencies of complete requests are two populations that stand apart.
fn is_bimodal(cell: &Cell) -> bool {
    let ok = cell.merged(|key| key.outcome.is_ok());
    ok.is_some_and(|ok| two_modes(&buckets_ms(&ok.latency), 1).is_some())
}

fn findings(sessions: &[SessionFacts], run: &Run) -> Vec<Finding> {
    let mut found = Vec::new();
    for session in sessions {
        let (name, requests) = (&session.name, &session.counted.requests);
        found.extend(failures(name, requests));
        if run.expect.is_none() {
            let is_any_fine = requests.status.keys().any(|status| *status < 400);
            let severity = Severity::Error.unless(is_any_fine, Severity::Warning);
            found.extend(not_2xx(name, &requests.status, severity));
        }
    }
    debug_assert!(
        found.iter().all(|one| RULES.contains(&one.rule)),
        "a finding is missing in RULES"
    );
    found
}

fn failures(session: &str, all: &Requests) -> Option<Finding> {
    let failed = all.failures();
    let claim = statement!(
        "{failed} of {requests} failed",
        failed = Value::Number(failed),
        requests = requests(all.total)
    );
    (failed > 0).then(|| {
        Finding::new("failed-requests", Severity::Error, session.to_owned(), claim)
            .evidence(failure_kinds(&all.failed))
            .fix("a percentile counts timeouts as longer than all other requests; the other failures are in no latency")
    })
}

#[cfg(test)]
mod tests;
