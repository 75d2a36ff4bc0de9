//! `server-closes-early`: the server's cap on requests, or its idle limit, ends connections that are still wanted.

use super::{Attribution, Doc, Fold, Remedy};
use crate::finding::Finding;
use crate::statement::{Statement, Value, requests, statement, timer_nanos};
use crate::traffic::{Context, OpenReason, server_limit};
use intact_ledger::{Event, Side};
use std::collections::BTreeMap;

pub(super) static DOC: Doc = Doc {
    id: "server-closes-early",
    what: "The server ends connections that the client still needs: after a number of requests (`keepalive_requests`, `max=`), or after an idle time that is shorter than the client's pauses.",
    evidence: "Connections that the server ended as announced after several exchanges, or without an announcement while they were idle, where another one was opened afterwards; how many exchanges they carried, `Keep-Alive: max=`, the idle limit.",
    threshold: "One avoidable opening whose predecessor ended so. A warning from 3 on, or from 5 % of the destination's time on.",
    false_positives: "A request limit spreads clients over servers behind a load balancer: a high one (1,000 and more) costs next to nothing.",
    fix: "Raise the server's request limit (nginx `keepalive_requests`, Apache `MaxKeepAliveRequests`) or its idle limit (`keepalive_timeout`, `KeepAliveTimeout`, Node's `server.keepAliveTimeout`) above the client's pauses",
    risk: "A longer idle limit costs the server memory and sockets for each silent client; it must stay above the idle limit of the proxy in front of the server",
    fold: || Box::<ServerClosesEarly>::default(),
};

/// The remedy where a server resets connections, which no request limit does.
pub(crate) const WHY_RESET: &str = "find out why the server resets connections: a request limit ends them with FIN. Look for a crash or restart of the server, a worker that is killed, an overload, a close with unread bytes, or a firewall between";

#[derive(Default)]
struct ServerClosesEarly {
    /// Least and most exchanges on connections that the server ended after a response.
    carried: BTreeMap<usize, (u64, u64)>,
}

impl Fold for ServerClosesEarly {
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
        let mut findings = self.request_limits(bill);
        findings.extend(idle_limits(bill));
        findings
    }
}

impl ServerClosesEarly {
    /// Ends after a number of requests.
    fn request_limits(&self, bill: &mut Attribution<'_>) -> Vec<Finding> {
        let claims = bill.claim_by(OpenReason::ServerLimit, 1);
        let found = claims.iter().map(|one| {
            let evidence = match self.carried.get(&one.destination).copied() {
                Some((least, most)) if least == most => statement!(
                    "it announced the end after {requests}",
                    requests = requests(least)
                ),
                Some((least, most)) => statement!(
                    "it announced the end after {least} to {most} requests",
                    least = Value::Number(least),
                    most = Value::Number(most)
                ),
                None => "it announced the end after several requests".into(),
            };
            let said = one.opened("because the server ends connections after a number of requests");
            one.finding(&DOC, said, evidence)
        });
        found.collect()
    }
}

/// Ends after an idle time.
fn idle_limits(bill: &mut Attribution<'_>) -> Vec<Finding> {
    let claims = bill.claim_by(OpenReason::ServerIdle, 1);
    let found = claims.iter().map(|one| {
        let evidence = match server_limit(one.counts) {
            Some(limit) => statement!(
                "the server's idle timeout is about {idle_limit}",
                idle_limit = timer_nanos(limit)
            ),
            None => Statement::from("their idle time was not observed").and(one.claim.statement()),
        };
        let said = one.opened("because the server closed the last one while it was idle");
        let finding = one.finding(&DOC, said, evidence);
        finding.in_words_of(one.client, Remedy::ShortenIdle)
    });
    found.collect()
}
