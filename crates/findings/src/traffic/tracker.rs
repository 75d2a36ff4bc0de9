//! The books that the rules read: connections that are open, the pools that they belong to, counts of each destination.
//! One pass over the events, bounded memory: what goes over the bounds is counted together and said. Must not conclude.

use super::destination::{Counts, DestinationKey, Sign};
use super::open_connection::{HAND_BACK, OpenConnection, PendingOpen, Pool, PoolOwner};
use super::open_reason::OpenReason;
use intact_ledger::{
    Caveat, Closed, Connection, ConnectionId, Exchange, Lookup, Nanos, Run, Scheme, Vantage,
};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;

/// Destinations that are told apart.
const DESTINATIONS: usize = 1024;
/// Destinations that have histograms.
const DETAILED: usize = 64;
/// Connections that are followed at once.
const LIVE: usize = 32_768;
/// Pools (a party's connections to a destination) that are followed at once.
const POOLS: usize = 16_384;
/// Names whose lookups are told apart.
const NAMES: usize = 1024;
/// Openings that wait to learn whether a connection was idle.
const WAITERS: usize = 1024;
/// Caveats that are kept.
const CAVEATS: usize = 256;
/// Dials that failed and are remembered.
const MAX_UNDIALLED: usize = 64;
/// How often an opening looks for another connection that was idle when one turns out to have been busy.
const TRIES: u8 = 3;

/// Lookups of one name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lookups {
    /// All.
    pub total: u64,
    /// Those that failed.
    pub failed: u64,
    /// The time they took together, in nanoseconds.
    pub nanos: u64,
}

impl Lookups {
    fn add(&mut self, lookup: &Lookup) {
        self.total += 1;
        self.failed += u64::from(matches!(lookup.answer, Some(Err(_))));
        self.nanos = self.nanos.saturating_add(lookup.span.nanos());
    }
}

/// What an event meant.
#[derive(Debug, Default)]
pub struct Context<'a> {
    /// Index of the destination that it belongs to.
    pub destination: Option<usize>,
    /// Its connection as it was when the event came, the event included.
    pub live: Option<&'a OpenConnection>,
    /// How long the connection had been idle before the exchange, in nanoseconds.
    pub gap: Option<u64>,
}

/// The state of what was observed so far.
#[derive(Clone, Debug)]
pub struct Tracker {
    run: Run,
    /// The places, by index.
    pub places: Vec<DestinationKey>,
    /// Their counts, by the same index.
    pub counts: Vec<Counts>,
    /// Counts of everything.
    pub all: Counts,
    /// Lookups of everything.
    pub lookups: Lookups,
    /// Lookups by name.
    pub names: BTreeMap<Arc<str>, Lookups>,
    /// The machine's sockets.
    pub sockets: Vec<intact_ledger::Sockets>,
    /// What limits the figures.
    pub caveats: Vec<Caveat>,
    /// The last moment that an event told of.
    pub now: Nanos,
    index: HashMap<DestinationKey, usize>,
    /// The origin that an address was last known to serve.
    served: HashMap<SocketAddr, usize>,
    live: HashMap<ConnectionId, OpenConnection>,
    order: VecDeque<ConnectionId>,
    pools: HashMap<(usize, PoolOwner), Pool>,
    /// Idle connections of each destination, whoever has them.
    idle: Vec<BTreeSet<(Nanos, ConnectionId)>>,
    /// The connection that closed last, for what is told of it afterwards.
    just_closed: Option<Box<OpenConnection>>,
    /// The last dials that failed, the newest first, and where they led: a request that waited for one belongs there.
    undialled: VecDeque<(ConnectionId, usize)>,
    forgotten: u64,
    crowded: bool,
    /// Caveats beyond those that are kept, and whether one of them reports missing traffic.
    more_caveats: u64,
    more_is_missing: bool,
}

impl Tracker {
    pub(super) fn new(run: &Run) -> Tracker {
        Tracker {
            run: run.clone(),
            places: Vec::new(),
            counts: Vec::new(),
            all: Counts::detailed(),
            lookups: Lookups::default(),
            names: BTreeMap::new(),
            sockets: Vec::new(),
            caveats: Vec::new(),
            now: Nanos(0),
            index: HashMap::new(),
            served: HashMap::new(),
            live: HashMap::new(),
            order: VecDeque::new(),
            pools: HashMap::new(),
            idle: Vec::new(),
            just_closed: None,
            undialled: VecDeque::new(),
            forgotten: 0,
            crowded: false,
            more_caveats: 0,
            more_is_missing: false,
        }
    }

    /// The head of the ledger.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// An open connection.
    pub fn live(&self, id: ConnectionId) -> Option<&OpenConnection> {
        self.live.get(&id)
    }

    /// The open connections to a destination.
    pub fn open_to(&self, destination: usize) -> impl Iterator<Item = &OpenConnection> {
        self.live
            .values()
            .filter(move |live| live.destination == destination)
    }

    /// The connections that each destination's peak overlap needs.
    pub fn needed(&self) -> Vec<u64> {
        let mut open: Vec<Vec<&OpenConnection>> = vec![Vec::new(); self.counts.len()];
        for live in self.live.values() {
            open[live.destination].push(live);
        }
        self.counts
            .iter()
            .zip(open)
            .map(|(counts, open)| counts.needed(open.into_iter(), self.now))
            .collect()
    }

    /// Open connections to each destination whose content could not be read so far. One that carries plain HTTP is readable, so it
    /// is unused.
    pub fn opaque(&self) -> Vec<u64> {
        let mut opaque = vec![0; self.counts.len()];
        for live in self.live.values().filter(|live| live.exchanges == 0) {
            let connection = &live.connection;
            let is_readable = connection.protocol.is_some() && connection.tls.is_none();
            opaque[live.destination] += u64::from(!is_readable);
        }
        opaque
    }

    /// What had to be left out or put together.
    pub fn shortcomings(&self) -> Vec<Caveat> {
        let mut caveats = Vec::new();
        if self.more_caveats > 0 {
            caveats.push(Caveat {
                incomplete: self.more_is_missing,
                ..Caveat::new(
                    "many-caveats",
                    format!("{} more caveats are not listed", self.more_caveats),
                )
            });
        }
        if self.crowded {
            caveats.push(Caveat::new("many-destinations", format!(
                    "more than {DESTINATIONS} destinations: the later ones are counted together as (others)"
                )));
        }
        if self.counts.len() > DETAILED {
            caveats.push(Caveat::new("coarse-destinations", format!(
                    "percentiles, phases and idle gaps are told for the first {DETAILED} destinations and for all together"
                )));
        }
        if self.forgotten > 0 {
            caveats.push(Caveat::new("many-connections", format!(
                    "more than {LIVE} connections were open at once: how {} of them ended is not known",
                    self.forgotten
                )));
        }
        caveats
    }

    pub(super) fn opened(&mut self, connection: &Connection) -> Option<ConnectionId> {
        self.now = self.now.max(connection.at);
        let destination = self.place(connection);
        self.book(destination, connection, Sign::Add);
        if !connection.is_opened() || connection.failed.is_some() {
            self.undialled.truncate(MAX_UNDIALLED - 1);
            self.undialled.push_front((connection.id, destination));
            return None;
        }
        let party = PoolOwner::of(connection, &self.run);
        let why = self.reason(connection, destination, party);
        self.book_why(destination, why, Sign::Add);
        self.make_room();
        self.order.push_back(connection.id);
        let live = OpenConnection {
            connection: Box::new(connection.clone()),
            destination,
            party,
            why,
            exchanges: 0,
            last: None,
            waiters: Vec::new(),
        };
        self.join_pool(&live);
        self.live.insert(connection.id, live);
        Some(connection.id)
    }

    pub(super) fn revised(&mut self, connection: &Connection) -> Option<ConnectionId> {
        self.now = self.now.max(connection.at);
        let mut live = self.live.remove(&connection.id)?;
        let destination = if live.exchanges == 0 {
            self.place(connection)
        } else {
            live.destination
        };
        self.book(live.destination, &live.connection, Sign::Remove);
        self.book(destination, connection, Sign::Add);
        self.leave_pool(&live);
        if connection.failed.is_some() {
            self.book_why(live.destination, live.why, Sign::Remove);
            return None;
        }
        if destination != live.destination {
            self.book_why(live.destination, live.why, Sign::Remove);
            live.destination = destination;
            live.party = PoolOwner::of(connection, &self.run);
            live.why = self.reason(connection, destination, live.party);
            self.book_why(destination, live.why, Sign::Add);
        }
        *live.connection = connection.clone();
        self.join_pool(&live);
        self.live.insert(connection.id, live);
        Some(connection.id)
    }

    /// Counts an exchange; returns its destination, its connection where that is open, and the idle time before it.
    pub(super) fn exchange(
        &mut self,
        exchange: &Exchange,
    ) -> (usize, Option<ConnectionId>, Option<u64>) {
        self.now = self.now.max(exchange.end);
        let timed = self.run.durations_seen;
        let id = exchange.connection;
        let Some(mut live) = id.and_then(|id| self.live.remove(&id)) else {
            // what is told after the end still belongs where the connection did
            let late = self.just_closed.take();
            let belongs = late
                .as_deref()
                .filter(|live| Some(live.connection.id) == id);
            let undialled = || self.undialled.iter().find(|(dial, _)| Some(*dial) == id);
            let destination = match (belongs, undialled()) {
                (Some(live), _) => live.destination,
                (None, Some((_, destination))) => *destination,
                (None, None) => self.nowhere(),
            };
            self.counts[destination].overlap(exchange, belongs);
            self.counts[destination].exchange(exchange, None, timed);
            self.all.exchange(exchange, None, timed);
            self.just_closed = late;
            return (destination, None, None);
        };
        let destination = live.destination;
        self.leave_pool(&live);
        let retired = live.is_retiring();
        let gap = live.carry(exchange);
        if let (Some(side), false) = (exchange.close_sent_by, retired) {
            let why = OpenReason::announced(side, live.exchanges);
            let pool = self
                .pools
                .entry((live.destination, live.party))
                .or_default();
            pool.end(exchange.end, why);
        }
        self.join_pool(&live);
        self.counts[destination].overlap(exchange, Some(&live));
        self.counts[destination].exchange(exchange, gap, timed);
        self.all.exchange(exchange, gap, timed);
        // the exchange tells whether the connection was idle when others were opened
        let waiters = std::mem::take(&mut live.waiters);
        let id = live.connection.id;
        self.live.insert(id, live);
        for waiter in waiters {
            // one that was about to be used was taken, too: the request is seen a little after the client has decided
            if exchange.at <= waiter.at.after(HAND_BACK) && waiter.at < exchange.end {
                self.look_again(destination, id, waiter);
            } else if exchange.end <= waiter.at
                && let Some(live) = self.live.get_mut(&id)
            {
                live.waiters.push(waiter);
            }
        }
        (destination, Some(id), gap)
    }

    /// Counts an end and gives back the connection.
    pub(super) fn closed(&mut self, closed: &Closed) -> Option<&OpenConnection> {
        self.now = self.now.max(closed.close.at);
        let mut live = self.live.remove(&closed.connection)?;
        self.leave_pool(&live);
        self.bring_home(&mut live);
        let key = (live.destination, live.party);
        let why = OpenReason::end_of(&live, &closed.close);
        let mut waiters = std::mem::take(&mut live.waiters).into_iter();
        let mut replaced = live.is_retiring();
        // what ends right after its answer was idle for nobody: an opening in between came in its place
        if why.is_at_once() {
            if let Some(first) = waiters.next().filter(|_| !replaced) {
                self.correct(live.destination, first.connection, why);
                replaced = true;
            }
            for waiter in waiters {
                self.look_again(live.destination, closed.connection, waiter);
            }
        }
        // an announced end was entered when it was announced
        if let Some(pool) = self.pools.get_mut(&key).filter(|_| !replaced) {
            pool.end(closed.close.at, why);
        }
        self.counts[live.destination].close(&live, &closed.close);
        self.all.close(&live, &closed.close);
        self.just_closed = Some(Box::new(live));
        self.just_closed.as_deref()
    }

    /// What belongs to an open connection.
    pub(super) fn context(&self, id: Option<ConnectionId>) -> Context<'_> {
        let live = id.and_then(|id| self.live.get(&id));
        Context {
            destination: live.map(|live| live.destination),
            live,
            gap: None,
        }
    }

    pub(super) fn caveat(&mut self, caveat: &Caveat) {
        if self.caveats.contains(caveat) {
            return;
        }
        if self.caveats.len() < CAVEATS {
            self.caveats.push(caveat.clone());
        } else {
            self.more_caveats += 1;
            self.more_is_missing |= caveat.incomplete;
        }
    }

    pub(super) fn lookup(&mut self, lookup: &Lookup) {
        self.now = self.now.max(lookup.span.end);
        self.lookups.add(lookup);
        if let Some(name) = &lookup.name
            && (self.names.len() < NAMES || self.names.contains_key(name))
        {
            self.names.entry(name.clone()).or_default().add(lookup);
        }
    }

    /// The index of a connection's destination, made if need be.
    fn place(&mut self, connection: &Connection) -> usize {
        let server = self.run.vantage == Vantage::Server;
        let place = self.place_at(DestinationKey::of(connection, self.run.vantage));
        if let (Some(origin), Some(peer), false) = (&connection.origin, connection.peer, server)
            && origin.scheme != Scheme::Tcp
            && (self.served.len() < DESTINATIONS || self.served.contains_key(&peer))
        {
            self.served.insert(peer, place);
        }
        place
    }

    /// A connection that ends without having shown its origin belongs to the one that others found at its address.
    fn bring_home(&mut self, live: &mut OpenConnection) {
        let origin = live.connection.origin.as_ref();
        let shown = origin.is_some_and(|origin| origin.scheme != Scheme::Tcp);
        let lost = live.exchanges == 0 && !shown && live.connection.protocol.is_none();
        let home = live.connection.peer.and_then(|peer| self.served.get(&peer));
        if let (true, Some(&home)) = (lost, home) {
            self.book(live.destination, &live.connection, Sign::Remove);
            self.book_why(live.destination, live.why, Sign::Remove);
            live.destination = home;
            self.book(home, &live.connection, Sign::Add);
            self.book_why(home, live.why, Sign::Add);
        }
    }

    fn place_at(&mut self, place: DestinationKey) -> usize {
        if let Some(&index) = self.index.get(&place) {
            return index;
        }
        if self.places.len() >= DESTINATIONS {
            self.crowded = true;
            return self.nowhere();
        }
        let index = self.places.len();
        self.counts.push(if index < DETAILED {
            Counts::detailed()
        } else {
            Counts::default()
        });
        self.idle.push(BTreeSet::new());
        self.places.push(place.clone());
        self.index.insert(place, index);
        index
    }

    /// The destination of what has none, or for which there is no room.
    fn nowhere(&mut self) -> usize {
        let place = DestinationKey {
            origin: None,
            address: None,
            client: None,
            agent: None,
        };
        if let Some(&index) = self.index.get(&place) {
            return index;
        }
        let index = self.places.len();
        self.counts.push(Counts::default());
        self.idle.push(BTreeSet::new());
        self.places.push(place.clone());
        self.index.insert(place, index);
        index
    }

    fn book(&mut self, destination: usize, connection: &Connection, sign: Sign) {
        self.counts[destination].connection(connection, sign);
        self.all.connection(connection, sign);
    }

    fn book_why(&mut self, destination: usize, why: OpenReason, sign: Sign) {
        self.counts[destination].why(why, sign);
        self.all.why(why, sign);
    }

    /// Why a connection is opened, judged by the state of the pools.
    fn reason(
        &mut self,
        connection: &Connection,
        destination: usize,
        party: PoolOwner,
    ) -> OpenReason {
        let at = connection.at;
        if !self.run.ends_seen {
            return OpenReason::Unseen;
        }
        if let Some(pool) = self.pools.get_mut(&(destination, party)) {
            if pool.multiplexing > 0 {
                return OpenReason::StreamsFree;
            }
            if let Some(idle) = pool.idle_at(at) {
                let waiter = PendingOpen {
                    at,
                    connection: connection.id,
                    tries: 0,
                };
                self.wait(idle, waiter);
                return OpenReason::IdleExisted;
            }
            return pool.replace(at).unwrap_or(OpenReason::Growth);
        }
        // without processes (a capture, an access log) there is one party: nothing to look for elsewhere
        if !matches!(party, PoolOwner::Process(_)) {
            return OpenReason::Growth;
        }
        // its own were looked at above
        let idle = self.idle[destination].first();
        if idle.is_some_and(|(end, _)| end.after(HAND_BACK) <= at) {
            return OpenReason::OtherProcess;
        }
        let counts = &self.counts[destination];
        if counts.requests > 0 && !counts.ended_by.is_empty() {
            return OpenReason::NewProcess;
        }
        OpenReason::Growth
    }

    fn wait(&mut self, on: ConnectionId, waiter: PendingOpen) {
        if let Some(live) = self.live.get_mut(&on)
            && live.waiters.len() < WAITERS
        {
            live.waiters.push(waiter);
        }
    }

    /// The connection that an opening took for idle was busy: another may have been idle.
    fn look_again(&mut self, destination: usize, was_busy: ConnectionId, waiter: PendingOpen) {
        let opened = self.live.get(&waiter.connection);
        let party = opened.map(|live| live.party);
        let party = party.or(self.live.get(&was_busy).map(|live| live.party));
        let pool = party.and_then(|party| self.pools.get_mut(&(destination, party)));
        let other = pool
            .as_ref()
            .and_then(|pool| pool.idle_at(waiter.at))
            .filter(|&other| other != was_busy && waiter.tries < TRIES);
        if let Some(other) = other {
            let tries = waiter.tries + 1;
            self.wait(other, PendingOpen { tries, ..waiter });
            return;
        }
        let why = pool.and_then(|pool| pool.replace(waiter.at));
        self.correct(
            destination,
            waiter.connection,
            why.unwrap_or(OpenReason::Growth),
        );
    }

    /// An opening that was booked beside an idle connection had another reason.
    fn correct(&mut self, destination: usize, opened: ConnectionId, why: OpenReason) {
        self.book_why(destination, OpenReason::IdleExisted, Sign::Remove);
        self.book_why(destination, why, Sign::Add);
        if let Some(live) = self.live.get_mut(&opened) {
            live.why = why;
        }
    }

    fn join_pool(&mut self, live: &OpenConnection) {
        let key = (live.destination, live.party);
        let pool = self.pools.entry(key).or_default();
        pool.open += 1;
        pool.reused += u64::from(live.exchanges > 1);
        pool.multiplexing += u64::from(live.multiplexes() && !live.is_retiring());
        if let Some(idle) = live.idle_since() {
            pool.idle.insert((idle, live.connection.id));
            self.idle[live.destination].insert((idle, live.connection.id));
        }
    }

    fn leave_pool(&mut self, live: &OpenConnection) {
        let Some(pool) = self.pools.get_mut(&(live.destination, live.party)) else {
            return;
        };
        let multiplexing = live.multiplexes() && !live.is_retiring();
        pool.open = pool.open.saturating_sub(1);
        pool.reused = pool.reused.saturating_sub(u64::from(live.exchanges > 1));
        pool.multiplexing = pool.multiplexing.saturating_sub(u64::from(multiplexing));
        if let Some(idle) = live.idle_since() {
            pool.idle.remove(&(idle, live.connection.id));
            self.idle[live.destination].remove(&(idle, live.connection.id));
        }
    }

    /// Gives up the connection that was opened first when too many are open, and pools without any.
    fn make_room(&mut self) {
        while self.live.len() >= LIVE {
            let Some(oldest) = self.order.pop_front() else {
                break;
            };
            if let Some(live) = self.live.remove(&oldest) {
                self.leave_pool(&live);
                self.forgotten += 1;
            }
        }
        if self.order.len() > 2 * LIVE {
            self.order.retain(|id| self.live.contains_key(id));
        }
        if self.pools.len() >= POOLS {
            self.pools.retain(|_, pool| pool.open > 0);
        }
    }
}
