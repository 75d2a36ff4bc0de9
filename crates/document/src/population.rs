//! Exchanges that have the kind of their connection in common: the histogram behind a picture, and
//! where their time went.

use crate::figures::NANOS_PER_MS;
use intact_ledger::{Cell, Group, Histogram, Phase, Reuse};
use serde::Serialize;

/// Complete, measured exchanges whose connections were in the same state: fresh, preconnected,
/// reused or unknown.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Population {
    /// The state of their connection; absent when it is unknown.
    pub reuse: Option<Reuse>,
    /// How many.
    pub count: u64,
    /// Mean latency, in milliseconds.
    pub mean_ms: f64,
    /// Median latency, in milliseconds; absent with fewer than ten on each side.
    pub p50_ms: Option<f64>,
    /// What each phase adds to the mean, in milliseconds: its sum over all of them by their
    /// number. In order, phases that none had left out.
    pub phases_ms: Vec<(&'static str, f64)>,
    /// The histogram: low, high (milliseconds), count.
    pub buckets: Vec<(f64, f64, u64)>,
}

impl Population {
    /// Those of some cells, in the order fresh, preconnected, reused, unknown; a state without
    /// exchanges is left out.
    pub fn all(cells: &[&Cell]) -> Vec<Population> {
        Reuse::ALL
            .into_iter()
            .map(Some)
            .chain([None])
            .filter_map(|reuse| {
                let groups = cells.iter().filter_map(|cell| {
                    cell.merged(|key| !key.warmup && key.outcome.is_ok() && key.reuse == reuse)
                });
                let merged = groups.reduce(|mut all, one| {
                    all.merge(&one);
                    all
                })?;
                Population::of(reuse, &merged)
            })
            .collect()
    }

    fn of(reuse: Option<Reuse>, group: &Group) -> Option<Population> {
        let count = group.count();
        Some(Population {
            reuse,
            count,
            mean_ms: group.latency.mean()? / NANOS_PER_MS,
            p50_ms: group
                .latency
                .supported_quantile(0.5)
                .map(|p50| p50 / NANOS_PER_MS),
            phases_ms: Phase::ALL
                .iter()
                .map(|&phase| {
                    let sum = group.phase(phase).sum() as f64;
                    (phase.id(), sum / count as f64 / NANOS_PER_MS)
                })
                .filter(|(_, ms)| *ms > 0.0)
                .collect(),
            buckets: buckets_ms(&group.latency),
        })
    }
}

/// The buckets of a histogram of nanoseconds, in milliseconds.
pub fn buckets_ms(histogram: &Histogram) -> Vec<(f64, f64, u64)> {
    histogram
        .buckets()
        .map(|(low, high, count)| {
            (
                low as f64 / NANOS_PER_MS,
                (high as f64 + 1.0) / NANOS_PER_MS,
                count,
            )
        })
        .collect()
}
