//! `unbalanced-by-reuse`: kept connections send the requests to a few of the addresses behind a
//! name.

use super::{Attribution, Fold, KEPT, RuleRow};
use crate::Context;
use intact_document::finding::{Finding, RuleDoc, Severity};
use intact_document::statement::{Value, connections, requests, statement, text};
use intact_ledger::{Event, Evidence, Lookup};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

/// Requests from which on their distribution shows something.
const LEAST: u64 = 100;
/// How many times its part an address must get.
const TIMES: f64 = 2.0;
/// The share of the requests that is uneven in any case: twice the part of one of two addresses is
/// everything.
const MOST: f64 = 0.9;
/// The share of reused requests from which on reuse is the cause.
const REUSED: f64 = 0.5;
/// Addresses that are counted for each destination.
const ADDRESSES: usize = 64;

pub(super) static RULE: RuleRow = RuleRow {
    doc: RuleDoc {
        id: "unbalanced-by-reuse",
        what: "The name resolves to several addresses, and the requests go to few of them. A kept connection stays with its address, so DNS does not distribute the load. With HTTP/2 or gRPC one connection sends everything to one server.",
        evidence: "The lookup result with the most addresses, and the requests on connections to each of these.",
        threshold: "100 requests, half of them reused; and one address gets twice its part of the requests, or 90 % of them. Informational: whether the addresses are servers of equal capacity is not visible.",
        false_positives: "Addresses of one balancer or of a CDN, where any of them is as good; a client that prefers the nearest address on purpose; few connections at low load.",
        fix: "Open several connections to different addresses, and give each a maximum age or number of requests. Or let a balancer distribute requests instead of connections (gRPC `round_robin`, an HTTP proxy)",
        risk: "More connections mean more setups; a maximum age ends connections that work",
        needs: &[Evidence::Lookups, Evidence::Addresses],
    },
    fold: || Box::<UnbalancedByReuse>::default(),
};

/// What went to one address.
#[derive(Clone, Copy, Default)]
struct Load {
    requests: u64,
    connections: u64,
}

#[derive(Default)]
struct UnbalancedByReuse {
    /// The largest result of each name and family (IPv4 first).
    answers: HashMap<Arc<str>, [BTreeSet<IpAddr>; 2]>,
    loads: BTreeMap<(usize, Arc<str>), BTreeMap<IpAddr, Load>>,
}

impl UnbalancedByReuse {
    fn answered(&mut self, lookup: &Lookup) {
        let (Some(name), Some(Ok(answer))) = (&lookup.name, &lookup.answer) else {
            return;
        };
        if self.answers.len() >= KEPT && !self.answers.contains_key(name) {
            return;
        }
        let known = self.answers.entry(name.clone()).or_default();
        for (family, known) in known.iter_mut().enumerate() {
            let of_family = answer.iter().filter(|one| one.is_ipv6() == (family == 1));
            let addresses: BTreeSet<IpAddr> = of_family.take(ADDRESSES).copied().collect();
            if addresses.len() > known.len() {
                *known = addresses;
            }
        }
    }
}

impl Fold for UnbalancedByReuse {
    fn observe(&mut self, event: Event<'_>, context: &Context<'_>) {
        match (event, context.live) {
            (Event::Lookup(lookup), _) => self.answered(lookup),
            (Event::Exchange(_), Some(live)) => {
                let connection = &live.connection;
                let (Some(origin), Some(peer)) = (&connection.origin, connection.peer) else {
                    return;
                };
                let key = (live.destination, origin.host.clone());
                if self.loads.len() >= KEPT && !self.loads.contains_key(&key) {
                    return;
                }
                let loads = self.loads.entry(key).or_default();
                if loads.len() < ADDRESSES || loads.contains_key(&peer.ip()) {
                    let load = loads.entry(peer.ip()).or_default();
                    load.requests += 1;
                    load.connections += u64::from(live.exchanges == 1);
                }
            }
            _ => {}
        }
    }

    fn findings(&self, attribution: &mut Attribution<'_>) -> Vec<Finding> {
        let mut findings = Vec::new();
        for ((destination, name), loads) in &self.loads {
            let counts = attribution.counts(*destination);
            let reused = counts.reused as f64 >= REUSED * counts.requests as f64;
            let Some(answers) = self.answers.get(name).filter(|_| reused) else {
                continue;
            };
            for addresses in answers {
                findings.extend(finding(attribution.name(*destination), addresses, loads));
            }
        }
        findings
    }
}

/// The finding about the addresses of one lookup result, if one of them gets too much.
fn finding(
    subject: String,
    addresses: &BTreeSet<IpAddr>,
    loads: &BTreeMap<IpAddr, Load>,
) -> Option<Finding> {
    let used = loads.iter().filter(|(one, _)| addresses.contains(one));
    let total: u64 = used.clone().map(|(_, load)| load.requests).sum();
    let opened: u64 = used.clone().map(|(_, load)| load.connections).sum();
    let (address, load) = used.clone().max_by_key(|(_, load)| load.requests)?;
    let part = (TIMES / addresses.len() as f64).min(MOST);
    let is_uneven = load.requests as f64 >= part * total as f64;
    if addresses.len() < 2 || total < LEAST || !is_uneven {
        return None;
    }
    let said = statement!(
        "{busiest} of {requests} went to {address}, one of {addresses} behind the name",
        busiest = Value::Share(load.requests as f64 / total as f64),
        requests = requests(total),
        address = text(address),
        addresses = Value::Count(addresses.len() as u64, "address")
    );
    let evidence = statement!(
        "{opened} carried them, to {used} of the addresses",
        opened = connections(opened),
        used = Value::Number(used.count() as u64)
    );
    Some(Finding::by(
        &RULE.doc,
        Severity::Info,
        subject,
        said,
        evidence,
    ))
}
