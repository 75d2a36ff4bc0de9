//! Counts of lookups, by name and together. Bounded memory.

use intact_ledger::Lookup;
use intact_units::plural::counted;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Names with counts of their own.
const NAMES: usize = 1024;
/// The errors that are counted by kind, in the words of resolvers and of getaddrinfo; all others
/// are `other`.
const ERRORS: [&str; 8] = [
    "NXDOMAIN",
    "ENOTFOUND",
    "SERVFAIL",
    "REFUSED",
    "EAI_AGAIN",
    "no answer",
    "unreachable",
    "other",
];

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
    /// Failed ones by their error, in the order of [`ERRORS`].
    errors: [u64; ERRORS.len()],
}

impl Lookups {
    fn add(&mut self, lookup: &Lookup) {
        self.total += 1;
        if let Some(Err(error)) = &lookup.answer {
            self.failed += 1;
            let known = ERRORS.iter().position(|known| **known == **error);
            self.errors[known.unwrap_or(ERRORS.len() - 1)] += 1;
        }
        self.without_result += u64::from(lookup.answer.is_none());
        self.nanos = self.nanos.saturating_add(lookup.span.nanos());
    }

    /// Failed ones by their error.
    pub fn errors(&self) -> BTreeMap<&'static str, u64> {
        let counts = ERRORS.iter().copied().zip(self.errors);
        counts.filter(|(_, count)| *count > 0).collect()
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
    /// Failed ones of names that were found at other times.
    pub(super) fn sporadic(&self) -> u64 {
        let names = self.names.values();
        let sometimes = names.filter(|one| one.failed + one.without_result < one.total);
        sometimes.map(|one| one.failed).sum()
    }

    /// The name that failed most often and was never found, and how many others there are.
    pub(super) fn never_found(&self) -> Option<String> {
        let names = self.names.iter();
        let never = names.filter(|(_, one)| one.failed > 0 && one.failed == one.total);
        let (name, _) = never.clone().max_by_key(|(_, one)| one.failed)?;
        Some(match never.count() - 1 {
            0 => name.to_string(),
            others => format!("{name} and {}", counted(others as u64, "other name")),
        })
    }

    /// Failed ones that a request waited for. A resolver with a search list asks for longer names
    /// before or after the one that is found: these are none.
    pub(super) fn in_vain(&self) -> u64 {
        let is_found = |one: &Lookups| one.failed + one.without_result < one.total;
        let is_of_search_list = |name: &str| {
            let shorter = name.match_indices('.').map(|(dot, _)| &name[..dot]);
            let mut known = shorter.filter_map(|shorter| self.names.get(shorter));
            known.any(is_found)
        };
        let names = self.names.iter();
        let searched = names.filter(|(name, one)| !is_found(one) && is_of_search_list(name));
        self.all.failed - searched.map(|(_, one)| one.failed).sum::<u64>()
    }

    pub(super) fn add(&mut self, lookup: &Lookup) {
        self.all.add(lookup);
        if let Some(name) = &lookup.name
            && (self.names.len() < NAMES || self.names.contains_key(name))
        {
            self.names.entry(name.clone()).or_default().add(lookup);
        }
    }
}
