//! One cause for each pool: what explains its openings together, so that the moment at which a
//! single close is seen does not decide.

use super::history::{End, History, Life};
use super::open_connection::{HAND_BACK, PoolOwner};
use super::open_reason::{OpenReason, SEVERAL};
use super::pool_full::Full;
use super::pool_renewal::Renewal;
use super::pool_replay::PoolReplay;
use super::pool_rests::{Intervals, busy, kept, last_use, peak};
use intact_ledger::{Nanos, Span, StackId};
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;

/// Closes of one client are so near to each other, in nanoseconds.
const TOGETHER: u64 = 200_000;

/// How many times more openings without any other reason there must be than those of a habit.
const FEW: u64 = 4;

/// Openings by their reason.
pub(super) type Reasons = BTreeMap<OpenReason, u64>;

/// Openings by their stack.
pub(super) type StackCounts = BTreeMap<StackId, u64>;

/// Why connections were opened, and where in the code.
#[derive(Debug, Default)]
struct Explained {
    reasons: Reasons,
    places: BTreeMap<OpenReason, StackCounts>,
}

impl Explained {
    fn add(&mut self, why: OpenReason, openings: u64, places: StackCounts) {
        *self.reasons.entry(why).or_default() += openings;
        if !places.is_empty() {
            let all = self.places.entry(why).or_default();
            for (stack, openings) in places {
                *all.entry(stack).or_default() += openings;
            }
        }
    }

    /// Assigns openings to `cause`, with their places.
    fn merge(&mut self, cause: OpenReason, is_of: impl Fn(OpenReason, u64) -> bool) {
        for (why, openings) in std::mem::take(&mut self.reasons) {
            let is_of = is_of(why, openings);
            let places = self.places.remove(&why).unwrap_or_default();
            self.add(if is_of { cause } else { why }, openings, places);
        }
    }
}

/// Why connections were opened, by destination.
#[derive(Debug, Default)]
pub(crate) struct Causes {
    explained: HashMap<usize, Explained>,
    /// The shortest idle time after which the client closed, in nanoseconds.
    client_idle: HashMap<usize, u64>,
    /// The pool that closed most connections because it was full.
    full: HashMap<usize, Full>,
    /// What the clients count that close connections after a number of requests, or at an age.
    renewal: HashMap<usize, Renewal>,
    /// Most connections that were busy at the same time, or that processes held, each for itself.
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
        let mut all_explained = Vec::with_capacity(pools.len());
        let mut idle: HashMap<PoolOwner, u64> = HashMap::new();
        let mut held_by_processes: HashMap<usize, Vec<Span>> = HashMap::new();
        let mut mixed: HashMap<PoolOwner, Reasons> = HashMap::new();
        for (&(destination, owner, server), lives) in &pools {
            let first = processes.first_reason(destination, owner, lives[0]);
            let is_evicted = |life: &Life, end: End| owners.has_evicted(life, end);
            let replay = &replays[&(destination, owner, server)];
            let mut explained = Explained::default();
            let whys = replay.reasons(first, server_limit(destination), is_evicted);
            for (why, life) in whys.into_iter().zip(lives) {
                let place = life.stack.map(|stack| (stack, 1));
                explained.add(why, 1, place.into_iter().collect());
            }
            let reasons = &explained.reasons;
            let next_to_idle = reasons.get(&OpenReason::IdleExisted).unwrap_or(&0);
            *idle.entry(owner).or_default() += next_to_idle;
            let is_mixed = !replay.is_reusing && is_mixed(reasons);
            explain_idle(&mut explained, lives);
            if is_mixed {
                let of_process = mixed.entry(owner).or_default();
                let reasons = explained.reasons.iter();
                for (why, openings) in reasons.filter(|(why, _)| is_of_client(**why)) {
                    *of_process.entry(*why).or_default() += openings;
                }
            }
            all_explained.push(((destination, owner, server), explained, is_mixed));
        }
        for (pool @ (destination, owner, _), mut explained, is_mixed) in all_explained {
            let (lives, replay) = (&pools[&pool], &replays[&pool]);
            let is_reusing = replay.is_reusing;
            let of_process = mixed.get(&owner).filter(|_| is_mixed);
            let of_process = of_process.and_then(|all| most_frequent(all, |_| true));
            let is_collected = idle.get(&owner).is_some_and(|idle| *idle >= SEVERAL)
                && !is_reusing
                && owners.collects(owner);
            let of_process = match is_collected {
                true => Some(OpenReason::IdleExisted),
                false => of_process,
            };
            // a thread that does not run holds a connection that looks idle
            let is_full = || {
                let reasons = explained.reasons.iter();
                let others = reasons.filter(|(why, _)| is_of_another(**why));
                let others: u64 = others.map(|(_, openings)| openings).sum();
                replay.full().is_some_and(|full| full.is_shared) && others < SEVERAL
            };
            let of_process = of_process.or_else(|| is_full().then_some(OpenReason::PoolFull));
            unify(&mut explained, is_reusing, of_process);
            let reasons = &explained.reasons;
            let is_single = lives.iter().all(|life| life.streams.is_none());
            if let (PoolOwner::Process(_), Some(span), true) = (owner, held(lives), is_single) {
                let needed = own_need(reasons, is_reusing).max(peak(busy(lives).into_iter()));
                let spans = held_by_processes.entry(destination).or_default();
                spans.extend(std::iter::repeat_n(span, needed as usize));
            }
            if is_reusing && is_single {
                let growth = reasons.get(&OpenReason::Growth).copied();
                *causes.growth.entry(destination).or_default() += growth.unwrap_or(0);
            }
            // a pool has one cause
            let has_other = reasons.keys().any(|why| is_of_another(*why));
            let all = causes.explained.entry(destination).or_default();
            for (why, openings) in explained.reasons {
                let places = explained.places.remove(&why);
                all.add(why, openings, places.unwrap_or_default());
            }
            if let Some(mut full) = replay.full() {
                full.is_only_cause = !has_other;
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
        for (destination, spans) in held_by_processes {
            let busy = causes.busy.entry(destination).or_default();
            *busy = peak(spans.into_iter()).max(*busy);
        }
        causes.explained.values_mut().for_each(without_few);
        let growth: u64 = causes.growth.values().sum();
        let habits = causes.growth.keys().map(|each| causes.habits(*each));
        causes.are_habits_few = FEW * habits.sum::<u64>() <= growth;
        causes
    }

    /// Most connections to a destination that were busy at the same time, of those that carry one
    /// exchange at a time, or that processes held.
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
        let explained = self.explained.get(&destination).into_iter();
        let reasons = explained.flat_map(|one| &one.reasons);
        reasons.map(|(why, openings)| (*why, *openings))
    }

    /// How many connections were opened for a reason.
    pub(super) fn openings(&self, destination: usize, why: OpenReason) -> u64 {
        let explained = self.explained.get(&destination);
        let openings = explained.and_then(|one| one.reasons.get(&why));
        openings.copied().unwrap_or(0)
    }

    /// Where in the code connections to a destination were opened for a reason that `is_asked`.
    pub(super) fn places(
        &self,
        destination: usize,
        is_asked: impl Fn(OpenReason) -> bool,
    ) -> StackCounts {
        let mut counts = StackCounts::new();
        let explained = self.explained.get(&destination).into_iter();
        let places = explained.flat_map(|one| &one.places);
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
        let Some(explained) = self.explained.get_mut(&destination) else {
            return;
        };
        let reasons = &mut explained.reasons;
        let is_seen = |why: &OpenReason| !matches!(why, OpenReason::Growth | OpenReason::Unseen);
        let known: u64 = (reasons.iter().filter(|(why, _)| is_seen(why)))
            .map(|(_, openings)| *openings)
            .sum();
        let growth = reasons.get(&OpenReason::Growth).copied().unwrap_or(0);
        let rest = avoidable.saturating_sub(known).min(growth);
        let most = reasons.iter_mut().filter(|(why, _)| is_seen(why));
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

/// When a process held connections that it used: none of another process can take their place. A
/// process that ends closes them a moment before the next one begins, or after.
fn held(lives: &[&Life]) -> Option<Span> {
    let used = || {
        lives
            .iter()
            .filter(|life| life.carried > 0 && !life.is_unseen)
    };
    let from = used().map(|life| life.at).min()?;
    let until = used().map(|life| life.until()).max()?;
    Some(Span::new(
        from,
        Nanos(until.0.saturating_sub(HAND_BACK)).max(from),
    ))
}

/// The connections of a process that it opened for no other reason than that it had none free.
fn own_need(reasons: &Reasons, is_reusing: bool) -> u64 {
    use OpenReason::{Growth, NewProcess, OtherProcess};
    let of = |is_asked: fn(OpenReason) -> bool| -> u64 {
        let asked = reasons.iter().filter(|(why, _)| is_asked(**why));
        asked.map(|(_, openings)| openings).sum()
    };
    let is_clear = is_reusing && of(is_of_client) < SEVERAL;
    match is_clear {
        true => of(|why| matches!(why, Growth | NewProcess | OtherProcess)),
        false => 1,
    }
}

/// What the processes that call a destination had when another one began. Computed once for all:
/// there may be a process for each connection.
struct Processes {
    /// When each pool had an idle connection, or one that it keeps.
    held: BTreeMap<PoolKey, Intervals>,
    /// When any of them had one.
    held_by_any: HashMap<usize, Intervals>,
    /// When a connection of each pool first ended that had carried something, the earliest first.
    ended: HashMap<usize, Vec<(Nanos, PoolOwner)>>,
}

impl Processes {
    fn of(pools: &Pools<'_>, replays: &Replays<'_>) -> Processes {
        let mut ended: HashMap<usize, Vec<(Nanos, PoolOwner)>> = HashMap::new();
        let held = replays.iter().map(|(pool, replay)| (*pool, replay.held()));
        let held: BTreeMap<PoolKey, Intervals> = held.collect();
        let mut each: HashMap<usize, Vec<&Intervals>> = HashMap::new();
        for ((destination, ..), intervals) in &held {
            each.entry(*destination).or_default().push(intervals);
        }
        let each = each.into_iter();
        let held_by_any = each
            .map(|(destination, each)| (destination, Intervals::all(each.iter().copied())))
            .collect();
        for ((destination, owner, _), lives) in pools {
            let used = lives.iter().filter(|life| life.carried > 0);
            let first = used.map(|life| life.until()).min();
            let ends = ended.entry(*destination).or_default();
            ends.extend(first.map(|first| (first, *owner)));
        }
        for ends in ended.values_mut() {
            ends.sort_unstable();
        }
        Processes {
            held,
            held_by_any,
            ended,
        }
    }

    /// The reason of the first connection of a pool: without processes there is one owner.
    fn first_reason(&self, destination: usize, owner: PoolOwner, first: &Life) -> OpenReason {
        if !matches!(owner, PoolOwner::Process(_)) {
            return OpenReason::Growth;
        }
        let same = self.held.range((destination, owner, None)..);
        let own = same.take_while(|((at, of, _), _)| (*at, *of) == (destination, owner));
        let own: usize = own.map(|(_, held)| held.at(first.at)).sum();
        if self.held_by_any[&destination].at(first.at) > own {
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

/// Whether a client with a full pool did not open for it, nor for its idle limit.
fn is_of_another(why: OpenReason) -> bool {
    is_of_client(why) && !matches!(why, OpenReason::PoolFull | OpenReason::ClientIdle)
}

/// Assigns the openings next to a connection that could take the request to what the client did
/// with others, where that accounts for all of them: it closed them right after a response, or gave
/// requests up. Such a client may open the next one at any moment.
fn explain_idle(explained: &mut Explained, lives: &[&Life]) {
    use OpenReason::{ClientAtOnce, GaveUp, IdleExisted, InParallel, StreamsFree};
    const NEXT_TO_OTHERS: [OpenReason; 3] = [IdleExisted, StreamsFree, InParallel];
    let Some((last, _)) = last_use(lives) else {
        return;
    };
    let ends = |asked: OpenReason| {
        let used = lives.iter().filter(|life| life.carried > 0);
        let ends = used.filter_map(|life| life.ended());
        ends.filter(|end| end.why == asked && end.at <= last)
            .count() as u64
    };
    let openings = |why: OpenReason| explained.reasons.get(&why).copied().unwrap_or(0);
    let next_to_others: u64 = NEXT_TO_OTHERS.into_iter().map(openings).sum();
    let accounts_for_all =
        |why: &OpenReason| ends(*why) + SEVERAL >= next_to_others + openings(*why);
    let most = [ClientAtOnce, GaveUp]
        .into_iter()
        .max_by_key(|why| ends(*why));
    if let Some(cause) = most.filter(accounts_for_all)
        && next_to_others > 0
        && ends(cause) >= SEVERAL
    {
        explained.merge(cause, |why, _| NEXT_TO_OTHERS.contains(&why));
    }
}

/// Whether a client has several reasons for its openings. Where it uses no connection again, it
/// depends on the moment whether it has closed the last one when it opens the next. One program has
/// one cause at all destinations.
fn is_mixed(reasons: &Reasons) -> bool {
    let of_client = reasons.keys().filter(|why| is_of_client(**why));
    of_client.count() > 1
}

/// Assigns what the client did in a pool to one cause: the most frequent one, or the one that its
/// process has at several destinations. An idle limit of a
/// client that reuses connections is a second one, and so are unread responses, unless they are
/// most: what comes in time is read to its end.
fn unify(explained: &mut Explained, is_reusing: bool, of_process: Option<OpenReason>) {
    let reasons = &explained.reasons;
    if !reasons.keys().any(|why| is_of_client(*why)) {
        return;
    }
    let is_one =
        |why: OpenReason| is_of_client(why) && !(is_reusing && why == OpenReason::ClientIdle);
    let is_cause = |why: OpenReason| is_one(why) || why == OpenReason::Undrained;
    let Some(cause) = of_process.or_else(|| most_frequent(reasons, is_cause)) else {
        return;
    };
    explained.merge(cause, |why, _| is_one(why));
}

/// Assigns the few openings at a destination that have another reason of clients to the most
/// frequent one: a second cause takes evidence of its own.
fn without_few(explained: &mut Explained) {
    let is_own = |why: OpenReason| {
        use OpenReason::{ClientRenewed, Undrained};
        is_of_client(why) || matches!(why, ClientRenewed | Undrained)
    };
    let Some(cause) = most_frequent(&explained.reasons, is_own) else {
        return;
    };
    if explained.reasons[&cause] >= SEVERAL {
        explained.merge(cause, |why, openings| is_own(why) && openings < SEVERAL);
    }
}

fn most_frequent(reasons: &Reasons, is_asked: impl Fn(OpenReason) -> bool) -> Option<OpenReason> {
    let asked = reasons.iter().filter(|(why, _)| is_asked(**why));
    let most = asked.max_by_key(|(_, openings)| **openings);
    most.map(|(why, _)| *why)
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
    /// When its client closed connections, and to where; what it closed at the end is left out.
    closes: Vec<(Nanos, usize)>,
    /// Whether most connections that it closed after use were in the way of another destination.
    evicts: bool,
    /// Whether each close made room for an opening to another destination.
    makes_room: bool,
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
        let mut ends: HashMap<PoolOwner, Vec<(&Life, End)>> = HashMap::new();
        for life in pools.values().flatten() {
            let ended = life.ended().filter(|end| is_of_client(end.why));
            if let Some(end) = ended.filter(|end| end.at < each[&life.owner].last) {
                ends.entry(life.owner).or_default().push((life, end));
            }
        }
        for (owner, ends) in ends {
            let Some(times) = each.get_mut(&owner) else {
                continue;
            };
            let closes = ends.iter().map(|(life, end)| (end.at, life.destination));
            times.closes = closes.collect();
            times.closes.sort_unstable();
            times.makes_room = times.makes_room() && !has_one_idle_time(&ends);
            let evicted = ends
                .iter()
                .filter(|(life, end)| times.has_evicted(life, *end));
            times.evicts = 2 * evicted.count() > ends.len();
        }
        Owners { each }
    }

    /// Whether most connections of a process were closed together with those to other destinations,
    /// while it went on: their clients were collected as garbage, so each had a client of its own.
    fn collects(&self, owner: PoolOwner) -> bool {
        self.each.get(&owner).is_some_and(|times| {
            let runs = times
                .closes
                .chunk_by(|(one, _), (next, _)| *next <= one.after(TOGETHER));
            let mixed = runs.filter(|run| run.iter().any(|(_, to)| *to != run[0].1));
            let together: usize = mixed.map(<[_]>::len).sum();
            together as u64 > SEVERAL && 2 * together > times.closes.len()
        })
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

/// Whether connections were closed after the same idle time, as by a limit.
fn has_one_idle_time(ends: &[(&Life, End)]) -> bool {
    let idle = ends
        .iter()
        .filter_map(|(life, end)| Some(end.at.since(life.last_end()?)));
    let mut idle: Vec<u64> = idle.collect();
    idle.sort_unstable();
    let part = |tenths: usize| idle.get(idle.len() * tenths / 10).copied().unwrap_or(0);
    10 * (part(9) - part(1)) <= part(5)
}

impl OwnerTimes {
    /// Whether next to every close came right before an opening to another destination, and left as
    /// many connections: a pool of several destinations that is full. On a busy machine the opening
    /// comes late.
    fn makes_room(&self) -> bool {
        let mut left: BTreeMap<usize, usize> = BTreeMap::new();
        for (nth, (at, destination)) in self.closes.iter().enumerate() {
            // the observer may see a close later than the client
            let is_before = |(opened, _): &(Nanos, usize)| opened.after(HAND_BACK) <= *at;
            let opened = self.openings.partition_point(is_before);
            let next = self.closes.get(nth + 1).map(|(next, _)| *next);
            let is_followed = self.openings.get(opened).is_some_and(|(opening, to)| {
                to != destination && next.is_none_or(|next| *opening <= next)
            });
            if is_followed {
                *left.entry(opened.saturating_sub(nth + 1)).or_default() += 1;
            }
        }
        left.remove(&0);
        let most = left.values().max().copied().unwrap_or(0);
        most as u64 > SEVERAL && 10 * most >= 9 * self.closes.len()
    }

    /// Whether a connection was in the way of one to another destination: the owner opened that one
    /// when it closed this one, and kept idle ones to further destinations. Otherwise the client
    /// itself may have ended, and another one begun.
    fn has_evicted(&self, life: &Life, end: End) -> bool {
        if self.makes_room {
            return end.at < self.last;
        }
        // what is closed together belonged to one client
        let near = self
            .closes
            .partition_point(|(at, _)| at.after(TOGETHER) < end.at);
        let mut near = self.closes[near..].iter();
        let mut near = near
            .by_ref()
            .take_while(|(at, _)| *at <= end.at.after(TOGETHER));
        if near.any(|(_, of)| *of != life.destination) {
            return false;
        }
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
