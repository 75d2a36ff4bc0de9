//! What of the traffic was not observed, and which figures are therefore bounds: the one place that
//! decides it, for every document about traffic. Must not know where the figures come from.

use crate::requirement::Figure;
use crate::statement;
use intact_ledger::{Caveat, Evidence, Run};
use intact_reading::{Reading, Why};
use intact_units::plural::counted;
use std::sync::Arc;

/// The connections carry something that could not be read.
const OPAQUE: Why = Why::cannot_see("the connections do not show what they carry");
/// Why nothing can be concluded about the connections of requests that have none.
const NO_CONNECTION_DATA: &str = "the input does not say which connection carried a request";
/// The input has requests, but does not say on which connections.
const NO_CONNECTIONS: Why = Why::cannot_see(NO_CONNECTION_DATA);
/// Why nothing can be concluded about reuse.
const NO_REUSE_DATA: &str = "the input does not show which requests reused a connection";
/// No request shows whether its connection was reused.
const NO_REUSE: Why = Why::cannot_see(NO_REUSE_DATA);
/// Some requests do not show whether their connection was reused.
const UNKNOWN_REUSE: Why = Why::cannot_see("reuse is unknown for some of the requests");
/// Whether the server would have kept a connection that the client closed is not known.
const SERVER_LIMIT: &str =
    "the client closes idle connections, and how long the server keeps them was not observed";
/// The server may have ended each connection.
const UNSEEN_ENDS: &str = "the input does not show how connections end";
/// Some handshakes do not show whether they resumed a session.
const UNKNOWN_HANDSHAKES: Why =
    Why::cannot_see("some handshakes do not show whether they resumed a session");
/// The producer states no evidence at all.
const NOTHING_STATED: &str = "the producer does not state what it observed";

/// Why nothing can be concluded without a kind of evidence.
pub const fn reason(kind: Evidence) -> Why {
    Why::cannot_see(match kind {
        Evidence::Ends => UNSEEN_ENDS,
        Evidence::Announcements => {
            "the input does not show what is announced on connections (Connection: close, GOAWAY, SETTINGS)"
        }
        Evidence::Durations => "the input does not show how long requests took",
        Evidence::Lookups => "no lookup was recorded, and the recording may lack them",
        Evidence::Addresses => "the addresses that a lookup resulted in were not recorded",
        Evidence::Attempts => "a server does not see attempts that do not reach it",
        Evidence::Reuse => NO_REUSE_DATA,
        Evidence::Setup => "the input does not show how long each connection took to set up",
        Evidence::Bodies => "the input does not show whether responses were read to their end",
        Evidence::Calls => "the input does not show which requests are calls of gRPC",
        Evidence::Contents => "the input does not show the bytes of connections",
        Evidence::Handshakes => "the input does not show the versions and kinds of TLS handshakes",
        Evidence::Owners => "the input does not show which process opened a connection",
        Evidence::Repeats => "the input does not show which requests are equal",
        Evidence::Processes => "the input does not show which processes use a connection",
        Evidence::Identities => "the input does not show which user a request belongs to",
    })
}

/// What `run` lacks, in which this number of lookups was seen, and this number without their
/// result.
fn lacking(run: &Run, lookups: u64, without_result: u64) -> Vec<Evidence> {
    let is_shown = |kind: &Evidence| match kind {
        Evidence::Lookups => run.sees(Evidence::Lookups) || lookups > 0,
        Evidence::Addresses => run.sees(Evidence::Addresses) && without_result == 0,
        kind => run.sees(*kind),
    };
    let kinds = Evidence::ALL.into_iter();
    kinds.filter(|kind| !is_shown(kind)).collect()
}

/// The parts of the traffic that are missing from the figures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unobserved {
    /// Why traffic is missing, if some is: the first caveat that reports it, or the reason why
    /// nothing was measured.
    pub traffic: Option<Arc<str>>,
    /// Why requests are missing although every connection was observed, if some are.
    pub requests: Option<Arc<str>>,
    /// Why connections are missing although every request was observed, if some are.
    pub connections: Option<Arc<str>>,
    /// Connections whose content could not be read.
    pub opaque: u64,
    /// Answered requests whose connection is unknown.
    pub without_connection: u64,
    /// Requests that were inferred: neither they nor their responses were read, so that there may
    /// be fewer or more.
    pub guessed: u64,
    /// Connections that were needed only if exchanges overlapped, which times with a coarse step
    /// do not show, or if each is of another client ([`Self::without_client`]).
    pub spare: u64,
    /// Connections of a server's recording that do not show their client.
    pub without_client: u64,
    /// Connections that replaced one of which it is unknown whether the server would have kept it:
    /// its end is not shown, or the client had closed it at its idle limit and the server's is
    /// unknown.
    pub perhaps_by_server: u64,
    /// Connections that were open before the recording: whether and when the client opened them
    /// for the traffic that is measured is unknown.
    pub open_before: u64,
    /// Whether there was neither a request nor a connection, so that no rule had anything to judge.
    pub nothing: bool,
    /// Kinds of evidence that the recording lacks.
    pub lacking: Vec<Evidence>,
}

impl Unobserved {
    /// What `caveats` report as missing: the first that is about traffic, the first that is about
    /// requests alone, and the first that is about connections alone.
    pub fn by_caveats(caveats: &[Caveat]) -> Unobserved {
        let first = |has: (bool, bool)| {
            let mut incomplete = caveats.iter().filter(|caveat| caveat.incomplete);
            let found =
                incomplete.find(|caveat| (caveat.all_connections, caveat.all_requests) == has);
            found.map(|caveat| caveat.message.as_str().into())
        };
        Unobserved {
            traffic: first((false, false)),
            requests: first((true, false)),
            connections: first((false, true)),
            ..Unobserved::default()
        }
    }

    /// Adds what `run` lacks, in which `lookups` were seen. Where no evidence was stated, nothing
    /// shows that the recording is complete.
    pub fn add_lacking(&mut self, run: &Run, lookups: u64, without_result: u64) {
        self.lacking = lacking(run, lookups, without_result);
        if run.evidence.is_empty() {
            self.traffic.get_or_insert_with(|| NOTHING_STATED.into());
        }
    }

    /// Whether the recording lacks a kind of evidence.
    pub fn lacks(&self, kind: Evidence) -> bool {
        self.lacking.contains(&kind)
    }

    /// All traffic, or a part of it, is missing for this reason.
    pub fn because(reason: &str) -> Unobserved {
        Unobserved {
            traffic: Some(reason.into()),
            ..Unobserved::default()
        }
    }

    /// Whether every connection was observed, and every request is assigned to one.
    pub fn has_all_connections(&self) -> bool {
        self.traffic.is_none() && self.connections.is_none() && self.without_connection == 0
    }

    /// Whether every request was observed.
    pub fn has_all_requests(&self) -> bool {
        self.has_seen_requests() && self.opaque == 0
    }

    /// Whether every request was observed on the connections that can be read.
    fn has_seen_requests(&self) -> bool {
        self.traffic.is_none() && self.requests.is_none() && self.guessed == 0
    }

    /// Why no gate on the findings can open; `None` where they rest on all of the traffic.
    pub fn reason(&self) -> Option<String> {
        let unknown = self.lacks(Evidence::Reuse);
        self.missing()
            .or_else(|| unknown.then(|| NO_REUSE_DATA.to_owned()))
    }

    /// Which traffic is missing; `None` where all of it was observed.
    pub fn missing(&self) -> Option<String> {
        let missing = [&self.traffic, &self.requests, &self.connections];
        let missing = missing.into_iter().find_map(Option::as_ref);
        match (missing, self.opaque, self.without_connection) {
            (Some(reason), ..) => Some(reason.to_string()),
            (None, 0, 0) if self.guessed > 0 => Some(format!(
                "{:#} inferred, not read",
                statement::requests(self.guessed)
            )),
            (None, 0, 0) => None,
            (None, 0, _) => Some(NO_CONNECTION_DATA.to_owned()),
            (None, opaque, _) => {
                let connections = counted(opaque, "connection");
                Some(format!("the requests on {connections} cannot be seen"))
            }
        }
    }

    /// Whether the recording has the evidence that is `needed`; otherwise why it has not.
    pub fn sees(&self, needed: &[Evidence]) -> Result<(), Why> {
        let lacking = needed.iter().find(|evidence| self.lacks(**evidence));
        lacking.map_or(Ok(()), |evidence| Err(reason(*evidence)))
    }

    /// Why rules may have missed something; `None` where they saw all that they judge.
    pub fn hides_findings(&self) -> Option<String> {
        let nothing = self.nothing.then(|| Why::NoTraffic.to_string());
        self.reason().or(nothing).or_else(|| {
            (self.spare > 0).then(|| {
                let connections = counted(self.spare, "connection");
                let reason = self.spare_reason();
                format!("{reason}, so up to {connections} more may have been avoidable")
            })
        })
    }

    /// Why it is unknown whether the spare connections were needed.
    pub fn spare_reason(&self) -> &'static str {
        match self.without_client {
            0 if self.spare == 0 && self.lacks(Evidence::Ends) => UNSEEN_ENDS,
            0 if self.spare == 0 => SERVER_LIMIT,
            0 => "the times do not show which requests overlapped",
            _ => "the input does not show which client opened each connection",
        }
    }

    /// Why figures of the traffic are bounds.
    fn why(&self) -> Why {
        let reason = self.missing().unwrap_or_else(|| {
            if self.spare + self.perhaps_by_server > 0 {
                return self.spare_reason().to_owned();
            }
            let connections = statement::connections(self.open_before);
            format!("{connections:#} open before the recording")
        });
        Why::from(reason)
    }

    /// A count of requests, out of `total` that were observed.
    pub fn requests(&self, count: u64, total: u64) -> Reading {
        if total == 0 && self.opaque > 0 {
            return Reading::unknown(OPAQUE);
        }
        if self.has_all_requests() {
            return Reading::count(count);
        }
        let read = count.saturating_sub(self.guessed);
        let least = Reading::at_least(read as f64, self.why());
        match self.guessed {
            0 => least,
            _ => least.inferred(count as f64),
        }
    }

    /// A count of connections, out of `opened` that were observed.
    pub fn connections(&self, count: u64, opened: u64) -> Reading {
        if opened == 0 && self.without_connection > 0 {
            return Reading::unknown(NO_CONNECTIONS);
        }
        match self.has_all_connections() {
            true => Reading::count(count),
            false => Reading::at_least(count as f64, self.why()),
        }
    }

    /// Connections that the requests needed: a lower bound where some requests are missing.
    pub fn needed(&self, count: u64, opened: u64) -> Reading {
        if opened == 0 && self.without_connection > 0 {
            return Reading::unknown(NO_CONNECTIONS);
        }
        let least = count.saturating_sub(self.spare + self.perhaps_by_server) as f64;
        if self.has_all_connections() && self.has_seen_requests() {
            let most = (count + self.open_before) as f64;
            return Reading::between(least, most, self.why());
        }
        let least = Reading::at_least(least, self.why());
        match self.guessed {
            0 => least,
            _ => least.inferred(count as f64),
        }
    }

    /// Connections opened beyond those needed. A connection that cannot be read counts as needed
    /// for as long as it is open, so more may be avoidable. Requests and connections that are
    /// missing can change the number either way.
    pub fn avoidable(&self, count: u64, opened: u64) -> Reading {
        if opened == 0 && self.without_connection > 0 {
            return Reading::unknown(NO_CONNECTIONS);
        }
        let is_counted = self.has_all_connections() && self.has_seen_requests();
        match (is_counted, self.opaque) {
            (false, _) if self.guessed > 0 => Reading::unknown(self.why()).inferred(count as f64),
            (false, _) => Reading::unknown(self.why()),
            (true, 0) => {
                let most = count + self.spare + self.perhaps_by_server + self.open_before;
                Reading::between(count as f64, most as f64, self.why())
            }
            (true, _) => Reading::at_least(count as f64, self.why()),
        }
    }

    /// The share of `total` requests that reused a connection: `reused` of the `known` ones, and
    /// any number of the others.
    pub fn reuse(&self, reused: u64, known: u64, total: u64) -> Reading {
        if total == 0 {
            return match self.opaque {
                0 => self.statistic(Reading::unknown(Why::NothingHappened)),
                _ => Reading::unknown(OPAQUE),
            };
        }
        if known == 0 {
            return Reading::unknown(NO_REUSE);
        }
        let unknown = total.saturating_sub(known);
        let share = |count: u64| count as f64 / total as f64;
        if !self.has_all_requests() {
            let any = Reading::unknown(self.why());
            return match (self.guessed, unknown) {
                (1.., 0) => any.inferred(share(reused)),
                _ => any,
            };
        }
        Reading::between(share(reused), share(reused + unknown), UNKNOWN_REUSE)
    }

    /// Requests that reused a connection.
    pub fn reused(&self, reused: u64, known: u64, total: u64) -> Reading {
        if total > 0 && known == 0 {
            return Reading::unknown(NO_REUSE);
        }
        let least = self.requests(reused, total);
        let unknown = total.saturating_sub(known);
        match least.is_known() {
            true => Reading::between(reused as f64, (reused + unknown) as f64, UNKNOWN_REUSE),
            false => least,
        }
    }

    /// The reading of a row of the table of figures: unknown without the evidence that it needs.
    pub fn figure(&self, name: &str, reading: Reading) -> Reading {
        let needs = Figure::named(name).map_or(&[][..], |figure| figure.needs);
        self.sees(needs).map(|()| reading).into()
    }

    /// Why no rule can judge: the producer states no evidence at all, or there was no traffic.
    pub fn judges_nothing(&self) -> Option<Why> {
        let is_all = Evidence::ALL.into_iter().all(|kind| self.lacks(kind));
        let stated = is_all.then_some(Why::cannot_see(NOTHING_STATED));
        stated.or(self.nothing.then_some(Why::NoTraffic))
    }

    /// A count of lookups.
    pub fn lookups(&self, count: u64) -> Reading {
        let seen = match &self.traffic {
            None => Reading::count(count),
            Some(_) => Reading::at_least(count as f64, self.why()),
        };
        self.figure("lookups", seen)
    }

    /// A statistic over the requests: any value is possible where some of them are missing.
    pub fn statistic(&self, value: Reading) -> Reading {
        match self.has_all_requests() {
            true => value,
            false => Reading::unknown(self.why()),
        }
    }

    /// The same of times: unknown where they are not observed.
    pub fn time(&self, value: Reading) -> Reading {
        self.figure("mean", self.statistic(value))
    }

    /// A mean over the setups of connections: any value is possible where some of them are missing.
    pub fn setup(&self, mean: Option<f64>) -> Reading {
        match self.has_all_connections() {
            true => Reading::of(mean, Why::NothingHappened),
            false => Reading::unknown(self.why()),
        }
    }

    /// Requests for each connection: any value is possible where some of either are missing.
    pub fn ratio(&self, value: Option<f64>) -> Reading {
        match self.has_all_requests() && self.has_all_connections() && self.open_before == 0 {
            true => Reading::of(value, Why::NothingHappened),
            false => Reading::unknown(self.why()),
        }
    }

    /// A rate of connections: a lower bound where some of them are missing.
    pub fn at_least_connections(&self, value: f64) -> Reading {
        match self.has_all_connections() {
            true => Reading::known(value),
            false => Reading::at_least(value, self.why()),
        }
    }

    /// Adds what is missing from another run or round.
    pub fn add(&mut self, other: &Unobserved) {
        if self.traffic.is_none() {
            self.traffic.clone_from(&other.traffic);
        }
        if self.requests.is_none() {
            self.requests.clone_from(&other.requests);
        }
        if self.connections.is_none() {
            self.connections.clone_from(&other.connections);
        }
        self.opaque += other.opaque;
        self.without_connection += other.without_connection;
        self.guessed += other.guessed;
        self.spare += other.spare;
        self.perhaps_by_server += other.perhaps_by_server;
        self.without_client += other.without_client;
        self.open_before += other.open_before;
        self.nothing |= other.nothing;
        for &evidence in &other.lacking {
            if !self.lacks(evidence) {
                self.lacking.push(evidence);
            }
        }
    }

    /// A share of the connections, whose state is unknown for some: any value is possible where
    /// some of them are missing.
    pub fn share_of_connections(&self, [low, high]: [f64; 2]) -> Reading {
        match self.has_all_connections() && self.has_seen_requests() {
            true => Reading::between(low, high, UNKNOWN_HANDSHAKES),
            false => Reading::unknown(self.why()),
        }
    }

    /// A count of findings: what was not observed may hold more.
    pub fn findings(&self, count: usize) -> Reading {
        match self.hides_findings() {
            Some(_) if self.nothing && self.reason().is_none() && count == 0 => {
                Reading::unknown(Why::NoTraffic)
            }
            None => Reading::count(count as u64),
            Some(reason) => Reading::at_least(count as f64, Why::from(reason)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use intact_reading::Op;

    const ALL: Unobserved = Unobserved {
        traffic: None,
        requests: None,
        connections: None,
        opaque: 0,
        without_connection: 0,
        guessed: 0,
        spare: 0,
        perhaps_by_server: 0,
        without_client: 0,
        open_before: 0,
        nothing: false,
        lacking: Vec::new(),
    };

    #[test]
    fn unknown_reuse_leaves_a_range() {
        // 20 connections with 2 requests each, where the state of each first request is unknown
        let reuse = ALL.reuse(20, 20, 40);
        assert_eq!((reuse.low(), reuse.high()), (0.5, 1.0));
        assert_eq!(reuse.meets(Op::Above, 0.8), None);
        assert_eq!(reuse.meets(Op::AtLeast, 0.5), Some(true));
    }

    #[test]
    fn missing_connections_leave_requests_known() {
        let caveats = [Caveat::incomplete_connections("x", "no ids")];
        let inferred = Unobserved::by_caveats(&caveats);
        assert_eq!(inferred.requests(11, 11), Reading::count(11));
        assert!(!inferred.connections(3, 3).is_known());
        assert_eq!(inferred.avoidable(0, 3).meets(Op::Equal, 0.0), None);
        assert_eq!(inferred.reason().as_deref(), Some("no ids"));
    }

    #[test]
    fn requests_without_a_connection_decide_nothing_about_connections() {
        let log = Unobserved {
            without_connection: 78,
            ..ALL
        };
        assert_eq!(log.reason().unwrap(), NO_CONNECTION_DATA);
        assert_eq!(ALL.reason(), None);
        assert_eq!(log.connections(0, 0), Reading::unknown(NO_CONNECTIONS));
        assert_eq!(log.avoidable(0, 0), Reading::unknown(NO_CONNECTIONS));
        assert_eq!(log.avoidable(0, 3).meets(Op::Equal, 0.0), None);
    }

    #[test]
    fn nothing_observed_is_no_evidence_of_no_finding() {
        let nothing = Unobserved {
            nothing: true,
            ..ALL
        };
        assert_eq!(nothing.findings(0), Reading::unknown(Why::NoTraffic));
        assert_eq!(nothing.judges_nothing(), Some(Why::NoTraffic));
        assert_eq!(nothing.hides_findings(), Some(Why::NoTraffic.to_string()));
        let mut sum = ALL;
        sum.add(&nothing);
        assert!(sum.nothing);
        // a failed lookup is a finding without a connection
        assert!(nothing.findings(1).is_positive());
    }

    #[test]
    fn times_with_a_coarse_step_decide_nothing_about_avoidable_connections() {
        let coarse = Unobserved { spare: 19, ..ALL };
        let avoidable = coarse.avoidable(0, 20);
        assert_eq!((avoidable.low(), avoidable.high()), (0.0, 19.0));
        assert_eq!(avoidable.meets(Op::Equal, 0.0), None);
        assert_eq!(avoidable.meets(Op::AtMost, 19.0), Some(true));
        // a rule could have found them
        assert_eq!(coarse.findings(0).meets(Op::Equal, 0.0), None);
        assert!(coarse.hides_findings().unwrap().contains("19 connections"));
        assert_eq!(ALL.hides_findings(), None);
    }

    #[test]
    fn connections_from_before_the_recording_were_not_opened_in_it() {
        let late = Unobserved {
            open_before: 20,
            ..ALL
        };
        assert_eq!(late.connections(0, 0), Reading::count(0));
        assert_eq!(late.avoidable(0, 0).meets(Op::Equal, 0.0), None);
        assert_eq!(late.needed(1, 1).meets(Op::AtMost, 4.0), None);
    }

    #[test]
    fn missing_traffic_proves_nothing_absent() {
        let blind = Unobserved::because("the capture was cut");
        assert_eq!(blind.reason().unwrap(), "the capture was cut");
        let none = |measured: Reading| measured.meets(Op::Equal, 0.0);
        assert_eq!(none(blind.connections(0, 0)), None);
        assert_eq!(none(blind.avoidable(0, 0)), None);
        assert_eq!(none(blind.findings(0)), None);
        assert_eq!(
            blind.statistic(Reading::known(5.0)).meets(Op::Below, 10.0),
            None
        );
    }

    #[test]
    fn missing_requests_leave_the_number_of_connections() {
        let caveat = Caveat::incomplete_requests("packets-cut", "packets were cut off");
        let cut = Unobserved::by_caveats(&[caveat]);
        assert_eq!(cut.reason().unwrap(), "packets were cut off");
        let at_most_4 = |measured: Reading| measured.meets(Op::AtMost, 4.0);
        assert_eq!(at_most_4(cut.connections(4, 4)), Some(true));
        assert_eq!(at_most_4(cut.requests(4, 4)), None);
        assert_eq!(at_most_4(cut.avoidable(0, 4)), None);
        assert_eq!(at_most_4(cut.needed(1, 4)), None);
        assert!(cut.reuse(4, 4, 4).is_unknown());
        assert_eq!(cut.findings(0).meets(Op::Equal, 0.0), None);
    }

    #[test]
    fn inferred_requests_decide_nothing_about_requests() {
        let inferred = Unobserved { guessed: 3, ..ALL };
        assert_eq!(
            inferred.reason().unwrap(),
            "3 requests were inferred, not read"
        );
        let reuse = inferred.reuse(3, 4, 4);
        assert_eq!(reuse.meets(Op::AtLeast, 0.5), None);
        let requests = inferred.requests(4, 4);
        assert_eq!(requests.meets(Op::AtLeast, 4.0), None);
        assert_eq!(requests.meets(Op::AtLeast, 1.0), Some(true));
        let connections = inferred.connections(1, 1);
        assert_eq!(connections.meets(Op::Equal, 1.0), Some(true));
        assert_eq!(inferred.findings(0).meets(Op::Equal, 0.0), None);
    }

    #[test]
    fn an_opaque_connection_may_hide_avoidable_ones() {
        let opaque = Unobserved { opaque: 1, ..ALL };
        assert_eq!(
            opaque.reason().unwrap(),
            "the requests on 1 connection cannot be seen"
        );
        assert_eq!(opaque.avoidable(0, 4).meets(Op::Equal, 0.0), None);
        assert_eq!(opaque.connections(4, 4).meets(Op::AtMost, 4.0), Some(true));
        assert_eq!(opaque.requests(0, 0), Reading::unknown(OPAQUE));
    }
}
