//! `h2-not-multiplexed`: several HTTP/2 connections where one would carry all streams.

use super::body_not_drained::were;
use super::{Attribution, Doc, Remedy, Rule};
use crate::finding::Finding;
use crate::traffic::OpenReason;
use intact_units::plural::counted;

static DOC: Doc = Doc {
    id: "h2-not-multiplexed",
    what: "The client opened another HTTP/2 connection although one to the same destination had streams to spare (RFC 9113 section 9.1 asks for one).",
    evidence: "An opening while the same process had an open HTTP/2 connection to the destination whose end had not been announced; the peak overlap of streams against SETTINGS_MAX_CONCURRENT_STREAMS (100 where the server does not say).",
    threshold: "Two avoidable openings. A warning from three, or from a twentieth of the destination's time, on.",
    false_positives: "Clients open a few in parallel before the first handshake is done; some spread over several on purpose, because one TCP connection is one loss domain and one flow of bytes.",
    fix: "Share one HTTP/2 client (one Client, ClientSession or ManagedChannel) between all callers; where it must be several, say how many",
    risk: "On a lossy link all streams of one connection wait for a lost packet (head-of-line blocking), and one connection goes to one server behind a balancer",
};

pub(super) struct H2NotMultiplexed;

impl Rule for H2NotMultiplexed {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn findings(&self, bill: &mut Attribution<'_>) -> Vec<Finding> {
        let claims = bill.claim_by(&[OpenReason::StreamsFree], 2);
        let found = claims.into_iter().map(|(destination, openings, claim)| {
            let words = format!(
                "{} opened though an HTTP/2 connection had free streams",
                were(openings)
            );
            let counts = bill.counts(destination);
            let evidence = format!(
                "at most {} at once, and {} would have carried them",
                counted(counts.streams_at_once(), "stream"),
                counted(bill.needed(destination), "connection")
            );
            Finding::by(
                &DOC,
                claim.severity(),
                bill.name(destination),
                words,
                evidence,
            )
            .costing(claim)
            .in_words_of(bill.client(destination), Remedy::ShareClient)
        });
        found.collect()
    }
}
