//! One cause for each pool: what explains its openings together, so that the moment at which a
//! single close is seen does not decide.

use super::history::{End, History, Life};
use super::open_connection::{HAND_BACK, PoolOwner};
use super::open_reason::OpenReason;
use super::pool_replay::{
    Full, Intervals, PoolReplay, Renewal, busy, is_reusing, kept, last_use, peak,
};
use intact_ledger::{Nanos, Span, StackId};
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;

/// Openings for one reason from which on it counts: those without one have the same, and a claim of
/// them is more than a note.
pub(crate) const SEVERAL: u64 = 3;

/// How many times more openings without any other reason there must be than those of a habit.
const FEW: u64 = 4;

/// Openings by their reason.
pub(super) type Reasons = BTreeMap<OpenReason, u64>;

/// Openings by their stack.
pub(super) type StackCounts = BTreeMap<StackId, u64>;

/// Why connections were opened, by destination.
#[derive(Debug, Default)]
pub(crate) struct Causes {
    reasons: HashMap<usize, Reasons>,
    /// The shortest idle time after which the client closed, in nanoseconds.
    client_idle: HashMap<usize, u64>,
    /// The pool that closed most connections because it was full.
    full: HashMap<usize, Full>,
    /// What the clients count that close connections after a number of requests, or at an age.
    renewal: HashMap<usize, Renewal>,
    /// Where in the code connections were opened, by what each opening alone was for.
    places: HashMap<usize, BTreeMap<OpenReason, StackCounts>>,
    /// Most connections that were busy at the same time.
    busy: HashMap<usize, u64>,
    /// Openings of pools that use connections again, for which no reason is seen.
    growth: HashMap<usize, u64>,
    /// Whether the openings of a habit are few of those.
    are_habits_few: bool,
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
            let whys = replay.reasons(first, server_limit(destination), is_evicted);
            for (why, life) in whys.into_iter().zip(lives) {
                *reasons.entry(why).or_default() += 1;
                if let Some(stack) = life.stack {
                    let places = causes.places.entry(destination).or_default();
                    *places.entry(why).or_default().entry(stack).or_default() += 1;
                }
            }
            let is_reusing = is_reusing(lives);
            explain_idle(&mut reasons, lives);
            unify(&mut reasons, is_reusing);
            let is_single = lives.iter().all(|life| life.streams.is_none());
            if is_reusing && is_single {
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
            if let Some(renewal) = replay.renewal() {
                causes.renewal.entry(destination).or_insert(renewal);
            }
            let limit = lives.iter().filter_map(|life| owners.idle_limit(life));
            if let Some(limit) = limit.filter(|idle| replay.is_limit(*idle)).min() {
                let known = causes.client_idle.entry(destination).or_insert(limit);
                *known = limit.min(*known);
            }
        }
        causes.reasons.values_mut().for_each(without_few);
        let growth: u64 = causes.growth.values().sum();
        let habits = causes.growth.keys().map(|each| causes.habits(*each));
        causes.are_habits_few = FEW * habits.sum::<u64>() <= growth;
        causes
    }

    /// Most connections to a destination that were busy at the same time, of those that carry one
    /// exchange at a time.
    pub(super) fn busy(&self, destination: usize) -> u64 {
        self.busy.get(&destination).copied().unwrap_or(0)
    }

    /// The connections that were opened because all others were busy or in hand, where a client
    /// that uses connections again opened next to none for any other reason: it needs them,
    /// although their requests may not overlap. A few more are a habit: another process had an idle
    /// one, or a request got a free connection before its own was open.
    pub(super) fn grown(&self, destination: usize) -> u64 {
        let habits = self.habits(destination);
        let explained = self.reasons(destination);
        let explained = explained.filter(|(why, _)| *why != OpenReason::Growth);
        let explained: u64 = explained.map(|(_, openings)| openings).sum();
        let grown = self.growth.get(&destination).copied().unwrap_or(0);
        let are_few_of_all = habits < SEVERAL && self.are_habits_few;
        let are_few = FEW * habits <= grown || are_few_of_all;
        let habits = if are_few { habits } else { 0 };
        match explained - habits < SEVERAL {
            true if grown > 0 => grown + habits,
            _ => 0,
        }
    }

    /// Openings of a habit, and what else the client did, if it is little: a balancer may keep
    /// fewer connections at first than later.
    fn habits(&self, destination: usize) -> u64 {
        use OpenReason::{ClientIdle, NewProcess, OtherProcess, Unused};
        let of = |is_asked: fn(OpenReason) -> bool| -> u64 {
            let asked = self.reasons(destination).filter(|(why, _)| is_asked(*why));
            asked.map(|(_, openings)| openings).sum()
        };
        let of_client = of(|why| is_of_client(why) && why != ClientIdle);
        let few = if of_client < SEVERAL { of_client } else { 0 };
        few + of(|why| matches!(why, NewProcess | OtherProcess | Unused))
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

    /// Where in the code connections to a destination were opened for a reason that `is_asked`.
    pub(super) fn places(
        &self,
        destination: usize,
        is_asked: impl Fn(OpenReason) -> bool,
    ) -> StackCounts {
        let mut counts = StackCounts::new();
        let places = self.places.get(&destination).into_iter().flatten();
        for (_, stacks) in places.filter(|(why, _)| is_asked(**why)) {
            for (stack, openings) in stacks {
                *counts.entry(*stack).or_default() += openings;
            }
        }
        counts
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

    /// What a client of a destination counts that closes connections after a number of requests, or
    /// at an age.
    pub(super) fn renewal(&self, destination: usize) -> Option<Renewal> {
        self.renewal.get(&destination).copied()
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

/// Assigns the openings next to an idle connection to what the client did with others, where that
/// accounts for all of them: it closed them right after a response, or gave requests up. Such a
/// client may open the next one at any moment.
fn explain_idle(reasons: &mut Reasons, lives: &[&Life]) {
    use OpenReason::{ClientAtOnce, GaveUp, IdleExisted};
    let Some((last, _)) = last_use(lives) else {
        return;
    };
    let ends = |asked: OpenReason| {
        let ends = lives.iter().filter_map(|life| life.ended());
        ends.filter(|end| end.why == asked && end.at <= last)
            .count() as u64
    };
    let openings = |why: OpenReason| reasons.get(&why).copied().unwrap_or(0);
    let accounts_for_all =
        |why: &OpenReason| ends(*why) + SEVERAL > openings(IdleExisted) + openings(*why);
    let most = [ClientAtOnce, GaveUp]
        .into_iter()
        .max_by_key(|why| ends(*why));
    if let Some(cause) = most.filter(accounts_for_all)
        && openings(IdleExisted) > 0
        && ends(cause) >= SEVERAL
    {
        merge(reasons, cause, |why, _| why == IdleExisted);
    }
}

/// Assigns what the client did in a pool to one cause: the most frequent one. An idle limit of a
/// client that reuses connections is a second one, and so are unread responses, unless they are
/// most: what comes in time is read to its end.
fn unify(reasons: &mut Reasons, is_reusing: bool) {
    let is_one =
        |why: OpenReason| is_of_client(why) && !(is_reusing && why == OpenReason::ClientIdle);
    let is_cause = |why: OpenReason| is_one(why) || why == OpenReason::Undrained;
    let Some(cause) = most_frequent(reasons, is_cause) else {
        return;
    };
    merge(reasons, cause, |why, _| is_one(why));
}

/// Assigns the few openings at a destination that have another reason of clients to the most
/// frequent one: a second cause takes evidence of its own.
fn without_few(reasons: &mut Reasons) {
    let is_own = |why: OpenReason| {
        use OpenReason::{ClientRenewed, Undrained};
        is_of_client(why) || matches!(why, ClientRenewed | Undrained)
    };
    let Some(cause) = most_frequent(reasons, is_own) else {
        return;
    };
    if reasons[&cause] >= SEVERAL {
        merge(reasons, cause, |why, openings| {
            is_own(why) && openings < SEVERAL
        });
    }
}

fn most_frequent(reasons: &Reasons, is_asked: impl Fn(OpenReason) -> bool) -> Option<OpenReason> {
    let asked = reasons.iter().filter(|(why, _)| is_asked(**why));
    let most = asked.max_by_key(|(_, openings)| **openings);
    most.map(|(why, _)| *why)
}

/// Assigns openings to `cause`.
fn merge(reasons: &mut Reasons, cause: OpenReason, is_of: impl Fn(OpenReason, u64) -> bool) {
    let mut merged = 0;
    reasons.retain(|why, openings| {
        let is_of = *why != cause && is_of(*why, *openings);
        merged += if is_of { *openings } else { 0 };
        !is_of
    });
    *reasons.entry(cause).or_default() += merged;
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
    /// Whether most connections that it closed after use were in the way of another destination.
    evicts: bool,
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
            for life in lives {
                let last = life.uses.last().map_or(life.at, |one| one.span.start);
                times.last = times.last.max(last).max(life.at);
            }
        }
        for times in each.values_mut() {
            times.openings.sort_unstable();
        }
        for (&(destination, owner, _), lives) in pools {
            let Some(times) = each.get_mut(&owner) else {
                continue;
            };
            // in a fast loop, over an opening to another destination
            let openings = &times.openings;
            let kept = kept(lives, |from, to| {
                let next = openings.partition_point(|(at, _)| *at <= from);
                to.since(from) > HAND_BACK
                    || openings
                        .get(next)
                        .is_some_and(|(at, of)| *at < to && *of != destination)
            });
            times.kept.entry(destination).or_default().push(kept);
        }
        let mut closed: HashMap<PoolOwner, (usize, usize)> = HashMap::new();
        for life in pools.values().flatten() {
            let times = &each[&life.owner];
            if let Some(end) = life.ended().filter(|end| is_of_client(end.why))
                && end.at < times.last
            {
                let (evicted, all) = closed.entry(life.owner).or_default();
                *evicted += usize::from(times.has_evicted(life, end));
                *all += 1;
            }
        }
        for (owner, (evicted, all)) in closed {
            if let Some(times) = each.get_mut(&owner) {
                times.evicts = 2 * evicted > all;
            }
        }
        Owners { each }
    }

    /// Whether a pool closed a connection for one to another destination.
    fn has_evicted(&self, life: &Life, end: End) -> bool {
        let times = self.each.get(&life.owner);
        times.is_some_and(|times| times.evicts && times.has_evicted(life, end))
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

impl OwnerTimes {
    /// Whether a connection was in the way of one to another destination: the owner opened that one
    /// when it closed this one, and kept idle ones to further destinations. Otherwise the client
    /// itself may have ended, and another one begun.
    fn has_evicted(&self, life: &Life, end: End) -> bool {
        let openings = &self.openings;
        let first = openings.partition_point(|(at, _)| at.after(HAND_BACK) < end.at);
        let near = openings[first..].iter();
        let near = near.take_while(|(at, _)| *at <= end.at.after(HAND_BACK));
        let mut grown = near.map(|(_, to)| *to).filter(|to| *to != life.destination);
        // something else was done in between: otherwise the connection was closed after its use
        let idle_from = life.last_end().unwrap_or(life.at);
        let next = openings.get(openings.partition_point(|(at, _)| *at <= idle_from));
        let is_later =
            next.is_some_and(|(at, _)| *at < end.at) || end.at.since(idle_from) > HAND_BACK;
        let kept = self.kept.iter().filter(|(at, kept)| {
            **at != life.destination && kept.iter().any(|one| one.at(end.at) > 0)
        });
        let kept: Vec<usize> = kept.map(|(at, _)| *at).collect();
        is_later && grown.any(|grown| kept.iter().any(|third| *third != grown))
    }
}
