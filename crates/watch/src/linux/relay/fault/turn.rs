//! Which kept connections of a destination are struck, and after which exchange.

use super::DestinationKey;
use intact_experiment::Rng;
use intact_ledger::{FaultMoment, FaultRow};

/// Of this number of kept connections of a destination one is struck, so that a program can recover
/// on the others.
const EVERY: u64 = 10;
/// A connection is struck after one of its first exchanges, up to this one.
const LATEST: u64 = 3;

/// The kept connections of a destination so far.
#[derive(Debug, Default)]
pub(super) struct Turns {
    kept: u64,
}

impl Turns {
    /// How many connections were kept.
    pub(super) fn count(&self) -> u64 {
        self.kept
    }

    /// Another connection is kept. After how many exchanges it is struck, if it is.
    ///
    /// The first one is, and then one of each ten. With seed 0 it is the first of each ten, after
    /// its first exchange.
    pub(super) fn next(&mut self, seed: u64, key: &DestinationKey) -> Option<u64> {
        let (block, place) = (self.kept / EVERY, self.kept % EVERY);
        self.kept += 1;
        let (chosen, exchanges) = Turns::of_block(block, seed, key);
        (place == chosen).then_some(exchanges)
    }

    /// After how many exchanges a connection is struck where any can be the first.
    pub(super) fn first(seed: u64, key: &DestinationKey) -> u64 {
        Turns::of_block(0, seed, key).1
    }

    /// The connection of a block that is struck, and after how many exchanges.
    fn of_block(block: u64, seed: u64, key: &DestinationKey) -> (u64, u64) {
        if seed == 0 {
            return (0, 1);
        }
        let mut random = Rng::seeded(seed ^ hash(key) ^ block.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let (chosen, exchanges) = (random.below(EVERY), 1 + random.below(LATEST));
        // a program with few connections is struck too
        (if block == 0 { 0 } else { chosen }, exchanges)
    }
}

/// FNV-1a of the host: the same on all machines, and for all ports, which tests choose at random.
fn hash((host, _): &DestinationKey) -> u64 {
    host.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Whether a fault strikes an idle connection, not a request or a response.
pub(super) fn is_idle(fault: FaultRow) -> bool {
    use FaultMoment::{Idle, IdleTime, Kept};
    matches!(fault.moment, Idle | IdleTime | Kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn struck(seed: u64, host: &str) -> Vec<Option<u64>> {
        let mut turns = Turns::default();
        let key = (host.to_owned(), 80);
        (0..50).map(|_| turns.next(seed, &key)).collect()
    }

    #[test]
    fn the_first_kept_connection_is_struck_and_then_one_of_each_ten() {
        for seed in 0..20 {
            let turns = struck(seed, "a.example");
            assert!(turns[0].is_some(), "{seed}");
            for block in turns.chunks(10) {
                assert_eq!(block.iter().flatten().count(), 1, "{seed}: {block:?}");
            }
        }
        assert_eq!(struck(0, "a.example")[0], Some(1));
        assert_eq!(struck(0, "a.example")[10], Some(1));
    }

    #[test]
    fn a_seed_always_chooses_the_same_and_seeds_differ() {
        assert_eq!(struck(7, "a.example"), struck(7, "a.example"));
        assert_ne!(struck(7, "a.example"), struck(8, "a.example"));
        assert_ne!(struck(7, "a.example"), struck(7, "b.example"));
    }
}
