//! The state that the rules read: destinations with their counts, open connections with their
//! pools, lookups. One pass over the events, each to the components that it concerns. Must not
//! conclude.

use super::answered::AnsweredEnds;
use super::caveats::Caveats;
use super::destination::{Carrier, Sign, occupied};
use super::destinations::Destinations;
use super::distributions::server_limit;
use super::history::{End, History, Use};
use super::lookups::LookupCounts;
use super::open_connection::{OpenConnection, PoolOwner, UPGRADE, announced_by, streams};
use super::open_connections::OpenConnections;
use super::open_reason::{OpenReason, leaves_rest};
use super::pool_cause::Causes;
use intact_ledger::{
    Caveat, ClosePoint, Closed, CodeStack, Connection, ConnectionId, Evidence, Exchange, Lookup,
    Nanos, Run, Side, Sockets, Span, StackFrame, StackId, Vantage,
};
use std::collections::{BTreeMap, VecDeque};

/// Failed dials that are remembered.
const FAILED_DIALS: usize = 64;
/// Stacks that are remembered.
const STACKS: usize = 4096;

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

/// What the openings of connections were for, by destination.
#[derive(Debug)]
pub(crate) struct Judged {
    /// Why connections were opened.
    pub(crate) causes: Causes,
    /// Connections that a client needs.
    pub(crate) needs: Vec<Need>,
}

/// The connections that a client needs at one destination.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Need {
    /// At the same time.
    pub(crate) at_once: u64,
    /// In the place of those that the server ended.
    pub(crate) by_server: u64,
    /// In the place of those that the client closed at its idle limit, where the server's is
    /// unknown.
    pub(crate) idle_limited: u64,
    /// In the place of others whose end is not shown: the server may have ended them.
    pub(crate) unseen: u64,
}

impl Need {
    /// `opened` is all that were opened, and `shows_ends` whether their ends were recorded.
    fn of(opened: u64, at_once: u64, by_server: u64, idle_limited: u64, shows_ends: bool) -> Need {
        let at_once = at_once.min(opened);
        let by_server = by_server.min(opened - at_once);
        let idle_limited = idle_limited.min(opened - at_once - by_server);
        let others = opened - at_once - by_server - idle_limited;
        Need {
            at_once,
            by_server,
            idle_limited,
            unseen: if shows_ends { 0 } else { others },
        }
    }

    /// All of them.
    pub(crate) fn all(self) -> u64 {
        self.least() + self.by_server_at_most()
    }

    /// Those in the place of others that the server ended, or may have ended.
    pub(crate) fn by_server_at_most(self) -> u64 {
        self.by_server + self.unseen
    }

    /// What would do if the server ended none.
    pub(crate) fn least(self) -> u64 {
        self.at_once + self.idle_limited
    }

    /// Of two destinations together.
    pub(crate) fn plus(self, other: Need) -> Need {
        Need {
            at_once: self.at_once + other.at_once,
            by_server: self.by_server + other.by_server,
            idle_limited: self.idle_limited + other.idle_limited,
            unseen: self.unseen + other.unseen,
        }
    }
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
    /// The places in the code from which connections are opened.
    stacks: BTreeMap<StackId, CodeStack>,
    caveats: Caveats,
    open: OpenConnections,
    pub(super) history: History,
    pub(super) answered: AnsweredEnds,
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
            stacks: BTreeMap::new(),
            caveats: Caveats::default(),
            open: OpenConnections::default(),
            history: History::default(),
            answered: AnsweredEnds::default(),
            failed_dials: VecDeque::new(),
        }
    }

    /// The head of the ledger.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// An open connection.
    pub fn live(&self, id: ConnectionId) -> Option<&OpenConnection> {
        self.open.get(id)
    }

    /// Reads the state of connections whose events come next, and drops it.
    pub(super) fn expect(&self, connections: &[ConnectionId]) {
        for &id in connections {
            std::hint::black_box((self.open.touch(id), self.history.touch(id)));
        }
    }

    /// The connections that are open.
    pub(crate) fn open(&self) -> impl Iterator<Item = &OpenConnection> {
        self.open.all()
    }

    /// What the openings of all connections were for.
    pub(crate) fn judge(&self) -> Judged {
        let counts = &self.destinations.counts;
        let mut open: Vec<Vec<&OpenConnection>> = vec![Vec::new(); counts.len()];
        for live in self.open.all() {
            open[live.destination].push(live);
        }
        let limits: Vec<Option<u64>> = counts.iter().map(server_limit).collect();
        let mut judged = Judged {
            causes: Causes::of(&self.history, |destination| limits[destination]),
            needs: Vec::with_capacity(counts.len()),
        };
        for (at, (counts, open)) in counts.iter().zip(open).enumerate() {
            let causes = &mut judged.causes;
            let busy = causes.busy(at).max(causes.grown(at));
            let at_once = counts.needed(busy, open.into_iter(), self.now);
            let reasons = causes.reasons(at).filter(|(why, _)| why.is_of_server());
            let by_server = reasons.map(|(_, openings)| openings).sum();
            let of_client = causes.openings(at, OpenReason::ClientIdle);
            let limited = if limits[at].is_none() { of_client } else { 0 };
            let shows_ends = self.run.sees(Evidence::Ends);
            let need = Need::of(counts.opened, at_once, by_server, limited, shows_ends);
            causes.absorb(at, counts.opened - need.least());
            judged.needs.push(need);
        }
        judged
    }

    /// Open connections to each destination whose content could not be read so far. One that
    /// carries plain HTTP is readable, so it is unused.
    pub fn opaque(&self) -> Vec<u64> {
        let mut opaque = vec![0; self.destinations.counts.len()];
        for live in self.open.all().filter(|live| live.exchanges == 0) {
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
        caveats.extend(self.open.caveat());
        caveats.extend(self.history.caveat());
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
        let live = OpenConnection::new(connection.clone(), destination, owner);
        self.history.open(&live, &self.run);
        self.open.add(live);
        Some(connection.id)
    }

    pub(super) fn revised(&mut self, connection: &Connection) -> Option<ConnectionId> {
        self.now = self.now.max(connection.at);
        let live = self.open.get_mut(connection.id)?;
        let destination = if live.exchanges == 0 {
            self.destinations.of(connection)
        } else {
            live.destination
        };
        self.destinations
            .count(live.destination, &live.connection, Sign::Remove);
        self.destinations.count(destination, connection, Sign::Add);
        if connection.failed.is_some() {
            self.history.forget(connection.id);
            self.open.remove(connection.id);
            return None;
        }
        if destination != live.destination {
            live.destination = destination;
            live.owner = PoolOwner::of(connection, &self.run);
        }
        live.connection = connection.clone();
        self.history.revise(live);
        Some(connection.id)
    }

    /// Gives an open connection what it had carried before its record began.
    pub(super) fn restore(&mut self, id: ConnectionId, before: OpenConnection) {
        let Some(live) = self.open.get_mut(id) else {
            return;
        };
        if let Some(last) = &before.last {
            let one = Use {
                span: Span::new(last.end, last.end),
                is_reusable: last.is_ok(),
            };
            self.history.carry(id, one, None);
        }
        live.exchanges = before.exchanges;
        live.carried_response = before.carried_response;
        live.last = before.last;
    }

    /// Counts an exchange; returns its destination, its connection where that is open, and the idle
    /// time before it.
    pub(super) fn exchange(
        &mut self,
        exchange: &Exchange,
    ) -> (usize, Option<ConnectionId>, Option<u64>) {
        self.now = self.now.max(exchange.end);
        let timed = self.run.sees(Evidence::Durations);
        let known = exchange.connection.and_then(|id| self.open.get_mut(id));
        let Some(live) = known else {
            return (self.late_exchange(exchange), None, None);
        };
        let (id, destination) = (live.connection.id, live.destination);
        let retired = live.is_retiring();
        let gap = live.carry(exchange);
        // times to the second hide how long a connection was idle
        let gap = gap.filter(|_| self.run.time_step_ns.is_none());
        let (one, sent) = (used(exchange), sent(exchange));
        self.history.carry(id, one, sent);
        self.answered.add(destination, exchange);
        if let (Some(side), false) = (announced_by(exchange), retired) {
            // of concurrent streams, those that the server refused end first
            let position = exchange.ordinal.map_or(0, u64::from);
            let why = live.announced(side, live.exchanges.max(position), 0);
            let at = exchange.end;
            self.history.announce(id, End { at, why });
        }
        let carrier = Carrier {
            streams: streams(&live.connection),
            live: Some(live),
            gap,
        };
        self.destinations
            .count_exchange(destination, exchange, carrier, timed);
        (destination, Some(id), gap)
    }

    /// Counts an exchange whose connection is not open, and returns its destination: that of the
    /// connection, which has ended, or of a failed dial.
    fn late_exchange(&mut self, exchange: &Exchange) -> usize {
        let id = exchange.connection;
        let ended = id.and_then(|id| self.history.life(id));
        let mut dials = self.failed_dials.iter();
        let dial = dials.find(|(dial, _)| Some(*dial) == id);
        let streams = ended.and_then(|life| life.streams);
        let known = ended.map(|life| life.destination);
        let destination = match known.or(dial.map(|(_, destination)| *destination)) {
            Some(destination) => destination,
            None => self.destinations.without_key(false),
        };
        if let Some(id) = id {
            self.history.carry(id, used(exchange), sent(exchange));
        }
        let timed = self.run.sees(Evidence::Durations);
        let carrier = Carrier {
            streams,
            ..Carrier::default()
        };
        self.destinations
            .count_exchange(destination, exchange, carrier, timed);
        destination
    }

    /// Counts an end and gives back the connection.
    pub(super) fn closed(&mut self, closed: &Closed) -> Option<Box<OpenConnection>> {
        let close = &closed.close;
        self.now = self.now.max(close.at);
        let mut live = self.open.remove(closed.connection)?;
        self.destinations.assign_by_address(&mut live, close);
        let (at, why) = (close.at, OpenReason::end_of(&live, close));
        // what the client gave up unused is not replaced
        let is_spare = close.by == Some(Side::Client) && close.moment == Some(ClosePoint::Unused);
        self.history.end(&live, End { at, why }, is_spare);
        if leaves_rest(&live, close) {
            self.history.leave_rest(closed.connection);
        }
        self.destinations.count_close(&live, close);
        Some(live)
    }

    /// What belongs to an open connection.
    pub(super) fn context(&self, id: Option<ConnectionId>) -> Context<'_> {
        let live = id.and_then(|id| self.open.get(id));
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

    /// Keeps a stack.
    pub(super) fn stack(&mut self, stack: &CodeStack) {
        if self.stacks.len() < STACKS {
            self.stacks.insert(stack.id, stack.clone());
        }
    }

    /// Takes the stacks of a run that this is a part of: each is recorded once.
    pub(crate) fn know_stacks(&mut self, whole: &Tracker) {
        self.stacks.clone_from(&whole.stacks);
    }

    /// The place of a stack in the user's code, and the whole stack.
    pub(crate) fn place(&self, id: StackId) -> Option<(&StackFrame, &CodeStack)> {
        let stack = self.stacks.get(&id)?;
        Some((stack.place()?, stack))
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
}

/// When an exchange occupied its connection, and whether another one could follow.
fn used(exchange: &Exchange) -> Use {
    let is_over = announced_by(exchange).is_some() || exchange.status == Some(UPGRADE);
    Use {
        span: occupied(exchange, 0),
        is_reusable: exchange.outcome.may_be_ok() && !is_over,
    }
}

/// When the request left the client, if that was observed.
fn sent(exchange: &Exchange) -> Option<Nanos> {
    let spans = [exchange.spans.send, exchange.spans.wait];
    spans.into_iter().flatten().map(|span| span.start).next()
}
