//! `broken-response`: connections broke within responses, or with what is no response.

use super::{Attribution, RuleRow};
use crate::{Counts, OpenReason};
use intact_document::finding::{Finding, RuleDoc};
use intact_document::statement::{Value, counts, requests, statement};
use intact_ledger::{Evidence, Failure};
use std::cmp::Reverse;

pub(super) static RULE: RuleRow = RuleRow {
    doc: RuleDoc {
        id: "broken-response",
        what: "Connections broke: the response was cut off, reset, or no HTTP (`IncompleteRead`, `premature close`, `unexpected EOF`). Such a connection carries no further request, whatever the client does.",
        evidence: "Connections opened after one that broke with a failed exchange, or with a RST of the server right after a response; the failures by kind.",
        threshold: many!("One connection."),
        false_positives: "A test of what the client does with broken responses.",
        fix: "Find out why connections are reset: a crash or restart of the server, a limit of a proxy or firewall",
        risk: "A client that retries hides the cause, and may execute a request twice",
        needs: &[Evidence::Ends],
    },
    fold: || Box::new(findings),
};

/// The failures that break a connection.
const BREAKING: [Failure; 4] = [
    Failure::Reset,
    Failure::Truncated,
    Failure::Malformed,
    Failure::TooLarge,
];

/// What to do about them.
fn remedy(kind: Failure) -> &'static str {
    match kind {
        Failure::Truncated => {
            "Find out why the server or a proxy ends connections within responses: a crash, a timeout, a `Content-Length` that is too large"
        }
        Failure::Malformed => {
            "Find out what responds there: another service or protocol on this port, or a server that breaks the framing of its responses"
        }
        Failure::TooLarge => "Find out what makes a part of the response so large",
        _ => RULE.doc.fix,
    }
}

fn findings(attribution: &mut Attribution<'_>) -> Vec<Finding> {
    let claims = attribution.claim_by(OpenReason::Broken, 1);
    let found = claims.into_iter().map(|claimed| {
        let failures = failures(claimed.counts);
        let Some((most, _)) = failures.first() else {
            let said = claimed.opened("after the server had reset the last one");
            return claimed.finding(&RULE.doc, said, claimed.claim.statement());
        };
        let failed: u64 = failures.iter().map(|(_, count)| count).sum();
        let said = statement!(
            "{failed} of {all} got no complete response, and the connection ended with each ({kinds})",
            failed = Value::Number(failed),
            all = requests(claimed.counts.requests),
            kinds = counts(failures.iter().map(|(kind, count)| (kind.id(), *count)))
        );
        let finding = claimed.finding(&RULE.doc, said, claimed.claim.statement());
        finding.fix(remedy(*most))
    });
    found.collect()
}

/// How many requests failed and broke their connections, the most frequent kind first.
fn failures(counts: &Counts) -> Vec<(Failure, u64)> {
    let kinds = BREAKING.iter().map(|kind| (*kind, counts.failed.get(kind)));
    let mut kinds: Vec<_> = kinds
        .filter_map(|(kind, count)| Some((kind, *count?)))
        .collect();
    kinds.sort_by_key(|(_, count)| Reverse(*count));
    kinds
}
