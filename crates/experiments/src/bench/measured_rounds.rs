//! The measured rounds of one variant, merged, and what was done before measuring. Must not know
//! the axes.

use super::machine::MachineFacts;
use super::measured_latency::{RoundRequests, bounded_by_lateness};
use super::variant::{RoundFigures, Warmup};
use crate::traffic;
use intact_document::figures::{Connections, Latency, NANOS_PER_MS, Requests, add_counts};
use intact_ledger::{
    Cell, Failure, Group, Histogram, MachineUse, Outcome, Round, RoundSockets, Tally,
};
use intact_reading::{Reading, Why};
use intact_statistics::typical_round;

/// The sums over the rounds of a variant.
#[derive(Default)]
pub(super) struct MeasuredRounds {
    /// Everything but the preflight.
    pub(super) all: Cell,
    pub(super) rounds: Vec<RoundFigures>,
    /// The complete requests of each of them that had one, in their order.
    pub(super) requests_of: Vec<RoundRequests>,
    pub(super) warmup: Warmup,
    /// Time measured, in nanoseconds.
    nanos: u64,
    /// Time in which requests fell due by the schedule of an open loop, in nanoseconds.
    scheduled_nanos: u64,
    /// Connections used at once, summed over the rounds of an open loop.
    at_once: Option<u64>,
    /// Time measured, in nanoseconds, for each thread of the client.
    thread_nanos: u64,
    /// The fastest response of the preflight, without the setup, in nanoseconds: nothing else was
    /// under way.
    pub(super) lone: Option<u64>,
    /// Processor time in nanoseconds; absent where a round has none.
    pub(super) client_cpu: Option<u64>,
    pub(super) server_cpu: Option<u64>,
    /// What all processes of this machine did; absent where a round has it not.
    machine: Option<MachineUse>,
    /// Connections that sent data with their SYN; absent where they were not to.
    pub(super) with_syn: Option<u64>,
    /// For how many seconds a cache could use the response without a request, at least.
    pub(super) fresh_for_s: Option<u64>,
    /// The sockets around the round in which they were counted.
    pub(super) sockets: Option<RoundSockets>,
}

impl MeasuredRounds {
    pub(super) fn new(index: u32, tally: &Tally) -> MeasuredRounds {
        let mut sums = MeasuredRounds {
            all: Cell::new(Some(index), None),
            client_cpu: Some(0),
            server_cpu: Some(0),
            ..MeasuredRounds::default()
        };
        let mut cells: Vec<&Cell> = tally.of_variant(index).collect();
        cells.sort_by_key(|cell| cell.round);
        for cell in cells {
            sums.add_warmup(cell);
            if let Some(round) = cell.round.filter(|&round| round > 0) {
                sums.add_round(round, cell);
            }
        }
        let first_ones = sums.all.merged(|key| key.warmup && key.outcome.is_ok());
        if let Some(waits) = first_ones.map(|group| Latency::of(&group.without_setup)) {
            (sums.warmup.mean_ms, sums.warmup.max_ms) = (waits.mean.value(), waits.max.value());
        }
        sums
    }

    fn add_warmup(&mut self, cell: &Cell) {
        if cell.round == Some(0) {
            self.warmup.connections += cell.connections.opened;
            let ok = cell.merged(|key| key.outcome.is_ok());
            self.lone = ok.and_then(|group| group.without_setup.min());
        }
        for group in cell.groups.iter().filter(|group| group.key.warmup) {
            let count = group.count();
            self.warmup.requests += count;
            match group.key.outcome {
                Outcome::Ok => self.warmup.ok += count,
                Outcome::Failed(kind) => {
                    *self.warmup.failed.entry(kind.id()).or_default() += count;
                }
                // a bench decides every outcome
                Outcome::Pending | Outcome::Unknown => {}
            }
        }
        add_counts(&mut self.warmup.status, &cell.warmup_status);
    }

    fn add_round(&mut self, round: u32, cell: &Cell) {
        self.all.merge(cell);
        if let Some(bounds) = &cell.bounds {
            let add = |sum: Option<u64>, more: Option<u64>| Some(sum?.saturating_add(more?));
            let nanos = bounds.span.nanos();
            let threads = u64::from(bounds.client_threads.unwrap_or(1));
            self.nanos = self.nanos.saturating_add(nanos);
            let of_threads = nanos.saturating_mul(threads);
            self.thread_nanos = self.thread_nanos.saturating_add(of_threads);
            if let Some(schedule) = &bounds.schedule {
                let due = schedule.due.nanos();
                self.scheduled_nanos = self.scheduled_nanos.saturating_add(due);
                *self.at_once.get_or_insert(0) += u64::from(schedule.at_once);
            }
            self.client_cpu = add(self.client_cpu, bounds.client_cpu);
            self.server_cpu = add(self.server_cpu, bounds.server_cpu);
            self.machine = match (self.machine, bounds.machine) {
                (None, first) if self.rounds.is_empty() => first,
                (sum, more) => sum.zip(more).map(|(sum, more)| sum.and(more)),
            };
            self.sockets = self.sockets.or(bounds.sockets);
            if let Some(more) = bounds.with_syn {
                *self.with_syn.get_or_insert(0) += more;
            }
            if let Some(seconds) = bounds.fresh_for_s {
                let least = self.fresh_for_s.unwrap_or(seconds);
                self.fresh_for_s = Some(least.min(seconds));
            }
            let ok = cell.merged(|key| !key.warmup && key.outcome.is_ok());
            let figures = round_figures(round, cell, bounds, ok.as_ref());
            self.rounds.push(figures);
            let unfinished = timeouts(cell);
            let is_step = bounds.load.is_some();
            self.requests_of.extend(ok.map(|ok| RoundRequests {
                ok,
                unfinished,
                is_step,
            }));
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

    /// Measured requests whose connection is known; requests that were never sent have none.
    pub(super) fn reuse_known(&self) -> u64 {
        let groups = self.all.groups.iter();
        let known = groups.filter(|one| !one.key.warmup && one.key.reuse.is_some());
        known.map(Group::count).sum()
    }

    /// Requests that fell due, a second of the schedule; absent in a closed loop.
    pub(super) fn requested_per_s(&self, due: u64) -> Option<f64> {
        per_second(due, self.scheduled_nanos)
    }

    /// Connections; every round needs `each`, in an open loop as many as it used at once.
    pub(super) fn connections(&self, each: u64) -> Connections {
        let needed = self.at_once.unwrap_or(each * self.rounds.len() as u64);
        traffic::connections(&self.all.connections, needed)
    }

    /// Warm-up exchanges of the measured rounds.
    pub(super) fn warmup_exchanges(&self) -> u64 {
        let groups = self.all.groups.iter();
        let warmup = groups.filter(|group| group.key.warmup);
        warmup.map(Group::count).sum()
    }

    /// The typical latency: that of a typical round, in milliseconds.
    pub(super) fn typical_ms(&self) -> Reading {
        let over_rounds = |of: fn(&RoundFigures) -> Option<f64>| {
            let rounds = self.rounds.iter();
            typical_round(&rounds.filter_map(of).collect::<Vec<f64>>())
        };
        match over_rounds(|one| one.typical_ms) {
            Some(value) => bounded_by_lateness(value, over_rounds(|one| one.typical_on_time_ms)),
            None => Reading::unknown(Why::NothingHappened),
        }
    }

    /// Time measured, in seconds.
    pub(super) fn seconds(&self) -> Option<f64> {
        (self.nanos > 0).then_some(self.nanos as f64 / 1e9)
    }

    /// Processor time of the client as a share of the time measured on its threads.
    pub(super) fn client_busy(&self) -> Option<f64> {
        busy(self.client_cpu, self.thread_nanos)
    }

    /// Requests a second at which the client's threads would have no time left, at the processor
    /// time that each took.
    pub(super) fn client_ceiling(&self, requests: u64) -> Option<f64> {
        let cpu = self.client_cpu.filter(|&cpu| cpu > 0 && requests > 0)?;
        let threads = (self.nanos > 0).then(|| self.thread_nanos as f64 / self.nanos as f64)?;
        Some(threads * 1e9 * requests as f64 / cpu as f64)
    }

    /// What all processes of this machine did with its processors.
    pub(super) fn machine(&self) -> Option<MachineFacts> {
        MachineFacts::of(
            &self.machine?,
            (self.client_cpu, self.server_cpu),
            self.nanos,
        )
    }

    /// Processor time of the server as a share of the time measured: above 1 where it used several
    /// processors.
    pub(super) fn server_busy(&self) -> Option<f64> {
        busy(self.server_cpu, self.nanos)
    }
}

fn busy(cpu: Option<u64>, nanos: u64) -> Option<f64> {
    let cpu = cpu.filter(|&cpu| cpu > 0 && nanos > 0)?;
    Some(cpu as f64 / nanos as f64)
}

fn per_second(count: u64, nanos: u64) -> Option<f64> {
    (nanos > 0).then(|| count as f64 / (nanos as f64 / 1e9))
}

/// A round without bounds was cut off and has no figures.
fn round_figures(round: u32, cell: &Cell, bounds: &Round, ok: Option<&Group>) -> RoundFigures {
    let latency = ok.map(|group| Latency::of(&group.latency));
    let latency = latency.unwrap_or_default();
    let requests = ok.map_or(0, Group::count);
    let all = cell.merged(|key| !key.warmup).map_or(0, |all| all.count());
    RoundFigures {
        round,
        requests,
        typical_ms: typical(cell, |group| Some(&group.latency)).map(|nanos| nanos / NANOS_PER_MS),
        typical_on_time_ms: typical(cell, on_time).map(|nanos| nanos / NANOS_PER_MS),
        mean_ms: latency.mean.value(),
        p50_ms: latency.p50.value(),
        p99_ms: latency.p99.value(),
        requested_per_s: bounds
            .schedule
            .and_then(|schedule| per_second(all, schedule.due.nanos())),
        rate_per_s: per_second(requests, bounds.span.nanos()),
    }
}

fn timeouts(cell: &Cell) -> u64 {
    let groups = cell.groups.iter().filter(|group| !group.key.warmup);
    let late = groups.filter(|group| group.key.outcome.failure() == Some(Failure::Timeout));
    late.map(Group::count).sum()
}

/// The latency without the client's lateness; absent in a closed loop.
fn on_time(group: &Group) -> Option<&Histogram> {
    group.open_loop.as_ref().map(|times| &times.on_time)
}

/// The typical latency of a round in nanoseconds: the medians of its fresh and of its reused
/// requests, weighted by their numbers; in an open loop the median of all. One slow request does
/// not move it, and the requests that waited for a connection count as what they are.
fn typical(cell: &Cell, of: fn(&Group) -> Option<&Histogram>) -> Option<f64> {
    let measured = |group: &&Group| !group.key.warmup && group.key.outcome.is_ok();
    let groups = || cell.groups.iter().filter(measured);
    let requests: u64 = groups().map(Group::count).sum();
    let is_open = cell
        .bounds
        .as_ref()
        .is_some_and(|one| one.schedule.is_some());
    if is_open {
        // new connections are a result of its queues, and no second kind of requests. The median
        // is unknown if as many were not over in time
        let ok = cell.merged(|key| !key.warmup && key.outcome.is_ok())?;
        return (timeouts(cell) < requests).then(|| of(&ok)?.median())?;
    }
    let medians = groups().map(|group| Some(of(group)?.median()? * group.count() as f64));
    let sum: f64 = medians.sum::<Option<f64>>()?;
    (requests > 0).then(|| sum / requests as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use intact_ledger::{Exchange, Nanos, Reuse};

    fn exchange(reuse: Reuse, ms: u64) -> Exchange {
        let mut one = Exchange::new(0, Nanos(0));
        one.reuse = Some(reuse);
        one.end = Nanos(ms * 1_000_000);
        one
    }

    #[test]
    fn one_slow_request_does_not_move_the_typical_latency_and_every_new_connection_does() {
        let mut cell = Cell::new(Some(0), Some(1));
        for _ in 0..8 {
            cell.exchange(&exchange(Reuse::Reused, 10));
        }
        for _ in 0..2 {
            cell.exchange(&exchange(Reuse::Fresh, 60));
        }
        let typical = |cell: &Cell| typical(cell, |group| Some(&group.latency));
        let of = |cell: &Cell| (typical(cell).unwrap() / NANOS_PER_MS).round();
        assert_eq!(of(&cell), 20.0);
        cell.exchange(&exchange(Reuse::Reused, 5_000));
        assert_eq!(of(&cell), 19.0, "(9 x 10 + 2 x 60) / 11");
        let warmup = Exchange {
            warmup: true,
            ..exchange(Reuse::Fresh, 900)
        };
        cell.exchange(&warmup);
        assert_eq!(of(&cell), 19.0);
        assert_eq!(typical(&Cell::new(None, None)), None);
    }
}
