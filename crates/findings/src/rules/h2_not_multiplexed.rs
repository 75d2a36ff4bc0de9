//! `h2-not-multiplexed`: several HTTP/2 connections where one would carry all streams.

use super::{Attribution, Doc, Remedy};
use crate::finding::Finding;
use crate::statement::{Value, connections, statement};
use crate::traffic::OpenReason;
use crate::unobserved::Evidence;

pub(super) static DOC: Doc = Doc {
    id: "h2-not-multiplexed",
    what: "The client opened another HTTP/2 connection although one to the same destination had free streams. RFC 9113 section 9.1 asks for one.",
    evidence: "An opening while the same process had an open HTTP/2 connection to the destination whose end had not been announced; the peak overlap of streams against SETTINGS_MAX_CONCURRENT_STREAMS (100 where the server does not say).",
    threshold: "Two avoidable openings. A warning from 3 on, or from 5 % of the destination's time on.",
    false_positives: "Clients open a few in parallel before the first handshake ends. Some use several on purpose, because all streams of one TCP connection wait for one lost packet.",
    fix: "Share one HTTP/2 client (one Client, ClientSession or ManagedChannel) between all callers. If you need several, limit their number",
    risk: "On a lossy link all streams of a connection wait for a lost packet (head-of-line blocking). Behind a balancer, one connection goes to one server",
    needs: &[Evidence::Ends],
    fold: || Box::new(findings),
};

fn findings(bill: &mut Attribution<'_>) -> Vec<Finding> {
    let claims = bill.claim_by(OpenReason::StreamsFree, 2);
    let found = claims.iter().map(|one| {
        let said = one.opened("though an HTTP/2 connection had free streams");
        let evidence = statement!(
            "at most {streams} at the same time, which need {needed}",
            streams = Value::Count(one.counts.streams_at_once(), "stream"),
            needed = connections(one.needed)
        );
        let finding = one.finding(&DOC, said, evidence);
        finding.in_words_of(one.client, Remedy::ShareClient)
    });
    found.collect()
}
