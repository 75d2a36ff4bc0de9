//! Runs with and without a lasting change, by seed.

use super::*;
use crate::TrafficAnalysis;
use intact_experiment::Rng;
use intact_ledger::{Event, Evidence, Exchange, Nanos, Reuse, Sink, Vantage};
use intact_statistics::student_quantile;

const MS: f64 = 1e6;
const SECOND: u64 = 1_000_000_000;
const HOUR: u64 = 3_600 * SECOND;

fn run(producer: Producer) -> Run {
    let started = "2026-02-20T00:00:00Z".parse().unwrap();
    Run::new(producer, "0", Vantage::Client, started, 1, &[]).with_evidence(Evidence::ALL)
}

fn shift(producer: Producer, needed: u64, all: &[(u64, f64, bool)]) -> Option<LevelShift> {
    shifts(producer, needed, all).into_iter().next()
}

/// Requests by their end, latency in milliseconds, and whether they reused a connection.
fn shifts(producer: Producer, needed: u64, all: &[(u64, f64, bool)]) -> Vec<LevelShift> {
    let mut batches = Batches::default();
    for (end, latency, is_reused) in all {
        let mut one = Exchange::new(1, Nanos(end.saturating_sub((latency * MS) as u64)));
        one.end = Nanos(*end);
        one.reuse = Some(if *is_reused {
            Reuse::Reused
        } else {
            Reuse::Fresh
        });
        batches.exchange(&one);
    }
    LevelShift::find(&batches, &run(producer), needed)
}

fn noise(rng: &mut Rng, sd: f64) -> f64 {
    (sd * student_quantile(rng.unit().max(1e-12), 1e3)).exp()
}

/// Three weeks of a function with two calls per invocation: without keep-alive to the given
/// invocation, then with it.
fn weeks(rng: &mut Rng, until: u64) -> Vec<(u64, f64, bool)> {
    let mut all = Vec::new();
    for nth in 0..1_000u64 {
        let at = 100 * SECOND + nth * HOUR / 2 + (rng.unit() * 600.0) as u64 * SECOND;
        // the days are slower than the nights
        let load = 1.0 + 0.2 * (nth as f64 / 48.0 * std::f64::consts::TAU).sin();
        for call in 0..2 {
            let is_reused = nth >= until && (call == 1 || rng.unit() < 0.94);
            let latency = if is_reused { 480.0 } else { 890.0 };
            all.push((
                at + call * SECOND,
                latency * load * noise(rng, 0.3),
                is_reused,
            ));
        }
    }
    all
}

#[test]
fn keep_alive_after_eleven_days_of_two_calls_per_invocation_is_found_at_its_date() {
    let mut rng = Rng::seeded(1);
    let shift = shift(Producer::Audit, 1, &weeks(&mut rng, 556)).unwrap();
    assert_eq!(shift.shifted, Shifted::Reuse);
    assert!(shift.at.starts_with("2026-03-03T14:"), "{}", shift.at);
    assert!(shift.within_s <= 4.0 * 3_600.0, "{}", shift.within_s);
    let difference = shift.difference_ms.unwrap();
    // 3 % of the later requests are fresh, and the mean of the noise is 1.046
    assert!(difference.covers(-416.0), "{difference:?}");
    assert!(difference.high - difference.low < 150.0, "{difference:?}");
    let words = shift.sentence();
    assert!(words.starts_with("Since 3 March 2026 14:"), "{words}");
    assert!(words.contains("reuse 0 % -> 9"), "{words}");
}

#[test]
fn without_a_change_weeks_are_not_called_changed() {
    let mut rng = Rng::seeded(2);
    let called = (0..150)
        .filter(|_| shift(Producer::Audit, 1, &weeks(&mut rng, 1_000)).is_some())
        .count();
    assert!(called <= 3, "{called} of 150");
}

#[test]
fn the_load_of_a_machine_is_rarely_called_a_change() {
    let mut rng = Rng::seeded(3);
    let mut all = |count: u64| {
        let mut load = 0.0;
        let each = (0..count).map(|nth| {
            // the load depends on that of the request before, and comes in bursts
            load = 0.98 * load + if rng.unit() < 0.01 { 1.0 } else { 0.0 };
            (
                SECOND + nth * SECOND / 50,
                5.0 * (1.0 + load) * noise(&mut rng, 0.4),
                nth > 3,
            )
        });
        each.collect::<Vec<_>>()
    };
    let called = (0..150)
        .filter(|_| shift(Producer::Audit, 4, &all(2_000)).is_some())
        .count();
    assert!(called <= 6, "{called} of 150: more than 4 %");
}

#[test]
fn in_a_watched_program_only_reuse_is_a_change() {
    let slower = |nth: u64| {
        (
            nth * SECOND / 10,
            if nth < 500 { 5.0 } else { 50.0 },
            nth > 0,
        )
    };
    let all: Vec<_> = (1..1_000).map(slower).collect();
    let found = shift(Producer::Audit, 1, &all).unwrap();
    assert_eq!(found.shifted, Shifted::Latency);
    assert!(
        found.words().contains("reuse did not change"),
        "{}",
        found.words()
    );
    assert_eq!(shift(Producer::Watch, 1, &all), None);
    let kept = |nth: u64| (nth * SECOND / 10, 5.0, nth > 500);
    let all: Vec<_> = (1..1_000).map(kept).collect();
    assert_eq!(
        shift(Producer::Watch, 1, &all).unwrap().shifted,
        Shifted::Reuse
    );
}

#[test]
fn the_change_is_the_headline_of_an_audit_and_the_second_sentence_of_a_watched_program() {
    for (producer, place) in [(Producer::Audit, 0), (Producer::Watch, 1)] {
        let mut analysis = TrafficAnalysis::new(&run(producer));
        for nth in 1..1_000u64 {
            let mut one = Exchange::new(nth, Nanos(nth * SECOND));
            one.end = Nanos(nth * SECOND + 5_000_000);
            one.reuse = Some(if nth < 500 {
                Reuse::Fresh
            } else {
                Reuse::Reused
            });
            analysis.record(Event::Exchange(&one));
        }
        let verdict = analysis.facts().verdict;
        let since = verdict
            .iter()
            .position(|one| one.statement.starts_with("Since 20 February 2026"));
        assert_eq!(since, Some(place), "{verdict:?}");
    }
}

#[test]
fn files_that_follow_at_once_or_weeks_later_are_two_sides() {
    for pause in [SECOND / 100, 21 * 24 * HOUR] {
        let file = |from: u64, latency: f64, is_reused: bool| {
            (1..=40).map(move |nth| {
                (
                    from + nth * SECOND / 40,
                    latency + (nth % 7) as f64 / 10.0,
                    is_reused,
                )
            })
        };
        let before = file(SECOND, 500.0, false);
        let all: Vec<_> = before.chain(file(2 * SECOND + pause, 10.0, true)).collect();
        let shift = shift(Producer::Audit, 1, &all).unwrap();
        assert_eq!((shift.before.requests, shift.after.requests), (40, 40));
        assert_eq!(
            (shift.before.known_reuse, shift.after.known_reuse),
            (Some(0.0), Some(1.0))
        );
        let begins = (2 * SECOND + pause + SECOND / 40) as f64 / 1e9;
        assert!((shift.at_s - begins).abs() < 1e-6, "{shift:?}");
    }
}

#[test]
fn files_that_cover_the_same_time_are_no_change() {
    let file = |latency: f64, is_reused: bool| {
        (1..=500).map(move |nth| (nth * SECOND, latency + (nth % 7) as f64, is_reused))
    };
    let all: Vec<_> = file(500.0, false).chain(file(10.0, true)).collect();
    assert_eq!(shift(Producer::Audit, 1, &all), None);
}

#[test]
fn filling_a_pool_is_no_change() {
    let fill = |nth: u64| (SECOND + nth * SECOND / 100, 20.0, nth > 60);
    let all: Vec<_> = (1..=300).map(fill).collect();
    assert_eq!(shift(Producer::Watch, 60, &all), None);
    assert_eq!(shift(Producer::Audit, 60, &all), None);
}

#[test]
fn the_interval_covers_the_difference_as_often_as_it_says() {
    let mut rng = Rng::seeded(4);
    let mut covered = 0;
    for _ in 0..300 {
        let mut level = 0.0;
        let each = (1..=1_200u64).map(|nth| {
            level = 0.5 * level + 0.2 * student_quantile(rng.unit().max(1e-12), 1e3);
            let latency = if nth <= 600 { 300.0 } else { 100.0 };
            (nth * SECOND, latency * (1.0 + level), nth > 600)
        });
        let all: Vec<_> = each.collect();
        let shift = shift(Producer::Audit, 1, &all).unwrap();
        covered += u32::from(shift.difference_ms.unwrap().covers(-200.0));
    }
    // 285 expected of 300
    assert!((276..=296).contains(&covered), "{covered} of 300");
}

/// Requests of a function at successive levels of reuse, this number at each, with the load of a
/// machine: bursts that depend on the request before, and noise.
fn levels(rng: &mut Rng, reuse: &[f64], count: u64) -> Vec<(u64, f64, bool)> {
    let mut load = 0.0;
    let mut all = Vec::new();
    for nth in 0..reuse.len() as u64 * count {
        load = 0.9 * load + if rng.unit() < 0.02 { 0.5 } else { 0.0 };
        let is_reused = rng.unit() < reuse[(nth / count) as usize];
        let latency = if is_reused { 100.0 } else { 300.0 };
        all.push((
            (nth + 1) * SECOND,
            latency * (1.0 + load) * noise(rng, 0.3),
            is_reused,
        ));
    }
    all
}

#[test]
fn each_step_of_a_staircase_is_a_change() {
    let mut rng = Rng::seeded(5);
    let (mut both, mut near) = (0, 0);
    for _ in 0..50 {
        let mut found = shifts(
            Producer::Audit,
            1,
            &levels(&mut rng, &[0.0, 0.5, 0.97], 500),
        );
        let sizes: Vec<f64> = found.iter().map(LevelShift::size).collect();
        assert!(sizes.is_sorted_by(|a, b| a >= b), "{sizes:?}");
        found.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
        let [first, second] = &found[..] else {
            continue;
        };
        both += 1;
        near += u32::from((first.at_s - 501.0).abs() < 20.0 && (second.at_s - 1001.0).abs() < 20.0);
        // each side ends at the next change
        assert_eq!(first.after.requests, second.before.requests);
        assert_eq!(
            first.before.requests + first.after.requests + second.after.requests,
            1_500
        );
    }
    assert!(both >= 45, "{both} of 50");
    assert!(near >= 40, "{near} of 50");
}

#[test]
fn a_single_change_is_rarely_called_several() {
    let mut rng = Rng::seeded(6);
    let several = |rows: &[(u64, f64, bool)]| shifts(Producer::Audit, 1, rows).len() > 1;
    let loaded = (0..100).filter(|_| several(&levels(&mut rng, &[0.0, 0.97], 500)));
    let loaded = loaded.count();
    assert!(loaded <= 5, "{loaded} of 100: more than 5 %");
    let early = (0..100).filter(|_| several(&levels(&mut rng, &[0.0, 0.97, 0.97, 0.97], 250)));
    let early = early.count();
    assert!(early <= 5, "{early} of 100: more than 5 %");
    let weeks = (0..100).filter(|_| several(&weeks(&mut rng, 556)));
    let weeks = weeks.count();
    assert!(weeks <= 5, "{weeks} of 100: more than 5 %");
}

#[test]
fn without_a_change_levels_are_not_called_changed() {
    let mut rng = Rng::seeded(7);
    let called = (0..100).filter(|_| {
        let all = levels(&mut rng, &[0.8], 1_000);
        shift(Producer::Audit, 1, &all).is_some()
    });
    let called = called.count();
    assert!(called <= 5, "{called} of 100: more than 5 %");
}
