//! `first-request-costs-more`: a new connection costs more than its handshakes.

use super::{Attribution, RuleRow};
use crate::Counts;
use intact_document::finding::{Finding, RuleDoc, Severity};
use intact_document::statement::{Value, nanos, statement};
use intact_ledger::{Evidence, Phase, Reuse};

/// How much longer the median must be, in nanoseconds.
const LONGER: f64 = 1_000_000.0;

/// By which factor the lower quartile exceeds the upper one of the others.
const FACTOR: f64 = 1.5;

/// Requests of each kind that it takes.
const LEAST: u64 = 10;

pub(super) static RULE: RuleRow = RuleRow {
    doc: RuleDoc {
        id: "first-request-costs-more",
        what: "The first response on a new connection takes longer than later ones, even without the handshakes. Something warms up per connection: authentication, a cache, a thread, a proxy's own connection.",
        evidence: "Median and quartiles of `wait` over complete requests, fresh and reused separately.",
        threshold: "Ten requests of each kind, none at the same time as another: a burst is slower at its beginning, too. The median of fresh ones is 1 ms longer, and their lower quartile is longer than the upper quartile of reused ones by half.",
        false_positives: "Different requests on fresh and on reused connections (a log-in first, a search later). This is an observation; `intact bench` measures the cause.",
        fix: "Keep connections: this is one more reason. The extra time is not in the cost of the other findings, which count handshakes and lookups only",
        risk: "None beyond those of keeping connections",
        needs: &[Evidence::Durations],
    },
    fold: || Box::new(findings),
};

/// The time until the first byte of the response, over complete requests of one kind.
struct Waits {
    count: u64,
    /// The quartiles, in nanoseconds.
    quartiles: [f64; 3],
}

impl Waits {
    fn of(counts: &Counts, reuse: Reuse) -> Option<Waits> {
        let cell = &counts.detail.as_ref()?.cell;
        let kind = cell.merged(|key| key.outcome.is_ok() && key.reuse == Some(reuse))?;
        let wait = kind.phase(Phase::Wait);
        let quartile = |part| wait.quantile(part).filter(|_| wait.count() >= LEAST);
        Some(Waits {
            count: wait.count(),
            quartiles: [quartile(0.25)?, quartile(0.5)?, quartile(0.75)?],
        })
    }
}

fn findings(attribution: &mut Attribution<'_>) -> Vec<Finding> {
    let found = attribution.destinations().filter_map(|(_, name, counts)| {
        if counts.shows_overlaps() {
            return None;
        }
        let fresh = Waits::of(counts, Reuse::Fresh)?;
        let reused = Waits::of(counts, Reuse::Reused)?;
        let ([low, median, _], [_, usual, high]) = (fresh.quartiles, reused.quartiles);
        if median - usual < LONGER || low < high * FACTOR {
            return None;
        }
        let said = statement!(
            "a new connection costs {extra} beyond its handshakes: its first response takes {fresh}, later ones {reused}",
            extra = nanos(median - usual),
            fresh = nanos(median),
            reused = nanos(usual)
        );
        let samples = statement!(
            "medians of {fresh_requests} fresh and {reused_requests} reused requests",
            fresh_requests = Value::Number(fresh.count),
            reused_requests = Value::Number(reused.count)
        );
        Some(Finding::by(&RULE.doc, Severity::Info, name, said, samples))
    });
    found.collect()
}
