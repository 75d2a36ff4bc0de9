//! `cold-pool`: a burst of requests finds no connection, and all of them wait for a setup.

use super::pool_table::PoolTable;
use super::{Attribution, Fold, RuleRow};
use crate::overlap::Overlap;
use crate::{Context, OpenConnection};
use intact_document::finding::{Finding, RuleDoc, Severity};
use intact_document::statement::{Value, connections, nanos, statement};
use intact_ledger::{Event, Evidence, Exchange, Nanos, Reuse, Span};
use std::collections::BTreeMap;

/// Requests that wait for setups of their own at the same time from which on a burst counts.
const LEAST: u64 = 5;
/// The mean wait from which on it is worth a finding, in nanoseconds.
const WAIT: u64 = 10_000_000;
/// The time without a request after which a burst begins, and in which its requests begin, in
/// nanoseconds.
const REST: u64 = 1_000_000_000;
/// The time before a first burst in which a program could have opened connections, in nanoseconds.
const LEAD: u64 = 10_000_000_000;
/// The share of the destination's time from which on it is more than a note.
const MANY: f64 = 0.05;

pub(super) static RULE: RuleRow = RuleRow {
    doc: RuleDoc {
        id: "cold-pool",
        what: "After the start or an idle time, a burst of requests finds no open connection. Each request waits for a setup of its own, although there was time to open connections ahead.",
        evidence: "Bursts after 1 s without a request (the first burst: 10 s after the beginning of the recording). The requests in them that were the first on their connection and waited for its setup.",
        threshold: "Five such requests at the same time that waited 10 ms each on average. Silent where no request reused a connection: a client that keeps none has none to open ahead. A warning from two bursts and 5 % of the destination's time on, else informational. The cost is the wait for setups of needed connections: other rules have that of avoidable ones.",
        false_positives: "A burst that never comes again; a service that has nothing to do for hours, where kept connections are no gain.",
        fix: "Open the connections before the burst: send one request to each server at the start, or set a minimum of idle connections. Keep them over the idle time. HTTP/2 needs one setup for the whole burst",
        risk: "Connections that are kept ready hold sockets on both sides. Each can meet the server's idle timer (`stale-reuse`)",
        needs: &[Evidence::Durations, Evidence::Reuse, Evidence::Setup],
    },
    fold: || Box::<ColdPool>::default(),
};

/// Requests that follow a rest.
#[derive(Clone)]
struct Burst {
    begin: Nanos,
    /// The first requests on their connections, while they ran.
    first: Overlap,
    count: u64,
    /// The setup that they waited for together, in nanoseconds.
    waited: u64,
}

/// The requests of one owner to one destination.
#[derive(Clone, Default)]
struct Pool {
    burst: Option<Burst>,
    last_end: Nanos,
}

/// The cold bursts of a destination.
#[derive(Clone, Copy, Default)]
struct Seen {
    bursts: u64,
    count: u64,
    waited: u64,
}

impl Seen {
    fn add(&mut self, burst: &Burst) {
        let is_long = burst.waited >= WAIT * burst.count;
        if burst.first.peak() >= LEAST && is_long {
            self.bursts += 1;
            self.count += burst.count;
            self.waited = self.waited.saturating_add(burst.waited);
        }
    }
}

#[derive(Default)]
struct ColdPool {
    pools: PoolTable<Pool>,
    seen: BTreeMap<usize, Seen>,
}

impl ColdPool {
    fn take(&mut self, exchange: &Exchange, live: &OpenConnection) {
        let Some(pool) = self.pools.of(live) else {
            return;
        };
        let rest = if pool.last_end == Nanos(0) {
            LEAD
        } else {
            REST
        };
        let begins = exchange.at >= pool.last_end.after(rest);
        if begins {
            let burst = Burst {
                begin: exchange.at,
                first: Overlap::default(),
                count: 0,
                waited: 0,
            };
            if let Some(before) = pool.burst.replace(burst) {
                self.seen.entry(live.destination).or_default().add(&before);
            }
        }
        pool.last_end = pool.last_end.max(exchange.end);
        let Some(burst) = &mut pool.burst else { return };
        let begin = burst.begin;
        let is_in = exchange.at <= begin.after(REST) && begin <= exchange.at.after(REST);
        let is_first = exchange.reuse == Some(Reuse::Fresh) && exchange.ordinal == Some(1);
        if is_in && is_first && exchange.outcome.is_ok() {
            burst.first.add(Span::new(exchange.at, exchange.end));
            burst.count += 1;
            let waited = exchange.spans.setup_nanos();
            burst.waited = burst.waited.saturating_add(waited);
        }
    }
}

impl Fold for ColdPool {
    fn observe(&mut self, event: Event<'_>, context: &Context<'_>) {
        if let (Event::Exchange(exchange), Some(live)) = (event, context.live) {
            self.take(exchange, live);
        }
    }

    fn findings(&self, attribution: &mut Attribution<'_>) -> Vec<Finding> {
        let mut all = self.seen.clone();
        for (destination, _, pool) in self.pools.sorted() {
            if let Some(burst) = &pool.burst {
                all.entry(destination).or_default().add(burst);
            }
        }
        let mut findings = Vec::new();
        for (destination, seen) in all {
            let counts = attribution.counts(destination);
            // a client that keeps no connection has none to open ahead
            let keeps_none = counts.reused == 0;
            if seen.bursts == 0 || keeps_none || counts.is_coarse || counts.timed == 0 {
                continue;
            }
            let is_many = seen.waited as f64 >= MANY * counts.time().unwrap_or(0) as f64;
            let severity = Severity::Info.unless(seen.bursts > 1 && is_many, Severity::Warning);
            let said = statement!(
                "{bursts} found no open connection: {opened:#} opened, and their first requests waited {waited} for setup",
                bursts = Value::Count(seen.bursts, "burst"),
                opened = connections(seen.count),
                waited = nanos(seen.waited as f64)
            );
            let evidence = statement!(
                "{setup_each} of setup each",
                setup_each = nanos(seen.waited as f64 / seen.count as f64)
            );
            let claim = attribution.claim_wait(destination, seen.waited);
            findings.push(
                attribution
                    .finding(&RULE.doc, severity, destination, said, evidence)
                    .costing(claim.cost_ms, claim.share),
            );
        }
        findings
    }
}
