//! The open connections and their clients' pools: why a connection is opened, judged by the others
//! at that moment. Bounded memory. Must not count.

use super::evictions::Moment;
use super::open_connection::{HAND_BACK, OpenConnection, PendingOpen, PoolOwner};
use super::open_reason::{AT_ONCE, OpenReason};
use intact_ledger::{Caveat, Connection, ConnectionId, Nanos};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

/// Connections that are followed at the same time.
const LIVE: usize = 32_768;
/// Pools from which on those without an open connection are dropped.
const POOLS: usize = 16_384;
/// Openings that wait until it is known whether a connection was idle.
const WAITERS: usize = 1024;
/// How often an opening looks for another connection that was idle when one turns out to have been
/// busy.
const TRIES: u8 = 3;
/// Ends of connections that a pool remembers until a connection is opened in their place.
const ENDS: usize = 256;

/// The connections of one owner to one destination.
#[derive(Clone, Debug, Default)]
struct Pool {
    /// Open ones that have carried something, by the end of their last exchange.
    idle: BTreeSet<(Nanos, ConnectionId)>,
    /// Open ones.
    open: u64,
    /// Open ones that were reused.
    reused: u64,
    /// The newest one, and when it was opened.
    newest: Option<(Nanos, ConnectionId)>,
    /// Open ones that multiplex and are not retiring, by the end of their setup.
    multiplexing: BTreeSet<(Nanos, ConnectionId)>,
    /// Why the first of those that are set up at the same time was opened.
    first_of_several: Option<OpenReason>,
    ended: VecDeque<(Nanos, OpenReason)>,
    /// From when until when connections that ended were idle at last.
    was_idle: VecDeque<(Nanos, Nanos)>,
    /// Setups of connections that ended without having carried anything.
    spares: VecDeque<(Nanos, Nanos)>,
}

/// Keeps the latest of what ended.
fn remember<T>(ended: &mut VecDeque<T>, one: T) {
    if ended.len() == ENDS {
        ended.pop_front();
    }
    ended.push_back(one);
}

impl Pool {
    fn end(&mut self, at: Nanos, why: OpenReason) {
        remember(&mut self.ended, (at, why));
    }

    /// The end that an opening at `at` replaces: the latest before it.
    fn replace(&mut self, at: Nanos) -> Option<OpenReason> {
        let found = self.ended.iter().rposition(|&(end, _)| end <= at)?;
        let (_, why) = self.ended.remove(found)?;
        // others were kept if they are still there
        let idle = self.idle.first();
        let kept = self.reused > 0 || idle.is_some_and(|&(end, _)| at.since(end) >= AT_ONCE);
        Some(match why {
            OpenReason::ClientAtOnce | OpenReason::ClientRenewed if kept => OpenReason::PoolFull,
            other => other,
        })
    }

    /// Whether a multiplexing connection could take a request at `at`.
    fn has_streams_at(&self, at: Nanos) -> bool {
        let first = self.multiplexing.first();
        first.is_some_and(|(ready, _)| ready.after(HAND_BACK) <= at)
    }

    /// Why a connection is opened at `at` when none was idle and none had free streams. Callers
    /// that wait for a multiplexing one at the same time may open one each, before the first is
    /// ready: what ended the one before is the reason of all.
    fn reason_without_idle(&mut self, at: Nanos) -> OpenReason {
        let ended = self.replace(at);
        if self.multiplexing.is_empty() {
            self.first_of_several = ended;
            return ended.unwrap_or(OpenReason::Growth);
        }
        ended
            .or(self.first_of_several)
            .unwrap_or(OpenReason::InParallel)
    }

    /// Whether a connection that has ended since was idle at `at`.
    fn had_idle_at(&self, at: Nanos) -> bool {
        let mut was_idle = self.was_idle.iter();
        was_idle.any(|(from, to)| from.after(HAND_BACK) <= at && at < *to)
    }

    /// The connection that has been idle for the longest time at `at`.
    fn idle_at(&self, at: Nanos) -> Option<ConnectionId> {
        let (end, id) = self.idle.first()?;
        (end.after(HAND_BACK) <= at).then_some(*id)
    }

    /// The connection whose response ended just before `at`, so that its client may not have it
    /// back yet.
    fn handed_back_at(&self, at: Nanos) -> Option<ConnectionId> {
        let (end, id) = self.idle.iter().rev().find(|(end, _)| *end <= at)?;
        (at < end.after(HAND_BACK)).then_some(*id)
    }

    fn has_ends_at(&self, at: Nanos) -> bool {
        self.ended.iter().any(|&(end, _)| end <= at)
    }

    /// The connection that has been idle for the shortest time at `at`: the server is least likely
    /// to have closed it.
    fn newest_idle_at(&self, at: Nanos) -> Option<ConnectionId> {
        let mut idle = self.idle.iter().rev();
        let found = idle.find(|(end, _)| end.after(HAND_BACK) <= at);
        found.map(|(_, id)| *id)
    }
}

/// A connection that may take further streams, by the end of its setup.
fn multiplexing(live: &OpenConnection) -> Option<(Nanos, ConnectionId)> {
    let connection = &live.connection;
    let ready = connection.setup.ready().unwrap_or(connection.at);
    (live.multiplexes() && !live.is_retiring()).then_some((ready, connection.id))
}

/// Every open connection, and the pool that each belongs to.
#[derive(Clone, Debug, Default)]
pub(super) struct Pools {
    live: HashMap<ConnectionId, OpenConnection>,
    /// In the order of their openings.
    order: VecDeque<ConnectionId>,
    pools: HashMap<(usize, PoolOwner), Pool>,
    /// From this number of pools on those without a connection are dropped, where it is more than
    /// [`POOLS`].
    next_sweep: usize,
    /// Idle connections of each destination, of any owner.
    idle: BTreeMap<usize, BTreeSet<(Nanos, ConnectionId)>>,
    /// Connections that ended without having carried anything.
    spare: HashSet<ConnectionId>,
    forgotten: u64,
}

impl Pools {
    pub(super) fn get(&self, id: ConnectionId) -> Option<&OpenConnection> {
        self.live.get(&id)
    }

    pub(super) fn connections(&self) -> impl Iterator<Item = &OpenConnection> {
        self.live.values()
    }

    /// Adds a connection that was just opened.
    pub(super) fn add(&mut self, live: OpenConnection) {
        self.make_room();
        self.order.push_back(live.connection.id);
        self.put_first(live);
    }

    /// Puts a connection into the pool that it is opened in.
    pub(super) fn put_first(&mut self, live: OpenConnection) {
        let newest = (live.connection.at, live.connection.id);
        let owner = (live.destination, live.owner);
        self.put(live);
        self.pools.entry(owner).or_default().newest = Some(newest);
    }

    /// The connection that took the place of one that its client closed at `end` as the observer
    /// saw it: the newest one, if it was opened a little earlier because all were busy.
    pub(super) fn opened_just_before(
        &self,
        owner: (usize, PoolOwner),
        end: Nanos,
    ) -> Option<PendingOpen> {
        let (at, connection) = self.pools.get(&owner)?.newest?;
        let live = self.live.get(&connection)?;
        let is_one = live.why == OpenReason::Growth && at <= end && end <= at.after(HAND_BACK);
        is_one.then(|| PendingOpen::of(live))
    }

    /// The first connection that was opened after `end`, which is recorded late, because all were
    /// busy until then.
    pub(super) fn opened_after(
        &self,
        owner: (usize, PoolOwner),
        end: Nanos,
    ) -> Option<PendingOpen> {
        let (newest, _) = self.pools.get(&owner)?.newest?;
        if newest < end {
            return None;
        }
        let is_one = |live: &&OpenConnection| {
            let is_later = end <= live.connection.at && live.why == OpenReason::Growth;
            is_later && (live.destination, live.owner) == owner
        };
        let opened = self.live.values().filter(is_one);
        let first = opened.min_by_key(|live| (live.connection.at, live.connection.id))?;
        Some(PendingOpen::of(first))
    }

    /// Takes a connection out of its pool.
    pub(super) fn take(&mut self, id: ConnectionId) -> Option<OpenConnection> {
        let live = self.live.remove(&id)?;
        self.leave(&live);
        Some(live)
    }

    /// Puts a connection back into its pool.
    pub(super) fn put(&mut self, live: OpenConnection) {
        let pool = self
            .pools
            .entry((live.destination, live.owner))
            .or_default();
        pool.open += 1;
        pool.reused += u64::from(live.exchanges > 1);
        pool.multiplexing.extend(multiplexing(&live));
        if let Some(idle) = live.idle_since() {
            let entry = (idle, live.connection.id);
            pool.idle.insert(entry);
            self.idle.entry(live.destination).or_default().insert(entry);
        }
        self.live.insert(live.connection.id, live);
    }

    fn leave(&mut self, live: &OpenConnection) {
        let Some(pool) = self.pools.get_mut(&(live.destination, live.owner)) else {
            return;
        };
        pool.open = pool.open.saturating_sub(1);
        pool.reused = pool.reused.saturating_sub(u64::from(live.exchanges > 1));
        if let Some(entry) = multiplexing(live) {
            pool.multiplexing.remove(&entry);
        }
        if let Some(idle) = live.idle_since() {
            let entry = (idle, live.connection.id);
            pool.idle.remove(&entry);
            if let Some(idle) = self.idle.get_mut(&live.destination) {
                idle.remove(&entry);
            }
        }
    }

    /// An end was announced on a connection, which will be replaced.
    pub(super) fn announce_end(&mut self, live: &OpenConnection, at: Nanos, why: OpenReason) {
        let pool = self
            .pools
            .entry((live.destination, live.owner))
            .or_default();
        pool.end(at, why);
    }

    /// A connection ended, and will be replaced if its pool is still there.
    pub(super) fn end(&mut self, owner: (usize, PoolOwner), at: Nanos, why: OpenReason) {
        if let Some(pool) = self.pools.get_mut(&owner) {
            pool.end(at, why);
        }
    }

    /// Whether a client that closed one connection and opened another keeps idle ones to further
    /// destinations. Otherwise the client itself may have ended, and another one begun.
    pub(super) fn keep_others(&self, end: Moment, grown: Moment) -> bool {
        self.live.values().any(|live| {
            let is_third = ![end.destination, grown.destination].contains(&live.destination);
            let is_idle = live.idle_since().is_some_and(|since| since <= end.at);
            live.owner == end.owner && is_third && is_idle
        })
    }

    /// The end at `at`, which no opening has replaced yet, had this reason.
    pub(super) fn correct_end(&mut self, owner: (usize, PoolOwner), at: Nanos, why: OpenReason) {
        let pool = self.pools.get_mut(&owner);
        let mut ended = pool.into_iter().flat_map(|pool| &mut pool.ended);
        if let Some(end) = ended.find(|(end, _)| *end == at) {
            end.1 = why;
        }
    }

    /// Why a connection is opened; `had_ends` where connections to the destination have carried
    /// something and ended.
    pub(super) fn reason(
        &mut self,
        connection: &Connection,
        destination: usize,
        owner: PoolOwner,
        had_ends: bool,
    ) -> OpenReason {
        let at = connection.at;
        if let Some(pool) = self.pools.get_mut(&(destination, owner)) {
            if pool.has_streams_at(at) {
                return OpenReason::StreamsFree;
            }
            let (near, why) = match pool.idle_at(at) {
                Some(idle) => (idle, OpenReason::IdleExisted),
                // whether it takes the place of one that ended before is not known yet
                None => match pool.handed_back_at(at).filter(|_| pool.has_ends_at(at)) {
                    Some(recent) => (recent, OpenReason::Growth),
                    None => return pool.reason_without_idle(at),
                },
            };
            let waiter = PendingOpen {
                at,
                connection: connection.id,
                why,
                tries: 0,
            };
            self.wait(near, waiter);
            return why;
        }
        // without processes (a capture, an access log) there is one owner
        if !matches!(owner, PoolOwner::Process(_)) {
            return OpenReason::Growth;
        }
        let idle = self.idle.get(&destination).and_then(BTreeSet::first);
        if idle.is_some_and(|(end, _)| end.after(HAND_BACK) <= at) {
            OpenReason::OtherProcess
        } else if had_ends {
            OpenReason::NewProcess
        } else {
            OpenReason::Growth
        }
    }

    /// Lets an opening wait for the next exchange on a connection that seemed idle.
    pub(super) fn wait(&mut self, on: ConnectionId, waiter: PendingOpen) {
        if let Some(live) = self.live.get_mut(&on)
            && live.waiters.len() < WAITERS
        {
            live.waiters.push(waiter);
        }
    }

    /// The connection that seemed idle to an opening was busy: another may have been idle. If none
    /// was, the reason of the opening.
    pub(super) fn look_again(
        &mut self,
        owner: (usize, PoolOwner),
        was_busy: ConnectionId,
        waiter: PendingOpen,
    ) -> Option<OpenReason> {
        self.look_for(owner, was_busy, waiter, Pool::idle_at)
    }

    /// The same where the server had closed it: those that were idle for as long may be closed too.
    pub(super) fn look_for_newer(
        &mut self,
        owner: (usize, PoolOwner),
        was_closed: ConnectionId,
        waiter: PendingOpen,
    ) -> Option<OpenReason> {
        let pool = self.pools.get(&owner);
        if pool.is_some_and(|pool| pool.had_idle_at(waiter.at)) {
            return None;
        }
        self.look_for(owner, was_closed, waiter, Pool::newest_idle_at)
    }

    /// Notes from when until when a connection that ended was idle at last.
    pub(super) fn note_idle(&mut self, owner: (usize, PoolOwner), from: Nanos, to: Nanos) {
        if let Some(pool) = self.pools.get_mut(&owner) {
            remember(&mut pool.was_idle, (from, to));
        }
    }

    fn look_for(
        &mut self,
        owner: (usize, PoolOwner),
        was_busy: ConnectionId,
        waiter: PendingOpen,
        idle_at: impl Fn(&Pool, Nanos) -> Option<ConnectionId>,
    ) -> Option<OpenReason> {
        let pool = self.pools.get_mut(&owner);
        let other = pool
            .as_ref()
            .and_then(|pool| idle_at(pool, waiter.at))
            .filter(|&other| other != was_busy && waiter.tries < TRIES);
        if let Some(other) = other {
            let tries = waiter.tries + 1;
            self.wait(other, PendingOpen { tries, ..waiter });
            return None;
        }
        let why = pool.and_then(|pool| pool.replace(waiter.at));
        Some(why.unwrap_or(OpenReason::Growth))
    }

    /// A connection ended without having carried anything: no other one is the reason of its
    /// opening.
    pub(super) fn note_spare(&mut self, live: &OpenConnection) {
        let connection = &live.connection;
        if self.spare.len() >= LIVE {
            self.spare.clear();
        }
        self.spare.insert(connection.id);
        if let Some(pool) = self.pools.get_mut(&(live.destination, live.owner)) {
            let ready = connection.setup.ready().unwrap_or(connection.at);
            remember(&mut pool.spares, (connection.at, ready));
        }
    }

    /// Number of connections that carried nothing because this one, which multiplexes, was set up
    /// at the same time and took all streams. Each is returned once.
    pub(super) fn spares_next_to(&mut self, id: ConnectionId) -> usize {
        let Some(live) = self.live.get(&id).filter(|live| live.multiplexes()) else {
            return 0;
        };
        let connection = &live.connection;
        let (at, ready) = (
            connection.at,
            connection.setup.ready().unwrap_or(connection.at),
        );
        let pool = self.pools.get_mut(&(live.destination, live.owner));
        pool.map_or(0, |pool| {
            let before = pool.spares.len();
            pool.spares
                .retain(|(other, end)| ready < *other || *end < at);
            before - pool.spares.len()
        })
    }

    pub(super) fn was_spare(&self, id: ConnectionId) -> bool {
        self.spare.contains(&id)
    }

    /// An opening had another reason than it seemed.
    pub(super) fn correct(&mut self, opened: ConnectionId, why: OpenReason) {
        if let Some(live) = self.live.get_mut(&opened) {
            live.why = why;
        }
    }

    /// Drops the oldest connections when too many are open, and pools without any.
    fn make_room(&mut self) {
        while self.live.len() >= LIVE {
            let Some(oldest) = self.order.pop_front() else {
                break;
            };
            self.forgotten += u64::from(self.take(oldest).is_some());
        }
        if self.order.len() > 2 * LIVE {
            self.order.retain(|id| self.live.contains_key(id));
        }
        if self.pools.len() >= POOLS.max(self.next_sweep) {
            self.pools.retain(|_, pool| pool.open > 0);
            // where all are open, the next one would find nothing to drop either
            self.next_sweep = 2 * self.pools.len();
        }
    }

    /// What the limits left out.
    pub(super) fn caveat(&self) -> Option<Caveat> {
        (self.forgotten > 0).then(|| {
            let message = format!(
                "more than {LIVE} connections were open at the same time: the end of {} is unknown",
                self.forgotten
            );
            Caveat::new("many-connections", message)
        })
    }
}
