//! What of the traffic was not observed, and which figures are therefore bounds: the one place that
//! decides it, for every document about traffic. Must not know where the figures come from.

use crate::requirement::{Measured, NoData};
use crate::statement;
use intact_ledger::{Caveat, Evidence, Run};
use intact_units::plural::counted;
use std::sync::Arc;

/// The connections carry something that could not be read.
const OPAQUE: NoData = NoData::CannotSee("the connections do not show what they carry");
/// Why nothing can be concluded about the connections of requests that have none.
const NO_CONNECTION_DATA: &str = "the input does not say which connection carried a request";
/// The input has requests, but does not say on which connections.
const NO_CONNECTIONS: NoData = NoData::CannotSee(NO_CONNECTION_DATA);
/// Why nothing can be concluded about reuse.
const NO_REUSE_DATA: &str = "the input does not show which requests reused a connection";
/// No request shows whether its connection was reused.
const NO_REUSE: NoData = NoData::CannotSee(NO_REUSE_DATA);
/// The producer states no evidence at all.
const NOTHING_STATED: &str = "the producer does not state what it observed";

/// Why nothing can be concluded without a kind of evidence.
fn reason(kind: Evidence) -> NoData {
    match kind {
        Evidence::Ends => NoData::CannotSee("the input does not show how connections end"),
        Evidence::Announcements => NoData::CannotSee(
            "the input does not show what is announced on connections (Connection: close, GOAWAY, SETTINGS)",
        ),
        Evidence::Durations => NoData::CannotSee("the input does not show how long requests took"),
        Evidence::Lookups => {
            NoData::CannotSee("no lookup was recorded, and the recording may lack them")
        }
        Evidence::Addresses => {
            NoData::CannotSee("the addresses that a lookup resulted in were not recorded")
        }
        Evidence::Attempts => {
            NoData::CannotSee("a server does not see attempts that do not reach it")
        }
        Evidence::Reuse => NO_REUSE,
        Evidence::Setup => {
            NoData::CannotSee("the input does not show how long each connection took to set up")
        }
        Evidence::Bodies => {
            NoData::CannotSee("the input does not show whether responses were read to their end")
        }
        Evidence::Identities => {
            NoData::CannotSee("the input does not show which user a request belongs to")
        }
    }
}

/// What `run` lacks, in which this number of lookups was seen, and this number without their result.
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
    /// Connections that were open before the recording: whether and when the client opened them
    /// for the traffic that is measured is unknown.
    pub open_before: u64,
    /// Kinds of evidence that the recording lacks.
    pub lacking: Vec<Evidence>,
}

impl Unobserved {
    /// What `caveats` report as missing: the first that is about traffic, and the first that is
    /// about requests alone.
    pub fn by_caveats(caveats: &[Caveat]) -> Unobserved {
        let first = |all_connections| {
            let mut incomplete = caveats.iter().filter(|caveat| caveat.incomplete);
            let found = incomplete.find(|caveat| caveat.all_connections == all_connections);
            found.map(|caveat| caveat.message.as_str().into())
        };
        Unobserved {
            traffic: first(false),
            requests: first(true),
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

    /// All traffic, or a part of it, is missing for this reason.
    pub fn because(reason: &str) -> Unobserved {
        Unobserved {
            traffic: Some(reason.into()),
            ..Unobserved::default()
        }
    }

    /// Whether every connection was observed, and every request is assigned to one.
    pub fn has_all_connections(&self) -> bool {
        self.traffic.is_none() && self.without_connection == 0
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
        let unknown = self.lacking.contains(&Evidence::Reuse);
        self.missing()
            .or_else(|| unknown.then(|| NO_REUSE_DATA.to_owned()))
    }

    /// Which traffic is missing; `None` where all of it was observed.
    pub fn missing(&self) -> Option<String> {
        let missing = self.traffic.as_ref().or(self.requests.as_ref());
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
    pub fn sees(&self, needed: &[Evidence]) -> Result<(), NoData> {
        let lacking = needed
            .iter()
            .find(|evidence| self.lacking.contains(evidence));
        lacking.map_or(Ok(()), |evidence| Err(reason(*evidence)))
    }

    /// Whether a rule that needs this evidence can be applied: without, it has no finding in any
    /// case.
    pub fn can_judge(&self, needs: &[Evidence]) -> bool {
        self.sees(needs).is_ok()
    }

    /// Why rules may have missed something; `None` where they saw all that they judge.
    pub fn hides_findings(&self) -> Option<String> {
        self.reason().or_else(|| {
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
            0 => "the times do not show which requests overlapped",
            _ => "the input does not show which client opened each connection",
        }
    }

    /// A count of requests, out of `total` that were observed.
    pub fn requests(&self, count: u64, total: u64) -> Result<Measured, NoData> {
        if total == 0 && self.opaque > 0 {
            return Err(OPAQUE);
        }
        let read = count.saturating_sub(self.guessed);
        Ok(if self.has_all_requests() {
            Measured::count(count, true)
        } else {
            Measured::count(read, false)
        })
    }

    /// A count of connections, out of `opened` that were observed.
    pub fn connections(&self, count: u64, opened: u64) -> Result<Measured, NoData> {
        if opened == 0 && self.without_connection > 0 {
            return Err(NO_CONNECTIONS);
        }
        Ok(Measured::count(count, self.has_all_connections()))
    }

    /// Connections opened; those that were open before may count, too.
    pub fn opened(&self, opened: u64) -> Result<Measured, NoData> {
        let least = self.connections(opened, opened)?;
        Ok(if least.is_exact() {
            Measured::between(opened as f64, (opened + self.open_before) as f64)
        } else {
            least
        })
    }

    /// Connections that the requests needed: a lower bound where some requests are missing.
    pub fn needed(&self, count: u64, opened: u64) -> Result<Measured, NoData> {
        self.connections(count, opened)?;
        let least = count.saturating_sub(self.spare) as f64;
        Ok(if self.has_all_connections() && self.has_seen_requests() {
            Measured::between(least, (count + self.open_before) as f64)
        } else {
            Measured::at_least(least)
        })
    }

    /// Connections opened beyond those needed. A connection that cannot be read counts as needed
    /// for as long as it is open, so more may be avoidable. Requests and connections that are
    /// missing can change the number either way.
    pub fn avoidable(&self, count: u64, opened: u64) -> Result<Measured, NoData> {
        self.connections(count, opened)?;
        let is_counted = self.has_all_connections() && self.has_seen_requests();
        Ok(match (is_counted, self.opaque) {
            (false, _) => Measured::at_least(0.0),
            (true, 0) => {
                let most = count + self.spare + self.open_before;
                Measured::between(count as f64, most as f64)
            }
            (true, _) => Measured::at_least(count as f64),
        })
    }

    /// The share of `total` requests that reused a connection: `reused` of the `known` ones, and
    /// any number of the others.
    pub fn reuse(&self, reused: u64, known: u64, total: u64) -> Result<Measured, NoData> {
        self.requests(reused, total)?;
        if total == 0 {
            return Err(NoData::NothingHappened);
        }
        if known == 0 {
            return Err(NO_REUSE);
        }
        Ok(if self.has_all_requests() {
            let unknown = total.saturating_sub(known);
            let share = |count: u64| count as f64 / total as f64;
            Measured::between(share(reused), share(reused + unknown))
        } else {
            Measured::between(0.0, 1.0)
        })
    }

    /// Requests that reused a connection.
    pub fn reused(&self, reused: u64, known: u64, total: u64) -> Result<Measured, NoData> {
        let least = self.requests(reused, total)?;
        let unknown = total.saturating_sub(known);
        Ok(if least.is_exact() {
            Measured::between(reused as f64, (reused + unknown) as f64)
        } else {
            least
        })
    }

    /// A statistic over the requests: any value is possible where some of them are missing.
    pub fn statistic(&self, value: f64) -> Measured {
        if self.has_all_requests() {
            Measured::exactly(value)
        } else {
            Measured::at_least(0.0)
        }
    }

    /// Requests for each connection: any value is possible where some of either are missing.
    pub fn ratio(&self, value: f64) -> Measured {
        if self.has_all_requests() && self.has_all_connections() {
            Measured::exactly(value)
        } else {
            Measured::at_least(0.0)
        }
    }

    /// A rate of connections: a lower bound where some of them are missing.
    pub fn at_least_connections(&self, value: f64) -> Measured {
        if self.has_all_connections() {
            Measured::exactly(value)
        } else {
            Measured::at_least(value)
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
        self.opaque += other.opaque;
        self.without_connection += other.without_connection;
        self.guessed += other.guessed;
        self.spare += other.spare;
        self.without_client += other.without_client;
        self.open_before += other.open_before;
        for &evidence in &other.lacking {
            if !self.lacking.contains(&evidence) {
                self.lacking.push(evidence);
            }
        }
    }

    /// A share of the connections, whose state is unknown for some: any value is possible where
    /// some of them are missing.
    pub fn share_of_connections(&self, [low, high]: [f64; 2]) -> Measured {
        if self.has_all_connections() && self.has_seen_requests() {
            Measured::between(low, high)
        } else {
            Measured::between(0.0, 1.0)
        }
    }

    /// A count of findings: what was not observed may hold more.
    pub fn findings(&self, count: usize) -> Measured {
        Measured::count(count as u64, self.hides_findings().is_none())
    }

    /// A count of findings of one rule: none shows nothing where the recording lacks what the rule
    /// `needs`.
    pub fn findings_of(&self, needs: &[Evidence], count: usize) -> Result<Measured, NoData> {
        if count == 0 {
            self.sees(needs)?;
        }
        Ok(self.findings(count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::requirement::Op;

    const ALL: Unobserved = Unobserved {
        traffic: None,
        requests: None,
        opaque: 0,
        without_connection: 0,
        guessed: 0,
        spare: 0,
        without_client: 0,
        open_before: 0,
        lacking: Vec::new(),
    };

    #[test]
    fn unknown_reuse_leaves_a_range() {
        // 20 connections with 2 requests each, where the state of each first request is unknown
        let reuse = ALL.reuse(20, 20, 40).unwrap();
        assert_eq!((reuse.low(), reuse.high()), (0.5, 1.0));
        assert_eq!(reuse.meets(Op::Above, 0.8), None);
        assert_eq!(reuse.meets(Op::AtLeast, 0.5), Some(true));
    }

    #[test]
    fn requests_without_a_connection_decide_nothing_about_connections() {
        let log = Unobserved {
            without_connection: 78,
            ..ALL
        };
        assert_eq!(log.reason().unwrap(), NO_CONNECTION_DATA);
        assert_eq!(ALL.reason(), None);
        assert_eq!(log.connections(0, 0), Err(NO_CONNECTIONS));
        assert_eq!(log.avoidable(0, 0), Err(NO_CONNECTIONS));
        assert_eq!(log.avoidable(0, 3).unwrap().meets(Op::Equal, 0.0), None);
    }

    #[test]
    fn times_with_a_coarse_step_decide_nothing_about_avoidable_connections() {
        let coarse = Unobserved { spare: 19, ..ALL };
        let avoidable = coarse.avoidable(0, 20).unwrap();
        assert_eq!((avoidable.low(), avoidable.high()), (0.0, 19.0));
        assert_eq!(avoidable.meets(Op::Equal, 0.0), None);
        assert_eq!(avoidable.meets(Op::AtMost, 19.0), Some(true));
        // a rule could have found them
        assert_eq!(coarse.findings(0).meets(Op::Equal, 0.0), None);
        assert!(coarse.hides_findings().unwrap().contains("19 connections"));
        assert_eq!(ALL.hides_findings(), None);
    }

    #[test]
    fn connections_from_before_the_recording_may_count_as_opened() {
        let late = Unobserved {
            open_before: 20,
            ..ALL
        };
        let opened = late.opened(0).unwrap();
        assert_eq!((opened.low(), opened.high()), (0.0, 20.0));
        assert_eq!(opened.meets(Op::AtMost, 4.0), None);
        assert_eq!(late.avoidable(0, 0).unwrap().meets(Op::Equal, 0.0), None);
        assert_eq!(late.needed(1, 1).unwrap().meets(Op::AtMost, 4.0), None);
    }

    #[test]
    fn missing_traffic_proves_nothing_absent() {
        let blind = Unobserved::because("the capture was cut");
        assert_eq!(blind.reason().unwrap(), "the capture was cut");
        let none = |measured: Measured| measured.meets(Op::Equal, 0.0);
        assert_eq!(none(blind.connections(0, 0).unwrap()), None);
        assert_eq!(none(blind.avoidable(0, 0).unwrap()), None);
        assert_eq!(none(blind.findings(0)), None);
        assert_eq!(blind.statistic(5.0).meets(Op::Below, 10.0), None);
    }

    #[test]
    fn missing_requests_leave_the_number_of_connections() {
        let caveat = Caveat::incomplete_requests("packets-cut", "packets were cut off");
        let cut = Unobserved::by_caveats(&[caveat]);
        assert_eq!(cut.reason().unwrap(), "packets were cut off");
        let at_most_4 = |measured: Measured| measured.meets(Op::AtMost, 4.0);
        assert_eq!(at_most_4(cut.connections(4, 4).unwrap()), Some(true));
        assert_eq!(at_most_4(cut.requests(4, 4).unwrap()), None);
        assert_eq!(at_most_4(cut.avoidable(0, 4).unwrap()), None);
        assert_eq!(at_most_4(cut.needed(1, 4).unwrap()), None);
        let reuse = cut.reuse(4, 4, 4).unwrap();
        assert_eq!((reuse.low(), reuse.high()), (0.0, 1.0));
        assert_eq!(cut.findings(0).meets(Op::Equal, 0.0), None);
    }

    #[test]
    fn inferred_requests_decide_nothing_about_requests() {
        let inferred = Unobserved { guessed: 3, ..ALL };
        assert_eq!(
            inferred.reason().unwrap(),
            "3 requests were inferred, not read"
        );
        let reuse = inferred.reuse(3, 4, 4).unwrap();
        assert_eq!(reuse.meets(Op::AtLeast, 0.5), None);
        let requests = inferred.requests(4, 4).unwrap();
        assert_eq!(requests.meets(Op::AtLeast, 4.0), None);
        assert_eq!(requests.meets(Op::AtLeast, 1.0), Some(true));
        let connections = inferred.connections(1, 1).unwrap();
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
        assert_eq!(opaque.avoidable(0, 4).unwrap().meets(Op::Equal, 0.0), None);
        assert_eq!(
            opaque.connections(4, 4).unwrap().meets(Op::AtMost, 4.0),
            Some(true)
        );
        assert_eq!(opaque.requests(0, 0), Err(OPAQUE));
    }
}
