//! `pool-too-small`: more requests run at once than the pool keeps connections for.

use super::{Attribution, Remedy, RuleRow, for_client};
use crate::OpenReason;
use crate::pool_full::Full;
use intact_advice::Client;
use intact_document::finding::{Finding, RuleDoc, Severity};
use intact_document::statement::{Value, requests, statement};
use intact_ledger::Evidence;

pub(super) static RULE: RuleRow = RuleRow {
    doc: RuleDoc {
        id: "pool-too-small",
        what: "Requests run concurrently on more connections than the pool keeps idle (Go keeps 2 per host, urllib3 1, HttpURLConnection 5). After each burst the pool closes the rest, and the next burst opens them again. Or it keeps connections to few destinations (`requests` and urllib3 to 10), and closes the oldest for each further one.",
        evidence: "The client closed connections right after a complete response, each when as many others were idle as it ever keeps; the peak overlap of requests. Or the client closed an idle connection within 5 ms of an opening to another destination, and kept others.",
        threshold: many!(
            "Two openings in vain whose predecessor was closed so.",
            "Also from 3 connections on that a pool closed after it had used them again, if it needs 1.5 times as many as it keeps."
        ),
        false_positives: "A burst at the start that never comes again. A client that looks for connections beyond its idle limit when it opens another one.",
        fix: "Let the pool keep as many idle connections for this destination as run concurrently",
        risk: "Idle connections cost the server memory and sockets, and each can meet its idle timer",
        needs: &[Evidence::Ends],
    },
    fold: || Box::new(findings),
};

/// The remedy where the pool is too small for the number of destinations.
const MORE_DESTINATIONS: &str =
    "Let the pool keep connections to as many destinations as are called in turn";

fn findings(attribution: &mut Attribution<'_>) -> Vec<Finding> {
    let mut findings = too_few_for_bursts(attribution);
    findings.extend(closed_after_bursts(attribution));
    findings.extend(too_few_for_destinations(attribution));
    findings
}

/// Connections that a full pool closed from which on it speaks, though none was opened again.
const CLOSED: u64 = 3;

/// How many times more connections than it keeps a pool needs before it speaks of a last burst: for
/// fewer, the end of the program decides how many closes are seen.
const MORE: f64 = 1.5;

/// Whether a shared pool closed several connections, though many more than it keeps are needed.
fn closes_many(full: Full, needed: u64) -> bool {
    let needs_more = needed as f64 >= MORE * full.kept as f64;
    full.closed >= CLOSED && needs_more && full.is_shared
}

/// Pools that closed connections after the last burst: the next one would open them again.
fn closed_after_bursts(attribution: &Attribution<'_>) -> Vec<Finding> {
    let found = attribution.destinations().filter_map(|(destination, name, _)| {
        let full = attribution.full_pool(destination)?;
        let needed = attribution.needed(destination);
        // a pool has one cause; without avoidable openings there is no other
        let avoidable = attribution.counts(destination).opened - needed;
        let is_cause = full.is_only_cause || avoidable < CLOSED;
        let is_clear = is_cause && full.is_left_beyond_doubt;
        (is_clear && closes_many(full, needed)).then(|| {
            let said = "the pool closed connections after use, because it keeps fewer than were in use: the next burst opens them again";
            let evidence = statement!(
                "up to {at_once} at the same time",
                at_once = requests(needed)
            );
            let finding = Finding::by(&RULE.doc, Severity::Warning, name, said, evidence);
            wider(finding, needed, attribution.client(destination))
        })
    });
    found.collect()
}

/// The finding with the size that the pool needs.
fn wider(mut finding: Finding, needed: u64, client: Option<&Client>) -> Finding {
    let size = statement!("{needed}", needed = Value::Number(needed));
    finding.fix = finding.fix.then(": ", size);
    for_client(Remedy::WidenPool, client, finding)
}

fn too_few_for_bursts(attribution: &mut Attribution<'_>) -> Vec<Finding> {
    let claims = attribution.claim_by(OpenReason::PoolFull, 2);
    let found = claims.iter().map(|one| {
        let said = one.opened("again because the pool had closed them after use");
        let evidence = statement!(
            "up to {at_once} at the same time, and the client closed connections right after a response while it kept others",
            at_once = requests(one.needed)
        );
        let mut finding = one.finding(&RULE.doc, said, evidence);
        let full = attribution.full(one.destination);
        if full.is_some_and(|full| closes_many(full, one.needed)) {
            finding.severity = Severity::Warning;
        }
        wider(finding, one.needed, one.client)
    });
    found.collect()
}

/// Openings to a destination whose idle connection the client had closed for another destination.
fn too_few_for_destinations(attribution: &mut Attribution<'_>) -> Vec<Finding> {
    let claims = attribution.claim_by(OpenReason::Evicted, 2);
    let found = claims.iter().map(|one| {
        let said = one.opened("again because the pool had closed them for other destinations");
        let evidence = "the client closed an idle connection at the moment when it opened one to another destination";
        let mut finding = one.finding(&RULE.doc, said, evidence);
        finding.fix = MORE_DESTINATIONS.into();
        for_client(Remedy::MoreDestinations, one.client, finding)
    });
    found.collect()
}
