//! `lookup-per-request`: a name is resolved again and again.

use super::{Attribution, Doc, Rule};
use crate::finding::{Finding, Severity};
use intact_units::number::time;
use intact_units::plural::counted;

/// Lookups of one name from which on it speaks.
const LEAST: u64 = 5;

static DOC: Doc = Doc {
    id: "lookup-per-request",
    what: "A name is looked up for (nearly) every request. Each takes a round trip to the resolver, loads it, and can fail: lookup errors vanish with the lookups.",
    evidence: "Lookups of a name against requests to destinations of that name; their time and failures.",
    threshold: "Five lookups of a name, and one for every two requests or more. IPv4 and IPv6 asked for apart are two.",
    false_positives: "A record whose TTL is shorter than the pauses between requests. Where requests cannot be seen inside connections, connections stand for them.",
    fix: "Reuse connections, which need no lookup; then cache in the process or beside it (systemd-resolved, dnsmasq, CoreDNS)",
    risk: "A cache that outlives the TTL sends requests to machines that are gone",
};

pub(super) struct LookUpPerRequest;

impl Rule for LookUpPerRequest {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn findings(&self, bill: &mut Attribution<'_>) -> Vec<Finding> {
        let books = bill.books();
        let mut findings = Vec::new();
        for (name, lookups) in &books.names {
            let (mut requests, mut connections, mut subject) = (0, 0, None);
            for (place, counts) in books.places.iter().zip(&books.counts) {
                if place
                    .origin
                    .as_ref()
                    .is_some_and(|origin| origin.host == *name)
                {
                    requests += counts.requests;
                    connections += counts.opened;
                    subject.get_or_insert_with(|| place.name());
                }
            }
            let work = requests.max(connections);
            if lookups.total < LEAST || lookups.total * 2 < work || work == 0 {
                continue;
            }
            let words = format!(
                "{name} was looked up {} times for {} on {}",
                lookups.total,
                counted(requests, "request"),
                counted(connections, "connection")
            );
            let took = lookups.nanos as f64 / 1e6;
            let mut evidence = format!(
                "{} together, {} each",
                time(took),
                time(took / lookups.total as f64)
            );
            if lookups.failed > 0 {
                evidence.push_str(&format!("; {} failed", lookups.failed));
            }
            let severity = if lookups.failed > 0 {
                Severity::Warning
            } else {
                Severity::Info
            };
            let subject = subject.unwrap_or_else(|| name.to_string());
            findings.push(Finding::by(&DOC, severity, subject, words, evidence));
        }
        findings
    }
}
