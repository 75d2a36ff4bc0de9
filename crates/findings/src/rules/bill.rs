//! Who pays for what: the avoidable set-ups of each destination, which rules claim until none is left.

use crate::figures::NANOS_PER_MS;
use crate::observe::{Books, Counts, Why};

/// Avoidable connections that a rule has claimed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Claim {
    /// How many.
    pub connections: u64,
    /// Their set-up in milliseconds (the mean of that destination for each); absent where set-up was not seen.
    pub cost_ms: Option<f64>,
    /// The same as a share of the time of all exchanges with that destination.
    pub share: Option<f64>,
}

/// The avoidable set-ups that nobody has claimed yet.
#[derive(Debug)]
pub struct Bill<'a> {
    books: &'a Books,
    needed: Vec<u64>,
    left: Vec<u64>,
}

impl<'a> Bill<'a> {
    pub(crate) fn new(books: &'a Books) -> Bill<'a> {
        let needed = books.needed();
        let left = books
            .counts
            .iter()
            .zip(&needed)
            .map(|(counts, needed)| counts.opened.saturating_sub(*needed))
            .collect();
        Bill {
            books,
            needed,
            left,
        }
    }

    /// The books.
    pub fn books(&self) -> &'a Books {
        self.books
    }

    /// The destinations: index, name, counts.
    pub fn destinations(&self) -> impl Iterator<Item = (usize, String, &'a Counts)> + use<'a> {
        let books = self.books;
        let names = books.places.iter().map(|place| place.name());
        let counts = names.zip(&books.counts).enumerate();
        counts.map(|(at, (name, counts))| (at, name, counts))
    }

    /// The connections that the peak overlap needs.
    pub fn needed(&self, destination: usize) -> u64 {
        self.needed[destination]
    }

    /// The avoidable connections that nobody has claimed yet.
    pub fn left(&self, destination: usize) -> u64 {
        self.left[destination]
    }

    /// How many openings had one of these reasons.
    pub fn openings(&self, destination: usize, whys: &[Why]) -> u64 {
        let why = &self.books.counts[destination].why;
        whys.iter()
            .map(|one| why.get(one).copied().unwrap_or(0))
            .sum()
    }

    /// Claims up to `connections` of what is left.
    pub fn claim(&mut self, destination: usize, connections: u64) -> Claim {
        let connections = connections.min(self.left[destination]);
        self.left[destination] -= connections;
        let counts = &self.books.counts[destination];
        let cost_ms = cost_ms(counts, connections);
        Claim {
            connections,
            cost_ms,
            share: share(counts, cost_ms),
        }
    }
}

/// What so many set-ups of a destination cost.
pub(crate) fn cost_ms(counts: &Counts, connections: u64) -> Option<f64> {
    let mean = counts.setup_total.mean()?;
    Some(mean * connections as f64 / NANOS_PER_MS)
}

/// A cost as a share of the time of all exchanges.
pub(crate) fn share(counts: &Counts, cost_ms: Option<f64>) -> Option<f64> {
    let outbound = counts.outbound as f64 / NANOS_PER_MS;
    let cost = cost_ms.filter(|_| outbound > 0.0)?;
    Some((cost / outbound).min(1.0))
}
