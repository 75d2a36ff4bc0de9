//! The embedded queue: nothing is lost, nothing is in two hands.

use crate::rig::plan;
use intact_fleet::{Counts, Queue, SqliteQueue};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, UNIX_EPOCH};

fn queue(folder: &tempfile::TempDir, deliveries: u32) -> SqliteQueue {
    SqliteQueue::open(&folder.path().join("q.sqlite"))
        .unwrap()
        .with_deliveries(deliveries)
}

#[test]
fn messages_come_in_order_and_each_goes_to_one_worker() {
    let folder = tempfile::tempdir().unwrap();
    let mut one = queue(&folder, 3);
    assert_eq!(one.send(&mut plan(20).messages()).unwrap(), 40);
    let mut seen = BTreeSet::new();
    let path = folder.path().to_owned();
    let others: Vec<_> = (0..4)
        .map(|worker| {
            let path = path.join("q.sqlite");
            std::thread::spawn(move || {
                let mut queue = SqliteQueue::open(&path).unwrap();
                let mut mine = Vec::new();
                while let Some(claim) = queue.claim(&format!("w{worker}"), Duration::ZERO).unwrap()
                {
                    assert_eq!(claim.attempt, 1);
                    assert!(queue.done(&claim).unwrap());
                    mine.push(claim.body);
                }
                mine
            })
        })
        .collect();
    for other in others {
        for body in other.join().unwrap() {
            assert!(seen.insert(body), "in two hands");
        }
    }
    assert_eq!(seen.len(), 40);
    let over = Counts {
        done: Some(40),
        dead: Some(0),
        ..Counts::default()
    };
    assert_eq!(one.counts().unwrap(), over);
}

#[test]
fn sending_a_plan_again_adds_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut queue = queue(&folder, 3);
    assert_eq!(queue.send(&mut plan(2).messages()).unwrap(), 4);
    assert_eq!(queue.send(&mut plan(2).messages()).unwrap(), 0);
    // another number of repetitions is another plan
    assert_eq!(queue.send(&mut plan(3).messages()).unwrap(), 6);
}

#[test]
fn what_a_dead_worker_had_comes_back_until_it_was_too_often() {
    let folder = tempfile::tempdir().unwrap();
    let mut queue = queue(&folder, 2);
    queue.send(&mut plan(1).messages().take(1)).unwrap();
    for attempt in 1..=2 {
        let claim = queue.claim("w", Duration::ZERO).unwrap().unwrap();
        assert_eq!(claim.attempt, attempt);
        assert_eq!(queue.claim("v", Duration::ZERO).unwrap(), None);
        assert_eq!(queue.abandon("w").unwrap(), Some(1));
    }
    assert_eq!(queue.claim("w", Duration::ZERO).unwrap(), None);
    let dead = queue.dead().unwrap();
    assert_eq!(dead.len(), 1);
    assert!(dead[0].1.contains("2 deliveries"), "{}", dead[0].1);
}

#[test]
fn a_failure_counts_and_an_interruption_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let mut queue = queue(&folder, 2);
    queue.send(&mut plan(1).messages().take(1)).unwrap();
    for _ in 0..5 {
        let claim = queue.claim("w", Duration::ZERO).unwrap().unwrap();
        assert_eq!(claim.attempt, 1);
        queue.release(&claim).unwrap();
    }
    for _ in 0..2 {
        let claim = queue.claim("w", Duration::ZERO).unwrap().unwrap();
        queue.failed(&claim, "no route", false).unwrap();
    }
    assert_eq!(queue.claim("w", Duration::ZERO).unwrap(), None);
    assert_eq!(queue.dead().unwrap()[0].1, "no route");
}

#[test]
fn a_late_answer_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut queue = queue(&folder, 3);
    queue.send(&mut plan(1).messages().take(1)).unwrap();
    let late = queue.claim("w", Duration::ZERO).unwrap().unwrap();
    queue.abandon("w").unwrap();
    let other = queue.claim("v", Duration::ZERO).unwrap().unwrap();
    assert!(!queue.done(&late).unwrap());
    queue.failed(&late, "too late", true).unwrap();
    assert!(queue.done(&other).unwrap());
    assert_eq!(queue.counts().unwrap().done, Some(1));
}

#[test]
fn a_file_that_is_no_queue_is_refused_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("q.sqlite");
    std::fs::write(
        &path,
        "this is not a database, whatever its name says ...............",
    )
    .unwrap();
    let said = SqliteQueue::open(&path).err().unwrap().to_string();
    assert!(said.contains("another file"), "{said}");
    let said = SqliteQueue::open(&folder.path().join("no/such/folder"))
        .err()
        .unwrap()
        .to_string();
    assert!(said.contains("not there"), "{said}");
    let said = intact_fleet::open_queue("redis://x")
        .err()
        .unwrap()
        .to_string();
    assert!(said.contains("sqlite:PATH"), "{said}");
}

/// A wall clock that jumps where the test says, and its hand.
fn jumping(folder: &tempfile::TempDir) -> (SqliteQueue, Arc<AtomicU64>) {
    let hand = Arc::new(AtomicU64::new(1_000_000));
    let read = hand.clone();
    let clock = move || UNIX_EPOCH + Duration::from_secs(read.load(Ordering::Relaxed));
    (queue(folder, 3).with_clock(clock), hand)
}

#[test]
fn a_clock_that_jumps_ahead_has_a_message_delivered_twice_and_finished_once() {
    let folder = tempfile::tempdir().unwrap();
    let (mut queue, hand) = jumping(&folder);
    queue.send(&mut plan(1).messages().take(1)).unwrap();
    let early = queue.claim("w", Duration::ZERO).unwrap().unwrap();
    hand.fetch_add(3600, Ordering::Relaxed);
    let again = queue.claim("v", Duration::ZERO).unwrap().unwrap();
    assert_eq!((early.attempt, again.attempt), (1, 2));
    assert!(!queue.done(&early).unwrap());
    assert!(queue.done(&again).unwrap());
    assert_eq!(queue.claim("w", Duration::ZERO).unwrap(), None);
    let counts = queue.counts().unwrap();
    assert_eq!((counts.done, counts.dead), (Some(1), Some(0)));
}

#[test]
fn a_clock_that_jumps_back_loses_nothing_and_a_dead_worker_s_message_comes_back_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let (mut queue, hand) = jumping(&folder);
    queue.send(&mut plan(1).messages().take(2)).unwrap();
    let held = queue.claim("w", Duration::ZERO).unwrap().unwrap();
    hand.fetch_sub(3600, Ordering::Relaxed);
    // what waits has no time, so it is taken whatever the clock says; what is held stays so until its worker is known to be gone
    let other = queue.claim("v", Duration::ZERO).unwrap().unwrap();
    assert!(queue.done(&other).unwrap());
    assert_eq!(queue.claim("v", Duration::ZERO).unwrap(), None);
    assert_eq!(queue.abandon("w").unwrap(), Some(1));
    let again = queue.claim("v", Duration::ZERO).unwrap().unwrap();
    assert_eq!((&again.body, again.attempt), (&held.body, 2));
    assert!(queue.done(&again).unwrap());
    assert_eq!(queue.counts().unwrap().done, Some(2));
}
