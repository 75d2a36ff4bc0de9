//! The order of variants in each round: random, balanced, and equal on all platforms for the same
//! seed.

use crate::Rng;

/// The order of `variants` (as indices) in each of `rounds` rounds.
///
/// Each variant is equally often in each position; after any number of rounds the counts differ by
/// at most 1. Rounds form Latin squares after Williams (1949). Within one square (two for an odd
/// number of variants) each variant follows each other variant equally often. So the aftereffects
/// of a variant, such as a warm cache or a full TIME_WAIT table, affect all variants equally.
/// Labels are drawn per set of squares, and the rounds of a square are shuffled.
pub fn balanced(variants: usize, rounds: usize, seed: u64) -> Vec<Vec<usize>> {
    if variants == 0 {
        return vec![Vec::new(); rounds];
    }
    let mut rng = Rng::seeded(seed);
    let mut labels: Vec<usize> = (0..variants).collect();
    let mut orders = Vec::with_capacity(rounds);
    let mut mirrored = false;
    while orders.len() < rounds {
        // the mirrored square completes the set, so it keeps the labels
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
