//! Exchanges that have the kind of their connection in common: the histogram behind a picture, and where their time went.

use crate::figures::NANOS_PER_MS;
use ledger::{Cell, Group, Histogram, Phase};
use serde::Serialize;

/// Complete, measured exchanges that were all fresh, all reused, or of which it is not known.
#[derive(Clone, Debug, Serialize)]
pub struct Population {
    /// Whether they waited for set-up; absent when it is not known.
    pub fresh: Option<bool>,
    /// How many.
    pub count: u64,
    /// Mean latency, in milliseconds.
    pub mean_ms: f64,
    /// Median latency, in milliseconds; absent with fewer than ten on each side.
    pub p50_ms: Option<f64>,
    /// What each phase adds to the mean, in milliseconds: its sum over all of them by their number. In order, phases that none had left out.
    pub phases_ms: Vec<(&'static str, f64)>,
    /// The histogram: low, high (milliseconds), count.
    pub buckets: Vec<(f64, f64, u64)>,
}

impl Population {
    /// Those of some cells: fresh, reused, unknown; none of which there are no exchanges.
    pub(crate) fn all(cells: &[&Cell]) -> Vec<Population> {
        [Some(true), Some(false), None]
            .into_iter()
            .filter_map(|fresh| {
                let groups = cells.iter().filter_map(|cell| {
                    cell.merged(|key| !key.warmup && key.outcome.is_ok() && key.fresh == fresh)
                });
                let merged = groups.reduce(|mut all, one| {
                    all.merge(&one);
                    all
                })?;
                Population::of(fresh, &merged)
            })
            .collect()
    }

    fn of(fresh: Option<bool>, group: &Group) -> Option<Population> {
        let count = group.count();
        Some(Population {
            fresh,
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
pub(crate) fn buckets_ms(histogram: &Histogram) -> Vec<(f64, f64, u64)> {
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
