//! Connections over time for a picture: the first of each group, with their exchanges and how they
//! ended.
//!
//! A sink with bounded memory: what goes beyond the bounds is counted, not kept. A group is a
//! variant's first round, or a destination. Must not conclude; counts for tables come from the
//! tally.

use crate::DestinationKey;
use foldhash::HashMap;
use intact_ledger::{
    Closed, Connection, ConnectionId, EndedBy, Event, Evidence, Exchange, Nanos, Run, Side, Sink,
    Vantage,
};
use serde::Serialize;

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

/// One connection. Times are in milliseconds: of a variant since the start of its lane, of a
/// destination since that of the run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TimelineConnection {
    /// When its setup began.
    pub from_ms: f64,
    /// When its setup was over; absent when no setup was seen.
    pub ready_ms: Option<f64>,
    /// When it ended, or was last seen where ends are not; absent when it was open at the end of
    /// what is shown.
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
    /// For a bench: the first exchanges of each variant's first round, and the connections that
    /// carried them.
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
            places: HashMap::default(),
            more_groups: 0,
            last: Nanos(0),
        }
    }

    /// Connections that belong to none of the groups that are kept.
    pub fn elsewhere(&self) -> u64 {
        self.more_groups
    }

    /// What there is to draw, in the order in which the groups appeared; variants in the run's
    /// order. `name` is what a person calls a destination.
    pub fn lanes(&self, run: &Run, name: impl Fn(&DestinationKey) -> String) -> Vec<TimelineGroup> {
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
            .map(|group| self.lane(run, group, &name))
            .collect()
    }

    fn lane(
        &self,
        run: &Run,
        group: &Gathered,
        name: impl Fn(&DestinationKey) -> String,
    ) -> TimelineGroup {
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
            Key::Destination(key) => (name(key), Nanos(0), self.last),
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
                let unseen = (!run.sees(Evidence::Ends) && life.failed.is_none()).then_some(last);
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
            | Event::Stack(_)
            | Event::Round(_)
            | Event::Sockets(_)
            | Event::Invocation(_)
            | Event::Fault(_)
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
            by if [EndedBy::Client, EndedBy::ExcessBytes]
                .map(EndedBy::id)
                .contains(&by) =>
            {
                Some(Side::Client)
            }
            by if by == EndedBy::Unknown.id() => None,
            _ => Some(Side::Server),
        }
    }
}

#[cfg(test)]
mod tests;
