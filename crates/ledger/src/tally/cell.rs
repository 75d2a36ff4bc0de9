//! The counts of one variant and round.

use super::tagged::{self, ClientCounts, TagCell};
use super::{Connections, Group, GroupKey, OverTime, add, add_each, group};
use crate::event::Round;
use crate::exchange::Exchange;
use crate::histogram::Histogram;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// All counts of one variant in one round.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Index into the run's variants.
    pub variant: Option<u32>,
    /// The round; 0 is the preflight.
    pub round: Option<u32>,
    /// Exchanges by kind.
    pub groups: Vec<Group>,
    /// The same exchanges by tag, where they have one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<TagCell>,
    /// Simulated clients; absent where there were none, or their number is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<ClientCounts>,
    /// Status codes of complete exchanges, without warm-up.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub status: BTreeMap<u16, u64>,
    /// Final status codes of complete warm-up exchanges.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub warmup_status: BTreeMap<u16, u64>,
    /// Connections.
    pub connections: Connections,
    /// Duration of successful name lookups.
    #[serde(default)]
    pub lookups: Histogram,
    /// Number of failed name lookups.
    #[serde(default)]
    pub lookups_failed: u64,
    /// Start, end and CPU time, after the round ended.
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

    /// Counts one exchange.
    #[inline]
    pub fn exchange(&mut self, exchange: &Exchange) {
        group::record(&mut self.groups, exchange);
        if let Some(status) = exchange.status
            && exchange.outcome.is_ok()
        {
            let counts = match exchange.warmup {
                true => &mut self.warmup_status,
                false => &mut self.status,
            };
            *counts.entry(status).or_default() += 1;
        }
        self.connections.exchange(exchange);
        tagged::record(&mut self.tags, exchange);
    }

    /// Adds all counts of `other`, whose variant and round are ignored.
    pub fn merge(&mut self, other: &Cell) {
        group::merge(&mut self.groups, &other.groups);
        tagged::merge(&mut self.tags, &other.tags);
        if let Some(clients) = other.clients {
            self.clients.get_or_insert_default().add(clients);
        }
        add_each(&mut self.status, &other.status);
        add_each(&mut self.warmup_status, &other.warmup_status);
        self.connections.merge(&other.connections);
        self.lookups.merge(&other.lookups);
        add(&mut self.lookups_failed, other.lookups_failed);
        if self.bounds.is_none() {
            self.bounds.clone_from(&other.bounds);
        }
    }

    /// See [`super::Tally::sum_of_counts`].
    pub(super) fn sum_of_counts(&self) -> u64 {
        let groups = self.groups.iter().flat_map(Group::counts);
        let statuses = self.status.values().chain(self.warmup_status.values());
        let lookups = [self.lookups.count(), self.lookups_failed];
        let clients = self.clients.unwrap_or_default();
        groups
            .chain(self.tags.iter().flat_map(TagCell::counts))
            .chain([clients.started, clients.finished])
            .chain(statuses.copied())
            .chain(lookups)
            .chain([self.connections.sum_of_counts()])
            .fold(0, u64::saturating_add)
    }

    /// Forgets how latencies varied within the round: the rounds show it.
    pub fn forget_slices(&mut self) {
        let tagged = self.tags.iter_mut().flat_map(|tag| &mut tag.groups);
        let groups = self.groups.iter_mut().chain(tagged);
        for times in groups.filter_map(|group| group.open_loop.as_mut()) {
            times.over_time = OverTime::default();
        }
    }

    /// Releases memory that a cell only needs while it is counted, with [`Histogram::pack`].
    pub fn pack(&mut self) {
        self.groups.iter_mut().for_each(Group::pack);
        self.groups.shrink_to_fit();
        self.tags.iter_mut().for_each(TagCell::pack);
        self.connections.pack();
        self.lookups.pack();
    }

    /// The groups for which `keep` returns true, merged into one; its key is that of the first.
    pub fn merged(&self, keep: impl Fn(&GroupKey) -> bool) -> Option<Group> {
        group::merged(&self.groups, keep)
    }
}
