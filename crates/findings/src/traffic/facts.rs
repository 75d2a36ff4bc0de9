//! Everything that a page of an observed run lays out. The same figures for all together and for each destination.

use super::destination::{Counts, Detail};
use super::tracker::{Lookups, Tracker};
use super::verdict;
use crate::cpu::CpuFacts;
use crate::figures::{Connections, Latency, NANOS_PER_MS, PhaseTime, Requests};
use crate::finding::Finding;
use crate::rules::{Attribution, Rule, cost_ms};
use crate::unobserved::Unobserved;
use intact_ledger::{Caveat, Handshake, Histogram, Phase, Reuse, TlsVersion};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Findings that are told; the dearest first.
const FINDINGS: usize = 200;
/// Seconds that part the idle gaps of the histogram; idle timers in use lie just above them.
const GAP_EDGES_S: [f64; 12] = [
    0.001, 0.01, 0.1, 1.0, 2.0, 4.0, 5.0, 10.0, 15.0, 30.0, 60.0, 300.0,
];
/// Exchanges per connection that part the distribution.
const EXCHANGE_EDGES: [u64; 9] = [1, 2, 3, 5, 10, 30, 100, 300, 1000];

/// What an observer found out. Times are in milliseconds where the name says so.
#[derive(Clone, Debug, Serialize)]
pub struct ObservedFacts {
    /// Sentences, the one that matters most first.
    pub verdict: Vec<String>,
    /// As in every document: the requests of `totals`.
    pub requests: Requests,
    /// As in every document: the connections of `totals`.
    pub connections: Connections,
    /// As in every document.
    pub reused: u64,
    /// As in every document.
    pub reuse: Option<f64>,
    /// All destinations together.
    pub totals: Figures,
    /// Each destination, the one that wastes most first.
    pub destinations: Vec<Destination>,
    /// What stands out, the worst and dearest first.
    pub findings: Vec<Finding>,
    /// What the programs took of the processors, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<CpuFacts>,
    /// What limits the figures.
    pub caveats: Vec<Caveat>,
}

/// The figures of one destination.
#[derive(Clone, Debug, Serialize)]
pub struct Destination {
    /// Scheme, host and port, or an address; for a server's ledger the client.
    pub origin: String,
    /// The host that `--require 'host=...'` finds it by.
    pub host: Option<String>,
    /// The commands of the processes that opened its connections, and how many each opened.
    pub commands: BTreeMap<String, u64>,
    /// What the clients call themselves, and how many connections are of each.
    pub agents: BTreeMap<String, u64>,
    /// How many processes, up to sixteen.
    pub processes: u64,
    /// Protocols of the connections, and how many spoke each.
    pub protocols: BTreeMap<&'static str, u64>,
    /// TLS handshakes.
    pub tls: Vec<TlsFigures>,
    /// The figures.
    #[serde(flatten)]
    pub figures: Figures,
}

impl Destination {
    /// Who opened its connections: processes, or what clients call themselves where processes cannot be seen.
    pub fn programs(&self) -> impl Iterator<Item = &str> {
        let names = if self.commands.is_empty() {
            &self.agents
        } else {
            &self.commands
        };
        names.keys().map(String::as_str)
    }
}

fn named(counts: &BTreeMap<Arc<str>, u64>) -> BTreeMap<String, u64> {
    let named = |(name, &count): (&Arc<str>, &u64)| (name.to_string(), count);
    counts.iter().map(named).collect()
}

/// How many TLS handshakes were of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TlsFigures {
    /// The version; absent when it was not seen.
    pub version: Option<TlsVersion>,
    /// Full, resumed, with early data; absent when it was not seen.
    pub handshake: Option<Handshake>,
    /// How many.
    pub count: u64,
}

/// The figures that all destinations together and each of them have.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Figures {
    /// Requests.
    pub requests: Requests,
    /// Connections; `needed` is what the peak overlap of requests needs.
    pub connections: Connections,
    /// Connections opened beyond those needed.
    pub avoidable: u64,
    /// Requests on a connection that was there already.
    pub reused: u64,
    /// Their share of those requests of which it is known; absent when it is known of none.
    pub reuse: Option<f64>,
    /// Requests of which it is known whether their connection was reused.
    pub reuse_known: u64,
    /// Lower and upper end of `reuse` over all requests; present where the state of some is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reuse_range: Option<[f64; 2]>,
    /// Connections inside which nothing could be seen.
    pub opaque: u64,
    /// What of the traffic is missing from these figures.
    #[serde(skip)]
    pub unobserved: Unobserved,
    /// Why figures are worked out and not seen; empty when all were seen.
    pub inferred: Vec<String>,
    /// Requests for each connection opened.
    pub requests_per_connection: Option<f64>,
    /// Connections opened a second, between the first and the last event.
    pub churn_per_s: Option<f64>,
    /// Sum of the latencies of all requests, setup included.
    pub outbound_ms: Option<f64>,
    /// Sum of all setups.
    pub setup_ms: Option<f64>,
    /// Mean lookup, transport handshake and TLS handshake of a connection that had them.
    pub setup_mean_ms: SetupMeans,
    /// Setup of avoidable connections (so many times the mean setup).
    pub wasted_ms: Option<f64>,
    /// The same as a share of `outbound_ms`.
    pub wasted_share: Option<f64>,
    /// TLS handshakes that resumed a session, as a share of those whose kind was seen.
    pub resumed_share: Option<f64>,
    /// Lookups.
    pub lookups: LookupFigures,
    /// Latency of complete requests, setup included.
    pub latency_ms: Latency,
    /// The same without the setup that was waited for.
    pub latency_without_setup_ms: Latency,
    /// Phases; absent where there was no room for histograms.
    pub phases_ms: Option<Phases>,
    /// Idle time before a connection was used again.
    pub idle_gaps: Option<Gaps>,
    /// Requests on connections that ended.
    pub per_connection: Option<PerConnection>,
}

/// Means of the setup steps in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SetupMeans {
    /// Lookup.
    pub dns: Option<f64>,
    /// Transport.
    pub connect: Option<f64>,
    /// TLS.
    pub ssl: Option<f64>,
    /// All steps.
    pub total: Option<f64>,
}

/// Lookups of names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LookupFigures {
    /// All.
    pub total: u64,
    /// Those that failed.
    pub failed: u64,
    /// The time that they took together, in milliseconds.
    pub ms: Option<f64>,
    /// Lookups for each connection opened; absent without lookups seen or connections.
    pub per_connection: Option<f64>,
}

/// Phases of complete requests, those that waited for setup apart.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Phases {
    /// Requests that waited for setup.
    pub fresh: BTreeMap<&'static str, Option<PhaseTime>>,
    /// Requests on a connection that was there already.
    pub reused: BTreeMap<&'static str, Option<PhaseTime>>,
}

/// The distribution of idle gaps, and the share in the danger band.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Gaps {
    /// How many.
    pub count: u64,
    /// `[from, to, count]` in seconds; the last has no end.
    pub buckets: Vec<(f64, Option<f64>, u64)>,
    /// The server's idle limit in seconds, as announced or as seen, whichever is shorter.
    pub server_limit_s: Option<f64>,
    /// Where the danger band begins, in seconds: the limit less a fifth of it, or less a second if that is smaller.
    pub danger_from_s: Option<f64>,
    /// Gaps at or above it.
    pub in_danger: u64,
    /// Their share.
    pub danger_share: Option<f64>,
}

/// The distribution of requests over connections that ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PerConnection {
    /// Mean.
    pub mean: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// Most.
    pub max: Option<u64>,
    /// `[from, to, connections]`, both ends included; the last has no end.
    pub buckets: Vec<(u64, Option<u64>, u64)>,
}

impl ObservedFacts {
    pub(super) fn new(books: &Tracker, rules: &[Box<dyn Rule>]) -> ObservedFacts {
        let mut bill = Attribution::new(books);
        let mut findings: Vec<Finding> = Vec::new();
        for rule in rules {
            findings.extend(rule.findings(&mut bill));
        }
        findings.sort_by(|a, b| {
            let cost = |finding: &Finding| finding.cost_ms.unwrap_or(0.0);
            (b.severity.cmp(&a.severity)).then(cost(b).total_cmp(&cost(a)))
        });
        let mut caveats = books.caveats.clone();
        caveats.extend(books.shortcomings());
        if findings.len() > FINDINGS {
            caveats.push(Caveat::new(
                "many-findings",
                format!("{} more findings are not told", findings.len() - FINDINGS),
            ));
            findings.truncate(FINDINGS);
        }
        let missing = Unobserved::by_caveats(&caveats);
        let needed = books.needed();
        let opaque = books.opaque();
        let mut destinations: Vec<Destination> = books
            .places
            .iter()
            .zip(&books.counts)
            .zip(needed.iter().zip(&opaque))
            .map(|((place, counts), (&needed, &opaque))| {
                let lookups = place.origin.as_ref().and_then(|origin| {
                    let names = &books.names;
                    names.get(&origin.host).copied()
                });
                Destination {
                    origin: place.name(),
                    host: place.host(),
                    commands: named(&counts.commands),
                    agents: named(&counts.agents),
                    processes: counts.pids.len() as u64,
                    protocols: counts
                        .protocols
                        .iter()
                        .map(|(protocol, &count)| (protocol.as_str(), count))
                        .collect(),
                    tls: tls(counts),
                    figures: Figures::of(counts, needed, opaque, lookups.unwrap_or_default()),
                }
            })
            .filter(|one| {
                one.figures.connections.opened > 0
                    || one.figures.requests.total > 0
                    || !one.figures.connections.failed.is_empty()
            })
            .collect();
        destinations.sort_by_key(|one| {
            let wasted = one.figures.wasted_ms.map_or(0, |ms| (ms * 1e6) as u64);
            let figures = &one.figures;
            Reverse((
                wasted,
                figures.avoidable,
                figures.requests.total,
                figures.connections.opened,
            ))
        });
        let mut totals = Figures::of(
            &books.all,
            needed.iter().sum(),
            opaque.iter().sum(),
            books.lookups,
        );
        totals.sum_up(&destinations);
        if totals.opaque > 0 {
            caveats.push(Caveat::incomplete("cannot-see-inside", format!(
                    "what {} of {} connections carried cannot be seen: their requests are missing in the counts",
                    totals.opaque, totals.connections.opened
                )));
        }
        let known = books.all.first + books.all.reused;
        if known > 0 && known < totals.requests.total {
            caveats.push(Caveat::new("reuse-partly-known", format!(
                    "reuse is unknown for {} of {} requests: it lies in the range given, and a requirement is checked against the unfavourable end",
                    totals.requests.total - known,
                    totals.requests.total
                )));
        }
        let mut facts = ObservedFacts {
            verdict: Vec::new(),
            requests: totals.requests.clone(),
            connections: totals.connections.clone(),
            reused: totals.reused,
            reuse: totals.reuse,
            totals,
            destinations,
            findings,
            cpu: None,
            caveats,
        };
        facts.add_unobserved(&missing);
        facts.verdict = verdict::sentences(books, &facts);
        facts
    }

    /// Adds what is missing of all destinations.
    pub(crate) fn add_unobserved(&mut self, missing: &Unobserved) {
        self.totals.unobserved.add(missing);
        for one in &mut self.destinations {
            one.figures.unobserved.add(missing);
        }
    }

    /// Whether anything at all was answered, or was opened without our seeing inside.
    pub fn any_success(&self) -> bool {
        self.requests.ok > 0 || (self.requests.total == 0 && self.connections.opened > 0)
    }
}

impl Figures {
    /// `open_opaque`: open connections whose content could not be read so far.
    fn of(counts: &Counts, needed: u64, open_opaque: u64, lookups: Lookups) -> Figures {
        let opaque = counts.opaque + open_opaque;
        let known = counts.first + counts.reused;
        let avoidable = counts.opened.saturating_sub(needed);
        let outbound_ms = (counts.timed > 0).then(|| counts.outbound as f64 / NANOS_PER_MS);
        let wasted_ms = cost_ms(counts, avoidable);
        let seen_inside = counts.opened - opaque.min(counts.opened);
        let detail = counts.detail.as_deref();
        let ok = detail.and_then(|detail| detail.cell.merged(|key| key.outcome.is_ok()));
        let mean = |nanos: Option<f64>| nanos.map(|nanos| nanos / NANOS_PER_MS);
        let [dns, connect, ssl] = counts.setup.map(|sum| mean(sum.mean()));
        Figures {
            requests: Requests {
                total: counts.requests,
                ok: counts.ok,
                failed: counts
                    .failed
                    .iter()
                    .map(|(kind, &count)| (kind.id(), count))
                    .collect(),
                status: counts.status.clone(),
            },
            connections: Connections {
                opened: counts.opened,
                failed: counts
                    .dials_failed
                    .iter()
                    .map(|(kind, &count)| (kind.id(), count))
                    .collect(),
                ended_by: counts
                    .ended_by
                    .iter()
                    .map(|(by, &count)| (by.id(), count))
                    .collect(),
                needed,
            },
            avoidable,
            reused: counts.reused,
            reuse: (known > 0).then(|| counts.reused as f64 / known as f64),
            reuse_known: known,
            reuse_range: (known > 0 && known < counts.requests).then(|| {
                let unknown = counts.requests - known;
                let share = |count: u64| count as f64 / counts.requests as f64;
                [share(counts.reused), share(counts.reused + unknown)]
            }),
            opaque,
            unobserved: Unobserved {
                traffic: None,
                opaque,
                without_connection: counts.without_connection,
            },
            inferred: counts.inferred.iter().map(ToString::to_string).collect(),
            requests_per_connection: (seen_inside > 0 && counts.requests > 0)
                .then(|| counts.requests as f64 / seen_inside as f64),
            churn_per_s: counts
                .seconds()
                .map(|seconds| counts.opened as f64 / seconds),
            outbound_ms,
            setup_ms: (counts.setup_total.count > 0)
                .then(|| counts.setup_total.nanos as f64 / NANOS_PER_MS),
            setup_mean_ms: SetupMeans {
                dns,
                connect,
                ssl,
                total: mean(counts.setup_total.mean()),
            },
            wasted_ms,
            wasted_share: share_of(wasted_ms, outbound_ms),
            resumed_share: resumed_share(counts),
            lookups: LookupFigures {
                total: lookups.total,
                failed: lookups.failed,
                ms: (lookups.total > 0).then(|| lookups.nanos as f64 / NANOS_PER_MS),
                per_connection: (lookups.total > 0 && counts.opened > 0)
                    .then(|| lookups.total as f64 / counts.opened as f64),
            },
            latency_ms: ok
                .as_ref()
                .map(|group| Latency::of(&group.latency))
                .unwrap_or_default(),
            latency_without_setup_ms: ok
                .as_ref()
                .map(|group| Latency::of(&group.without_setup))
                .unwrap_or_default(),
            phases_ms: detail.map(Phases::of),
            idle_gaps: detail.and_then(|detail| Gaps::of(&detail.gaps, counts)),
            per_connection: detail.and_then(|detail| PerConnection::of(&detail.per_connection)),
        }
    }

    /// What the whole has only as the sum of its parts: waste is paid per destination, idle limits are each server's.
    fn sum_up(&mut self, destinations: &[Destination]) {
        let figures = || destinations.iter().map(|one| &one.figures);
        self.avoidable = figures().map(|one| one.avoidable).sum();
        let costs: Vec<f64> = figures().filter_map(|one| one.wasted_ms).collect();
        self.wasted_ms = (!costs.is_empty()).then(|| costs.iter().sum());
        // the setup of connections that cannot be seen inside is no part of the requests' time
        let seen = figures().filter(|one| one.requests.total > 0);
        let of_requests: f64 = seen.filter_map(|one| one.wasted_ms).sum();
        self.wasted_share = share_of(self.wasted_ms.map(|_| of_requests), self.outbound_ms);
        if let Some(gaps) = &mut self.idle_gaps {
            gaps.server_limit_s = None;
            gaps.danger_from_s = None;
            let each = figures().filter_map(|one| one.idle_gaps.as_ref());
            gaps.in_danger = each.map(|gaps| gaps.in_danger).sum();
            gaps.danger_share = Some(gaps.in_danger as f64 / gaps.count as f64);
        }
    }
}

impl Phases {
    fn of(detail: &Detail) -> Phases {
        let of = |reuse: Reuse| {
            let group = detail
                .cell
                .merged(|key| key.outcome.is_ok() && key.reuse == Some(reuse));
            Phase::ALL
                .iter()
                .map(|&phase| {
                    let time = group.as_ref().map(|group| group.phase(phase));
                    (phase.id(), time.and_then(PhaseTime::of))
                })
                .collect()
        };
        Phases {
            fresh: of(Reuse::Fresh),
            reused: of(Reuse::Reused),
        }
    }
}

impl Gaps {
    fn of(gaps: &Histogram, counts: &Counts) -> Option<Gaps> {
        if gaps.is_empty() {
            return None;
        }
        let edges = GAP_EDGES_S;
        let starts = std::iter::once(0.0).chain(edges);
        let ends = edges.into_iter().map(Some).chain([None]);
        let mut buckets: Vec<(f64, Option<f64>, u64)> = starts
            .zip(ends)
            .map(|(start, end)| (start, end, 0))
            .collect();
        for (low, high, count) in gaps.buckets() {
            let middle = seconds(u64::midpoint(low, high));
            let at = edges.iter().filter(|edge| middle >= **edge).count();
            buckets[at].2 += count;
        }
        let limit = server_limit(counts);
        let danger = limit.map(danger_from);
        let in_danger = danger.map_or(0, |from| at_least(gaps, from));
        Some(Gaps {
            count: gaps.count(),
            buckets,
            server_limit_s: limit.map(seconds),
            danger_from_s: danger.map(seconds),
            in_danger,
            danger_share: limit.map(|_| in_danger as f64 / gaps.count() as f64),
        })
    }
}

impl PerConnection {
    fn of(histogram: &Histogram) -> Option<PerConnection> {
        if histogram.is_empty() {
            return None;
        }
        let edges = EXCHANGE_EDGES;
        let ends = edges[1..].iter().map(|next| Some(next - 1)).chain([None]);
        let mut buckets: Vec<(u64, Option<u64>, u64)> = edges
            .iter()
            .zip(ends)
            .map(|(&start, end)| (start, end, 0))
            .collect();
        for (low, high, count) in histogram.buckets() {
            let middle = u64::midpoint(low, high);
            let at = edges.iter().filter(|edge| middle >= **edge).count();
            buckets[at.max(1) - 1].2 += count;
        }
        Some(PerConnection {
            mean: histogram.mean(),
            p50: histogram.quantile(0.5),
            max: histogram.max(),
            buckets,
        })
    }
}

/// The server's idle limit in nanoseconds: as announced or as seen, whichever is shorter.
pub(crate) fn server_limit(counts: &Counts) -> Option<u64> {
    let announced = counts
        .announced_timeout_s
        .filter(|&timeout| timeout > 0)
        .map(|timeout| u64::from(timeout) * 1_000_000_000);
    match (announced, counts.server_idle) {
        (Some(announced), Some(seen)) => Some(announced.min(seen)),
        (announced, seen) => announced.or(seen),
    }
}

/// Where a reuse begins to race the server's timer: a fifth of the limit before it, at most a second.
pub(crate) fn danger_from(limit: u64) -> u64 {
    limit - (limit / 5).min(1_000_000_000)
}

/// Values at or above `from`, to the histogram's accuracy.
pub(crate) fn at_least(histogram: &Histogram, from: u64) -> u64 {
    let above = histogram.buckets().filter(|(_, high, _)| *high >= from);
    above.map(|(_, _, count)| count).sum()
}

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

fn share_of(part: Option<f64>, whole: Option<f64>) -> Option<f64> {
    let whole = whole.filter(|whole| *whole > 0.0)?;
    Some((part? / whole).min(1.0))
}

fn resumed_share(counts: &Counts) -> Option<f64> {
    let of = |which: &dyn Fn(Handshake) -> bool| -> u64 {
        let kinds = counts.tls.iter();
        kinds
            .filter(|((_, handshake), _)| handshake.is_some_and(which))
            .map(|(_, count)| count)
            .sum()
    };
    let all = of(&|_| true);
    (all > 0).then(|| of(&|kind| kind != Handshake::Full) as f64 / all as f64)
}

fn tls(counts: &Counts) -> Vec<TlsFigures> {
    let kinds = counts.tls.iter();
    kinds
        .map(|(&(version, handshake), &count)| TlsFigures {
            version,
            handshake,
            count,
        })
        .collect()
}
