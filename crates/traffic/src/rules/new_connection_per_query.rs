//! `new-connection-per-query`: a data base, cache or queue is dialled for each piece of work.

use super::{Attribution, Fold, RuleRow};
use crate::{Context, Counts};
use intact_document::finding::{Finding, RuleDoc, Severity};
use intact_document::statement::{Value, connections, statement, text};
use intact_ledger::{Event, Evidence, Protocol};
use std::collections::BTreeMap;

/// Avoidable connections from which on it speaks.
const LEAST: u64 = 3;

pub(super) static RULE: RuleRow = RuleRow {
    doc: RuleDoc {
        id: "new-connection-per-query",
        what: "A client of Redis, PostgreSQL, MySQL or AMQP opens a connection for each piece of work. In addition to TCP and TLS, each pays for authentication, and for a process or thread of the server.",
        evidence: "The protocol, detected by its first bytes; connections opened one after the other against the most that were open at the same time; the bytes of each.",
        threshold: "Three connections more than were ever open at the same time. Their content is not read.",
        false_positives: "A pooler on the same machine (PgBouncer) makes connections cheap; a script that runs once has nothing to pool.",
        fix: "Use the driver's pool, made once for the process, or a pooler next to the server",
        risk: "A pooled connection keeps what the last user set on it (transactions, session variables, prepared statements): reset it on return",
        needs: &[Evidence::Ends, Evidence::Contents],
    },
    fold: || Box::<NewConnectionPerQuery>::default(),
};

#[derive(Default)]
struct NewConnectionPerQuery {
    /// Bytes of ended connections, both ways, and how many ended.
    bytes: BTreeMap<usize, (u64, u64)>,
}

impl Fold for NewConnectionPerQuery {
    fn observe(&mut self, event: Event<'_>, context: &Context<'_>) {
        let (Event::Closed(closed), Some(live)) = (event, context.live) else {
            return;
        };
        if live.connection.protocol.is_some_and(Protocol::is_for_data) {
            let seen = self.bytes.entry(live.destination).or_default();
            let bytes = closed.close.bytes;
            seen.0 = seen
                .0
                .saturating_add(bytes.sent.saturating_add(bytes.received));
            seen.1 += 1;
        }
    }

    fn findings(&self, attribution: &mut Attribution<'_>) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (destination, name, counts) in attribution.destinations() {
            let (Some(protocol), left) = (spoken(counts), attribution.left(destination)) else {
                continue;
            };
            if left < LEAST {
                continue;
            }
            let claim = attribution.claim(destination, left);
            let (bytes, ended) = self.bytes.get(&destination).copied().unwrap_or_default();
            let evidence = match bytes.checked_div(ended) {
                Some(each) => statement!(
                    "each carried {carried} on average, both ways",
                    carried = Value::Bytes(each)
                ),
                None => claim.statement(),
            };
            let said = statement!(
                "{opened} to a {protocol} server, {needed} needed",
                opened = connections(counts.opened),
                protocol = text(protocol.as_str()),
                needed = Value::Number(attribution.needed(destination))
            );
            findings.push(
                Finding::by(&RULE.doc, Severity::Warning, name, said, evidence)
                    .costing(claim.cost_ms, claim.share),
            );
        }
        findings
    }
}

/// The protocol of a destination all of whose connections speak one of these.
pub(super) fn spoken(counts: &Counts) -> Option<Protocol> {
    let mut spoken = counts.protocols.keys().copied();
    let first = spoken.next().filter(|protocol| protocol.is_for_data())?;
    spoken.next().is_none().then_some(first)
}
