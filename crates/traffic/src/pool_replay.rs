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
use super::open_reason::{AT_ONCE, OpenReason};
use super::overlap::Overlap;
use intact_ledger::{Nanos, Span};

/// How long before its first byte, in nanoseconds, a client that shares connections among threads
/// may have taken one; also the longest margin.
const IN_HAND: u64 = 250_000_000;
/// The quantile of the measured times that the margin is twice of.
const MARGIN_QUANTILE: f64 = 0.9;

/// Intervals of several connections; answers how many contain a moment.
#[derive(Debug, Default)]
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

/// When connections could have taken a request, beyond doubt.
fn idle(lives: &[&Life], margin: u64) -> Intervals {
    let (after, in_hand) = match is_reusing(lives) {
        true => (margin, IN_HAND),
        // nothing shows that its client would have used a connection again
        false => (0, margin),
    };
    let single = lives.iter().filter(|life| life.streams.is_none());
    let rests = single.flat_map(|life| rests(life));
    Intervals::new(rests.map(|rest| {
        let before_end = if rest.is_followed { in_hand } else { margin };
        (rest.from.after(after), before(rest.to, before_end))
    }))
}

/// When connections were kept without an exchange, whether a client had them in hand or not.
pub(super) fn kept(lives: &[&Life], margin: u64) -> Intervals {
    let rests = lives.iter().flat_map(|life| rests(life));
    let kept = rests.filter(|rest| rest.is_followed || rest.to.since(rest.from) > margin);
    Intervals::new(kept.map(|rest| (rest.from, rest.to)))
}

/// When connections of a pool that carry one exchange at a time were busy, or may have been in
/// hand.
pub(super) fn busy(lives: &[&Life]) -> Vec<Span> {
    let in_hand = match is_reusing(lives) {
        true => IN_HAND,
        false => 0,
    };
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
    is_reusing: bool,
    /// When connections could have taken a request, beyond doubt.
    pub(super) idle: Intervals,
    /// When connections that multiplex could take a stream.
    streams: Intervals,
    /// When connections were of no use, because the client did not read their last response.
    unread: Intervals,
    /// The number of idle connections from which on the client closes further ones, if it does.
    full: Option<Full>,
    /// When the connections of the pool were opened.
    openings: Vec<Nanos>,
}

/// A pool that closes a connection after its use when it has no room for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Full {
    /// Idle connections that it keeps.
    pub(super) kept: u64,
    /// Connections that it closed after it had used them again.
    pub(super) closed: u64,
    /// Connections that it kept, idle, to the end of its program.
    pub(super) left: u64,
}

/// A connection that the client closed right after a response.
struct Dropped {
    span: Span,
    /// Others that were idle when it was closed, or soon afterwards: a pool that closes its oldest
    /// connection does so before the next one is back.
    kept: usize,
    /// Others that were used again and busy meanwhile.
    busy: usize,
}

/// Up to [`LOOKED_AT`] of the connections that a client closed right after a response, while a
/// request was to come; and how many of all it had used again. `last` is when the last request
/// began: what is closed later may be the end of the program.
fn dropped(lives: &[&Life], margin: u64, last: Nanos) -> (Vec<Dropped>, u64) {
    let is_at_once = |end: &End| {
        matches!(
            end.why,
            OpenReason::ClientAtOnce | OpenReason::ClientRenewed
        )
    };
    let ends = lives.iter().filter_map(|life| {
        let end = life.ended().filter(is_at_once)?;
        (end.at < last).then_some((life, end.at))
    });
    let ends: Vec<(&&Life, Nanos)> = ends.collect();
    let used_again = ends.iter().filter(|(life, _)| life.carried > 1).count() as u64;
    let each = ends.len().div_ceil(LOOKED_AT).max(1);
    let looked_at = ends.into_iter().step_by(each);
    let dropped = looked_at.filter_map(|(life, at)| {
        let span = Span::new(life.at, life.last_end()?);
        let others = || lives.iter().filter(|other| other.id != life.id);
        let soon = at.after(margin);
        let is_kept = |other: &&&Life| {
            let is_there = other.at <= soon && at < other.until();
            let mut rests = rests(other).filter(|rest| rest.from <= soon && at < rest.to);
            is_there
                && rests.any(|rest| {
                    let is_long = rest.to.since(rest.from) > margin;
                    rest.is_followed || is_long || rest.to >= last
                })
        };
        let is_busy = |other: &&&Life| {
            let mut spans = other.uses.iter().map(|one| one.span);
            other.carried > 1 && spans.any(|one| one.start <= span.end && span.start <= one.end)
        };
        Some(Dropped {
            span,
            kept: others().filter(is_kept).count(),
            busy: others().filter(is_busy).count(),
        })
    });
    (dropped.collect(), used_again)
}

/// Whether a connection was idle when the last request of its pool had begun, and was not closed
/// after its use.
fn is_left(life: &Life, last: Nanos) -> bool {
    let idle = life.last_end().map(|end| life.until().since(end));
    life.until() >= last && idle > Some(HAND_BACK)
}

/// Whether a client that closes connections right after a response does so because its pool is
/// full: nearly all of them carried exchanges while kept ones were busy, and were closed when about
/// the same number was idle again. A client per call closes its connection whether others are idle
/// or not.
fn full_at(lives: &[&Life], margin: u64) -> Option<Full> {
    let starts = lives.iter().filter_map(|life| life.uses.last());
    let last = starts.map(|one| one.span.start).max()?;
    let (mut dropped, closed) = dropped(lives, margin, last);
    dropped.sort_unstable_by_key(|one| one.kept);
    // those that a thread has in hand look idle too, so the number may be too high and not too low
    let as_many = AS_MANY * dropped.get(dropped.len() / 2)?.kept as f64;
    let is_full =
        |one: &&Dropped| one.kept > 0 && one.kept as f64 >= as_many && one.busy as f64 >= as_many;
    let full: Vec<&Dropped> = dropped.iter().filter(is_full).collect();
    if (full.len() as f64) < NEARLY * dropped.len() as f64 {
        return None;
    }
    let kept = full.first()?.kept as u64;
    // calls in turn, each with a client, leave the same traces next to a single kept connection
    let is_clear = kept > 1 || closed > 0 || peak(full.iter().map(|one| one.span)) > 1;
    let left = lives.iter().filter(|life| is_left(life, last)).count() as u64;
    is_clear.then_some(Full { kept, closed, left })
}

/// Connections whose ends are looked at to find a full pool.
const LOOKED_AT: usize = 128;
/// The part of the ends that shows a full pool.
const NEARLY: f64 = 0.7;
/// The part of the usual number of idle connections that counts as the same number: which of them a
/// thread has in hand is not seen.
const AS_MANY: f64 = 0.6;

/// Most spans at the same time.
pub(super) fn peak(spans: impl Iterator<Item = Span>) -> u64 {
    let mut spans: Vec<Span> = spans.collect();
    spans.sort_unstable_by_key(|span| (span.start, span.end));
    let mut overlap = Overlap::default();
    spans.into_iter().for_each(|span| overlap.add(span));
    overlap.peak()
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
        PoolReplay {
            lives,
            margin,
            is_reusing: is_reusing(lives),
            idle: idle(lives, margin),
            streams: Intervals::new(streams),
            unread: Intervals::new(unread),
            full: full_at(lives, margin),
            openings: lives.iter().map(|life| life.at).collect(),
        }
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
        let mut reasons: Vec<OpenReason> = Vec::with_capacity(self.lives.len());
        for life in self.lives {
            while let Some(end) = ended.pop_if(|end| end.from <= life.at) {
                free.push(end);
            }
            let first = first.take();
            let why = if life.is_unseen {
                OpenReason::Unseen
            } else if life.is_spare {
                OpenReason::Unused
            } else if self.streams.at(life.at) > 0 {
                OpenReason::StreamsFree
            } else if self.unread.at(life.at) > 0 {
                OpenReason::Undrained
            } else if self.idle.at(life.at) > 0 {
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

    /// Whether the client closes connections because its pool has no room for them.
    pub(super) fn full(&self) -> Option<Full> {
        self.full
    }

    /// The ends that openings may replace.
    fn ended(&self, is_evicted: impl Fn(&Life, End) -> bool) -> Vec<Ended> {
        let seen = self.lives.iter().filter(|life| !life.is_spare);
        let ended = seen.filter_map(|life| Some((*life, life.ended()?)));
        let ended = ended.map(|(life, end)| {
            let why = self.why_ended(life, end, &is_evicted);
            let is_given_up = matches!(why, OpenReason::GaveUp | OpenReason::Undrained);
            // the observer may see a close later than the client, which opens another one at once
            let from = match why.is_at_once() {
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
            OpenReason::ClientIdle if idle < AT_ONCE => OpenReason::ClientAtOnce,
            other => other,
        };
        match why {
            OpenReason::ClientIdle | OpenReason::ClientAtOnce if is_evicted(life, end) => {
                OpenReason::Evicted
            }
            OpenReason::ClientAtOnce | OpenReason::ClientRenewed if self.full.is_some() => {
                OpenReason::PoolFull
            }
            OpenReason::ClientIdle if self.is_of_a_call(life, end.at) => OpenReason::PerCall,
            other => other,
        }
    }

    /// Whether a connection was closed because the client of the next call replaced its client: the
    /// close is next to the opening, no connection is used twice, and no client has so short an
    /// idle limit.
    fn is_of_a_call(&self, life: &Life, at: Nanos) -> bool {
        let idle = life.last_end().map_or(u64::MAX, |end| at.since(end));
        let next = self
            .openings
            .partition_point(|opened| opened.after(self.margin) < at);
        let is_next_to = |opened: &Nanos| *opened <= at.after(self.margin);
        idle < LEAST_IDLE_LIMIT
            && !self.is_reusing
            && self.openings.get(next).is_some_and(is_next_to)
    }
}

/// The shortest idle limit that clients have, in nanoseconds.
const LEAST_IDLE_LIMIT: u64 = 1_000_000_000;

/// The reason of a connection that was opened while another one, opened for `why`, was set up: what
/// ended the one before is the reason of all.
fn in_parallel(why: OpenReason) -> OpenReason {
    match why {
        OpenReason::Growth | OpenReason::Unused | OpenReason::StreamsFree => OpenReason::InParallel,
        other => other,
    }
}
