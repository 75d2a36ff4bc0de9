//! One pool's openings in the order of their times: what each found, and which end it replaces.
//!
//! A pool is who can share connections: the connections of one process (where processes cannot be
//! seen, of one client address) to one destination.
//!
//! A connection looks idle and is not while its client still reads the response, and while a thread
//! that took it has not written yet. The margin of a pool covers the first. It is measured on the
//! pool's new connections, from the end of their setup to their first request. [`IN_HAND`] covers
//! the second: where connections are used again, one that carries a request soon after an opening
//! may have been in hand then.

use super::distributions::danger_from;
use super::history::{End, Life};
use super::open_connection::HAND_BACK;
use super::open_reason::{AT_ONCE, MANY, OpenReason};
use super::overlap::Overlap;
use super::pool_bursts::{Bursts, ends_at_any_use};
use super::pool_cause::SEVERAL;
use intact_ledger::{Nanos, Span};

/// How long before its first byte, in nanoseconds, a client that shares connections among threads
/// may have taken one, at most; also the longest margin.
const IN_HAND: u64 = 250_000_000;
/// Rests from which on they show how long a client may have a connection in hand.
const RESTS: usize = 20;
/// How many times longer than the median rest it may have one in hand.
const RESTS_LONG: u64 = 4;
/// The quantile of the measured times that the margin is twice of.
const MARGIN_QUANTILE: f64 = 0.9;

/// Intervals of several connections; answers how many contain a moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Intervals {
    starts: Vec<Nanos>,
    ends: Vec<Nanos>,
}

impl Intervals {
    /// The intervals from `from` to `to`, which is excluded; empty ones are left out.
    pub(super) fn new(intervals: impl Iterator<Item = (Nanos, Nanos)>) -> Intervals {
        let (mut starts, mut ends): (Vec<Nanos>, Vec<Nanos>) =
            intervals.filter(|(from, to)| from < to).unzip();
        starts.sort_unstable();
        ends.sort_unstable();
        Intervals { starts, ends }
    }

    /// All intervals together.
    pub(super) fn all<'a>(each: impl Iterator<Item = &'a Intervals> + Clone) -> Intervals {
        let mut starts: Vec<Nanos> = each.clone().flat_map(|one| &one.starts).copied().collect();
        let mut ends: Vec<Nanos> = each.flat_map(|one| &one.ends).copied().collect();
        starts.sort_unstable();
        ends.sort_unstable();
        Intervals { starts, ends }
    }

    /// The last end until a moment.
    pub(super) fn last_end(&self, moment: Nanos) -> Option<Nanos> {
        let ended = self.ends.partition_point(|end| *end <= moment);
        self.ends[..ended].last().copied()
    }

    pub(super) fn at(&self, moment: Nanos) -> usize {
        let begun = self.starts.partition_point(|start| *start <= moment);
        begun - self.ends.partition_point(|end| *end <= moment)
    }
}

/// The margin of a pool in nanoseconds; see the module.
fn margin(lives: &[&Life]) -> u64 {
    let mut held: Vec<u64> = lives
        .iter()
        .filter_map(|life| Some(life.first_sent?.since(life.ready)))
        .collect();
    held.sort_unstable();
    let place = (held.len() as f64 * MARGIN_QUANTILE) as usize;
    let held = held.get(place).copied().unwrap_or_default();
    (2 * held).clamp(HAND_BACK, IN_HAND)
}

/// A time without an exchange, after a complete response.
struct Rest {
    from: Nanos,
    to: Nanos,
    /// Whether an exchange follows.
    is_followed: bool,
}

/// The rests of a connection.
fn rests(life: &Life) -> impl Iterator<Item = Rest> {
    let end = life.until();
    let next = life.uses.iter().skip(1).map(|next| next.span.start);
    let next = next.map(move |next| (next.min(end), next < end));
    let rests = life.uses.iter().zip(next.chain([(end, false)]));
    rests.filter_map(|(one, (to, is_followed))| {
        let from = one.span.end;
        one.is_reusable.then_some(Rest {
            from,
            to,
            is_followed,
        })
    })
}

/// How long before its first byte a client may have taken a connection, in nanoseconds: most rests
/// of the pool's connections were longer than that. None where no connection was used again.
fn in_hand(lives: &[&Life]) -> u64 {
    if !is_reusing(lives) {
        return 0;
    }
    if is_sequential(lives) {
        return HAND_BACK;
    }
    let rests = lives.iter().flat_map(|life| rests(life));
    let followed = rests.filter(|rest| rest.is_followed);
    let mut times: Vec<u64> = followed.map(|rest| rest.to.since(rest.from)).collect();
    times.sort_unstable();
    match times.get(times.len() / 2) {
        Some(median) if times.len() >= RESTS => (RESTS_LONG * median).clamp(HAND_BACK, IN_HAND),
        _ => IN_HAND,
    }
}

/// Whether next to no requests of a pool began while another was in flight, of 20 at least: a
/// client without threads takes a connection when it writes. Some clients use two connections in
/// turn, of which one is not free at once.
fn is_sequential(lives: &[&Life]) -> bool {
    let open = lives.iter().map(|life| Span::new(life.at, life.until()));
    if peak(open) <= 2 {
        return false;
    }
    let uses = lives.iter().flat_map(|life| &life.uses);
    let mut spans: Vec<Span> = uses.map(|one| one.span).collect();
    spans.sort_unstable_by_key(|span| span.start);
    let (mut overlaps, mut busy_until) = (0, Nanos(0));
    for span in &spans {
        overlaps += usize::from(span.start < busy_until);
        busy_until = busy_until.max(span.end);
    }
    spans.len() >= RESTS && overlaps <= spans.len() / RESTS
}

/// When connections could have taken a request, beyond doubt.
fn idle(lives: &[&Life], margin: u64) -> Intervals {
    let is_reusing = is_reusing(lives);
    let in_hand = in_hand(lives);
    let kept_after = last_kept_after(lives);
    let margin_of_last = if are_in_turn(lives) { 0 } else { margin };
    let single = lives.iter().filter(|life| life.streams.is_none());
    let rests = single.flat_map(|life| rests(life).map(move |rest| (life, rest)));
    Intervals::new(
        rests.map(|(life, rest)| match (is_reusing, rest.is_followed) {
            (true, true) => (rest.from.after(margin), before(rest.to, in_hand)),
            (true, false) => (rest.from.after(margin_of_last), before(rest.to, margin)),
            // nothing shows that its client has one in hand
            (false, _) if kept_after.is_some_and(|over| rest.to > over) => (rest.from, rest.to),
            (false, _) if life.closed_by_client().is_some() => {
                (rest.from, outlived(lives, rest.to, margin))
            }
            (false, _) => (rest.from, before(rest.to, margin)),
        }),
    )
}

/// Whether each connection of a pool is used more than once, and no more when the next one has been
/// opened: no thread can have one in hand that is not used again. Of two, one may be a habit.
fn are_in_turn(lives: &[&Life]) -> bool {
    let is_reused = |life: &&Life| life.carried > 1;
    let are_in_turn = |two: &[&Life]| two[0].last_end().is_some_and(|end| end <= two[1].at);
    lives.len() > 2 && lives.iter().all(is_reused) && lives.windows(2).all(are_in_turn)
}

/// The end of the last response of a pool, if most of its connections were open then, and more than
/// calls at the same time leave: a delayed close explains a few.
fn last_kept_after(lives: &[&Life]) -> Option<Nanos> {
    let (_, over) = last_use(lives)?;
    let open = lives.iter().filter(|life| life.until() > over).count() as u64;
    let is_most = 2 * open > lives.len() as u64 && open >= SEVERAL;
    (is_most && open > 2 * busy_at_once(lives)).then_some(over)
}

/// Most exchanges of a pool at the same time.
fn busy_at_once(lives: &[&Life]) -> u64 {
    let uses = lives.iter().flat_map(|life| &life.uses);
    peak(uses.map(|one| one.span))
}

/// The end of the last opening for a call that a connection outlived which its client closed at
/// `end`. A client per call may end when the next one has its response, so one that is closed
/// before the opening after that was not kept. `lives` in the order of their openings.
fn outlived(lives: &[&Life], end: Nanos, margin: u64) -> Nanos {
    let before = &lives[..lives.partition_point(|life| life.at.after(margin) < end)];
    let is_kept_to_end = |life: &&&Life| {
        let over = life.last_end().unwrap_or(life.at);
        before.len() == lives.len() && over.after(margin) < end
    };
    let last = before.last().filter(is_kept_to_end);
    let last = last.or_else(|| before.iter().nth_back(1));
    last.map_or(Nanos(0), |life| life.at.after(1))
}

/// When connections were kept without an exchange, whether a client had them in hand or not:
/// another exchange follows, or `is_long` holds for the time without one.
pub(super) fn kept(lives: &[&Life], is_long: impl Fn(Nanos, Nanos) -> bool) -> Intervals {
    let rests = lives.iter().flat_map(|life| rests(life));
    let kept = rests.filter(|rest| rest.is_followed || is_long(rest.from, rest.to));
    Intervals::new(kept.map(|rest| (rest.from, rest.to)))
}

/// When connections of a pool that carry one exchange at a time were busy, or may have been in
/// hand.
pub(super) fn busy(lives: &[&Life]) -> Vec<Span> {
    let in_hand = in_hand(lives);
    let mut busy: Vec<Span> = Vec::new();
    for life in lives.iter().filter(|life| life.streams.is_none()) {
        let first = busy.len();
        for one in &life.uses {
            match busy[first..].last_mut() {
                Some(last) if one.span.start <= last.end.after(in_hand) => {
                    last.end = last.end.max(one.span.end);
                }
                _ => busy.push(one.span),
            }
        }
    }
    busy
}

/// How many idle connections the first requests of others would occupy at a moment, had their
/// client taken those; `in_place` is when they end.
fn taken(in_place: &mut Vec<Nanos>, at: Nanos) -> usize {
    in_place.retain(|end| *end > at);
    in_place.len()
}

/// Whether any connection of a pool carried a second exchange.
fn is_reusing(lives: &[&Life]) -> bool {
    lives.iter().any(|life| life.carried > 1)
}

fn before(moment: Nanos, nanos: u64) -> Nanos {
    match moment {
        Nanos(u64::MAX) => moment,
        Nanos(at) => Nanos(at.saturating_sub(nanos)),
    }
}

/// The replay of one pool.
pub(super) struct PoolReplay<'a> {
    /// In the order of their openings.
    lives: &'a [&'a Life],
    margin: u64,
    /// Whether any connection carried a second exchange.
    pub(super) is_reusing: bool,
    /// When connections could have taken a request, beyond doubt.
    idle: Intervals,
    /// When connections that multiplex could take a stream.
    streams: Intervals,
    /// When connections were of no use, because the client did not read their last response.
    unread: Intervals,
    /// The number of idle connections from which on the client closes further ones, if it does.
    full: Option<Full>,
    /// What the client counts to close connections, if it does.
    renewal: Option<Renewal>,
    /// When the connections of the pool were opened.
    openings: Vec<Nanos>,
    /// The idle time, in nanoseconds, below which its client closes a connection after its use.
    at_once: u64,
}

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
fn closed_together(lives: &[&Life]) -> Option<Nanos> {
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

/// When the last request of a pool began, and when its last response ended.
pub(super) fn last_use(lives: &[&Life]) -> Option<(Nanos, Nanos)> {
    let uses = || lives.iter().filter_map(|life| life.uses.last());
    let last = uses().map(|one| one.span.start).max()?;
    let ends = uses().map(|one| one.span.end);
    Some((last, ends.max()?))
}

/// Whether a client that closes connections right after a response does so because its pool is
/// full: nearly all of them carried exchanges while kept ones were busy, and were closed when about
/// the same number was idle again. A client per call closes its connection whether others are idle
/// or not.
fn full_at(lives: &[&Life], margin: u64) -> Option<Full> {
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
    let as_many = AS_MANY * usual as f64;
    let is_full = |one: &&Dropped| one.kept_soon as f64 >= as_many && one.busy as f64 >= as_many;
    let full: Vec<&Dropped> = dropped.iter().filter(is_full).collect();
    if usual == 0 || (full.len() as f64) < NEARLY * dropped.len() as f64 {
        return None;
    }
    let again = full.iter().filter(|one| one.is_used_again).count();
    let room = Room::of(lives, &full, margin, last_end, again as u64);
    let kept = room.kept.max(1) as u64;
    if (again as f64) < AGAIN * full.len() as f64 && room.ignored > 1.0 - NEARLY {
        return None;
    }
    let full_pool = Full::of(lives, &dropped, kept, closed);
    // some clients close their oldest connections, which have carried most
    let shows_room = bursts.is_some_and(|bursts| bursts.closed > 0) || room.is_mostly_so;
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
const NEARLY: f64 = 0.7;
/// The part of the closes next to the same number of idle connections that shows how many a pool
/// keeps.
const CONCENTRATED: f64 = 0.33;
/// The part of the closed connections, had the client used them again, that shows a pool: a client
/// per call uses none again.
const AGAIN: f64 = 0.3;
/// The part of the usual number of idle connections that counts as the same number: which of them a
/// thread has in hand is not seen.
const AS_MANY: f64 = 0.5;

/// Most spans at the same time.
pub(super) fn peak(spans: impl Iterator<Item = Span>) -> u64 {
    let mut spans: Vec<Span> = spans.collect();
    spans.sort_unstable_by_key(|span| (span.start, span.end));
    let mut overlap = Overlap::default();
    spans.into_iter().for_each(|span| overlap.add(span));
    overlap.peak()
}

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

/// What a client counts, if it closes nearly each connection that it closes right after a response
/// after the same number of requests, or all of them at the same age. Where no end is seen, what
/// the client or the server counts.
fn renewal(lives: &[&Life]) -> Option<Renewal> {
    let (last, _) = last_use(lives)?;
    if lives.iter().all(|life| life.end.is_none()) {
        return carried_alike(lives).map(Renewal::Requests);
    }
    let is_closed = |life: &&&Life| life.closed_after_use().is_some_and(|at| at < last);
    let closed: Vec<&&Life> = lives.iter().filter(is_closed).collect();
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

/// An end that an opening may replace.
struct Ended {
    /// The earliest moment at which the client may have known of it.
    from: Nanos,
    /// Since when the connection was idle.
    idle_since: Nanos,
    why: OpenReason,
}

impl Ended {
    /// Why a connection was opened in its place: where the server would have closed it by then, the
    /// client's idle limit is not the reason.
    fn replaced_at(self, at: Nanos, server_limit: Option<u64>) -> OpenReason {
        let pause = at.since(self.idle_since);
        let is_too_long = server_limit.is_some_and(|limit| pause >= danger_from(limit));
        match self.why {
            OpenReason::ClientIdle if is_too_long => OpenReason::PauseTooLong,
            other => other,
        }
    }
}

impl<'a> PoolReplay<'a> {
    /// `lives` in the order of their openings.
    pub(super) fn new(lives: &'a [&'a Life]) -> PoolReplay<'a> {
        let margin = margin(lives);
        let multiplexing = lives.iter().filter(|life| life.streams.is_some());
        let streams = multiplexing.map(|life| (life.ready.after(margin), life.until()));
        let unread = lives.iter().filter(|life| life.has_rest);
        let unread = unread.filter_map(|life| Some((life.last_end()?, life.until())));
        let full = full_at(lives, margin);
        PoolReplay {
            lives,
            margin,
            is_reusing: is_reusing(lives),
            idle: idle(lives, margin),
            streams: Intervals::new(streams),
            unread: Intervals::new(unread),
            renewal: if full.is_none() { renewal(lives) } else { None },
            full,
            openings: lives.iter().map(|life| life.at).collect(),
            at_once: if full.is_some() {
                IN_HAND
            } else {
                at_once(lives)
            },
        }
    }

    /// Whether an idle time in nanoseconds, after which the client closed a connection, may be a
    /// limit.
    pub(super) fn is_limit(&self, idle: u64) -> bool {
        idle >= self.at_once
    }

    /// Why each connection was opened. `first` is the reason of the first one, `server_limit` the
    /// time for which the server keeps idle connections, in nanoseconds, and `is_evicted` whether
    /// the pool of all destinations closed a connection to make room.
    pub(super) fn reasons(
        &self,
        first: OpenReason,
        server_limit: Option<u64>,
        is_evicted: impl Fn(&Life, End) -> bool,
    ) -> Vec<OpenReason> {
        let mut ended = self.ended(is_evicted);
        ended.sort_by_key(|end| std::cmp::Reverse(end.from));
        let mut free: Vec<Ended> = Vec::new();
        let mut first = Some(first);
        let mut in_setup: Vec<(Span, OpenReason)> = Vec::new();
        let mut in_place: Vec<Nanos> = Vec::new();
        let mut reasons: Vec<OpenReason> = Vec::with_capacity(self.lives.len());
        for life in self.lives {
            while let Some(end) = ended.pop_if(|end| end.from <= life.at) {
                free.push(end);
            }
            let first = first.take();
            let why = if life.is_unseen {
                OpenReason::Unseen
            } else if life.is_spare && self.is_overtaken(life) {
                OpenReason::Growth
            } else if life.is_spare {
                OpenReason::Unused
            } else if self.streams.at(life.at) > 0 {
                OpenReason::StreamsFree
            } else if self.unread.at(life.at) > 0 {
                OpenReason::Undrained
            } else if self.idle.at(life.at) > taken(&mut in_place, life.at) {
                let first = life.uses.first();
                in_place.extend(first.map(|one| one.span.end));
                OpenReason::IdleExisted
            } else {
                let others = in_setup.iter().rev();
                let mut others = others.filter(|(setup, _)| life.at < setup.end);
                let parallel = others.next().map(|(_, why)| in_parallel(*why));
                let replaced = free.pop().map(|end| end.replaced_at(life.at, server_limit));
                let why = replaced.or(parallel).or(first);
                why.unwrap_or(OpenReason::Growth)
            };
            if life.streams.is_some() {
                let setup = Span::new(life.at, life.ready.after(self.margin));
                in_setup.push((setup, why));
            }
            reasons.push(why);
        }
        for (life, why) in self.lives.iter().zip(&mut reasons) {
            let mut others = in_setup.iter();
            if life.is_spare
                && let Some((_, other)) =
                    others.find(|(setup, _)| setup.start <= life.ready && life.at <= setup.end)
            {
                *why = in_parallel(*other);
            }
        }
        reasons
    }

    /// Whether a connection without a request was opened for one that got another connection
    /// first: none was idle, and one became free during its setup.
    fn is_overtaken(&self, spare: &Life) -> bool {
        let setup = spare.at..spare.ready.after(self.margin);
        let reused = || self.lives.iter().flat_map(|life| life.uses.iter().skip(1));
        spare.streams.is_none()
            && self.idle.at(spare.at) == 0
            && reused().any(|one| setup.contains(&one.span.start))
    }

    /// When other processes would need a connection of their own, although this pool has one: it is
    /// idle, or the pool keeps what it opens.
    pub(super) fn held(&self) -> Intervals {
        match self.is_reusing {
            true => Intervals::new(self.lives.iter().map(|life| (life.at, life.until()))),
            false => self.idle.clone(),
        }
    }

    /// Whether the client closes connections because its pool has no room for them.
    pub(super) fn full(&self) -> Option<Full> {
        self.full
    }

    /// What the client counts to close connections, if it does.
    pub(super) fn renewal(&self) -> Option<Renewal> {
        self.renewal
    }

    /// The ends that openings may replace.
    fn ended(&self, is_evicted: impl Fn(&Life, End) -> bool) -> Vec<Ended> {
        let seen = self.lives.iter().filter(|life| !life.is_spare);
        let ended = seen.filter_map(|life| Some((*life, life.ended()?)));
        let together = closed_together(self.lives);
        let last = last_use(self.lives).map(|(_, end)| end);
        let ended = ended.map(|(life, end)| {
            let why = self.why_ended(life, end, &is_evicted);
            let is_given_up = matches!(why, OpenReason::GaveUp | OpenReason::Undrained);
            // the observer may see a close later than the client, which opens another one at once
            let is_last = together.is_some_and(|from| end.at >= from)
                || last.is_some_and(|last| self.is_reusing && end.at >= last);
            let from = match why.is_at_once() && !is_last {
                true if is_given_up => before(end.at, self.margin),
                true => {
                    let over = life.last_end().unwrap_or(life.at);
                    before(end.at, self.margin).max(over)
                }
                false => end.at,
            };
            let from = from.max(life.at.after(1));
            let idle_since = life.last_end().unwrap_or(life.at);
            Ended {
                from,
                idle_since,
                why,
            }
        });
        ended.collect()
    }

    fn why_ended(
        &self,
        life: &Life,
        end: End,
        is_evicted: impl Fn(&Life, End) -> bool,
    ) -> OpenReason {
        let idle = life.last_end().map_or(u64::MAX, |last| end.at.since(last));
        let why = match end.why {
            OpenReason::ClientIdle if !self.is_limit(idle) => OpenReason::ClientAtOnce,
            other => other,
        };
        match why {
            OpenReason::ClientIdle | OpenReason::ClientAtOnce if is_evicted(life, end) => {
                OpenReason::Evicted
            }
            OpenReason::ClientAtOnce | OpenReason::ClientRenewed if self.full.is_some() => {
                OpenReason::PoolFull
            }
            OpenReason::ClientAtOnce | OpenReason::ClientRenewed => match self.renewal {
                Some(renewal) if renewal.is_usual() => OpenReason::ClientRenewed,
                Some(_) => OpenReason::ClientAtOnce,
                None => why,
            },
            OpenReason::ClientIdle if self.is_of_a_call(life, end.at) => OpenReason::PerCall,
            other => other,
        }
    }

    /// Whether a connection was closed because its client ended, and that of the next call took its
    /// place: no connection is used twice, and no client has so short an idle limit. Near to one,
    /// the close is next to the opening, too.
    fn is_of_a_call(&self, life: &Life, at: Nanos) -> bool {
        let idle = life.last_end().map_or(u64::MAX, |end| at.since(end));
        let next = self
            .openings
            .partition_point(|opened| opened.after(self.margin) < at);
        let is_next_to = |opened: &Nanos| *opened <= at.after(self.margin);
        let is_replaced = || self.openings.get(next).is_some_and(is_next_to);
        !self.is_reusing
            && (idle < LEAST_IDLE_LIMIT / 2 || (idle < LEAST_IDLE_LIMIT && is_replaced()))
    }
}

/// The shortest idle limit that clients have, in nanoseconds.
const LEAST_IDLE_LIMIT: u64 = 1_000_000_000;

/// The idle time in nanoseconds below which a client closes a connection after its use. One that
/// closes most right after a response has no limit that is shorter than any client's: on a busy
/// machine some closes come late.
fn at_once(lives: &[&Life]) -> u64 {
    let closed = lives.iter().filter_map(|life| life.closed_by_client());
    let (late, all) = closed.fold((0, 0), |(late, all), end| {
        (late + u32::from(end.why == OpenReason::ClientIdle), all + 1)
    });
    if 2 * late <= all {
        LEAST_IDLE_LIMIT
    } else {
        AT_ONCE
    }
}

/// The reason of a connection that was opened while another one, opened for `why`, was set up: what
/// ended the one before is the reason of all.
fn in_parallel(why: OpenReason) -> OpenReason {
    match why {
        OpenReason::Growth | OpenReason::Unused | OpenReason::StreamsFree => OpenReason::InParallel,
        other => other,
    }
}
