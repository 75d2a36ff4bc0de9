//! The rules: what can be wrong with the reuse of connections, each a fold over the events in a file of its own with its documentation.
//!
//! A rule looks at events as they come (`observe`) and speaks at the end (`findings`). Where it says that connections were opened for
//! nothing it *claims* them from the [`Attribution`]: each avoidable setup is claimed once, by the most specific rule, because rules are
//! asked in the order of [`all`]. docs/rules.md is made from the [`Doc`]s.

mod attribution;
mod body_not_drained;
mod client;
mod close_announced_not_kept;
mod connection_close_sent;
mod first_request_costs_more;
mod h2_available_unused;
mod h2_not_multiplexed;
mod idle_timeout_race;
mod lookup_per_request;
mod new_client_per_request;
mod new_connection_per_query;
mod new_connection_per_request;
mod old_tls;
mod pinned_to_old_address;
mod pool_per_worker;
mod pool_too_small;
mod ports_running_out;
mod retried_request;
mod server_closes_early;
mod slower_when_reused;
mod stale_reuse;
mod state_carried_over;
mod tcp_keepalive_is_not_reuse;
mod tls_never_resumed;
mod waits;

pub(crate) use attribution::cost_ms;
pub use attribution::{Attribution, Claim};
pub use client::{Client, Remedy};

use crate::finding::Finding;
use crate::traffic::Context;
use intact_ledger::Event;

/// What a rule says of itself.
#[derive(Debug)]
pub struct Doc {
    /// The stable id.
    pub id: &'static str,
    /// What is wrong when it speaks.
    pub what: &'static str,
    /// What it rests on.
    pub evidence: &'static str,
    /// From when on it speaks, and why from there.
    pub threshold: &'static str,
    /// When it is wrong, or right and harmless.
    pub false_positives: &'static str,
    /// What to do.
    pub fix: &'static str,
    /// What the remedy can break, or what breaks without it.
    pub risk: &'static str,
}

/// A fold over the events with bounded state.
pub trait Rule: Send {
    /// What it says of itself.
    fn doc(&self) -> &'static Doc;

    /// Takes one event, which the books hold already.
    fn observe(&mut self, event: Event<'_>, context: &Context<'_>) {
        let _ = (event, context);
    }

    /// What it found; called as often as somebody wants to know.
    fn findings(&self, bill: &mut Attribution<'_>) -> Vec<Finding>;
}

/// Distinct things that a rule keeps apart for each destination or name.
const KEPT: usize = 4096;

/// All rules, the most specific first: in this order they claim avoidable setups.
pub fn all() -> Vec<Box<dyn Rule>> {
    vec![
        Box::<stale_reuse::StaleReuse>::default(),
        Box::<body_not_drained::BodyNotDrained>::default(),
        Box::new(connection_close_sent::ConnectionCloseSent),
        Box::<close_announced_not_kept::CloseAnnouncedNotKept>::default(),
        Box::<server_closes_early::ServerClosesEarly>::default(),
        Box::<new_connection_per_query::NewConnectionPerQuery>::default(),
        Box::new(pool_too_small::PoolTooSmall),
        Box::new(h2_not_multiplexed::H2NotMultiplexed),
        Box::new(new_client_per_request::NewClientPerRequest),
        Box::new(pool_per_worker::PoolPerWorker),
        Box::new(new_connection_per_request::NewConnectionPerRequest),
        Box::<retried_request::RetriedRequest>::default(),
        Box::new(idle_timeout_race::IdleTimeoutRace),
        Box::new(lookup_per_request::LookUpPerRequest),
        Box::<ports_running_out::PortsRunningOut>::default(),
        Box::new(tls_never_resumed::TlsNeverResumed),
        Box::new(old_tls::OldTls),
        Box::new(h2_available_unused::H2AvailableUnused),
        Box::new(slower_when_reused::SlowerWhenReused),
        Box::new(first_request_costs_more::FirstRequestCostsMore),
        Box::<pinned_to_old_address::PinnedToOldAddress>::default(),
        Box::<state_carried_over::StateCarriedOver>::default(),
        Box::<tcp_keepalive_is_not_reuse::TcpKeepaliveIsNotReuse>::default(),
    ]
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
            for told in [
                doc.what,
                doc.evidence,
                doc.threshold,
                doc.false_positives,
                doc.fix,
                doc.risk,
            ] {
                assert!(told.len() > 10, "{} leaves something unsaid", doc.id);
            }
        }
    }
}
