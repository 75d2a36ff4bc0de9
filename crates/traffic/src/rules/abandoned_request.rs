//! `abandoned-request`: the client closed connections before their responses were complete.

use super::{Attribution, Fold, RuleRow};
use crate::{Context, OpenReason};
use intact_document::finding::{Finding, RuleDoc};
use intact_document::statement::{Statement, nanos, statement};
use intact_ledger::{Event, Evidence, Failure, Outcome};
use std::collections::BTreeMap;

pub(super) static RULE: RuleRow = RuleRow {
    doc: RuleDoc {
        id: "abandoned-request",
        what: "The client gave up requests before their responses were complete: its timeout was over, or the caller cancelled (`ReadTimeout`, `Read timed out`, `AbortError`, `context deadline exceeded`). In HTTP/1.1 it has to close the connection for that.",
        evidence: "Connections opened after one that the client had closed within a response, and how long it had waited.",
        threshold: many!("One connection."),
        false_positives: "Responses of which the client needs only the beginning.",
        fix: "Find out what ends the wait: a timeout that is shorter than these responses take, or a caller that cancels. What is cancelled on purpose costs no connection in HTTP/2 (RST_STREAM)",
        risk: "A longer timeout holds the caller for longer when the server does not respond at all",
        needs: &[Evidence::Ends],
    },
    fold: || Box::<AbandonedRequest>::default(),
};

#[derive(Default)]
struct AbandonedRequest {
    /// The longest time that the client waited for a response that it gave up, in nanoseconds, by
    /// destination.
    longest: BTreeMap<usize, u64>,
}

impl Fold for AbandonedRequest {
    fn observe(&mut self, event: Event<'_>, context: &Context<'_>) {
        if let (Event::Exchange(exchange), Some(destination)) = (event, context.destination)
            && exchange.outcome == Outcome::Failed(Failure::ClientClosed)
        {
            let longest = self.longest.entry(destination).or_default();
            *longest = exchange.latency_without_setup().max(*longest);
        }
    }

    fn findings(&self, attribution: &mut Attribution<'_>) -> Vec<Finding> {
        let claims = attribution.claim_by(OpenReason::GaveUp, 1);
        let found = claims.into_iter().map(|claimed| {
            let longest = self.longest.get(&claimed.destination);
            let waited = longest.map_or_else(Statement::default, |longest| {
                statement!(
                    "it waited for up to {longest}",
                    longest = nanos(*longest as f64)
                )
            });
            let said = claimed.opened(OpenReason::GaveUp.words());
            claimed.finding(&RULE.doc, said, waited.and(claimed.claim.statement()))
        });
        found.collect()
    }
}
