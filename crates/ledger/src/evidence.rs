//! The kinds of evidence that a run has, and the set of them that a producer adds to its header.
//! Must not know which figures or rules need them.

use serde::{Deserialize, Serialize};
use std::fmt;

kinds! {
    json
    /// A kind of fact that a producer observes. The absence of such a fact shows something only
    /// where the producer would have recorded it.
    pub enum Evidence, id {
        /// The addresses that lookups resulted in.
        Addresses = "addresses",
        /// What the peers announce about a connection: its end (`Connection: close`, GOAWAY) and
        /// its limits (SETTINGS).
        Announcements = "announcements",
        /// What a client tries without reaching the server: dials and requests that fail on the
        /// way.
        Attempts = "attempts",
        /// Whether the client read response bodies to their end.
        Bodies = "bodies",
        /// Which requests are calls of gRPC.
        Calls = "calls",
        /// What only the bytes of a connection show: other protocols than HTTP, the protocols that
        /// a client offers, probes.
        Contents = "contents",
        /// How long requests take; without it, the times of exchanges only show their order.
        Durations = "durations",
        /// How connections end; without it, a connection without a recorded end may have ended.
        Ends = "ends",
        /// The version and the kind of each TLS handshake.
        Handshakes = "handshakes",
        /// The user that a request belongs to: hashes of its credential and its cookie.
        Identities = "identities",
        /// Every lookup of a name; without it, lookups may be missing.
        Lookups = "lookups",
        /// Which process opened each connection.
        Owners = "owners",
        /// Which processes use a connection at the same time.
        Processes = "processes",
        /// Which requests are equal: the same method, full target and body.
        Repeats = "repeats",
        /// Whether a request reused its connection.
        Reuse = "reuse",
        /// How long the steps of a connection's setup took.
        Setup = "setup",
    }
}

impl Evidence {
    const fn bit(self) -> u16 {
        1 << self as u16
    }
}

/// A set of kinds of evidence, empty by default. JSON has the sorted list of their ids; ids of a
/// newer version are ignored.
#[derive(Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "Vec<String>", into = "Vec<Evidence>")]
pub struct EvidenceSet(u16);

impl EvidenceSet {
    /// The set of these kinds.
    pub const fn of(kinds: &[Evidence]) -> EvidenceSet {
        let mut set = EvidenceSet(0);
        let mut at = 0;
        while at < kinds.len() {
            set.0 |= kinds[at].bit();
            at += 1;
        }
        set
    }

    /// The kinds that are in either set.
    #[must_use]
    pub const fn union(self, other: EvidenceSet) -> EvidenceSet {
        EvidenceSet(self.0 | other.0)
    }

    /// The set without this kind.
    #[must_use]
    pub const fn without(self, kind: Evidence) -> EvidenceSet {
        EvidenceSet(self.0 & !kind.bit())
    }

    /// The kinds that are in both sets: what two inputs together show.
    #[must_use]
    pub const fn intersection(self, other: EvidenceSet) -> EvidenceSet {
        EvidenceSet(self.0 & other.0)
    }

    /// Whether the set has this kind.
    pub const fn contains(self, kind: Evidence) -> bool {
        self.0 & kind.bit() != 0
    }

    /// Whether the set has no kind.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The kinds in the order of their ids.
    pub fn iter(self) -> impl Iterator<Item = Evidence> {
        let all = Evidence::ALL.into_iter();
        all.filter(move |&kind| self.contains(kind))
    }
}

impl fmt::Debug for EvidenceSet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.iter()).finish()
    }
}

impl FromIterator<Evidence> for EvidenceSet {
    fn from_iter<I: IntoIterator<Item = Evidence>>(kinds: I) -> EvidenceSet {
        let bits = kinds.into_iter().map(Evidence::bit);
        EvidenceSet(bits.fold(0, |set, bit| set | bit))
    }
}

impl<const N: usize> From<[Evidence; N]> for EvidenceSet {
    fn from(kinds: [Evidence; N]) -> EvidenceSet {
        EvidenceSet::of(&kinds)
    }
}

impl From<Vec<String>> for EvidenceSet {
    fn from(ids: Vec<String>) -> EvidenceSet {
        ids.iter().filter_map(|id| id.parse().ok()).collect()
    }
}

impl From<EvidenceSet> for Vec<Evidence> {
    fn from(set: EvidenceSet) -> Vec<Evidence> {
        set.iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_has_the_sorted_ids_and_unknown_ones_are_ignored() {
        let set = EvidenceSet::of(&[Evidence::Setup, Evidence::Ends, Evidence::Addresses]);
        let json = serde_json::to_string(&set).unwrap();
        assert_eq!(json, r#"["addresses","ends","setup"]"#);
        let read: EvidenceSet =
            serde_json::from_str(r#"["setup", "telepathy", "ends", "addresses"]"#).unwrap();
        assert_eq!(read, set);
    }

    #[test]
    fn all_kinds_are_listed_once_in_the_order_of_their_ids() {
        let ids = Evidence::ALL.map(Evidence::id);
        assert!(ids.is_sorted());
        for kind in Evidence::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.id());
        }
        assert_eq!(EvidenceSet::of(&Evidence::ALL).iter().count(), 16);
    }

    #[test]
    fn sets_have_what_was_added_to_them() {
        let both = EvidenceSet::of(&[Evidence::Ends, Evidence::Reuse]);
        assert!(EvidenceSet::default().is_empty());
        assert!(both.contains(Evidence::Reuse) && !both.contains(Evidence::Setup));
        let one = both.without(Evidence::Ends).without(Evidence::Setup);
        assert_eq!(one, EvidenceSet::of(&[Evidence::Reuse]));
        assert_eq!(both.intersection(one.union([Evidence::Setup].into())), one);
    }
}
