//! `idle-timeout-race`: connections are reused when the server's idle timer is about to fire.

use super::{Attribution, Remedy, RuleRow, for_client};
use crate::{at_least, danger_from, server_limit};
use intact_document::finding::{Finding, RuleDoc, Severity};
use intact_document::statement::{Value, statement, timer_nanos};
use intact_ledger::Evidence;

pub(super) static RULE: RuleRow = RuleRow {
    doc: RuleDoc {
        id: "idle-timeout-race",
        what: "Requests are sent on connections that were idle for nearly as long as the server allows. Sooner or later one crosses the server's FIN and fails (\"socket hang up\").",
        evidence: "Idle time before each reuse against the server's limit: `Keep-Alive: timeout=` or the shortest observed idle time before a close, whichever is shorter.",
        threshold: "One reuse in the danger band: the last fifth of the limit, at most its last second. The timer's resolution and the network delay both count.",
        false_positives: "Servers that keep connections longer than announced (Node: one second); requests that are retried anyway.",
        fix: "Set the client's idle limit below the server's, with room to spare",
        risk: "A shorter limit in the client costs a few more connections; a longer one in the server costs it memory for each silent client",
        needs: &[Evidence::Ends],
    },
    fold: || Box::new(findings),
};

fn findings(attribution: &mut Attribution<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (destination, name, counts) in attribution.destinations() {
        let (Some(limit), Some(detail)) = (server_limit(counts), &counts.detail) else {
            continue;
        };
        let risky = at_least(&detail.gaps, danger_from(limit));
        if risky == 0 {
            continue;
        }
        let all = detail.gaps.count();
        let idle_limit = timer_nanos(limit);
        let mut evidence = match counts.announced_timeout_s {
            Some(seconds) => statement!(
                "the server's idle timeout is {idle_limit} (`Keep-Alive: timeout={announced}`)",
                idle_limit = idle_limit.clone(),
                announced = Value::Seconds(seconds.into())
            ),
            None => statement!(
                "the server's idle timeout is {idle_limit} (as observed)",
                idle_limit = idle_limit.clone()
            ),
        };
        if let Some(longest) = detail.gaps.max() {
            evidence = evidence.and(statement!(
                "the longest idle time before a reuse was {longest}",
                longest = timer_nanos(longest)
            ));
        }
        let said = statement!(
            "{late} of {reuses} ({late_of_reuses}) came after an idle time of {danger_from} or more",
            late = Value::Number(risky),
            reuses = Value::Count(all, "reuse"),
            late_of_reuses = Value::Share(risky as f64 / all as f64),
            danger_from = timer_nanos(danger_from(limit))
        );
        let mut finding = Finding::by(&RULE.doc, Severity::Warning, name, said, evidence);
        let below = statement!("below {idle_limit}", idle_limit = idle_limit);
        finding.fix = finding.fix.then(": ", below);
        let client = attribution.client(destination);
        findings.push(for_client(Remedy::ShortenIdle, client, finding));
    }
    findings
}
