//! What stands out in the traffic of each variant, and what a freeze did to its connections. A
//! limit of the server is no remedy for a freeze: the function cannot see it pass.

use super::frozen::DeadUse;
use super::variant::VariantFacts;
use intact_document::facts::{RuleState, rule_states};
use intact_document::finding::{Finding, Severity};
use intact_document::statement::{Statement, Value, statement};
use intact_document::unobserved::Unobserved;
use intact_ledger::Evidence;
use intact_traffic::rules;

/// Invocations failed because of a connection that the server closed while the function was frozen.
const DIED_IN_FREEZE: &str = "died-in-freeze";
/// Rules whose remedy is a longer idle limit of the server, or a shorter one of the client.
const OF_IDLE_LIMITS: [&str; 2] = ["server-closes-early", "stale-reuse"];

/// The remedy for what a freeze did.
const FIX: &str = "Send a request again on a new connection where a kept one fails before a response, if the request may run twice. Else set the client's idle limit below the server's: a client that checks it before it sends, as Node's agent does, then drops the dead connection after the freeze";
/// Its risk.
const RISK: &str = "A request that reached the server before its connection failed runs twice";

/// The rules that a function is asked.
pub fn rule_ids() -> Vec<&'static str> {
    rules::ids().chain([DIED_IN_FREEZE]).collect()
}

/// Which of them could not judge.
pub(super) fn states(unobserved: &Unobserved) -> Vec<RuleState> {
    let own: (&str, &[Evidence]) = (DIED_IN_FREEZE, &[Evidence::Ends]);
    rule_states(rules::evidence().chain([own]), unobserved)
}

/// Those of a variant, the failures first.
pub(super) fn of_variant(variant: &VariantFacts) -> Vec<Finding> {
    let died = variant.died_in_freeze();
    let observed = variant.observed.iter().flat_map(|facts| &facts.findings);
    let is_of_client =
        |finding: &Finding| finding.is_of_openings && !OF_IDLE_LIMITS.contains(&finding.rule);
    let is_of_freezes = !observed.clone().any(is_of_client);
    let observed = observed.cloned().map(|finding| {
        if died == 0 || !OF_IDLE_LIMITS.contains(&finding.rule) {
            return finding;
        }
        // what a freeze ends is opened again, and that is the remedy
        let is_recovered = is_of_freezes && !variant.fails_on_dead() && openings(&finding) <= died;
        let severity = finding.severity.unless(is_recovered, Severity::Info);
        Finding {
            severity,
            ..finding.fix(FIX).risk(RISK)
        }
    });
    let failed = failed_on_dead(variant).into_iter();
    failed.chain(observed).collect()
}

/// The connections that a finding counts as opened; none where it counts something else.
fn openings(finding: &Finding) -> u64 {
    let values = finding.claim.values();
    let counts = values.filter_map(|(name, value)| match value {
        Value::Count(openings, _) if name == "openings" => Some(*openings),
        _ => None,
    });
    counts.sum()
}

/// The invocations that failed because of a connection that had died in a freeze.
fn failed_on_dead(variant: &VariantFacts) -> Option<Finding> {
    let [sent, unsent] = [DeadUse::Sent, DeadUse::Unsent].map(|one| variant.failed_on_dead(one));
    let invocations = Value::Count(sent + unsent, "invocation");
    let evidence = match (sent, unsent) {
        (0, 0) => return None,
        (_, 0) => Statement::text("The request on a connection that had died failed"),
        _ => {
            let unsent = Value::Count(unsent, "invocation");
            statement!(
                "{unsent} sent no request to the server of a connection that had died: inferred, the client picked that connection and noticed its end before it wrote",
                unsent = unsent
            )
        }
    };
    let claim = statement!(
        "{invocations} failed after the server had closed a kept connection while the function was frozen",
        invocations = invocations
    );
    let subject = "the function".to_owned();
    let found = Finding::new(DIED_IN_FREEZE, Severity::Error, subject, claim);
    Some(found.evidence(evidence).fix(FIX).risk(RISK))
}
