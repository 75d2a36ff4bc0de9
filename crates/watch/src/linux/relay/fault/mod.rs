//! Faults that strike the program's connections (`watch --fault`): which connections, and what was
//! not applied.
//!
//! A fault strikes a *kept* connection, one that has carried a complete exchange and is to carry
//! more. The choice comes from counters per destination and from the seed, never from the clock.
//! With [`FaultScope::All`] it then strikes each connection of the pool ([`pool`]). What is done to
//! a connection is in [`target`] and [`strike`]. Without a fault there is none of this: then a
//! connection has no [`FaultTarget`].

mod announcement;
mod burst;
mod pool;
mod response;
mod strike;
mod struck;
mod target;
mod turn;

pub(super) use strike::Strike;
pub(super) use target::FaultTarget;

use super::direction::ReadResult;
use super::hold::Hold;
use super::{observe, take};
use crate::platform::run_context::RunContext;
use crate::{Clock, FaultConfig, RunPosition};
use intact_ledger::{
    Connection, ConnectionId, FaultEvent, FaultMoment, FaultNotApplied, FaultObstacle, FaultPlan,
    FaultRow, FaultScope, Nanos, Origin, Scheme,
};
use intact_observe::{ObservedConnection, Progress, Side};
use mio::net::TcpStream;
use pool::StruckPool;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use turn::{Turns, is_idle};

/// The observation of a connection, as a fault sees it.
pub(super) struct Shown<'s, 'a> {
    pub(super) observed: &'s mut Option<ObservedConnection>,
    pub(super) run: &'s mut RunContext<'a>,
    pub(super) clock: Clock,
    pub(super) holds: &'s [Hold; 2],
}

impl Shown<'_, '_> {
    /// Shows bytes that passed.
    fn show(&mut self, from: Side, bytes: &[u8]) {
        let (at, hold) = (self.clock.now(), &self.holds[from as usize]);
        observe(self.observed, self.run, |seen, run| {
            take(seen, run, (from, at), ReadResult::Bytes(bytes), hold);
        });
    }

    /// How far the exchanges are.
    fn progress(&self) -> Option<Progress> {
        self.observed.as_ref()?.progress()
    }

    /// What is known of the connection.
    fn connection(&self) -> Option<&Connection> {
        self.observed.as_ref().map(ObservedConnection::connection)
    }

    /// The time on the run's clock.
    fn now(&self) -> Nanos {
        self.clock.now()
    }
}

/// The faults of a run.
pub(super) struct Faults {
    config: FaultConfig,
    place: Option<RunPosition>,
    destinations: BTreeMap<DestinationKey, Destination>,
    /// A connection went to a destination that was not chosen.
    has_others: bool,
    /// The connection that was carried last.
    newest: ConnectionId,
}

/// Host and port.
pub(super) type DestinationKey = (String, u16);

/// What is counted of a destination.
#[derive(Default)]
struct Destination {
    origin: Option<Origin>,
    peer: Option<SocketAddr>,
    connections: u64,
    /// Those that carried an exchange.
    used: u64,
    /// Those that carried more than one.
    reused: u64,
    turns: Turns,
    strikes: u64,
    /// What kept faults from striking, and how often.
    obstacles: BTreeMap<FaultObstacle, u64>,
    pool: StruckPool,
}

impl Faults {
    pub(super) fn new(config: FaultConfig, place: Option<RunPosition>) -> Faults {
        Faults {
            config,
            place,
            destinations: BTreeMap::new(),
            has_others: false,
            newest: ConnectionId(0),
        }
    }

    /// What is going to be done, for the ledger.
    pub(super) fn plan(&self) -> FaultEvent {
        let config = &self.config;
        let nanos = |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        FaultEvent::Planned(FaultPlan {
            variant: self.place.map(|place| place.variant),
            round: self.place.map(|place| place.round),
            kind: config.kind,
            scope: Some(config.scope),
            after_ns: config.kind.row().default_after.map(|_| nanos(config.after)),
            hosts: config
                .hosts
                .iter()
                .map(|host| host.to_string().into())
                .collect(),
            seed: config.seed,
            wait_ns: nanos(config.wait),
        })
    }

    /// The destination of a connection; `None` where faults are limited to others.
    fn destination(&mut self, about: &Connection) -> Option<(DestinationKey, &mut Destination)> {
        let key = key(about)?;
        let peer = about.peer.map(|peer| peer.ip().to_canonical().to_string());
        let hosts = &self.config.hosts;
        let is_chosen = hosts.is_empty()
            || hosts.iter().any(|host| {
                let is_named = *host.host == key.0 || peer.as_deref() == Some(&host.host);
                is_named && host.port.is_none_or(|port| port == key.1)
            });
        if !is_chosen {
            self.has_others = true;
            return None;
        }
        let destination = self.destinations.entry(key.clone()).or_default();
        // a connection without a request does not show what the others carry
        let shows_more =
            |origin: &Origin| origin.scheme != Scheme::Tcp || destination.origin.is_none();
        if about.origin.as_ref().is_some_and(shows_more) {
            destination.origin.clone_from(&about.origin);
        }
        destination.peer = destination.peer.or(about.peer);
        Some((key, destination))
    }

    /// Whether and when a connection is struck that is kept now: after this number of exchanges.
    fn turn_of(&mut self, about: &Connection) -> Option<(DestinationKey, Option<u64>)> {
        let (seed, scope) = (self.config.seed, self.config.scope);
        let has_age = self.has_age();
        let (key, destination) = self.destination(about)?;
        let chosen = destination.turns.next(seed, &key);
        let turn = match scope {
            FaultScope::One => chosen,
            // an age is reached by each connection
            FaultScope::All if has_age => Some(1),
            FaultScope::All => Some(Turns::first(seed, &key)),
        };
        destination.pool.note_kept(about.id);
        Some((key, turn))
    }

    /// Something kept a fault from striking a connection of that destination.
    fn note_obstacle(&mut self, key: &DestinationKey, why: FaultObstacle) {
        if let Some(destination) = self.destinations.get_mut(key) {
            *destination.obstacles.entry(why).or_default() += 1;
        }
    }

    /// A connection was struck, and with it its pool where all of that is.
    fn note_strike(&mut self, key: &DestinationKey, id: ConnectionId) {
        if let Some(destination) = self.destinations.get_mut(key) {
            destination.strikes += 1;
        }
        self.strike_pool(key, id);
    }

    /// A connection is carried from now on.
    pub(super) fn note_carried(&mut self, id: ConnectionId) {
        self.newest = self.newest.max(id);
    }

    /// The server that a fault puts at an address, with TLS or without.
    pub(super) fn other_server(&self, is_tls: bool) -> Option<SocketAddr> {
        self.config
            .other_server
            .map(|[plain, tls]| if is_tls { tls } else { plain })
    }

    /// Whether a connection leads to that server.
    pub(super) fn is_to_other_server(&self, far: &TcpStream) -> bool {
        let mut servers = self.config.other_server.into_iter().flatten();
        servers.any(|one| far.peer_addr().is_ok_and(|peer| peer == one))
    }

    /// Each connection of the destination is struck that is carried by now, where all are.
    fn strike_pool(&mut self, key: &DestinationKey, id: ConnectionId) {
        let (newest, is_any) = (self.newest, self.strikes_pools());
        if let Some(destination) = self.destinations.get_mut(key).filter(|_| is_any) {
            destination.pool.strike(id, newest);
        }
    }

    /// Whether it strikes each connection that has an age.
    fn has_age(&self) -> bool {
        self.config.kind.row().moment == FaultMoment::Age
    }

    /// Whether a strike on one connection strikes the others too. Ages strike each by itself.
    fn strikes_pools(&self) -> bool {
        self.config.scope == FaultScope::All && !self.has_age()
    }

    /// Whether this connection is struck because its pool was.
    fn is_of_struck_pool(&self, key: &DestinationKey, id: ConnectionId) -> bool {
        let destination = self.destinations.get(key);
        destination.is_some_and(|destination| destination.pool.has_struck(id))
    }

    /// Whether a pool may be struck with a connection of it.
    fn may_strike_pool(&self, key: &DestinationKey) -> bool {
        let destination = self.destinations.get(key);
        !self.strikes_pools() || destination.is_none_or(|one| one.pool.may_be_struck())
    }

    /// A relayed connection is over that carried this number of exchanges.
    pub(super) fn note_end(&mut self, target: &FaultTarget, about: &Connection, exchanges: u64) {
        let fault = self.config.kind.row();
        // its origin may have become known after it was kept
        let kept = target.destination().cloned();
        let known = kept.filter(|key| self.destinations.contains_key(key));
        let destination = match known {
            Some(key) => self.destinations.get_mut(&key),
            None => self.destination(about).map(|(_, destination)| destination),
        };
        if let Some(destination) = destination {
            destination.pool.note_end(about.id);
            destination.connections += 1;
            destination.used += u64::from(exchanges > 0);
            destination.reused += u64::from(exchanges > 1);
            if target.ended_too_early(fault, exchanges) {
                let count = destination.obstacles.entry(FaultObstacle::TooFewExchanges);
                *count.or_default() += 1;
            }
        }
    }

    /// A connection is followed from outside.
    pub(super) fn note_not_relayed(&mut self, about: &Connection) {
        if let Some((key, destination)) = self.destination(about) {
            destination.connections += 1;
            self.note_obstacle(&key, FaultObstacle::NotRelayed);
        }
    }

    /// The destinations that were not struck, at the end of the run.
    pub(super) fn not_applied(&self) -> Vec<FaultEvent> {
        let row = |destination: Option<&Destination>, why| {
            FaultEvent::NotApplied(FaultNotApplied {
                variant: self.place.map(|place| place.variant),
                round: self.place.map(|place| place.round),
                kind: self.config.kind,
                origin: destination.and_then(|one| one.origin.clone()),
                peer: destination.and_then(|one| one.peer),
                why,
                connections: destination.map_or(0, |one| one.connections),
            })
        };
        if self.destinations.is_empty() {
            return vec![match self.has_others {
                true => row(None, FaultObstacle::NoSuchHost),
                false => row(None, FaultObstacle::NoConnection),
            }];
        }
        let missed = self.destinations.values().filter(|one| one.strikes == 0);
        missed
            .map(|one| row(Some(one), one.obstacle(self.config.kind.row())))
            .collect()
    }
}

impl Destination {
    /// Why no fault struck.
    fn obstacle(&self, fault: FaultRow) -> FaultObstacle {
        let most = self.obstacles.iter().max_by_key(|(_, count)| **count);
        match most {
            Some((why, _)) => *why,
            None if self.used == 0 => FaultObstacle::NotHttp,
            None if self.turns.count() == 0 => FaultObstacle::NeverKept,
            None if fault.moment == FaultMoment::Age => FaultObstacle::NeverSoOld,
            None if fault.moment == FaultMoment::Burst => FaultObstacle::NoBurst,
            None if self.reused > 0 && is_idle(fault) => FaultObstacle::NeverIdle,
            None => FaultObstacle::NeverReused,
        }
    }
}

/// Host and port that a connection leads to, if they are known by now.
fn key(about: &Connection) -> Option<DestinationKey> {
    let peer = about
        .peer
        .map(|peer| (peer.ip().to_canonical().to_string(), peer.port()));
    let origin = about.origin.as_ref();
    origin
        .map(|origin| (origin.host.to_string(), origin.port))
        .or(peer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use intact_ledger::FaultKind;

    #[test]
    fn a_connection_without_a_request_does_not_rename_its_destination() {
        let mut faults = Faults::new(FaultConfig::new(FaultKind::Stale), None);
        let peer: SocketAddr = "127.0.0.1:80".parse().unwrap();
        for scheme in [Scheme::Tcp, Scheme::Http, Scheme::Tcp] {
            let mut about = Connection::new(ConnectionId(1), Nanos(0));
            about.peer = Some(peer);
            about.origin = Some(Origin {
                scheme,
                host: "127.0.0.1".into(),
                port: 80,
            });
            faults.note_not_relayed(&about);
        }
        let missed = faults.not_applied();
        let [FaultEvent::NotApplied(missed)] = &missed[..] else {
            panic!("{missed:?}");
        };
        let scheme = missed.origin.as_ref().map(|origin| origin.scheme);
        assert_eq!((scheme, missed.connections), (Some(Scheme::Http), 3));
    }
}
