//! The rules: what can be wrong with the reuse of connections, each a fold over the events in a
//! file of its own with its documentation.
//!
//! A rule looks at events as they come (`observe`) and speaks at the end (`findings`). Where it
//! says that connections were opened for nothing it *claims* them from the [`Attribution`]: each
//! avoidable setup is claimed once, by the most specific rule, because rules are asked in the order
//! of [`all`]. docs/reference/rules.md is made from the [`Doc`]s.

mod attribution;
mod body_not_drained;
mod channel_per_call;
mod client;
mod close_announced_not_kept;
mod closed_before_response;
mod cold_pool;
mod connection_close_sent;
mod dead_connection_reused;
mod first_request_costs_more;
mod h2_available_unused;
mod h2_not_multiplexed;
mod h2_stream_limit;
mod idle_timeout_race;
mod leaked_connections;
mod lookup_per_request;
mod lost_in_drain;
mod new_client_per_request;
mod new_connection_per_query;
mod new_connection_per_request;
mod old_tls;
mod pinned_to_old_address;
mod pool_per_worker;
mod pool_too_small;
mod ports_running_out;
mod retried_request;
mod server;
mod server_closes_early;
mod slower_when_reused;
mod stale_reuse;
mod state_carried_over;
mod tcp_keepalive_is_not_reuse;
mod tls_never_resumed;
mod unbalanced_by_reuse;
mod waiting_for_pool;
mod waits;

pub(crate) use attribution::cost_ms;
pub use attribution::{Attribution, Claim};
pub use client::{Client, Remedy};
pub(crate) use connection_close_sent::OF_ERRORS;
pub(crate) use server::{Server, ServerLimit};
pub(crate) use server_closes_early::{AGE_LIMIT, WHY_RESET};

use crate::finding::Finding;
use crate::traffic::Context;
use crate::unobserved::Evidence;
use intact_ledger::Event;

/// The documentation of a rule, and how it is applied.
#[derive(Debug)]
pub struct Doc {
    /// The stable id.
    pub id: &'static str,
    /// What is wrong when the rule has a finding.
    pub what: &'static str,
    /// The events and figures that it uses.
    pub evidence: &'static str,
    /// From when on it has a finding, and why from there.
    pub threshold: &'static str,
    /// When a finding is wrong, or right and harmless.
    pub false_positives: &'static str,
    /// What to do.
    pub fix: &'static str,
    /// What the remedy can break, or what breaks without it.
    pub risk: &'static str,
    /// Without which evidence it cannot have a finding.
    pub(crate) needs: &'static [Evidence],
    fold: fn() -> Box<dyn Fold>,
}

/// A rule at work: its documentation and its state.
pub struct Rule {
    doc: &'static Doc,
    fold: Box<dyn Fold>,
}

impl Rule {
    /// Its documentation.
    pub fn doc(&self) -> &'static Doc {
        self.doc
    }

    /// Takes one event, which the tracker has already taken.
    pub(crate) fn observe(&mut self, event: Event<'_>, context: &Context<'_>) {
        self.fold.observe(event, context);
    }

    /// The findings so far; can be called repeatedly.
    pub(crate) fn findings(&self, attribution: &mut Attribution<'_>) -> Vec<Finding> {
        self.fold.findings(attribution)
    }
}

/// A fold over the events with bounded state.
trait Fold: Send {
    /// See [`Rule::observe`].
    fn observe(&mut self, event: Event<'_>, context: &Context<'_>) {
        let _ = (event, context);
    }

    /// See [`Rule::findings`].
    fn findings(&self, attribution: &mut Attribution<'_>) -> Vec<Finding>;
}

/// A rule that concludes from the tracker's counts alone.
impl<F: Fn(&mut Attribution<'_>) -> Vec<Finding> + Send> Fold for F {
    fn findings(&self, attribution: &mut Attribution<'_>) -> Vec<Finding> {
        self(attribution)
    }
}

/// Distinct things that a rule keeps apart for each destination or name.
const KEPT: usize = 4096;

/// The most specific first: in this order they claim avoidable setups.
static DOCS: [&Doc; 32] = [
    &stale_reuse::DOC,
    &lost_in_drain::DOC,
    &closed_before_response::DOC,
    &dead_connection_reused::DOC,
    &body_not_drained::DOC,
    &connection_close_sent::DOC,
    &close_announced_not_kept::DOC,
    &server_closes_early::DOC,
    &channel_per_call::DOC,
    &new_connection_per_query::DOC,
    &pool_too_small::DOC,
    &h2_not_multiplexed::DOC,
    &new_client_per_request::DOC,
    &pool_per_worker::DOC,
    &new_connection_per_request::DOC,
    &leaked_connections::DOC,
    &cold_pool::DOC,
    &retried_request::DOC,
    &idle_timeout_race::DOC,
    &h2_stream_limit::DOC,
    &waiting_for_pool::DOC,
    &lookup_per_request::DOC,
    &ports_running_out::DOC,
    &tls_never_resumed::DOC,
    &old_tls::DOC,
    &h2_available_unused::DOC,
    &slower_when_reused::DOC,
    &first_request_costs_more::DOC,
    &pinned_to_old_address::DOC,
    &unbalanced_by_reuse::DOC,
    &state_carried_over::DOC,
    &tcp_keepalive_is_not_reuse::DOC,
];

/// All rules, in the order in which they claim avoidable setups.
pub fn all() -> Vec<Rule> {
    let rule = |&doc: &&'static Doc| Rule {
        doc,
        fold: (doc.fold)(),
    };
    DOCS.iter().map(rule).collect()
}

/// The evidence that the rule with this id needs.
pub(crate) fn needs(id: &str) -> &'static [Evidence] {
    let doc = DOCS.iter().find(|doc| doc.id == id);
    doc.map_or(&[], |doc| doc.needs)
}

/// The ids of all rules.
pub fn ids() -> impl Iterator<Item = &'static str> {
    DOCS.iter().map(|doc| doc.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_says_what_it_rests_on_and_what_to_do() {
        let mut ids = std::collections::BTreeSet::new();
        for rule in all() {
            let doc = rule.doc();
            assert!(ids.insert(doc.id), "{} twice", doc.id);
            for part in [
                doc.what,
                doc.evidence,
                doc.threshold,
                doc.false_positives,
                doc.fix,
                doc.risk,
            ] {
                assert!(part.len() > 10, "{} leaves something unsaid", doc.id);
            }
        }
    }
}
