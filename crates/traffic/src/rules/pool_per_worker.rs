//! `pool-per-worker`: each process has a pool of its own, and they are not busy at the same time.

use super::{Attribution, RuleRow};
use crate::OpenReason;
use intact_document::finding::{Finding, RuleDoc, Severity};
use intact_document::statement::{Value, statement};
use intact_ledger::Evidence;

pub(super) static RULE: RuleRow = RuleRow {
    doc: RuleDoc {
        id: "pool-per-worker",
        what: "Several processes (workers, forks) each keep connections to the same destination. None can use another's, so together they hold more than the load needs.",
        evidence: "Connections to one destination opened by different processes while another process had an idle one.",
        threshold: "Two openings in vain in a process that had none of its own. Always informational: separate processes usually have a reason.",
        false_positives: "Nearly always by design. It matters where there are hundreds of workers (connection limits of the server) or where workers live for one request.",
        fix: "Run fewer workers with more threads each, or put one local proxy in front that pools for all of them",
        risk: "A local proxy is one more hop and one more service; threads share what processes isolate",
        needs: &[Evidence::Ends, Evidence::Owners],
    },
    fold: || Box::new(findings),
};

fn findings(attribution: &mut Attribution<'_>) -> Vec<Finding> {
    let claims = attribution.claim_by(OpenReason::OtherProcess, 2);
    // where none is used again, that others are idle is no reason
    let reused = claims.iter().filter(|one| one.counts.reused > 0);
    let found = reused.map(|one| {
        let said = one.opened("though another process had an idle one");
        let processes = Value::Count(one.counts.pids.len() as u64, "process");
        let evidence = statement!(
            "{processes} opened connections there",
            processes = processes
        );
        Finding {
            severity: Severity::Info,
            ..one.finding(&RULE.doc, said, evidence)
        }
    });
    found.collect()
}
