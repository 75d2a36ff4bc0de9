//! The requests of a run in the order of their ends, in a bounded number of batches of about equal
//! size. A day with much traffic has more batches than a quiet week. Must not conclude.

use intact_ledger::{Connection, Exchange, Reuse};

/// Batches at most.
const MOST: usize = 1024;
/// Pauses that no batch extends over, the longest ones.
const PAUSES: usize = 64;

/// What happened in a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sums {
    pub(super) requests: u64,
    /// Nanoseconds.
    pub(super) latency: u64,
    pub(super) opened: u64,
    /// Requests that were the first on their connection, or waited for its setup.
    pub(super) first: u64,
    /// Their latency, in nanoseconds.
    pub(super) first_latency: u64,
    pub(super) reused: u64,
}

impl Sums {
    pub(super) fn and(self, other: Sums) -> Sums {
        Sums {
            requests: self.requests + other.requests,
            latency: self.latency.saturating_add(other.latency),
            opened: self.opened + other.opened,
            first: self.first + other.first,
            first_latency: self.first_latency.saturating_add(other.first_latency),
            reused: self.reused + other.reused,
        }
    }

    /// Takes away at most this many of the first requests; returns how many are still to be taken.
    pub(super) fn take_first(&mut self, wanted: u64) -> u64 {
        let taken = wanted.min(self.first);
        if taken > 0 {
            let share = self.first_latency as f64 * (taken as f64 / self.first as f64);
            self.first -= taken;
            self.requests -= taken;
            self.first_latency = self.first_latency.saturating_sub(share as u64);
            self.latency = self.latency.saturating_sub(share as u64);
        }
        wanted - taken
    }
}

/// Requests that ended one after another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Batch {
    /// The end of the first one, in nanoseconds of the run.
    pub(super) from: u64,
    /// The end of the last one.
    pub(super) to: u64,
    pub(super) sums: Sums,
}

/// The batches, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Batches {
    all: Vec<Batch>,
    requests: u64,
    /// Connections that were opened since the last request: they belong to the next one.
    opened: u64,
}

impl Batches {
    pub(super) fn all(&self) -> &[Batch] {
        &self.all
    }

    pub(super) fn opened(&mut self, connection: &Connection) {
        self.opened += u64::from(connection.is_opened());
    }

    pub(super) fn exchange(&mut self, exchange: &Exchange) {
        self.requests += 1;
        let opened = std::mem::take(&mut self.opened);
        let sums = self.at(exchange.end.0);
        sums.opened += opened;
        sums.requests += 1;
        sums.latency = sums.latency.saturating_add(exchange.latency());
        match exchange.reuse.map(Reuse::is_reused) {
            Some(true) => sums.reused += 1,
            Some(false) => {
                sums.first += 1;
                sums.first_latency = sums.first_latency.saturating_add(exchange.latency());
            }
            None => {}
        }
    }

    /// The sums of the batch at a moment. Files that cover the same time are read one after
    /// another, so a moment may be anywhere.
    fn at(&mut self, when: u64) -> &mut Sums {
        if self.all.len() >= MOST {
            self.thin();
        }
        let index = match self.all.last() {
            // most requests are recorded in the order of their ends
            Some(last) if when >= last.from => self.all.len() - usize::from(when <= last.to),
            _ => self.all.partition_point(|batch| batch.to < when),
        };
        if self.all.get(index).is_none_or(|batch| batch.from > when) {
            let batch = Batch {
                from: when,
                to: when,
                sums: Sums::default(),
            };
            self.all.insert(index, batch);
        }
        &mut self.all[index].sums
    }

    /// Puts neighbours together, but not over the longest pauses.
    fn thin(&mut self) {
        let target = (4 * self.requests / MOST as u64).max(2);
        let mut pauses: Vec<u64> = self
            .all
            .windows(2)
            .map(|two| two[1].from - two[0].to)
            .collect();
        pauses.sort_unstable_by(|a, b| b.cmp(a));
        let longest = pauses.get(PAUSES).copied().unwrap_or(u64::MAX);
        let mut kept: Vec<Batch> = Vec::with_capacity(MOST);
        for batch in self.all.drain(..) {
            match kept.last_mut() {
                Some(last)
                    if last.sums.requests + batch.sums.requests <= target
                        && batch.from - last.to <= longest =>
                {
                    last.to = batch.to;
                    last.sums = last.sums.and(batch.sums);
                }
                _ => kept.push(batch),
            }
        }
        self.all = kept;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use intact_ledger::Nanos;

    fn filled(ends: impl Iterator<Item = u64>) -> Batches {
        let mut batches = Batches::default();
        for end in ends {
            let mut one = Exchange::new(1, Nanos(end.saturating_sub(5)));
            one.end = Nanos(end);
            batches.exchange(&one);
        }
        batches
    }

    #[test]
    fn batches_are_in_order_bounded_and_lose_nothing() {
        // one file after another, over the same time
        let ends = (0..60_000u64).map(|nth| 1_000 + (nth % 30_000) * 37);
        let batches = filled(ends);
        let all = batches.all();
        assert!(all.len() <= MOST && all.len() > MOST / 8, "{}", all.len());
        assert!(all.windows(2).all(|two| two[0].to < two[1].from));
        let requests: u64 = all.iter().map(|batch| batch.sums.requests).sum();
        assert_eq!(requests, 60_000);
        let most = all.iter().map(|batch| batch.sums.requests).max();
        assert!(most.unwrap() <= 600, "{most:?}");
    }

    #[test]
    fn no_batch_extends_over_a_long_pause() {
        let day = 86_400_000_000_000;
        let batches = filled((0..50_000u64).map(|nth| nth + (nth / 25_000) * day));
        assert!(
            batches
                .all()
                .iter()
                .all(|batch| batch.to - batch.from < day / 2)
        );
    }

    #[test]
    fn the_connections_that_were_needed_are_taken_from_the_first_requests() {
        let mut sums = Sums {
            requests: 10,
            latency: 1_000,
            opened: 4,
            first: 4,
            first_latency: 800,
            reused: 6,
        };
        assert_eq!(sums.take_first(3), 0);
        assert_eq!((sums.requests, sums.first, sums.latency), (7, 1, 400));
        assert_eq!(sums.take_first(3), 2);
        assert_eq!((sums.requests, sums.first, sums.latency), (6, 0, 200));
    }
}
