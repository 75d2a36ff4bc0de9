//! `slower-when-reused`: the response takes longer on a kept connection than on a new one.

use super::{Attribution, RuleRow};
use crate::Counts;
use intact_document::finding::{Finding, RuleDoc, Severity};
use intact_document::reuse_delay::{Arrivals, FIX, ReuseDelay};
use intact_ledger::Evidence;
use intact_ledger::Reuse;

pub(super) static RULE: RuleRow = RuleRow {
    doc: RuleDoc {
        id: "slower-when-reused",
        what: "Responses take longer on reused connections than on new ones. Usually Nagle's algorithm on one side meets delayed acknowledgements on the other: about 40 ms a request.",
        evidence: "The times of complete requests without setup, fresh and reused separately, as distributions: not every reused response has to be slow.",
        threshold: "A response is late if it takes 15 ms and 10 % more than the median on new connections. Their share is 25 points larger on reused connections, and chance explains that with 5 % at most (Fisher's exact test). With fewer than three fresh requests, or if requests overlapped (later ones queue longer), the limit is stricter. The medians must differ by 35 to 60 ms, as with a delayed acknowledgement, and by more than the fresh median.",
        false_positives: "Different requests on fresh and on reused connections (a log-in first, a search later). This is an observation; `intact bench` measures the cause.",
        fix: FIX,
        risk: "TCP_NODELAY with several writes sends more and smaller packets",
        needs: &[Evidence::Durations],
    },
    fold: || Box::new(findings),
};

fn findings(attribution: &mut Attribution<'_>) -> Vec<Finding> {
    let found = attribution.destinations().filter_map(|(_, name, counts)| {
        let delay = delay(counts)?;
        let (severity, evidence) = (Severity::Warning, delay.evidence());
        let said = delay.claim();
        Some(Finding::by(&RULE.doc, severity, name, said, evidence))
    });
    found.collect()
}

fn delay(counts: &Counts) -> Option<ReuseDelay> {
    let cell = &counts.detail.as_ref()?.cell;
    let of = |reuse: Reuse| cell.merged(|key| key.outcome.is_ok() && key.reuse == Some(reuse));
    let arrivals = match counts.has_overlaps() {
        true => Arrivals::Several,
        false => Arrivals::OneByOne,
    };
    ReuseDelay::of_groups(&of(Reuse::Fresh)?, &of(Reuse::Reused)?, arrivals)
}
