//! `connection-close-sent`: one side says with each exchange that the connection will end.

use super::server_closes_early::Ends;
use super::{Attribution, Fold, Remedy, RuleRow, ServerLimit, for_client};
use crate::open_connection::is_error;
use crate::open_reason::SEVERAL;
use crate::{Context, OpenReason};
use intact_document::finding::{Finding, RuleDoc};
use intact_document::statement::{Value, statement};
use intact_ledger::{Event, Evidence, Side};
use std::collections::BTreeMap;

pub(super) static RULE: RuleRow = RuleRow {
    doc: RuleDoc {
        id: "connection-close-sent",
        what: "`Connection: close` (in HTTP/1.0: no `Connection: keep-alive`) is sent with the first exchange of a connection, so it carries nothing else.",
        evidence: "Exchanges in which the client or the server announced the end; for the server only on the first exchange of a connection, since ending after many is a limit (`server-closes-early`). Or all announcements of the server came with responses to one path or method, after different numbers of requests.",
        threshold: many!("One opening in vain whose predecessor ended so."),
        false_positives: "The very last request of a program may announce the end: it leads to no further opening and is not counted. Servers announce it while they shut down.",
        fix: "Remove `Connection: close` at the side that sends it",
        risk: "Connections that stay open hold sockets on both sides, and can meet the server's idle timer. Set the client's idle limit below the server's",
        needs: &[Evidence::Ends, Evidence::Announcements],
    },
    fold: || Box::<ConnectionCloseSent>::default(),
};

/// Where a client's announcement comes from.
const OF_CLIENT: &str = "Leave `Connection: close` out of the requests";
/// Where a server's announcement comes from.
const OF_SERVER: &str = "Let the server keep connections: look for responses without Content-Length and chunked coding, `Connection: close` set by hand, or a proxy that adds it. The client is not the cause";

/// Where one comes from that only the responses to one path or method have.
pub(super) const OF_ANSWERED: &str = "Let the server keep connections after these responses, too: look for `Connection: close` that their handler sets, a response without Content-Length and chunked coding, or a back end of their own. The client is not the cause";

/// What helps where the error responses announce the end.
pub const OF_ERRORS: &str = "Remove the errors first. nginx closes after 400, 413, 414, 500 and 501, whatever its limits are. 413 is caused by a request body larger than `client_max_body_size`";

#[derive(Default)]
struct ConnectionCloseSent {
    /// Announcements of the server, but those of error responses.
    ends: BTreeMap<usize, Ends>,
}

impl Fold for ConnectionCloseSent {
    fn observe(&mut self, event: Event<'_>, context: &Context<'_>) {
        let (Event::Exchange(exchange), Some(live)) = (event, context.live) else {
            return;
        };
        if exchange.status.is_none_or(is_error) {
            return;
        }
        if exchange.close_sent_by == Some(Side::Server) {
            Ends::add(&mut self.ends, live, exchange.end);
        }
    }

    fn findings(&self, attribution: &mut Attribution<'_>) -> Vec<Finding> {
        let mut found = after_errors(attribution);
        found.extend(self.of_answered(attribution));
        found.extend(announced(attribution));
        found
    }
}

impl ConnectionCloseSent {
    /// The responses to one path or method end connections, after any number of requests.
    fn of_answered(&self, attribution: &mut Attribution<'_>) -> Vec<Finding> {
        let varying = self.ends.iter();
        let varying = varying.filter(|(_, ends)| ends.requests.spread() > 0.0);
        let found = varying.filter_map(|(&destination, ends)| {
            let answered = &attribution.tracker().answered;
            let answered = answered.alone(destination, ends.count)?;
            let whys = [OpenReason::ServerLimit, OpenReason::ServerAnnouncedAtOnce];
            let one = attribution.claim_at(destination, &whys, SEVERAL)?;
            let said = statement!(
                "the server ends connections with its responses to {answered}, so {openings} had to be opened",
                answered = answered.value(),
                openings = Value::Count(one.openings, "new connection")
            );
            let evidence = one.claim.statement().and("no other response announced the end");
            let mut finding = one.finding(&RULE.doc, said, evidence);
            finding.fix = OF_ANSWERED.into();
            Some(finding)
        });
        found.collect()
    }
}

/// The server ends connections with error responses: neither its limits nor the client are the
/// cause.
fn after_errors(attribution: &mut Attribution<'_>) -> Vec<Finding> {
    let claims = attribution.claim_by(OpenReason::AfterError, 1);
    let found = claims.iter().map(|one| {
        let said = statement!(
            "the server ends connections with error responses, so {openings} had to be opened",
            openings = Value::Count(one.openings, "new connection")
        );
        let mut finding = one.finding(&RULE.doc, said, one.claim.statement());
        finding.fix = OF_ERRORS.into();
        finding
    });
    found.collect()
}

fn announced(attribution: &mut Attribution<'_>) -> Vec<Finding> {
    let sides = [
        (OpenReason::ClientAnnounced, "client"),
        (OpenReason::ServerAnnouncedAtOnce, "server"),
    ];
    let found = sides.into_iter().flat_map(|(why, side)| {
        let claims = attribution.claim_by(why, 1).into_iter();
        claims.map(move |one| {
            let openings = Value::Count(one.openings, "new connection");
            let said = match side {
                "server" => statement!(
                    "the server ends connections after one request (`Connection: close`, HTTP/1.0, or a response without a length), so {openings} had to be opened",
                    openings = openings
                ),
                _ => statement!(
                    "the client ends connections by `Connection: close` or HTTP/1.0, so {openings} had to be opened",
                    openings = openings
                ),
            };
            let mut finding = one.finding(&RULE.doc, said, one.claim.statement());
            if side == "server" {
                finding.fix = one.server_fix(ServerLimit::EveryResponse, OF_SERVER);
                return finding;
            }
            finding.fix = OF_CLIENT.into();
            for_client(Remedy::StopClosing, one.client, finding)
        })
    });
    found.collect()
}
