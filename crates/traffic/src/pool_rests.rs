//! When the connections of a pool rest, are busy, or may be in a client's hand.
//!
//! A connection looks idle and is not while its client still reads the response, and while a thread
//! that took it has not written yet. The margin of a pool covers the first. It is measured on the
//! pool's new connections, from the end of their setup to their first request. [`IN_HAND`] covers
//! the second: where connections are used again, one that carries a request soon after an opening
//! may have been in hand then.

use super::history::Life;
use super::open_connection::HAND_BACK;
use super::open_reason::SEVERAL;
use super::overlap::Overlap;
use intact_ledger::{Nanos, Span};

/// How long before its first byte, in nanoseconds, a client that shares connections among threads
/// may have taken one, at most; also the longest margin.
pub(super) const IN_HAND: u64 = 250_000_000;

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
pub(super) fn margin(lives: &[&Life]) -> u64 {
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
pub(super) struct Rest {
    pub(super) from: Nanos,
    pub(super) to: Nanos,
    /// Whether an exchange follows.
    pub(super) is_followed: bool,
}

/// The rests of a connection.
pub(super) fn rests(life: &Life) -> impl Iterator<Item = Rest> {
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
pub(super) fn idle(lives: &[&Life], margin: u64) -> Intervals {
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
pub(super) fn busy_at_once(lives: &[&Life]) -> u64 {
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

/// Whether any connection of a pool carried a second exchange.
pub(super) fn is_reusing(lives: &[&Life]) -> bool {
    lives.iter().any(|life| life.carried > 1)
}

pub(super) fn before(moment: Nanos, nanos: u64) -> Nanos {
    match moment {
        Nanos(u64::MAX) => moment,
        Nanos(at) => Nanos(at.saturating_sub(nanos)),
    }
}

/// When the last request of a pool began, and when its last response ended.
pub(super) fn last_use(lives: &[&Life]) -> Option<(Nanos, Nanos)> {
    let uses = || lives.iter().filter_map(|life| life.uses.last());
    let last = uses().map(|one| one.span.start).max()?;
    let ends = uses().map(|one| one.span.end);
    Some((last, ends.max()?))
}

/// Most spans at the same time.
pub(super) fn peak(spans: impl Iterator<Item = Span>) -> u64 {
    let mut spans: Vec<Span> = spans.collect();
    spans.sort_unstable_by_key(|span| (span.start, span.end));
    let mut overlap = Overlap::default();
    spans.into_iter().for_each(|span| overlap.add(span));
    overlap.peak()
}
