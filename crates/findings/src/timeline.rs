//! Connections over time for a picture: the first of each group, with their exchanges and how they ended.
//!
//! A sink with bounded memory: what goes beyond the bounds is counted, not kept. A group is a variant's first round, or a
//! destination. Must not conclude; counts for tables come from the tally.

use crate::traffic::DestinationKey;
use intact_ledger::{
    Closed, Connection, ConnectionId, EndedBy, Event, Exchange, Nanos, Run, Side, Sink, Vantage,
};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::HashMap;

/// Groups that are kept.
const GROUPS: usize = 12;
/// Connections of each that are kept.
const CONNECTIONS: usize = 20;
/// Exchanges of each that are kept, of destinations.
const EXCHANGES: usize = 2_000;

/// What one row of groups stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Key {
    Variant(u32),
    Destination(DestinationKey),
}

/// Gathers connections and their exchanges from the events of a run.
#[derive(Clone, Debug)]
pub struct Timeline {
    /// Where the ledger was recorded, if destinations are what is shown.
    vantage: Option<Vantage>,
    exchanges: usize,
    groups: Vec<Gathered>,
    places: HashMap<ConnectionId, (usize, usize)>,
    more_groups: u64,
    last: Nanos,
}

#[derive(Clone, Debug)]
struct Gathered {
    key: Key,
    /// One that turned out to belong elsewhere leaves its place empty.
    lives: Vec<Option<Followed>>,
    exchanges: usize,
    more: u64,
}

#[derive(Clone, Debug)]
struct Followed {
    at: Nanos,
    ready: Option<Nanos>,
    failed: Option<&'static str>,
    closed: Option<(Nanos, EndedBy, Option<u64>)>,
    ticks: Vec<(Nanos, Nanos, bool)>,
}

/// The connections of one variant or destination.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TimelineGroup {
    /// The variant's name, or the destination.
    pub name: String,
    /// Its first connections, in the order of their opening.
    pub connections: Vec<TimelineConnection>,
    /// Connections that are not among them.
    pub more: u64,
}

/// One connection. Times are in milliseconds: of a variant since the start of its lane, of a destination since that of the run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TimelineConnection {
    /// When its setup began.
    pub from_ms: f64,
    /// When its setup was over; absent when no setup was seen.
    pub ready_ms: Option<f64>,
    /// When it ended, or was last seen where ends are not; absent when it was open at the end of what is shown.
    pub to_ms: Option<f64>,
    /// Who ended it.
    pub ended_by: Option<&'static str>,
    /// Why the dial failed.
    pub failed: Option<&'static str>,
    /// Exchanges that it carried over its whole life, where that is known.
    pub carried: Option<u64>,
    /// Exchanges: begin, end, whether complete. A ledger of sampled rows has not all of them.
    pub exchanges: Vec<(f64, f64, bool)>,
}

impl Timeline {
    /// For a bench: the first exchanges of each variant's first round, and the connections that carried them.
    pub fn of_variants() -> Timeline {
        Timeline::new(None, CONNECTIONS)
    }

    /// For what was observed: the first connections of each destination over their whole lives.
    pub fn of_destinations(vantage: Vantage) -> Timeline {
        Timeline::new(Some(vantage), EXCHANGES)
    }

    fn new(vantage: Option<Vantage>, exchanges: usize) -> Timeline {
        Timeline {
            vantage,
            exchanges,
            groups: Vec::new(),
            places: HashMap::new(),
            more_groups: 0,
            last: Nanos(0),
        }
    }

    /// Connections that belong to none of the groups that are kept.
    pub fn elsewhere(&self) -> u64 {
        self.more_groups
    }

    /// What there is to draw, in the order in which the groups appeared; variants in the run's order.
    pub fn lanes(&self, run: &Run) -> Vec<TimelineGroup> {
        let mut groups: Vec<&Gathered> = self
            .groups
            .iter()
            .filter(|group| !group.is_deserted())
            .collect();
        groups.sort_by_key(|group| match group.key {
            Key::Variant(index) => index,
            Key::Destination(_) => 0,
        });
        groups
            .into_iter()
            .map(|group| self.lane(run, group))
            .collect()
    }

    fn lane(&self, run: &Run, group: &Gathered) -> TimelineGroup {
        let mut sorted: Vec<&Followed> = group.lives.iter().flatten().collect();
        sorted.sort_by_key(|life| life.at);
        let lives = || sorted.iter();
        let starts = lives().map(|life| life.at);
        let (name, zero, end) = match &group.key {
            Key::Variant(index) => {
                let name = run
                    .variants
                    .get(*index as usize)
                    .map_or_else(String::new, |variant| variant.name.clone());
                let ends = lives().flat_map(|life| &life.ticks);
                let end = ends.map(|tick| tick.1).max().unwrap_or(Nanos(0));
                (name, starts.min().unwrap_or(Nanos(0)), end)
            }
            Key::Destination(place) => (place.name(), Nanos(0), self.last),
        };
        let ms = |at: Nanos| at.since(zero) as f64 / 1e6;
        let connections = lives()
            .map(|life| {
                // an end after the last exchange that is shown says nothing about those shown
                let closed = life.closed.filter(|closed| {
                    self.vantage.is_some()
                        || closed.0 <= end
                        || life.ticks.len() as u64 >= closed.2.unwrap_or(1)
                });
                // where ends are not seen, none is drawn beyond what was
                let last = life
                    .ticks
                    .iter()
                    .map(|tick| tick.1)
                    .fold(life.at, Nanos::max);
                let unseen = (!run.ends_seen && life.failed.is_none()).then_some(last);
                TimelineConnection {
                    from_ms: ms(life.at),
                    ready_ms: life.ready.map(ms),
                    to_ms: closed.map(|closed| closed.0).or(unseen).map(ms),
                    ended_by: closed.map(|closed| closed.1.id()),
                    failed: life.failed,
                    carried: life.closed.and_then(|closed| closed.2),
                    exchanges: life
                        .ticks
                        .iter()
                        .map(|&(from, to, ok)| (ms(from), ms(to), ok))
                        .collect(),
                }
            })
            .collect();
        TimelineGroup {
            name,
            connections,
            more: group.more,
        }
    }

    fn opened(&mut self, connection: &Connection) {
        let key = match self.vantage {
            Some(vantage) => Key::Destination(DestinationKey::of(connection, vantage)),
            None => match (connection.variant, connection.round) {
                (Some(variant), Some(1)) => Key::Variant(variant),
                _ => return,
            },
        };
        let life = Followed {
            at: connection.at,
            ready: ready(connection),
            failed: connection.failed.as_ref().map(|failed| failed.kind.id()),
            closed: None,
            ticks: Vec::new(),
        };
        self.add(connection.id, key, life);
    }

    /// More is known of a connection, such as where it leads.
    fn revised(&mut self, connection: &Connection) {
        let Some(&(group, nth)) = self.places.get(&connection.id) else {
            return;
        };
        let Some(life) = self.groups[group].lives[nth].as_mut() else {
            return;
        };
        life.ready = ready(connection);
        life.failed = connection.failed.as_ref().map(|failed| failed.kind.id());
        let Some(vantage) = self.vantage else { return };
        let key = Key::Destination(DestinationKey::of(connection, vantage));
        if self.groups[group].key == key {
            return;
        }
        self.places.remove(&connection.id);
        if let Some(life) = self.groups[group].lives[nth].take() {
            self.groups[group].exchanges -= life.ticks.len();
            self.add(connection.id, key, life);
        }
    }

    fn add(&mut self, id: ConnectionId, key: Key, life: Followed) {
        let Some(at) = self.group(key) else {
            self.more_groups += 1;
            return;
        };
        let group = &mut self.groups[at];
        let free = group.lives.iter().position(Option::is_none);
        let nth = free.unwrap_or(group.lives.len());
        if nth >= CONNECTIONS || group.exchanges >= self.exchanges {
            group.more += 1;
            return;
        }
        self.places.insert(id, (at, nth));
        group.exchanges += life.ticks.len();
        match free {
            Some(nth) => group.lives[nth] = Some(life),
            None => group.lives.push(Some(life)),
        }
    }

    /// Where a group is; one that was deserted gives way to a new one.
    fn group(&mut self, key: Key) -> Option<usize> {
        if let Some(at) = self.groups.iter().position(|group| group.key == key) {
            return Some(at);
        }
        let new = Gathered {
            key,
            lives: Vec::new(),
            exchanges: 0,
            more: 0,
        };
        if self.groups.len() < GROUPS {
            self.groups.push(new);
            return Some(self.groups.len() - 1);
        }
        let at = self.groups.iter().position(Gathered::is_deserted)?;
        self.groups[at] = new;
        Some(at)
    }

    fn exchange(&mut self, exchange: &Exchange) {
        let place = exchange.connection.and_then(|id| self.places.get(&id));
        let Some(&(group, life)) = place else { return };
        let group = &mut self.groups[group];
        if group.exchanges >= self.exchanges {
            return;
        }
        let Some(life) = &mut group.lives[life] else {
            return;
        };
        group.exchanges += 1;
        // what it waited for of the setup is drawn as setup
        let from = exchange.at.after(exchange.spans.setup_nanos());
        life.ticks
            .push((from, exchange.end, exchange.outcome.is_ok()));
    }

    fn closed(&mut self, closed: &Closed) {
        if let Some(&(group, life)) = self.places.get(&closed.connection)
            && let Some(life) = &mut self.groups[group].lives[life]
        {
            let close = &closed.close;
            life.closed = Some((close.at, close.ended_by(), close.exchanges));
        }
    }
}

impl Gathered {
    /// Whether all that it had turned out to belong elsewhere.
    fn is_deserted(&self) -> bool {
        self.more == 0 && self.lives.iter().all(Option::is_none)
    }
}

impl Sink for Timeline {
    fn record(&mut self, event: Event<'_>) {
        match event {
            Event::Opened(connection) => {
                self.last = self.last.max(connection.at);
                self.opened(connection);
            }
            Event::Revised(connection) => self.revised(connection),
            Event::Exchange(exchange) => {
                self.last = self.last.max(exchange.end);
                self.exchange(exchange);
            }
            Event::Closed(closed) => {
                self.last = self.last.max(closed.close.at);
                self.closed(closed);
            }
            Event::Lookup(_)
            | Event::Round(_)
            | Event::Sockets(_)
            | Event::Invocation(_)
            | Event::Caveat(_) => {}
        }
    }
}

/// When the last step of the setup was over.
fn ready(connection: &Connection) -> Option<Nanos> {
    let setup = &connection.setup;
    [setup.dns, setup.connect, setup.ssl]
        .iter()
        .flatten()
        .map(|span| span.end)
        .max()
}

impl TimelineConnection {
    /// Which side ended it, where that is known.
    pub fn ended_by_side(&self) -> Option<Side> {
        match self.ended_by? {
            by if by == EndedBy::Client.id() => Some(Side::Client),
            by if by == EndedBy::Unknown.id() => None,
            _ => Some(Side::Server),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use intact_ledger::{
        Close, CloseKind, ClosePoint, ConnectionBytes, Origin, Probes, Producer, Scheme, Span,
        Vantage, Variant,
    };

    const MS: u64 = 1_000_000;

    fn run() -> Run {
        let started = "2026-01-01T00:00:00Z".parse().unwrap();
        let mut run = Run::new(Producer::Bench, "0", Vantage::Client, started, 1, &[]);
        run.variants.push(Variant {
            name: "keepalive=on".to_owned(),
            axes: Default::default(),
        });
        run
    }

    fn connection(id: u64, at: u64, host: &str) -> Connection {
        let mut one = Connection::new(ConnectionId(id), Nanos(at * MS));
        one.variant = Some(0);
        one.round = Some(1);
        one.origin = Some(Origin {
            scheme: Scheme::Https,
            host: host.into(),
            port: 443,
        });
        one.setup.connect = Some(Span::new(Nanos(at * MS), Nanos((at + 30) * MS)));
        one
    }

    fn exchange(connection: u64, at: u64) -> Exchange {
        let mut one = Exchange::new(at, Nanos(at * MS));
        one.connection = Some(ConnectionId(connection));
        one.end = Nanos((at + 5) * MS);
        one
    }

    fn close(connection: u64, at: u64) -> Closed {
        Closed {
            connection: ConnectionId(connection),
            variant: Some(0),
            round: Some(1),
            close: Close {
                at: Nanos(at * MS),
                by: Some(Side::Server),
                how: Some(CloseKind::Fin),
                announced_by: None,
                moment: Some(ClosePoint::Idle),
                exchanges: Some(1),
                bytes: ConnectionBytes::default(),
                probes: Probes::default(),
            },
        }
    }

    #[test]
    fn a_life_has_its_setup_its_exchanges_and_its_end() {
        let mut timeline = Timeline::of_variants();
        timeline.record(Event::Opened(&connection(1, 1000, "a")));
        timeline.record(Event::Exchange(&exchange(1, 1030)));
        timeline.record(Event::Closed(&close(1, 1035)));
        let lanes = timeline.lanes(&run());
        let life = &lanes[0].connections[0];
        assert_eq!(lanes[0].name, "keepalive=on");
        assert_eq!((life.from_ms, life.ready_ms), (0.0, Some(30.0)));
        assert_eq!((life.to_ms, life.ended_by), (Some(35.0), Some("server")));
        assert_eq!(life.exchanges, [(30.0, 35.0, true)]);
        assert_eq!(life.ended_by_side(), Some(Side::Server));
    }

    #[test]
    fn where_ends_are_not_seen_a_life_is_drawn_to_its_last_exchange() {
        let mut timeline = Timeline::of_destinations(Vantage::Server);
        timeline.record(Event::Opened(&connection(1, 1000, "a")));
        timeline.record(Event::Exchange(&exchange(1, 1030)));
        timeline.record(Event::Opened(&connection(2, 9000, "a")));
        let mut run = run();
        let to_ms = |run: &Run| timeline.lanes(run)[0].connections[0].to_ms;
        assert_eq!(to_ms(&run), None);
        run.ends_seen = false;
        assert_eq!(to_ms(&run), Some(1035.0));
    }

    #[test]
    fn a_connection_moves_to_where_it_turns_out_to_lead() {
        let mut timeline = Timeline::of_destinations(Vantage::OnPath);
        for nth in 0..1_000u64 {
            let mut one = connection(nth, nth, "api");
            let origin = one.origin.take();
            // at an address of its own, or at one that all share
            let port = if nth % 2 == 0 { 443 } else { 1000 + nth };
            one.peer = Some(format!("192.0.2.1:{port}").parse().unwrap());
            timeline.record(Event::Opened(&one));
            one.origin = origin;
            timeline.record(Event::Revised(&one));
            timeline.record(Event::Exchange(&exchange(nth, nth)));
        }
        let lanes = timeline.lanes(&run());
        assert_eq!(lanes.len(), 1);
        assert_eq!(lanes[0].name, "https://api");
        assert_eq!((lanes[0].connections.len(), lanes[0].more), (20, 980));
        assert_eq!(lanes[0].connections[0].exchanges.len(), 1);
        assert!(timeline.groups.len() <= GROUPS && timeline.places.len() == CONNECTIONS);
    }

    #[test]
    fn what_is_over_the_bounds_is_counted_and_not_kept() {
        let mut timeline = Timeline::of_destinations(Vantage::Client);
        for nth in 0..10_000u64 {
            let host = format!("host-{}", nth % 100);
            timeline.record(Event::Opened(&connection(nth, nth, &host)));
            timeline.record(Event::Exchange(&exchange(nth, nth)));
        }
        let lanes = timeline.lanes(&run());
        assert_eq!(lanes.len(), GROUPS);
        assert!(
            lanes
                .iter()
                .all(|lane| lane.connections.len() == CONNECTIONS && lane.more == 80)
        );
        assert_eq!(timeline.elsewhere(), 8_800);
        assert_eq!(timeline.places.len(), GROUPS * CONNECTIONS);
    }
}
