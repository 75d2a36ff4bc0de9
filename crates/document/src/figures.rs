//! The figures that every document has: requests, connections, latency, phases. Must not know who
//! measured them.

use crate::error_responses::ErrorResponses;
use crate::readings::Readings;
use crate::unobserved::Unobserved;
use intact_ledger::{EndedBy, Failure, Group, Histogram, Outcome, Phase, Reuse};
use intact_reading::{Reading, Why};
use serde::Serialize;
use std::collections::BTreeMap;

/// Nanoseconds in a millisecond.
pub const NANOS_PER_MS: f64 = 1e6;
/// Nanoseconds in a second.
pub const NANOS_PER_S: f64 = 1e9;

/// Why nothing worked: no request was answered.
pub const NO_RESPONSE: &str = "no request got a complete response";
/// Why nothing worked: each dial failed.
pub const NOT_OPENED: &str = "no connection could be opened";
/// Why nothing worked: no connection could be used.
pub const NO_HANDSHAKE: &str = "the TLS handshake of every connection failed";

/// Why a statistic has no value though there were enough exchanges.
const BEYOND: Why =
    Why::cannot_see("the longest requests were given up before their response was complete");
/// Why no statistic of exchanges has a value.
const UNTIMED: Why = Why::cannot_see("how long these requests took is unknown");

/// Lets the figures that a document embeds be read as its own fields.
#[macro_export]
#[doc(hidden)]
macro_rules! __embeds {
    ($document:ty, $field:ident: $figures:ty) => {
        impl std::ops::Deref for $document {
            type Target = $figures;

            fn deref(&self) -> &$figures {
                &self.$field
            }
        }
    };
}
pub use crate::__embeds as embeds;

/// What was counted of requests and connections, whatever is missing. Documents show the
/// [`TrafficReadings`](crate::traffic_readings::TrafficReadings) that are made of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrafficCounts {
    /// Requests.
    pub requests: Requests,
    /// Connections.
    pub connections: Connections,
    /// Requests on a connection that an earlier request had used.
    pub reused: u64,
    /// Their share of the requests whose state is known; absent when it is known of none.
    pub reuse: Option<f64>,
}

impl TrafficCounts {
    /// Whether any request had a response, or connections were opened whose content cannot be read.
    pub fn any_success(&self) -> bool {
        self.requests.begun() + self.requests.undecided.unknown > 0
            || (self.requests.total == 0 && self.connections.any_usable())
    }

    /// Why there was no response at all, though the program wanted one: such counts pass no
    /// requirement.
    pub fn no_response(&self) -> Option<&'static str> {
        let connections = &self.connections;
        match self.requests.begun() {
            0 if self.requests.undecided.unknown > 0 => None,
            0 if self.requests.total > 0 => Some(NO_RESPONSE),
            0 if connections.failed.is_empty() || connections.any_usable() => None,
            0 if connections.opened == 0 => Some(NOT_OPENED),
            0 => Some(NO_HANDSHAKE),
            _ => None,
        }
    }

    /// Why no figure describes successful work: there was no response, or no traffic at all.
    pub fn unjudged(&self) -> Option<Why> {
        let reason = self.no_response().map(Why::cannot_see);
        reason.or(self.is_empty().then_some(Why::NoTraffic))
    }

    /// Whether there was neither a request nor a connection.
    pub fn is_empty(&self) -> bool {
        self.requests.total == 0
            && self.connections.opened == 0
            && self.connections.failed.is_empty()
    }
}

/// The counts of observed traffic, which can be added up over runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObservedCounts {
    /// Requests, connections and reuse.
    pub counts: TrafficCounts,
    /// Connections opened beyond those needed.
    pub avoidable: u64,
    /// Requests of which it is known whether their connection was reused.
    pub reuse_known: u64,
    /// What of the traffic is missing from these figures.
    pub unobserved: Unobserved,
    /// Why figures are inferred; empty when all were observed.
    pub inferred: Vec<String>,
    /// Sum of the setups of avoidable connections, each taken as the destination's mean.
    pub wasted_ms: Option<f64>,
}

embeds!(ObservedCounts, counts: TrafficCounts);

impl ObservedCounts {
    /// Connections that a better client, or a server without its limits, would have spared.
    pub fn spared(&self) -> u64 {
        self.avoidable + self.connections.by_server
    }

    /// Adds those of another run.
    pub fn add(&mut self, other: &ObservedCounts) {
        let counts = &mut self.counts;
        counts.requests.add(&other.requests);
        counts.connections.add(&other.connections);
        counts.reused += other.reused;
        self.avoidable += other.avoidable;
        self.reuse_known += other.reuse_known;
        self.unobserved.add(&other.unobserved);
        counts.reuse = share(counts.reused, self.reuse_known);
        for reason in &other.inferred {
            if !self.inferred.contains(reason) {
                self.inferred.push(reason.clone());
            }
        }
        if let Some(wasted) = other.wasted_ms {
            self.wasted_ms = Some(self.wasted_ms.unwrap_or(0.0) + wasted);
        }
    }

    /// The sum over runs.
    pub fn sum<'a>(all: impl IntoIterator<Item = &'a ObservedCounts>) -> ObservedCounts {
        let mut sum = ObservedCounts::default();
        for one in all {
            sum.add(one);
        }
        sum
    }
}

/// A part of a whole; absent where there is no whole.
pub fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// The smallest and the largest share of handshakes that resumed a session, where some are of an
/// `unknown` kind; absent where no kind is known.
pub fn resumed_range(resumed: u64, unknown: u64, all: u64) -> Option<[f64; 2]> {
    let share = |count: u64| count as f64 / all as f64;
    (all > unknown).then(|| [share(resumed), share(resumed + unknown)])
}

/// Counts of requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// Measured exchanges, however they ended.
    pub total: u64,
    /// Complete responses of any status, or as `--expect` demands.
    pub ok: u64,
    /// The others by kind.
    pub failed: BTreeMap<&'static str, u64>,
    /// Of the others, streamed responses that the client ended after a part of the body.
    pub left: u64,
    /// Those of which the recording does not show the outcome.
    pub undecided: Undecided,
    /// Final status codes of complete responses.
    pub status: BTreeMap<u16, u64>,
}

/// Requests of which the recording does not show the outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Undecided {
    /// Those that still waited for a complete response when the recording ended.
    pub pending: u64,
    /// Those whose end was not observed: they may have a complete response.
    pub unknown: u64,
    /// Those whose response had begun, by status.
    pub status: BTreeMap<u16, u64>,
}

impl Undecided {
    /// Counts one with this outcome, and with the status of a response that had begun.
    pub fn add_one(&mut self, outcome: Outcome, status: Option<u16>) {
        match outcome {
            Outcome::Pending => self.pending += 1,
            _ => self.unknown += 1,
        }
        if let Some(status) = status {
            *self.status.entry(status).or_default() += 1;
        }
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.pending + self.unknown
    }

    /// How many may have a status that `is_wanted`.
    pub fn with_status(&self, is_wanted: impl Fn(u16) -> bool) -> u64 {
        let others = self
            .status
            .iter()
            .filter(|(status, _)| !is_wanted(**status));
        self.count() - others.map(|(_, count)| count).sum::<u64>()
    }

    fn add(&mut self, other: &Undecided) {
        self.pending += other.pending;
        self.unknown += other.unknown;
        add_counts(&mut self.status, &other.status);
    }
}

impl Requests {
    /// Counts the requests of a group by outcome. Returns how many of them reused a connection. A
    /// group has no status.
    pub fn add_group(&mut self, group: &Group) -> u64 {
        let count = group.count();
        self.total += count;
        match group.key.outcome {
            Outcome::Ok => self.ok += count,
            Outcome::Failed(kind) => *self.failed.entry(kind.id()).or_default() += count,
            Outcome::Pending => self.undecided.pending += count,
            Outcome::Unknown => self.undecided.unknown += count,
        }
        if group.key.reuse == Some(Reuse::Reused) {
            count
        } else {
            0
        }
    }

    /// Responses that are complete, or that the client ended after a part of a stream: the server
    /// answered.
    pub fn begun(&self) -> u64 {
        self.ok + self.left
    }

    /// Failures, without the responses that the client left.
    pub fn lost(&self) -> u64 {
        self.failures() - self.left
    }

    /// The error responses, if every response is one. Of a response without a status, that is not
    /// known.
    pub fn only_errors(&self) -> Option<ErrorResponses> {
        let errors = ErrorResponses::among(&self.status, None);
        (errors.is_all() && errors.count() >= self.begun()).then_some(errors)
    }

    /// How many failed.
    pub fn failures(&self) -> u64 {
        self.failed.values().sum()
    }

    /// How many failed in this way.
    pub fn failed_with(&self, kind: Failure) -> u64 {
        self.failed.get(kind.id()).copied().unwrap_or(0)
    }

    /// Responses of a class: 5 for 5xx.
    pub fn of_class(&self, class: u16) -> u64 {
        let of_class = self
            .status
            .iter()
            .filter(|(status, _)| **status / 100 == class);
        of_class.map(|(_, count)| count).sum()
    }

    /// Adds the counts of another run or variant.
    pub fn add(&mut self, other: &Requests) {
        self.total += other.total;
        self.ok += other.ok;
        self.left += other.left;
        self.undecided.add(&other.undecided);
        add_counts(&mut self.failed, &other.failed);
        add_counts(&mut self.status, &other.status);
    }
}

/// Counts of connections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Connections {
    /// Transport established, in the measured rounds.
    pub opened: u64,
    /// Those of them whose setup failed (TLS), so that no request could use them.
    pub unusable: u64,
    /// Dials that failed, by kind.
    pub failed: BTreeMap<&'static str, u64>,
    /// Who ended them.
    pub ended_by: BTreeMap<&'static str, u64>,
    /// How many the peak overlap of requests needs, and one more for each that the server ended;
    /// each round opens new ones.
    pub needed: u64,
    /// Those of the needed ones that took the place of one that the server ended, or may have
    /// ended.
    pub by_server: u64,
}

/// For serde: a count that need not be written.
pub fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Connections {
    /// Whether a request could use one of them.
    pub fn any_usable(&self) -> bool {
        self.opened > self.unusable
    }

    /// Those that would do if the server ended none.
    pub fn least(&self) -> u64 {
        self.needed - self.by_server
    }

    /// How many were ended by this.
    pub fn ended(&self, by: EndedBy) -> u64 {
        self.ended_by.get(by.id()).copied().unwrap_or(0)
    }

    /// Dials that failed, and all dials: an unusable connection is one that failed in TLS.
    pub fn dials(&self) -> (u64, u64) {
        let failed: u64 = self.failed.values().sum();
        (failed, failed + self.opened.saturating_sub(self.unusable))
    }

    /// Adds the counts of another run or variant.
    pub fn add(&mut self, other: &Connections) {
        self.opened += other.opened;
        self.unusable += other.unusable;
        self.needed += other.needed;
        self.by_server += other.by_server;
        add_counts(&mut self.failed, &other.failed);
        add_counts(&mut self.ended_by, &other.ended_by);
    }
}

/// Counts by the id of their kind.
pub fn by_id<K: Copy>(
    counts: &BTreeMap<K, u64>,
    id: fn(K) -> &'static str,
) -> BTreeMap<&'static str, u64> {
    let counts = counts.iter();
    counts.map(|(&kind, &count)| (id(kind), count)).collect()
}

/// Adds counts by their key.
pub fn add_counts<K: Ord + Copy>(sum: &mut BTreeMap<K, u64>, other: &BTreeMap<K, u64>) {
    for (&key, count) in other {
        *sum.entry(key).or_default() += count;
    }
}

/// A latency distribution in milliseconds; a percentile with fewer than ten exchanges beyond it is
/// unknown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Latency {
    /// Exact mean.
    pub mean: Reading,
    /// Median.
    pub p50: Reading,
    /// 90th percentile.
    pub p90: Reading,
    /// 99th percentile.
    pub p99: Reading,
    /// 99.9th percentile.
    pub p999: Reading,
    /// Exact maximum.
    pub max: Reading,
}

impl Latency {
    /// The distribution of all exchanges in a histogram of nanoseconds.
    pub fn of(histogram: &Histogram) -> Latency {
        Latency::beyond(histogram, 0)
    }

    /// The same where `beyond` more exchanges took longer than all of these, how long is not known.
    pub fn beyond(histogram: &Histogram, beyond: u64) -> Latency {
        let had = histogram.count();
        let reading = |nanos: Option<f64>, needed: u64| {
            let why = match had {
                0 => Why::NothingHappened,
                had if had >= needed => BEYOND,
                had => Why::TooFew { had, needed },
            };
            Reading::of(nanos.map(|nanos| nanos / NANOS_PER_MS), why)
        };
        // ten beyond the quantile are needed
        let at = |q, needed| reading(histogram.supported_quantile_with(q, beyond), needed);
        let is_whole = beyond == 0;
        let max = histogram.max().filter(|_| is_whole).map(|max| max as f64);
        Latency {
            mean: reading(histogram.mean().filter(|_| is_whole), 1),
            p50: at(0.5, 20),
            p90: at(0.9, 100),
            p99: at(0.99, 1_000),
            p999: at(0.999, 10_000),
            max: reading(max, 1),
        }
    }

    /// The distribution of `had` exchanges whose times are unknown.
    pub fn untimed(had: u64) -> Latency {
        let why = match had {
            0 => Why::NothingHappened,
            _ => UNTIMED,
        };
        Latency::default().each(|_| Reading::unknown(why.clone()))
    }

    /// The same, unknown where requests are missing.
    pub fn observed(&self, unobserved: &Unobserved) -> Latency {
        self.each(|reading| unobserved.time(reading.clone()))
    }

    fn each(&self, of: impl Fn(&Reading) -> Reading) -> Latency {
        Latency {
            mean: of(&self.mean),
            p50: of(&self.p50),
            p90: of(&self.p90),
            p99: of(&self.p99),
            p999: of(&self.p999),
            max: of(&self.max),
        }
    }

    /// Its percentiles: name, share of the exchanges up to it, reading.
    pub fn percentiles_mut(&mut self) -> [(&'static str, f64, &mut Reading); 4] {
        [
            ("p50", 0.5, &mut self.p50),
            ("p90", 0.9, &mut self.p90),
            ("p99", 0.99, &mut self.p99),
            ("p999", 0.999, &mut self.p999),
        ]
    }

    /// Adds its figures under this prefix: empty, or `without-setup.`.
    pub fn add_to(&self, readings: &mut Readings, prefix: &str) {
        for (name, reading) in [
            ("mean", &self.mean),
            ("p50", &self.p50),
            ("p90", &self.p90),
            ("p99", &self.p99),
            ("p999", &self.p999),
            ("max", &self.max),
        ] {
            readings.set(&format!("{prefix}{name}"), reading.times(NANOS_PER_MS));
        }
    }
}

/// One phase over the exchanges that had it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PhaseTime {
    /// Mean, in milliseconds.
    pub mean: Reading,
    /// Median, in milliseconds; unknown with fewer than ten exchanges on each side of it.
    pub p50: Reading,
    /// Exchanges that had it.
    pub count: u64,
}

/// Phases by their id; absent where no exchange had one.
pub type PhaseTimes = BTreeMap<&'static str, Option<PhaseTime>>;

impl PhaseTime {
    /// The phase of the exchanges in a histogram of nanoseconds; absent where none had it.
    pub fn of(histogram: &Histogram) -> Option<PhaseTime> {
        let count = histogram.count();
        let p50 = histogram.supported_quantile(0.5);
        let few = Why::TooFew {
            had: count,
            needed: 20,
        };
        Some(PhaseTime {
            mean: Reading::known(histogram.mean()? / NANOS_PER_MS),
            p50: Reading::of(p50.map(|nanos| nanos / NANOS_PER_MS), few),
            count,
        })
    }

    /// The phases of a group.
    pub fn all(group: Option<&Group>) -> PhaseTimes {
        let of = |phase: Phase| group.and_then(|group| PhaseTime::of(group.phase(phase)));
        let all = Phase::ALL.into_iter();
        all.map(|phase| (phase.id(), of(phase))).collect()
    }

    /// The same phases, unknown where requests are missing.
    pub fn observed(phases: &PhaseTimes, unobserved: &Unobserved) -> PhaseTimes {
        let of = |time: &PhaseTime| PhaseTime {
            mean: unobserved.time(time.mean.clone()),
            p50: unobserved.time(time.p50.clone()),
            count: time.count,
        };
        let phases = phases.iter();
        phases
            .map(|(phase, time)| (*phase, time.as_ref().map(of)))
            .collect()
    }

    /// Adds the figures of each phase, of the first of these that had it.
    pub fn add_to(readings: &mut Readings, phases: &[&PhaseTimes], unobserved: &Unobserved) {
        for phase in Phase::ALL {
            let mut had = phases.iter().filter_map(|phases| phases.get(phase.id()));
            let time = had.find_map(Option::as_ref);
            let name = phase.id().replace('_', "-");
            let reading = |of: fn(&PhaseTime) -> &Reading| {
                let reading = time.map(|time| of(time).times(NANOS_PER_MS));
                unobserved.time(reading.unwrap_or_default())
            };
            readings.set(&format!("{name}.mean"), reading(|time| &time.mean));
            readings.set(&format!("{name}.p50"), reading(|time| &time.p50));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handshakes_of_an_unknown_kind_may_have_resumed_or_not() {
        assert_eq!(resumed_range(1, 3, 4), Some([0.25, 1.0]));
        assert_eq!(resumed_range(1, 0, 4), Some([0.25, 0.25]));
        assert_eq!(resumed_range(0, 4, 4), None);
    }

    #[test]
    fn enough_requests_without_a_duration_are_no_small_sample() {
        let why = |reading: Reading| reading.why().unwrap().to_string();
        let mean = why(Latency::untimed(78).mean);
        assert!(mean.contains("unknown"), "{mean}");
        let mut histogram = Histogram::new();
        (0..5).for_each(|nth| histogram.record(1_000_000 + nth));
        let few = Latency::of(&histogram);
        assert_eq!(why(few.p50), "5 samples measured, at least 20 needed");
        assert!(few.mean.is_known());
    }
}
