//! Requests and connections as readings: the same fields in JSON, gates and pages of every document
//! about traffic. Made once, from what was counted and what was not observed.

use crate::figures::{ObservedCounts, TrafficCounts, Undecided};
use crate::readings::Readings;
use crate::unobserved::{Unobserved, reason};
use intact_ledger::{Evidence, Failure};
use intact_reading::{Reading, Why};
use serde::Serialize;
use std::collections::BTreeMap;

/// What traffic readings are made of.
#[derive(Clone, Copy, Debug)]
pub struct CountedTraffic<'a> {
    /// What was counted.
    pub counts: &'a TrafficCounts,
    /// What is missing from it.
    pub unobserved: &'a Unobserved,
    /// Connections opened beyond those needed.
    pub avoidable: u64,
    /// Requests of which it is known whether their connection was reused.
    pub reuse_known: u64,
    /// Failed lookups before which no request was sent; 0 where they count as failed requests.
    pub lookups_in_vain: u64,
    /// Whether dials and requests are counted separately, so that a request may have waited for a
    /// dial that failed, and be counted nowhere.
    pub has_dials: bool,
}

impl<'a> CountedTraffic<'a> {
    /// That of an observed program, of which this is missing.
    pub fn observed(
        counted: &'a ObservedCounts,
        unobserved: &'a Unobserved,
        lookups_in_vain: u64,
    ) -> CountedTraffic<'a> {
        CountedTraffic {
            counts: &counted.counts,
            unobserved,
            avoidable: counted.avoidable,
            reuse_known: counted.reuse_known,
            lookups_in_vain,
            has_dials: true,
        }
    }
}

/// Requests and connections of a document, or of a part of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct TrafficReadings {
    /// Requests.
    pub requests: RequestReadings,
    /// Connections.
    pub connections: ConnectionReadings,
    /// Requests on a connection that an earlier request had used.
    pub reused: Reading,
    /// Their share of all requests.
    pub reuse: Reading,
    /// Connections opened beyond those needed.
    pub avoidable: Reading,
    /// Connections that would not have been needed without the server's limits.
    pub avoidable_by_server: Reading,
}

/// Requests (`requests` in every JSON document).
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct RequestReadings {
    /// Measured exchanges, however they ended.
    pub total: Reading,
    /// Complete responses of any status, or as `--expect` demands.
    pub ok: Reading,
    /// All that failed, by kind; `other` stands for kinds that are not listed, where there may be
    /// some.
    pub failed: BTreeMap<&'static str, Reading>,
    /// Final status codes of complete responses; `other` as above.
    pub status: BTreeMap<String, Reading>,
    /// All that failed; of a bench warm-up too, which `total` has not.
    pub failures: Reading,
    /// All that failed, as a share.
    pub failed_share: Reading,
    /// A kind or a status that is not listed.
    #[serde(skip)]
    other: Reading,
    /// A kind of failure that the recording cannot show.
    #[serde(skip)]
    hidden: BTreeMap<&'static str, Reading>,
    /// Status classes.
    #[serde(skip)]
    classes: Vec<Reading>,
}

/// The key of kinds and status codes that are not listed.
const OTHER: &str = "other";

/// Connections (`connections` in every JSON document).
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct ConnectionReadings {
    /// Transport established, in the measured rounds.
    pub opened: Reading,
    /// Those of them whose setup failed (TLS), so that no request could use them.
    #[serde(skip_serializing_if = "is_zero")]
    pub unusable: Reading,
    /// Dials that failed, by kind.
    pub failed: BTreeMap<&'static str, Reading>,
    /// Who ended them.
    pub ended_by: BTreeMap<&'static str, Reading>,
    /// How many the peak overlap of requests needs, and one more for each that the server ended;
    /// each round opens new ones.
    pub needed: Reading,
    /// All dials that failed.
    pub failures: Reading,
}

fn is_zero(reading: &Reading) -> bool {
    reading.value() == Some(0.0) || reading.is_unknown()
}

impl TrafficReadings {
    /// What is known of counted traffic. Zero is a value of a count, but a gate on traffic that
    /// went elsewhere must not pass: without any traffic only the amount of traffic is zero.
    pub fn of(counted: CountedTraffic<'_>) -> TrafficReadings {
        let CountedTraffic {
            counts, unobserved, ..
        } = counted;
        let is_nothing = counts.is_empty() && unobserved.missing().is_none();
        let unless_nothing = |reading: Reading| match is_nothing {
            true => Reading::unknown(Why::NoTraffic),
            false => reading,
        };
        let (total, opened) = (counts.requests.total, counts.connections.opened);
        let connections = &counts.connections;
        let requests = RequestReadings::of(counted, &unless_nothing);
        let of_connections = |count: u64| unobserved.connections(count, opened);
        let by = |counts: &BTreeMap<&'static str, u64>| -> BTreeMap<&'static str, Reading> {
            let counts = counts.iter();
            counts
                .map(|(kind, count)| (*kind, of_connections(*count)))
                .collect()
        };
        let dials = of_connections(connections.failed.values().sum());
        let reused = unobserved.reused(counts.reused, counted.reuse_known, total);
        let reuse = unobserved.reuse(counts.reused, counted.reuse_known, total);
        let by_server = unobserved.connections(connections.by_server, opened);
        let by_server = unobserved.figure("avoidable-by-server", by_server);
        TrafficReadings {
            requests,
            connections: ConnectionReadings {
                opened: of_connections(opened),
                unusable: of_connections(connections.unusable),
                failed: by(&connections.failed),
                ended_by: by(&connections.ended_by),
                needed: unless_nothing(unobserved.needed(connections.needed, opened)),
                failures: unobserved.figure("connections-failed", dials),
            },
            reused: unless_nothing(unobserved.figure("reused", reused)),
            reuse: unless_nothing(unobserved.figure("reuse", reuse)),
            avoidable: unless_nothing(unobserved.avoidable(counted.avoidable, opened)),
            avoidable_by_server: unless_nothing(by_server),
        }
    }

    /// What the connections cost that were opened in vain, by the client or for the server's
    /// limits: `whole` for the `counted` ones, and as much for each where there may be more or
    /// fewer. Without a cost no setup was seen.
    pub fn cost(&self, whole: Option<f64>, counted: u64) -> Reading {
        let each = whole.filter(|_| counted > 0);
        let most = self.avoidable.high();
        let spared = match (self.avoidable_by_server.value(), self.avoidable.why()) {
            (Some(by_server), _) => self.avoidable.plus(&Reading::known(by_server)),
            // the client or the server: which of them does not matter to the cost
            (None, Some(why)) if most.is_finite() => {
                Reading::between(counted as f64, most, why.clone())
            }
            (None, _) => self.avoidable.clone(),
        };
        match (spared.why(), each) {
            (None, _) => Reading::of(whole, reason(Evidence::Setup)),
            (Some(_), Some(each)) => spared.times(each / counted as f64),
            (Some(why), None) => Reading::unknown(why.clone()),
        }
    }

    /// Adds failures of a kind that no request on the wire shows: between none and `most`.
    pub fn add_unsent(&mut self, kind: Failure, most: u64, why: &Why) {
        let unsent = Reading::between(0.0, most as f64, why.clone());
        if unsent.is_known() {
            return;
        }
        let requests = &mut self.requests;
        requests.failures = requests.failures.plus(&unsent);
        requests.failed_share = Reading::unknown(why.clone());
        let of_kind = requests.hidden.remove(kind.id());
        let of_kind = of_kind.or_else(|| requests.failed.remove(kind.id()));
        let of_kind = of_kind.map_or(unsent.clone(), |seen| seen.plus(&unsent));
        requests.failed.insert(kind.id(), of_kind);
    }

    /// The mean of this number of runs.
    pub fn per_run(mut self, runs: f64) -> TrafficReadings {
        for reading in self.counts_mut() {
            *reading = reading.times(1.0 / runs);
        }
        self
    }

    /// The same where nothing was measured for this reason: also zero is no value.
    pub fn unmeasured(&self, why: &Why) -> TrafficReadings {
        let mut all = self.clone();
        for reading in all.counts_mut() {
            *reading = Reading::unknown(why.clone());
        }
        for share in [&mut all.requests.failed_share, &mut all.reuse] {
            *share = Reading::unknown(why.clone());
        }
        all
    }

    /// Adds requests that failed and were not measured, by kind: failures are all that failed.
    pub fn add_failures(&mut self, unmeasured: &BTreeMap<&'static str, u64>) {
        let requests = &mut self.requests;
        let is_nothing = requests.total.is_unknown();
        // where nothing was measured, these are all
        let with = |reading: &Reading, more: u64| match is_nothing && reading.is_unknown() {
            true => Reading::count(more),
            false => reading.plus(&Reading::count(more)),
        };
        for (&kind, &count) in unmeasured {
            let hidden = requests.hidden.remove(kind);
            let before = requests.failed.get(kind).or(hidden.as_ref());
            let sum = with(before.unwrap_or(&requests.other), count);
            requests.failed.insert(kind, sum);
        }
        let more: u64 = unmeasured.values().sum();
        if more > 0 {
            requests.failures = with(&requests.failures, more);
        }
    }

    /// All counts.
    fn counts_mut(&mut self) -> impl Iterator<Item = &mut Reading> {
        let (requests, connections) = (&mut self.requests, &mut self.connections);
        let single = [
            &mut requests.total,
            &mut requests.ok,
            &mut requests.failures,
            &mut requests.other,
            &mut connections.opened,
            &mut connections.unusable,
            &mut connections.needed,
            &mut connections.failures,
            &mut self.reused,
            &mut self.avoidable,
            &mut self.avoidable_by_server,
        ];
        let by_kind = [&mut requests.failed, &mut requests.hidden];
        let by_end = [&mut connections.failed, &mut connections.ended_by];
        let by_id = by_kind.into_iter().chain(by_end);
        let all = single
            .into_iter()
            .chain(by_id.flat_map(BTreeMap::values_mut));
        let all = all.chain(requests.status.values_mut());
        all.chain(&mut requests.classes)
    }

    /// Adds these figures to those of a subject.
    pub fn add_to(&self, readings: &mut Readings) {
        self.requests.add_to(readings);
        let connections = &self.connections;
        for (name, reading) in [
            ("connections", &connections.opened),
            ("connections-failed", &connections.failures),
            ("needed", &connections.needed),
            ("avoidable", &self.avoidable),
            ("avoidable-by-server", &self.avoidable_by_server),
            ("reused", &self.reused),
            ("reuse", &self.reuse),
        ] {
            readings.set(name, reading.clone());
        }
    }
}

impl RequestReadings {
    fn of(counted: CountedTraffic<'_>, unless_nothing: &dyn Fn(Reading) -> Reading) -> Self {
        let CountedTraffic {
            counts, unobserved, ..
        } = counted;
        let requests = &counts.requests;
        let total = requests.total;
        let of_requests = |count: u64| unobserved.requests(count, total);
        let certain = |count: u64| unless_nothing(of_requests(count));
        let undecided = &requests.undecided;
        // requests whose outcome is not in the recording may be of any kind
        let or_more = |reading: Reading, more: u64| match more {
            0 => reading,
            more => reading.plus(&Reading::between(
                0.0,
                more as f64,
                undecided_why(undecided),
            )),
        };
        // of what waited for a lookup that failed, nothing was sent; that may be several requests
        let lookups = counted.lookups_in_vain;
        let in_vain = lookups.saturating_sub(requests.failed_with(Failure::Lookup));
        let unsent = |kind: Failure| match counted.has_dials {
            true if (Failure::Proxy..=Failure::Tls).contains(&kind) => {
                let dials = counts.connections.failed.get(kind.id());
                let dials = dials.copied().unwrap_or_default();
                dials.saturating_sub(requests.failed_with(kind))
            }
            _ => 0,
        };
        let dials: u64 = Failure::ALL.iter().map(|kind| unsent(*kind)).sum();
        let failures = requests.failures() + in_vain;
        let failures = match in_vain + dials {
            0 => or_more(certain(failures), undecided.count()),
            _ => Reading::at_least(failures as f64, may_have_waited(in_vain, dials)),
        };
        let failed_share = match (total, failures.high().is_finite()) {
            (0, _) => unobserved.statistic(Reading::unknown(Why::NothingHappened)),
            (total, true) => failures.times(1.0 / total as f64),
            (_, false) => Reading::unknown(failures.why().cloned().unwrap_or(Why::OnlyRange)),
        };
        let mut failed = BTreeMap::new();
        let mut hidden = BTreeMap::new();
        for kind in Failure::ALL {
            let count = requests.failed_with(kind);
            let own_dials = unsent(kind);
            let own_lookups = if kind == Failure::Lookup { in_vain } else { 0 };
            let reading = if own_dials + own_lookups > 0 {
                let why = may_have_waited(own_lookups, own_dials);
                Reading::at_least((count + own_lookups) as f64, why)
            } else {
                or_more(certain(count), undecided.count())
            };
            if count > 0 {
                failed.insert(kind.id(), reading);
            } else if let Err(why) = unobserved.sees(evidence_of(kind)) {
                hidden.insert(kind.id(), Reading::unknown(why));
            } else {
                hidden.insert(kind.id(), reading);
            }
        }
        let status = requests.status.iter();
        let mut status: BTreeMap<String, Reading> = status
            .map(|(code, count)| {
                let more = undecided.with_status(|status| status == *code);
                (code.to_string(), or_more(certain(*count), more))
            })
            .collect();
        let other = or_more(certain(0), undecided.count());
        if !other.is_known() {
            failed.insert(OTHER, other.clone());
            status.insert(OTHER.to_owned(), other.clone());
        }
        RequestReadings {
            total: of_requests(total),
            ok: or_more(certain(requests.ok), undecided.unknown),
            failed,
            status,
            failures,
            failed_share,
            other,
            hidden,
            classes: (1..=5)
                .map(|class| {
                    let more = undecided.with_status(|status| status / 100 == class);
                    or_more(certain(requests.of_class(class)), more)
                })
                .collect(),
        }
    }

    fn add_to(&self, readings: &mut Readings) {
        readings.set("requests", self.total.clone());
        readings.set("ok", self.ok.clone());
        readings.set("failed", self.failures.clone());
        readings.set("failed-share", self.failed_share.clone());
        let listed = self.failed.iter().filter(|(kind, _)| **kind != OTHER);
        for (kind, reading) in self.hidden.iter().chain(listed) {
            readings.set(&format!("failed.{kind}"), reading.clone());
            if *kind == Failure::Stale.id() {
                readings.set("stale", reading.clone());
            }
        }
        for (code, reading) in self.status.iter().filter(|(code, _)| *code != OTHER) {
            readings.set(&format!("status.{code}"), reading.clone());
        }
        for (class, reading) in (1..).zip(&self.classes) {
            readings.set(&format!("status.{class}xx"), reading.clone());
        }
        readings.set_others("status.", self.other.clone());
    }
}

/// Without which a recording has no request that failed in this way.
fn evidence_of(kind: Failure) -> &'static [Evidence] {
    match kind {
        Failure::Stale => &[Evidence::Attempts, Evidence::Ends],
        kind if kind.precedes_the_request() => &[Evidence::Attempts],
        _ => &[],
    }
}

/// Why the outcome of some requests is unknown.
fn undecided_why(undecided: &Undecided) -> Why {
    use crate::statement::requests;
    let Undecided {
        pending, unknown, ..
    } = undecided;
    Why::from(match (pending, unknown) {
        (0, unknown) => format!("the end of {} was not observed", requests(*unknown)),
        (pending, 0) => format!(
            "{} had no complete response when the recording ended",
            requests(*pending)
        ),
        (pending, unknown) => format!(
            "{} had no complete response when the recording ended, or their end was not observed",
            requests(pending + unknown)
        ),
    })
}

/// Why more requests may have failed than are counted.
fn may_have_waited(lookups: u64, dials: u64) -> Why {
    use intact_units::plural::counted;
    let (what, count) = match dials {
        0 => (counted(lookups, "lookup"), lookups),
        dials => (counted(dials, "connection attempt"), dials),
    };
    let them = if count == 1 { "it" } else { "them" };
    Why::from(format!(
        "{what} failed, and requests may have waited for {them}"
    ))
}
