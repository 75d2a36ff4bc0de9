//! The connections of one cell.

use super::{add, add_each};
use crate::connection::{ClosePoint, Connection, EndedBy, Handshake, Side, TlsVersion};
use crate::event::Closed;
use crate::exchange::Exchange;
use crate::failure::Failure;
use crate::histogram::Histogram;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Counts of the connections in one cell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Connections {
    /// Connections whose transport was established.
    pub opened: u64,
    /// Those of them whose setup failed (TLS), so that no request could use them.
    pub unusable: u64,
    /// Failed dials by kind; those that failed in TLS are in `opened`, too.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub failed: BTreeMap<Failure, u64>,
    /// Addresses that were tried in addition to those that answered.
    pub other_attempts: u64,
    /// TLS handshakes by version and kind.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub handshakes: Vec<(Option<TlsVersion>, Option<Handshake>, u64)>,
    /// Ended connections, by the side that ended them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub ended_by: BTreeMap<EndedBy, u64>,
    /// Exchanges per ended connection (a plain number in a histogram of nanoseconds).
    pub exchanges: Histogram,
    /// Complete exchanges per connection that the server ended.
    pub exchanges_until_server_closed: Histogram,
    /// Connections that the server announced to end with an error response.
    pub ended_with_errors: u64,
    /// Connections that the server ended within an exchange.
    pub ended_within_exchange: u64,
    /// The fewest streams at once that a server allowed on a connection
    /// (`SETTINGS_MAX_CONCURRENT_STREAMS`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_streams: Option<u32>,
    /// Duration of setup steps: dns, connect, ssl.
    pub setup: [Histogram; 3],
    /// Duration of whole setups.
    pub setup_total: Histogram,
    /// Bytes over ended connections, client to server.
    pub sent_bytes: u64,
    /// Bytes over ended connections, server to client.
    pub received_bytes: u64,
}

impl Connections {
    pub(super) fn open(&mut self, connection: &Connection) {
        if connection.is_opened() {
            self.opened += 1;
        }
        add(&mut self.other_attempts, connection.other_attempts.into());
        if let Some(failure) = &connection.failed {
            *self.failed.entry(failure.kind).or_default() += 1;
            self.unusable += u64::from(connection.is_opened());
            return;
        }
        if let Some(tls) = &connection.tls {
            self.add_handshakes(tls.version, tls.handshake, 1);
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

    fn add_handshakes(
        &mut self,
        version: Option<TlsVersion>,
        handshake: Option<Handshake>,
        count: u64,
    ) {
        let mut known = self.handshakes.iter_mut();
        match known.find(|(ours, kind, _)| (*ours, *kind) == (version, handshake)) {
            Some((_, _, ours)) => add(ours, count),
            None => self.handshakes.push((version, handshake, count)),
        }
    }

    /// Notes what an exchange shows of its connection.
    #[inline]
    pub(super) fn exchange(&mut self, exchange: &Exchange) {
        // an end within the exchange is counted with the close
        let is_error =
            exchange.outcome.is_whole() && exchange.status.is_some_and(|status| status >= 400);
        if is_error && exchange.close_sent_by == Some(Side::Server) {
            add(&mut self.ended_with_errors, 1);
        }
        self.allow_streams(exchange.terms.max_streams);
    }

    #[inline]
    fn allow_streams(&mut self, allowed: Option<u32>) {
        if let Some(allowed) = allowed {
            let least = self.max_streams.map_or(allowed, |least| least.min(allowed));
            self.max_streams = Some(least);
        }
    }

    pub(super) fn close(&mut self, closed: &Closed) {
        let close = &closed.close;
        let ended_by = close.ended_by();
        *self.ended_by.entry(ended_by).or_default() += 1;
        if let Some(exchanges) = close.exchanges {
            self.exchanges.record(exchanges);
            if matches!(
                ended_by,
                EndedBy::Server | EndedBy::ServerAnnounced | EndedBy::ServerReset
            ) {
                let is_within = close.moment == Some(ClosePoint::MidExchange);
                let is_unanswered = is_within || close.moment == Some(ClosePoint::Stale);
                let complete = exchanges.saturating_sub(is_unanswered.into());
                self.exchanges_until_server_closed.record(complete);
                add(&mut self.ended_within_exchange, is_within.into());
            }
        }
        add(&mut self.sent_bytes, close.bytes.sent);
        add(&mut self.received_bytes, close.bytes.received);
    }

    /// Packs its histograms.
    pub(super) fn pack(&mut self) {
        let Connections {
            exchanges,
            exchanges_until_server_closed,
            setup,
            setup_total,
            ..
        } = self;
        [exchanges, exchanges_until_server_closed, setup_total]
            .into_iter()
            .chain(setup)
            .for_each(Histogram::pack);
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Connections) {
        add(&mut self.opened, other.opened);
        add(&mut self.unusable, other.unusable);
        add_each(&mut self.failed, &other.failed);
        add(&mut self.other_attempts, other.other_attempts);
        for &(version, handshake, count) in &other.handshakes {
            self.add_handshakes(version, handshake, count);
        }
        add_each(&mut self.ended_by, &other.ended_by);
        self.exchanges.merge(&other.exchanges);
        self.exchanges_until_server_closed
            .merge(&other.exchanges_until_server_closed);
        add(&mut self.ended_with_errors, other.ended_with_errors);
        add(&mut self.ended_within_exchange, other.ended_within_exchange);
        self.allow_streams(other.max_streams);
        for (ours, theirs) in self.setup.iter_mut().zip(&other.setup) {
            ours.merge(theirs);
        }
        self.setup_total.merge(&other.setup_total);
        add(&mut self.sent_bytes, other.sent_bytes);
        add(&mut self.received_bytes, other.received_bytes);
    }

    /// See [`super::Tally::sum_of_counts`].
    pub(super) fn sum_of_counts(&self) -> u64 {
        let counts = [
            self.opened,
            self.unusable,
            self.other_attempts,
            self.ended_with_errors,
            self.ended_within_exchange,
            self.exchanges.count(),
        ];
        let bytes = [self.sent_bytes, self.received_bytes];
        let maps = self.failed.values().chain(self.ended_by.values());
        maps.copied()
            .chain(self.handshakes.iter().map(|(_, _, count)| *count))
            .chain(counts)
            .chain(bytes)
            .fold(0, u64::saturating_add)
    }

    /// Number of handshakes whose early data the server accepted.
    pub fn early_data(&self) -> u64 {
        let early = self.handshakes.iter();
        let early = early.filter(|(_, kind, _)| *kind == Some(Handshake::EarlyData));
        early
            .map(|(_, _, count)| *count)
            .fold(0, u64::saturating_add)
    }

    /// Number of handshakes that resumed a session, with or without early data, and of all
    /// handshakes.
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
