//! `slower-when-reused`: the response takes longer on a kept connection than on a new one.

use super::waits::{self, is_longer};
use super::{Attribution, Doc};
use crate::finding::{Finding, Severity};
use crate::statement::{nanos, statement};

/// How much longer the median must be, in nanoseconds.
const LONGER: f64 = 15_000_000.0;

pub(super) static DOC: Doc = Doc {
    id: "slower-when-reused",
    what: "The first byte takes longer on reused connections than on fresh ones. Usually Nagle's algorithm on one side meets delayed acknowledgements on the other: about 40 ms a request.",
    evidence: "The median of `wait` over complete requests, fresh and reused separately.",
    threshold: "Ten requests of each kind, reused slower by 15 ms and by half: the delayed acknowledgement is 40 ms on Linux, so half of it is not noise.",
    false_positives: "Different requests on fresh and on reused connections (a log-in first, a search later). This is an observation; `intact bench` measures the cause.",
    fix: "Set TCP_NODELAY on both sides, and write header section and body with one call",
    risk: "TCP_NODELAY with several writes sends more and smaller packets",
    fold: || Box::new(findings),
};

fn findings(bill: &mut Attribution<'_>) -> Vec<Finding> {
    waits::findings(bill, &DOC, Severity::Warning, |fresh, reused| {
        is_longer(reused, fresh, LONGER).then(|| {
            statement!(
                "the first byte takes {reused} on a reused connection, {fresh} on a fresh one",
                reused = nanos(reused),
                fresh = nanos(fresh)
            )
        })
    })
}
