//! `h2-not-multiplexed`: several HTTP/2 connections where one would carry all streams.

use super::attribution::ClaimedOpenings;
use super::{Attribution, Remedy, RuleRow, for_client};
use crate::OpenReason;
use intact_document::finding::{Finding, RuleDoc};
use intact_document::statement::{Statement, Value, connections, statement};
use intact_ledger::Evidence;

pub(super) static RULE: RuleRow = RuleRow {
    doc: RuleDoc {
        id: "h2-not-multiplexed",
        what: "The client opened another HTTP/2 connection although one to the same destination had free streams. RFC 9113 section 9.1 asks for one.",
        evidence: "An opening while the same process had an open HTTP/2 connection to the destination, or set one up. The end of the open connection had not been announced. The peak overlap of streams, compared with SETTINGS_MAX_CONCURRENT_STREAMS (100 where the server announces none).",
        threshold: many!("Two openings in vain."),
        false_positives: "Several connections that replace one that the server ended have the server's limit as their reason. Some clients use several on purpose, because all streams of one TCP connection wait for one lost packet.",
        fix: "Share one HTTP/2 client (one Client, ClientSession or ManagedChannel) between all callers. If you need several, limit their number",
        risk: "On a lossy link all streams of a connection wait for a lost packet (head-of-line blocking). Behind a balancer, one connection goes to one server",
        needs: &[Evidence::Ends],
    },
    fold: || Box::new(findings),
};

/// The remedy where the connections were set up at the same time.
const ONE_FIRST: &str = "Make one request before the others: until its handshake ends, no client knows that the server takes several streams. If the callers have a client each, share one";

fn findings(attribution: &mut Attribution<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for one in attribution.claim_by(OpenReason::StreamsFree, 2) {
        let said = one.opened("though an HTTP/2 connection had free streams");
        let finding = one.finding(&RULE.doc, said, streams(&one));
        found.push(for_client(Remedy::ShareClient, one.client, finding));
    }
    for one in attribution.claim_by(OpenReason::InParallel, 2) {
        let said = one.opened("while the first one was still being set up");
        let finding = one.finding(&RULE.doc, said, streams(&one));
        found.push(Finding {
            fix: ONE_FIRST.into(),
            ..finding
        });
    }
    found
}

fn streams(one: &ClaimedOpenings<'_>) -> Statement {
    statement!(
        "at most {streams} at the same time, which need {needed}",
        streams = Value::Count(one.counts.streams_at_once(), "stream"),
        needed = connections(one.needed)
    )
}
