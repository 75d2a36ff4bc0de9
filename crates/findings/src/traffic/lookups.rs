//! Counts of lookups, by name and together. Bounded memory.

use intact_ledger::Lookup;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Names with counts of their own.
const NAMES: usize = 1024;

/// Lookups of one name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lookups {
    /// All.
    pub total: u64,
    /// Those that failed.
    pub failed: u64,
    /// Those whose result was not recorded.
    pub without_result: u64,
    /// Their total time, in nanoseconds.
    pub nanos: u64,
}

impl Lookups {
    fn add(&mut self, lookup: &Lookup) {
        self.total += 1;
        self.failed += u64::from(matches!(lookup.answer, Some(Err(_))));
        self.without_result += u64::from(lookup.answer.is_none());
        self.nanos = self.nanos.saturating_add(lookup.span.nanos());
    }
}

/// The lookups of a run.
#[derive(Clone, Debug, Default)]
pub struct LookupCounts {
    /// All of them.
    pub all: Lookups,
    /// Those of each name.
    pub names: BTreeMap<Arc<str>, Lookups>,
}

impl LookupCounts {
    pub(super) fn add(&mut self, lookup: &Lookup) {
        self.all.add(lookup);
        if let Some(name) = &lookup.name
            && (self.names.len() < NAMES || self.names.contains_key(name))
        {
            self.names.entry(name.clone()).or_default().add(lookup);
        }
    }
}
