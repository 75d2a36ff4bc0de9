//! `retried-request`: the same request was sent again on another connection.

use super::{Bill, Doc, KEPT, Rule};
use crate::finding::{Finding, Severity};
use crate::observe::Context;
use crate::words::many;
use ledger::{ConnectionId, Event, Exchange, Failure, Fingerprint, Nanos, Outcome};
use std::collections::{BTreeMap, HashMap, VecDeque};

/// A request that comes so long after the failure of its like, in nanoseconds, is a new one.
const SOON: u64 = 10_000_000_000;

static DOC: Doc = Doc {
    id: "retried-request",
    what: "A request failed with its connection and was sent again on another one. The library does that silently; a server that had begun may carry it out twice.",
    evidence: "The same fingerprint (method, full target and body) on another connection within 10 s of a failure that broke the connection before the answer was complete, or a retry that the producer itself recorded. Needs requests that are visible.",
    threshold: "One is enough. An error where the method is not idempotent (RFC 9110 section 9.2.2), else a note.",
    false_positives: "A person who presses the button again; a client that polls the same URL and lost one connection.",
    fix: "Remove the cause (`stale-reuse`, resets); let only idempotent requests be retried, and give the others a key that the server recognises",
    risk: "Without any retry each connection that dies while idle becomes an error of the program",
};

#[derive(Default)]
struct Seen {
    safe: u64,
    unsafe_to_repeat: u64,
    example: Option<String>,
}

#[derive(Default)]
pub(super) struct RetriedRequest {
    /// Failures that somebody may retry.
    failed: HashMap<Fingerprint, (Option<ConnectionId>, Nanos)>,
    order: VecDeque<Fingerprint>,
    seen: BTreeMap<usize, Seen>,
}

impl RetriedRequest {
    fn is_retry(&mut self, exchange: &Exchange) -> bool {
        if exchange.retry_of.is_some() {
            return true;
        }
        let Some(fingerprint) = exchange.fingerprint else {
            return false;
        };
        let Some(&(connection, end)) = self.failed.get(&fingerprint) else {
            return false;
        };
        let again = exchange.connection != connection
            && exchange.at >= end
            && exchange.at.since(end) <= SOON;
        if again {
            self.failed.remove(&fingerprint);
        }
        again
    }

    fn remember(&mut self, exchange: &Exchange) {
        use Failure::{Closed, Refusal, Reset, Stale, StreamReset, Truncated};
        let (Some(fingerprint), Outcome::Failed(kind)) = (exchange.fingerprint, exchange.outcome)
        else {
            return;
        };
        if !matches!(
            kind,
            Stale | Closed | Reset | Truncated | Refusal | StreamReset
        ) {
            return;
        }
        while self.order.len() >= KEPT {
            if let Some(oldest) = self.order.pop_front() {
                self.failed.remove(&oldest);
            }
        }
        let failure = (exchange.connection, exchange.end);
        if self.failed.insert(fingerprint, failure).is_none() {
            self.order.push_back(fingerprint);
        }
    }
}

impl Rule for RetriedRequest {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn observe(&mut self, event: Event<'_>, context: &Context<'_>) {
        let (Event::Exchange(exchange), Some(destination)) = (event, context.destination) else {
            return;
        };
        if self.is_retry(exchange) {
            let seen = self.seen.entry(destination).or_default();
            let method = exchange.method.as_ref();
            let harmful = method.is_some_and(|method| !method.is_idempotent());
            let count = if harmful {
                &mut seen.unsafe_to_repeat
            } else {
                &mut seen.safe
            };
            *count += 1;
            // an example that may do harm is the better one
            if seen.example.is_none() || (harmful && seen.unsafe_to_repeat == 1) {
                seen.example = method
                    .zip(exchange.target.as_ref())
                    .map(|(method, target)| format!("{method} {target}"));
            }
        }
        self.remember(exchange);
    }

    fn findings(&self, bill: &mut Bill<'_>) -> Vec<Finding> {
        let found = self.seen.iter().map(|(&destination, seen)| {
            let severity = if seen.unsafe_to_repeat > 0 {
                Severity::Error
            } else {
                Severity::Info
            };
            let mut words = format!(
                "{} sent again on another connection after the first had failed",
                many(seen.safe + seen.unsafe_to_repeat, "request")
            );
            if seen.unsafe_to_repeat > 0 {
                words.push_str(&format!(
                    ", {} of them not idempotent",
                    seen.unsafe_to_repeat
                ));
            }
            let evidence = seen.example.as_ref().map_or_else(
                || "recognised by method, target and body".to_owned(),
                |example| format!("for example {example}, recognised by method, target and body"),
            );
            Finding::by(&DOC, severity, bill.name(destination), words, evidence)
        });
        found.collect()
    }
}
