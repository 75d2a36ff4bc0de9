//! `closed-before-response`: the server ended a connection after it had received a request, and did
//! not respond.

use super::{Attribution, Fold, RuleRow, is_unsafe, is_without_response};
use crate::{Context, OpenReason};
use intact_document::finding::{Finding, RuleDoc, Severity};
use intact_document::statement::{Value, nanos, requests, statement};
use intact_ledger::{Event, Evidence, Exchange, Failure, Outcome};
use std::collections::BTreeMap;

pub(super) static RULE: RuleRow = RuleRow {
    doc: RuleDoc {
        id: "closed-before-response",
        what: "The server ended the connection after it had received the request, without one byte of a response. It may have executed the request: this is no `stale-reuse`, and a retry is not safe.",
        evidence: "Exchanges with the outcome `closed` or `reset` and no byte of a response. On a reused connection the server's TCP had acknowledged the request, or the end came later than one round trip after it. So the close cannot have preceded the request.",
        threshold: "One is enough. An error where the request may not be repeated (POST, PATCH), else a warning. Inferred exchanges do not count.",
        false_positives: "A server that closes at once on purpose, such as one that rejects a client.",
        fix: "Find out why the server ends connections with a request in hand: a crash, a recycled worker, a timeout of its own. Before you repeat requests that are not idempotent, give them an idempotency key",
        risk: "A retry executes an executed request twice",
        needs: &[Evidence::Ends],
    },
    fold: || Box::<ClosedBeforeResponse>::default(),
};

#[derive(Default)]
struct Seen {
    requests: u64,
    unsafe_to_repeat: u64,
    /// Longest time from the start of the request to the end, in nanoseconds.
    longest: u64,
}

#[derive(Default)]
struct ClosedBeforeResponse {
    seen: BTreeMap<usize, Seen>,
}

/// Whether the server ended the connection and sent nothing.
fn is_closed(exchange: &Exchange) -> bool {
    let is_ended = matches!(
        exchange.outcome,
        Outcome::Failed(Failure::Closed | Failure::Reset)
    );
    // an announced end is `lost-in-drain`; what processes send into each other's requests is theirs
    is_ended
        && exchange.sharers == 0
        && exchange.close_announced_at.is_none()
        && is_without_response(exchange)
}

impl Fold for ClosedBeforeResponse {
    fn observe(&mut self, event: Event<'_>, context: &Context<'_>) {
        if let (Event::Exchange(exchange), Some(destination)) = (event, context.destination)
            && is_closed(exchange)
        {
            let seen = self.seen.entry(destination).or_default();
            seen.requests += 1;
            seen.unsafe_to_repeat += u64::from(is_unsafe(exchange));
            seen.longest = seen.longest.max(exchange.latency_without_setup());
        }
    }

    fn findings(&self, attribution: &mut Attribution<'_>) -> Vec<Finding> {
        let found = self.seen.iter().map(|(&destination, seen)| {
            let severity = Severity::Warning.unless(seen.unsafe_to_repeat > 0, Severity::Error);
            let said = statement!(
                "{requests} got no response, because the server ended the connection with the request in hand: it may have been executed",
                requests = requests(seen.requests)
            );
            let mut evidence = statement!(
                "the end came up to {longest} after the request",
                longest = nanos(seen.longest as f64)
            );
            if seen.unsafe_to_repeat > 0 {
                evidence = evidence.and(statement!(
                    "{not_idempotent} not idempotent",
                    not_idempotent = Value::Number(seen.unsafe_to_repeat)
                ));
            }
            let claimed = attribution.claim_at(destination, &[OpenReason::Broken], 1);
            let claim = claimed.map(|one| one.claim).unwrap_or_default();
            if claim.connections > 0 {
                evidence = evidence.and(claim.statement());
            }
            attribution.finding(&RULE.doc, severity, destination, said, evidence)
                .costing(claim.cost_ms, claim.share)
        });
        found.collect()
    }
}
