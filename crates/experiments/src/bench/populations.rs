//! Populations of latencies in a variant: fresh and reused, the modes of the histogram. Must not
//! compare variants.

use super::variant::Mode;
use intact_document::figures::NANOS_PER_MS;
use intact_document::population::buckets_ms;
use intact_ledger::{Cell, Reuse};
use intact_statistics::two_modes;

/// Fresh and reused where both occur; else the two modes that the histogram shows, if it shows two.
pub(crate) fn modes(all: &Cell) -> Vec<Mode> {
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
            let parts = two_modes(&buckets_ms(&group.latency), 1);
            let parts = parts.map(|two| [("fast", two.fast), ("slow", two.slow)]);
            let modes = parts.into_iter().flatten().map(|(name, part)| Mode {
                name,
                share: part.share,
                mean_ms: part.mean,
            });
            modes.collect()
        }
        (None, None) => Vec::new(),
    }
}
