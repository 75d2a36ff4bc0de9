//! `dead-connection-reused`: requests waited for a response on a connection that carried nothing
//! any more.

use super::{Attribution, Fold, KEPT, Remedy, RuleRow, for_client, is_without_response};
use crate::{Context, Counts};
use intact_document::finding::{Finding, RuleDoc, Severity};
use intact_document::statement::{Value, connections, nanos, requests, statement, timer_nanos};
use intact_ledger::{ConnectionId, Event, Evidence, Exchange, Failure, Nanos, Outcome};
use std::collections::{BTreeMap, HashMap};

/// A shorter wait is that of an impatient client, in nanoseconds.
const LONG: u64 = 500_000_000;
/// Segments sent again from which on none was acknowledged: one may be a probe for a late
/// acknowledgement (RFC 8985 section 7).
const RESENT: u64 = 2;
/// How many times the mean latency of complete requests a request must have waited.
const TIMES: f64 = 10.0;

pub(super) static RULE: RuleRow = RuleRow {
    doc: RuleDoc {
        id: "dead-connection-reused",
        what: "Requests were sent on a connection that had carried responses before, got not one byte, and the client gave up. The path drops the packets: a NAT, a firewall or a balancer has forgotten the connection, or the host is gone.",
        evidence: "The last exchanges on a used connection that got no byte of a response. The client's timeout, its close or the end of the recording ended them. How long they waited, compared with complete requests to the destination. The segments of the request that were sent again, because no acknowledgement came.",
        threshold: "One request that waited 500 ms and ten times the mean of complete requests. A later response on the same connection clears the request. So does an acknowledgement: where no segment was sent again, the path works and the server hangs. A request that the end of the recording cut counts where two segments were sent again. An inferred request does not count.",
        false_positives: "A server that hangs, where segments are not observed. If several requests in a row got no byte, the connection is the likely cause.",
        fix: "Let the client check silent connections (HTTP/2 PING, TCP keep-alive, TCP_USER_TIMEOUT). After a timeout, let it close the connection instead of using it again",
        risk: "A check that is too impatient closes connections to a server that is merely slow",
        needs: &[Evidence::Attempts, Evidence::Durations],
    },
    fold: || Box::<DeadConnectionReused>::default(),
};

/// Requests without a byte of response at the end of a connection.
#[derive(Clone, Copy)]
struct Silence {
    destination: usize,
    /// When the first of them began.
    since: Nanos,
    requests: u64,
    /// Their time together, and the longest, in nanoseconds.
    waited: u64,
    longest: u64,
    /// Idle time before the first, in nanoseconds.
    idle: Option<u64>,
    /// Segments that were sent again; `None` where that was not observed of any.
    resent: Option<u64>,
    /// One of them ended with the recording.
    is_aborted: bool,
}

/// What the silent connections of a destination add up to.
#[derive(Clone, Copy, Default)]
struct Seen {
    connections: u64,
    requests: u64,
    waited: u64,
    longest: u64,
    idle: Option<u64>,
    resent: Option<u64>,
}

impl Seen {
    fn add(&mut self, silence: &Silence) {
        if !silence.shows_dead_connection() {
            return;
        }
        self.connections += 1;
        self.requests += silence.requests;
        self.waited = self.waited.saturating_add(silence.waited);
        self.longest = self.longest.max(silence.longest);
        self.idle = self.idle.max(silence.idle);
        self.resent = sum(self.resent, silence.resent);
    }
}

impl Silence {
    /// Whether the server's TCP did not acknowledge the requests, where that was observed.
    fn shows_dead_connection(&self) -> bool {
        match self.resent {
            Some(0) => false,
            resent => !self.is_aborted || resent >= Some(RESENT),
        }
    }
}

/// The sum of two counts, of which either may not have been observed.
fn sum(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    let known = one.into_iter().chain(other);
    known.reduce(u64::saturating_add)
}

#[derive(Default)]
struct DeadConnectionReused {
    /// Connections that are silent so far.
    silent: HashMap<ConnectionId, Silence>,
    /// Those that ended so.
    seen: BTreeMap<usize, Seen>,
}

impl DeadConnectionReused {
    fn take(&mut self, exchange: &Exchange, context: &Context<'_>) {
        let (Some(id), Some(destination)) = (exchange.connection, context.destination) else {
            return;
        };
        if is_silent(exchange) {
            let known = self.silent.get(&id).copied();
            let was_used = context.live.is_some_and(|live| live.carried_response);
            if known.is_none() && (!was_used || self.silent.len() >= KEPT) {
                return;
            }
            let mut silence = known.unwrap_or(Silence {
                destination,
                since: exchange.at,
                requests: 0,
                waited: 0,
                longest: 0,
                idle: context.gap,
                resent: None,
                is_aborted: false,
            });
            silence.since = silence.since.min(exchange.at);
            silence.requests += 1;
            silence.waited = silence.waited.saturating_add(exchange.latency());
            silence.longest = silence.longest.max(exchange.latency());
            let resent = exchange.retransmissions.map(u64::from);
            silence.resent = sum(silence.resent, resent);
            silence.is_aborted |= exchange.outcome == Outcome::Failed(Failure::Aborted);
            self.silent.insert(id, silence);
        } else if self
            .silent
            .get(&id)
            .is_some_and(|silence| exchange.end > silence.since)
        {
            self.silent.remove(&id);
        }
    }
}

/// Whether the client gave up, or the recording ended, before a byte of the response came.
fn is_silent(exchange: &Exchange) -> bool {
    let gave_up = matches!(
        exchange.outcome,
        Outcome::Failed(Failure::ClientClosed | Failure::Timeout | Failure::Aborted)
    );
    gave_up && is_without_response(exchange)
}

impl Fold for DeadConnectionReused {
    fn observe(&mut self, event: Event<'_>, context: &Context<'_>) {
        match event {
            Event::Exchange(exchange) => self.take(exchange, context),
            Event::Closed(closed) => {
                if let Some(silence) = self.silent.remove(&closed.connection) {
                    self.seen
                        .entry(silence.destination)
                        .or_default()
                        .add(&silence);
                }
            }
            _ => {}
        }
    }

    fn findings(&self, attribution: &mut Attribution<'_>) -> Vec<Finding> {
        let mut all = self.seen.clone();
        for silence in self.silent.values() {
            all.entry(silence.destination).or_default().add(silence);
        }
        let mut findings = Vec::new();
        for (&destination, seen) in &all {
            if seen.connections == 0 || seen.longest < least(attribution.counts(destination)) {
                continue;
            }
            let said = statement!(
                "{requests} waited {waited} without a byte of response on {connections} that had worked before",
                requests = requests(seen.requests),
                waited = nanos(seen.waited as f64),
                connections = connections(seen.connections)
            );
            let mut evidence = statement!(
                "the longest wait was {longest}",
                longest = timer_nanos(seen.longest)
            );
            evidence = evidence.and(match seen.resent {
                Some(resent) if resent >= RESENT => statement!(
                    "no acknowledgement came, and {resent:#} sent again",
                    resent = Value::Count(resent, "segment")
                ),
                _ => "whether the server's TCP acknowledged them is unknown".into(),
            });
            if let Some(idle) = seen.idle {
                evidence = evidence.and(statement!(
                    "the connection had been idle for {idle} before",
                    idle = timer_nanos(idle)
                ));
            }
            let claim = attribution.claim_lost(destination, seen.waited);
            let finding = attribution
                .finding(&RULE.doc, Severity::Warning, destination, said, evidence)
                .costing(claim.cost_ms, claim.share);
            let client = attribution.client(destination);
            findings.push(for_client(Remedy::CheckAlive, client, finding));
        }
        findings
    }
}

/// How long a request must have waited, in nanoseconds.
fn least(counts: &Counts) -> u64 {
    let complete = counts.outbound.saturating_sub(counts.lost.nanos);
    let timed = counts.timed.saturating_sub(counts.lost.count);
    let mean = complete as f64 / timed.max(1) as f64;
    LONG.max((mean * TIMES) as u64)
}
