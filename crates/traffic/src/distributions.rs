//! The distributions of a destination: idle gaps with the danger band, requests per connection.
//! Must not know destinations.

use super::destination::Counts;
use intact_document::figures::NANOS_PER_MS;
use intact_ledger::Histogram;
use serde::Serialize;

/// Seconds that part the idle gaps of the histogram; idle timers in use lie just above them.
const GAP_EDGES_S: [f64; 12] = [
    0.001, 0.01, 0.1, 1.0, 2.0, 4.0, 5.0, 10.0, 15.0, 30.0, 60.0, 300.0,
];
/// Exchanges per connection that part the distribution.
const EXCHANGE_EDGES: [u64; 9] = [1, 2, 3, 5, 10, 30, 100, 300, 1000];

/// The distribution of idle gaps, and the share in the danger band.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Gaps {
    /// How many.
    pub count: u64,
    /// `[from, to, count]` in seconds; the last has no end.
    pub buckets: Vec<(f64, Option<f64>, u64)>,
    /// The server's idle limit in seconds, as announced or as seen, whichever is shorter.
    pub server_limit_s: Option<f64>,
    /// Where the danger band begins, in seconds: the limit less a fifth of it, or less a second if
    /// that is smaller.
    pub danger_from_s: Option<f64>,
    /// Gaps at or above it.
    pub in_danger: u64,
    /// Their share.
    pub danger_share: Option<f64>,
    /// Mean, in milliseconds.
    #[serde(skip)]
    pub mean_ms: Option<f64>,
}

/// The distribution of requests over connections that ended.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
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

impl Gaps {
    pub(super) fn of(gaps: &Histogram, counts: &Counts) -> Option<Gaps> {
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
            mean_ms: gaps.mean().map(|nanos| nanos / NANOS_PER_MS),
        })
    }
}

impl PerConnection {
    pub(super) fn of(histogram: &Histogram) -> Option<PerConnection> {
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
pub fn server_limit(counts: &Counts) -> Option<u64> {
    let announced = counts
        .announced_timeout_s
        .filter(|&timeout| timeout > 0)
        .map(|timeout| u64::from(timeout) * 1_000_000_000);
    // an end before an idle time that others outlived was no timer: a restart, a drain
    let is_timer = |seen: &u64| counts.longest_reuse.is_none_or(|longest| *seen >= longest);
    match (announced, counts.server_idle.filter(is_timer)) {
        (Some(announced), Some(seen)) => Some(announced.min(seen)),
        (announced, seen) => announced.or(seen),
    }
}

/// Where a reuse begins to race the server's timer: a fifth of the limit before it, at most a
/// second.
pub fn danger_from(limit: u64) -> u64 {
    limit - (limit / 5).min(1_000_000_000)
}

/// Values at or above `from`, to the histogram's accuracy.
pub fn at_least(histogram: &Histogram, from: u64) -> u64 {
    let above = histogram.buckets().filter(|(_, high, _)| *high >= from);
    above.map(|(_, _, count)| count).sum()
}

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}
