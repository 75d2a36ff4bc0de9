//! `new-client-per-request`: a connection is opened although the same program has an idle one to the same place.

use super::body_not_drained::were;
use super::{Attribution, Doc, Remedy, Rule};
use crate::finding::Finding;
use crate::traffic::OpenReason;

static DOC: Doc = Doc {
    id: "new-client-per-request",
    what: "The program opens a connection although it has an idle one to the same destination: there are several pools, usually because a client, session or agent is made for each call.",
    evidence: "An older connection of the same process (or, in a capture, the same client address) to the same destination that was open, had carried a complete answer, and carried nothing at that moment.",
    threshold: "Two avoidable openings: some clients use two connections in turn by design. A warning from three, or from a twentieth of the destination's time, on.",
    false_positives: "Separate pools on purpose (per tenant, per credential, a browser's partitions). In a capture, several programs behind one address look like one.",
    fix: "Make one client for the life of the program and give it to every call",
    risk: "What hangs on a client is shared too: cookies, default headers, credentials; and a client that lives long must notice that a name leads elsewhere (`pinned-to-old-address`)",
};

pub(super) struct NewClientPerRequest;

impl Rule for NewClientPerRequest {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn findings(&self, bill: &mut Attribution<'_>) -> Vec<Finding> {
        let claims = bill.claim_by(&[OpenReason::IdleExisted], 2);
        let found = claims.into_iter().map(|(destination, openings, claim)| {
            let words = format!(
                "{} opened though the same client had an idle one",
                were(openings)
            );
            Finding::by(
                &DOC,
                claim.severity(),
                bill.name(destination),
                words,
                claim.words(),
            )
            .costing(claim)
            .in_words_of(bill.client(destination), Remedy::ShareClient)
        });
        found.collect()
    }
}
