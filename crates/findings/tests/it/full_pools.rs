//! Pools without room: what they close after use, next to clients per task, which close too.

use super::pools::{SERVER, closed, opened, outcome, sent};
use serde_json::Value;
use std::collections::BTreeMap;

/// Numbers below a limit that depend on the seed only.
fn random(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut random = seed;
    move |most| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (random >> 33) % most
    }
}

/// The rows in the order of their times.
fn in_order(mut rows: Vec<(u64, Value)>) -> Vec<Value> {
    rows.sort_by_key(|(at, _)| *at);
    rows.into_iter().map(|(_, row)| row).collect()
}

/// Eight workers with a client per task of N calls, each with 3 ms between two of them.
fn tasks(calls_of: impl Fn(u64) -> u64) -> Vec<Value> {
    let mut rows: Vec<(u64, Value)> = Vec::new();
    let mut free: Vec<u64> = (0..8).map(|worker| worker * 1_300).collect();
    for id in 0..40 {
        let worker = (0..8).min_by_key(|worker| free[*worker]).unwrap();
        let mut at = free[worker];
        rows.push((at, opened(id, at, SERVER, "api.example")));
        let calls = calls_of(id);
        for nth in 1..=calls {
            let end = at + 9_000 + (id * 7 + nth * 5) % 6 * 1_000;
            rows.push((end, sent(id, at, end, nth)));
            at = end + 3_000;
        }
        rows.push((at, closed(id, at, calls)));
        free[worker] = at + 200;
    }
    in_order(rows)
}

#[test]
fn a_client_per_task_of_several_calls_is_no_full_pool() {
    // a multiplier of each seed spreads the numbers of calls from 1 to 6
    let random =
        |seed: u64| move |id: u64| 1 + (id + 1).wrapping_mul(seed * 2_654_435_761) % 97 % 6;
    let random = (1..30).map(|seed| tasks(random(seed)));
    for rows in [tasks(|_| 3), tasks(|id| 1 + id * 3 % 5)]
        .into_iter()
        .chain(random)
    {
        let (opened, _, _, warned) = outcome(&rows);
        assert_eq!((opened, warned), (40.0, vec!["new-connection-per-request"]));
    }
}

/// Twenty threads of 15 calls share a pool that keeps ten connections, the last that came back
/// first. On a busy machine each step takes a time of its own.
fn shared_pool(seed: u64) -> Vec<Value> {
    let mut up_to = random(seed);
    let mut rows: Vec<(u64, Value)> = Vec::new();
    // when a thread does its next step, the calls that are left, and the connection that it has
    let mut steps: BTreeMap<(u64, u64), (u64, Option<u64>)> = BTreeMap::new();
    for thread in 0..20 {
        steps.insert((up_to(30_000), thread), (15, None));
    }
    let mut pool: Vec<u64> = Vec::new();
    let mut carried: Vec<u64> = Vec::new();
    while let Some(((at, thread), (calls, has))) = steps.pop_first() {
        if let Some(id) = has {
            match pool.len() < 10 {
                true => pool.push(id),
                false => rows.push((at, closed(id, at, carried[id as usize]))),
            }
        }
        if calls == 0 {
            continue;
        }
        let id = pool.pop().unwrap_or_else(|| {
            carried.push(0);
            let id = carried.len() as u64 - 1;
            rows.push((at, opened(id, at, SERVER, "api.example")));
            id
        });
        carried[id as usize] += 1;
        let nth = carried[id as usize];
        let sent_at = if nth == 1 { at } else { at + up_to(3_000) };
        let end = sent_at + 5_000 + up_to(20_000);
        rows.push((end, sent(id, sent_at, end, nth)));
        let late = up_to(10) / 9 * up_to(30_000);
        let back = (end + 500 + up_to(6_000) + late, thread);
        steps.insert(back, (calls - 1, Some(id)));
    }
    let end = rows.iter().map(|(at, _)| *at).max().unwrap() + 1_000;
    let left = pool
        .iter()
        .map(|id| (end, closed(*id, end, carried[*id as usize])));
    rows.extend(left);
    in_order(rows)
}

#[test]
fn a_shared_pool_without_room_is_found_whatever_the_moments_are() {
    for seed in 0..50 {
        let (opened, .., warned) = outcome(&shared_pool(seed));
        assert!(opened >= 20.0, "{seed}");
        assert_eq!(warned, ["pool-too-small"], "{seed}: {opened} opened");
    }
}

#[test]
fn threads_that_end_one_after_another_leave_a_full_pool() {
    // twenty threads share a pool that keeps eleven: when they end, nine connections have no room
    let mut rows: Vec<(u64, Value)> = Vec::new();
    for id in 0..20 {
        rows.push((id * 100, opened(id, id * 100, SERVER, "api.example")));
        let mut at = id * 100 + 200;
        let calls = 12 + id * 5 % 7;
        for nth in 1..=calls {
            let end = at + 5_000 + (id * 3 + nth) % 4 * 500;
            rows.push((end, sent(id, at, end, nth)));
            at = end + 400;
        }
        let close = if calls >= 16 { at } else { 600_000 };
        rows.push((close, closed(id, close, calls)));
    }
    let sorted = |rows: &[(u64, Value)]| in_order(rows.to_vec());
    let (opened_all, _, avoidable, warned) = outcome(&sorted(&rows));
    assert_eq!((opened_all, avoidable), (20.0, 0.0));
    assert_eq!(warned, ["pool-too-small"]);
    // one has no room before the last ones are opened
    rows.push((1_000, opened(20, 1_000, SERVER, "api.example")));
    rows.push((1_550, sent(20, 1_000, 1_550, 1)));
    rows.push((1_560, closed(20, 1_560, 1)));
    let (.., warned) = outcome(&sorted(&rows));
    assert_eq!(warned, ["pool-too-small"]);
}

/// Bursts of ten requests, after which two connections stay open.
#[test]
fn a_pool_that_keeps_as_many_from_each_burst_to_the_next_is_full() {
    let mut rows: Vec<(u64, Value)> = Vec::new();
    let mut kept: Vec<(u64, u64)> = Vec::new();
    let mut next = 0;
    for burst in 0..5 {
        let begin = burst * 100_000;
        let mut all = std::mem::take(&mut kept);
        while all.len() < 10 {
            let at = begin + all.len() as u64 * 50;
            rows.push((at, opened(next, at, SERVER, "api.example")));
            all.push((next, 0));
            next += 1;
        }
        for (nth, (id, carried)) in (0..).zip(all) {
            let end = begin + 10_000 + (nth * 3 + burst) % 10 * 4_000;
            let carried = carried + 1;
            rows.push((end, sent(id, begin + 500, end, carried)));
            // the first two that come back; a busy client closes the others late
            match end < begin + 18_000 {
                true => kept.push((id, carried)),
                false => rows.push((end + 8_000, closed(id, end + 8_000, carried))),
            }
        }
    }
    let rows = in_order(rows);
    let (opened, needed, avoidable, warned) = outcome(&rows);
    assert_eq!((opened, needed, avoidable), (42.0, 10.0, 32.0));
    assert_eq!(warned, ["pool-too-small"]);
}

/// Six bursts of ten calls to a server that responds so fast that some calls end before others
/// begin. The pool keeps `room` connections, and closes the oldest ones, or one that has carried
/// `most` requests.
fn fast_bursts(seed: u64, room: usize, most: u64) -> Vec<Value> {
    let mut up_to = random(seed);
    let mut rows: Vec<(u64, Value)> = Vec::new();
    let mut pool: Vec<u64> = Vec::new();
    let mut carried: Vec<u64> = Vec::new();
    let mut end_of_all = 0;
    for burst in 0..6 {
        let mut steps: BTreeMap<(u64, u64), Option<u64>> = BTreeMap::new();
        for call in 0..10 {
            let at = burst * 220_000 + call * 1_100 + up_to(900);
            steps.insert((at, call), None);
        }
        while let Some(((at, call), has)) = steps.pop_first() {
            if let Some(id) = has {
                pool.push(id);
                let of = |id: &u64| carried[*id as usize] == most;
                let old = pool
                    .iter()
                    .position(of)
                    .or((pool.len() > room).then_some(0));
                let old = old.map(|old| pool.remove(old));
                rows.extend(old.map(|old| (at, closed(old, at, carried[old as usize]))));
                end_of_all = end_of_all.max(at);
                continue;
            }
            let id = pool.pop().unwrap_or_else(|| {
                carried.push(0);
                let id = carried.len() as u64 - 1;
                rows.push((at, opened(id, at, SERVER, "api.example")));
                id
            });
            carried[id as usize] += 1;
            let sent_at = at + 200 + up_to(600);
            let end = sent_at + 500 + up_to(2_500);
            rows.push((end, sent(id, sent_at, end, carried[id as usize])));
            steps.insert((end + 50 + up_to(500), call), Some(id));
        }
    }
    let end = end_of_all + 1_000;
    let left = pool
        .iter()
        .map(|id| (end, closed(*id, end, carried[*id as usize])));
    rows.extend(left);
    in_order(rows)
}

#[test]
fn pauses_show_what_a_pool_keeps_whose_server_is_fast() {
    for seed in 0..40 {
        let room = 1 + seed as usize % 2;
        let (opened, .., warned) = outcome(&fast_bursts(seed, room, u64::MAX));
        assert_eq!(warned, ["pool-too-small"], "{seed}: {opened} opened");
        // room enough, and connections that are renewed, often or rarely
        for most in [4, 5, 8, 12] {
            let (.., warned) = outcome(&fast_bursts(seed, 10, most));
            let too_often = ["new-connection-per-request"];
            let expected = if most < 10 { &too_often[..] } else { &[] };
            assert_eq!(warned, expected, "{seed}: {most} requests each");
        }
    }
}
