//! `server-closes-early`: the server's cap on requests, its maximum age or its idle limit ends
//! connections that are still wanted.

use super::attribution::ClaimedOpenings;
use super::connection_close_sent::OF_ANSWERED;
use super::{Attribution, Fold, KEPT, RuleRow, ServerLimit};
use crate::open_connection::{Last, is_error};
use crate::open_reason::{AT_ONCE, SEVERAL};
use crate::pool_renewal::{LEAST_AGE, are_of_one_age};
use crate::{Context, Counts, OpenConnection, OpenReason, at_least, server_limit};
use intact_document::finding::{Finding, RuleDoc, Severity};
use intact_document::statement::{
    Statement, Value, connections, nanos, requests, statement, timer_nanos,
};
use intact_ledger::{Close, ClosePoint, Event, Evidence, Failure, Nanos, Side};
use std::collections::BTreeMap;
use std::net::SocketAddr;

pub(super) static RULE: RuleRow = RuleRow {
    doc: RuleDoc {
        id: "server-closes-early",
        what: "The server ends connections that the client still needs. It allows too few requests (`keepalive_requests`, `max=`), ends them at an age (`MAX_CONNECTION_AGE`), or its idle limit is shorter than the client's pauses.",
        evidence: "Connections that the server ended as announced after several exchanges, or without an announcement while they were idle, where another connection was opened afterwards. How many exchanges they carried and at which age they ended, `Keep-Alive: max=`, the idle limit. Of requests and age, the one that does not vary is the limit; where neither does, both are named. Ends at one age without an announcement, where requests and idle times vary.",
        threshold: many!(
            "One opening in vain whose predecessor ended so.",
            "Informational for one announced end, ends of one age, a restart or a drain: these end connections within 2 s that were all open before. They differ in requests or idle times, dials were refused afterwards, or thrice as many idle times were longer."
        ),
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
/// The remedy for one that is not announced.
const UNANNOUNCED_AGE: &str = "Let the server announce the end, or keep connections longer. Or let the client renew connections before that age";
/// The remedy where neither requests nor age explain the ends.
const EITHER_LIMIT: &str = "Find out what ends them: a limit of the server, of requests or of age, or responses that announce the end by themselves";
/// Numbers of requests that differ by no more than this share are equal.
const EQUAL_REQUESTS: f64 = 0.05;
/// Idle times that differ by no more than this share may be those of one limit.
const EQUAL_IDLE: f64 = 0.25;
/// Numbers of requests that differ by more than this share are of no limit of requests.
const VARYING: f64 = 1.0;
/// Nanoseconds within which a server that is restarted or drained ends its connections.
const RESTART: u64 = 2_000_000_000;
/// The remedy where it did.
const RESTARTED: &str = "Nothing, if the server was restarted or drained at that moment";
/// The remedy for a limit of requests.
pub(super) const REQUESTS: &str = "Raise the server's request limit";
/// Its risk.
const BALANCE: &str =
    "A connection that lives longer stays with one server behind a load balancer for longer";
/// The remedy for an idle limit.
const IDLE: &str = "Raise the server's idle limit above the client's pauses";

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

    fn and(self, other: Extent) -> Extent {
        Extent {
            least: self.least.min(other.least),
            most: self.most.max(other.most),
        }
    }

    /// How much the most exceeds the least, as a share of the least.
    pub(super) fn spread(self) -> f64 {
        (self.most - self.least) as f64 / self.least.max(1) as f64
    }
}

/// What explains the announced ends at a destination.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Limit {
    Requests,
    Age,
    Idle,
    Unknown,
}

/// The ends of one kind at a destination.
#[derive(Clone, Copy)]
pub(super) struct Ends {
    pub(super) count: u64,
    first: Nanos,
    last: Nanos,
    /// When the last of the connections was opened.
    opened: Nanos,
    /// Exchanges that they had carried.
    pub(super) requests: Extent,
    /// Nanoseconds since their last exchanges.
    pub(super) idle: Extent,
    /// The same for those that the server made.
    idle_at_server: Option<Extent>,
    /// Nanoseconds since the connections were opened; absent where that was not observed of each.
    age: Option<Extent>,
    /// Those that followed an error response.
    pub(super) errors: u64,
    /// The server's address at the last one.
    peer: Option<SocketAddr>,
}

impl Ends {
    /// Adds an end of a connection of a destination.
    pub(super) fn add(ends: &mut BTreeMap<usize, Ends>, live: &OpenConnection, at: Nanos) {
        Ends::add_by(ends, live, at, Some(Side::Server));
    }

    /// Adds an end that this side made. A client may make it long after the announcement.
    fn add_by(
        ends: &mut BTreeMap<usize, Ends>,
        live: &OpenConnection,
        at: Nanos,
        by: Option<Side>,
    ) {
        let idle = live.last.as_ref().map_or(0, |last| at.since(last.end));
        let connection = &live.connection;
        let one = Ends {
            peer: connection.peer,
            count: 1,
            first: at,
            last: at,
            opened: connection.at,
            requests: Extent::of(live.exchanges),
            idle: Extent::of(idle),
            idle_at_server: (by == Some(Side::Server)).then(|| Extent::of(idle)),
            age: (connection.setup.ready()).map(|_| Extent::of(at.since(connection.at))),
            errors: u64::from(live.last.as_ref().is_some_and(Last::is_error)),
        };
        let known = ends.entry(live.destination);
        known
            .and_modify(|known| *known = known.and(one))
            .or_insert(one);
    }

    fn and(self, other: Ends) -> Ends {
        Ends {
            peer: other.peer,
            count: self.count + other.count,
            first: self.first.min(other.first),
            last: self.last.max(other.last),
            opened: self.opened.max(other.opened),
            requests: self.requests.and(other.requests),
            idle: self.idle.and(other.idle),
            idle_at_server: match (self.idle_at_server, other.idle_at_server) {
                (Some(idle), Some(other)) => Some(idle.and(other)),
                (idle, other) => idle.or(other),
            },
            age: self.age.zip(other.age).map(|(age, other)| age.and(other)),
            errors: self.errors + other.errors,
        }
    }

    /// Whether they came at one moment: all connections were open when the first one ended.
    fn are_at_once(self) -> bool {
        self.last.since(self.first) <= RESTART && self.opened <= self.first
    }

    /// Whether several connections ended at one moment although they differ in what a limit counts.
    fn are_restart(self, measure: Extent) -> bool {
        self.count > 1 && self.are_at_once() && measure.spread() > 0.5
    }

    /// Whether idle connections ended at one moment after idle times that the server allows: most
    /// that were as long did not end one.
    pub(super) fn are_within_limit(self, counts: &Counts) -> bool {
        let gaps = counts.detail.as_ref().map(|detail| &detail.gaps);
        let survived = gaps.map_or(0, |gaps| at_least(gaps, self.idle.most));
        self.are_at_once() && survived >= self.count * 3
    }

    /// Whether all ages are those of one limit.
    fn are_of_one_age(self) -> bool {
        self.age
            .is_some_and(|age| are_of_one_age(age.least, age.most))
    }

    /// Whether all ages are those of one limit, as servers have it.
    fn are_of_usual_age(self) -> bool {
        self.are_of_one_age() && self.age.is_some_and(|age| age.least >= LEAST_AGE)
    }

    /// Whether several connections ended one after the other at one age, though they had carried
    /// different numbers of requests and been idle for different times.
    fn are_only_of_age(self) -> bool {
        self.count >= SEVERAL
            && self.are_of_usual_age()
            && !self.are_at_once()
            && self.requests.spread() > 0.0
            && self.idle.spread() > VARYING
    }

    /// Whether each connection ended after the same number of requests.
    pub(super) fn are_of_one_number(self) -> bool {
        self.count > 1 && self.requests.least > 1 && self.requests.spread() == 0.0
    }

    /// What the server counts: of requests, age and idle time, the one that does not vary. A limit
    /// of requests ends a connection with a response.
    fn limit(self) -> Limit {
        let requests = self.requests.spread();
        let idle = self.idle_at_server.filter(|idle| idle.least >= AT_ONCE);
        if let Some(idle) = idle {
            return match self.requests.most == 1 || idle.spread() <= EQUAL_IDLE {
                true if self.requests.most > 1 && self.are_of_usual_age() => Limit::Unknown,
                true => Limit::Idle,
                false if self.are_of_one_age() => Limit::Age,
                false => Limit::Unknown,
            };
        }
        match self.age.map(Extent::spread) {
            _ if self.count == 1 => Limit::Requests,
            // requests at even intervals: both explain the ends
            _ if requests <= EQUAL_REQUESTS && self.are_of_usual_age() => Limit::Unknown,
            _ if requests == 0.0 => Limit::Requests,
            // a limit of requests is exact, and these vary
            _ if self.are_of_one_age() => Limit::Age,
            _ if requests > VARYING => Limit::Unknown,
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
    /// All ends without an announcement after a complete response.
    unannounced: BTreeMap<usize, Ends>,
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
                    && !exchange.status.is_some_and(is_error) =>
            {
                Ends::add(&mut self.announced, live, exchange.end);
            }
            // GOAWAY is part of no exchange
            Event::Closed(closed)
                if closed.close.announced_by == Some(Side::Server)
                    && (live.exchanges > 1 || live.multiplexes())
                    && (live.multiplexes() || !live.is_retiring()) =>
            {
                let (at, by) = (closed.close.at, closed.close.by);
                Ends::add_by(&mut self.announced, live, at, by);
            }
            Event::Closed(closed) if closed.close.by == Some(Side::Server) => {
                let (at, moment) = (closed.close.at, closed.close.moment);
                if moment == Some(ClosePoint::Idle) && live.last.is_some() {
                    Ends::add(&mut self.idle, live, at);
                }
                if is_unannounced(&closed.close, live) {
                    Ends::add(&mut self.unannounced, live, at);
                }
            }
            _ => {}
        }
    }

    fn findings(&self, attribution: &mut Attribution<'_>) -> Vec<Finding> {
        let mut findings = self.ages(attribution);
        findings.extend(self.request_limits(attribution));
        findings.extend(self.idle_limits(attribution));
        findings
    }
}

impl ServerClosesEarly {
    /// Whether the server was away after connections had ended at one moment.
    fn was_away(&self, ends: Ends) -> bool {
        let refused = ends.peer.and_then(|peer| self.refused.get(&peer));
        ends.are_at_once() && refused.is_some_and(|at| *at >= ends.first)
    }

    /// Ends at an age, without an announcement: some come right after a response, others later.
    fn ages(&self, attribution: &mut Attribution<'_>) -> Vec<Finding> {
        let of_age = self.unannounced.iter();
        let of_age = of_age.filter(|(_, ends)| ends.are_only_of_age() && !self.was_away(**ends));
        let found = of_age.filter_map(|(&destination, ends)| {
            let whys = [OpenReason::NotKept, OpenReason::ServerIdle];
            let one = attribution.claim_at(destination, &whys, SEVERAL)?;
            let said = one.opened("because the server closes connections at an age");
            let evidence = Statement::from("nothing announced the end");
            let age = ends.age.map(how_old);
            let evidence = age.into_iter().fold(evidence, Statement::and);
            let mut finding = one.finding(&RULE.doc, said, evidence);
            finding.fix = one.server_fix(ServerLimit::Age, UNANNOUNCED_AGE);
            finding.risk = Some(BALANCE.into());
            Some(finding)
        });
        found.collect()
    }

    /// Ends that the server announced: after a number of requests, or at an age.
    fn request_limits(&self, attribution: &mut Attribution<'_>) -> Vec<Finding> {
        let claims = attribution.claim_by(OpenReason::ServerLimit, 1);
        let found = claims.iter().map(|one| {
            let ends = self.announced.get(&one.destination).copied();
            if let Some(ends) =
                ends.filter(|ends| ends.are_restart(ends.requests) || self.was_away(*ends))
            {
                return restarted(&RULE.doc, one, ends);
            }
            let is_once = ends.is_some_and(|ends| ends.count == 1);
            let limit = ends.map_or(Limit::Requests, Ends::limit);
            let answered = &attribution.tracker().answered;
            let alone = ends.and_then(|ends| answered.alone(one.destination, ends.count));
            let alone = alone.filter(|_| limit == Limit::Requests);
            let said = match limit {
                Limit::Requests if !is_once => {
                    "because the server ends connections after a number of requests"
                }
                Limit::Age => "because the server ends connections at an age",
                Limit::Idle => "because the server ended the last one while it was idle",
                _ => "because the server ended the last one, as it had announced",
            };
            let evidence = ends.map_or_else(
                || "it announced the end after several requests".into(),
                |ends| announced(ends, limit),
            );
            let mut said = one.opened(said);
            if let Some(answered) = alone {
                let or = statement!(
                    "with its responses to {answered}",
                    answered = answered.value()
                );
                said = said.then(", or ", or);
            }
            let mut finding = one.finding(&RULE.doc, said, evidence);
            finding.fix = match limit {
                Limit::Requests if alone.is_some() => one
                    .server_fix(ServerLimit::Requests, REQUESTS)
                    .then(". Otherwise: ", OF_ANSWERED),
                Limit::Requests => one.server_fix(ServerLimit::Requests, REQUESTS),
                Limit::Age => one.server_fix(ServerLimit::Age, AGE_LIMIT),
                Limit::Idle => one.server_fix(ServerLimit::Idle, IDLE),
                Limit::Unknown => {
                    let requests = one.server_fix(ServerLimit::Requests, EITHER_LIMIT);
                    requests.and(one.server_line(ServerLimit::Age))
                }
            };
            finding.risk = Some(BALANCE.into());
            if ends.is_some_and(Ends::are_of_usual_age) {
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
                ends.are_restart(ends.idle)
                    || ends.are_within_limit(one.counts)
                    || self.was_away(*ends)
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
            finding
        });
        found.collect()
    }
}

/// What the server announced, by requests and, where it explains more than they do, by age.
fn announced(ends: Ends, limit: Limit) -> Statement {
    let Extent { least, most } = ends.requests;
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
    match (limit, ends.age) {
        (Limit::Idle, _) => after.and(statement!(
            "{idle} after the last response",
            idle = timer_nanos(ends.idle_at_server.unwrap_or(ends.idle).least)
        )),
        (Limit::Age | Limit::Unknown, Some(age)) => after.and(how_old(age)),
        _ => after,
    }
}

fn how_old(age: Extent) -> Statement {
    let (youngest, oldest) = (timer_nanos(age.least), timer_nanos(age.most));
    if youngest.to_string() == oldest.to_string() {
        return statement!("the connections were {oldest} old", oldest = oldest);
    }
    statement!(
        "the connections were {youngest} to {oldest} old",
        youngest = youngest,
        oldest = oldest
    )
}

/// Whether the server closed a connection after a complete response, without an announcement.
pub(super) fn is_unannounced(close: &Close, live: &OpenConnection) -> bool {
    let is_after_response = |last: &Last| last.is_ok() && last.close_sent_by.is_none();
    let moments = [Some(ClosePoint::AfterExchange), Some(ClosePoint::Idle)];
    close.by == Some(Side::Server)
        && moments.contains(&close.moment)
        && close.announced_by.is_none()
        && live.last.as_ref().is_some_and(is_after_response)
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
    use intact_ledger::{Connection, Span};

    #[test]
    fn requests_at_even_intervals_leave_a_number_or_an_age() {
        let limit = |requests: [u64; 2], ages_ms: [u64; 2]| {
            let mut ends = BTreeMap::new();
            for (requests, age) in requests.into_iter().zip(ages_ms) {
                let mut connection = Connection::default();
                connection.setup.connect = Some(Span::new(Nanos(0), Nanos(1)));
                let mut live = OpenConnection::new(connection, 0, PoolOwner::Unknown);
                live.exchanges = requests;
                Ends::add(&mut ends, &live, Nanos(age * 1_000_000));
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
