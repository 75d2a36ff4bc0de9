//! One cause for each pool: what explains its openings together, so that the moment at which a
//! single close is seen does not decide.

use super::history::{End, History, Life};
use super::open_connection::{HAND_BACK, PoolOwner};
use super::open_reason::OpenReason;
use super::pool_replay::{Full, Intervals, PoolReplay, busy, is_reusing, kept, peak};
use intact_ledger::{Nanos, Span};
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;

/// Openings with a reason from which on those without one have the same.
const SEVERAL: u64 = 3;

/// Openings by their reason.
pub(super) type Reasons = BTreeMap<OpenReason, u64>;

/// Why connections were opened, by destination.
#[derive(Debug, Default)]
pub(crate) struct Causes {
    reasons: HashMap<usize, Reasons>,
    /// The shortest idle time after which the client closed, in nanoseconds.
    client_idle: HashMap<usize, u64>,
    /// The pool that closed most connections because it was full.
    full: HashMap<usize, Full>,
    /// Most connections that were busy at the same time.
    busy: HashMap<usize, u64>,
    /// Openings of pools that use connections again, for which no reason is seen.
    growth: HashMap<usize, u64>,
}

impl Causes {
    /// `server_limit` is the time for which the server of a destination keeps idle connections, in
    /// nanoseconds.
    pub(super) fn of(history: &History, server_limit: impl Fn(usize) -> Option<u64>) -> Causes {
        let pools = pools(history);
        let mut causes = Causes {
            busy: busy_at_once(&pools),
            ..Causes::default()
        };
        let owners = Owners::of(&pools);
        let replays: Replays<'_> = pools
            .iter()
            .map(|(&pool, lives)| (pool, PoolReplay::new(lives)))
            .collect();
        let processes = Processes::of(&pools, &replays);
        for (&(destination, owner, server), lives) in &pools {
            let first = processes.first_reason(&replays, destination, owner, lives[0]);
            let is_evicted = |life: &Life, end: End| owners.has_evicted(life, end);
            let replay = &replays[&(destination, owner, server)];
            let mut reasons = Reasons::new();
            for why in replay.reasons(first, server_limit(destination), is_evicted) {
                *reasons.entry(why).or_default() += 1;
            }
            unify(&mut reasons, lives);
            let is_single = lives.iter().all(|life| life.streams.is_none());
            if is_reusing(lives) && is_single {
                let growth = reasons.get(&OpenReason::Growth).copied();
                *causes.growth.entry(destination).or_default() += growth.unwrap_or(0);
            }
            let all = causes.reasons.entry(destination).or_default();
            for (why, openings) in reasons {
                *all.entry(why).or_default() += openings;
            }
            if let Some(full) = replay.full() {
                let known = causes.full.entry(destination).or_insert(full);
                if known.closed < full.closed {
                    *known = full;
                }
            }
            let limit = lives.iter().filter_map(|life| owners.idle_limit(life));
            if let Some(limit) = limit.min() {
                let known = causes.client_idle.entry(destination).or_insert(limit);
                *known = limit.min(*known);
            }
        }
        causes
    }

    /// Most connections to a destination that were busy at the same time, of those that carry one
    /// exchange at a time.
    pub(super) fn busy(&self, destination: usize) -> u64 {
        self.busy.get(&destination).copied().unwrap_or(0)
    }

    /// The connections that were opened because all others were busy or in hand, where a client
    /// that uses connections again opened next to none for any other reason: it needs them,
    /// although their requests may not overlap.
    pub(super) fn grown(&self, destination: usize) -> u64 {
        let explained = self.reasons(destination);
        let explained = explained.filter(|(why, _)| *why != OpenReason::Growth);
        let explained: u64 = explained.map(|(_, openings)| openings).sum();
        let grown = self.growth.get(&destination).copied();
        grown.filter(|_| explained < SEVERAL).unwrap_or(0)
    }

    /// Why the connections to a destination were opened, and how many for each reason.
    pub(super) fn reasons(&self, destination: usize) -> impl Iterator<Item = (OpenReason, u64)> {
        let reasons = self.reasons.get(&destination).into_iter().flatten();
        reasons.map(|(why, openings)| (*why, *openings))
    }

    /// How many connections were opened for a reason.
    pub(super) fn openings(&self, destination: usize, why: OpenReason) -> u64 {
        let reasons = self.reasons.get(&destination);
        reasons.and_then(|all| all.get(&why)).copied().unwrap_or(0)
    }

    /// The shortest idle time after which the client closed a connection to a destination, in
    /// nanoseconds. What a program closes at its end has no idle limit.
    pub(super) fn client_idle(&self, destination: usize) -> Option<u64> {
        self.client_idle.get(&destination).copied()
    }

    /// The pool of a destination that closed connections because it had no room for them.
    pub(super) fn full(&self, destination: usize) -> Option<Full> {
        self.full.get(&destination).copied()
    }

    /// Assigns avoidable connections that have no reason of their own to the reason of most others,
    /// `avoidable` being all of them.
    pub(super) fn absorb(&mut self, destination: usize, avoidable: u64) {
        let Some(reasons) = self.reasons.get_mut(&destination) else {
            return;
        };
        let explained = |why: &OpenReason| !matches!(why, OpenReason::Growth | OpenReason::Unseen);
        let known: u64 = (reasons.iter().filter(|(why, _)| explained(why)))
            .map(|(_, openings)| *openings)
            .sum();
        let growth = reasons.get(&OpenReason::Growth).copied().unwrap_or(0);
        let rest = avoidable.saturating_sub(known).min(growth);
        let most = reasons.iter_mut().filter(|(why, _)| explained(why));
        if let Some((_, openings)) = most.max_by_key(|(_, openings)| **openings)
            && 2 * *openings > known
        {
            *openings += rest;
            reasons.insert(OpenReason::Growth, growth - rest);
        }
    }
}

/// The destination of a pool and its owner, and the server where the pool has connections to each.
type PoolKey = (usize, PoolOwner, Option<SocketAddr>);
/// The connections of each pool, in the order of their openings.
type Pools<'a> = BTreeMap<PoolKey, Vec<&'a Life>>;
/// The replay of each pool.
type Replays<'a> = BTreeMap<PoolKey, PoolReplay<'a>>;

fn pools(history: &History) -> Pools<'_> {
    let mut owners: HashMap<(usize, PoolOwner), Vec<&Life>> = HashMap::new();
    for life in history.lives() {
        let owner = (life.destination, life.owner);
        owners.entry(owner).or_default().push(life);
    }
    let mut pools = Pools::new();
    for ((destination, owner), lives) in owners {
        let balances = is_balanced(&lives);
        for life in lives {
            let server = life.server.filter(|_| balances);
            let pool = pools.entry((destination, owner, server)).or_default();
            pool.push(life);
        }
    }
    for lives in pools.values_mut() {
        lives.sort_unstable_by_key(|life| (life.at, life.id));
    }
    pools
}

/// Whether a client keeps connections to several servers of one name and uses them in turn: each
/// server needs connections of its own then.
fn is_balanced(lives: &[&Life]) -> bool {
    let reused = lives.iter().filter(|life| life.carried > 1);
    let mut times: Vec<_> = reused
        .filter_map(|life| {
            Some((
                life.uses.first()?.span.start,
                life.last_end()?,
                life.server?,
            ))
        })
        .collect();
    times.sort_unstable();
    let mut ends: HashMap<SocketAddr, Nanos> = HashMap::new();
    times.into_iter().any(|(first, last, server)| {
        let mut others = ends.iter().filter(|(other, _)| **other != server);
        let is_next_to = others.any(|(_, end)| first < *end);
        let end = ends.entry(server).or_insert(last);
        *end = last.max(*end);
        is_next_to
    })
}

/// Most connections to each destination that were busy at the same time, of those that carry one
/// exchange at a time.
fn busy_at_once(pools: &Pools<'_>) -> HashMap<usize, u64> {
    let mut all: HashMap<usize, Vec<Span>> = HashMap::new();
    for ((destination, ..), lives) in pools {
        all.entry(*destination).or_default().extend(busy(lives));
    }
    let each = all.into_iter();
    each.map(|(destination, spans)| (destination, peak(spans.into_iter())))
        .collect()
}

/// What the processes that call a destination had when another one began. Computed once for all:
/// there may be a process for each connection.
struct Processes {
    /// When any of them had an idle connection.
    idle: HashMap<usize, Intervals>,
    /// When a connection of each pool first ended that had carried something, the earliest first.
    ended: HashMap<usize, Vec<(Nanos, PoolOwner)>>,
}

impl Processes {
    fn of(pools: &Pools<'_>, replays: &Replays<'_>) -> Processes {
        let mut ended: HashMap<usize, Vec<(Nanos, PoolOwner)>> = HashMap::new();
        let mut idle: HashMap<usize, Vec<&Intervals>> = HashMap::new();
        for (pool @ (destination, owner, _), lives) in pools {
            idle.entry(*destination)
                .or_default()
                .push(&replays[pool].idle);
            let used = lives.iter().filter(|life| life.carried > 0);
            let first = used.map(|life| life.until()).min();
            let ends = ended.entry(*destination).or_default();
            ends.extend(first.map(|first| (first, *owner)));
        }
        for ends in ended.values_mut() {
            ends.sort_unstable();
        }
        let idle = idle.into_iter();
        Processes {
            idle: idle
                .map(|(destination, each)| (destination, Intervals::all(each.iter().copied())))
                .collect(),
            ended,
        }
    }

    /// The reason of the first connection of a pool: without processes there is one owner.
    fn first_reason(
        &self,
        replays: &Replays<'_>,
        destination: usize,
        owner: PoolOwner,
        first: &Life,
    ) -> OpenReason {
        if !matches!(owner, PoolOwner::Process(_)) {
            return OpenReason::Growth;
        }
        let same = replays.range((destination, owner, None)..);
        let own = same.take_while(|((at, of, _), _)| (*at, *of) == (destination, owner));
        let own: usize = own.map(|(_, replay)| replay.idle.at(first.at)).sum();
        if self.idle[&destination].at(first.at) > own {
            return OpenReason::OtherProcess;
        }
        let ended = self.ended[&destination].iter();
        let mut ended = ended.take_while(|(end, _)| *end <= first.at);
        match ended.any(|(_, other)| *other != owner) {
            true => OpenReason::NewProcess,
            false => OpenReason::Growth,
        }
    }
}

/// Whether a client did it: such openings of one pool have one cause.
fn is_of_client(why: OpenReason) -> bool {
    use OpenReason::{ClientAtOnce, ClientIdle, Evicted, IdleExisted, PerCall, PoolFull};
    matches!(
        why,
        IdleExisted | PoolFull | ClientAtOnce | ClientIdle | Evicted | PerCall
    )
}

/// Assigns what the client did in a pool to one cause: the most frequent one. An idle limit of a
/// client that reuses connections is a second one.
fn unify(reasons: &mut Reasons, lives: &[&Life]) {
    let is_reusing = is_reusing(lives);
    let is_one =
        |why: OpenReason| is_of_client(why) && !(is_reusing && why == OpenReason::ClientIdle);
    let all = reasons.iter().filter(|(why, _)| is_one(**why));
    let Some(cause) = all
        .max_by_key(|(_, openings)| **openings)
        .map(|(why, _)| *why)
    else {
        return;
    };
    let mut openings = 0;
    reasons.retain(|why, count| {
        let is_one = is_one(*why);
        openings += if is_one { *count } else { 0 };
        !is_one
    });
    reasons.insert(cause, openings);
}

/// What the owners of connections did, to all destinations.
struct Owners {
    each: HashMap<PoolOwner, OwnerTimes>,
}

#[derive(Default)]
struct OwnerTimes {
    /// When connections were opened that lead to a known origin, and where.
    openings: Vec<(Nanos, usize)>,
    /// When idle connections were kept, by destination.
    kept: HashMap<usize, Vec<Intervals>>,
    /// The last moment at which a connection was opened or a request sent.
    last: Nanos,
}

impl Owners {
    fn of(pools: &Pools<'_>) -> Owners {
        let mut each: HashMap<PoolOwner, OwnerTimes> = HashMap::new();
        for (&(destination, owner, _), lives) in pools {
            let times = each.entry(owner).or_default();
            let opened = lives.iter().filter(|life| life.carried > 0);
            times
                .openings
                .extend(opened.map(|life| (life.at, destination)));
            let all = times.kept.entry(destination).or_default();
            all.push(kept(lives, HAND_BACK));
            for life in lives {
                let last = life.uses.last().map_or(life.at, |one| one.span.start);
                times.last = times.last.max(last).max(life.at);
            }
        }
        for times in each.values_mut() {
            times.openings.sort_unstable();
        }
        Owners { each }
    }

    /// Whether a pool closed a connection for one to another destination: the same owner opened one
    /// at that moment, and keeps idle ones to further destinations. Otherwise the client itself may
    /// have ended, and another one begun.
    fn has_evicted(&self, life: &Life, end: End) -> bool {
        let Some(times) = self.each.get(&life.owner) else {
            return false;
        };
        let first = times
            .openings
            .partition_point(|(at, _)| at.after(HAND_BACK) < end.at);
        let near = times.openings[first..].iter();
        let mut near = near.take_while(|(at, _)| *at <= end.at.after(HAND_BACK));
        let Some((_, grown)) = near.find(|(_, destination)| *destination != life.destination)
        else {
            return false;
        };
        // something else was done in between: otherwise the connection was closed after its use
        let idle_from = life.last_end().unwrap_or(life.at);
        let next = times.openings.partition_point(|(at, _)| *at <= idle_from);
        let next = times.openings.get(next);
        let is_later =
            next.is_some_and(|(at, _)| *at < end.at) || end.at.since(idle_from) > HAND_BACK;
        let third = times.kept.iter();
        let mut third = third.filter(|(at, _)| ![life.destination, *grown].contains(at));
        is_later && third.any(|(_, kept)| kept.iter().any(|one| one.at(end.at) > 0))
    }

    /// How long a connection was idle when its client closed it, in nanoseconds, if its idle time
    /// may be the reason: the program did something afterwards.
    fn idle_limit(&self, life: &Life) -> Option<u64> {
        let end = life.end.filter(|end| end.why == OpenReason::ClientIdle)?;
        let times = self.each.get(&life.owner)?;
        let is_last = matches!(life.owner, PoolOwner::Process(_)) && times.last <= end.at;
        let idle = end.at.since(life.last_end()?);
        (!is_last && !self.has_evicted(life, end)).then_some(idle)
    }
}
