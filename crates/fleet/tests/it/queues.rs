//! The embedded queue: no message is lost, and no two workers hold the same one.

use crate::rig::plan;
use intact_fleet::{Counts, Queue, SqliteQueue};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
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
    // a plan with another number of repetitions is another plan
    assert_eq!(queue.send(&mut plan(3).messages()).unwrap(), 6);
}

#[test]
fn messages_of_a_dead_worker_return_until_their_last_delivery() {
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
    assert!(
        dead[0].reason.contains("2 deliveries"),
        "{}",
        dead[0].reason
    );
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
    assert_eq!(queue.dead().unwrap()[0].reason, "no route");
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
fn a_file_that_is_no_queue_is_refused_with_the_reason() {
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

#[test]
fn many_processes_can_open_one_new_queue_at_the_same_time() {
    for _ in 0..20 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("q.sqlite");
        let start = Arc::new(Barrier::new(8));
        let threads: Vec<_> = (0..8)
            .map(|_| {
                let (path, start) = (path.clone(), start.clone());
                std::thread::spawn(move || {
                    start.wait();
                    let mut queue = SqliteQueue::open(&path)?;
                    queue.send(&mut plan(3).messages())
                })
            })
            .collect();
        let sent = threads
            .into_iter()
            .map(|thread| thread.join().unwrap().unwrap());
        assert_eq!(sent.sum::<u64>(), 6, "each message is new to one of them");
    }
}

#[test]
fn sending_many_messages_lets_other_processes_in_between() {
    let folder = tempfile::tempdir().unwrap();
    let mut queue = queue(&folder, 3);
    let mut other = SqliteQueue::open(&folder.path().join("q.sqlite")).unwrap();
    let plan = plan(800);
    let mut sent = 0;
    let mut taken = 0;
    let mut messages = plan.messages().inspect(|_| {
        sent += 1;
        if sent % 600 == 0 {
            // with one transaction for all messages, this waits for the whole timeout and fails
            assert!(other.claim("w", Duration::ZERO).unwrap().is_some());
            taken += 1;
        }
    });
    assert_eq!(queue.send(&mut messages).unwrap(), 1600);
    assert_eq!(taken, 2);
}

#[test]
fn a_file_that_another_process_holds_for_a_while_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("q.sqlite");
    let holder = rusqlite::Connection::open(&path).unwrap();
    holder
        .execute_batch("CREATE TABLE other (a); BEGIN EXCLUSIVE")
        .unwrap();
    let opened = std::thread::spawn({
        let path = path.clone();
        move || SqliteQueue::open(&path).map(|mut queue| queue.counts().unwrap())
    });
    std::thread::sleep(Duration::from_millis(200));
    assert!(!opened.is_finished());
    holder.execute_batch("COMMIT").unwrap();
    assert!(opened.join().unwrap().unwrap().is_over());
}

#[test]
fn coordinators_of_one_queue_take_the_messages_of_their_own_plans_and_keep_its_limit() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (plan(2), plan(3));
    let of = |plan: &intact_fleet::Plan| queue(&folder, 3).of_plan(&plan.id, 2);
    let (mut one, mut other) = (of(&first), of(&second));
    one.send(&mut first.messages()).unwrap();
    other.send(&mut second.messages()).unwrap();
    assert_eq!(
        (
            one.counts().unwrap().waiting,
            other.counts().unwrap().waiting
        ),
        (4, 6)
    );
    let mine =
        |claim: &intact_fleet::Claim, plan: &intact_fleet::Plan| claim.body.contains(&plan.id);
    let held = one.claim("w1", Duration::ZERO).unwrap().unwrap();
    assert!(mine(&held, &first));
    assert!(mine(
        &other.claim("v1", Duration::ZERO).unwrap().unwrap(),
        &second
    ));
    // a second coordinator of the first plan
    let mut again = of(&first);
    assert!(again.claim("x1", Duration::ZERO).unwrap().is_some());
    assert_eq!(
        again.claim("x2", Duration::ZERO).unwrap(),
        None,
        "two at once"
    );
    assert_eq!(
        one.claim("w2", Duration::ZERO).unwrap(),
        None,
        "two at once"
    );
    assert!(one.done(&held).unwrap());
    assert!(again.claim("x2", Duration::ZERO).unwrap().is_some());
    // a worker that ended does not affect those of the other coordinator
    assert_eq!(one.abandon("w1").unwrap(), Some(0));
    assert_eq!(again.abandon("x1").unwrap(), Some(1));
    assert!(one.claim("w1", Duration::ZERO).unwrap().is_some());
}

#[cfg(unix)]
#[test]
fn only_their_owner_can_read_a_queue_and_a_store() {
    use std::os::unix::fs::MetadataExt;
    let folder = tempfile::tempdir().unwrap();
    let mut queue = queue(&folder, 3);
    queue.send(&mut plan(1).messages()).unwrap();
    let mode = |name: &str| std::fs::metadata(folder.path().join(name)).unwrap().mode() & 0o777;
    for name in ["q.sqlite", "q.sqlite-wal", "q.sqlite-shm"] {
        assert_eq!(mode(name), 0o600, "{name}");
    }
    let store = folder.path().join("deep/store");
    intact_fleet::Store::open(store.to_str().unwrap()).unwrap();
    assert_eq!((mode("deep"), mode("deep/store")), (0o700, 0o700));
}

/// A queue with a wall clock that the test sets, and the handle to set it.
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
fn a_clock_that_jumps_back_loses_nothing_and_a_dead_worker_s_message_returns_immediately() {
    let folder = tempfile::tempdir().unwrap();
    let (mut queue, hand) = jumping(&folder);
    queue.send(&mut plan(1).messages().take(2)).unwrap();
    let held = queue.claim("w", Duration::ZERO).unwrap().unwrap();
    hand.fetch_sub(3600, Ordering::Relaxed);
    // a waiting message has no time, so the clock does not matter; a held one stays held until its
    // worker is known to have ended
    let other = queue.claim("v", Duration::ZERO).unwrap().unwrap();
    assert!(queue.done(&other).unwrap());
    assert_eq!(queue.claim("v", Duration::ZERO).unwrap(), None);
    assert_eq!(queue.abandon("w").unwrap(), Some(1));
    let again = queue.claim("v", Duration::ZERO).unwrap().unwrap();
    assert_eq!((&again.body, again.attempt), (&held.body, 2));
    assert!(queue.done(&again).unwrap());
    assert_eq!(queue.counts().unwrap().done, Some(2));
}
