//! `h2-available-unused`: several HTTP/1.1 connections to a server that speaks HTTP/2.

use super::{Attribution, RuleRow};
use intact_document::finding::{Finding, RuleDoc, Severity};
use intact_document::statement::{Value, connections, requests, statement};
use intact_ledger::Evidence;

/// Requests at once from which on one connection for all is worth a sentence.
const AT_ONCE: u64 = 4;

pub(super) static RULE: RuleRow = RuleRow {
    doc: RuleDoc {
        id: "h2-available-unused",
        what: "Several requests run at the same time over TLS, each on its own HTTP/1.1 connection, because the client does not offer HTTP/2. One HTTP/2 connection would carry them all.",
        evidence: "The protocols offered and chosen in TLS (ALPN) on each connection; the peak overlap of requests.",
        threshold: "Four requests at the same time on connections that did not offer `h2`. A warning where the server chose `h2` on other connections, so that its support is known; else informational.",
        false_positives: "On a lossy link several HTTP/1.1 connections are faster than one HTTP/2 connection; large downloads gain nothing.",
        fix: "Let the client offer HTTP/2 (ALPN `h2`)",
        risk: "All requests then share one TCP connection: one lost packet delays all, and a balancer sends all to one server",
        needs: &[Evidence::Ends, Evidence::Contents],
    },
    fold: || Box::new(findings),
};

fn findings(attribution: &mut Attribution<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (_, name, counts) in attribution.destinations() {
        let without = counts.h2.get(&(false, false)).copied().unwrap_or(0);
        let refused = counts.h2.get(&(true, false)).copied().unwrap_or(0);
        let at_once = counts.single_at_once();
        let spoken = counts.h2.get(&(true, true)).copied().unwrap_or(0);
        // a server that was offered it and declined does not speak it
        if without == 0 || at_once < AT_ONCE || (refused > 0 && spoken == 0) {
            continue;
        }
        let (severity, evidence) = if spoken > 0 {
            let chosen = Value::Count(spoken, "other connection");
            (
                Severity::Warning,
                statement!("the server chose HTTP/2 on {chosen}", chosen = chosen),
            )
        } else {
            (
                Severity::Info,
                "it is unknown whether the server speaks HTTP/2; `intact check` reports it".into(),
            )
        };
        let said = statement!(
            "{at_once} at the same time over HTTP/1.1; the client did not offer HTTP/2 on {not_offered}",
            at_once = requests(at_once),
            not_offered = connections(without)
        );
        findings.push(Finding::by(&RULE.doc, severity, name, said, evidence));
    }
    findings
}
