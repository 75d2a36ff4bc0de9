//! `slower-when-reused`: the answer takes longer on a kept connection than on a new one.

use super::waits::Waits;
use super::{Attribution, Doc, Rule};
use crate::finding::{Finding, Severity};
use intact_units::number::time;

/// How much longer the median must be, in nanoseconds and as a factor.
const LONGER: f64 = 15_000_000.0;
const FACTOR: f64 = 1.5;

static DOC: Doc = Doc {
    id: "slower-when-reused",
    what: "From request to first byte it takes longer on reused connections than on fresh ones. Usually Nagle's algorithm on one side against delayed acknowledgements on the other: about 40 ms a request.",
    evidence: "The median of `wait` over complete requests, fresh and reused apart.",
    threshold: "Ten requests of each kind, reused slower by 15 ms and by half: the delayed acknowledgement is 40 ms on Linux, so half of it is not noise.",
    false_positives: "Different requests on fresh and on reused connections (a log-in first, a search later). Observed, not an experiment: `intact bench` tells.",
    fix: "Set TCP_NODELAY on both sides and write head and body with one call",
    risk: "TCP_NODELAY without writing in one piece sends more and smaller packets",
};

pub(super) struct SlowerWhenReused;

impl Rule for SlowerWhenReused {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn findings(&self, bill: &mut Attribution<'_>) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (name, waits) in Waits::of_each(bill) {
            let (fresh, reused) = (waits.fresh, waits.reused);
            if reused - fresh < LONGER || reused < fresh * FACTOR {
                continue;
            }
            let words = format!(
                "the first byte takes {} on a reused connection, {} on a fresh one",
                time(reused / 1e6),
                time(fresh / 1e6)
            );
            let evidence = format!(
                "medians of {} reused and {} fresh requests",
                waits.reused_count, waits.fresh_count
            );
            findings.push(Finding::by(&DOC, Severity::Warning, name, words, evidence));
        }
        findings
    }
}
