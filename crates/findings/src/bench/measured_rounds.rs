//! The measured rounds of one variant, merged, and what was done before measuring. Must not know the axes.

use super::variant::{RoundFigures, Warmup};
use crate::figures::{Connections, Latency, Requests};
use intact_ledger::{Cell, Group, Tally};

/// The sums over the rounds of a variant.
pub(super) struct MeasuredRounds {
    /// Everything but the preflight.
    pub(super) all: Cell,
    pub(super) rounds: Vec<RoundFigures>,
    pub(super) warmup: Warmup,
    /// Time measured, in nanoseconds.
    nanos: u64,
    /// Processor time in nanoseconds; absent where a round has none.
    pub(super) client_cpu: Option<u64>,
    pub(super) server_cpu: Option<u64>,
}

impl MeasuredRounds {
    pub(super) fn new(index: u32, tally: &Tally) -> MeasuredRounds {
        let mut sums = MeasuredRounds {
            all: Cell::new(Some(index), None),
            rounds: Vec::new(),
            warmup: Warmup::default(),
            nanos: 0,
            client_cpu: Some(0),
            server_cpu: Some(0),
        };
        for cell in tally.of_variant(index) {
            sums.add_warmup(cell);
            if let Some(round) = cell.round.filter(|&round| round > 0) {
                sums.add_round(round, cell);
            }
        }
        sums.rounds.sort_by_key(|figures| figures.round);
        sums
    }

    fn add_warmup(&mut self, cell: &Cell) {
        if cell.round == Some(0) {
            self.warmup.connections += cell.connections.opened;
        }
        for group in cell.groups.iter().filter(|group| group.key.warmup) {
            self.warmup.requests += group.count();
            if group.key.outcome.is_ok() {
                self.warmup.ok += group.count();
            }
        }
    }

    fn add_round(&mut self, round: u32, cell: &Cell) {
        self.all.merge(cell);
        if let Some(bounds) = &cell.bounds {
            let add = |sum: Option<u64>, more: Option<u64>| Some(sum? + more?);
            self.nanos += bounds.span.nanos();
            self.client_cpu = add(self.client_cpu, bounds.client_cpu);
            self.server_cpu = add(self.server_cpu, bounds.server_cpu);
            let figures = round_figures(round, cell, bounds.span.nanos());
            self.rounds.push(figures);
        }
    }

    /// Measured requests, and how many of them reused a connection.
    pub(super) fn requests(&self) -> (Requests, u64) {
        let mut requests = Requests {
            status: self.all.status.clone(),
            ..Requests::default()
        };
        let mut reused = 0;
        for group in self.all.groups.iter().filter(|group| !group.key.warmup) {
            reused += requests.add_group(group);
        }
        (requests, reused)
    }

    /// Connections; every round needs `each`.
    pub(super) fn connections(&self, each: u64) -> Connections {
        let counts = &self.all.connections;
        let failed = counts.failed.iter();
        let ended_by = counts.ended_by.iter();
        Connections {
            opened: counts.opened,
            failed: failed.map(|(kind, &count)| (kind.id(), count)).collect(),
            ended_by: ended_by.map(|(by, &count)| (by.id(), count)).collect(),
            needed: each * self.rounds.len() as u64,
        }
    }

    /// Warm-up exchanges of the measured rounds.
    pub(super) fn warmup_exchanges(&self) -> u64 {
        let groups = self.all.groups.iter();
        let warmup = groups.filter(|group| group.key.warmup);
        warmup.map(Group::count).sum()
    }

    /// Time measured, in seconds.
    pub(super) fn seconds(&self) -> Option<f64> {
        (self.nanos > 0).then_some(self.nanos as f64 / 1e9)
    }

    /// Processor time as a share of the time measured.
    pub(super) fn busy(&self, cpu: Option<u64>) -> Option<f64> {
        let cpu = cpu.filter(|&cpu| cpu > 0 && self.nanos > 0)?;
        Some(cpu as f64 / self.nanos as f64)
    }
}

/// A round without bounds was cut off and has no figures.
fn round_figures(round: u32, cell: &Cell, nanos: u64) -> RoundFigures {
    let ok = cell.merged(|key| !key.warmup && key.outcome.is_ok());
    let latency = ok.as_ref().map(|group| Latency::of(&group.latency));
    let requests = ok.as_ref().map_or(0, Group::count);
    RoundFigures {
        round,
        requests,
        mean_ms: latency.as_ref().and_then(|latency| latency.mean),
        p50_ms: latency.as_ref().and_then(|latency| latency.p50),
        p99_ms: latency.and_then(|latency| latency.p99),
        rate_per_s: (nanos > 0).then(|| requests as f64 / (nanos as f64 / 1e9)),
    }
}
