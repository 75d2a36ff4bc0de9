//! `first-request-costs-more`: a new connection costs more than its handshakes.

use super::waits;
use super::{Attribution, RuleRow};
use intact_document::finding::{Finding, RuleDoc, Severity};
use intact_document::statement::{nanos, statement};
use intact_ledger::Evidence;

/// How much longer the median must be, in nanoseconds.
const LONGER: f64 = 1_000_000.0;

/// By which factor it exceeds the other median.
const FACTOR: f64 = 1.5;

pub(super) static RULE: RuleRow = RuleRow {
    doc: RuleDoc {
        id: "first-request-costs-more",
        what: "The first response on a new connection takes longer than later ones, even without the handshakes. Something warms up per connection: authentication, a cache, a thread, a proxy's own connection.",
        evidence: "The median of `wait` over complete requests, fresh and reused separately.",
        threshold: "Ten requests of each kind, fresh slower by 1 ms and by half.",
        false_positives: "Different requests on fresh and on reused connections (a log-in first, a search later). This is an observation; `intact bench` measures the cause.",
        fix: "Keep connections: this is one more reason. The extra time is not in the cost of the other findings, which count handshakes and lookups only",
        risk: "None beyond those of keeping connections",
        needs: &[Evidence::Durations],
    },
    fold: || Box::new(findings),
};

fn findings(attribution: &mut Attribution<'_>) -> Vec<Finding> {
    waits::findings(attribution, &RULE.doc, Severity::Info, |fresh, reused| {
        (fresh - reused >= LONGER && fresh >= reused * FACTOR).then(|| statement!(
            "a new connection costs {extra} beyond its handshakes: its first response takes {fresh}, later ones {reused}",
            extra = nanos(fresh - reused),
            fresh = nanos(fresh),
            reused = nanos(reused)
        ))
    })
}
