//! Selects the exchanges that get a row if not all can.
//!
//! The first 100 of each variant are selected, and a reservoir of each kind in each round
//! (algorithm R, Vitter 1985). So is every exchange that is among the 100 slowest of its variant at
//! its time. Memory is bounded for any length of the run.

use crate::exchange::Exchange;
use crate::failure::Outcome;
use crate::reuse::Reuse;
use std::collections::BTreeMap;

/// Number of the first exchanges of each variant that are selected.
pub const FIRST: u64 = 100;
/// Number of the slowest exchanges of each variant that are selected.
pub const SLOWEST: usize = 100;
/// Number of exchanges of each kind in each round that are selected at random.
pub const RESERVOIR: usize = 50;

/// The state of one variant.
#[derive(Default)]
struct Seen {
    count: u64,
    /// The latencies of the slowest so far, ascending; a new one must beat the first.
    slowest: Vec<u64>,
}

/// The kinds with a reservoir of their own: variant, round, reuse, outcome.
type Kind = (Option<u32>, Option<u32>, Option<Reuse>, Outcome);

/// One kind of exchange in one round.
#[derive(Default)]
struct Reservoir {
    seen: u64,
    rows: Vec<Exchange>,
}

/// Selects exchanges of a stream. One per thread; their combined selections are a valid sample,
/// too.
pub struct Sampler {
    variants: BTreeMap<Option<u32>, Seen>,
    reservoirs: BTreeMap<Kind, Reservoir>,
    random: u64,
}

impl Sampler {
    /// A sampler with choices that depend on `seed` only.
    pub fn new(seed: u64) -> Sampler {
        Sampler {
            variants: BTreeMap::new(),
            reservoirs: BTreeMap::new(),
            random: seed | 1,
        }
    }

    /// Considers one exchange. `true`: it is among the first or the slowest, so write it now.
    /// Otherwise it may be in a reservoir, which [`Sampler::drain`] returns.
    #[inline]
    pub fn consider(&mut self, exchange: &Exchange) -> bool {
        let seen = self.variants.entry(exchange.variant).or_default();
        seen.count += 1;
        let latency = exchange.latency();
        let slow = seen.slowest.len() < SLOWEST || latency > seen.slowest[0];
        if slow && seen.count > FIRST {
            let at = seen.slowest.partition_point(|&other| other < latency);
            seen.slowest.insert(at, latency);
            if seen.slowest.len() > SLOWEST {
                seen.slowest.remove(0);
            }
        }
        if seen.count <= FIRST || slow {
            return true;
        }
        self.put_in_reservoir(exchange);
        false
    }

    fn put_in_reservoir(&mut self, exchange: &Exchange) {
        let random = self.next_random();
        let key = (
            exchange.variant,
            exchange.round,
            exchange.reuse,
            exchange.outcome,
        );
        let reservoir = self.reservoirs.entry(key).or_default();
        reservoir.seen += 1;
        if reservoir.rows.len() < RESERVOIR {
            reservoir.rows.push(exchange.clone());
        } else {
            let at = ((u128::from(random) * u128::from(reservoir.seen)) >> 64) as usize;
            if at < RESERVOIR {
                reservoir.rows[at].clone_from(exchange);
            }
        }
    }

    /// Removes and returns the exchanges in the reservoirs; call it at the end of a round.
    pub fn drain(&mut self) -> impl Iterator<Item = Exchange> + '_ {
        std::mem::take(&mut self.reservoirs)
            .into_values()
            .flat_map(|reservoir| reservoir.rows)
    }

    /// xorshift64* (Vigna 2016).
    fn next_random(&mut self) -> u64 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        self.random.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Nanos;

    fn exchange(id: u64, latency: u64) -> Exchange {
        let mut one = Exchange::new(id, Nanos(0));
        one.end = Nanos(latency);
        one
    }

    #[test]
    fn the_first_and_the_slowest_are_always_kept() {
        let mut sampler = Sampler::new(1);
        let mut kept = Vec::new();
        for id in 0..100_000u64 {
            // the slowest come last but one
            let latency = if (99_000..99_100).contains(&id) {
                1_000_000 + id
            } else {
                1000 + id % 7
            };
            if sampler.consider(&exchange(id, latency)) {
                kept.push(id);
            }
        }
        assert!((0..100).all(|id| kept.contains(&id)));
        assert!((99_000..99_100).all(|id| kept.contains(&id)));
        assert!(kept.len() < 1000, "{}", kept.len());
        assert_eq!(sampler.drain().count(), RESERVOIR);
        assert_eq!(sampler.drain().count(), 0);
    }

    #[test]
    fn the_reservoir_is_spread_over_the_whole_round() {
        let mut sampler = Sampler::new(7);
        for id in 0..20_000 {
            sampler.consider(&exchange(id, 5));
        }
        let late = sampler.drain().filter(|one| one.id >= 10_000).count();
        // binomial(50, 1/2): outside 10..=40 once in 100,000 seeds
        assert!((10..=40).contains(&late), "{late}");
    }
}
