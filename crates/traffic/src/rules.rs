//! The rules: what can be wrong with the reuse of connections, each a fold over the events in a
//! file of its own with its documentation.
//!
//! A rule looks at events as they come (`observe`) and speaks at the end (`findings`). Where it
//! says that connections were opened for nothing it *claims* them from the [`Attribution`]: each
//! avoidable setup is claimed once, by the most specific rule, because rules are asked in the order
//! of [`all`]. docs/reference/rules.md is made from the [`RuleDoc`]s.

/// The threshold of a rule about connections opened in vain, with its own words before and after.
/// [`attribution::Claim::severity`] judges by it.
macro_rules! many {
    ($least:literal $(, $rest:literal)?) => {
        concat!(
            $least,
            " A warning from 3 on, or 2 that are half of the connections; where four are needed, a \
             third. Informational below one per hundred requests.",
            $(" ", $rest)?
        )
    };
}

mod abandoned_request;
mod attribution;
mod body_not_drained;
mod broken_response;
mod channel_per_call;
mod close_announced_not_kept;
mod closed_before_response;
mod cold_pool;
mod connection_close_sent;
mod connection_shared_by_processes;
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
mod pool_table;
mod pool_too_small;
mod ports_running_out;
mod retried_request;
mod server_closes_early;
mod settings;
mod slower_when_reused;
mod stale_reuse;
mod standstill;
mod state_carried_over;
mod tcp_keepalive_is_not_reuse;
mod tls_never_resumed;
mod unbalanced_by_reuse;
mod waiting_for_pool;

pub use attribution::{Attribution, Claim, are_rare, cost_ms};
pub use connection_close_sent::OF_ERRORS;
pub use server_closes_early::{AGE_LIMIT, WHY_RESET};

use crate::Context;
use intact_advice::{Remedy, ServerLimit};
use intact_document::finding::{Finding, RuleDoc};
use intact_ledger::{Event, Evidence, Exchange, Run, Vantage};
use settings::for_client;

/// Evidence without which no event can make a rule that needs it find anything. A log has millions
/// of requests, and none of this evidence. A capture may turn out to have lookups.
const DECIDING: [Evidence; 2] = [Evidence::Processes, Evidence::Setup];

/// A row of the table of rules: what is documented, and the fold that applies it.
struct RuleRow {
    doc: RuleDoc,
    fold: fn() -> Box<dyn Fold>,
}

/// A rule at work: its documentation and its state.
pub struct Rule {
    doc: &'static RuleDoc,
    fold: Box<dyn Fold>,
    /// Whether the events can show what it looks for.
    is_fed: bool,
}

impl Rule {
    /// Its documentation.
    pub fn doc(&self) -> &'static RuleDoc {
        self.doc
    }

    /// Takes one event, which the tracker has already taken.
    pub(crate) fn observe(&mut self, event: Event<'_>, context: &Context<'_>) {
        if self.is_fed {
            self.fold.observe(event, context);
        }
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

    /// Whether it observes events.
    fn observes(&self) -> bool {
        true
    }

    /// See [`Rule::findings`].
    fn findings(&self, attribution: &mut Attribution<'_>) -> Vec<Finding>;
}

/// A rule that concludes from the tracker's counts alone.
impl<F: Fn(&mut Attribution<'_>) -> Vec<Finding> + Send> Fold for F {
    fn observes(&self) -> bool {
        false
    }

    fn findings(&self, attribution: &mut Attribution<'_>) -> Vec<Finding> {
        self(attribution)
    }
}

/// Whether an exchange that was read had no byte of a response.
fn is_without_response(exchange: &Exchange) -> bool {
    let bytes = &exchange.bytes;
    let is_empty = bytes.head == 0 && bytes.body == 0;
    exchange.certainty.is_exact() && exchange.status.is_none() && is_empty
}

/// Whether a request that is sent again may do what it does twice.
fn is_unsafe(exchange: &Exchange) -> bool {
    let method = exchange.method.as_ref();
    method.is_some_and(|method| !method.is_idempotent())
}

/// Distinct things that a rule keeps apart for each destination or name.
const KEPT: usize = 4096;

/// The most specific first: in this order they claim avoidable setups.
static RULES: [&RuleRow; 35] = [
    &connection_shared_by_processes::RULE,
    &stale_reuse::RULE,
    &lost_in_drain::RULE,
    &closed_before_response::RULE,
    &dead_connection_reused::RULE,
    &body_not_drained::RULE,
    &connection_close_sent::RULE,
    &server_closes_early::RULE,
    &close_announced_not_kept::RULE,
    &channel_per_call::RULE,
    &new_connection_per_query::RULE,
    &pool_too_small::RULE,
    &h2_not_multiplexed::RULE,
    &leaked_connections::RULE,
    &new_client_per_request::RULE,
    &pool_per_worker::RULE,
    &broken_response::RULE,
    &abandoned_request::RULE,
    &new_connection_per_request::RULE,
    &cold_pool::RULE,
    &retried_request::RULE,
    &idle_timeout_race::RULE,
    &h2_stream_limit::RULE,
    &waiting_for_pool::RULE,
    &lookup_per_request::RULE,
    &ports_running_out::RULE,
    &tls_never_resumed::RULE,
    &old_tls::RULE,
    &h2_available_unused::RULE,
    &slower_when_reused::RULE,
    &first_request_costs_more::RULE,
    &pinned_to_old_address::RULE,
    &unbalanced_by_reuse::RULE,
    &state_carried_over::RULE,
    &tcp_keepalive_is_not_reuse::RULE,
];

/// All rules, in the order in which they claim avoidable setups.
pub fn all() -> Vec<Rule> {
    let rule = |row: &&'static RuleRow| Rule {
        doc: &row.doc,
        fold: (row.fold)(),
        is_fed: true,
    };
    RULES.iter().map(rule).collect()
}

/// All rules, for the events of a run.
pub(crate) fn of_run(run: &Run) -> Vec<Rule> {
    // a server looks up none of its clients
    let is_of_server = run.vantage == Vantage::Server;
    let is_in_vain = |kind: &Evidence| match kind {
        Evidence::Lookups => is_of_server,
        kind => DECIDING.contains(kind) && !run.sees(*kind),
    };
    let mut rules = all();
    for rule in &mut rules {
        rule.is_fed = rule.fold.observes() && !rule.doc.needs.iter().any(is_in_vain);
    }
    rules
}

/// The evidence that the rule with this id needs.
pub fn needs(id: &str) -> &'static [Evidence] {
    let row = RULES.iter().find(|row| row.doc.id == id);
    row.map_or(&[], |row| row.doc.needs)
}

/// The ids of all rules, with the evidence that each needs.
pub fn evidence() -> impl Iterator<Item = (&'static str, &'static [Evidence])> {
    RULES.iter().map(|row| (row.doc.id, row.doc.needs))
}

/// The ids of all rules.
pub fn ids() -> impl Iterator<Item = &'static str> {
    RULES.iter().map(|row| row.doc.id)
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
