//! The interval of a quantile over rounds.
//!
//! Requests of one round share its weather, and a pause of a server delays many of them: they are
//! no independent samples. So the share of values above a level varies as its sums per round do,
//! and per pair of rounds where neighbours are alike. The interval has every level at which that
//! share is possible (a test at both ends, not only at the estimate). A level that too few rounds
//! exceed has no upper end.

use super::interval::CONFIDENCE;
use super::paired::MIN_ROUNDS;
use super::student::student_quantile;

/// Standard errors of a normal distribution on each side of a 95 % interval.
const NORMAL: f64 = 1.959_964;
/// The part of the share beyond a quantile that its reach may take, where a run is long enough.
const ROOM: f64 = 0.9;

/// The values of one round.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RoundValues {
    /// Values in ascending order, and the number of values up to and including each.
    up_to: Vec<(f64, u64)>,
    /// All of them, with those that are above all others.
    count: u64,
}

impl RoundValues {
    /// A round with these values in ascending order, each with its number, and `beyond` more that
    /// are larger than all others.
    pub fn new(values: impl IntoIterator<Item = (f64, u64)>, beyond: u64) -> RoundValues {
        let mut count = 0u64;
        let up_to = values.into_iter().map(|(value, times)| {
            count = count.saturating_add(times);
            (value, count)
        });
        let up_to: Vec<(f64, u64)> = up_to.collect();
        RoundValues {
            up_to,
            count: count.saturating_add(beyond),
        }
    }

    /// Values that `is_below` is false of.
    fn above(&self, is_below: impl Fn(f64) -> bool) -> u64 {
        let at = self.up_to.partition_point(|(value, _)| is_below(*value));
        let below = at.checked_sub(1).map_or(0, |last| self.up_to[last].1);
        self.count - below
    }
}

/// A quantile with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QuantileInterval {
    /// The quantile itself; absent where it is one of the values that are above all others.
    pub value: Option<f64>,
    /// The shares of all values at both ends of the interval; the upper one is 1 or more where
    /// the rounds show no upper end.
    pub shares: [f64; 2],
    /// The lower end.
    pub low: f64,
    /// The upper end; absent where there is none.
    pub high: Option<f64>,
    /// How many times the length of these rounds would show an upper end; 1 where they do.
    pub length_needed: f64,
}

/// The interval of the quantile `q` of all values; absent without a value, and with fewer than
/// [`MIN_ROUNDS`] rounds, which do not show how the rounds vary.
pub fn quantile_interval(rounds: &[RoundValues], q: f64) -> Option<QuantileInterval> {
    let all = Together::of(rounds).filter(|_| rounds.len() >= MIN_ROUNDS)?;
    let value = all.at(q);
    // where the estimate is beyond all values, the largest one is the best level that there is
    let level = value.or(all.at(all.known()))?;
    let reach = all.reach(level, q);
    let low = all.at(q - reach).map_or(reach, |end| all.reach(end, q));
    let low_share = q - reach.max(low);
    let upper = all.at(q + reach).map(|end| all.reach(end, q).max(reach));
    let high_reach = upper.unwrap_or(reach);
    let high_share = q + high_reach;
    let high = upper.and_then(|_| all.at(high_share));
    let room = ROOM * (1.0 - q);
    Some(QuantileInterval {
        value,
        shares: [low_share, high_share],
        low: all.at(low_share.max(0.0)).unwrap_or(0.0),
        high,
        length_needed: match high {
            Some(_) => 1.0,
            None => (high_reach / room).powi(2).max(1.0),
        },
    })
}

/// All rounds together.
struct Together<'a> {
    rounds: &'a [RoundValues],
    values: Vec<(f64, u64)>,
    count: f64,
}

impl<'a> Together<'a> {
    fn of(rounds: &'a [RoundValues]) -> Option<Together<'a>> {
        let mut values: Vec<(f64, u64)> = Vec::new();
        for round in rounds {
            let mut before = 0;
            for (value, up_to) in &round.up_to {
                values.push((*value, up_to - before));
                before = *up_to;
            }
        }
        values.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut sum = 0u64;
        for (_, count) in &mut values {
            sum = sum.saturating_add(*count);
            *count = sum;
        }
        let count: f64 = rounds.iter().map(|round| round.count as f64).sum();
        (sum > 0).then_some(Together {
            rounds,
            values,
            count,
        })
    }

    /// The share of the values that are known.
    fn known(&self) -> f64 {
        self.values.last().map_or(0.0, |last| last.1 as f64) / self.count
    }

    /// The value at this share by nearest rank; absent beyond the known ones.
    fn at(&self, share: f64) -> Option<f64> {
        // the share is a sum of rounded parts
        let rank = (share * self.count - 1e-6).ceil().max(1.0);
        let at = self
            .values
            .partition_point(|(_, up_to)| (*up_to as f64) < rank);
        self.values.get(at).map(|(value, _)| *value)
    }

    /// How far the share of values up to `level` can be from `q` by chance, if it is `q`. Of
    /// values that are alike, with and without them.
    fn reach(&self, level: f64, q: f64) -> f64 {
        let above = self.reach_of(q, |value| value <= level);
        above.max(self.reach_of(q, |value| value < level))
    }

    fn reach_of(&self, q: f64, is_below: impl Fn(f64) -> bool) -> f64 {
        let rounds = self.rounds.iter();
        let counts: Vec<(f64, f64)> = rounds
            .map(|round| (round.above(&is_below) as f64, round.count as f64))
            .collect();
        let above: f64 = counts.iter().map(|one| one.0).sum();
        let share = above / self.count;
        let binomial = NORMAL * (q * (1.0 - q) / self.count).sqrt();
        if share <= 0.0 || share >= 1.0 {
            return binomial;
        }
        let scale = (q * (1.0 - q) / (share * (1.0 - share))).sqrt();
        let of_batches = |size: usize| {
            let batches = counts.len() / size;
            if batches < MIN_ROUNDS {
                return 0.0;
            }
            let squares: f64 = (0..batches)
                .map(|nth| {
                    let end = match nth + 1 == batches {
                        true => counts.len(),
                        false => (nth + 1) * size,
                    };
                    let batch = counts[nth * size..end].iter();
                    batch.map(|one| one.0 - share * one.1).sum::<f64>().powi(2)
                })
                .sum();
            let batches = batches as f64;
            let error = (squares * batches / (batches - 1.0)).sqrt() / self.count;
            student_quantile(0.5 + CONFIDENCE / 2.0, batches - 1.0) * error
        };
        (of_batches(1).max(of_batches(2)) * scale).max(binomial)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use intact_experiment::Rng;

    /// Requests a second.
    const RATE: usize = 200;
    const ROUNDS: usize = 20;
    const SECONDS: usize = 60;
    const RUNS: usize = 100;

    fn normal(rng: &mut Rng) -> f64 {
        let (a, b) = (rng.unit().max(1e-300), rng.unit());
        (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()
    }

    fn lognormal(rng: &mut Rng, median: f64, sd: f64) -> f64 {
        median * (sd * normal(rng)).exp()
    }

    fn exponential(rng: &mut Rng, mean: f64) -> f64 {
        -mean * rng.unit().max(1e-300).ln()
    }

    type Latencies = fn(&mut Rng, usize) -> Vec<f64>;

    fn independent(rng: &mut Rng, count: usize) -> Vec<f64> {
        (0..count).map(|_| lognormal(rng, 1.0, 0.7)).collect()
    }

    /// Each depends on the one before; they are alike for 50 requests.
    fn correlated(rng: &mut Rng, count: usize) -> Vec<f64> {
        let mut level = normal(rng);
        let next = |_| {
            level = 0.98 * level + (1.0 - 0.98f64 * 0.98).sqrt() * normal(rng);
            (0.7 * level).exp()
        };
        (0..count).map(next).collect()
    }

    /// Pauses of this length at random times, `every` seconds on average: a request waits for the
    /// end of its pause.
    fn paused(rng: &mut Rng, count: usize, every: f64, length: f64) -> Vec<f64> {
        let mut all: Vec<f64> = (0..count).map(|_| lognormal(rng, 0.2, 0.7)).collect();
        let mut begin = exponential(rng, every - length);
        while begin < count as f64 / RATE as f64 {
            let end = begin + length;
            let first = (begin * RATE as f64).ceil() as usize;
            let last = ((end * RATE as f64).ceil() as usize).min(count);
            for (nth, one) in all.iter_mut().enumerate().take(last).skip(first) {
                *one = one.max((end - nth as f64 / RATE as f64) * 1e3);
            }
            begin = end + exponential(rng, every - length);
        }
        all
    }

    fn two_modes(rng: &mut Rng, count: usize) -> Vec<f64> {
        let mut next = || match rng.unit() < 0.1 {
            true => lognormal(rng, 20.0, 0.2),
            false => lognormal(rng, 1.0, 0.2),
        };
        (0..count).map(|_| next()).collect()
    }

    /// Slow for 0.1 s at a time, 10 % of the run.
    fn regimes(rng: &mut Rng, count: usize) -> Vec<f64> {
        let mut all = Vec::with_capacity(count);
        let mut is_slow = rng.unit() < 0.1;
        while all.len() < count {
            let (length, median) = if is_slow { (0.1, 20.0) } else { (0.9, 1.0) };
            let length = (exponential(rng, length) * RATE as f64).max(1.0) as usize;
            for _ in 0..length.min(count - all.len()) {
                all.push(lognormal(rng, median, 0.2));
            }
            is_slow = !is_slow;
        }
        all
    }

    /// Each round has a level of its own.
    fn weather(rng: &mut Rng, count: usize) -> Vec<f64> {
        let round = SECONDS * RATE / ROUNDS;
        let mut level = 1.0;
        let next = |nth: usize| {
            if nth.is_multiple_of(round) {
                level = lognormal(rng, 1.0, 0.3);
            }
            lognormal(rng, level, 0.7)
        };
        (0..count).map(next).collect()
    }

    /// The latency doubles over a run.
    fn drifting(rng: &mut Rng, count: usize) -> Vec<f64> {
        let run = SECONDS * RATE;
        let level = |nth: usize| 2f64.powf((nth % run) as f64 / run as f64);
        (0..count)
            .map(|nth| lognormal(rng, level(nth), 0.7))
            .collect()
    }

    fn in_rounds(all: &[f64]) -> Vec<RoundValues> {
        let rounds = all.chunks(all.len() / ROUNDS);
        let rounds = rounds.map(|round| {
            let mut round = round.to_vec();
            round.sort_by(f64::total_cmp);
            RoundValues::new(round.into_iter().map(|one| (one, 1)), 0)
        });
        rounds.collect()
    }

    const QUANTILES: [f64; 3] = [0.5, 0.9, 0.99];

    /// How often of `runs` runs, as a share, the interval holds the quantile of a run without an
    /// end.
    fn coverage(latencies: Latencies, runs: u32, rng: &mut Rng) -> [f64; 3] {
        let mut long = latencies(rng, 30 * SECONDS * RATE);
        long.sort_by(f64::total_cmp);
        let mut covered = [0u32; 3];
        for _ in 0..runs {
            let run = in_rounds(&latencies(rng, SECONDS * RATE));
            for (covered, q) in covered.iter_mut().zip(QUANTILES) {
                let truth = long[(q * long.len() as f64) as usize];
                let one = quantile_interval(&run, q).unwrap();
                let is_below_high = one.high.is_none_or(|high| truth <= high);
                *covered += u32::from(one.low <= truth && is_below_high);
            }
        }
        covered.map(|count| f64::from(count) / f64::from(runs))
    }

    /// Requests that are alike for these reasons.
    fn processes() -> [(&'static str, Latencies); 7] {
        [
            ("independent", independent),
            ("correlated", correlated),
            ("pauses", |rng, count| paused(rng, count, 1.0, 0.05)),
            ("rare pauses", |rng, count| paused(rng, count, 3.0, 0.3)),
            ("two modes", two_modes),
            ("regimes", regimes),
            ("weather", weather),
        ]
    }

    /// Each coverage of `runs` runs is `least` or more.
    fn check_coverage(runs: u32, least: f64) {
        let mut rng = Rng::seeded(49);
        let mut sum = 0.0;
        for (name, latencies) in processes() {
            let covered = coverage(latencies, runs, &mut rng);
            assert!(
                covered.iter().all(|one| *one >= least),
                "{name}: {covered:?}"
            );
            sum += covered.iter().sum::<f64>();
        }
        let mean = sum / (processes().len() * QUANTILES.len()) as f64;
        assert!((0.94..=0.98).contains(&mean), "{mean}");
        // a drift is no chance: its intervals are wider than they must be
        let drifting = coverage(drifting, runs / 2, &mut rng);
        assert!(drifting.iter().all(|one| *one >= least), "{drifting:?}");
    }

    #[test]
    fn the_interval_covers_the_quantile_whatever_makes_requests_alike() {
        // 93 % without two standard errors
        check_coverage(60, 0.865);
    }

    #[test]
    #[ignore = "takes minutes: cargo test -p intact-statistics --release -- --ignored"]
    fn the_interval_covers_the_quantile_in_a_thousand_runs_of_each_kind() {
        check_coverage(1_000, 0.93);
    }

    #[test]
    fn requests_as_independent_samples_would_cover_a_third_of_what_they_promise() {
        let mut rng = Rng::seeded(7);
        let mut long = correlated(&mut rng, 60 * SECONDS * RATE);
        long.sort_by(f64::total_cmp);
        let truth = long[long.len() / 2];
        let covered = (0..RUNS).filter(|_| {
            let mut run = correlated(&mut rng, SECONDS * RATE);
            run.sort_by(f64::total_cmp);
            let n = run.len() as f64;
            let reach = NORMAL * (0.25 / n).sqrt();
            let end = |share: f64| run[(share * n) as usize];
            end(0.5 - reach) <= truth && truth <= end(0.5 + reach)
        });
        assert!(covered.count() < RUNS / 2);
    }

    #[test]
    fn few_pauses_give_no_upper_end_and_say_how_much_longer_to_measure() {
        let fast = |count| vec![0.1; count];
        // one pause: 40 of 12,000 requests, all in one round
        let mut run = fast(SECONDS * RATE);
        run[1_000..1_040].fill(500.0);
        let p99 = quantile_interval(&in_rounds(&run), 0.999).unwrap();
        assert_eq!((p99.value, p99.high), (Some(500.0), None));
        assert_eq!(p99.low, 0.1);
        assert!((5.0..40.0).contains(&p99.length_needed), "{p99:?}");
        // as many, in every round
        for round in 0..ROUNDS {
            run[round * 600..round * 600 + 40].fill(500.0);
        }
        let p99 = quantile_interval(&in_rounds(&run), 0.99).unwrap();
        assert_eq!((p99.low, p99.high), (500.0, Some(500.0)));
        assert!((p99.length_needed - 1.0).abs() < 1e-9);
    }

    #[test]
    fn the_quantile_at_the_edge_of_a_pause_has_both_sides() {
        // 91.7 % are fast; the pauses are in 5 of 20 rounds
        let mut run = vec![0.1; SECONDS * RATE];
        for round in [1, 5, 9, 13, 17] {
            run[round * 600..round * 600 + 200].fill(800.0);
        }
        let p90 = quantile_interval(&in_rounds(&run), 0.9).unwrap();
        assert_eq!(
            (p90.value, p90.low, p90.high),
            (Some(0.1), 0.1, Some(800.0))
        );
    }

    #[test]
    fn values_above_all_others_have_no_number() {
        let round = || RoundValues::new([(1.0, 80), (2.0, 10)], 10);
        let rounds: Vec<RoundValues> = (0..20).map(|_| round()).collect();
        let p95 = quantile_interval(&rounds, 0.95).unwrap();
        assert_eq!((p95.value, p95.high), (None, None));
        assert_eq!(quantile_interval(&rounds, 0.5).unwrap().value, Some(1.0));
        assert_eq!(quantile_interval(&rounds[..7], 0.5), None);
        assert_eq!(
            quantile_interval(&vec![RoundValues::default(); 9], 0.5),
            None
        );
    }
}
