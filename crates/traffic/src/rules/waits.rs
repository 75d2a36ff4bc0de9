//! How long requests on fresh and on reused connections waited for the first byte of the response.

use super::Attribution;
use crate::Counts;
use intact_document::finding::{Finding, RuleDoc, Severity};
use intact_document::statement::{Statement, Value, statement};
use intact_ledger::{Histogram, Phase, Reuse};

/// Requests of each kind that it takes.
const LEAST: u64 = 10;

/// A finding for each destination whose medians, of fresh and of reused requests in nanoseconds,
/// have something to state.
pub(super) fn findings(
    attribution: &Attribution<'_>,
    doc: &'static RuleDoc,
    severity: Severity,
    stated: impl Fn(f64, f64) -> Option<Statement>,
) -> Vec<Finding> {
    let found = attribution.destinations().filter_map(|(_, name, counts)| {
        let waits = Waits::of(counts)?;
        let said = stated(waits.fresh, waits.reused)?;
        Some(Finding::by(doc, severity, name, said, waits.samples()))
    });
    found.collect()
}

/// The medians in nanoseconds, and of how many.
struct Waits {
    fresh: f64,
    fresh_count: u64,
    reused: f64,
    reused_count: u64,
}

impl Waits {
    /// How many requests of each kind the medians are of.
    fn samples(&self) -> Statement {
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
