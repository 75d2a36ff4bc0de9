//! `server-closes-early`: the server's cap on requests, its maximum age or its idle limit ends
//! connections that are still wanted.

use super::attribution::ClaimedOpenings;
use super::{Attribution, Fold, KEPT, Remedy, RuleRow, ServerLimit, for_client};
use crate::{Context, Counts, OpenConnection, OpenReason, at_least, server_limit};
use intact_document::finding::{Finding, RuleDoc, Severity};
use intact_document::statement::{
    Statement, Value, connections, nanos, requests, statement, timer_nanos,
};
use intact_ledger::Evidence;
use intact_ledger::{ClosePoint, Event, Failure, Nanos, Side};
use std::collections::BTreeMap;
use std::net::SocketAddr;

pub(super) static RULE: RuleRow = RuleRow {
    doc: RuleDoc {
        id: "server-closes-early",
        what: "The server ends connections that the client still needs. It allows too few requests (`keepalive_requests`, `max=`), ends them at an age (`MAX_CONNECTION_AGE`), or its idle limit is shorter than the client's pauses.",
        evidence: "Connections that the server ended as announced after several exchanges, or without an announcement while they were idle, where another connection was opened afterwards. How many exchanges they carried and at which age they ended, `Keep-Alive: max=`, the idle limit. Of requests and age, the quantity that varies less is the limit; where neither varies, both are named.",
        threshold: "One opening in vain whose predecessor ended so. A warning from 3 on, or from 2 on that are half of the connections. Informational where only one end was announced, where the ends are of one age, and at a restart or drain. A restart or drain ends connections within 2 s. They differ in requests or idle times, dials were refused afterwards, or three times as many idle times were longer.",
        false_positives: "A request limit spreads clients over servers behind a load balancer: a high one (1,000 and more) costs next to nothing.",
        fix: "Raise the server's request limit, or raise its idle limit above the client's pauses",
        risk: "A longer idle limit costs the server memory and a socket per silent client. Keep it above the idle limit of the proxy in front of the server",
        needs: &[Evidence::Ends],
    },
    fold: || Box::<ServerClosesEarly>::default(),
};

/// The remedy where a server resets connections, which no request limit does.
pub const WHY_RESET: &str = "find out why the server resets connections: a request limit ends them with FIN. Look for a crash or restart of the server, a worker that is killed, an overload, a close with unread bytes, or a firewall between";

/// The remedy for a maximum age.
pub const AGE_LIMIT: &str =
    "Nothing, if the age is wanted: it lets balancers distribute connections again. Else raise it";
/// The remedy where neither requests nor age explain the ends.
const EITHER_LIMIT: &str = "Find out which limit of the server ends them, of requests or of age";
/// Ages of one limit differ by up to this share: gRPC changes its limit by 10 % up or down at
/// random.
const SAME_AGE: f64 = 0.25;

/// Numbers of requests that differ by no more than this share are equal.
const EQUAL_REQUESTS: f64 = 0.05;
/// No server has a shorter maximum age, in nanoseconds.
const LEAST_AGE: u64 = 1_000_000_000;

/// Nanoseconds within which a server that is restarted or drained ends its connections.
const RESTART: u64 = 2_000_000_000;
/// The remedy where it did.
const RESTARTED: &str = "Nothing, if the server was restarted or drained at that moment";
/// The remedy for a limit of requests.
const REQUESTS: &str = "Raise the server's request limit";
/// Its risk.
const BALANCE: &str =
    "A connection that lives longer stays with one server behind a load balancer for longer";
/// The remedy for an idle limit.
const IDLE: &str =
    "Raise the server's idle limit above the client's pauses, or set the client's below it";

/// The remedy where the client does not reuse what the server keeps either.
const NEVER_REUSED: &str = "Let the client reuse its connections first (`new-client-per-request`): no request did, so a longer idle limit alone changes nothing";

/// Least and most of what a limit would count.
#[derive(Clone, Copy)]
pub(super) struct Extent {
    least: u64,
    pub(super) most: u64,
}

impl Extent {
    fn of(measure: u64) -> Extent {
        Extent {
            least: measure,
            most: measure,
        }
    }

    fn add(&mut self, measure: u64) {
        self.least = self.least.min(measure);
        self.most = self.most.max(measure);
    }

    /// How much the most exceeds the least, as a share of the least.
    fn spread(self) -> f64 {
        (self.most - self.least) as f64 / self.least.max(1) as f64
    }
}

/// What explains the announced ends at a destination.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Limit {
    Requests,
    Age,
    Unknown,
}

/// The ends of one kind at a destination.
#[derive(Clone, Copy)]
pub(super) struct Ends {
    pub(super) count: u64,
    first: Nanos,
    last: Nanos,
    /// Exchanges, or idle nanoseconds.
    pub(super) measure: Extent,
    /// Nanoseconds since the connections were opened; absent where that was not observed of each.
    age: Option<Extent>,
    /// The server's address at the last one.
    peer: Option<SocketAddr>,
}

impl Ends {
    /// Adds an end of a connection of a destination.
    pub(super) fn add(
        ends: &mut BTreeMap<usize, Ends>,
        live: &OpenConnection,
        at: Nanos,
        measure: u64,
        age: Option<u64>,
    ) {
        let peer = live.connection.peer;
        let first = Ends {
            peer,
            count: 0,
            first: at,
            last: at,
            measure: Extent::of(measure),
            age: age.map(Extent::of),
        };
        let known = ends.entry(live.destination).or_insert(first);
        known.count += 1;
        known.peer = peer;
        known.first = known.first.min(at);
        known.last = known.last.max(at);
        known.measure.add(measure);
        match (&mut known.age, age) {
            (Some(ages), Some(age)) => ages.add(age),
            (ages, _) => *ages = None,
        }
    }

    /// Whether they came at one moment.
    fn are_at_once(self) -> bool {
        self.last.since(self.first) <= RESTART
    }

    /// Whether several connections ended at one moment although they differ in what a limit counts.
    fn are_restart(self) -> bool {
        self.count > 1 && self.are_at_once() && self.measure.spread() > 0.5
    }

    /// Whether idle connections ended at one moment after idle times that the server allows: most
    /// that were as long did not end one.
    pub(super) fn are_within_limit(self, counts: &Counts) -> bool {
        let gaps = counts.detail.as_ref().map(|detail| &detail.gaps);
        let survived = gaps.map_or(0, |gaps| at_least(gaps, self.measure.most));
        self.are_at_once() && survived >= self.count * 3
    }

    /// Whether all ages are those of one limit.
    fn are_of_one_age(self) -> bool {
        let is_one = |age: Extent| age.least >= LEAST_AGE && age.spread() <= SAME_AGE;
        self.age.is_some_and(is_one)
    }

    /// What the server counts: of requests and age, the one that varies less.
    fn limit(self) -> Limit {
        let requests = self.measure.spread();
        match self.age.map(Extent::spread) {
            _ if self.count == 1 => Limit::Requests,
            // requests at even intervals: both explain the ends
            _ if self.are_of_one_age() && requests <= EQUAL_REQUESTS => Limit::Unknown,
            // a limit of requests is exact, and these vary
            _ if self.are_of_one_age() => Limit::Age,
            _ if requests == 0.0 => Limit::Requests,
            Some(age) if age <= SAME_AGE && age * 2.0 < requests => Limit::Age,
            Some(age) if requests * 2.0 > age => Limit::Unknown,
            _ => Limit::Requests,
        }
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
    /// When a server refused a dial last.
    refused: BTreeMap<SocketAddr, Nanos>,
}

impl Fold for ServerClosesEarly {
    fn observe(&mut self, event: Event<'_>, context: &Context<'_>) {
        if let Event::Opened(dial) = event
            && let (Some(failed), Some(peer)) = (&dial.failed, dial.peer)
            && failed.kind == Failure::Refused
            && self.refused.len() < KEPT
        {
            self.refused.insert(peer, dial.at);
        }
        let Some(live) = context.live else { return };
        match event {
            Event::Exchange(exchange)
                // an end with an error response is no limit
                if exchange.close_sent_by == Some(Side::Server)
                    && live.exchanges > 1
                    && exchange.status.is_none_or(|status| status < 400) =>
            {
                self.announce(live, exchange.end);
            }
            // GOAWAY is part of no exchange
            Event::Closed(closed)
                if closed.close.announced_by == Some(Side::Server)
                    && live.exchanges > 1
                    && (live.multiplexes() || !live.is_retiring()) =>
            {
                self.announce(live, closed.close.at);
            }
            Event::Closed(closed) if closed.close.by == Some(Side::Server) => {
                let is_idle = closed.close.moment == Some(ClosePoint::Idle);
                if let (true, Some(last)) = (is_idle, &live.last) {
                    let at = closed.close.at;
                    let idle = at.since(last.end);
                    Ends::add(&mut self.idle, live, at, idle, None);
                }
            }
            _ => {}
        }
    }

    fn findings(&self, attribution: &mut Attribution<'_>) -> Vec<Finding> {
        let mut findings = self.request_limits(attribution);
        findings.extend(self.idle_limits(attribution));
        findings
    }
}

impl ServerClosesEarly {
    fn announce(&mut self, live: &OpenConnection, at: Nanos) {
        let connection = &live.connection;
        let age = connection.setup.ready().map(|_| at.since(connection.at));
        let ends = &mut self.announced;
        Ends::add(ends, live, at, live.exchanges, age);
    }

    /// Whether the server was away after connections had ended at one moment.
    fn was_away(&self, ends: Ends) -> bool {
        let refused = ends.peer.and_then(|peer| self.refused.get(&peer));
        ends.are_at_once() && refused.is_some_and(|at| *at >= ends.first)
    }

    /// Ends that the server announced: after a number of requests, or at an age.
    fn request_limits(&self, attribution: &mut Attribution<'_>) -> Vec<Finding> {
        let claims = attribution.claim_by(OpenReason::ServerLimit, 1);
        let found = claims.iter().map(|one| {
            let ends = self.announced.get(&one.destination).copied();
            if let Some(ends) = ends.filter(|ends| ends.are_restart() || self.was_away(*ends)) {
                return restarted(&RULE.doc, one, ends);
            }
            let is_once = ends.is_some_and(|ends| ends.count == 1);
            let limit = ends.map_or(Limit::Requests, Ends::limit);
            let said = match limit {
                Limit::Requests if !is_once => {
                    "because the server ends connections after a number of requests"
                }
                Limit::Age => "because the server ends connections at an age",
                _ => "because the server ended the last one, as it had announced",
            };
            let evidence = ends.map_or_else(
                || "it announced the end after several requests".into(),
                |ends| announced(ends, limit),
            );
            let said = one.opened(said);
            let mut finding = one.finding(&RULE.doc, said, evidence);
            finding.fix = match limit {
                Limit::Requests => one.server_fix(ServerLimit::Requests, REQUESTS),
                Limit::Age => one.server_fix(ServerLimit::Age, AGE_LIMIT),
                Limit::Unknown => {
                    let requests = one.server_fix(ServerLimit::Requests, EITHER_LIMIT);
                    requests.and(one.server_line(ServerLimit::Age))
                }
            };
            finding.risk = Some(BALANCE.into());
            if limit == Limit::Age || ends.is_some_and(Ends::are_of_one_age) {
                finding.severity = Severity::Info;
            }
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
    fn idle_limits(&self, attribution: &mut Attribution<'_>) -> Vec<Finding> {
        let claims = attribution.claim_by(OpenReason::ServerIdle, 1);
        let found = claims.iter().map(|one| {
            let ends = self.idle.get(&one.destination).copied();
            let is_restart = |ends: &Ends| {
                ends.are_restart() || ends.are_within_limit(one.counts) || self.was_away(*ends)
            };
            if let Some(ends) = ends.filter(is_restart) {
                return restarted(&RULE.doc, one, ends);
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
            let mut finding = one.finding(&RULE.doc, said, evidence);
            let at_idle = attribution.openings(one.destination, OpenReason::IdleExisted);
            if one.counts.reused == 0 && at_idle > 0 {
                finding.severity = Severity::Info;
                finding.fix = NEVER_REUSED.into();
                return finding;
            }
            finding.fix = one.server_fix(ServerLimit::Idle, IDLE);
            for_client(Remedy::ShortenIdle, one.client, finding)
        });
        found.collect()
    }
}

/// What the server announced, by requests and, where it explains more than they do, by age.
fn announced(ends: Ends, limit: Limit) -> Statement {
    let Extent { least, most } = ends.measure;
    let after = match least == most {
        true => statement!(
            "it announced the end after {requests}",
            requests = requests(least)
        ),
        false => statement!(
            "it announced the end after {least} to {most} requests",
            least = Value::Number(least),
            most = Value::Number(most)
        ),
    };
    match ends.age {
        Some(Extent { least, most }) if limit != Limit::Requests => after.and(statement!(
            "the connections were {youngest} to {oldest} old",
            youngest = timer_nanos(least),
            oldest = timer_nanos(most)
        )),
        _ => after,
    }
}

/// The finding where the server ended connections together.
pub(super) fn restarted(doc: &'static RuleDoc, one: &ClaimedOpenings<'_>, ends: Ends) -> Finding {
    let said = one.opened("because the server ended the last ones at one moment");
    Finding {
        severity: Severity::Info,
        fix: RESTARTED.into(),
        risk: None,
        ..one.finding(doc, said, ends.restart())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PoolOwner;
    use intact_ledger::Connection;

    #[test]
    fn requests_at_even_intervals_leave_a_number_or_an_age() {
        let limit = |requests: [u64; 2], ages_ms: [u64; 2]| {
            let mut ends = BTreeMap::new();
            for (requests, age) in requests.into_iter().zip(ages_ms) {
                let live = OpenConnection::new(Connection::default(), 0, PoolOwner::Unknown);
                Ends::add(
                    &mut ends,
                    &live,
                    Nanos(age),
                    requests,
                    Some(age * 1_000_000),
                );
            }
            ends[&0].limit()
        };
        assert!(limit([21, 21], [2_050, 2_060]) == Limit::Unknown);
        assert!(limit([21, 21], [2_050, 4_100]) == Limit::Requests);
        assert!(limit([21, 40], [2_050, 2_060]) == Limit::Age);
        // gRPC varies its age by 10 %, and requests at even intervals vary with it
        assert!(limit([20, 20], [1_900, 2_100]) == Limit::Unknown);
        assert!(limit([19, 21], [1_900, 2_100]) == Limit::Age);
        // no server has so short an age
        assert!(limit([5, 5], [3, 3]) == Limit::Requests);
    }
}
