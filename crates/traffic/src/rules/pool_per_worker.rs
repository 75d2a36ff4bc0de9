//! `pool-per-worker`: each process has a pool of its own, and they are not busy at the same time.

use super::{Attribution, RuleRow};
use crate::OpenReason;
use intact_document::finding::{Finding, RuleDoc, Severity};
use intact_document::statement::{Value, statement};
use intact_ledger::Evidence;

/// Openings in vain from which on it speaks.
const LEAST: u64 = 2;
/// Openings that are needed from which on it speaks.
const MANY: u64 = 8;

pub(super) static RULE: RuleRow = RuleRow {
    doc: RuleDoc {
        id: "pool-per-worker",
        what: "Several processes (workers, forks) each keep connections to the same destination. None can use another's, so together they hold more than the load needs.",
        evidence: "Connections to one destination opened by different processes while another process had an idle one.",
        threshold: "Two openings in vain, or eight that are needed, in processes that had none of their own. A process needs connections of its own: in vain are those of processes that followed others. Always informational.",
        false_positives: "Nearly always by design. It matters where there are hundreds of workers (connection limits of the server) or where workers live for one request.",
        fix: "Run fewer workers with more threads each, or put one local proxy in front that pools for all of them",
        risk: "A local proxy is one more hop and one more service; threads share what processes isolate",
        needs: &[Evidence::Ends, Evidence::Owners],
    },
    fold: || Box::new(findings),
};

fn findings(attribution: &mut Attribution<'_>) -> Vec<Finding> {
    let destinations = attribution.destinations();
    // where none is used again, that others are idle is no reason
    let reusing = destinations.filter(|(.., counts)| counts.reused > 0);
    let reusing: Vec<usize> = reusing.map(|(at, ..)| at).collect();
    let found = reusing.into_iter().filter_map(|at| {
        let opened = attribution.openings(at, OpenReason::OtherProcess);
        let is_several = opened >= MANY || opened.min(attribution.left(at)) >= LEAST;
        let one =
            is_several.then(|| attribution.claim_at(at, &[OpenReason::OtherProcess], 0))??;
        let said = one.opened("though another process had an idle one");
        let processes = Value::Count(one.counts.pids.len() as u64, "process");
        let evidence = statement!(
            "{processes} opened connections there",
            processes = processes
        );
        Some(Finding {
            severity: Severity::Info,
            ..one.finding(&RULE.doc, said, evidence)
        })
    });
    found.collect()
}
