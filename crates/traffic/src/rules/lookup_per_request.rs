//! `lookup-per-request`: a name is resolved again and again.

use super::{Attribution, RuleRow};
use intact_document::finding::{Finding, RuleDoc, Severity};
use intact_document::statement::{Value, connections, nanos, requests, statement, text};
use intact_ledger::Evidence;

/// Lookups of one name from which on it speaks.
const LEAST: u64 = 5;

pub(super) static RULE: RuleRow = RuleRow {
    doc: RuleDoc {
        id: "lookup-per-request",
        what: "A name is looked up for (nearly) every request. Each takes a round trip to the resolver, and can fail.",
        evidence: "Lookups of a name against requests to destinations of that name; their time and failures.",
        threshold: "Five lookups of a name, and one for every two requests or more. Separate queries for IPv4 and IPv6 count as two.",
        false_positives: "A record whose TTL is shorter than the pauses between requests. Where requests cannot be seen, connections are counted instead.",
        fix: "Reuse connections, which need no lookup; then cache in the process or on the machine (systemd-resolved, dnsmasq, CoreDNS)",
        risk: "A cache that outlives the TTL sends requests to machines that no longer exist",
        needs: &[Evidence::Lookups],
    },
    fold: || Box::new(findings),
};

fn findings(attribution: &mut Attribution<'_>) -> Vec<Finding> {
    let tracker = attribution.tracker();
    let mut findings = Vec::new();
    for (name, lookups) in &tracker.lookups.names {
        let (mut carried, mut opened, mut subjects) = (0, 0, Vec::new());
        for (destination, subject, counts) in attribution.destinations() {
            if tracker.destinations.is_named(destination, name) {
                carried += counts.requests;
                opened += counts.opened;
                subjects.push(subject);
            }
        }
        let work = carried.max(opened);
        if lookups.total < LEAST || lookups.total * 2 < work || work == 0 {
            continue;
        }
        // which of them a lookup was for is not known
        let subject = subjects.remove(0);
        let said = statement!(
            "{lookups} of {name} for {requests} on {connections}",
            lookups = Value::Count(lookups.total, "lookup"),
            name = text(name),
            requests = requests(carried),
            connections = connections(opened)
        );
        let took = lookups.nanos as f64;
        let mut evidence = statement!(
            "{together} in total, {each} each",
            together = nanos(took),
            each = nanos(took / lookups.total as f64)
        );
        if lookups.failed > 0 {
            evidence = evidence.and(statement!(
                "{lookups_failed} failed",
                lookups_failed = Value::Number(lookups.failed)
            ));
        }
        let severity = Severity::Info.unless(lookups.failed > 0, Severity::Warning);
        findings.push(Finding::by(&RULE.doc, severity, subject, said, evidence).also(subjects));
    }
    findings
}
