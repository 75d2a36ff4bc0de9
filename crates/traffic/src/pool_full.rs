//! Whether a client closes connections because its pool has no room, and how many it keeps.

use super::history::Life;
use super::open_connection::HAND_BACK;
use super::open_reason::SEVERAL;
use super::pool_bursts::{Bursts, ends_at_any_use};
use super::pool_rests::{Rest, busy_at_once, kept, last_use, peak, rests};
use intact_ledger::{Nanos, Span};

/// A pool that closes a connection after its use when it has no room for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Full {
    /// Idle connections that it keeps.
    pub(super) kept: u64,
    /// Connections that it closed after it had used them again.
    pub(super) closed: u64,
    /// Whether as many were idle for good when the last one was closed. Workers that end close
    /// their own connections, and keep none.
    pub(super) is_shared: bool,
    /// Whether those were idle for longer than most that it closed, too: otherwise the closes at
    /// the end of a program may be those of its workers.
    pub(super) is_left_beyond_doubt: bool,
    /// Whether nothing else that a client does explains its openings.
    pub(super) is_only_cause: bool,
}

/// A connection that the client closed right after a response.
struct Dropped {
    span: Span,
    /// When it was closed.
    at: Nanos,
    is_used_again: bool,
    /// Others that were idle when it was closed, or at once afterwards: a pool that closes its
    /// oldest connection does so before the next one is back.
    kept: usize,
    /// The same within the margin: a busy client reads late.
    kept_soon: usize,
    /// Others that were used again and busy meanwhile, or shortly before: a busy client takes its
    /// time to open a connection.
    busy: usize,
}

/// Since when a client closed what it had kept to its end: its last close, and those next to it,
/// after all responses.
pub(super) fn closed_together(lives: &[&Life]) -> Option<Nanos> {
    let (_, last) = last_use(lives)?;
    let ends = || lives.iter().filter_map(|life| Some(life.end?.at));
    let end = ends().max()?;
    let together = ends().filter(|at| at.after(TOGETHER) >= end).min();
    together.map(|at| at.max(last))
}

/// How many connections a client closed right after a response that it had used again. Those of the
/// last burst count too, but not what it closes together at its end.
fn closed_used_again(lives: &[&Life]) -> Option<u64> {
    let end = closed_together(lives)?;
    let is_closed = |life: &&&Life| life.closed_after_use().is_some_and(|at| at < end);
    let again = lives.iter().filter(is_closed);
    Some(again.filter(|life| life.carried > 1).count() as u64)
}

/// Up to [`LOOKED_AT`] of the connections that a client closed right after a response, while a
/// response was to come. `last` is the end of the last response: what is closed later may be the
/// end of the program.
fn dropped(lives: &[&Life], margin: u64, last: Nanos) -> Vec<Dropped> {
    let ends = lives.iter().filter_map(|life| {
        let at = life.closed_after_use().filter(|at| *at < last)?;
        Some((life, at))
    });
    let ends: Vec<(&&Life, Nanos)> = ends.collect();
    let each = ends.len().div_ceil(LOOKED_AT).max(1);
    let looked_at = ends.into_iter().step_by(each);
    let dropped = looked_at.filter_map(|(life, at)| {
        let span = Span::new(life.at, life.last_end()?);
        let others = || lives.iter().filter(|other| other.id != life.id);
        let is_kept_by = |other: &Life, soon: Nanos| {
            // what is opened afterwards may be of the next client
            let is_there = other.at < at && at < other.until();
            let mut rests = rests(other).filter(|rest| rest.from <= soon && at < rest.to);
            is_there
                && rests.any(|rest| {
                    let is_long = rest.to.since(rest.from) > margin;
                    rest.is_followed || is_long || rest.to >= last
                })
        };
        let kept_by = |soon: Nanos| move |other: &&&Life| is_kept_by(other, soon);
        let kept_soon = others().filter(kept_by(at.after(margin)));
        let kept_soon: Vec<&&Life> = kept_soon.collect();
        let kept = kept_soon
            .iter()
            .copied()
            .filter(kept_by(at.after(HAND_BACK)));
        let is_busy = |other: &&&Life| {
            let mut spans = other.uses.iter().map(|one| one.span);
            let is_near = |one: Span| one.start <= span.end && span.start <= one.end.after(margin);
            other.carried > 1 && spans.any(is_near)
        };
        Some(Dropped {
            span,
            at,
            is_used_again: life.carried > 1,
            kept: kept.count(),
            kept_soon: kept_soon.len(),
            busy: others().filter(is_busy).count(),
        })
    });
    dropped.collect()
}

/// How many idle connections a pool seems to have room for.
struct Room {
    /// The idle connections next to which it closed one: a low quantile; those in hand look idle.
    kept: usize,
    /// The part of the connections that it kept after a use next to as many.
    ignored: f64,
    /// Whether most closes were next to that number.
    is_mostly_so: bool,
}

impl Room {
    /// By the connections that it closed, of which there is one at least.
    fn of(lives: &[&Life], closed: &[&Dropped], margin: u64, last: Nanos, again: u64) -> Room {
        let idle = kept(lives, |from, to| to.since(from) > margin || to >= last);
        let mut at_close: Vec<usize> = closed.iter().map(|one| idle.at(one.at)).collect();
        at_close.sort_unstable();
        // many next to the same number, and hardly any next to more: closes that a busy client
        // makes late, when the next burst has taken what was idle, do not count
        let most = at_close[at_close.len() * 19 / 20];
        let at_most = at_close.iter().filter(|idle| **idle == most).count();
        // a client per call closes next to what another one keeps, too, but uses none again
        let is_part =
            |part: f64| again >= SEVERAL && at_most as f64 >= part * at_close.len() as f64;
        let kept = match is_part(CONCENTRATED) {
            true => most,
            false => at_close[at_close.len() / 10],
        };
        let returns = lives.iter().flat_map(|life| rests(life));
        let returns: Vec<Rest> = returns.filter(|rest| rest.is_followed).collect();
        // with itself
        let is_beyond = |rest: &&Rest| idle.at(rest.from) > kept;
        let ignored = returns.iter().filter(is_beyond).count();
        Room {
            kept,
            ignored: ignored as f64 / returns.len().max(1) as f64,
            is_mostly_so: is_part(0.5),
        }
    }
}

impl Full {
    /// Where about as many connections as a pool seems to keep were left, workers share it: those
    /// that end keep none. What it left is what it keeps, for those in hand look idle before.
    fn of(lives: &[&Life], dropped: &[Dropped], kept: u64, closed: u64) -> Full {
        let idle = dropped.iter().map(|one| one.at.since(one.span.end));
        let mut idle: Vec<u64> = idle.collect();
        idle.sort_unstable();
        let left = |times: u64, idle: Option<&u64>| {
            left(lives, dropped, times * idle.copied().unwrap_or_default())
        };
        let is_as_many = |left: u64| left as f64 >= (AS_MANY * kept as f64).max(LEFT);
        // the shortest one is of a connection that no thread had in hand
        let left_long = left(LONGER, idle.first());
        let is_shared = is_as_many(left_long);
        // workers with a connection and a list each, of the same length
        let is_alike = lives.windows(2).all(|two| two[0].carried == two[1].carried);
        let left_longer = left(
            if is_alike { LONGER } else { 1 },
            idle.get(3 * idle.len() / 4),
        );
        Full {
            kept: if is_shared { kept.min(left_long) } else { kept },
            closed,
            is_shared,
            is_left_beyond_doubt: is_as_many(left_longer),
            is_only_cause: true,
        }
    }
}

/// How many connections were idle for good when the last one was closed after use, or when the
/// client closed what it had kept, and for longer than `long` nanoseconds.
fn left(lives: &[&Life], dropped: &[Dropped], long: u64) -> u64 {
    let over = dropped.iter().map(|one| one.at).max().unwrap_or_default();
    let together = closed_together(lives).unwrap_or(Nanos(u64::MAX));
    let is_left = |life: &&&Life| {
        let (end, until) = (life.last_end(), life.until());
        end.is_some_and(|end| {
            let is_kept = (end <= over && until > over) || until >= together;
            is_kept && until.since(end) > long
        })
    };
    lives.iter().filter(is_left).count() as u64
}

/// Whether a client that closes connections right after a response does so because its pool is
/// full: nearly all of them carried exchanges while kept ones were busy, and were closed when about
/// the same number was idle again. A client per call closes its connection whether others are idle
/// or not.
pub(super) fn full_at(lives: &[&Life], margin: u64) -> Option<Full> {
    let (_, last_end) = last_use(lives)?;
    if busy_at_once(lives) < 2 {
        return None;
    }
    let mut dropped = dropped(lives, margin, last_end);
    let closed = closed_used_again(lives)?;
    let bursts = Bursts::of(lives);
    if bursts.is_some_and(|bursts| bursts.kept == 0) {
        return None;
    }
    if let Some(bursts) = bursts.filter(|bursts| bursts.closed >= CLOSED_LATER) {
        return Some(Full::of(lives, &dropped, bursts.kept as u64, closed));
    }
    dropped.sort_unstable_by_key(|one| one.kept);
    // those that a thread has in hand look idle too, so the number may be too high and not too low
    let usual = dropped.get(dropped.len() / 2)?.kept;
    let usual = bursts.map_or(usual, |bursts| bursts.kept);
    let as_many = AS_MANY * usual as f64;
    let is_full = |one: &&Dropped| one.kept_soon as f64 >= as_many && one.busy as f64 >= as_many;
    let full: Vec<&Dropped> = dropped.iter().filter(is_full).collect();
    if usual == 0 || (full.len() as f64) < NEARLY * dropped.len() as f64 {
        return None;
    }
    let again = full.iter().filter(|one| one.is_used_again).count();
    let room = Room::of(lives, &full, margin, last_end, again as u64);
    let kept = room.kept.max(1) as u64;
    let keeps = bursts.is_some_and(|bursts| bursts.closed > 0);
    if !keeps && (again as f64) < AGAIN * full.len() as f64 && room.ignored > 1.0 - NEARLY {
        return None;
    }
    let full_pool = Full::of(lives, &dropped, kept, closed);
    // some clients close their oldest connections, which have carried most
    let shows_room = keeps || room.is_mostly_so;
    if !shows_room && !ends_at_any_use(lives, closed_together(lives)?, full_pool.is_shared) {
        return None;
    }
    // calls in turn, each with a client, leave the same traces next to a single kept connection
    let is_clear = kept > 1 || closed > 0 || peak(full.iter().map(|one| one.span)) > 1;
    is_clear.then_some(full_pool)
}

/// Within which time, in nanoseconds, a program that ends closes its connections.
const TOGETHER: u64 = 1_000_000;

/// How many times longer the idle time of one that is kept must be than that of one that is closed.
const LONGER: u64 = 2;

/// Closed connections that were kept over a burst from which on they show a pool: next to a client
/// per call, which keeps none, there may be another one.
const CLOSED_LATER: usize = 2;

/// Least connections that are left of a shared pool: a worker may close its own one late.
const LEFT: f64 = 3.0;

/// Connections whose ends are looked at to find a full pool.
const LOOKED_AT: usize = 128;

/// The part of the ends that shows a full pool.
pub(super) const NEARLY: f64 = 0.7;

/// The part of the closes next to the same number of idle connections that shows how many a pool
/// keeps.
const CONCENTRATED: f64 = 0.33;

/// The part of the closed connections, had the client used them again, that shows a pool: a client
/// per call uses none again.
const AGAIN: f64 = 0.3;

/// The part of the usual number of idle connections that counts as the same number: which of them a
/// thread has in hand is not seen.
const AS_MANY: f64 = 0.5;
