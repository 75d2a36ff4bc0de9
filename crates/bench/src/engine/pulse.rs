//! What a run has measured so far, for a view of it while it runs. The engine threads publish about
//! 20 times a second, and only if someone looks: the figures of a run come from its tally alone.

use intact_ledger::{Cell, Histogram, Reuse};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Counts of one variant so far, warm-up excluded except where it is named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Latency of complete exchanges, setup included.
    pub latency: Histogram,
    /// Exchanges, however they ended.
    pub requests: u64,
    /// Exchanges that failed, those of warm-up included.
    pub failed: u64,
    /// Exchanges on a connection that an earlier exchange had used.
    pub reused: u64,
    /// Connections opened, those of warm-up included.
    pub opened: u64,
    /// Time measured, in nanoseconds.
    pub nanos: u64,
    /// Rounds that are over.
    pub rounds: u32,
}

impl Progress {
    /// The counts of a cell, which took this long.
    pub(crate) fn of(cell: &Cell, nanos: u64) -> Progress {
        let mut all = Progress {
            opened: cell.connections.opened,
            nanos,
            ..Progress::default()
        };
        for group in &cell.groups {
            let (is_ok, count) = (group.key.outcome.is_ok(), group.count());
            if !is_ok {
                all.failed += count;
            }
            if group.key.warmup {
                continue;
            }
            all.requests += count;
            if is_ok {
                all.latency.merge(&group.latency);
            }
            if group.key.reuse == Some(Reuse::Reused) {
                all.reused += count;
            }
        }
        all
    }

    /// Adds what other rounds or threads did.
    fn add(&mut self, other: &Progress) {
        self.latency.merge(&other.latency);
        self.requests += other.requests;
        self.failed += other.failed;
        self.reused += other.reused;
        self.opened += other.opened;
        self.rounds += other.rounds;
    }
}

/// The variants of a run so far.
#[derive(Debug, Default)]
pub struct Pulse {
    is_watched: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Rounds that are over, by variant.
    over: BTreeMap<u32, Progress>,
    /// The turn under way: its variant, and what each thread did.
    turn: BTreeMap<u64, (u32, Progress)>,
}

impl Pulse {
    /// The counts so far, by variant. From the first call on, the threads publish.
    pub fn read(&self) -> BTreeMap<u32, Progress> {
        self.is_watched.store(true, Ordering::Relaxed);
        let state = self.state();
        let mut all = state.over.clone();
        let mut longest: BTreeMap<u32, u64> = BTreeMap::new();
        for (variant, progress) in state.turn.values() {
            all.entry(*variant).or_default().add(progress);
            // the threads of a turn run at the same time
            let nanos = longest.entry(*variant).or_default();
            *nanos = progress.nanos.max(*nanos);
        }
        for (variant, nanos) in longest {
            all.entry(variant).or_default().nanos += nanos;
        }
        all
    }

    /// Whether anyone looks.
    pub(crate) fn is_watched(&self) -> bool {
        self.is_watched.load(Ordering::Relaxed)
    }

    /// Replaces what a thread has done in the turn under way.
    pub(crate) fn publish(&self, thread: u64, variant: u32, progress: Progress) {
        self.state().turn.insert(thread, (variant, progress));
    }

    /// Ends the turn: `progress` is what all threads did in it.
    pub(crate) fn finish_turn(&self, variant: u32, progress: &Progress) {
        let mut state = self.state();
        state.turn.clear();
        let over = state.over.entry(variant).or_default();
        over.add(progress);
        over.nanos += progress.nanos;
        over.rounds += 1;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(latency: u64, nanos: u64) -> Progress {
        let mut progress = Progress {
            nanos,
            opened: 1,
            ..Progress::default()
        };
        progress.latency.record(latency);
        progress
    }

    #[test]
    fn threads_of_a_turn_add_up_and_their_time_does_not() {
        let pulse = Pulse::default();
        assert!(!pulse.is_watched());
        assert!(pulse.read().is_empty());
        assert!(pulse.is_watched());
        for (thread, nanos) in [(1, 5), (2, 7), (2, 9)] {
            pulse.publish(thread, 0, progress(3, nanos));
        }
        let turn = &pulse.read()[&0];
        assert_eq!((turn.latency.count(), turn.opened, turn.nanos), (2, 2, 9));
        assert_eq!(turn.rounds, 0);
        // what the tally has replaces what the threads published
        let mut whole = progress(3, 10);
        whole.add(&progress(4, 10));
        pulse.finish_turn(0, &whole);
        pulse.publish(1, 1, progress(3, 2));
        let all = pulse.read();
        assert_eq!(
            (all[&0].latency.count(), all[&0].nanos, all[&0].rounds),
            (2, 10, 1)
        );
        assert_eq!((all[&1].latency.count(), all[&1].nanos), (1, 2));
    }
}
