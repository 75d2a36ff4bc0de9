//! What several targets add to a cell: figures by tag, and the simulated clients of a scenario.

use super::{Group, GroupKey, add, add_each, group};
use crate::exchange::Exchange;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The most tags of one cell. A scenario has fewer; a ledger of another program may have more.
const MOST: usize = 1_000;

/// The exchanges of one tag.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TagCell {
    /// The tag.
    pub tag: Arc<str>,
    /// Exchanges by kind, without warm-up.
    pub groups: Vec<Group>,
    /// Status codes of complete exchanges.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub status: BTreeMap<u16, u64>,
}

/// Simulated clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Clients")]
pub struct ClientCounts {
    /// Those that sent at least one request.
    pub started: u64,
    /// Those of them that were through with all steps, or repeated until the run ended.
    pub finished: u64,
}

impl ClientCounts {
    /// Adds those of another thread.
    pub fn add(&mut self, other: ClientCounts) {
        add(&mut self.started, other.started);
        add(&mut self.finished, other.finished);
    }
}

/// Counts an exchange under its tag.
#[inline]
pub(super) fn record(tags: &mut Vec<TagCell>, exchange: &Exchange) {
    let tag = exchange.tag.as_ref().filter(|_| !exchange.warmup);
    let Some(tag) = tag else { return };
    let Some(cell) = cell(tags, tag) else { return };
    group::record(&mut cell.groups, exchange);
    if let Some(status) = exchange.status.filter(|_| exchange.outcome.is_ok()) {
        *cell.status.entry(status).or_default() += 1;
    }
}

/// Adds all of `theirs`.
pub(super) fn merge(ours: &mut Vec<TagCell>, theirs: &[TagCell]) {
    for other in theirs {
        let Some(cell) = cell(ours, &other.tag) else {
            return;
        };
        group::merge(&mut cell.groups, &other.groups);
        add_each(&mut cell.status, &other.status);
    }
}

/// The cell of a tag, created on demand; absent beyond the limit.
fn cell<'a>(tags: &'a mut Vec<TagCell>, tag: &Arc<str>) -> Option<&'a mut TagCell> {
    let at = match tags.iter().position(|one| one.tag == *tag) {
        Some(at) => at,
        None if tags.len() >= MOST => return None,
        None => {
            tags.push(TagCell {
                tag: tag.clone(),
                ..TagCell::default()
            });
            tags.len() - 1
        }
    };
    tags.get_mut(at)
}

impl TagCell {
    /// Packs its histograms.
    pub(super) fn pack(&mut self) {
        self.groups.iter_mut().for_each(Group::pack);
        self.groups.shrink_to_fit();
    }

    /// See [`super::Tally::sum_of_counts`].
    pub(super) fn counts(&self) -> impl Iterator<Item = u64> + '_ {
        let groups = self.groups.iter().flat_map(Group::counts);
        groups.chain(self.status.values().copied())
    }

    /// The groups for which `keep` returns true, merged into one.
    pub fn merged(&self, keep: impl Fn(&GroupKey) -> bool) -> Option<Group> {
        group::merged(&self.groups, keep)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Cell, Tally};
    use crate::event::{Event, Sink};
    use crate::exchange::Exchange;
    use crate::reuse::Reuse;
    use crate::time::Nanos;
    use std::sync::Arc;

    fn tagged(tag: &str, reuse: Reuse, latency: u64) -> Exchange {
        let mut one = Exchange::new(0, Nanos(0));
        one.variant = Some(0);
        one.round = Some(1);
        one.tag = Some(Arc::from(tag));
        one.reuse = Some(reuse);
        one.status = Some(200);
        one.end = Nanos(latency);
        one
    }

    #[test]
    fn exchanges_are_counted_by_tag_too_and_merge_tag_by_tag() {
        let mut one = Tally::new();
        for exchange in [
            tagged("first", Reuse::Fresh, 90),
            tagged("kept", Reuse::Reused, 30),
            tagged("kept", Reuse::Reused, 40),
        ] {
            one.record(Event::Exchange(&exchange));
        }
        let mut both = Tally::new();
        both.merge(&one);
        both.merge(&one);
        let cell: &Cell = both.cell(Some(0), Some(1));
        let counts = cell.tags.iter().map(|one| {
            let all = one.merged(|_| true).map_or(0, |group| group.count());
            (&*one.tag, all, one.status[&200])
        });
        let counts: Vec<_> = counts.collect();
        assert_eq!(counts, [("first", 2, 2), ("kept", 4, 4)]);
        let all = cell.merged(|_| true).map(|group| group.count());
        assert_eq!(all, Some(6));
    }

    #[test]
    fn a_tally_without_tags_is_written_as_before() {
        let mut tally = Tally::new();
        let mut exchange = tagged("x", Reuse::Fresh, 1);
        exchange.tag = None;
        tally.record(Event::Exchange(&exchange));
        let json = serde_json::to_string(&tally).unwrap();
        assert!(
            !json.contains("tags") && !json.contains("clients"),
            "{json}"
        );
    }
}
