//! `new-connection-per-request`: more connections than the requests needed, and no more specific rule knows why.

use super::new_connection_per_query::spoken;
use super::{Attribution, Doc, Remedy, Rule};
use crate::finding::Finding;
use crate::traffic::OpenReason;
use intact_units::number::{timer, whole_percent};
use intact_units::plural::counted;

/// Avoidable connections from which on it speaks: some clients use one more than they need, by design.
const LEAST: u64 = 2;

/// A client that does keep connections closes one all the same when an answer was not read, which cannot always be seen from outside.
const DROPPED: &str = ". If there is one already, look for answers that are not read to their end (`body-not-drained`)";

static DOC: Doc = Doc {
    id: "new-connection-per-request",
    what: "Connections are opened where open ones would do: each pays for lookup, TCP and TLS again.",
    evidence: "Connections opened against those that the peak overlap of requests needs, less what more specific rules have claimed; what became of the connection that each one replaces.",
    threshold: "Two avoidable connections: \"exactly one\" is too strict, since some clients use one more than they need. A warning from three, or from a twentieth of the destination's time, on.",
    false_positives: "Requests minutes apart, where no idle limit would have kept the connection; programs that are meant to make one call and end.",
    fix: "Keep connections open between requests: one client with keep-alive for the life of the program",
    risk: "A kept connection can meet the server's idle timer (`stale-reuse`), stays with one address (`pinned-to-old-address`) and one server of several",
};

pub(super) struct NewConnectionPerRequest;

impl Rule for NewConnectionPerRequest {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn findings(&self, bill: &mut Attribution<'_>) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (destination, name, counts) in bill.destinations() {
            let left = bill.left(destination);
            // for these even three are nothing: `new-connection-per-query` decides
            if left < LEAST || spoken(counts).is_some() {
                continue;
            }
            let claim = bill.claim(destination, left);
            let opened = counted(counts.opened, "connection");
            let needed = bill.needed(destination);
            let mut words = if counts.requests > 0 {
                let requests = counted(counts.requests, "request");
                format!("{opened} for {requests}, {needed} would do")
            } else if counts.unused == counts.opened {
                format!("{opened} opened and never used")
            } else {
                format!("{opened}, at most {needed} at once; what they carried cannot be seen")
            };
            if let known @ 1.. = counts.first + counts.reused {
                let share = counts.reused as f64 / known as f64;
                words.push_str(&format!(
                    "; {} of the requests reused one",
                    whole_percent(share)
                ));
            }
            let reasons = bill.unexplained(destination);
            let told: Vec<String> = reasons
                .iter()
                .map(|(openings, why)| format!("{openings} opened {}", why.words()))
                .collect();
            let evidence = if told.is_empty() {
                claim.words()
            } else {
                told.join("; ")
            };
            let first = reasons.first().map(|(_, why)| *why);
            let client = bill.client(destination);
            let mut finding =
                Finding::by(&DOC, claim.severity(), name, words, evidence).costing(claim);
            let mut remedy = Remedy::ShareClient;
            if let Some((fix, other)) = first.and_then(other_remedy) {
                remedy = other;
                finding.fix = fix.to_owned();
                if let (Some(idle), Remedy::LengthenIdle) = (counts.client_idle, remedy) {
                    finding.fix.push_str(&format!(
                        " (it closes after {} now)",
                        timer(idle as f64 / 1e6)
                    ));
                }
            }
            finding = finding.in_words_of(client, remedy);
            if first == Some(OpenReason::ClientAtOnce) {
                finding.fix.push_str(DROPPED);
            }
            findings.push(finding);
        }
        findings
    }
}

/// What helps where the client does keep connections, but not for long enough, or does not live for long enough itself.
fn other_remedy(why: OpenReason) -> Option<(&'static str, Remedy)> {
    match why {
        OpenReason::ClientIdle => Some((
            "Let the client keep idle connections for longer than its pauses, but for less than the server does",
            Remedy::LengthenIdle,
        )),
        OpenReason::NewProcess => Some((
            "Make the calls from one process that lives on: connections end with the process that opened them",
            Remedy::ShareClient,
        )),
        OpenReason::Broken => Some((
            "Find out why connections break before anything else",
            Remedy::ShareClient,
        )),
        _ => None,
    }
}
