//! Complete counts and histograms of a run, mergeable. Every count that is printed comes from here,
//! never from sampled rows.

mod cell;
mod connections;
mod group;
mod over_time;
mod tagged;

pub use cell::Cell;
pub use connections::Connections;
pub use group::{Group, GroupKey, OpenLoopTimes};
pub use over_time::OverTime;
pub use tagged::{ClientCounts, TagCell};

use crate::event::{Caveat, Event, Sink, Sockets};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Adds to a sum of numbers from a ledger of another program. The sum saturates at 2^64.
#[inline]
fn add(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}

/// Adds counts by key.
fn add_each<K: Copy + Ord>(sums: &mut BTreeMap<K, u64>, more: &BTreeMap<K, u64>) {
    for (&key, &count) in more {
        add(sums.entry(key).or_default(), count);
    }
}

/// The tally of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tally {
    /// One cell per variant and round with events, in order of appearance.
    pub cells: Vec<Cell>,
    /// The machine's sockets, first and last count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sockets: Vec<Sockets>,
    /// The caveats of the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub caveats: Vec<Caveat>,
    /// Index of the cell that was used last.
    #[serde(skip)]
    recent: usize,
}

impl Tally {
    /// An empty tally.
    pub fn new() -> Tally {
        Tally::default()
    }

    /// The cell of a variant and round, created on demand.
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

    /// Sum of all counts and bytes. If it fits into a number, so does each partial sum.
    pub(crate) fn sum_of_counts(&self) -> u64 {
        let cells = self.cells.iter().map(Cell::sum_of_counts);
        cells.fold(0, u64::saturating_add)
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
            Event::Revised(_) | Event::Stack(_) | Event::Invocation(_) | Event::Fault(_) => {}
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
    use crate::exchange::Exchange;
    use crate::failure::{Failure, Outcome};
    use crate::reuse::Reuse;
    use crate::time::{Nanos, Span};

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
    fn exchanges_are_counted_by_reuse_and_outcome() {
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
    fn the_status_of_warm_up_is_counted_separately() {
        let mut tally = Tally::new();
        let measured = exchange(0, true, 90, Outcome::Ok);
        let warmup = Exchange {
            warmup: true,
            ..measured.clone()
        };
        tally.record(Event::Exchange(&measured));
        tally.record(Event::Exchange(&warmup));
        let mut both = Tally::new();
        both.merge(&tally);
        both.merge(&tally);
        let cell = both.cell(Some(0), Some(1));
        assert_eq!(cell.status, BTreeMap::from([(200, 2)]));
        assert_eq!(cell.warmup_status, BTreeMap::from([(200, 2)]));
    }

    #[test]
    fn a_complete_round_takes_a_few_bytes_a_bucket_and_no_slices() {
        let mut tally = Tally::new();
        for nth in 0..2_000 {
            let mut one = exchange(0, false, 70_000 + nth * 37, Outcome::Ok);
            one.at = Nanos(nth);
            one.scheduling_error = Some(Span::new(one.at, Nanos(nth + 1)));
            tally.record(Event::Exchange(&one));
        }
        let cell = tally.cell(Some(0), Some(1));
        let before = cell.groups[0].clone();
        cell.forget_slices();
        cell.pack();
        let [group] = &cell.groups[..] else { panic!() };
        assert_eq!(cell.groups.capacity(), 1);
        assert_eq!(group.latency, before.latency);
        let times = group.open_loop.as_ref().unwrap();
        assert_eq!(times.on_time, before.open_loop.unwrap().on_time);
        assert_eq!(times.over_time.slices().count(), 0);
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
