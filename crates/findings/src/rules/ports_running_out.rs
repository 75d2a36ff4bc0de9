//! `ports-running-out`: connections are opened faster than TIME_WAIT gives their ports back.

use super::{Attribution, Doc, Fold};
use crate::finding::{Finding, Severity};
use crate::statement::{Value, connections, statement};
use crate::traffic::{Context, Counts};
use intact_ledger::{EndedBy, Event, Failure, Nanos};
use std::collections::BTreeMap;

/// How long TIME_WAIT holds a port on Linux, in seconds.
const TIME_WAIT: u64 = 60;
/// Linux's default range, where the machine's is not known.
const RANGE: (u16, u16) = (32_768, 60_999);
/// The share of the range from which on it speaks.
const HALF: f64 = 0.5;
/// A rate over less than this, in seconds, is no rate.
const SHORTEST: u64 = 1;

pub(super) static DOC: Doc = Doc {
    id: "ports-running-out",
    what: "Each connection that the client closes first keeps its port in TIME_WAIT for 60 s. At enough new connections a second to one destination no port is left (EADDRNOTAVAIL, \"cannot assign requested address\").",
    evidence: "The most connections opened to one destination within 60 s (a shorter run is projected) against the ephemeral range; which side closed first and so holds TIME_WAIT; dials that failed with no-free-port.",
    threshold: "Half of the range in use within 60 s, where the client closes first at least as often as the server. An error when a dial failed because there was no port.",
    false_positives: "tcp_tw_reuse lets Linux reuse a port after a second with TCP timestamps; several local addresses multiply the range.",
    fix: "Reuse connections first. A wider net.ipv4.ip_local_port_range only moves the limit",
    risk: "Where the server closes first, TIME_WAIT is the server's and costs the client nothing",
    fold: || Box::<PortsRunningOut>::default(),
};

/// Openings in each of the last 60 seconds.
#[derive(Default)]
struct Window {
    seconds: BTreeMap<u64, u64>,
    sum: u64,
    most: u64,
    first: Option<Nanos>,
}

impl Window {
    fn add(&mut self, at: Nanos) {
        let second = at.0 / 1_000_000_000;
        self.first = Some(self.first.map_or(at, |first| first.min(at)));
        *self.seconds.entry(second).or_default() += 1;
        self.sum += 1;
        let newest = self.seconds.keys().next_back().copied().unwrap_or(second);
        while let Some((&oldest, &count)) = self.seconds.first_key_value() {
            if oldest + TIME_WAIT > newest {
                break;
            }
            self.seconds.remove(&oldest);
            self.sum -= count;
        }
        self.most = self.most.max(self.sum);
    }
}

#[derive(Default)]
struct PortsRunningOut {
    windows: BTreeMap<usize, Window>,
}

impl Fold for PortsRunningOut {
    fn observe(&mut self, event: Event<'_>, context: &Context<'_>) {
        if let (Event::Opened(connection), Some(destination)) = (event, context.destination) {
            self.windows
                .entry(destination)
                .or_default()
                .add(connection.at);
        }
    }

    fn findings(&self, bill: &mut Attribution<'_>) -> Vec<Finding> {
        let books = bill.books();
        let known = books.run().host.ephemeral_ports;
        let (low, high) = known.unwrap_or(RANGE);
        let range = u64::from(high.saturating_sub(low)) + 1;
        let mut findings = Vec::new();
        for (destination, name, counts) in bill.destinations() {
            let failed = counts.dials_failed.get(&Failure::NoFreePort).copied();
            let failed = failed.unwrap_or(0);
            let projected = self
                .windows
                .get(&destination)
                .map_or(0, |window| window.projected(books.now));
            let (client, server) = holders(counts);
            let share = projected as f64 / range as f64;
            if failed == 0 && (share < HALF || client < server) {
                continue;
            }
            let severity = if failed > 0 {
                Severity::Error
            } else {
                Severity::Warning
            };
            let said = if failed > 0 {
                statement!(
                    "{dials_failed} failed because no local port was free",
                    dials_failed = Value::Count(failed, "dial")
                )
            } else {
                statement!(
                    "{opened} in {window} s use {used} of the {ports} local ports",
                    opened = Value::Count(projected, "new connection"),
                    window = Value::Seconds(TIME_WAIT),
                    used = Value::Share(share.min(1.0)),
                    ports = Value::Number(range)
                )
            };
            let mut evidence = statement!(
                "the client closed {closed_by_client} first and holds their ports in TIME_WAIT, the server {closed_by_server}",
                closed_by_client = connections(client),
                closed_by_server = Value::Number(server)
            );
            if known.is_none() {
                evidence = evidence
                    .and("the machine's port range is not known, Linux's default is assumed");
            }
            if let Some(sockets) = books.sockets.last() {
                evidence = evidence.and(statement!(
                    "{time_wait} in TIME_WAIT at the end",
                    time_wait = Value::Count(sockets.time_wait, "socket")
                ));
            }
            findings.push(Finding::by(&DOC, severity, name, said, evidence));
        }
        findings
    }
}

impl Window {
    /// Openings in the busiest 60 s; where less than that was observed, at its rate.
    fn projected(&self, now: Nanos) -> u64 {
        let observed = self.first.map_or(0, |first| now.since(first)) / 1_000_000_000;
        if !(SHORTEST..TIME_WAIT).contains(&observed) {
            return self.most;
        }
        self.most * TIME_WAIT / observed
    }
}

/// Connections that the client, and that the server ended first.
fn holders(counts: &Counts) -> (u64, u64) {
    let of = |by| counts.ended_by.get(&by).copied().unwrap_or(0);
    let server = of(EndedBy::Server) + of(EndedBy::ServerAnnounced);
    (of(EndedBy::Client), server)
}
