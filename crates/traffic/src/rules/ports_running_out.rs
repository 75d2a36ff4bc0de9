//! `ports-running-out`: connections are opened faster than TIME_WAIT gives their ports back.

use super::{Attribution, Fold, KEPT, RuleRow};
use crate::{Context, Counts};
use intact_document::finding::{Finding, RuleDoc, Severity};
use intact_document::statement::{Value, connections, statement};
use intact_ledger::{Certainty, EndedBy, Event, Failure, Nanos, Reuse, Transport};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// How long TIME_WAIT holds a port on Linux, in seconds.
const TIME_WAIT: u64 = 60;
/// Linux's default range, where the machine's is not known.
const RANGE: (u16, u16) = (32_768, 60_999);
/// The share of the range from which on it speaks.
const HALF: f64 = 0.5;
/// A rate over less than this, in seconds, is no rate.
const SHORTEST: f64 = 1.0;

pub(super) static RULE: RuleRow = RuleRow {
    doc: RuleDoc {
        id: "ports-running-out",
        what: "Each connection that the client closes first keeps its port in TIME_WAIT for 60 s. At enough new connections a second to one destination no port is left (EADDRNOTAVAIL, \"cannot assign requested address\").",
        evidence: "The most connections opened to one destination within 60 s (a shorter run is projected) against the ephemeral range; which side closed first and so holds TIME_WAIT; dials that failed with no-free-port.",
        threshold: "Half of the range in use within 60 s, where the client closes first at least as often as the server. An error when a dial failed because there was no port.",
        false_positives: "tcp_tw_reuse lets Linux reuse a port after a second with TCP timestamps; several local addresses multiply the range.",
        fix: "Reuse connections first. A wider net.ipv4.ip_local_port_range only moves the limit",
        risk: "Where the server closes first, TIME_WAIT is the server's and costs the client nothing",
        needs: &[],
    },
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

/// What ports are taken for: TCP needs a free one for each address of a server, whatever the server
/// is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Target {
    Address(SocketAddr),
    /// Where no address is known.
    Destination(usize),
}

/// The openings in 60 s.
#[derive(Clone, Copy, Debug, Default)]
struct Use {
    opened: u64,
    /// The seconds that they are projected from, if fewer were observed.
    seconds: Option<f64>,
}

/// The openings to one target.
#[derive(Default)]
struct Openings {
    window: Window,
    destinations: BTreeSet<usize>,
}

#[derive(Default)]
struct PortsRunningOut {
    targets: BTreeMap<Target, Openings>,
}

impl PortsRunningOut {
    fn add(&mut self, target: Target, destination: usize, at: Nanos) {
        if self.targets.len() < KEPT || self.targets.contains_key(&target) {
            let openings = self.targets.entry(target).or_default();
            openings.window.add(at);
            openings.destinations.insert(destination);
        }
    }
}

impl Fold for PortsRunningOut {
    fn observe(&mut self, event: Event<'_>, context: &Context<'_>) {
        let Some(destination) = context.destination else {
            return;
        };
        // a log of a server that does not name connections: one may be older than the log
        let may_be_older = |certainty: &Certainty| !context.is_of_client && !certainty.is_exact();
        match event {
            Event::Opened(connection)
                // its port was taken before, and is not in TIME_WAIT
                if !connection.open_before
                    && !may_be_older(&connection.certainty)
                    // UDP has no TIME_WAIT, and QUIC connections can share a port
                    && connection.transport == Transport::Tcp =>
            {
                // a server sees a port of the client's, which differs for each connection
                let address = connection.peer.filter(|_| context.is_of_client);
                let target = address.map_or(Target::Destination(destination), Target::Address);
                self.add(target, destination, connection.at);
            }
            Event::Exchange(first)
                if first.reuse == Some(Reuse::Fresh) && may_be_older(&first.certainty) =>
            {
                self.add(Target::Destination(destination), destination, first.at);
            }
            _ => {}
        }
    }

    fn findings(&self, attribution: &mut Attribution<'_>) -> Vec<Finding> {
        let tracker = attribution.tracker();
        let known = tracker.run().host.ephemeral_ports;
        let (low, high) = known.unwrap_or(RANGE);
        let range = u64::from(high.saturating_sub(low)) + 1;
        let mut findings = Vec::new();
        let mut named: BTreeSet<usize> = BTreeSet::new();
        for (Use { opened, seconds }, destinations) in self.by_use(attribution) {
            // one server is one finding
            let unnamed = destinations.iter().filter(|one| !named.contains(*one));
            let mut unnamed: Vec<String> = unnamed.map(|&one| attribution.name(one)).collect();
            named.extend(destinations.iter().copied());
            if unnamed.is_empty() {
                continue;
            }
            let counts = || destinations.iter().map(|&one| attribution.counts(one));
            let failed = counts().filter_map(|one| one.dials_failed.get(&Failure::NoFreePort));
            let failed: u64 = failed.sum();
            let of_each = counts().map(holders);
            let (client, server) = of_each.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
            let share = opened as f64 / range as f64;
            if failed == 0 && (share < HALF || client < server) {
                continue;
            }
            let severity = Severity::Warning.unless(failed > 0, Severity::Error);
            let said = if failed > 0 {
                statement!(
                    "{dials_failed} failed because no local port was free",
                    dials_failed = Value::Count(failed, "connection attempt")
                )
            } else {
                let opened = Value::Count(opened, "new connection");
                let used = Value::Share(share.min(1.0));
                match seconds {
                    None => statement!(
                        "{opened} in {window} s use {used} of the {ports} local ports",
                        opened = opened,
                        window = Value::Seconds(TIME_WAIT),
                        used = used,
                        ports = Value::Number(range)
                    ),
                    Some(seconds) => statement!(
                        "{opened} in {window} s, projected from {observed}, would use {used} of the {ports} local ports",
                        opened = opened,
                        window = Value::Seconds(TIME_WAIT),
                        observed = Value::Duration(seconds * 1e3),
                        used = used,
                        ports = Value::Number(range)
                    ),
                }
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
            if let Some(sockets) = tracker.sockets.last() {
                evidence = evidence.and(statement!(
                    "{time_wait} in TIME_WAIT at the end",
                    time_wait = Value::Count(sockets.time_wait, "socket")
                ));
            }
            let name = unnamed.remove(0);
            findings.push(Finding::by(&RULE.doc, severity, name, said, evidence).also(unnamed));
        }
        findings
    }
}

impl PortsRunningOut {
    /// The openings in 60 s to each target, with its destinations; the most first.
    fn by_use(&self, attribution: &Attribution<'_>) -> Vec<(Use, BTreeSet<usize>)> {
        let now = attribution.tracker().now;
        let targets = self.targets.values();
        let first = targets.clone().filter_map(|one| one.window.first).min();
        let observed = first.map_or(0, |first| now.since(first)) as f64 / 1e9;
        let mut all: Vec<(Use, BTreeSet<usize>)> = targets
            .map(|one| (one.window.projected(observed), one.destinations.clone()))
            .collect();
        // dials that failed may have no opening
        all.extend(
            attribution
                .destinations()
                .map(|(at, ..)| (Use::default(), BTreeSet::from([at]))),
        );
        all.sort_by_key(|one| std::cmp::Reverse(one.0.opened));
        all
    }
}

impl Window {
    /// Openings in the busiest 60 s; where less than that was observed, at the rate of these
    /// seconds.
    fn projected(&self, observed: f64) -> Use {
        if !(SHORTEST..TIME_WAIT as f64).contains(&observed) {
            return Use {
                opened: self.most,
                seconds: None,
            };
        }
        Use {
            opened: (self.most as f64 * TIME_WAIT as f64 / observed) as u64,
            seconds: Some(observed),
        }
    }
}

/// Connections that the client, and that the server ended first.
fn holders(counts: &Counts) -> (u64, u64) {
    let of = |by| counts.ended_by.get(&by).copied().unwrap_or(0);
    let server = of(EndedBy::Server) + of(EndedBy::ServerAnnounced);
    (of(EndedBy::Client) + of(EndedBy::ExcessBytes), server)
}
