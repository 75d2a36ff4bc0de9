//! `pool-too-small`: more requests run at once than the pool keeps connections for.

use super::{Attribution, Doc, Remedy, Rule};
use crate::finding::Finding;
use crate::traffic::OpenReason;
use intact_units::plural::counted;

static DOC: Doc = Doc {
    id: "pool-too-small",
    what: "Requests run at once on more connections than the pool keeps idle (Go keeps 2 for each host, urllib3 1, HttpURLConnection 5): after each burst the rest is closed, and opened again for the next.",
    evidence: "The client closed connections right after a complete answer while it kept and reused others to the same destination; the peak overlap of requests.",
    threshold: "Two avoidable openings whose predecessor was closed so. A warning from three, or from a twentieth of the destination's time, on.",
    false_positives: "A burst at the start that never comes again.",
    fix: "Let the pool keep as many idle connections for this destination as run at once",
    risk: "Idle connections cost the server memory and sockets, and each can meet its idle timer",
};

pub(super) struct PoolTooSmall;

impl Rule for PoolTooSmall {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn findings(&self, bill: &mut Attribution<'_>) -> Vec<Finding> {
        let claims = bill.claim_by(&[OpenReason::PoolFull], 2);
        let found = claims.into_iter().map(|(destination, openings, claim)| {
            let needed = bill.needed(destination);
            let words = format!(
                "{} had to be opened again because the pool had closed them after use",
                counted(openings, "connection")
            );
            let evidence = format!(
                "up to {} at once, and the client closed connections right after an answer while it kept others",
                counted(needed, "request")
            );
            let mut finding =
                Finding::by(&DOC, claim.severity(), bill.name(destination), words, evidence);
            finding.fix = format!("{}: {needed}", finding.fix);
            finding
                .costing(claim)
                .in_words_of(bill.client(destination), Remedy::WidenPool)
        });
        found.collect()
    }
}
