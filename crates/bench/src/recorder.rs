//! What one engine thread records: a complete tally, and rows of some or all exchanges. Nothing is
//! shared between threads; rows leave by a channel in batches.

use crate::config::RowPolicy;
use crate::engine::Progress;
use crate::windows::BegunWindows;
use intact_ledger::sample::Sampler;
use intact_ledger::{Caveat, Connection, ConnectionId, Event, Nanos, Row, Rows, Sink, Tally};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::SyncSender;

/// Rows that gather before they are handed over.
const BATCH: usize = 512;
/// Exchanges of each variant that always have a row, for the chart of the first calls.
const FIRST: u64 = 100;
/// Connections of each variant and round that have a row in a sample, and failed dials of each.
const CONNECTIONS: u32 = 20;

/// Exchanges that were recorded, and the last end of one that is no warm-up.
#[derive(Clone, Copy, Default)]
pub(crate) struct Seen {
    pub(crate) exchanges: u64,
    pub(crate) last_end: Option<Nanos>,
}

/// The sink of one engine thread.
pub(crate) struct Recorder {
    tally: Tally,
    keep: RowPolicy,
    sampler: Sampler,
    first: BTreeMap<Option<u32>, u64>,
    connections: BTreeMap<(Option<u32>, Option<u32>, bool), u32>,
    followed: BTreeSet<ConnectionId>,
    batch: Vec<Row>,
    rows: SyncSender<Vec<Row>>,
    windows: Option<BegunWindows>,
    seen: Seen,
}

impl Recorder {
    /// A recorder that hands rows to `rows`.
    pub(crate) fn new(keep: RowPolicy, seed: u64, rows: SyncSender<Vec<Row>>) -> Recorder {
        Recorder {
            tally: Tally::new(),
            keep,
            sampler: Sampler::new(seed),
            first: BTreeMap::new(),
            connections: BTreeMap::new(),
            followed: BTreeSet::new(),
            batch: Vec::new(),
            rows,
            windows: None,
            seen: Seen::default(),
        }
    }

    /// From now on exchanges belong to the windows in which they were due, until the round ends.
    pub(crate) fn begin_windows(&mut self, windows: BegunWindows) {
        self.windows = Some(windows);
    }

    /// Notes something that limits what the run can show.
    /// What was recorded since the last call.
    pub(crate) fn take_seen(&mut self) -> Seen {
        std::mem::take(&mut self.seen)
    }

    pub(crate) fn caveat(&mut self, id: &str, words: &str) {
        self.record(Event::Caveat(&Caveat::new(id, words)));
    }

    /// What this thread has done of a variant in the round under way, which took `nanos` so far.
    pub(crate) fn progress(&self, variant: u32, round: u32, nanos: u64) -> Progress {
        let mut cells = self.tally.of_variant(variant);
        let cell = cells.find(|cell| cell.round == Some(round));
        cell.map_or_else(Progress::default, |cell| Progress::of(cell, nanos))
    }

    /// Ends a round: hands over what is kept, returns the round's tally and starts an empty one.
    pub(crate) fn finish_round(&mut self) -> Tally {
        let sampled: Vec<_> = self.sampler.drain().collect();
        for exchange in sampled {
            self.hand_over(Row::Exchange(Box::new(exchange)));
        }
        self.windows = None;
        self.flush();
        self.connections.clear();
        self.followed.clear();
        std::mem::take(&mut self.tally)
    }

    fn wants_connection(&mut self, connection: &Connection) -> bool {
        match self.keep {
            RowPolicy::First => false,
            RowPolicy::Ledger(Rows::All) => true,
            RowPolicy::Ledger(Rows::Sample) => {
                let key = (
                    connection.variant,
                    connection.round,
                    connection.failed.is_some(),
                );
                let seen = self.connections.entry(key).or_default();
                *seen += 1;
                *seen <= CONNECTIONS && self.followed.insert(connection.id)
            }
        }
    }

    fn hand_over(&mut self, row: Row) {
        self.batch.push(row);
        if self.batch.len() >= BATCH {
            self.flush();
        }
    }

    fn flush(&mut self) {
        if !self.batch.is_empty() {
            // the receiver outlives the threads; if it is gone, so is the run
            let _ = self.rows.send(std::mem::take(&mut self.batch));
        }
    }
}

impl Sink for Recorder {
    #[inline]
    fn record(&mut self, event: Event<'_>) {
        if let Event::Exchange(exchange) = event {
            self.seen.exchanges += 1;
            if !exchange.warmup {
                self.seen.last_end = self.seen.last_end.max(Some(exchange.end));
            }
            let windows = self.windows.as_ref().filter(|_| !exchange.warmup);
            if let Some((round, warmup)) = windows.and_then(|one| one.of(exchange.at)) {
                let mut exchange = exchange.clone();
                exchange.round = Some(round);
                exchange.warmup = warmup;
                return self.take(Event::Exchange(&exchange));
            }
        }
        self.take(event);
    }
}

impl Recorder {
    #[inline]
    fn take(&mut self, event: Event<'_>) {
        self.tally.record(event);
        let wanted = match event {
            Event::Exchange(exchange) => match self.keep {
                RowPolicy::Ledger(Rows::All) => true,
                RowPolicy::Ledger(Rows::Sample) => self.sampler.consider(exchange),
                RowPolicy::First => {
                    let seen = self.first.entry(exchange.variant).or_default();
                    *seen += 1;
                    *seen <= FIRST
                }
            },
            Event::Opened(connection) => self.wants_connection(connection),
            Event::Closed(closed) => match self.keep {
                RowPolicy::First => false,
                RowPolicy::Ledger(Rows::All) => true,
                RowPolicy::Ledger(Rows::Sample) => self.followed.remove(&closed.connection),
            },
            Event::Revised(_) | Event::Lookup(_) => {
                matches!(self.keep, RowPolicy::Ledger(Rows::All))
            }
            Event::Round(_)
            | Event::Stack(_)
            | Event::Sockets(_)
            | Event::Invocation(_)
            | Event::Fault(_)
            | Event::Caveat(_) => true,
        };
        if wanted {
            self.hand_over(event.to_row());
        }
    }
}
