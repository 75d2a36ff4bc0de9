//! Programs that are followed for a time, again and again: `--every`.
//!
//! Between two turns nothing is received. What was open then is ended in the record, by no side. If
//! it is there at the next turn, it is the rest of a connection. So no judgement takes a gap for a
//! time in which a connection was idle.

use super::look::Cookies;
use super::packets::ServicePackets;
use super::{Attached, Follower, TICK, is_of_run, update, visit};
use crate::{AttachConfig, WatchSink};
use intact_ledger::{
    Caveat, Close, ClosePoint, Closed, Connection, ConnectionId, Event, Nanos, Row, Sink,
};
use intact_sys::address::unmapped;
use intact_sys::signals::Signals;
use std::collections::{BTreeMap, HashSet};
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// How often a pause looks for a signal.
const PAUSE: Duration = Duration::from_millis(50);

/// The addresses of a connection, the lower one first.
pub(super) type Pair = (SocketAddr, SocketAddr);

/// The addresses in their order, whichever end has them.
pub(super) fn pair(one: SocketAddr, other: SocketAddr) -> Pair {
    let (one, other) = (unmapped(one), unmapped(other));
    (one.min(other), one.max(other))
}

impl Attached {
    /// Follows them turn by turn until they end or a signal comes: its number.
    pub(super) fn follow_in_turns(
        mut self,
        every: Duration,
        observer: &mut dyn WatchSink,
    ) -> Option<i32> {
        let mut turns = Turns {
            observer,
            open: BTreeMap::new(),
            rests: HashSet::new(),
            spare: HashSet::new(),
            caveats: BTreeMap::new(),
        };
        let mut begun = Instant::now();
        loop {
            let signal = self.follower.run(&mut turns);
            if signal.is_some() || self.follower.config.is_over() {
                self.follower.finish(&mut turns);
                turns.finish();
                return signal;
            }
            let (paused, cookies) = self.follower.pause(&mut turns);
            begun += every;
            let signal = paused.wait(begun, &mut turns);
            if signal.is_some() || paused.config.is_over() {
                paused.finish(&mut turns);
                turns.finish();
                return signal;
            }
            drop(self.visit.take());
            self.visit = visit(&paused.config.subjects);
            match paused.resume() {
                Ok(follower) => self.follower = follower,
                Err(error) => {
                    let words = format!("it cannot be followed any further: {error}");
                    let caveat = Caveat::incomplete("turns-ended", words);
                    turns.record(Event::Caveat(&caveat));
                    turns.finish();
                    return None;
                }
            }
            turns.resume(&cookies, self.follower.cookies());
        }
    }
}

/// What stays between two turns.
struct Paused {
    config: AttachConfig,
    /// Those of all turns: one that comes while a turn ends is not lost.
    signals: Signals,
    packets: io::Result<ServicePackets>,
    clock: crate::Clock,
    next_id: u64,
}

impl Follower {
    /// Ends a turn. Also the sockets that are there now.
    fn pause(mut self, turns: &mut Turns<'_>) -> (Paused, Cookies) {
        let caveats = self.complete(turns);
        let cookies = self.cookies().clone();
        let Follower {
            config,
            outside,
            mut packets,
            mut trace,
            signals,
            clock,
            next_id,
            ..
        } = self;
        match &mut packets {
            Ok(packets) => {
                outside.finish(clock, &mut |row| packets.report(row));
                packets.pause(&config, turns, |ownership| update(&mut trace, ownership));
            }
            Err(_) => outside.finish(clock, &mut |row: Row| turns.record(row.as_event())),
        }
        for caveat in caveats {
            turns.record(Event::Caveat(&caveat));
        }
        turns.pause(clock.now(), &config);
        let paused = Paused {
            config,
            signals,
            packets,
            clock,
            next_id,
        };
        (paused, cookies)
    }
}

impl Paused {
    /// Waits for the next turn, a signal, or the end.
    fn wait(&self, until: Instant, turns: &mut Turns<'_>) -> Option<i32> {
        let mut next_tick = Instant::now();
        while Instant::now() < until && !self.config.is_over() {
            let signal = self.signals.find(is_of_run);
            if signal.is_some() {
                return signal;
            }
            if Instant::now() >= next_tick {
                next_tick += TICK;
                turns.tick();
            }
            std::thread::sleep(PAUSE.min(until.saturating_duration_since(Instant::now())));
        }
        None
    }

    /// Begins the next turn.
    fn resume(self) -> Result<Follower, Box<dyn std::error::Error>> {
        let mut packets = self.packets;
        if let Ok(packets) = &mut packets {
            packets.resume()?;
        }
        let mut follower = Follower::new(self.config, packets, self.clock, self.signals)?;
        follower.next_id = self.next_id;
        follower.begin();
        Ok(follower)
    }

    /// Records what limits the record.
    fn finish(self, turns: &mut Turns<'_>) {
        if let Ok(packets) = self.packets {
            packets.finish(turns, |_| {});
        }
    }
}

/// The record of all turns.
struct Turns<'a> {
    observer: &'a mut dyn WatchSink,
    /// Connections that are open in the record.
    open: BTreeMap<ConnectionId, OpenRow>,
    /// Connections that have a row from an earlier turn.
    rests: HashSet<Pair>,
    /// Those that carried nothing in this turn, which its end has ended.
    spare: HashSet<Pair>,
    /// By their ids, each as it was last stated.
    caveats: BTreeMap<String, Caveat>,
}

/// A connection that is open in the record.
struct OpenRow {
    pair: Option<Pair>,
    exchanges: u64,
    /// Whether its requests would have been read.
    is_readable: bool,
}

impl OpenRow {
    fn of(connection: &Connection) -> OpenRow {
        let ends = connection.local.zip(connection.peer);
        OpenRow {
            pair: ends.map(|(local, peer)| pair(local, peer)),
            exchanges: 0,
            is_readable: connection.protocol.is_some() && connection.tls.is_none(),
        }
    }
}

impl Turns<'_> {
    /// Ends what is open in the record.
    fn pause(&mut self, at: Nanos, config: &AttachConfig) {
        self.rests = std::mem::take(&mut self.spare);
        for (connection, row) in std::mem::take(&mut self.open) {
            self.rests.extend(row.pair);
            let is_counted = row.exchanges > 0 || row.is_readable;
            let closed = Closed {
                connection,
                variant: None,
                round: None,
                close: Close {
                    at,
                    moment: Some(ClosePoint::Gap),
                    exchanges: is_counted.then_some(row.exchanges),
                    ..Close::default()
                },
            };
            self.observer.record(Event::Closed(&closed));
        }
        let [at_most, every] = [config.at_most, config.every].map(Option::unwrap_or_default);
        let words = format!(
            "followed for {at_most:?} every {every:?}: what happened in between was not seen, so counts are lower bounds"
        );
        let caveat = Caveat::incomplete("gaps-not-seen", words);
        self.observer.record(Event::Caveat(&caveat));
    }

    /// Keeps the connections that are still there, by the cookies of their sockets: the same
    /// addresses may be another connection's by now.
    fn resume(&mut self, before: &Cookies, now: &Cookies) {
        self.rests
            .retain(|pair| before.contains_key(pair) && before.get(pair) == now.get(pair));
    }

    fn finish(self) {
        for caveat in self.caveats.into_values() {
            self.observer.record(Event::Caveat(&caveat));
        }
    }

    /// The connection, as the rest of one from an earlier turn if it is.
    fn as_rest(&self, connection: &Connection) -> Option<Connection> {
        let (local, peer) = connection.local.zip(connection.peer)?;
        let is_rest = connection.open_before && self.rests.contains(&pair(local, peer));
        is_rest.then(|| Connection {
            is_rest,
            ..connection.clone()
        })
    }
}

impl Sink for Turns<'_> {
    fn record(&mut self, event: Event<'_>) {
        match event {
            Event::Opened(connection) => {
                if connection.failed.is_none() {
                    self.open.insert(connection.id, OpenRow::of(connection));
                }
                let rest = self.as_rest(connection);
                let connection = rest.as_ref().unwrap_or(connection);
                return self.observer.record(Event::Opened(connection));
            }
            Event::Revised(connection) => {
                if let Some(open) = self.open.get_mut(&connection.id) {
                    let exchanges = open.exchanges;
                    *open = OpenRow {
                        exchanges,
                        ..OpenRow::of(connection)
                    };
                }
                let rest = self.as_rest(connection);
                let connection = rest.as_ref().unwrap_or(connection);
                return self.observer.record(Event::Revised(connection));
            }
            Event::Exchange(exchange) => {
                let open = exchange.connection.and_then(|id| self.open.get_mut(&id));
                if let Some(open) = open {
                    open.exchanges += 1;
                }
            }
            Event::Closed(closed) => {
                let row = self.open.remove(&closed.connection);
                if closed.close.moment == Some(ClosePoint::Gap) {
                    self.spare.extend(row.and_then(|row| row.pair));
                }
            }
            Event::Caveat(caveat) => {
                self.caveats.insert(caveat.id.clone(), caveat.clone());
                return;
            }
            _ => {}
        }
        self.observer.record(event);
    }
}

impl WatchSink for Turns<'_> {
    fn tick(&mut self) {
        self.observer.tick();
    }
}
