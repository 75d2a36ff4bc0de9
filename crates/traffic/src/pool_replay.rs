//! One pool's openings in the order of their times: what each found, and which end it replaces.
//!
//! A pool is who can share connections: the connections of one process (where processes cannot be
//! seen, of one client address) to one destination.

use super::distributions::danger_from;
use super::history::{End, Life};
use super::open_reason::{AT_ONCE, OpenReason};
use super::pool_full::{Full, closed_together, full_at};
use super::pool_renewal::{Renewal, counts_requests, renewal};
use super::pool_rests::{IN_HAND, Intervals, before, idle, is_reusing, last_use, margin, rests};
use intact_ledger::{Nanos, Span};

/// How many idle connections the first requests of others would occupy at a moment, had their
/// client taken those; `in_place` is when they end.
fn taken(in_place: &mut Vec<Nanos>, at: Nanos) -> usize {
    in_place.retain(|end| *end > at);
    in_place.len()
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
        let streams =
            multiplexing.map(|life| (life.ready.after(margin), before(life.until(), margin)));
        let unread = lives.iter().filter(|life| life.has_rest);
        let unread = unread.filter_map(|life| Some((life.last_end()?, life.until())));
        let full = match counts_requests(lives) {
            true => None,
            false => full_at(lives, margin),
        };
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
            at_once: match full {
                Some(_) => longest_rest(lives).max(IN_HAND),
                None => at_once(lives),
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
        // a client that uses connections again closes none for a call after the last response
        let over = match self.is_reusing {
            true => last_use(self.lives).map(|(_, end)| end),
            false => closed_together(self.lives),
        };
        let ended = ended.map(|(life, end)| {
            let why = self.why_ended(life, end, &is_evicted);
            let is_given_up = matches!(why, OpenReason::GaveUp | OpenReason::Undrained);
            // the observer may see a close later than the client, which opens another one at once
            let is_last = over.is_some_and(|from| end.at >= from);
            let is_soon = why.is_at_once() || life.streams.is_some();
            let from = match is_soon && !is_last {
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

/// The longest time in nanoseconds after which the client used a connection again: its idle limit,
/// if it has one, is longer.
fn longest_rest(lives: &[&Life]) -> u64 {
    let rests = lives.iter().flat_map(|life| rests(life));
    let followed = rests.filter(|rest| rest.is_followed);
    let longest = followed.map(|rest| rest.to.since(rest.from)).max();
    longest.unwrap_or_default()
}

/// The reason of a connection that was opened while another one, opened for `why`, was set up: what
/// ended the one before is the reason of all.
fn in_parallel(why: OpenReason) -> OpenReason {
    match why {
        OpenReason::Growth | OpenReason::Unused | OpenReason::StreamsFree => OpenReason::InParallel,
        other => other,
    }
}
