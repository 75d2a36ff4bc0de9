//! The rules: what can be wrong with the reuse of connections, each a fold over the events in a file of its own with its documentation.
//!
//! A rule looks at events as they come (`observe`) and speaks at the end (`findings`). Where it says that connections were opened for
//! nothing it *claims* them from the [`Bill`]: each avoidable set-up is claimed once, by the most specific rule, because rules are
//! asked in the order of [`all`]. docs/rules.md is made from the [`Doc`]s.

mod bill;

pub(crate) use bill::cost_ms;
pub use bill::{Bill, Claim};

use crate::finding::Finding;
use crate::observe::Context;
use ledger::Event;

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
    fn findings(&self, bill: &mut Bill<'_>) -> Vec<Finding>;
}

/// All rules, the most specific first.
pub fn all() -> Vec<Box<dyn Rule>> {
    vec![]
}
