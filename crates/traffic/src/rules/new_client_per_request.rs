//! `new-client-per-request`: a connection is opened although the same program has an idle one to
//! the same place.

use super::{Attribution, Remedy, RuleRow, for_client};
use crate::OpenReason;
use intact_document::finding::{Finding, RuleDoc};
use intact_ledger::Evidence;

pub(super) static RULE: RuleRow = RuleRow {
    doc: RuleDoc {
        id: "new-client-per-request",
        what: "The program opens a connection although it has an idle one to the same destination. It has several pools, usually because it makes a client, session or agent per call.",
        evidence: "An older connection to the same destination. It was of the same process (in a capture: the same client address), open and idle at that moment, and had carried a complete response.",
        threshold: many!(
            "Two openings in vain: some clients alternate between two connections by design."
        ),
        false_positives: "One client that does not read its responses to their end: their connections look idle and are not. Separate pools on purpose (per tenant, per credential, a browser's partitions). In a capture, several programs behind one address look like one.",
        fix: "Make one client for the life of the program and give it to every call. If there is one, read or close every response: an unread body keeps its connection from the pool",
        risk: "A shared client shares cookies, default headers and credentials. A long-lived client must notice that a name resolves to other addresses (`pinned-to-old-address`)",
        needs: &[Evidence::Ends],
    },
    fold: || Box::new(findings),
};

fn findings(attribution: &mut Attribution<'_>) -> Vec<Finding> {
    let claims = attribution.claim_by(OpenReason::IdleExisted, 2);
    let found = claims.iter().map(|one| {
        let said = one.opened("though the same client had an idle one");
        let finding = one.finding(&RULE.doc, said, one.claim.statement());
        for_client(Remedy::ShareClient, one.client, finding)
    });
    found.collect()
}
