//! Populations of latencies in a variant: fresh and reused, the modes of the histogram. Must not
//! compare variants.

use super::variant::Mode;
use intact_document::figures::NANOS_PER_MS;
use intact_document::population::buckets_ms;
use intact_ledger::{Cell, Reuse};
use intact_statistics::{Bin, Modes, modes_of_bins};

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
            let bins: Vec<Bin> = buckets_ms(&group.latency)
                .into_iter()
                .map(|(low, high, count)| Bin { low, high, count })
                .collect();
            match modes_of_bins(&bins, 1) {
                Modes::Two { parts, .. } => [("fast", parts.fast), ("slow", parts.slow)]
                    .into_iter()
                    .map(|(name, part)| Mode {
                        name,
                        share: part.share,
                        mean_ms: part.mean,
                    })
                    .collect(),
                Modes::One(_) => Vec::new(),
            }
        }
        (None, None) => Vec::new(),
    }
}
