//! In which order the variants of an experiment run, round after round: random, balanced, and the same
//! on every platform for the same seed.
//!
//! Here and not beside the statistics, because `bench` makes orders and must not see `findings`.
//! Must not draw a seed of its own: the caller hands one in and records it in the run.

/// A small random generator: xoshiro256++ (Blackman and Vigna 2019), seeded by SplitMix64.
///
/// Integers only are drawn from it, so a seed gives the same sequence everywhere. Not for secrets.
#[derive(Debug, Clone)]
pub struct Rng([u64; 4]);

impl Rng {
    /// A generator whose whole sequence is fixed by `seed`.
    pub fn seeded(seed: u64) -> Self {
        let mut state = seed;
        Self([(); 4].map(|()| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        }))
    }

    /// The next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.0;
        let out = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        out
    }

    /// A number in `0..bound`, each equally likely (Lemire 2019, with rejection); 0 when `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        let rejected_under = bound.wrapping_neg().checked_rem(bound).unwrap_or(0);
        loop {
            let product = u128::from(self.next_u64()) * u128::from(bound);
            if product as u64 >= rejected_under {
                return (product >> 64) as u64;
            }
        }
    }

    /// A number in `[0, 1)`, a multiple of 2^-53.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Puts `items` into random order, each order equally likely (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

/// The order of `variants` (as indices) in each of `rounds` rounds.
///
/// After any number of rounds no variant has been in a position more than once oftener than another.
/// Rounds come in Latin squares after Williams (1949): inside a whole square of an even number of variants,
/// or two squares of an odd one, each variant also follows each other one equally often, so that what a
/// variant leaves behind (a warm cache, a full TIME_WAIT table) falls on all alike. Labels are drawn anew
/// for each such set, and the order of the rounds in a square is random.
pub fn balanced(variants: usize, rounds: usize, seed: u64) -> Vec<Vec<usize>> {
    if variants == 0 {
        return vec![Vec::new(); rounds];
    }
    let mut rng = Rng::seeded(seed);
    let mut labels: Vec<usize> = (0..variants).collect();
    let mut orders = Vec::with_capacity(rounds);
    let mut mirrored = false;
    while orders.len() < rounds {
        // the mirror image completes the set that its square began, so it keeps the labels
        if !mirrored {
            rng.shuffle(&mut labels);
        }
        let mut shifts: Vec<usize> = (0..variants).collect();
        rng.shuffle(&mut shifts);
        for shift in shifts.into_iter().take(rounds - orders.len()) {
            let mut order: Vec<usize> = (0..variants)
                .map(|position| labels[(zigzag(position, variants) + shift) % variants])
                .collect();
            if mirrored {
                order.reverse();
            }
            orders.push(order);
        }
        mirrored = variants % 2 == 1 && !mirrored;
    }
    orders
}

/// Williams's first row: 0, 1, k-1, 2, k-2, ..., whose neighbouring differences are all different.
fn zigzag(position: usize, variants: usize) -> usize {
    if position % 2 == 1 {
        position.div_ceil(2)
    } else {
        (variants - position / 2) % variants
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_of_a_seed_never_changes() {
        // SplitMix64's first output for seed 0 is published with its reference code
        assert_eq!(Rng::seeded(0).0[0], 0xe220_a839_7b1d_cdaf);
        // the first outputs of xoshiro256++ from state 1, 2, 3, 4, as other implementations test them
        let mut rng = Rng([1, 2, 3, 4]);
        let drawn: Vec<u64> = (0..4).map(|_| rng.next_u64()).collect();
        assert_eq!(
            drawn,
            [
                41_943_041,
                58_720_359,
                3_588_806_011_781_223,
                3_591_011_842_654_386
            ]
        );
    }

    #[test]
    fn a_bound_is_never_reached_and_every_number_below_it_is() {
        let mut rng = Rng::seeded(7);
        let mut seen = [0_u32; 6];
        for _ in 0..6_000 {
            seen[rng.below(6) as usize] += 1;
        }
        assert!(
            seen.iter().all(|&times| (850..1_150).contains(&times)),
            "{seen:?}"
        );
        assert_eq!(rng.below(0), 0);
    }

    #[test]
    fn every_round_runs_every_variant_once() {
        for variants in 0..9 {
            for order in balanced(variants, 20, 3) {
                let mut sorted = order.clone();
                sorted.sort_unstable();
                assert_eq!(sorted, (0..variants).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn after_any_number_of_rounds_positions_are_shared_to_within_one() {
        for variants in 1..9 {
            let orders = balanced(variants, 20, 11);
            let mut at = vec![vec![0_usize; variants]; variants];
            for order in &orders {
                for (position, &variant) in order.iter().enumerate() {
                    at[position][variant] += 1;
                }
                for counts in &at {
                    let most = counts.iter().max().copied().unwrap_or(0);
                    let least = counts.iter().min().copied().unwrap_or(0);
                    assert!(most - least <= 1, "{variants} variants: {counts:?}");
                }
            }
        }
    }

    #[test]
    fn in_a_whole_set_each_variant_follows_each_other_equally_often() {
        for variants in 2..9 {
            let set = if variants % 2 == 0 {
                variants
            } else {
                2 * variants
            };
            let mut follows = vec![vec![0_usize; variants]; variants];
            for order in balanced(variants, set, 5) {
                for pair in order.windows(2) {
                    follows[pair[0]][pair[1]] += 1;
                }
            }
            for (first, row) in follows.iter().enumerate() {
                for (second, &times) in row.iter().enumerate() {
                    let expected = if first == second { 0 } else { set / variants };
                    assert_eq!(
                        times, expected,
                        "{variants} variants, {second} after {first}"
                    );
                }
            }
        }
    }

    #[test]
    fn another_seed_gives_another_order() {
        assert_eq!(balanced(4, 20, 1), balanced(4, 20, 1));
        assert_ne!(balanced(4, 20, 1), balanced(4, 20, 2));
    }
}
