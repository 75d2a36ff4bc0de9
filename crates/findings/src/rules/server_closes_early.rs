//! `server-closes-early`: the server's cap on requests, or its idle limit, ends connections that are still wanted.

use super::attribution::ClaimedOpenings;
use super::{Attribution, Doc, Fold, Remedy, ServerLimit};
use crate::finding::{Finding, Severity};
use crate::statement::{Statement, Value, connections, nanos, requests, statement, timer_nanos};
use crate::traffic::{Context, OpenReason, server_limit};
use crate::unobserved::Evidence;
use intact_ledger::{ClosePoint, Event, Nanos, Side};
use std::collections::BTreeMap;

pub(super) static DOC: Doc = Doc {
    id: "server-closes-early",
    what: "The server ends connections that the client still needs. It allows too few requests (`keepalive_requests`, `max=`), or its idle limit is shorter than the client's pauses.",
    evidence: "Connections that the server ended as announced after several exchanges, or without an announcement while they were idle, where another one was opened afterwards; how many exchanges they carried, `Keep-Alive: max=`, the idle limit.",
    threshold: "One avoidable opening whose predecessor ended so. A warning from 3 on, or from 5 % of the destination's time on. Informational where one end was announced only, and where several connections ended within 2 s although they differ in requests or idle times: a restart or drain.",
    false_positives: "A request limit spreads clients over servers behind a load balancer: a high one (1,000 and more) costs next to nothing.",
    fix: "Raise the server's request limit (nginx `keepalive_requests`, Apache `MaxKeepAliveRequests`), or raise its idle limit (`keepalive_timeout`, `KeepAliveTimeout`, Node's `server.keepAliveTimeout`) above the client's pauses",
    risk: "A longer idle limit costs the server memory and a socket per silent client. Keep it above the idle limit of the proxy in front of the server",
    needs: &[Evidence::Ends],
    fold: || Box::<ServerClosesEarly>::default(),
};

/// The remedy where a server resets connections, which no request limit does.
pub(crate) const WHY_RESET: &str = "find out why the server resets connections: a request limit ends them with FIN. Look for a crash or restart of the server, a worker that is killed, an overload, a close with unread bytes, or a firewall between";

/// Nanoseconds within which a server that is restarted or drained ends its connections.
const RESTART: u64 = 2_000_000_000;
/// The remedy where it did.
const RESTARTED: &str = "Nothing, if the server was restarted or drained at that moment";
/// The remedy for a limit of requests.
const REQUESTS: &str = "Raise the server's request limit (nginx `keepalive_requests`, Apache `MaxKeepAliveRequests`, Node `server.maxRequestsPerSocket`)";
/// The same, of a server that is known.
const REQUESTS_OF_KNOWN: &str = "Raise the server's request limit";
/// Its risk.
const BALANCE: &str =
    "A connection that lives longer stays with one server behind a load balancer for longer";
/// The remedy for an idle limit.
const IDLE: &str = "Raise the server's idle limit (nginx `keepalive_timeout`, Apache `KeepAliveTimeout`, Node `server.keepAliveTimeout`) above the client's pauses, or set the client's below it";

/// The same, of a server that is known.
const IDLE_OF_KNOWN: &str =
    "Raise the server's idle limit above the client's pauses, or set the client's below it";

/// The ends of one kind at a destination.
#[derive(Clone, Copy)]
struct Ends {
    count: u64,
    first: Nanos,
    last: Nanos,
    /// Least and most of what the limit would count: exchanges, or idle nanoseconds.
    least: u64,
    most: u64,
}

impl Ends {
    fn add(ends: &mut BTreeMap<usize, Ends>, destination: usize, at: Nanos, measure: u64) {
        let first = Ends {
            count: 0,
            first: at,
            last: at,
            least: measure,
            most: measure,
        };
        let known = ends.entry(destination).or_insert(first);
        known.count += 1;
        known.first = known.first.min(at);
        known.last = known.last.max(at);
        known.least = known.least.min(measure);
        known.most = known.most.max(measure);
    }

    /// Whether several connections ended at one moment although they differ in what a limit counts.
    fn are_restart(self) -> bool {
        let is_moment = self.last.since(self.first) <= RESTART;
        self.count > 1 && is_moment && self.most as f64 > self.least as f64 * 1.5
    }

    fn restart(self) -> Statement {
        statement!(
            "{ended} ended within {within}, whatever they had carried: a restart or a drain, not a limit",
            ended = connections(self.count),
            within = nanos(self.last.since(self.first) as f64)
        )
    }
}

#[derive(Default)]
struct ServerClosesEarly {
    /// Announced ends, by the exchanges on the connection.
    announced: BTreeMap<usize, Ends>,
    /// Ends of idle connections, by their idle time in nanoseconds.
    idle: BTreeMap<usize, Ends>,
}

impl Fold for ServerClosesEarly {
    fn observe(&mut self, event: Event<'_>, context: &Context<'_>) {
        let Some(live) = context.live else { return };
        match event {
            Event::Exchange(exchange)
                if exchange.close_sent_by == Some(Side::Server) && live.exchanges > 1 =>
            {
                let at = exchange.end;
                Ends::add(&mut self.announced, live.destination, at, live.exchanges);
            }
            Event::Closed(closed) if closed.close.by == Some(Side::Server) => {
                let is_idle = closed.close.moment == Some(ClosePoint::Idle);
                if let (true, Some(last)) = (is_idle, &live.last) {
                    let at = closed.close.at;
                    Ends::add(&mut self.idle, live.destination, at, at.since(last.end));
                }
            }
            _ => {}
        }
    }

    fn findings(&self, bill: &mut Attribution<'_>) -> Vec<Finding> {
        let mut findings = self.request_limits(bill);
        findings.extend(self.idle_limits(bill));
        findings
    }
}

impl ServerClosesEarly {
    /// Ends after a number of requests.
    fn request_limits(&self, bill: &mut Attribution<'_>) -> Vec<Finding> {
        let claims = bill.claim_by(OpenReason::ServerLimit, 1);
        let found = claims.iter().map(|one| {
            let ends = self.announced.get(&one.destination).copied();
            if let Some(ends) = ends.filter(|ends| ends.are_restart()) {
                return restarted(one, ends);
            }
            let evidence = match ends {
                Some(Ends { least, most, .. }) if least == most => statement!(
                    "it announced the end after {requests}",
                    requests = requests(least)
                ),
                Some(Ends { least, most, .. }) => statement!(
                    "it announced the end after {least} to {most} requests",
                    least = Value::Number(least),
                    most = Value::Number(most)
                ),
                None => "it announced the end after several requests".into(),
            };
            let is_once = ends.is_some_and(|ends| ends.count == 1);
            let said = if is_once {
                one.opened("because the server ended the last one, as it had announced")
            } else {
                one.opened("because the server ends connections after a number of requests")
            };
            let mut finding = one.finding(&DOC, said, evidence);
            finding.fix = one.server_fix(ServerLimit::Requests, REQUESTS, REQUESTS_OF_KNOWN);
            finding.risk = Some(BALANCE.into());
            if is_once {
                finding.severity = Severity::Info;
                finding.evidence = finding
                    .evidence
                    .and("one end does not distinguish a limit from a restart");
            }
            finding
        });
        found.collect()
    }

    /// Ends after an idle time.
    fn idle_limits(&self, bill: &mut Attribution<'_>) -> Vec<Finding> {
        let claims = bill.claim_by(OpenReason::ServerIdle, 1);
        let found = claims.iter().map(|one| {
            let ends = self.idle.get(&one.destination).copied();
            if let Some(ends) = ends.filter(|ends| ends.are_restart()) {
                return restarted(one, ends);
            }
            let evidence = match server_limit(one.counts) {
                Some(limit) => statement!(
                    "the server's idle timeout is about {idle_limit}",
                    idle_limit = timer_nanos(limit)
                ),
                None => {
                    Statement::from("their idle time was not observed").and(one.claim.statement())
                }
            };
            let said = one.opened("because the server closed the last one while it was idle");
            let mut finding = one.finding(&DOC, said, evidence);
            finding.fix = one.server_fix(ServerLimit::Idle, IDLE, IDLE_OF_KNOWN);
            finding.in_words_of(one.client, Remedy::ShortenIdle)
        });
        found.collect()
    }
}

/// The finding where the server ended connections together.
fn restarted(one: &ClaimedOpenings<'_>, ends: Ends) -> Finding {
    let said = one.opened("because the server ended the last ones at one moment");
    Finding {
        severity: Severity::Info,
        fix: RESTARTED.into(),
        risk: None,
        ..one.finding(&DOC, said, ends.restart())
    }
}
