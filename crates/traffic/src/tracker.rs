//! The state that the rules read: destinations with their counts, open connections with their
//! pools, lookups. One pass over the events, each to the components that it concerns. Must not
//! conclude.

use super::caveats::Caveats;
use super::destination::Sign;
use super::destinations::{Destinations, shows_origin};
use super::evictions::{Evictions, Moment};
use super::lookups::LookupCounts;
use super::open_connection::{HAND_BACK, OpenConnection, PendingOpen, PoolOwner, announced_by};
use super::open_reason::OpenReason;
use super::pools::Pools;
use intact_ledger::{
    Caveat, ClosePoint, Closed, Connection, ConnectionId, Evidence, Exchange, Failure, Lookup,
    Nanos, Outcome, Run, Side, Sockets, Vantage,
};
use std::collections::VecDeque;

/// Failed dials that are remembered.
const FAILED_DIALS: usize = 64;

/// What an event meant.
#[derive(Debug, Default)]
pub struct Context<'a> {
    /// Index of the destination that it belongs to.
    pub destination: Option<usize>,
    /// Its connection as it was when the event came, the event included.
    pub live: Option<&'a OpenConnection>,
    /// How long the connection had been idle before the exchange, in nanoseconds.
    pub gap: Option<u64>,
    /// Whether peers are servers: the ledger was not recorded by one.
    pub is_of_client: bool,
}

/// The state of what was observed so far.
#[derive(Clone, Debug)]
pub struct Tracker {
    run: Run,
    /// The destinations and their counts.
    pub destinations: Destinations,
    /// The lookups.
    pub lookups: LookupCounts,
    /// The machine's sockets.
    pub sockets: Vec<Sockets>,
    /// The last moment of an event.
    pub now: Nanos,
    caveats: Caveats,
    pools: Pools,
    evictions: Evictions,
    /// The connection that closed last, for exchanges that are recorded afterwards.
    just_closed: Option<Box<OpenConnection>>,
    /// The last failed dials with their destinations, the newest first: a request that waited for
    /// a dial belongs there.
    failed_dials: VecDeque<(ConnectionId, usize)>,
}

impl Tracker {
    pub(super) fn new(run: &Run) -> Tracker {
        Tracker {
            run: run.clone(),
            destinations: Destinations::new(run),
            lookups: LookupCounts::default(),
            sockets: Vec::new(),
            now: Nanos(0),
            caveats: Caveats::default(),
            pools: Pools::default(),
            evictions: Evictions::default(),
            just_closed: None,
            failed_dials: VecDeque::new(),
        }
    }

    /// The head of the ledger.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// An open connection.
    pub fn live(&self, id: ConnectionId) -> Option<&OpenConnection> {
        self.pools.get(id)
    }

    /// The connections that are open.
    pub(crate) fn open(&self) -> impl Iterator<Item = &OpenConnection> {
        self.pools.connections()
    }

    /// The connections that each destination's peak overlap needs.
    pub fn needed(&self) -> Vec<u64> {
        let counts = &self.destinations.counts;
        let mut open: Vec<Vec<&OpenConnection>> = vec![Vec::new(); counts.len()];
        for live in self.pools.connections() {
            open[live.destination].push(live);
        }
        let each = counts.iter().zip(open);
        each.map(|(counts, open)| counts.needed(open.into_iter(), self.now))
            .collect()
    }

    /// Open connections to each destination whose content could not be read so far. One that
    /// carries plain HTTP is readable, so it is unused.
    pub fn opaque(&self) -> Vec<u64> {
        let mut opaque = vec![0; self.destinations.counts.len()];
        for live in self.pools.connections().filter(|live| live.exchanges == 0) {
            let connection = &live.connection;
            let is_readable = connection.protocol.is_some() && connection.tls.is_none();
            opaque[live.destination] += u64::from(!is_readable);
        }
        opaque
    }

    /// The caveats of the producer, then what the limits left out.
    pub(super) fn caveats(&self) -> Vec<Caveat> {
        let mut caveats = self.caveats.all();
        caveats.extend(self.destinations.caveats());
        caveats.extend(self.pools.caveat());
        caveats
    }

    pub(super) fn opened(&mut self, connection: &Connection) -> Option<ConnectionId> {
        self.now = self.now.max(connection.at);
        let destination = self.destinations.of(connection);
        self.destinations.count(destination, connection, Sign::Add);
        if connection.failed.is_some() {
            self.failed_dials.truncate(FAILED_DIALS - 1);
            self.failed_dials.push_front((connection.id, destination));
            return None;
        }
        let owner = PoolOwner::of(connection, &self.run);
        self.note_growth(connection, destination);
        let why = self.reason(connection, destination, owner);
        self.destinations.count_reason(destination, why, Sign::Add);
        let live = OpenConnection::new(connection.clone(), destination, owner, why);
        self.pools.add(live);
        self.explain_spares(connection.id, destination);
        Some(connection.id)
    }

    pub(super) fn revised(&mut self, connection: &Connection) -> Option<ConnectionId> {
        self.now = self.now.max(connection.at);
        let mut live = self.pools.take(connection.id)?;
        let destination = if live.exchanges == 0 {
            self.destinations.of(connection)
        } else {
            live.destination
        };
        self.destinations
            .count(live.destination, &live.connection, Sign::Remove);
        self.destinations.count(destination, connection, Sign::Add);
        if connection.failed.is_some() {
            self.destinations
                .count_reason(live.destination, live.why, Sign::Remove);
            return None;
        }
        let is_moved = destination != live.destination;
        if is_moved {
            self.destinations
                .count_reason(live.destination, live.why, Sign::Remove);
            live.destination = destination;
            live.owner = PoolOwner::of(connection, &self.run);
            self.note_growth(connection, destination);
            live.why = self.reason(connection, destination, live.owner);
            self.destinations
                .count_reason(destination, live.why, Sign::Add);
        }
        *live.connection = connection.clone();
        match is_moved {
            true => self.pools.put_first(live),
            false => self.pools.put(live),
        }
        self.explain_spares(connection.id, destination);
        Some(connection.id)
    }

    /// Gives an open connection what it had carried before its record began.
    pub(super) fn restore(&mut self, id: ConnectionId, before: OpenConnection) {
        if let Some(live) = self.pools.take(id) {
            self.pools.put(OpenConnection {
                exchanges: before.exchanges,
                carried_response: before.carried_response,
                last: before.last,
                ..live
            });
        }
    }

    /// Counts an exchange; returns its destination, its connection where that is open, and the idle
    /// time before it.
    pub(super) fn exchange(
        &mut self,
        exchange: &Exchange,
    ) -> (usize, Option<ConnectionId>, Option<u64>) {
        self.now = self.now.max(exchange.end);
        let timed = self.run.sees(Evidence::Durations);
        let Some(mut live) = exchange.connection.and_then(|id| self.pools.take(id)) else {
            return (self.late_exchange(exchange), None, None);
        };
        let (id, destination) = (live.connection.id, live.destination);
        let owner = (destination, live.owner);
        let retired = live.is_retiring();
        let gap = live.carry(exchange);
        // times to the second hide how long a connection was idle
        let gap = gap.filter(|_| self.run.time_step_ns.is_none());
        if let (Some(side), false) = (announced_by(exchange), retired) {
            // of concurrent streams, those that the server refused end first
            let position = exchange.ordinal.map_or(0, u64::from);
            let why = live.announced(side, live.exchanges.max(position));
            self.pools.announce_end(&live, exchange.end, why);
        }
        self.destinations
            .count_exchange(destination, exchange, Some(&mut live), gap, timed);
        // the exchange shows whether the connection was idle when others were opened
        let waiters = std::mem::take(&mut live.waiters);
        self.pools.put(live);
        let is_stale = exchange.outcome == Outcome::Failed(Failure::Stale);
        for waiter in waiters {
            // the client decides a little before the request is seen: a connection that was about
            // to be used was not idle a stale request does not show since when the
            // connection was closed: its end does
            if is_stale {
                self.pools.wait(id, waiter);
            } else if exchange.at <= waiter.at.after(HAND_BACK) && waiter.at < exchange.end {
                let why = self.pools.look_again(owner, id, waiter);
                self.correct(destination, waiter, why);
            } else if exchange.end <= waiter.at {
                self.pools.wait(id, waiter);
            }
        }
        (destination, Some(id), gap)
    }

    /// Counts an exchange whose connection is not open, and returns its destination: that of the
    /// connection that closed last, or of a failed dial.
    fn late_exchange(&mut self, exchange: &Exchange) -> usize {
        let id = exchange.connection;
        let closed = self.just_closed.as_deref_mut();
        let closed = closed.filter(|live| Some(live.connection.id) == id);
        let mut dials = self.failed_dials.iter();
        let dial = dials.find(|(dial, _)| Some(*dial) == id);
        let known = closed.as_ref().map(|live| live.destination);
        let destination = match known.or(dial.map(|(_, destination)| *destination)) {
            Some(destination) => destination,
            None => self.destinations.without_key(false),
        };
        let timed = self.run.sees(Evidence::Durations);
        self.destinations
            .count_exchange(destination, exchange, closed, None, timed);
        destination
    }

    /// Counts an end and gives back the connection.
    pub(super) fn closed(&mut self, closed: &Closed) -> Option<&OpenConnection> {
        let close = &closed.close;
        self.now = self.now.max(close.at);
        let mut live = self.pools.take(closed.connection)?;
        self.destinations.assign_by_address(&mut live, close);
        let mut why = OpenReason::end_of(&live, close);
        let moment = Moment {
            at: close.at,
            destination: live.destination,
            owner: live.owner,
        };
        if why == OpenReason::ClientIdle
            && let Some(grown) = self.evictions.close(moment)
            && self.pools.keep_others(moment, grown)
        {
            why = OpenReason::Evicted;
        }
        let waiters = std::mem::take(&mut live.waiters).into_iter();
        let mut replaced = live.is_retiring();
        // a connection that ends right after its response was idle for no client: an opening in
        // between replaced it
        if why.is_at_once() {
            // what was opened long before the end is no part of it: the connection was idle then
            let mut waiters = waiters.filter(|waiter| close.at <= waiter.at.after(HAND_BACK));
            if let Some(first) = waiters.next().filter(|_| !replaced) {
                self.correct(live.destination, first, Some(why));
                replaced = true;
            }
            let owner = (live.destination, live.owner);
            for waiter in waiters {
                let why = self.pools.look_again(owner, closed.connection, waiter);
                self.correct(live.destination, waiter, why);
            }
            // its response was over by then, or the client did not wait for the end of it
            let is_given_up = matches!(why, OpenReason::GaveUp | OpenReason::Undrained);
            let was_over = |at| live.last.as_ref().is_some_and(|last| last.end <= at);
            // the server's end comes late where the client did not wait for it
            if !replaced
                && is_given_up
                && let Some(first) = self.pools.opened_after(owner, close.at)
            {
                self.correct(live.destination, first, Some(why));
                replaced = true;
            }
            if !replaced
                && let Some(newest) = self.pools.opened_just_before(owner, close.at)
                && (is_given_up || was_over(newest.at))
            {
                self.correct(live.destination, newest, Some(why));
                replaced = true;
            }
        } else {
            // what was opened after the other side had closed could not use it, however late the
            // client closed its own end
            for waiter in waiters.filter(|waiter| waiter.at >= close.at) {
                let again = self.pools.look_for_newer(
                    (live.destination, live.owner),
                    closed.connection,
                    waiter,
                );
                let again = again.map(|again| match again {
                    OpenReason::Growth => why,
                    other => other,
                });
                self.correct(live.destination, waiter, again);
            }
        }
        if let (Some(last), false) = (&live.last, why.is_at_once() || replaced) {
            let owner = (live.destination, live.owner);
            self.pools.note_idle(owner, last.end, close.at);
        }
        // an announced end was recorded with its announcement; what the client gave up unused is
        // not replaced
        let is_spare = close.by == Some(Side::Client) && close.moment == Some(ClosePoint::Unused);
        if is_spare && live.why.is_of_a_request() {
            self.destinations
                .correct_reason(live.destination, live.why, OpenReason::Unused);
            live.why = OpenReason::Unused;
            self.pools.note_spare(&live);
        }
        if !(replaced || is_spare) {
            self.pools
                .end((live.destination, live.owner), close.at, why);
        }
        self.destinations.count_close(&live, close);
        self.just_closed = Some(Box::new(live));
        self.just_closed.as_deref()
    }

    /// What belongs to an open connection.
    pub(super) fn context(&self, id: Option<ConnectionId>) -> Context<'_> {
        let live = id.and_then(|id| self.pools.get(id));
        Context {
            destination: live.map(|live| live.destination),
            live,
            gap: None,
            is_of_client: self.run.vantage != Vantage::Server,
        }
    }

    pub(super) fn caveat(&mut self, caveat: &Caveat) {
        self.caveats.add(caveat);
    }

    pub(super) fn lookup(&mut self, lookup: &Lookup) {
        self.now = self.now.max(lookup.span.end);
        self.lookups.add(lookup);
    }

    /// Keeps the first and the last count of the machine's sockets.
    pub(super) fn sockets(&mut self, sockets: Sockets) {
        self.sockets.truncate(1);
        self.sockets.push(sockets);
    }

    fn reason(
        &mut self,
        connection: &Connection,
        destination: usize,
        owner: PoolOwner,
    ) -> OpenReason {
        if !self.run.sees(Evidence::Ends) || connection.open_before {
            return OpenReason::Unseen;
        }
        let counts = &self.destinations.counts[destination];
        let had_ends = counts.requests > 0 && !counts.ended_by.is_empty();
        self.pools.reason(connection, destination, owner, had_ends)
    }

    /// Connections that a client set up at the same time as one that took all streams are recorded
    /// before that one, when they end.
    fn explain_spares(&mut self, id: ConnectionId, destination: usize) {
        for _ in 0..self.pools.spares_next_to(id) {
            let (unused, other) = (OpenReason::Unused, OpenReason::InParallel);
            self.destinations.correct_reason(destination, unused, other);
        }
    }

    /// A pool got one more connection to a destination that is known, and may have closed another
    /// for it.
    fn note_growth(&mut self, connection: &Connection, destination: usize) {
        if !shows_origin(connection) {
            return;
        }
        let grown = Moment {
            at: connection.at,
            destination,
            owner: PoolOwner::of(connection, &self.run),
        };
        for end in self.evictions.grow(grown) {
            if self.pools.keep_others(end, grown) {
                let owner = (end.destination, end.owner);
                self.pools.correct_end(owner, end.at, OpenReason::Evicted);
            }
        }
    }

    /// An opening that was counted next to a connection that seemed idle had another reason.
    fn correct(&mut self, destination: usize, waiter: PendingOpen, why: Option<OpenReason>) {
        let opened = waiter.connection;
        if let Some(why) = why.filter(|_| !self.pools.was_spare(opened)) {
            self.destinations
                .correct_reason(destination, waiter.why, why);
            self.pools.correct(opened, why);
        }
    }
}
