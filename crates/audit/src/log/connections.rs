//! Which lines of a log came on the same connection, and what is told of it. State is bounded.

use super::line::Line;
use super::serials::Serials;
use crate::event_writer::EventWriter;
use crate::timestamp::Timestamp;
use intact_ledger::{
    Certainty, Close, ClosePoint, Connection, ConnectionBytes, ConnectionId, Event, Exchange,
    Failure, Handshake, Method, Nanos, Origin, Outcome, Probes, Protocol, Reuse, Scheme, Side,
    Span, Target, Tls,
};
use intact_observe::authority::split_authority;
use intact_observe::user_agent::product;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, SocketAddr};

/// Connections that are followed at once.
const MAX_LIVE: usize = 32_000;
/// No connection is taken to be silent for longer. Where only the port tells connections apart, one that was is another; and one
/// that is first seen later than this after the log's beginning was opened in between. Nanoseconds.
const SILENCE: u64 = 300_000_000_000;
/// For so long the kernel of a client that closed keeps the port of a connection to itself (TIME_WAIT of Linux). After a longer
/// silence the port may be that of another connection. Nanoseconds.
const PORT_HELD: u64 = 60_000_000_000;
/// A server that closes first leaves the port free at once, and a client that opened so many other connections since may have come to
/// the same port again: systems take ports in turn or by chance, out of 16,000 and more.
const PORTS_TAKEN: u64 = 256;
/// Clients whose connections are counted, each for itself.
const CLIENTS: usize = 65_536;
/// What is lost where connections are let go.
const LET_GO: &str =
    "connections were let go to bound memory: what came later on them counts as other connections";
/// What stands for a request that the client gave up (nginx).
const CLIENT_CLOSED: u16 = 499;

/// What connections are told apart by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Key {
    /// The server's own id, or a hash of it.
    Id(u64),
    /// The client's address and port.
    Port(IpAddr, u16),
}

/// A connection as far as the log tells.
#[derive(Debug)]
struct LogConnection {
    id: ConnectionId,
    last_end: u64,
    carried: u64,
    most: u32,
    first_seen: bool,
    /// It was opened after the log's beginning, by inference: the first request that is seen is its first.
    is_new: bool,
    /// The port may have been free, so that this may be another connection than the one before, or the same.
    may_be_same: bool,
    /// The connections of this client, up to the last request.
    of_client: u64,
    certainty: Certainty,
}

/// How lines told of their connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Evidence {
    pub(super) by_id: u64,
    pub(super) by_port: u64,
    pub(super) with_position: u64,
    pub(super) none: u64,
    /// Connections whose first request may have come before the log began.
    pub(super) maybe_older: u64,
    /// Connections that may be the one that had the same port before.
    pub(super) maybe_same: u64,
    /// Times told to the second.
    pub(super) coarse: u64,
    /// Requests whose duration is told.
    pub(super) timed: u64,
}

/// The connections of a log, and of those that go on from it.
#[derive(Default)]
pub(crate) struct LogConnections {
    live: HashMap<Key, LogConnection>,
    hasher: RandomState,
    /// Of the log under way.
    pub(super) evidence: Evidence,
    let_go: u64,
    /// When the log under way began, or the one that it continues; nanoseconds since 1970.
    since: Option<u64>,
    /// The end of the last request.
    until: u64,
    /// The ids so far, where they are numbers.
    serials: Serials,
    /// Connections of each client so far, where ports tell them apart. Those beyond the limit are counted together (`None`).
    of_clients: HashMap<Option<IpAddr>, u64>,
}

/// When a request was under way, in nanoseconds since 1970.
#[derive(Clone, Copy)]
struct Time {
    start: u64,
    end: u64,
}

impl LogConnections {
    /// Another log follows, which begins at this time. It goes on from the one before if it begins where that one ended.
    pub(super) fn begin(&mut self, at: Option<u64>) {
        self.evidence = Evidence::default();
        let goes_on = at.is_some_and(|at| at.abs_diff(self.until) <= SILENCE);
        if !goes_on {
            self.since = at;
            self.serials = Serials::default();
        }
    }

    /// Takes a line; tells whether it was of use.
    pub(super) fn take(&mut self, line: &Line<'_>, scope: &mut EventWriter<'_>) -> bool {
        let Some(time) = self.time(line) else {
            return false;
        };
        self.until = self.until.max(time.end);
        let key = self.key(line);
        let id = key.map(|key| self.connection(key, line, time, scope));
        if !line.is_request() {
            // a connection without a request: an ALB's connection log, a client that went away
            return id.is_some();
        }
        let number = scope.next_exchange();
        let mut one = exchange(line, number, time.start, time.end, scope);
        match (key, id) {
            (Some(key), Some(_)) => self.carry(key, line, time, &mut one, scope),
            _ => {
                self.evidence.none += 1;
                scope.record(Event::Exchange(&one));
            }
        }
        true
    }

    fn time(&mut self, line: &Line<'_>) -> Option<Time> {
        let stamp = line.start.or(line.end)?;
        self.evidence.coarse += u64::from(stamp.coarse);
        self.evidence.timed += u64::from(line.took.is_some());
        let nanos = |stamp: Timestamp| stamp.nanos;
        Some(match (line.start.map(nanos), line.end.map(nanos)) {
            (Some(start), end) => Time {
                start,
                end: match line.took {
                    Some(took) => start.saturating_add(took),
                    None => end.unwrap_or(start).max(start),
                },
            },
            (None, Some(end)) => Time {
                start: end.saturating_sub(line.took.unwrap_or(0)),
                end,
            },
            (None, None) => return None,
        })
    }

    fn key(&self, line: &Line<'_>) -> Option<Key> {
        if let Some(id) = &line.connection {
            let number = id.parse().unwrap_or_else(|_| self.hasher.hash_one(id));
            return Some(Key::Id(number));
        }
        Some(Key::Port(line.client?, line.port?))
    }

    /// Whether a connection that is first seen now was opened after the log began. Within the time that a connection may be
    /// silent only a number shows that: a log of new connections and one of old ones that are used in turn are the same log.
    /// Later it is inferred; a number must also be larger than all before.
    fn is_new(&mut self, key: Key, line: &Line<'_>, time: Time) -> bool {
        let is_late = self
            .since
            .is_some_and(|since| time.start.saturating_sub(since) > SILENCE);
        match key {
            Key::Id(number) if is_number(line) => self.serials.is_new(number, is_late),
            Key::Id(_) => is_late,
            // one that was let go may come again
            Key::Port(..) => is_late && self.let_go == 0,
        }
    }

    /// The connection of a line; told of if it is new.
    fn connection(
        &mut self,
        key: Key,
        line: &Line<'_>,
        time: Time,
        scope: &mut EventWriter<'_>,
    ) -> ConnectionId {
        let mut before = None;
        if let Some(live) = self.live.get(&key) {
            let silence = time.start.saturating_sub(live.last_end);
            let others = self.of_client(key).saturating_sub(live.of_client);
            if !is_another(live, key, line, silence, others) {
                return live.id;
            }
            before = Some(silence);
            self.end(key, None, scope);
        }
        if self.live.len() >= MAX_LIVE {
            self.make_room(time.end, scope);
        }
        let mut connection = Connection::new(scope.next_connection(), scope.nanos(time.start));
        connection.origin = origin(line);
        connection.peer = line
            .client
            .map(|client| SocketAddr::new(client, line.port.unwrap_or(0)));
        connection.agent = line.agent.as_deref().and_then(product);
        connection.protocol = line.protocol;
        if line.secure == Some(true) {
            connection.tls = Some(Tls {
                version: line.tls,
                handshake: line.resumed.map(|resumed| match resumed {
                    true => Handshake::Resumed,
                    false => Handshake::Full,
                }),
                ..Tls::default()
            });
        }
        if let Some(took) = line.handshake {
            let start = Nanos(connection.at.0.saturating_sub(took));
            connection.setup.ssl = Some(Span::new(start, connection.at));
            connection.at = start;
        }
        if line.nth.is_none() && matches!(key, Key::Port(..)) {
            connection.certainty =
                Certainty::Inferred("a client's address and port stand for a connection".into());
        }
        let may_be_same = line.nth.is_none() && before.is_some_and(|silence| silence <= SILENCE);
        let is_new = self.is_new(key, line, time) && !may_be_same;
        // requests side by side end in any order, so the first one may still come
        let is_later_request = line.nth.is_some_and(|nth| nth > 1) && !multiplexes(line);
        connection.open_before = is_later_request && before.is_none() && !is_new;
        let of_client = self.of_client_mut(key).map_or(0, |count| {
            *count += 1;
            *count
        });
        let live = LogConnection {
            of_client,
            id: connection.id,
            last_end: time.end,
            carried: 0,
            most: 0,
            first_seen: false,
            is_new,
            may_be_same,
            certainty: connection.certainty.clone(),
        };
        scope.record(Event::Opened(&connection));
        self.live.insert(key, live);
        connection.id
    }

    /// How many connections of the client of `key` there were so far; 0 where ids tell connections apart.
    fn of_client(&self, key: Key) -> u64 {
        let Key::Port(client, _) = key else { return 0 };
        let counts = &self.of_clients;
        let count = counts.get(&Some(client)).or_else(|| counts.get(&None));
        count.copied().unwrap_or(0)
    }

    fn of_client_mut(&mut self, key: Key) -> Option<&mut u64> {
        let Key::Port(client, _) = key else {
            return None;
        };
        let client = Some(client);
        let has_room = self.of_clients.len() < CLIENTS || self.of_clients.contains_key(&client);
        let counted = client.filter(|_| has_room);
        Some(self.of_clients.entry(counted).or_default())
    }

    /// Puts an exchange on its connection.
    fn carry(
        &mut self,
        key: Key,
        line: &Line<'_>,
        time: Time,
        one: &mut Exchange,
        scope: &mut EventWriter<'_>,
    ) {
        let of_client = self.of_client(key);
        let Some(live) = self.live.get_mut(&key) else {
            return;
        };
        live.of_client = of_client;
        match key {
            Key::Id(_) => self.evidence.by_id += 1,
            Key::Port(..) => self.evidence.by_port += 1,
        }
        live.carried += 1;
        live.last_end = live.last_end.max(time.end);
        one.connection = Some(live.id);
        one.certainty = live.certainty.clone();
        match line.nth {
            Some(nth) => {
                self.evidence.with_position += 1;
                live.most = live.most.max(nth);
                live.first_seen |= nth == 1;
                one.ordinal = Some(nth);
                one.reuse = Some(Reuse::of_position(nth));
            }
            None if live.carried > 1 => one.reuse = Some(Reuse::Reused),
            None if live.is_new => {
                one.reuse = Some(Reuse::Fresh);
                one.certainty = Certainty::Inferred(
                    "a connection first seen five minutes after the log began is taken for new"
                        .into(),
                );
            }
            None if live.may_be_same => self.evidence.maybe_same += 1,
            // the first that is seen may not be the first
            None => self.evidence.maybe_older += 1,
        }
        if line.closes {
            one.close_sent_by = Some(Side::Server);
        }
        scope.record(Event::Exchange(one));
        if line.closes {
            self.end(key, Some(ClosePoint::AfterExchange), scope);
        }
    }

    /// Tells that a connection is over.
    fn end(&mut self, key: Key, moment: Option<ClosePoint>, scope: &mut EventWriter<'_>) {
        let Some(live) = self.live.remove(&key) else {
            return;
        };
        let announced_by = moment.map(|_| Side::Server);
        let close = Close {
            at: scope.nanos(live.last_end),
            by: None,
            how: None,
            other_end: None,
            announced_by,
            moment,
            exchanges: Some(live.carried.max(u64::from(live.most))),
            bytes: ConnectionBytes::default(),
            probes: Probes::default(),
        };
        scope.close(live.id, close);
    }

    /// Lets go of those that were silent for long, else of the quarter that was silent longest.
    fn make_room(&mut self, now: u64, scope: &mut EventWriter<'_>) {
        let mut silent: Vec<(u64, Key)> = self
            .live
            .iter()
            .map(|(key, live)| (live.last_end, *key))
            .collect();
        silent.sort_unstable_by_key(|(last_end, _)| *last_end);
        let over = silent.partition_point(|(last_end, _)| now.saturating_sub(*last_end) > SILENCE);
        let quarter = silent.len() / 4;
        self.let_go += quarter.saturating_sub(over) as u64;
        for (_, key) in silent.into_iter().take(over.max(quarter)) {
            if let Key::Id(number) = key {
                self.serials.let_go(number);
            }
            self.end(key, None, scope);
        }
    }

    /// The logs are over.
    pub(crate) fn finish(&mut self, scope: &mut EventWriter<'_>) {
        let let_go = (self.let_go, "too-many-connections", LET_GO);
        scope.caveats("", &[let_go]);
        self.live.clear();
    }
}

/// Whether the connection's id is a number.
fn is_number(line: &Line<'_>) -> bool {
    let id = line.connection.as_deref();
    id.is_some_and(|id| id.parse::<u64>().is_ok())
}

/// Whether a line came on another connection than the one that had its id or its port before, or may have: that one was silent for
/// `silence`, while the client opened `others`.
fn is_another(live: &LogConnection, key: Key, line: &Line<'_>, silence: u64, others: u64) -> bool {
    let is_port_held = silence <= PORT_HELD && others < PORTS_TAKEN;
    match line.nth {
        // requests side by side end in any order, so only the first one tells
        Some(nth) if multiplexes(line) => nth == 1 && live.first_seen,
        Some(nth) => nth <= live.most,
        None => matches!(key, Key::Port(..)) && !is_port_held,
    }
}

fn multiplexes(line: &Line<'_>) -> bool {
    matches!(line.protocol, Some(Protocol::Http2 | Protocol::Http3))
}

/// The exchange of a line; times in nanoseconds since 1970.
pub(crate) fn exchange(
    line: &Line<'_>,
    id: u64,
    start: u64,
    end: u64,
    scope: &EventWriter<'_>,
) -> Exchange {
    let mut one = Exchange::new(id, scope.nanos(start));
    one.end = scope.nanos(end);
    one.method = line.method.as_deref().map(Method::new);
    one.target = line.target.as_deref().map(Target::new);
    one.status = line.status;
    one.bytes.body = line.sent;
    if line.took.is_some() {
        one.spans.wait = Some(Span::new(one.at, one.end));
    }
    (one.outcome, one.detail) = match line.status {
        Some(CLIENT_CLOSED) => (
            Outcome::Failed(Failure::ClientClosed),
            Some("the client closed the connection before the response".into()),
        ),
        Some(_) => (Outcome::Ok, None),
        None => (
            Outcome::Failed(Failure::Truncated),
            Some("the log has no status".into()),
        ),
    };
    one
}

/// Where the client wanted to go; `None` unless both scheme and host are told.
pub(crate) fn origin(line: &Line<'_>) -> Option<Origin> {
    let scheme = if line.secure? {
        Scheme::Https
    } else {
        Scheme::Http
    };
    let (host, port) = split_authority(line.host.as_deref()?.as_bytes())?;
    Some(Origin {
        scheme,
        host,
        port: port.or(scheme.default_port())?,
    })
}
