//! `connection-close-sent`: one side says with each exchange that the connection will end.

use super::{Attribution, Doc, Remedy, Rule};
use crate::finding::Finding;
use crate::statement::{Value, statement, text};
use crate::traffic::OpenReason;

static DOC: Doc = Doc {
    id: "connection-close-sent",
    what: "`Connection: close` (in HTTP/1.0: no `Connection: keep-alive`) is sent with the first exchange of a connection, so it carries nothing else.",
    evidence: "Exchanges in which the client or the server announced the end; for the server only on the first exchange of a connection, since ending after many is a limit (`server-closes-early`).",
    threshold: "One avoidable opening whose predecessor ended so. A warning from 3 on, or from 5 % of the destination's time on.",
    false_positives: "The very last request of a program may announce the end: it leads to no further opening and is not counted. Servers announce it while they shut down.",
    fix: "Leave `Connection: close` out: look for a header set by hand, an option such as DisableKeepAlives or force_close, HTTP/1.0, or a proxy between that adds it",
    risk: "Connections that stay open hold sockets on both sides and can meet the server's idle timer: set the client's idle limit below the server's",
};

pub(super) struct ConnectionCloseSent;

impl Rule for ConnectionCloseSent {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn findings(&self, bill: &mut Attribution<'_>) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (why, side) in [
            (OpenReason::ClientAnnounced, "client"),
            (OpenReason::ServerAnnouncedAtOnce, "server"),
        ] {
            for (destination, openings, claim) in bill.claim_by(&[why], 1) {
                let said = statement!(
                    "the {side} ends connections after one request: {announcements} (`Connection: close` or HTTP/1.0) led to a new connection",
                    side = text(side),
                    announcements = Value::Count(openings, "announcement")
                );
                let client = bill.client(destination).filter(|_| side == "client");
                findings.push(
                    Finding::by(
                        &DOC,
                        claim.severity(),
                        bill.name(destination),
                        said,
                        claim.statement(),
                    )
                    .costing(claim)
                    .in_words_of(client, Remedy::StopClosing),
                );
            }
        }
        findings
    }
}
