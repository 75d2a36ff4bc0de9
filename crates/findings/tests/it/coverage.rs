//! Does a 95 % interval cover the truth 95 times in 100? Simulated experiments of 20 rounds with
//! everything that real latencies have: heavy tails, drift, memory within and across rounds, in the
//! order that `bench` runs.
//!
//! The figures are printed (`cargo test -p intact-findings coverage -- --nocapture`); 93-97 % is
//! the promise.

use intact_experiment::{Rng, order::balanced};
use intact_statistics::{
    PairedDifference, adjust, paired_difference, paired_share_saved, student_quantile,
    typical_difference, typical_share_saved,
};

const EXPERIMENTS: u64 = 4_000;
const ROUNDS: usize = 20;

/// What the latencies of an experiment are like; `log` values are on the logarithm, so 0.1 is about
/// 10 %.
#[derive(Clone, Copy)]
struct Weather {
    /// Exchanges of a variant in one round.
    exchanges: usize,
    /// Standard deviation of the logarithm of one exchange.
    log_sd: [f64; 2],
    /// Memory from exchange to exchange, 0 to 1.
    within: f64,
    /// Standard deviation of the state that the machine is in, and its memory from slot to slot.
    machine: (f64, f64),
    /// How much slower the last slot is than the first.
    log_drift: f64,
    /// Share of the exchanges that take a hundred times as long.
    outliers: f64,
}

const CALM: Weather = Weather {
    exchanges: 50,
    log_sd: [1.0, 1.0],
    within: 0.0,
    machine: (0.0, 0.0),
    log_drift: 0.0,
    outliers: 0.0,
};

/// Mean latencies of the two variants; the second saves this share of the first.
const MEANS: [f64; 2] = [92.0, 31.0];

/// Draws from a table that are as good as standard normal: inverting the CDF for each would take
/// most of the test's time.
struct Normal(Vec<f64>);

impl Normal {
    fn new() -> Self {
        Self(
            (0..1 << 14)
                .map(|i| student_quantile((f64::from(i) + 0.5) / f64::from(1 << 14), 1e3))
                .collect(),
        )
    }

    fn draw(&self, rng: &mut Rng) -> f64 {
        self.0[rng.below(self.0.len() as u64) as usize]
    }
}

/// One experiment: per variant and round, the exchanges' latencies, whose long-run mean is the
/// variant's own.
fn experiment(weather: Weather, means: [f64; 2], normal: &Normal, seed: u64) -> [Vec<Vec<f64>>; 2] {
    let mut rng = Rng::seeded(seed);
    let (machine_sd, machine_memory) = weather.machine;
    let mut machine = normal.draw(&mut rng);
    let mut slot = 0.0;
    let mut seen = [Vec::new(), Vec::new()];
    for order in balanced(2, ROUNDS, seed) {
        for variant in order {
            machine = machine_memory.mul_add(
                machine,
                (1.0 - machine_memory.powi(2)).sqrt() * normal.draw(&mut rng),
            );
            let level = machine_sd * machine + weather.log_drift * slot / (2 * ROUNDS) as f64;
            let mut state = normal.draw(&mut rng);
            let log_sd = weather.log_sd[variant];
            seen[variant].push(
                (0..weather.exchanges)
                    .map(|_| {
                        state = weather.within.mul_add(
                            state,
                            (1.0 - weather.within.powi(2)).sqrt() * normal.draw(&mut rng),
                        );
                        let outlier = if rng.unit() < weather.outliers {
                            100.0
                        } else {
                            1.0
                        };
                        outlier
                            * means[variant]
                            * (level + log_sd * state - 0.5 * log_sd * log_sd).exp()
                    })
                    .collect(),
            );
            slot += 1.0;
        }
    }
    seen
}

/// The typical latency of each round, as a bench computes it where all requests are of one kind:
/// the median.
fn typical(rounds: &[Vec<f64>]) -> Vec<f64> {
    let median = |round: &Vec<f64>| {
        let mut sorted = round.clone();
        sorted.sort_by(f64::total_cmp);
        let upper = sorted.len() / 2;
        (sorted[(sorted.len() - 1) / 2] + sorted[upper]) / 2.0
    };
    rounds.iter().map(median).collect()
}

fn round_means(rounds: &[Vec<f64>]) -> Vec<f64> {
    rounds
        .iter()
        .map(|round| round.iter().sum::<f64>() / round.len() as f64)
        .collect()
}

/// Share of experiments whose interval covers the truth.
#[expect(
    clippy::print_stdout,
    reason = "the figures are what a reader of this test wants to see"
)]
fn covered(name: &str, experiments: u64, covers: impl Fn(u64) -> bool) -> f64 {
    let share = (0..experiments).filter(|&seed| covers(seed)).count() as f64 / experiments as f64;
    println!("{name}: {:.1} % of {experiments}", 100.0 * share);
    share
}

fn assert_promise(name: &str, share: f64) {
    assert!(
        (0.93..=0.97).contains(&share),
        "{name}: {:.1} %",
        100.0 * share
    );
}

/// One number for each round.
type Statistic = fn(&[Vec<f64>]) -> Vec<f64>;

/// The share saved and an A/A difference by the typical latency, in one kind of weather.
fn assert_covers(name: &str, weather: Weather) {
    assert_covers_by("typical", typical, name, weather);
}

/// The difference of two, and the share, as a bench compares them: the typical latency without the
/// rounds at either end, any other by all of them.
fn compared(statistic: &str, a: &[f64], b: &[f64]) -> [PairedDifference; 2] {
    let both = match statistic {
        "typical" => [typical_difference(a, b), typical_share_saved(a, b)],
        _ => [paired_difference(a, b), paired_share_saved(a, b)],
    };
    both.map(Result::unwrap)
}

fn assert_covers_by(statistic: &str, of: Statistic, name: &str, weather: Weather) {
    let normal = Normal::new();
    let truth = 1.0 - MEANS[1] / MEANS[0];
    let share = covered(
        &format!("{name}, {statistic}, share saved"),
        EXPERIMENTS,
        |seed| {
            let [a, b] = experiment(weather, MEANS, &normal, seed).map(|rounds| of(&rounds));
            let [_, share] = compared(statistic, &a, &b);
            share.interval().covers(truth)
        },
    );
    let same = covered(
        &format!("{name}, {statistic}, A/A difference"),
        EXPERIMENTS,
        |seed| {
            let [a, b] = experiment(weather, [50.0, 50.0], &normal, seed).map(|rounds| of(&rounds));
            let [difference, _] = compared(statistic, &a, &b);
            difference.interval().covers(0.0)
        },
    );
    assert_promise(name, share);
    assert_promise(name, same);
}

/// A fifth of the requests on new connections, three times as long: the medians of both kinds,
/// weighted by their numbers.
#[test]
fn coverage_holds_where_new_and_reused_requests_mix() {
    let normal = Normal::new();
    let mixed = |means: [f64; 2], seed: u64| {
        let of = |exchanges, factor: f64, seed| {
            let weather = Weather {
                exchanges,
                machine: (0.2, 0.7),
                ..CALM
            };
            experiment(weather, means.map(|mean| mean * factor), &normal, seed)
        };
        let (reused, fresh) = (of(40, 1.0, seed), of(10, 3.0, seed + EXPERIMENTS));
        let both = |variant: usize| -> Vec<f64> {
            let rounds = typical(&reused[variant])
                .into_iter()
                .zip(typical(&fresh[variant]));
            rounds
                .map(|(reused, fresh)| 0.8 * reused + 0.2 * fresh)
                .collect()
        };
        [both(0), both(1)]
    };
    let truth = 1.0 - MEANS[1] / MEANS[0];
    let share = covered("new and reused, share saved", EXPERIMENTS, |seed| {
        let [a, b] = mixed(MEANS, seed);
        let [_, share] = compared("typical", &a, &b);
        share.interval().covers(truth)
    });
    assert_promise("new and reused", share);
}

#[test]
fn coverage_holds_for_means_too() {
    assert_covers_by("mean", round_means, "log sd 1", CALM);
    let everything = Weather {
        within: 0.5,
        machine: (0.3, 0.7),
        log_drift: 0.3,
        ..CALM
    };
    assert_covers_by("mean", round_means, "everything", everything);
}

#[test]
fn coverage_holds_in_short_rounds() {
    let short = Weather {
        exchanges: 5,
        ..CALM
    };
    assert_covers_by("typical", typical, "5 exchanges", short);
}

/// One request in 200 that takes a hundred times as long: the typical latency still shows a
/// difference of a quarter, the mean does not.
#[test]
fn outliers_hide_no_difference_from_the_typical_latency() {
    let weather = Weather {
        exchanges: 5,
        log_sd: [0.2, 0.2],
        outliers: 0.005,
        ..CALM
    };
    assert_covers_by("typical", typical, "one in 200 a hundredfold", weather);
    let normal = Normal::new();
    let shown = |name: &str, of: Statistic| {
        covered(
            &format!("a quarter less, shown by the {name}"),
            1_000,
            |seed| {
                let [a, b] =
                    experiment(weather, [90.0, 67.5], &normal, seed).map(|rounds| of(&rounds));
                let compared = paired_difference(&a, &b).unwrap();
                compared.interval().low > 0.0
            },
        )
    };
    let (typical, mean) = (shown("typical", typical), shown("mean", round_means));
    assert!(typical > 0.99 && mean < 0.6, "{typical} {mean}");
}

/// A round of one variant in which the machine was busy, ten times as long: the typical latency
/// still shows a difference of a fifth, and promises no more than it holds.
#[test]
fn one_slow_round_hides_no_difference_and_makes_none() {
    let normal = Normal::new();
    let weather = Weather {
        log_sd: [0.5, 0.5],
        machine: (0.05, 0.5),
        ..CALM
    };
    let slow = |means: [f64; 2], seed: u64| {
        let [mut a, b] = experiment(weather, means, &normal, seed).map(|rounds| typical(&rounds));
        a[(seed % ROUNDS as u64) as usize] *= 10.0;
        [a, b]
    };
    let same = covered("one slow round, A/A difference", EXPERIMENTS, |seed| {
        let [a, b] = slow([50.0, 50.0], seed);
        let [difference, _] = compared("typical", &a, &b);
        difference.interval().covers(0.0)
    });
    let shown = |statistic: &str| {
        covered(
            &format!("one slow round, {statistic}, a fifth less"),
            1_000,
            |seed| {
                let [b, a] = slow([40.0, 50.0], seed);
                let [difference, _] = compared(statistic, &a, &b);
                difference.interval().low > 0.0
            },
        )
    };
    let (typical, mean) = (shown("typical"), shown("mean"));
    assert!(same > 0.90, "{same}");
    assert!(typical > 0.95 && mean < 0.2, "{typical} {mean}");
}

#[test]
fn coverage_holds_under_heavy_tails() {
    assert_covers("log sd 1", CALM);
    assert_covers(
        "log sd 1.5",
        Weather {
            log_sd: [1.5, 1.5],
            ..CALM
        },
    );
}

#[test]
fn coverage_holds_under_drift() {
    assert_covers(
        "a fifth slower at the end",
        Weather {
            log_drift: 0.2,
            ..CALM
        },
    );
    assert_covers(
        "twice as slow at the end",
        Weather {
            log_drift: 0.7,
            ..CALM
        },
    );
}

#[test]
fn coverage_holds_under_memory_within_rounds() {
    assert_covers(
        "AR(1) 0.8 within rounds",
        Weather {
            within: 0.8,
            ..CALM
        },
    );
}

#[test]
fn coverage_holds_under_memory_over_rounds() {
    assert_covers(
        "AR(1) 0.9 over slots",
        Weather {
            machine: (0.3, 0.9),
            ..CALM
        },
    );
    assert_covers(
        "everything",
        Weather {
            within: 0.5,
            machine: (0.3, 0.7),
            log_drift: 0.3,
            ..CALM
        },
    );
}

#[test]
fn coverage_of_a_real_difference_holds_when_the_variants_differ_in_shape() {
    let normal = Normal::new();
    let weather = Weather {
        log_sd: [0.5, 1.2],
        ..CALM
    };
    let share = covered("log sd 0.5 against 1.2, difference", EXPERIMENTS, |seed| {
        let [a, b] = experiment(weather, MEANS, &normal, seed).map(|rounds| round_means(&rounds));
        paired_difference(&a, &b)
            .unwrap()
            .interval()
            .covers(MEANS[0] - MEANS[1])
    });
    assert_promise("difference", share);
}

#[test]
fn coverage_of_a_percentile_difference_holds() {
    let normal = Normal::new();
    let weather = Weather {
        exchanges: 100,
        within: 0.5,
        machine: (0.2, 0.7),
        ..CALM
    };
    let p90 = |rounds: Vec<Vec<f64>>| -> Vec<f64> {
        rounds
            .into_iter()
            .map(|mut round| {
                round.sort_by(f64::total_cmp);
                round[89]
            })
            .collect()
    };
    let share = covered("p90 of 100, A/A difference", EXPERIMENTS, |seed| {
        let [a, b] = experiment(weather, [50.0, 50.0], &normal, seed).map(p90);
        paired_difference(&a, &b).unwrap().interval().covers(0.0)
    });
    assert_promise("p90", share);
}

#[test]
fn twelve_adjusted_intervals_hold_all_their_truths_together() {
    let normal = Normal::new();
    let weather = Weather {
        exchanges: 10,
        ..CALM
    };
    let share = covered("twelve at once", 1_000, |seed| {
        let comparisons: Vec<_> = (0..12)
            .map(|i| {
                let [a, b] = experiment(weather, MEANS, &normal, seed * 12 + i)
                    .map(|rounds| round_means(&rounds));
                paired_share_saved(&a, &b).unwrap()
            })
            .collect();
        adjust(&comparisons)
            .iter()
            .all(|one| one.interval.covers(1.0 - MEANS[1] / MEANS[0]))
    });
    assert_promise("twelve at once", share);
}

/// Shows that the weather above bites: what many tools do covers far less in it.
#[test]
fn exchanges_as_the_unit_cover_far_less() {
    let normal = Normal::new();
    let weather = Weather {
        within: 0.8,
        machine: (0.3, 0.9),
        ..CALM
    };
    let share = covered("exchanges as the unit", 1_000, |seed| {
        let [a, b] = experiment(weather, [50.0, 50.0], &normal, seed).map(|rounds| rounds.concat());
        paired_difference(&a, &b).unwrap().interval().covers(0.0)
    });
    assert!(share < 0.7, "{share}");
}

/// Shapes that differ much bias the share in short rounds only a little: the mean of ten skewed
/// values varies more than a t interval expects.
#[test]
fn a_share_of_unlike_shapes_is_covered_in_long_rounds_and_nearly_in_short_ones() {
    let normal = Normal::new();
    let unlike = |exchanges| Weather {
        exchanges,
        log_sd: [0.3, 1.2],
        ..CALM
    };
    let share = |exchanges| {
        covered(
            &format!("log sd 0.3 against 1.2, share, {exchanges} exchanges"),
            1_000,
            |seed| {
                let [a, b] = experiment(unlike(exchanges), MEANS, &normal, seed)
                    .map(|rounds| round_means(&rounds));
                paired_share_saved(&a, &b)
                    .unwrap()
                    .interval()
                    .covers(1.0 - MEANS[1] / MEANS[0])
            },
        )
    };
    let (short, long) = (share(10), share(200));
    assert!(short > 0.90 && long > 0.93, "{short} {long}");
}

/// A known limit: a drift far above the noise is cancelled by the order, but widens the intervals.
#[test]
fn a_drift_far_above_the_noise_makes_intervals_too_wide_and_never_too_narrow() {
    let normal = Normal::new();
    let weather = Weather {
        log_sd: [0.02, 0.02],
        log_drift: 2.0,
        ..CALM
    };
    let share = covered(
        "seven times as slow at the end, hardly any noise",
        1_000,
        |seed| {
            let [a, b] =
                experiment(weather, [50.0, 50.0], &normal, seed).map(|rounds| round_means(&rounds));
            paired_share_saved(&a, &b).unwrap().interval().covers(0.0)
        },
    );
    assert!(share > 0.97, "{share}");
}
