//! What a client counts that closes each connection when it has been used enough: its requests, or
//! its age.

use super::history::Life;
use super::open_reason::MANY;
use super::pool_full::NEARLY;
use super::pool_rests::last_use;

/// What a client counts that closes each connection when it has been used enough.
#[derive(Clone, Copy, Debug)]
pub(super) enum Renewal {
    /// Requests.
    Requests(u64),
    /// Its age, in nanoseconds.
    Age(u64),
}

impl Renewal {
    /// Whether clients renew connections as rarely on purpose.
    pub(super) fn is_usual(self) -> bool {
        match self {
            Renewal::Requests(carried) => carried >= MANY,
            Renewal::Age(age) => age >= LEAST_AGE,
        }
    }
}

/// Connections that a client closed from which on they show what it counts.
const RENEWED: usize = 2;

/// The connections that a client closed right after a response, while others were to come.
fn closed_after_use<'a>(lives: &'a [&'a Life]) -> Vec<&'a Life> {
    let last = last_use(lives).map(|(last, _)| last);
    let is_closed = |life: &&&Life| life.closed_after_use().is_some_and(|at| Some(at) < last);
    lives.iter().filter(is_closed).copied().collect()
}

/// Whether each connection that a client closed right after a response had carried the same number
/// of requests, and none carried more: it does not look at the room in its pool.
pub(super) fn counts_requests(lives: &[&Life]) -> bool {
    let most = lives.iter().map(|life| life.carried).max().unwrap_or(0);
    let closed = closed_after_use(lives);
    most > 1 && closed.len() > RENEWED && closed.iter().all(|life| life.carried == most)
}

/// What a client counts, if it closes nearly each connection that it closes right after a response
/// after the same number of requests, or all of them at the same age. Where no end is seen, what
/// the client or the server counts.
pub(super) fn renewal(lives: &[&Life]) -> Option<Renewal> {
    if lives.iter().all(|life| life.end.is_none()) {
        return carried_alike(lives).map(Renewal::Requests);
    }
    let closed = closed_after_use(lives);
    if closed.len() < RENEWED {
        return None;
    }
    let mut requests: Vec<u64> = closed.iter().map(|life| life.carried).collect();
    requests.sort_unstable();
    let usual = requests[requests.len() / 2];
    let as_usual = requests.iter().filter(|carried| **carried == usual).count();
    if usual > 1 && as_usual as f64 >= NEARLY * closed.len() as f64 {
        return Some(Renewal::Requests(usual));
    }
    let ages = closed.iter();
    let ages = ages.filter_map(|life| Some(life.last_end()?.since(life.ready)));
    let (least, most) = ages.fold((u64::MAX, 0), |(least, most), age| {
        (age.min(least), age.max(most))
    });
    let is_one = requests[0] > 1 && are_of_one_age(least, most);
    is_one.then_some(Renewal::Age(least))
}

/// The number of requests, several, that each connection but the last one had carried when the next
/// one was opened: where no end is seen, it shows a limit.
fn carried_alike(lives: &[&Life]) -> Option<u64> {
    let (last, before) = lives.split_last()?;
    let usual = before.first()?.carried;
    let is_limited = usual > 1 && before.len() >= RENEWED && last.carried <= usual;
    let is_in_turn = |pair: &[&Life]| pair[0].last_end() <= Some(pair[1].at);
    let is_alike = before.iter().all(|life| life.carried == usual);
    (is_limited && is_alike && lives.windows(2).all(is_in_turn)).then_some(usual)
}

/// Ages of one limit differ by up to this share: gRPC changes its limit by 10 % up or down at
/// random.
const SAME_AGE: f64 = 0.25;

/// And by the time between two requests, in nanoseconds. A limit of age is longer.
const BETWEEN: u64 = 50_000_000;

/// No client or server that is not under test has a shorter limit of age, in nanoseconds.
pub(super) const LEAST_AGE: u64 = 1_000_000_000;

/// Whether connections of these ages, in nanoseconds, ended at one limit of age.
pub(super) fn are_of_one_age(least: u64, most: u64) -> bool {
    let differ = (most - least) as f64;
    least > BETWEEN && differ <= (SAME_AGE * least as f64).max(BETWEEN as f64)
}
