//! The figures of one variant.

use crate::error_responses::{ErrorResponses, ONLY_ERRORS};
use crate::figures::{Connections, Latency, PhaseTime, Requests};
use crate::population::buckets_ms;
use crate::stats::{Bin, Modes, PhaseSeries, explaining_phase, humps_of_bins, tiers};
use intact_experiment::{AxisError, AxisValues, TlsChoice};
use intact_ledger::{Cell, Exchange, ExpectedStatus, Group, Outcome, Phase, Reuse, Tally, Variant};
use intact_units::number::{time, whole_percent};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

const NANOS_PER_MS: f64 = 1e6;
/// Why a variant has no success: see [`VariantFacts::no_success`].
const NO_RESPONSE: &str = "no measured request succeeded";

/// How long answers lay in our client delay before we read them.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ClientDelay {
    /// Median, in milliseconds.
    pub p50: Option<f64>,
    /// 99th percentile, in milliseconds.
    pub p99: Option<f64>,
    /// Sum of it as a share of the sum of latencies.
    pub share: f64,
}

/// What was done before measuring.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Warmup {
    /// Exchanges: the preflight, and the first on each connection opened at a round's start.
    pub requests: u64,
    /// Of these, complete ones.
    pub ok: u64,
    /// Connections of the preflight.
    pub connections: u64,
}

/// One round of one variant.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RoundFigures {
    /// The round, from 1.
    pub round: u32,
    /// Complete exchanges.
    pub requests: u64,
    /// Mean latency with setup, in milliseconds.
    pub mean_ms: Option<f64>,
    /// Median, in milliseconds.
    pub p50_ms: Option<f64>,
    /// 99th percentile, in milliseconds, where ten exchanges lie beyond it.
    pub p99_ms: Option<f64>,
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

/// Mean bytes of an exchange on the wire, framing included, without TLS and TCP.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct BytesPerRequest {
    /// Request head.
    pub request_head: f64,
    /// Request body.
    pub request_body: f64,
    /// Response head.
    pub head: f64,
    /// Response body.
    pub body: f64,
}

impl BytesPerRequest {
    /// Heads, both ways.
    pub fn heads(&self) -> f64 {
        self.request_head + self.head
    }

    /// Everything, both ways.
    pub fn total(&self) -> f64 {
        self.heads() + self.request_body + self.body
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
    /// Connections at once.
    pub concurrency: u64,
    /// Streams per connection.
    pub streams: u64,
    /// Measured requests.
    pub requests: Requests,
    /// Connections.
    pub connections: Connections,
    /// Measured exchanges on a connection that carried one before.
    pub reused: u64,
    /// Their share of the measured exchanges; absent without any.
    pub reuse: Option<f64>,
    /// Share of TLS handshakes that resumed a session; absent when plain.
    pub resumed_share: Option<f64>,
    /// Complete exchanges a second.
    pub rate_per_s: Option<f64>,
    /// New connections a second.
    pub churn_per_s: Option<f64>,
    /// Mean exchanges per connection that ended.
    pub requests_per_connection: Option<f64>,
    /// Median exchanges on connections that the server ended; absent when it ended none.
    pub server_closed_after: Option<f64>,
    /// Latency of complete exchanges, setup included.
    pub latency_ms: Latency,
    /// The same without the setup that was waited for.
    pub latency_without_setup_ms: Latency,
    /// Phases.
    pub phases_ms: BTreeMap<&'static str, Option<PhaseTime>>,
    /// Setup per connection, in milliseconds, over those opened.
    pub setup_ms: Option<f64>,
    /// Client delay; absent without kernel stamps.
    pub client_delay_ms: Option<ClientDelay>,
    /// CPU of the engine's threads per measured request, in microseconds.
    pub cpu_us_per_request: Option<f64>,
    /// CPU of the server per request, warm-up included, in microseconds.
    pub server_cpu_us_per_request: Option<f64>,
    /// Share of one processor that the busiest side used: the client's threads, the server.
    pub client_busy: Option<f64>,
    /// The server's CPU time over the time measured.
    pub server_busy: Option<f64>,
    /// Name lookups.
    pub lookups: u64,
    /// Mean bytes on the wire.
    pub bytes_per_request: Option<BytesPerRequest>,
    /// Populations: fresh and reused where both occur, else the two humps of the histogram if it has two.
    pub modes: Vec<Mode>,
    /// Warm-up.
    pub warmup: Warmup,
    /// Rounds.
    pub rounds: Vec<RoundFigures>,
    /// The first calls.
    pub first_calls: Vec<FirstCall>,
    /// What sets two tiers of the first calls apart, in words, if there are two.
    pub tiers: Option<String>,
    /// The means of the fast and of the slow tier, in milliseconds.
    #[serde(skip)]
    pub tier_means_ms: Option<[f64; 2]>,
    /// The latency histogram for pictures: (low, high, count) in milliseconds, fresh and reused apart.
    #[serde(skip)]
    pub histogram: [Vec<(f64, f64, u64)>; 2],
    /// Why its figures measure no success, where no measured request succeeded: none had a response, or every response was an error.
    #[serde(skip)]
    pub no_success: Option<&'static str>,
    /// Index into the run's variants.
    #[serde(skip)]
    pub index: u32,
}

impl VariantFacts {
    /// The figures of the variant at `index`; an error where its axes cannot be read.
    pub(super) fn new<'a>(
        index: u32,
        variant: &Variant,
        tally: &Tally,
        calls: impl Iterator<Item = &'a Exchange>,
        expected: Option<ExpectedStatus>,
    ) -> Result<VariantFacts, AxisError> {
        let axes = AxisValues::of(variant)?;
        let mut all = Cell::new(Some(index), None);
        let mut rounds = Vec::new();
        let (mut nanos, mut client_cpu, mut server_cpu) = (0u64, Some(0u64), Some(0u64));
        let mut warmup = Warmup::default();
        for cell in tally.of_variant(index) {
            if cell.round == Some(0) {
                warmup.connections += cell.connections.opened;
            }
            for group in cell.groups.iter().filter(|group| group.key.warmup) {
                warmup.requests += group.count();
                if group.key.outcome.is_ok() {
                    warmup.ok += group.count();
                }
            }
            let Some(round) = cell.round.filter(|&round| round > 0) else {
                continue;
            };
            all.merge(cell);
            let span = cell.bounds.as_ref().map(|bounds| bounds.span.nanos());
            if let Some(bounds) = &cell.bounds {
                nanos += bounds.span.nanos();
                client_cpu = client_cpu
                    .zip(bounds.client_cpu)
                    .map(|(sum, more)| sum + more);
                server_cpu = server_cpu
                    .zip(bounds.server_cpu)
                    .map(|(sum, more)| sum + more);
            }
            rounds.extend(round_figures(round, cell, span));
        }
        rounds.sort_by_key(|figures| figures.round);
        let measured = |group: &&Group| !group.key.warmup;
        let mut requests = Requests {
            status: all.status.clone(),
            ..Requests::default()
        };
        let mut reused = 0;
        for group in all.groups.iter().filter(measured) {
            requests.total += group.count();
            match group.key.outcome {
                Outcome::Ok => requests.ok += group.count(),
                Outcome::Failed(kind) => {
                    *requests.failed.entry(kind.id()).or_default() += group.count();
                }
            }
            if group.key.reuse == Some(Reuse::Reused) {
                reused += group.count();
            }
        }
        let ok = all.merged(|key| !key.warmup && key.outcome.is_ok());
        let latency = ok.as_ref().map(|group| &group.latency);
        let seconds = (nanos > 0).then_some(nanos as f64 / 1e9);
        let (resumed, handshakes) = all.connections.resumed_of_handshakes();
        let negotiated: Vec<&str> = all
            .connections
            .handshakes
            .iter()
            .filter_map(|(version, _, _)| version.map(|version| version.as_str()))
            .collect();
        let tls = match axes.tls {
            TlsChoice::None => None,
            asked => Some(match negotiated.as_slice() {
                [one, rest @ ..] if rest.iter().all(|other| other == one) => (*one).to_owned(),
                _ => asked.as_str().to_owned(),
            }),
        };
        let concurrency: u64 = axes.concurrency.into();
        let per_request = |cpu: Option<u64>, count: u64| {
            cpu.filter(|&cpu| cpu > 0 && count > 0)
                .map(|cpu| cpu as f64 / count as f64 / 1e3)
        };
        let everything = requests.total
            + all
                .groups
                .iter()
                .filter(|group| group.key.warmup)
                .map(Group::count)
                .sum::<u64>();
        let calls: Vec<&Exchange> = calls.collect();
        let tiers = two_tiers(&calls);
        let connections = Connections {
            opened: all.connections.opened,
            failed: all
                .connections
                .failed
                .iter()
                .map(|(kind, &count)| (kind.id(), count))
                .collect(),
            ended_by: all
                .connections
                .ended_by
                .iter()
                .map(|(by, &count)| (by.id(), count))
                .collect(),
            needed: concurrency * rounds.len() as u64,
        };
        let no_success = if requests.ok == 0 {
            Some(NO_RESPONSE)
        } else if ErrorResponses::among(&requests.status, expected).is_all() {
            Some(ONLY_ERRORS)
        } else {
            None
        };
        Ok(VariantFacts {
            name: variant.name.clone(),
            no_success,
            keepalive: axes.keepalive,
            http: axes.http.as_str().to_owned(),
            tls,
            resume: axes.resume,
            concurrency,
            streams: axes.streams.into(),
            reuse: (requests.total > 0).then(|| reused as f64 / requests.total as f64),
            reused,
            resumed_share: (handshakes > 0).then(|| resumed as f64 / handshakes as f64),
            rate_per_s: seconds.map(|seconds| requests.ok as f64 / seconds),
            churn_per_s: seconds.map(|seconds| connections.opened as f64 / seconds),
            requests_per_connection: all.connections.exchanges.mean(),
            server_closed_after: all.connections.exchanges_until_server_closed.quantile(0.5),
            latency_ms: latency.map(Latency::of).unwrap_or_default(),
            latency_without_setup_ms: ok
                .as_ref()
                .map(|group| Latency::of(&group.without_setup))
                .unwrap_or_default(),
            phases_ms: Phase::ALL
                .iter()
                .map(|&phase| {
                    (
                        phase.id(),
                        ok.as_ref()
                            .and_then(|group| PhaseTime::of(group.phase(phase))),
                    )
                })
                .collect(),
            setup_ms: all
                .connections
                .setup_total
                .mean()
                .map(|mean| mean / NANOS_PER_MS),
            client_delay_ms: ok.as_ref().and_then(client_delay),
            cpu_us_per_request: per_request(client_cpu, requests.total),
            server_cpu_us_per_request: per_request(server_cpu, everything),
            client_busy: client_cpu
                .filter(|&cpu| cpu > 0 && nanos > 0)
                .map(|cpu| cpu as f64 / nanos as f64),
            server_busy: server_cpu
                .filter(|&cpu| cpu > 0 && nanos > 0)
                .map(|cpu| cpu as f64 / nanos as f64),
            bytes_per_request: ok.as_ref().map(|group| {
                let mean = |bytes: u64| bytes as f64 / group.count() as f64;
                BytesPerRequest {
                    request_head: mean(group.bytes.request_head),
                    request_body: mean(group.bytes.request_body),
                    head: mean(group.bytes.head),
                    body: mean(group.bytes.body),
                }
            }),
            modes: humps(&all),
            histogram: [Reuse::Fresh, Reuse::Reused].map(|reuse| {
                all.merged(|key| !key.warmup && key.outcome.is_ok() && key.reuse == Some(reuse))
                    .map(|group| buckets_ms(&group.latency))
                    .unwrap_or_default()
            }),
            tier_means_ms: tiers.as_ref().map(|(_, means)| *means),
            tiers: tiers.map(|(words, _)| words),
            first_calls: calls
                .iter()
                .map(|call| FirstCall {
                    ms: call.latency() as f64 / NANOS_PER_MS,
                    reuse: call.reuse,
                    warmup: call.warmup,
                    ok: call.outcome.is_ok(),
                })
                .collect(),
            lookups: all.lookups.count() + all.lookups_failed,
            requests,
            connections,
            warmup,
            rounds,
            index,
        })
    }
}

fn round_figures(round: u32, cell: &Cell, nanos: Option<u64>) -> Option<RoundFigures> {
    // a round that was cut off has no bounds and gives no figure
    let nanos = nanos?;
    let ok = cell.merged(|key| !key.warmup && key.outcome.is_ok());
    let latency = ok.as_ref().map(|group| Latency::of(&group.latency));
    let requests = ok.as_ref().map_or(0, Group::count);
    Some(RoundFigures {
        round,
        requests,
        mean_ms: latency.as_ref().and_then(|latency| latency.mean),
        p50_ms: latency.as_ref().and_then(|latency| latency.p50),
        p99_ms: latency.and_then(|latency| latency.p99),
        rate_per_s: (nanos > 0).then(|| requests as f64 / (nanos as f64 / 1e9)),
    })
}

fn client_delay(group: &Group) -> Option<ClientDelay> {
    let queue = &group.client_delay;
    if queue.is_empty() || group.latency.sum() == 0 {
        return None;
    }
    let ms = |q| {
        queue
            .supported_quantile(q)
            .map(|nanos| nanos / NANOS_PER_MS)
    };
    Some(ClientDelay {
        p50: ms(0.5),
        p99: ms(0.99),
        share: queue.sum() as f64 / group.latency.sum() as f64,
    })
}

/// Fresh and reused where both occur; else the two humps that the histogram shows, if it shows two.
fn humps(all: &Cell) -> Vec<Mode> {
    let of = |reuse: Reuse| {
        all.merged(|key| !key.warmup && key.outcome.is_ok() && key.reuse == Some(reuse))
    };
    match (of(Reuse::Fresh), of(Reuse::Reused)) {
        (Some(fresh), Some(reused)) => {
            let total = (fresh.count() + reused.count()) as f64;
            [("fresh", fresh), ("reused", reused)]
                .into_iter()
                .map(|(name, group)| Mode {
                    name,
                    share: group.count() as f64 / total,
                    mean_ms: group.latency.mean().unwrap_or(0.0) / NANOS_PER_MS,
                })
                .collect()
        }
        (Some(group), None) | (None, Some(group)) => {
            let bins: Vec<Bin> = buckets_ms(&group.latency)
                .into_iter()
                .map(|(low, high, count)| Bin { low, high, count })
                .collect();
            match humps_of_bins(&bins, 1) {
                Modes::Two { parts, .. } => [("fast", parts.fast), ("slow", parts.slow)]
                    .into_iter()
                    .map(|(name, hump)| Mode {
                        name,
                        share: hump.share,
                        mean_ms: hump.mean,
                    })
                    .collect(),
                Modes::One(_) => Vec::new(),
            }
        }
        (None, None) => Vec::new(),
    }
}

/// Two tiers of the first calls: the phase that makes the difference in words, and the mean of each.
fn two_tiers(calls: &[&Exchange]) -> Option<(String, [f64; 2])> {
    let steady: Vec<&&Exchange> = calls
        .iter()
        .filter(|call| !call.warmup && call.outcome.is_ok())
        .collect();
    let times: Vec<f64> = steady
        .iter()
        .map(|call| call.latency() as f64 / NANOS_PER_MS)
        .collect();
    let found = tiers(&times)?;
    let means = [found.fast.mean, found.slow.mean];
    let told = |words: String| Some((words, means));
    let head = format!(
        "{} of the first {} calls take {}, {} take {}",
        found.fast.calls,
        times.len(),
        time(found.fast.mean),
        found.slow.calls,
        time(found.slow.mean)
    );
    let slow_is_fresh = steady
        .iter()
        .zip(&found.is_slow)
        .all(|(call, &slow)| (call.reuse == Some(Reuse::Fresh)) == slow);
    if slow_is_fresh {
        return told(format!("{head}: the slow ones opened a connection"));
    }
    let series: Vec<Vec<Option<f64>>> = Phase::ALL
        .iter()
        .map(|&phase| {
            steady
                .iter()
                .map(|call| {
                    call.spans
                        .of(phase)
                        .map(|span| span.nanos() as f64 / NANOS_PER_MS)
                })
                .collect()
        })
        .collect();
    let named: Vec<PhaseSeries<'_>> = Phase::ALL
        .iter()
        .zip(&series)
        .map(|(phase, times)| PhaseSeries {
            name: phase.id(),
            times,
        })
        .collect();
    let Some(cause) = explaining_phase(&found, &named) else {
        return told(format!("{head}: no single phase explains it"));
    };
    // Linux acknowledges after 40 ms when it delays (TCP_DELACK_MIN)
    let delayed_ack = cause.phase == "wait" && (38.0..50.0).contains(&cause.by);
    let meaning = match cause.phase {
        "wait" if delayed_ack => {
            "the wait for the answer; about 40 ms is a delayed ACK against Nagle's algorithm"
        }
        "wait" => "the wait for the answer",
        "headers_to_body" => "the gap between head and body of the answer",
        "connect" => "the TCP handshake (a whole second more is a lost SYN)",
        "ssl" => "the TLS handshake",
        "dns" => "the lookup",
        "send" => "sending the request",
        "receive" => "receiving the answer",
        _ => "waiting for a connection",
    };
    told(format!(
        "{head}: {} of the difference is {meaning}",
        whole_percent(cause.share)
    ))
}
