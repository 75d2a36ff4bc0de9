//! Complete counts and histograms of a run, mergeable. Every count that is printed comes from here, never from sampled rows.

use crate::connection::{Connection, EndedBy, Handshake, TlsVersion};
use crate::event::{Caveat, Closed, Event, Round, Sink, Sockets};
use crate::exchange::{Exchange, ExchangeBytes, Phase};
use crate::failure::{Failure, Outcome};
use crate::histogram::Histogram;
use crate::reuse::Reuse;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What separates one group of exchanges from another within a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct GroupKey {
    /// Fresh, preconnected, reused, or unknown.
    pub reuse: Option<Reuse>,
    /// Left out of steady-state figures.
    pub warmup: bool,
    /// How they ended.
    pub outcome: Outcome,
}

/// The exchanges of one kind in one cell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// What they have in common.
    #[serde(flatten)]
    pub key: GroupKey,
    /// Latency with setup; its count is the number of exchanges.
    pub latency: Histogram,
    /// Latency without the setup that was waited for.
    pub without_setup: Histogram,
    /// Client delay, of those that have a kernel stamp.
    pub client_delay: Histogram,
    /// Each phase over the exchanges that had it, in the order of [`Phase::ALL`].
    pub phases: [Histogram; 8],
    /// Sums of bytes on the wire; `decoded` is not kept.
    pub bytes: ExchangeBytes,
}

impl Group {
    fn new(key: GroupKey) -> Group {
        Group {
            key,
            latency: Histogram::new(),
            without_setup: Histogram::new(),
            client_delay: Histogram::new(),
            phases: Default::default(),
            bytes: ExchangeBytes::default(),
        }
    }

    /// How many exchanges.
    pub fn count(&self) -> u64 {
        self.latency.count()
    }

    /// The histogram of one phase.
    pub fn phase(&self, phase: Phase) -> &Histogram {
        &self.phases[phase as usize]
    }

    #[inline]
    fn record(&mut self, exchange: &Exchange) {
        let latency = exchange.latency();
        self.latency.record(latency);
        self.without_setup.record(exchange.latency_without_setup());
        if let Some(span) = exchange.client_delay {
            self.client_delay.record(span.nanos());
        }
        for phase in Phase::ALL {
            if let Some(span) = exchange.spans.of(phase) {
                self.phases[phase as usize].record(span.nanos());
            }
        }
        self.add_bytes(&exchange.bytes);
    }

    /// Adds all of `other`, whose key is not looked at.
    pub fn merge(&mut self, other: &Group) {
        self.latency.merge(&other.latency);
        self.without_setup.merge(&other.without_setup);
        self.client_delay.merge(&other.client_delay);
        for (ours, theirs) in self.phases.iter_mut().zip(&other.phases) {
            ours.merge(theirs);
        }
        self.add_bytes(&other.bytes);
    }

    #[inline]
    fn add_bytes(&mut self, more: &ExchangeBytes) {
        self.bytes.request_head += more.request_head;
        self.bytes.request_body += more.request_body;
        self.bytes.head += more.head;
        self.bytes.body += more.body;
    }
}

/// Counts of the connections in one cell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connections {
    /// Transport established.
    pub opened: u64,
    /// Dials that failed, by kind; those that failed in TLS are in `opened` too.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub failed: BTreeMap<Failure, u64>,
    /// Addresses tried beside those that answered.
    #[serde(default)]
    pub other_attempts: u64,
    /// TLS handshakes by version and kind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub handshakes: Vec<(Option<TlsVersion>, Option<Handshake>, u64)>,
    /// Connections that ended, by who ended them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ended_by: BTreeMap<EndedBy, u64>,
    /// Exchanges per ended connection (a plain number in a histogram of nanoseconds).
    #[serde(default)]
    pub exchanges: Histogram,
    /// Exchanges per connection that the server ended.
    #[serde(default)]
    pub exchanges_until_server_closed: Histogram,
    /// Setup steps over connections: dns, connect, ssl.
    #[serde(default)]
    pub setup: [Histogram; 3],
    /// The whole setup over connections.
    #[serde(default)]
    pub setup_total: Histogram,
    /// Bytes over ended connections, client to server.
    #[serde(default)]
    pub sent_bytes: u64,
    /// Bytes over ended connections, server to client.
    #[serde(default)]
    pub received_bytes: u64,
}

impl Connections {
    fn open(&mut self, connection: &Connection) {
        if connection.is_opened() {
            self.opened += 1;
        }
        self.other_attempts += u64::from(connection.other_attempts);
        if let Some(failure) = &connection.failed {
            *self.failed.entry(failure.kind).or_default() += 1;
            return;
        }
        if let Some(tls) = &connection.tls {
            let kind = (tls.version, tls.handshake);
            match self
                .handshakes
                .iter_mut()
                .find(|(version, handshake, _)| (*version, *handshake) == kind)
            {
                Some((_, _, count)) => *count += 1,
                None => self.handshakes.push((kind.0, kind.1, 1)),
            }
        }
        let setup = &connection.setup;
        for (histogram, span) in self
            .setup
            .iter_mut()
            .zip([setup.dns, setup.connect, setup.ssl])
        {
            if let Some(span) = span {
                histogram.record(span.nanos());
            }
        }
        if let Some(total) = setup.nanos() {
            self.setup_total.record(total);
        }
    }

    fn close(&mut self, closed: &Closed) {
        let close = &closed.close;
        let ended_by = close.ended_by();
        *self.ended_by.entry(ended_by).or_default() += 1;
        if let Some(exchanges) = close.exchanges {
            self.exchanges.record(exchanges);
            if matches!(
                ended_by,
                EndedBy::Server | EndedBy::ServerAnnounced | EndedBy::ServerReset
            ) {
                self.exchanges_until_server_closed.record(exchanges);
            }
        }
        self.sent_bytes += close.bytes.sent;
        self.received_bytes += close.bytes.received;
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Connections) {
        self.opened += other.opened;
        for (&kind, count) in &other.failed {
            *self.failed.entry(kind).or_default() += count;
        }
        self.other_attempts += other.other_attempts;
        for &(version, handshake, count) in &other.handshakes {
            match self
                .handshakes
                .iter_mut()
                .find(|(ours, kind, _)| (*ours, *kind) == (version, handshake))
            {
                Some((_, _, ours)) => *ours += count,
                None => self.handshakes.push((version, handshake, count)),
            }
        }
        for (&by, count) in &other.ended_by {
            *self.ended_by.entry(by).or_default() += count;
        }
        self.exchanges.merge(&other.exchanges);
        self.exchanges_until_server_closed
            .merge(&other.exchanges_until_server_closed);
        for (ours, theirs) in self.setup.iter_mut().zip(&other.setup) {
            ours.merge(theirs);
        }
        self.setup_total.merge(&other.setup_total);
        self.sent_bytes += other.sent_bytes;
        self.received_bytes += other.received_bytes;
    }

    /// Handshakes that resumed a session, with or without early data, and all handshakes.
    pub fn resumed_of_handshakes(&self) -> (u64, u64) {
        let mut resumed = 0;
        let mut all = 0;
        for (_, handshake, count) in &self.handshakes {
            all += count;
            if matches!(handshake, Some(Handshake::Resumed | Handshake::EarlyData)) {
                resumed += count;
            }
        }
        (resumed, all)
    }
}

/// Everything counted for one variant in one round.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// Index into the run's variants.
    pub variant: Option<u32>,
    /// The round; 0 is the preflight.
    pub round: Option<u32>,
    /// Exchanges by kind.
    pub groups: Vec<Group>,
    /// Final status codes of complete exchanges, warm-up included.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub status: BTreeMap<u16, u64>,
    /// Connections.
    pub connections: Connections,
    /// Name lookups that were answered.
    #[serde(default)]
    pub lookups: Histogram,
    /// Name lookups that failed.
    #[serde(default)]
    pub lookups_failed: u64,
    /// Its bounds and CPU time, once it is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bounds: Option<Round>,
}

impl Cell {
    /// An empty cell.
    pub fn new(variant: Option<u32>, round: Option<u32>) -> Cell {
        Cell {
            variant,
            round,
            ..Cell::default()
        }
    }

    #[inline]
    fn group(&mut self, key: GroupKey) -> &mut Group {
        // a handful of kinds at most: a scan beats a map
        match self.groups.iter().position(|group| group.key == key) {
            Some(at) => &mut self.groups[at],
            None => {
                self.groups.push(Group::new(key));
                self.groups.last_mut().expect("one was just pushed")
            }
        }
    }

    /// Counts one exchange.
    #[inline]
    pub fn exchange(&mut self, exchange: &Exchange) {
        self.group(GroupKey {
            reuse: exchange.reuse,
            warmup: exchange.warmup,
            outcome: exchange.outcome,
        })
        .record(exchange);
        if let Some(status) = exchange.status
            && exchange.outcome.is_ok()
        {
            *self.status.entry(status).or_default() += 1;
        }
    }

    /// Adds all of `other`, whose variant and round are not looked at.
    pub fn merge(&mut self, other: &Cell) {
        for group in &other.groups {
            self.group(group.key).merge(group);
        }
        for (&status, count) in &other.status {
            *self.status.entry(status).or_default() += count;
        }
        self.connections.merge(&other.connections);
        self.lookups.merge(&other.lookups);
        self.lookups_failed += other.lookups_failed;
        if self.bounds.is_none() {
            self.bounds.clone_from(&other.bounds);
        }
    }

    /// The groups that `keep` wants, merged into one; its key is that of the first.
    pub fn merged(&self, keep: impl Fn(&GroupKey) -> bool) -> Option<Group> {
        let mut groups = self.groups.iter().filter(|group| keep(&group.key));
        let mut all = groups.next()?.clone();
        for group in groups {
            all.merge(group);
        }
        Some(all)
    }
}

/// The tally of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// One cell per variant and round that something happened in, in order of appearance.
    pub cells: Vec<Cell>,
    /// The machine's sockets, first and last count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sockets: Vec<Sockets>,
    /// What limits the figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub caveats: Vec<Caveat>,
    /// The cell used last.
    #[serde(skip)]
    recent: usize,
}

impl Tally {
    /// An empty tally.
    pub fn new() -> Tally {
        Tally::default()
    }

    /// The cell of a variant and round, made if need be.
    #[inline]
    pub fn cell(&mut self, variant: Option<u32>, round: Option<u32>) -> &mut Cell {
        let is_it = |cell: &Cell| cell.variant == variant && cell.round == round;
        if !self.cells.get(self.recent).is_some_and(is_it) {
            self.recent = match self.cells.iter().position(is_it) {
                Some(at) => at,
                None => {
                    self.cells.push(Cell::new(variant, round));
                    self.cells.len() - 1
                }
            };
        }
        &mut self.cells[self.recent]
    }

    /// Adds all of `other`, cell by cell.
    pub fn merge(&mut self, other: &Tally) {
        for cell in &other.cells {
            self.cell(cell.variant, cell.round).merge(cell);
        }
        for sockets in &other.sockets {
            self.count_sockets(*sockets);
        }
        for caveat in &other.caveats {
            self.add_caveat(caveat);
        }
    }

    /// The cells of one variant.
    pub fn of_variant(&self, variant: u32) -> impl Iterator<Item = &Cell> {
        self.cells
            .iter()
            .filter(move |cell| cell.variant == Some(variant))
    }

    fn count_sockets(&mut self, sockets: Sockets) {
        if self.sockets.len() < 2 {
            self.sockets.push(sockets);
        } else {
            self.sockets[1] = sockets;
        }
    }

    fn add_caveat(&mut self, caveat: &Caveat) {
        if !self.caveats.contains(caveat) {
            self.caveats.push(caveat.clone());
        }
    }
}

impl Sink for Tally {
    #[inline]
    fn record(&mut self, event: Event<'_>) {
        match event {
            Event::Exchange(exchange) => self
                .cell(exchange.variant, exchange.round)
                .exchange(exchange),
            Event::Opened(connection) => self
                .cell(connection.variant, connection.round)
                .connections
                .open(connection),
            Event::Closed(closed) => self
                .cell(closed.variant, closed.round)
                .connections
                .close(closed),
            Event::Revised(_) | Event::Invocation(_) => {}
            Event::Lookup(lookup) => {
                let cell = self.cell(lookup.variant, lookup.round);
                if matches!(lookup.answer, Some(Err(_))) {
                    cell.lookups_failed += 1;
                } else {
                    cell.lookups.record(lookup.span.nanos());
                }
            }
            Event::Round(round) => {
                self.cell(Some(round.variant), Some(round.round)).bounds = Some(round.clone());
            }
            Event::Sockets(sockets) => self.count_sockets(*sockets),
            Event::Caveat(caveat) => self.add_caveat(caveat),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Nanos;

    fn exchange(variant: u32, fresh: bool, latency: u64, outcome: Outcome) -> Exchange {
        let mut one = Exchange::new(0, Nanos(0));
        one.variant = Some(variant);
        one.round = Some(1);
        one.reuse = Some(if fresh { Reuse::Fresh } else { Reuse::Reused });
        one.end = Nanos(latency);
        one.status = Some(200);
        one.outcome = outcome;
        one
    }

    #[test]
    fn exchanges_are_told_apart_by_freshness_and_outcome() {
        let mut tally = Tally::new();
        tally.record(Event::Exchange(&exchange(0, true, 90, Outcome::Ok)));
        tally.record(Event::Exchange(&exchange(0, false, 30, Outcome::Ok)));
        let failed = Outcome::Failed(Failure::Timeout);
        tally.record(Event::Exchange(&exchange(0, false, 99, failed)));
        let cell = tally.cell(Some(0), Some(1));
        assert_eq!(cell.groups.len(), 3);
        assert_eq!(cell.status, BTreeMap::from([(200, 2)]));
        let ok = cell.merged(|key| key.outcome.is_ok()).unwrap();
        assert_eq!((ok.count(), ok.latency.max()), (2, Some(90)));
    }

    #[test]
    fn merging_two_tallies_adds_cell_by_cell() {
        let mut one = Tally::new();
        one.record(Event::Exchange(&exchange(0, true, 90, Outcome::Ok)));
        let mut two = Tally::new();
        two.record(Event::Exchange(&exchange(0, true, 10, Outcome::Ok)));
        two.record(Event::Exchange(&exchange(1, true, 20, Outcome::Ok)));
        one.merge(&two);
        assert_eq!(one.cells.len(), 2);
        assert_eq!(one.cells[0].groups[0].count(), 2);
        let json = serde_json::to_string(&one).unwrap();
        let mut back: Tally = serde_json::from_str(&json).unwrap();
        back.recent = one.recent;
        assert_eq!(back, one);
    }
}
