//! `lost-in-drain`: the server announced the end of a connection, and requests on it got no
//! complete response.

use super::{Attribution, Fold, KEPT, RuleRow, is_unsafe};
use crate::Context;
use intact_document::finding::{Finding, RuleDoc, Severity};
use intact_document::statement::{Statement, Value, requests, statement};
use intact_ledger::{
    ConnectionId, Event, Evidence, Exchange, Failure, Fingerprint, Nanos, Outcome,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// An equal request that comes so long after the failure, in nanoseconds, is a new one.
const SOON: u64 = 10_000_000_000;

pub(super) static RULE: RuleRow = RuleRow {
    doc: RuleDoc {
        id: "lost-in-drain",
        what: "The server announced the end of a connection (GOAWAY, `Connection: close`), as in a deployment or a restart. Requests on it got no complete response: the server cut those in hand, or the client sent them after the announcement.",
        evidence: "Exchanges that were cut or refused after the announcement on their connection. For each, whether it began before or after the announcement; whether an equal request (method, full target and body) was complete on another connection within 10 s.",
        threshold: "One is enough. An error if the request may not be repeated (POST, PATCH) and may have been processed; a warning if a request was not sent again; else informational. A request that the server refused and the client repeated is not lost. A GOAWAY with an error is no shutdown.",
        false_positives: "A server that announces the end with each response, and a client that ignores that.",
        fix: "Let the server announce the end first, respond to all requests in hand, and only then close. Its drain time must exceed its slowest response. Let the client send nothing on a connection after the announcement, and repeat refused requests",
        risk: "A longer drain time delays deployments; a repeated request that is not idempotent may be processed twice",
        needs: &[Evidence::Attempts, Evidence::Ends, Evidence::Announcements],
    },
    fold: || Box::<LostInDrain>::default(),
};

/// A request without a complete response.
#[derive(Clone, Copy)]
struct Loss {
    destination: usize,
    connection: Option<ConnectionId>,
    end: Nanos,
    waited: u64,
    /// It began after the announcement.
    is_late: bool,
    /// The server has not processed it.
    is_refused: bool,
    /// It may not be repeated.
    is_unsafe: bool,
}

/// The losses of a destination.
#[derive(Clone, Default)]
struct Seen {
    requests: u64,
    late: u64,
    refused: u64,
    harmful: u64,
    repeated: u64,
    waited: u64,
    connections: BTreeSet<ConnectionId>,
}

impl Seen {
    fn add(&mut self, loss: &Loss) {
        self.requests += 1;
        self.late += u64::from(loss.is_late);
        self.refused += u64::from(loss.is_refused);
        self.harmful += u64::from(loss.is_unsafe && !loss.is_refused);
        self.waited = self.waited.saturating_add(loss.waited);
        if self.connections.len() < KEPT {
            self.connections.extend(loss.connection);
        }
    }
}

#[derive(Default)]
struct LostInDrain {
    /// Losses that may be repeated.
    open: HashMap<Fingerprint, Vec<Loss>>,
    kept: usize,
    seen: BTreeMap<usize, Seen>,
}

impl LostInDrain {
    /// The loss that a complete request repeats is none where the server had refused it.
    fn repeat(&mut self, exchange: &Exchange) {
        let losses = exchange.fingerprint.and_then(|one| self.open.get_mut(&one));
        let Some(losses) = losses.filter(|_| exchange.outcome.is_ok()) else {
            return;
        };
        let is_repeated = |loss: &Loss| {
            exchange.at >= loss.end
                && exchange.at.since(loss.end) <= SOON
                && exchange.connection != loss.connection
        };
        if let Some(found) = losses.iter().position(is_repeated) {
            let loss = losses.swap_remove(found);
            self.kept -= 1;
            if !loss.is_refused {
                let seen = self.seen.entry(loss.destination).or_default();
                seen.add(&loss);
                seen.repeated += 1;
            }
        }
    }

    fn lose(&mut self, exchange: &Exchange, loss: Loss) {
        match exchange.fingerprint {
            Some(fingerprint) if self.kept < KEPT => {
                self.kept += 1;
                self.open.entry(fingerprint).or_default().push(loss);
            }
            _ => self.seen.entry(loss.destination).or_default().add(&loss),
        }
    }
}

/// Whether the server, or the end of the connection, cut the exchange.
fn is_cut(exchange: &Exchange) -> bool {
    use Failure::{Closed, Refusal, Reset, Stale, StreamReset, Truncated};
    let is_failed = matches!(
        exchange.outcome,
        Outcome::Failed(Closed | Refusal | Reset | Stale | StreamReset | Truncated)
    );
    is_failed && exchange.certainty.is_exact()
}

impl Fold for LostInDrain {
    fn observe(&mut self, event: Event<'_>, context: &Context<'_>) {
        let (Event::Exchange(exchange), Some(destination)) = (event, context.destination) else {
            return;
        };
        self.repeat(exchange);
        let Some(announced_at) = exchange.close_announced_at.filter(|_| is_cut(exchange)) else {
            return;
        };
        let loss = Loss {
            destination,
            connection: exchange.connection,
            end: exchange.end,
            waited: exchange.latency(),
            is_late: exchange.at > announced_at,
            is_refused: exchange.outcome.is_refusal(),
            is_unsafe: is_unsafe(exchange),
        };
        self.lose(exchange, loss);
    }

    fn findings(&self, attribution: &mut Attribution<'_>) -> Vec<Finding> {
        let mut all = self.seen.clone();
        for loss in self.open.values().flatten() {
            all.entry(loss.destination).or_default().add(loss);
        }
        let found = all.iter().map(|(&destination, seen)| {
            let claim = attribution.claim_lost(destination, seen.waited);
            let (severity, said, evidence) = (seen.severity(), seen.claim(), seen.evidence());
            attribution
                .finding(&RULE.doc, severity, destination, said, evidence)
                .costing(claim.cost_ms, claim.share)
        });
        found.collect()
    }
}

impl Seen {
    fn severity(&self) -> Severity {
        if self.harmful > 0 {
            Severity::Error
        } else if self.repeated < self.requests {
            Severity::Warning
        } else {
            Severity::Info
        }
    }

    fn claim(&self) -> Statement {
        let connections = self.connections.len().max(1) as u64;
        statement!(
            "{lost} got no complete response on {connections} whose end the server had announced",
            lost = requests(self.requests),
            connections = intact_document::statement::connections(connections)
        )
    }

    fn evidence(&self) -> Statement {
        let in_hand = self.requests - self.late;
        let mut said = statement!(
            "{in_hand} in hand when the server announced the end, {late} sent after that",
            in_hand = Value::Number(in_hand),
            late = Value::Number(self.late)
        );
        if self.refused > 0 {
            said = said.and(statement!(
                "the server refused {refused}, which it has not processed",
                refused = Value::Number(self.refused)
            ));
        }
        if self.harmful > 0 {
            said = said.and(statement!(
                "{harmful} not idempotent, and may have been processed",
                harmful = Value::Number(self.harmful)
            ));
        }
        said.and(statement!(
            "{repeated} sent again",
            repeated = Value::Number(self.repeated)
        ))
    }
}
