//! `tcp-keepalive-is-not-reuse`: the socket option is set, and yet no connection is used twice.

use super::{Attribution, Fold, Remedy, RuleRow, for_client};
use crate::Context;
use intact_document::finding::{Finding, RuleDoc, Severity};
use intact_document::statement::{Statement, Value, connections, statement};
use intact_ledger::Event;
use intact_ledger::Evidence;
use std::collections::BTreeMap;

/// Such connections from which on it speaks.
const LEAST: u64 = 3;

pub(super) static RULE: RuleRow = RuleRow {
    doc: RuleDoc {
        id: "tcp-keepalive-is-not-reuse",
        what: "TCP keep-alive (SO_KEEPALIVE) or HTTP/2 PINGs are on, and no connection carries a second request. They only check that the peer is alive; reuse needs HTTP keep-alive.",
        evidence: "SO_KEEPALIVE or PING frames on ended connections that carried one exchange at most; none was reused.",
        threshold: "Three such connections to a destination, no reuse there at all, and more connections than were needed. Informational: the rule with the reason has the cost.",
        false_positives: "Many libraries set SO_KEEPALIVE by default.",
        fix: "Turn on HTTP keep-alive: a client or agent that keeps connections and is shared by all calls",
        risk: "None of its own: probes do not disturb reuse, and are useful on connections that stay idle behind a firewall",
        needs: &[Evidence::Ends, Evidence::Contents],
    },
    fold: || Box::<TcpKeepaliveIsNotReuse>::default(),
};

#[derive(Default)]
struct Seen {
    connections: u64,
    interval_s: Option<u32>,
    pings: u64,
}

#[derive(Default)]
struct TcpKeepaliveIsNotReuse {
    seen: BTreeMap<usize, Seen>,
}

impl Fold for TcpKeepaliveIsNotReuse {
    fn observe(&mut self, event: Event<'_>, context: &Context<'_>) {
        let (Event::Closed(closed), Some(live)) = (event, context.live) else {
            return;
        };
        let probes = &closed.close.probes;
        let pings = u64::from(probes.pings.unwrap_or(0));
        let carried = closed.close.exchanges.unwrap_or(live.exchanges);
        if carried <= 1 && (probes.tcp_keepalive_s.is_some() || pings > 0) {
            let seen = self.seen.entry(live.destination).or_default();
            seen.connections += 1;
            seen.pings += pings;
            seen.interval_s = probes.tcp_keepalive_s.or(seen.interval_s);
        }
    }

    fn findings(&self, attribution: &mut Attribution<'_>) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (&destination, seen) in &self.seen {
            let counts = attribution.counts(destination);
            let is_needed = attribution.needed(destination) >= counts.opened;
            if seen.connections < LEAST || counts.reused > 0 || counts.requests == 0 || is_needed {
                continue;
            }
            let said = statement!(
                "{connections} with keep-alive probes carried one request at most",
                connections = connections(seen.connections)
            );
            let mut evidence = Statement::default();
            if let Some(interval) = seen.interval_s {
                evidence = statement!(
                    "SO_KEEPALIVE is set, every {interval} s",
                    interval = Value::Seconds(interval.into())
                );
            }
            if seen.pings > 0 {
                let pings = Value::Count(seen.pings, "HTTP/2 PING");
                evidence = evidence.and(statement!("{pings}", pings = pings));
            }
            let finding =
                attribution.finding(&RULE.doc, Severity::Info, destination, said, evidence);
            let client = attribution.client(destination);
            findings.push(for_client(Remedy::ShareClient, client, finding));
        }
        findings
    }
}
