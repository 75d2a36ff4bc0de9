//! How long requests on fresh and on reused connections waited for the first byte of their response.

use super::Attribution;
use crate::statement::{Statement, Value, statement};
use crate::traffic::Counts;
use intact_ledger::{Histogram, Phase, Reuse};

/// Requests of each kind that it takes.
const LEAST: u64 = 10;

/// The medians in nanoseconds, and of how many.
pub(super) struct Waits {
    pub(super) fresh: f64,
    pub(super) fresh_count: u64,
    pub(super) reused: f64,
    pub(super) reused_count: u64,
}

impl Waits {
    /// Those of each destination that had enough requests of both kinds, with its name.
    pub(super) fn of_each(bill: &Attribution<'_>) -> Vec<(String, Waits)> {
        bill.destinations()
            .filter_map(|(_, name, counts)| Some((name, Waits::of(counts)?)))
            .collect()
    }

    /// How many requests of each kind the medians are of.
    pub(super) fn samples(&self) -> Statement {
        statement!(
            "medians of {fresh_requests} fresh and {reused_requests} reused requests",
            fresh_requests = Value::Number(self.fresh_count),
            reused_requests = Value::Number(self.reused_count)
        )
    }

    fn of(counts: &Counts) -> Option<Waits> {
        let detail = counts.detail.as_ref()?;
        let wait = |reuse: Reuse| {
            let kind = detail
                .cell
                .merged(|key| key.outcome.is_ok() && key.reuse == Some(reuse))?;
            median(kind.phase(Phase::Wait))
        };
        let (fresh, fresh_count) = wait(Reuse::Fresh)?;
        let (reused, reused_count) = wait(Reuse::Reused)?;
        Some(Waits {
            fresh,
            fresh_count,
            reused,
            reused_count,
        })
    }
}

fn median(wait: &Histogram) -> Option<(f64, u64)> {
    let median = wait.quantile(0.5).filter(|_| wait.count() >= LEAST)?;
    Some((median, wait.count()))
}
