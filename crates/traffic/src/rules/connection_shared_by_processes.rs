//! `connection-shared-by-processes`: several processes use one connection at the same time.

use super::{Attribution, Fold, KEPT, RuleRow};
use crate::Context;
use intact_document::finding::{Finding, RuleDoc, Severity};
use intact_document::statement::{Value, connections, requests, statement};
use intact_ledger::{ConnectionId, Event, Evidence};
use std::collections::{BTreeMap, BTreeSet};

pub(super) static RULE: RuleRow = RuleRow {
    doc: RuleDoc {
        id: "connection-shared-by-processes",
        what: "Several processes use one connection at the same time: a process opened it, forked, and parent and child, or two children, send requests on it. A process can get the response to the request of another. Over TLS the server ends the connection, because the records of one process do not follow those of the other.",
        evidence: "Requests of HTTP/1 that began before the response to the one before, while several processes had the socket open (/proc/PID/fd) and ran. Over TLS, a record of the client that does not decrypt as the next one, while several processes had the socket open. What the server did on such a connection afterwards counts neither as `closed-before-response` nor as `stale-reuse`.",
        threshold: "One is enough, and always an error.",
        false_positives: "A client that pipelines requests (HTTP/1), and a forked process that has the socket open, does other work and does not use it. Processes that take turns are not found: they do not mix responses up. Nor are HTTP/2 in the clear, and TLS without keys.",
        fix: "Make the client in each process, after the fork: gunicorn `post_fork`, uWSGI `lazy-apps` or `@postfork`, Celery `worker_process_init`, the `initializer` of a multiprocessing pool. Or start processes without a fork (`spawn`)",
        risk: "Each process then has a pool of its own, so there are more connections",
        needs: &[Evidence::Processes],
    },
    fold: || Box::<SharedByProcesses>::default(),
};

#[derive(Default)]
struct Shared {
    requests: u64,
    processes: u32,
    connections: BTreeSet<ConnectionId>,
}

#[derive(Default)]
struct SharedByProcesses {
    seen: BTreeMap<usize, Shared>,
}

impl Fold for SharedByProcesses {
    fn observe(&mut self, event: Event<'_>, context: &Context<'_>) {
        if let (Event::Exchange(exchange), Some(destination)) = (event, context.destination)
            && exchange.sharers > 1
        {
            let seen = self.seen.entry(destination).or_default();
            seen.requests += 1;
            seen.processes = seen.processes.max(exchange.sharers);
            if seen.connections.len() < KEPT {
                seen.connections.extend(exchange.connection);
            }
        }
    }

    fn findings(&self, attribution: &mut Attribution<'_>) -> Vec<Finding> {
        let found = self.seen.iter().map(|(&destination, seen)| {
            let said = statement!(
                "several processes use {connections} at the same time, so that responses can be mixed up",
                connections = connections(seen.connections.len().max(1) as u64)
            );
            let evidence = statement!(
                "{processes} processes have the socket open, as after a fork; {requests} since two overlapped first",
                processes = Value::Number(seen.processes.into()),
                requests = requests(seen.requests)
            );
            attribution.finding(&RULE.doc, Severity::Error, destination, said, evidence)
        });
        found.collect()
    }
}
