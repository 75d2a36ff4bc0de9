//! `pinned-to-old-address`: a name leads elsewhere, and the pool has not noticed.

use super::{Attribution, Fold, KEPT, RuleRow};
use crate::Context;
use intact_document::finding::{Finding, RuleDoc, Severity};
use intact_document::statement::{requests, statement, text, timer_nanos};
use intact_ledger::{Event, Evidence, Lookup, Nanos};
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

/// How long an address must have been missing from all answers, in nanoseconds; longer where the
/// TTL is.
const GONE: u64 = 30_000_000_000;
/// Addresses that are followed for each name.
const ADDRESSES: usize = 32;

pub(super) static RULE: RuleRow = RuleRow {
    doc: RuleDoc {
        id: "pinned-to-old-address",
        what: "The name resolves to other addresses now, and the pool still sends to the old one. Kept connections do not move after a fail-over, a deployment or a scale-out.",
        evidence: "Results of lookups over time against the peer addresses of the connections that carry requests.",
        threshold: "A request on an address that is missing from every lookup result for 30 s and for the record's TTL. All requests since the first such result count then. An address that returns in between (round robin) does not count.",
        false_positives: "Servers that hand out a changing subset of many live addresses. Needs a lookup during the run, so a program without a later lookup is not detected.",
        fix: "Give connections a maximum age of some minutes, or close the pool when the lookup result changes",
        risk: "A maximum age costs a few new connections; without one, reuse defeats fail-over by DNS",
        needs: &[Evidence::Lookups, Evidence::Addresses],
    },
    fold: || Box::<PinnedToOldAddress>::default(),
};

struct Known {
    /// The first lookup result without it; `None` while the results have it.
    missing_since: Option<Nanos>,
}

/// Requests on an address that the lookup results lack.
struct Seen {
    /// The first lookup result without the address.
    missing_since: Nanos,
    /// All since then.
    requests: u64,
    longest: u64,
    /// Whether the address was missing for long enough.
    is_gone: bool,
}

#[derive(Default)]
struct PinnedToOldAddress {
    names: HashMap<Arc<str>, (BTreeMap<IpAddr, Known>, u32)>,
    seen: BTreeMap<(usize, IpAddr), Seen>,
}

impl PinnedToOldAddress {
    fn answered(&mut self, lookup: &Lookup) {
        let (Some(name), Some(Ok(answer))) = (&lookup.name, &lookup.answer) else {
            return;
        };
        // an empty answer (no IPv6 there) is no change of address
        if answer.is_empty() || (self.names.len() >= KEPT && !self.names.contains_key(name)) {
            return;
        }
        let (known, ttl) = self.names.entry(name.clone()).or_default();
        *ttl = lookup.ttl_s.unwrap_or(0);
        let at = lookup.span.end;
        for (address, state) in known.iter_mut() {
            // IPv4 and IPv6 come in answers of their own
            let same_family = answer.iter().any(|one| one.is_ipv4() == address.is_ipv4());
            if same_family && !answer.contains(address) {
                state.missing_since.get_or_insert(at);
            }
        }
        for &address in answer {
            if known.len() < ADDRESSES || known.contains_key(&address) {
                known.insert(
                    address,
                    Known {
                        missing_since: None,
                    },
                );
            }
        }
    }
}

impl Fold for PinnedToOldAddress {
    fn observe(&mut self, event: Event<'_>, context: &Context<'_>) {
        match event {
            Event::Lookup(lookup) => self.answered(lookup),
            Event::Exchange(exchange) => {
                let Some(live) = context.live else { return };
                let connection = &live.connection;
                let (Some(origin), Some(peer)) = (&connection.origin, connection.peer) else {
                    return;
                };
                let Some((known, ttl)) = self.names.get(&origin.host) else {
                    return;
                };
                let missing = known.get(&peer.ip()).and_then(|state| state.missing_since);
                let Some(missing) = missing else { return };
                if exchange.at < missing {
                    return;
                }
                let gone = exchange.at.since(missing);
                let is_gone = gone >= GONE.max(u64::from(*ttl) * 1_000_000_000);
                let key = (live.destination, peer.ip());
                if self.seen.len() >= KEPT && !self.seen.contains_key(&key) {
                    return;
                }
                let seen = self.seen.entry(key).or_insert(Seen {
                    missing_since: missing,
                    requests: 0,
                    longest: 0,
                    is_gone: false,
                });
                // an address that had come back is missing again
                if seen.missing_since != missing && !seen.is_gone {
                    seen.requests = 0;
                }
                seen.missing_since = missing;
                seen.requests += 1;
                seen.longest = seen.longest.max(gone);
                seen.is_gone |= is_gone;
            }
            _ => {}
        }
    }

    fn findings(&self, attribution: &mut Attribution<'_>) -> Vec<Finding> {
        let gone = self.seen.iter().filter(|(_, seen)| seen.is_gone);
        let found = gone.map(|(&(destination, address), seen)| {
            let said = statement!(
                "{requests} went to {address} after the name had stopped resolving to it",
                requests = requests(seen.requests),
                address = text(address)
            );
            let evidence = statement!(
                "the last of them {longest} after the first lookup without that address",
                longest = timer_nanos(seen.longest)
            );
            attribution.finding(&RULE.doc, Severity::Warning, destination, said, evidence)
        });
        found.collect()
    }
}
