//! `pool-too-small`: more requests run at once than the pool keeps connections for.

use super::{Attribution, Doc, Remedy};
use crate::finding::Finding;
use crate::statement::{Value, requests, statement};
use crate::traffic::OpenReason;
use crate::unobserved::Evidence;

pub(super) static DOC: Doc = Doc {
    id: "pool-too-small",
    what: "Requests run concurrently on more connections than the pool keeps idle (Go keeps 2 per host, urllib3 1, HttpURLConnection 5). After each burst the pool closes the rest, and the next burst opens them again.",
    evidence: "The client closed connections right after a complete response while it kept and reused others to the same destination; the peak overlap of requests.",
    threshold: "Two avoidable openings whose predecessor was closed so. A warning from 3 on, or from 5 % of the destination's time on.",
    false_positives: "A burst at the start that never comes again.",
    fix: "Let the pool keep as many idle connections for this destination as run concurrently",
    risk: "Idle connections cost the server memory and sockets, and each can meet its idle timer",
    needs: &[Evidence::Ends],
    fold: || Box::new(findings),
};

fn findings(bill: &mut Attribution<'_>) -> Vec<Finding> {
    let claims = bill.claim_by(OpenReason::PoolFull, 2);
    let found = claims.iter().map(|one| {
        let said = one.opened("again because the pool had closed them after use");
        let evidence = statement!(
            "up to {at_once} at the same time, and the client closed connections right after a response while it kept others",
            at_once = requests(one.needed)
        );
        let mut finding = one.finding(&DOC, said, evidence);
        let size = statement!("{needed}", needed = Value::Number(one.needed));
        finding.fix = finding.fix.then(": ", size);
        finding.in_words_of(one.client, Remedy::WidenPool)
    });
    found.collect()
}
