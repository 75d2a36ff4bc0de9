//! `server-closes-early`: the server's cap on requests, or its idle limit, ends connections that are still wanted.

use super::body_not_drained::were;
use super::{Attribution, Doc, Remedy, Rule};
use crate::finding::Finding;
use crate::traffic::{Context, OpenReason, server_limit};
use intact_ledger::{Event, Side};
use intact_units::number::timer;
use std::collections::BTreeMap;

static DOC: Doc = Doc {
    id: "server-closes-early",
    what: "The server ends connections that the client goes on to need: after a number of requests (`keepalive_requests`, `max=`), or after an idle time that is shorter than the client's pauses.",
    evidence: "Connections that the server ended as announced after several exchanges, or without a word while they were idle, and that another one was opened after; how many exchanges they carried, `Keep-Alive: max=`, the idle limit.",
    threshold: "One avoidable opening whose predecessor ended so. A warning from three, or from a twentieth of the destination's time, on.",
    false_positives: "A cap on requests spreads clients over servers behind a balancer: where it is high (1,000 and more) it costs next to nothing and is wanted.",
    fix: "Raise the server's cap (nginx `keepalive_requests`, Apache `MaxKeepAliveRequests`) or its idle limit (`keepalive_timeout`, `KeepAliveTimeout`, Node's `server.keepAliveTimeout`) above the client's pauses",
    risk: "A longer idle limit costs the server memory and sockets for each silent client; it must stay above the idle limit of whatever stands before the server",
};

#[derive(Default)]
pub(super) struct ServerClosesEarly {
    /// Least and most exchanges on connections that the server ended after an answer.
    carried: BTreeMap<usize, (u64, u64)>,
}

impl Rule for ServerClosesEarly {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn observe(&mut self, event: Event<'_>, context: &Context<'_>) {
        let (Event::Exchange(exchange), Some(live)) = (event, context.live) else {
            return;
        };
        if exchange.close_sent_by == Some(Side::Server) && live.exchanges > 1 {
            let carried = self.carried.entry(live.destination);
            let (least, most) = carried.or_insert((u64::MAX, 0));
            *least = (*least).min(live.exchanges);
            *most = (*most).max(live.exchanges);
        }
    }

    fn findings(&self, bill: &mut Attribution<'_>) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (destination, openings, claim) in bill.claim_by(&[OpenReason::ServerLimit], 1) {
            let evidence = match self.carried.get(&destination) {
                Some((least, most)) if least == most => {
                    format!("it announced the end after {least} requests")
                }
                Some((least, most)) => {
                    format!("it announced the end after {least} to {most} requests")
                }
                None => "it announced the end after several requests".to_owned(),
            };
            let words = format!(
                "{} opened because the server ends them after a number of requests",
                were(openings)
            );
            let finding = Finding::by(
                &DOC,
                claim.severity(),
                bill.name(destination),
                words,
                evidence,
            );
            findings.push(finding.costing(claim));
        }
        for (destination, openings, claim) in bill.claim_by(&[OpenReason::ServerIdle], 1) {
            let limit = server_limit(bill.counts(destination));
            let evidence = limit.map_or_else(
                || {
                    format!(
                        "how long they had been idle was not seen; {}",
                        claim.words()
                    )
                },
                |limit| {
                    format!(
                        "the server's idle limit is about {}",
                        timer(limit as f64 / 1e6)
                    )
                },
            );
            let words = format!(
                "{} opened because the server had closed the last one while it was idle",
                were(openings)
            );
            let finding = Finding::by(
                &DOC,
                claim.severity(),
                bill.name(destination),
                words,
                evidence,
            );
            findings.push(
                finding
                    .costing(claim)
                    .in_words_of(bill.client(destination), Remedy::ShortenIdle),
            );
        }
        findings
    }
}
