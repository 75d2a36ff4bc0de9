//! What the connections of each environment did: assigned to its invocations by time. Must not
//! conclude.

use intact_ledger::{
    Close, Closed, Connection, ConnectionId, Event, Exchange, Invocation, Nanos, Origin, Reuse,
    Sink,
};
use std::collections::{BTreeMap, HashMap};

/// Connections and exchanges that are held; what comes after that is counted, and the page says so.
const HELD: usize = 1_000_000;

/// What invocations need to know of a connection.
#[derive(Clone, Debug)]
pub(super) struct TrackedConnection {
    pub(super) origin: Option<Origin>,
    pub(super) at: Nanos,
    pub(super) opened: bool,
    pub(super) closed: Option<Close>,
    /// In the order of their ends.
    pub(super) exchanges: Vec<Use>,
}

/// An exchange.
#[derive(Clone, Copy, Debug)]
pub(super) struct Use {
    pub(super) at: Nanos,
    pub(super) ok: bool,
    pub(super) reused: Option<bool>,
}

/// The connections of all environments.
#[derive(Clone, Debug, Default)]
pub(super) struct Traffic {
    environments: BTreeMap<u64, Vec<TrackedConnection>>,
    places: HashMap<ConnectionId, (u64, usize)>,
    held: usize,
    /// What there was no room for.
    pub(super) left_out: u64,
}

/// What an invocation did on the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) connections: u64,
    pub(super) requests: u64,
    pub(super) reused: u64,
}

impl Traffic {
    /// The connections of an environment.
    pub(super) fn of(&self, environment: u64) -> &[TrackedConnection] {
        self.environments
            .get(&environment)
            .map_or(&[], Vec::as_slice)
    }

    /// What was opened and begun in an environment between these moments.
    pub(super) fn between(&self, environment: u64, from: Nanos, to: Nanos) -> Share {
        let mut share = Share::default();
        let within = |at: Nanos| from <= at && at < to;
        for held in self.of(environment) {
            share.connections += u64::from(held.opened && within(held.at));
            for one in held.exchanges.iter().filter(|one| within(one.at)) {
                share.requests += 1;
                share.reused += u64::from(one.reused == Some(true));
            }
        }
        share
    }

    fn room(&mut self) -> bool {
        let room = self.held < HELD;
        self.held += usize::from(room);
        self.left_out += u64::from(!room);
        room
    }

    fn opened(&mut self, one: &Connection) {
        let Some(environment) = one.environment else {
            return;
        };
        if !self.room() {
            return;
        }
        let all = self.environments.entry(environment).or_default();
        self.places.insert(one.id, (environment, all.len()));
        all.push(TrackedConnection {
            origin: one.origin.clone(),
            at: one.at,
            opened: one.is_opened(),
            closed: None,
            exchanges: Vec::new(),
        });
    }

    fn held(&mut self, id: ConnectionId) -> Option<&mut TrackedConnection> {
        let (environment, index) = self.places.get(&id)?;
        self.environments.get_mut(environment)?.get_mut(*index)
    }

    fn exchange(&mut self, one: &Exchange) {
        if !self.room() {
            return;
        }
        if let Some(held) = one.connection.and_then(|id| self.held(id)) {
            held.exchanges.push(Use {
                at: one.at,
                ok: one.outcome.is_ok(),
                reused: one.reuse.map(Reuse::is_reused),
            });
        }
    }

    fn closed(&mut self, one: &Closed) {
        if let Some(held) = self.held(one.connection) {
            held.closed = Some(one.close.clone());
        }
    }
}

impl Sink for Traffic {
    fn record(&mut self, event: Event<'_>) {
        match event {
            Event::Opened(connection) => self.opened(connection),
            Event::Exchange(exchange) => self.exchange(exchange),
            Event::Closed(closed) => self.closed(closed),
            _ => {}
        }
    }
}

/// Until when things belong to each invocation: until the next one of its environment begins.
pub(super) fn until(invocations: &[Invocation]) -> Vec<Nanos> {
    let mut next: HashMap<u64, Nanos> = HashMap::new();
    let mut ends = Vec::with_capacity(invocations.len());
    for one in invocations.iter().rev() {
        let end = next.insert(one.environment, one.begins());
        ends.push(end.unwrap_or(Nanos(u64::MAX)));
    }
    ends.reverse();
    ends
}
