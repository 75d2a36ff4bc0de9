//! The figures of one variant.

use super::machine::MachineFacts;
use super::measured_latency::{self, Side};
use super::measured_rounds::MeasuredRounds;
use super::open_loop::OpenLoopFacts;
use super::populations;
use super::saturation::Saturation;
use super::targets::targets;
use crate::likeness::ConnectionBehaviour;
use crate::scenario::TagFacts;
use crate::traffic::{self, avoidable};
use intact_document::error_responses::{ErrorResponses, ONLY_ERRORS};
use intact_document::figures::{
    Latency, NANOS_PER_MS, NO_HANDSHAKE, NO_RESPONSE, NOT_OPENED, PhaseTime, PhaseTimes,
    TrafficCounts, share,
};
use intact_document::first_calls::{CallEvidence, CallNoun, FirstCallTiers};
use intact_document::traffic_readings::TrafficReadings;
use intact_document::unobserved::Unobserved;
use intact_experiment::{AxisError, AxisValues, CacheUse, NameLookup, TlsChoice};
use intact_ledger::{
    Cell, Exchange, ExpectedStatus, Failure, Group, Reuse, RoundSockets, Tally, TlsVersion, Variant,
};
use intact_reading::{Reading, Why};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// Why nothing was measured.
pub(super) const NO_ROUND: Why =
    Why::cannot_see("no round was measured, only the requests before the first");
/// Why there is no success where the run ended before.
const NOTHING_SENT: &str = "no request was measured";
/// Why the wait of responses in the client is unknown.
const NO_TIMESTAMPS: Why = Why::cannot_see("the kernel gave no receive timestamps");
/// Why the CPU time of the server is unknown.
const NO_SERVER: Why = Why::not_measured("name the server with --server-pid");

/// How long responses waited in the kernel before the client read them.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ClientDelay {
    /// Median, in milliseconds.
    pub p50: Option<f64>,
    /// 99th percentile, in milliseconds.
    pub p99: Option<f64>,
    /// Sum of it as a share of the sum of latencies.
    pub share: Reading,
}

/// The setup that complete measured requests waited for.
#[derive(Clone, Copy, Debug)]
pub(super) struct SetupWaited {
    /// Sum of the setup, in milliseconds.
    pub(super) ms: f64,
    /// Requests that waited for one.
    pub(super) requests: u64,
    /// Time of all complete measured requests, in milliseconds.
    pub(super) of_ms: f64,
}

impl SetupWaited {
    fn of(all: &Cell) -> Option<SetupWaited> {
        let ok = all.merged(|key| !key.warmup && key.outcome.is_ok())?;
        let is_fresh = |group: &&Group| {
            let key = group.key;
            !key.warmup && key.outcome.is_ok() && key.reuse == Some(Reuse::Fresh)
        };
        let fresh = all.groups.iter().filter(is_fresh);
        let requests = fresh.map(Group::count).sum();
        let of_ms = ok.latency.sum() as f64 / NANOS_PER_MS;
        let without = ok.without_setup.sum() as f64 / NANOS_PER_MS;
        (requests > 0 && of_ms > 0.0).then_some(SetupWaited {
            ms: of_ms - without,
            requests,
            of_ms,
        })
    }
}

/// What was done before measuring.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Warmup {
    /// Exchanges: the preflight, and the first on each connection opened at a round's start.
    pub requests: u64,
    /// Of these, complete ones.
    pub ok: u64,
    /// The others by kind.
    pub failed: BTreeMap<&'static str, u64>,
    /// Final status codes of complete ones.
    pub status: BTreeMap<u16, u64>,
    /// Mean latency of complete ones on the connections of the rounds, without the setup, in
    /// milliseconds.
    pub mean_ms: Option<f64>,
    /// The longest of these, in milliseconds.
    pub max_ms: Option<f64>,
    /// Connections of the preflight.
    pub connections: u64,
}

impl Warmup {
    /// Why none of its requests had a response; `None` where one had, or none was sent.
    fn no_response(&self) -> Option<&'static str> {
        let mut kinds = Failure::ALL.iter().copied();
        let last = kinds.rfind(|kind| self.failed.contains_key(kind.id()));
        last.filter(|_| self.ok == 0).map(|last| match last {
            last if last < Failure::NotTls => NOT_OPENED,
            last if last.precedes_the_request() => NO_HANDSHAKE,
            _ => NO_RESPONSE,
        })
    }

    /// How many failed.
    pub fn failures(&self) -> u64 {
        self.failed.values().sum()
    }
}

/// One round of one variant.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RoundFigures {
    /// The round, from 1.
    pub round: u32,
    /// Complete exchanges.
    pub requests: u64,
    /// Typical latency with setup: the medians of its fresh and of its reused exchanges, weighted
    /// by their numbers, in milliseconds; in an open loop the median.
    pub typical_ms: Option<f64>,
    /// The same without the client's lateness; absent in a closed loop.
    #[serde(skip)]
    pub(crate) typical_on_time_ms: Option<f64>,
    /// Mean latency with setup, in milliseconds.
    pub mean_ms: Option<f64>,
    /// Median, in milliseconds.
    pub p50_ms: Option<f64>,
    /// 99th percentile, in milliseconds, where ten exchanges lie beyond it.
    pub p99_ms: Option<f64>,
    /// Requests a second that fell due; absent in a closed loop.
    pub requested_per_s: Option<f64>,
    /// Requests a second.
    pub rate_per_s: Option<f64>,
}

/// One population of latencies.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Mode {
    /// `fresh`, `reused`, `fast` or `slow`.
    pub name: &'static str,
    /// Its share of the exchanges.
    pub share: f64,
    /// Its mean, in milliseconds.
    pub mean_ms: f64,
}

/// One of the first exchanges, for the scatter.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FirstCall {
    /// Latency with setup, in milliseconds.
    pub ms: f64,
    /// Whether it waited for setup.
    pub reuse: Option<Reuse>,
    /// Whether it is left out of steady-state figures.
    pub warmup: bool,
    /// Whether it was complete.
    pub ok: bool,
}

/// The status of a response without a body, because the stored one is current (RFC 9110 section
/// 15.4.5).
pub(super) const NOT_MODIFIED: u16 = 304;

fn not_modified(status: &BTreeMap<u16, u64>) -> (u64, u64) {
    let not_modified = status.get(&NOT_MODIFIED).copied();
    (not_modified.unwrap_or(0), status.values().sum())
}

/// Mean bytes of an exchange on the wire, framing included, without TLS and TCP.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct BytesPerRequest {
    /// Request head.
    pub request_head: f64,
    /// Request body.
    pub request_body: f64,
    /// Response head.
    pub head: f64,
    /// Response body.
    pub body: f64,
    /// Heads, both ways.
    pub heads: Reading,
    /// Everything, both ways.
    pub total: Reading,
}

impl BytesPerRequest {
    fn of(group: &Group) -> BytesPerRequest {
        let mean = |bytes: u64| bytes as f64 / group.count() as f64;
        let bytes = &group.bytes;
        let heads = bytes.request_head + bytes.head;
        BytesPerRequest {
            request_head: mean(bytes.request_head),
            request_body: mean(bytes.request_body),
            head: mean(bytes.head),
            body: mean(bytes.body),
            heads: Reading::known(mean(heads)),
            total: Reading::known(mean(heads + bytes.request_body + bytes.body)),
        }
    }
}

/// Everything about one variant.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct VariantFacts {
    /// Its name.
    pub name: String,
    /// Whether connections are kept.
    pub keepalive: bool,
    /// HTTP version.
    pub http: String,
    /// TLS version as negotiated (or asked for, when nothing was); absent when plain.
    pub tls: Option<String>,
    /// Cipher suites and the like are in the ledger; this is whether resumption was allowed.
    pub resume: bool,
    /// How names were resolved: `system`, `cached` or `per-connection`; absent where that was no
    /// axis.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dns: Option<&'static str>,
    /// Connections at once.
    pub concurrency: u64,
    /// Streams per connection.
    pub streams: u64,
    /// The open loop; absent in a closed one.
    pub open_loop: Option<OpenLoopFacts>,
    /// Measured requests, and connections.
    #[serde(flatten)]
    pub traffic: TrafficReadings,
    /// What was counted of them, whatever is missing.
    #[serde(skip)]
    pub counted: TrafficCounts,
    /// Share of TLS handshakes that resumed a session.
    pub resumed_share: Reading,
    /// Share of TLS handshakes with a request in early data that the server accepted; absent where
    /// none was to be sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub early_data_share: Option<f64>,
    /// Share of responses that were 304 (Not Modified); absent where no stored response was
    /// revalidated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_modified_share: Option<f64>,
    /// Complete exchanges a second.
    pub rate_per_s: Reading,
    /// New connections a second.
    pub churn_per_s: Reading,
    /// Mean exchanges per connection that ended.
    pub requests_per_connection: Reading,
    /// Median exchanges on connections that the server ended; absent when it ended none.
    pub server_closed_after: Option<f64>,
    /// The fewest and the most exchanges on connections that the server ended; absent when it
    /// ended none.
    #[serde(skip)]
    pub server_closed_between: Option<(u64, u64)>,
    /// Connections that the server announced to end with an error response.
    #[serde(skip)]
    pub ended_with_errors: u64,
    /// Connections that the server ended within an exchange.
    #[serde(skip)]
    pub ended_within_exchange: u64,
    /// The streams at once that the server allowed on a connection, where these are fewer than
    /// `streams`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub streams_allowed: Option<u32>,
    /// The pause between the requests of a connection, where there is one.
    #[serde(skip)]
    pub pause: Option<Duration>,
    /// The most exchanges on a connection, where that is more than on any that the server ended:
    /// it has no limit of requests that explains their end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub carried_beyond_closes: Option<u64>,
    /// Typical latency, setup included: the mean of that of the rounds without 10 % of them at
    /// either end, in milliseconds. Variants are compared by it.
    pub typical_ms: Reading,
    /// Latency of complete exchanges, setup included. A percentile counts requests that timed out
    /// as longer than all others; mean and maximum are absent then. In an open loop it counts from
    /// the moment a request was due.
    pub latency_ms: Latency,
    /// The same without connection setup.
    pub latency_without_setup_ms: Latency,
    /// Phases.
    pub phases_ms: PhaseTimes,
    /// Setup per connection, in milliseconds, over those opened.
    pub setup_ms: Option<f64>,
    /// The setup that complete measured requests waited for; absent where none did.
    #[serde(skip)]
    pub(super) setup_waited: Option<SetupWaited>,
    /// Client delay; unknown without kernel timestamps.
    pub client_delay_ms: ClientDelay,
    /// CPU of the engine's threads per measured request, in microseconds.
    pub cpu_us_per_request: Reading,
    /// CPU of the server per request, warm-up included, in microseconds.
    pub server_cpu_us_per_request: Reading,
    /// The CPU time of the client's threads over the time measured on them.
    pub client_busy: Option<f64>,
    /// The client's ceiling: requests a second at which its threads would be busy all the time, at
    /// the CPU time that each took.
    pub client_ceiling_per_s: Option<f64>,
    /// The server's CPU time over the time measured.
    pub server_busy: Option<f64>,
    /// What all processes of the client's machine did with its processors; absent where that was
    /// not counted in every round.
    pub machine: Option<MachineFacts>,
    /// The sockets of the client's machine before and after one of the rounds; absent where they
    /// were not counted.
    pub sockets: Option<RoundSockets>,
    /// Latency of the preflight's request without setup, in milliseconds: nothing else was under
    /// way.
    pub lone_ms: Option<f64>,
    /// The side that limits the throughput, if one was saturated.
    pub saturation: Option<Saturation>,
    /// The most requests that one connection carried; absent where the server ended one, so that
    /// its limit shows.
    pub reuse_seen_up_to: Option<u64>,
    /// The limit of `--reuse` or `--max-age` that no connection reached, if there is one.
    #[serde(skip)]
    pub unreached_limit: Option<String>,
    /// Name lookups.
    pub lookups: Reading,
    /// Those that were seen.
    #[serde(skip)]
    pub lookups_seen: u64,
    /// Lookups that failed.
    pub lookups_failed: u64,
    /// Mean bytes on the wire.
    pub bytes_per_request: Option<BytesPerRequest>,
    /// Populations: fresh and reused where both occur, else the two modes of the histogram if it
    /// has two.
    pub modes: Vec<Mode>,
    /// The targets, where requests took turns; absent where those are too many.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<TagFacts>,
    /// Warm-up.
    pub warmup: Warmup,
    /// Rounds.
    pub rounds: Vec<RoundFigures>,
    /// The first calls.
    pub first_calls: Vec<FirstCall>,
    /// The tiers of the first calls, where there are two or more.
    pub tiers: Option<FirstCallTiers>,
    /// Why its figures measure no success, where no measured request succeeded: none had a
    /// response, or every response was an error.
    #[serde(skip)]
    pub no_success: Option<&'static str>,
    /// Index into the run's variants.
    #[serde(skip)]
    pub index: u32,
    /// Its settings by their axes.
    #[serde(skip)]
    pub(super) settings: BTreeMap<String, String>,
    /// Its TLS handshakes.
    #[serde(skip)]
    pub(super) handshakes: Handshakes,
    /// Responses that were 304 (Not Modified), of how many; absent where it stores none.
    #[serde(skip)]
    pub(super) not_modified: Option<(u64, u64)>,
    /// Connections that sent data with their SYN; absent where they were not to.
    #[serde(skip)]
    pub(super) with_syn: Option<u64>,
    /// For how many seconds a cache could use the response without a request.
    #[serde(skip)]
    pub(super) fresh_for_s: Option<u64>,
}

/// Kinds of TLS handshakes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Handshakes {
    pub(super) all: u64,
    pub(super) resumed: u64,
    pub(super) early: u64,
    pub(super) of_tls13: u64,
}

impl Handshakes {
    fn of(all: &Cell) -> Handshakes {
        let (resumed, count) = all.connections.resumed_of_handshakes();
        let kinds = all.connections.handshakes.iter();
        let of_tls13 = kinds.filter(|(version, _, _)| *version == Some(TlsVersion::Tls13));
        Handshakes {
            all: count,
            resumed,
            early: all.connections.early_data(),
            of_tls13: of_tls13.map(|(_, _, count)| *count).sum(),
        }
    }
}

impl VariantFacts {
    /// Whether there were responses and every one was an error.
    pub(crate) fn has_only_errors(&self) -> bool {
        self.no_success.is_some() && self.counted.requests.ok > 0
    }

    /// Whether its typical latency may be the client's lateness.
    pub(super) fn may_be_late(&self) -> bool {
        self.typical_ms.why() == Some(&measured_latency::CLIENT_LATE)
    }

    /// Requests that were never sent, because no connection was free.
    pub(crate) fn unsent(&self) -> u64 {
        self.open_loop.as_ref().map_or(0, |open| open.unsent)
    }

    /// Makes the readings, of which this is missing.
    pub(super) fn read(&mut self, missing: &Unobserved) {
        let counts = &self.counted;
        self.traffic = traffic::of_client(counts, avoidable(counts), self.unsent(), missing);
        if self.rounds.is_empty() {
            self.traffic = self.traffic.unmeasured(&NO_ROUND);
        }
        self.traffic.add_failures(&self.warmup.failed);
        self.lookups = missing.lookups(self.lookups_seen);
        if let Some(churn) = self.churn_per_s.value() {
            self.churn_per_s = missing.at_least_connections(churn);
        }
        let each = |reading: &mut Reading| *reading = missing.statistic(reading.clone());
        for reading in [
            &mut self.resumed_share,
            &mut self.rate_per_s,
            &mut self.requests_per_connection,
            &mut self.typical_ms,
            &mut self.client_delay_ms.share,
            &mut self.cpu_us_per_request,
            &mut self.server_cpu_us_per_request,
        ] {
            each(reading);
        }
        if let Some(bytes) = &mut self.bytes_per_request {
            each(&mut bytes.heads);
            each(&mut bytes.total);
        }
        for time in self.phases_ms.values_mut().flatten() {
            each(&mut time.mean);
            each(&mut time.p50);
        }
        self.latency_ms = self.latency_ms.observed(missing);
        self.latency_without_setup_ms = self.latency_without_setup_ms.observed(missing);
        self.targets.iter_mut().for_each(|one| one.read(missing));
        if let Some(open) = &mut self.open_loop {
            each(&mut open.achieved);
            each(&mut open.queued_share);
            open.queued_ms = open.queued_ms.observed(missing);
            open.scheduling_error_ms = open.scheduling_error_ms.observed(missing);
            open.until_read_ms = open.until_read_ms.observed(missing);
        }
    }

    /// How its measured requests use connections: those that a round opens for its warm-up are not
    /// theirs. A closed loop lets a connection idle for no longer than its requests leave time for.
    pub(super) fn behaviour(&self) -> ConnectionBehaviour {
        let requests = self.counted.requests.total;
        // each has one request of warm-up, as has each connection of the preflight
        let warmed_up = (self.warmup.requests).saturating_sub(self.warmup.connections);
        let opened = self.counted.connections.opened.saturating_sub(warmed_up);
        let rate = self.rate_per_s.value();
        let busy = rate.zip(self.latency_ms.mean.value());
        let busy = busy.map(|(rate, latency)| rate * latency / 1e3);
        let places = (self.concurrency * self.streams) as f64;
        let idle = |(busy, rate): (f64, f64)| ((places - busy) / rate * 1e3).max(0.0);
        let is_closed = self.open_loop.is_none() && self.counted.reused > 0;
        ConnectionBehaviour {
            name: self.name.clone(),
            requests,
            connections_per_request: share(opened, requests),
            reuse: self.traffic.reuse.value(),
            concurrency: busy,
            idle_ms: busy.zip(rate).filter(|_| is_closed).map(idle),
            resumed_share: self.resumed_share.value(),
            http: Some(self.http.clone()),
        }
    }

    /// Whether nothing but keep-alive distinguishes it from another.
    pub(super) fn differs_in_keepalive(&self, other: &VariantFacts) -> bool {
        let axes = |one: &VariantFacts| {
            let of_connections = (one.concurrency, one.streams);
            (one.http.clone(), one.resume, one.dns, of_connections)
        };
        self.keepalive != other.keepalive && axes(self) == axes(other) && self.tls == other.tls
    }

    /// The figures of the variant at `index`; an error where its axes cannot be read.
    pub(super) fn new<'a>(
        index: u32,
        variant: &Variant,
        tally: &Tally,
        calls: impl Iterator<Item = &'a Exchange>,
        expected: Option<ExpectedStatus>,
    ) -> Result<VariantFacts, AxisError> {
        let axes = AxisValues::of(variant)?;
        let measured = MeasuredRounds::new(index, tally);
        let all = &measured.all;
        let (requests, reused) = measured.requests();
        let connections = measured.connections(axes.connections());
        let ok = all.merged(|key| !key.warmup && key.outcome.is_ok());
        let seconds = measured.seconds();
        let latency = |side| {
            let rounds = &measured.requests_of;
            measured_latency::latency(ok.as_ref(), rounds, seconds, side)
        };
        let (latency_ms, late) = latency(Side::Whole);
        let open_loop = axes
            .open_loop
            .map(|open| OpenLoopFacts::new(&open, &measured, &requests, late));
        let handshakes = Handshakes::of(all);
        let calls: Vec<&Exchange> = calls.collect();
        let evidence = calls.iter().map(|call| CallEvidence::of(call));
        let evidence: Vec<CallEvidence> = evidence.collect();
        let errors = ErrorResponses::among(&requests.status, expected);
        let total = requests.total;
        let per_second = |count: u64| {
            let rate = seconds.map(|seconds| count as f64 / seconds);
            Reading::of(rate, Why::NothingHappened)
        };
        let (rate_per_s, churn_per_s) = (per_second(requests.ok), per_second(connections.opened));
        let stores = axes.connection.cache == Some(CacheUse::Revalidate);
        let not_modified = stores.then(|| not_modified(&requests.status));
        let counted = TrafficCounts {
            reuse: share(reused, measured.reuse_known()),
            reused,
            requests,
            connections,
        };
        let mut facts = VariantFacts {
            name: variant.name.clone(),
            no_success: no_success(&counted, &errors).map(|why| match why {
                NOTHING_SENT => measured.warmup.no_response().unwrap_or(why),
                why => why,
            }),
            traffic: TrafficReadings::default(),
            counted,
            keepalive: axes.keepalive,
            http: axes.http.as_str().to_owned(),
            tls: tls_version(axes.tls, all),
            resume: axes.resume,
            dns: axes.dns.map(NameLookup::as_str),
            concurrency: axes.concurrency.into(),
            streams: axes.streams.into(),
            resumed_share: Reading::of(
                share(handshakes.resumed, handshakes.all),
                Why::NothingHappened,
            ),
            early_data_share: axes
                .early_data
                .filter(|on| *on)
                .and_then(|_| share(handshakes.early, handshakes.all)),
            not_modified_share: not_modified.and_then(|(some, all)| share(some, all)),
            rate_per_s,
            churn_per_s,
            requests_per_connection: Reading::of(
                all.connections.exchanges.mean(),
                Why::NothingHappened,
            ),
            server_closed_after: all.connections.exchanges_until_server_closed.quantile(0.5),
            server_closed_between: {
                let carried = &all.connections.exchanges_until_server_closed;
                carried.min().zip(carried.max())
            },
            ended_with_errors: all.connections.ended_with_errors,
            ended_within_exchange: all.connections.ended_within_exchange,
            streams_allowed: all
                .connections
                .max_streams
                .filter(|&allowed| allowed < axes.streams),
            pause: axes.connection.idle,
            carried_beyond_closes: carried_beyond_closes(all),
            typical_ms: measured.typical_ms(),
            latency_ms,
            latency_without_setup_ms: latency(Side::WithoutSetup).0,
            phases_ms: PhaseTime::all(ok.as_ref()),
            setup_ms: mean_ms(all.connections.setup_total.mean()),
            setup_waited: SetupWaited::of(all),
            client_delay_ms: ClientDelay::of(ok.as_ref()),
            cpu_us_per_request: Reading::of(
                cpu_us(measured.client_cpu, total),
                Why::NothingHappened,
            ),
            server_cpu_us_per_request: Reading::of(
                cpu_us(measured.server_cpu, total + measured.warmup_exchanges()),
                NO_SERVER,
            ),
            client_busy: measured.client_busy(),
            client_ceiling_per_s: measured.client_ceiling(total),
            server_busy: measured.server_busy(),
            machine: measured.machine(),
            sockets: measured.sockets,
            lone_ms: measured.lone.map(|nanos| nanos as f64 / NANOS_PER_MS),
            saturation: None,
            reuse_seen_up_to: reuse_seen_up_to(all, axes.keepalive),
            bytes_per_request: ok.as_ref().map(BytesPerRequest::of),
            modes: populations::modes(all),
            tiers: FirstCallTiers::of(&evidence, CallNoun("the first", "calls")),
            first_calls: calls.iter().map(|call| FirstCall::of(call)).collect(),
            lookups: Reading::default(),
            lookups_seen: all.lookups.count() + all.lookups_failed,
            lookups_failed: all.lookups_failed,
            unreached_limit: unreached_limit(&axes, all, measured.rounds.len()),
            open_loop,
            targets: targets(index, &measured, tally),
            warmup: measured.warmup,
            rounds: measured.rounds,
            index,
            settings: variant.axes.clone(),
            handshakes,
            not_modified,
            with_syn: measured.with_syn,
            fresh_for_s: measured.fresh_for_s,
        };
        facts.read(&Unobserved::default());
        facts.saturation = Saturation::of(&facts);
        Ok(facts)
    }
}

/// The most requests on a connection that was kept, where the server ended none.
fn reuse_seen_up_to(all: &Cell, keepalive: bool) -> Option<u64> {
    let connections = &all.connections;
    let most = connections.exchanges.max().filter(|_| keepalive)?;
    connections
        .exchanges_until_server_closed
        .is_empty()
        .then_some(most)
}

/// See [`VariantFacts::carried_beyond_closes`]. Requests that the end left without a response come
/// on top of a limit, so one or a tenth more is no more.
fn carried_beyond_closes(all: &Cell) -> Option<u64> {
    let connections = &all.connections;
    let closed_after = connections.exchanges_until_server_closed.max()?;
    let most = connections.exchanges.max()?;
    (most > closed_after.saturating_add((closed_after / 10).max(1))).then_some(most)
}

/// The limit of a connection's life that none reached: none carried that number of requests, or
/// none was replaced within a round.
fn unreached_limit(axes: &AxisValues, all: &Cell, rounds: usize) -> Option<String> {
    let connections = &all.connections;
    if let Some(most) = axes.connection.most_requests() {
        let carried = connections.exchanges.max().unwrap_or(0);
        return (carried < u64::from(most.get())).then(|| format!("reuse={most}"));
    }
    let age = axes.connection.max_age?;
    age.time()?;
    let at_start = u64::from(axes.concurrency) * rounds as u64;
    (connections.opened <= at_start).then(|| format!("max-age={age}"))
}

impl FirstCall {
    fn of(call: &Exchange) -> FirstCall {
        FirstCall {
            ms: call.latency() as f64 / NANOS_PER_MS,
            reuse: call.reuse,
            warmup: call.warmup,
            ok: call.outcome.is_ok(),
        }
    }
}

/// The version that was negotiated, or asked for where none or several were; `None` when plain.
fn tls_version(asked: TlsChoice, all: &Cell) -> Option<String> {
    if asked == TlsChoice::None {
        return None;
    }
    let handshakes = all.connections.handshakes.iter();
    let mut versions = handshakes.filter_map(|(version, _, _)| *version);
    let first = versions.next();
    let one = first.filter(|first| versions.all(|other| other == *first));
    Some(
        one.map_or(asked.as_str(), |version| version.as_str())
            .to_owned(),
    )
}

/// Why this measures no success; `errors` are those among the responses.
pub(crate) fn no_success(counts: &TrafficCounts, errors: &ErrorResponses) -> Option<&'static str> {
    if counts.requests.ok == 0 {
        Some(counts.no_response().unwrap_or(NOTHING_SENT))
    } else if errors.is_all() {
        Some(ONLY_ERRORS)
    } else {
        None
    }
}

fn mean_ms(nanos: Option<f64>) -> Option<f64> {
    nanos.map(|nanos| nanos / NANOS_PER_MS)
}

/// Microseconds of processor time for each of `count`.
fn cpu_us(cpu: Option<u64>, count: u64) -> Option<f64> {
    let cpu = cpu.filter(|&cpu| cpu > 0 && count > 0)?;
    Some(cpu as f64 / count as f64 / 1e3)
}

impl ClientDelay {
    fn of(ok: Option<&Group>) -> ClientDelay {
        let ok = ok.filter(|ok| !ok.client_delay.is_empty() && ok.latency.sum() > 0);
        let ms = |q| mean_ms(ok?.client_delay.supported_quantile(q));
        let share = ok.map(|ok| ok.client_delay.sum() as f64 / ok.latency.sum() as f64);
        ClientDelay {
            p50: ms(0.5),
            p99: ms(0.99),
            share: Reading::of(share, NO_TIMESTAMPS),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reuse_was_seen_up_to_the_longest_connection_unless_the_server_ended_one() {
        let mut cell = Cell::new(Some(0), Some(1));
        assert_eq!(reuse_seen_up_to(&cell, true), None);
        for carried in [3, 26] {
            cell.connections.exchanges.record(carried);
        }
        assert_eq!(reuse_seen_up_to(&cell, true), Some(26));
        assert_eq!(reuse_seen_up_to(&cell, false), None);
        cell.connections.exchanges_until_server_closed.record(3);
        assert_eq!(reuse_seen_up_to(&cell, true), None);
    }
}
