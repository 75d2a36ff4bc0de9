//! The figures of all destinations together, and of each of them. Must not conclude.

use super::destination::{Counts, Detail, Sum};
use super::distributions::{Gaps, PerConnection};
use super::facts::Destination;
use super::lookups::Lookups;
use super::tracker::Need;
use crate::rules::cost_ms;
use intact_document::Readings;
use intact_document::figures::{
    Connections, Latency, NANOS_PER_MS, ObservedCounts, PhaseTime, PhaseTimes, Requests,
    TrafficCounts, by_id, is_zero, resumed_range, share,
};
use intact_document::traffic_readings::{CountedTraffic, TrafficReadings};
use intact_document::unobserved::Unobserved;
use intact_ledger::{EndedBy, Evidence, Failure, Group, Handshake, Histogram, Reuse};
use intact_reading::{Reading, Why};
use serde::Serialize;
use std::collections::BTreeMap;

/// Rows have their bytes, the counts of a destination have not.
const NO_BYTES: Why =
    Why::not_measured("bytes are in the ledger (--ledger DIR), not summed up yet");

/// The figures that all destinations together and each of them have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Figures {
    /// Requests and connections; `needed` is for the peak overlap of requests.
    #[serde(flatten)]
    pub traffic: TrafficReadings,
    /// What was counted of them, whatever is missing.
    #[serde(skip)]
    pub counted: ObservedCounts,
    /// Requests of which it is known whether their connection was reused.
    pub reuse_known: u64,
    /// Why figures are inferred; empty when all were observed.
    pub inferred: Vec<String>,
    /// Sum of the setups of avoidable connections, each taken as the destination's mean.
    pub wasted_ms: Reading,
    /// Connections inside which nothing could be seen.
    pub opaque: u64,
    /// Connections that were open before the recording began: they are not in `opened`.
    #[serde(skip_serializing_if = "is_zero")]
    pub open_before: u64,
    /// Requests for each connection opened.
    pub requests_per_connection: Reading,
    /// Connections opened a second, between the first and the last event.
    pub churn_per_s: Reading,
    /// Sum of the latencies of all requests, setup included.
    pub outbound_ms: Option<f64>,
    /// `outbound_ms`, and the setup that no request waited for.
    #[serde(skip)]
    pub(crate) time_ms: Option<f64>,
    /// Sum of all setups.
    pub setup_ms: Option<f64>,
    /// Mean lookup, transport handshake and TLS handshake of a connection that had them.
    pub setup_mean_ms: SetupMeans,
    /// `wasted_ms` as a share of `outbound_ms` and the setup that no request waited for.
    pub wasted_share: Reading,
    /// Time that requests without a complete response took, such as aborted ones and those that
    /// timed out.
    pub lost_ms: Option<f64>,
    /// `lost_ms` as a share of `outbound_ms`.
    pub lost_share: Option<f64>,
    /// Setup that requests waited for, of needed and of avoidable connections.
    pub setup_wait_ms: Option<f64>,
    /// `setup_wait_ms` as a share of `outbound_ms`.
    pub setup_wait_share: Option<f64>,
    /// `setup_wait_ms` without that of avoidable connections.
    #[serde(skip)]
    pub(crate) needed_setup_ms: Option<f64>,
    /// Reuses within 5 ms of the last response on a connection that carries one request at a time:
    /// these requests may have waited in the client for a connection. Absent where no idle
    /// time is known.
    pub back_to_back: Option<u64>,
    /// `back_to_back` as a share of all such reuses.
    pub back_to_back_share: Option<f64>,
    /// TLS handshakes that resumed a session, as a share of all.
    pub resumed_share: Reading,
    /// Lookups.
    pub lookups: LookupFigures,
    /// Latency of complete requests, setup included.
    pub latency_ms: Latency,
    /// The same without connection setup.
    pub latency_without_setup_ms: Latency,
    /// Phases; absent where there was no room for histograms.
    pub phases_ms: Option<Phases>,
    /// Idle time before a connection was used again.
    pub idle_gaps: Option<Gaps>,
    /// Requests on connections that ended.
    pub per_connection: Option<PerConnection>,
    #[serde(skip)]
    raw: RawFigures,
}

/// Figures as they follow from what was counted, whatever is missing.
#[derive(Clone, Debug, Default, PartialEq)]
struct RawFigures {
    requests_per_connection: Option<f64>,
    churn_per_s: Option<f64>,
    wasted_share: Option<f64>,
    resumed_share: Option<[f64; 2]>,
    latency_ms: Latency,
    latency_without_setup_ms: Latency,
    setup_mean_ms: [Option<f64>; 4],
    phases_ms: Option<Phases>,
    /// Failed lookups before which no request was sent.
    lookups_in_vain: u64,
}

/// Means of the setup steps in milliseconds, over all connections that had them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct SetupMeans {
    /// Lookup.
    pub dns: Reading,
    /// Transport.
    pub connect: Reading,
    /// TLS.
    pub ssl: Reading,
    /// All steps.
    pub total: Reading,
}

/// Lookups of names.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct LookupFigures {
    /// All.
    pub total: Reading,
    /// Those that were seen.
    #[serde(skip)]
    pub seen: u64,
    /// Those that failed.
    pub failed: u64,
    /// Those that failed, by their error (`NXDOMAIN`, `SERVFAIL`, `no answer`).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub errors: BTreeMap<&'static str, u64>,
    /// The time that they took together, in milliseconds.
    pub ms: Option<f64>,
    /// Lookups for each connection opened; absent without lookups seen or connections.
    pub per_connection: Option<f64>,
}

/// Phases of complete requests, those that waited for setup apart.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Phases {
    /// Requests that waited for setup.
    pub fresh: PhaseTimes,
    /// Requests on a connection that was there already.
    pub reused: PhaseTimes,
}

impl Figures {
    /// `open_opaque`: open connections whose content could not be read so far. `missing`: what the
    /// run lacks.
    pub(super) fn of(
        counts: &Counts,
        need: Need,
        open_opaque: u64,
        lookups: Lookups,
        missing: &Unobserved,
    ) -> Figures {
        let opaque = counts.opaque + open_opaque;
        let known = counts.first + counts.reused;
        let has_no_reuse = counts.requests > 0 && known == 0;
        let has_no_setup = counts.setup_total.count < counts.opened;
        let lacking = [
            (Evidence::Reuse, has_no_reuse),
            (Evidence::Setup, has_no_setup),
        ];
        let avoidable = counts.opened.saturating_sub(need.all());
        let timed_ms = |nanos: u64| (counts.timed > 0).then(|| nanos as f64 / NANOS_PER_MS);
        let outbound_ms = timed_ms(counts.outbound);
        let time_ms = counts.time().map(|nanos| nanos as f64 / NANOS_PER_MS);
        let lost_ms = timed_ms(counts.lost.nanos);
        let setup_wait_ms = timed_ms(counts.setup_waited);
        let wasted_ms = cost_ms(counts, avoidable + need.by_server_at_most());
        let readable = (counts.opened + counts.open_before).saturating_sub(opaque);
        let detail = counts.detail.as_deref();
        let ok = detail.and_then(|detail| detail.cell.merged(|key| key.outcome.is_ok()));
        // what the client did not wait for to the end took longer
        let given_up = [Failure::Timeout, Failure::ClientClosed];
        let given_up = given_up.iter().filter_map(|kind| counts.failed.get(kind));
        let given_up: u64 = given_up.sum();
        let latency = |of: fn(&Group) -> &Histogram| match ok.as_ref().map(of) {
            Some(all) if all.count() > 0 => Latency::beyond(all, given_up),
            _ => Latency::untimed(counts.ok),
        };
        let setup = counts.setup_total;
        let mut unobserved = Unobserved {
            opaque,
            without_connection: counts.without_connection,
            guessed: counts.guessed,
            spare: counts.spare(need.all() - need.unseen),
            perhaps_by_server: need.idle_limited + need.unseen,
            without_client: counts.without_client,
            open_before: counts.open_before,
            lacking: lacking
                .into_iter()
                .filter_map(|(evidence, lacks)| lacks.then_some(evidence))
                .collect(),
            ..Unobserved::default()
        };
        unobserved.add(missing);
        let inferred: Vec<String> = counts.inferred.iter().map(ToString::to_string).collect();
        let mut figures = Figures {
            reuse_known: known,
            inferred: inferred.clone(),
            counted: ObservedCounts {
                counts: TrafficCounts {
                    requests: requests(counts),
                    connections: connections(counts, need),
                    reused: counts.reused,
                    reuse: share(counts.reused, known),
                },
                avoidable,
                reuse_known: known,
                unobserved,
                inferred,
                wasted_ms,
            },
            opaque,
            open_before: counts.open_before,
            outbound_ms,
            setup_ms: (setup.count > 0).then(|| setup.nanos as f64 / NANOS_PER_MS),
            time_ms,
            lost_ms,
            lost_share: share_of(lost_ms, outbound_ms),
            setup_wait_ms,
            setup_wait_share: share_of(setup_wait_ms, outbound_ms),
            needed_setup_ms: setup_wait_ms.map(|ms| (ms - wasted_ms.unwrap_or(0.0)).max(0.0)),
            back_to_back: (counts.single_reuses > 0).then_some(counts.back_to_back),
            back_to_back_share: share(counts.back_to_back, counts.single_reuses),
            lookups: LookupFigures::of(lookups, counts.opened),
            idle_gaps: detail.and_then(|detail| Gaps::of(&detail.gaps, counts)),
            per_connection: detail.and_then(|detail| PerConnection::of(&detail.per_connection)),
            raw: RawFigures {
                requests_per_connection: (readable > 0 && counts.requests > 0)
                    .then(|| counts.requests as f64 / readable as f64),
                churn_per_s: counts
                    .seconds()
                    .map(|seconds| counts.opened as f64 / seconds),
                wasted_share: share_of(wasted_ms, time_ms),
                resumed_share: resumed(counts),
                latency_ms: latency(|group| &group.latency),
                latency_without_setup_ms: latency(|group| &group.without_setup),
                setup_mean_ms: setup_means_ms(counts),
                phases_ms: detail.map(Phases::of),
                lookups_in_vain: lookups.failed,
            },
            ..Figures::default()
        };
        figures.read();
        figures
    }

    /// Makes the readings of what was counted and of what is missing.
    fn read(&mut self) {
        let (counted, raw) = (&self.counted, &self.raw);
        let unobserved = &counted.unobserved;
        let traffic = CountedTraffic::observed(counted, unobserved, raw.lookups_in_vain);
        let traffic = TrafficReadings::of(traffic);
        let spared = counted.spared();
        self.wasted_ms = traffic.cost(counted.wasted_ms, spared);
        self.wasted_share = traffic.cost(raw.wasted_share, spared);
        self.requests_per_connection = unobserved.ratio(raw.requests_per_connection);
        self.churn_per_s = match (&traffic.connections.opened, raw.churn_per_s) {
            (_, None) => unobserved.statistic(Reading::default()),
            (opened, _) if opened.is_unknown() => opened.clone(),
            (_, Some(churn)) => unobserved.at_least_connections(churn),
        };
        self.resumed_share = match raw.resumed_share {
            Some(range) => unobserved.share_of_connections(range),
            None => unobserved.statistic(Reading::default()),
        };
        self.lookups.total = unobserved.lookups(self.lookups.seen);
        self.setup_mean_ms = SetupMeans::of(raw.setup_mean_ms, unobserved);
        self.phases_ms = raw.phases_ms.as_ref().map(|all| all.observed(unobserved));
        self.latency_ms = raw.latency_ms.observed(unobserved);
        self.latency_without_setup_ms = raw.latency_without_setup_ms.observed(unobserved);
        self.traffic = traffic;
    }

    /// Adds what is missing.
    pub(super) fn add_unobserved(&mut self, missing: &Unobserved) {
        self.counted.unobserved.add(missing);
        self.read();
    }

    /// When the connections from before were opened is known: not in what is counted here.
    pub(super) fn know_openings(&mut self) {
        self.counted.unobserved.open_before = 0;
        self.read();
    }

    /// The mean time without setup of the requests that were seen to their end, in milliseconds,
    /// whatever is missing.
    pub fn seen_without_setup_ms(&self) -> Option<f64> {
        self.raw.latency_without_setup_ms.mean.value()
    }

    /// The means of lookup, transport, TLS and whole setups of the connections that were seen, in
    /// milliseconds, whatever is missing.
    pub fn seen_setup_ms(&self) -> [Option<f64>; 4] {
        self.raw.setup_mean_ms
    }

    /// The share of the time that was setup of connections counted as avoidable, whatever is
    /// missing.
    pub(super) fn counted_wasted_share(&self) -> Option<f64> {
        self.raw.wasted_share
    }

    /// Failed lookups that a request waited for.
    pub fn lookups_in_vain(&self) -> u64 {
        self.raw.lookups_in_vain
    }

    /// What the whole has only as the sum of its parts: waste is paid per destination, idle limits
    /// are each server's. `in_vain`: failed lookups that a request waited for.
    pub(super) fn sum_up(&mut self, destinations: &[Destination], in_vain: u64) {
        let figures = || destinations.iter().map(|one| &one.figures);
        self.raw.lookups_in_vain = in_vain;
        self.counted.avoidable = figures().map(|one| one.counted.avoidable).sum();
        let unobserved = || figures().map(|one| &one.counted.unobserved);
        self.counted.unobserved.spare = unobserved().map(|one| one.spare).sum();
        let costs: Vec<f64> = figures().filter_map(|one| one.counted.wasted_ms).collect();
        self.counted.wasted_ms = (!costs.is_empty()).then(|| costs.iter().sum());
        // the setup of connections that cannot be seen inside is no part of the requests' time
        let seen = || figures().filter(|one| one.counted.requests.total > 0);
        let needed_setup: f64 = seen().filter_map(|one| one.needed_setup_ms).sum();
        self.needed_setup_ms = self.setup_wait_ms.map(|_| needed_setup);
        let (wasted, time): (Vec<_>, Vec<_>) = seen()
            .map(|one| (one.counted.wasted_ms, one.time_ms))
            .unzip();
        let of_requests: f64 = wasted.into_iter().flatten().sum();
        self.time_ms = self.outbound_ms.map(|_| time.into_iter().flatten().sum());
        self.raw.wasted_share = share_of(self.counted.wasted_ms.map(|_| of_requests), self.time_ms);
        if let Some(gaps) = &mut self.idle_gaps {
            gaps.server_limit_s = None;
            gaps.danger_from_s = None;
            let each = figures().filter_map(|one| one.idle_gaps.as_ref());
            gaps.in_danger = each.map(|gaps| gaps.in_danger).sum();
            gaps.danger_share = Some(gaps.in_danger as f64 / gaps.count as f64);
        }
        self.read();
    }

    /// The readings of a subject with these figures.
    pub(super) fn readings(&self) -> Readings {
        let mut readings = Readings::default();
        self.traffic.add_to(&mut readings);
        readings.set(
            "requests-per-connection",
            self.requests_per_connection.clone(),
        );
        readings.set("churn", self.churn_per_s.clone());
        readings.set("resumed-share", self.resumed_share.clone());
        readings.set("lookups", self.lookups.total.clone());
        readings.set("bytes-per-request", Reading::unknown(NO_BYTES));
        readings.set("header-bytes-per-request", Reading::unknown(NO_BYTES));
        self.latency_ms.add_to(&mut readings, "");
        self.latency_without_setup_ms
            .add_to(&mut readings, "without-setup.");
        // setup phases are those of fresh requests, the others those of reused ones where there are
        // any
        let unobserved = &self.counted.unobserved;
        let phases = self.phases_ms.as_ref();
        let phases = phases.map_or(Vec::new(), |phases| vec![&phases.reused, &phases.fresh]);
        PhaseTime::add_to(&mut readings, &phases, unobserved);
        readings
    }
}

/// The means of the setup steps, and of all of them together, whatever is missing.
fn setup_means_ms(counts: &Counts) -> [Option<f64>; 4] {
    let mean = |sum: Sum| sum.mean().map(|nanos| nanos / NANOS_PER_MS);
    let [dns, connect, ssl] = counts.setup.map(mean);
    [dns, connect, ssl, mean(counts.setup_total)]
}

impl SetupMeans {
    fn of(means: [Option<f64>; 4], unobserved: &Unobserved) -> SetupMeans {
        let [dns, connect, ssl, total] = means.map(|mean| unobserved.setup(mean));
        SetupMeans {
            dns,
            connect,
            ssl,
            total,
        }
    }
}

impl LookupFigures {
    fn of(lookups: Lookups, opened: u64) -> LookupFigures {
        let Lookups {
            total,
            failed,
            nanos,
            ..
        } = lookups;
        LookupFigures {
            total: Reading::default(),
            seen: total,
            failed,
            errors: lookups.errors(),
            ms: (total > 0).then(|| nanos as f64 / NANOS_PER_MS),
            per_connection: (total > 0 && opened > 0).then(|| total as f64 / opened as f64),
        }
    }
}

impl Phases {
    fn observed(&self, unobserved: &Unobserved) -> Phases {
        let of = |phases: &PhaseTimes| PhaseTime::observed(phases, unobserved);
        Phases {
            fresh: of(&self.fresh),
            reused: of(&self.reused),
        }
    }

    fn of(detail: &Detail) -> Phases {
        let of = |reuse: Reuse| {
            let cell = &detail.cell;
            let group = cell.merged(|key| key.outcome.is_ok() && key.reuse == Some(reuse));
            PhaseTime::all(group.as_ref())
        };
        Phases {
            fresh: of(Reuse::Fresh),
            reused: of(Reuse::Reused),
        }
    }
}

fn requests(counts: &Counts) -> Requests {
    Requests {
        total: counts.requests,
        ok: counts.ok,
        failed: by_id(&counts.failed, Failure::id),
        left: counts.left,
        undecided: counts.undecided.clone(),
        status: counts.status.clone(),
    }
}

fn connections(counts: &Counts, need: Need) -> Connections {
    Connections {
        opened: counts.opened,
        unusable: counts.unusable,
        failed: by_id(&counts.dials_failed, Failure::id),
        ended_by: by_id(&counts.ended_by, EndedBy::id),
        needed: need.all(),
        by_server: need.by_server_at_most(),
    }
}

fn share_of(part: Option<f64>, whole: Option<f64>) -> Option<f64> {
    let whole = whole.filter(|whole| *whole > 0.0)?;
    Some(part? / whole)
}

/// The smallest and the largest share of resumed handshakes; absent where no kind is known.
fn resumed(counts: &Counts) -> Option<[f64; 2]> {
    let of = |which: &dyn Fn(Option<Handshake>) -> bool| -> u64 {
        let kinds = counts.tls.iter();
        kinds
            .filter(|((_, handshake), _)| which(*handshake))
            .map(|(_, count)| count)
            .sum()
    };
    let (all, unknown) = (of(&|_| true), of(&|kind| kind.is_none()));
    let resumed = of(&|kind| kind.is_some_and(|kind| kind != Handshake::Full));
    resumed_range(resumed, unknown, all)
}
