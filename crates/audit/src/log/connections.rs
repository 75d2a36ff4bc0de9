//! Assigns the lines of a log to connections, and records the connections. State is bounded.

use super::line::{Line, LogFailure};
use super::serials::Serials;
use crate::event_writer::{EventWriter, agreeing};
use crate::timestamp::Timestamp;
use foldhash::HashMap;
use intact_ledger::{
    Certainty, Close, ClosePoint, Connection, ConnectionId, Event, Exchange, Handshake, Method,
    Nanos, Origin, Outcome, Protocol, Reuse, Scheme, Side, Span, Target, Tls,
};
use intact_observe::authority::split_authority;
use intact_observe::user_agent::product;
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, SocketAddr};

/// Limit of connections that are followed at the same time.
const MAX_LIVE: usize = 32_000;
/// Longest silence of a connection, in nanoseconds. A port after a longer silence is a new
/// connection, if only the port identifies connections. A connection that is first seen later than
/// this after the log's beginning was opened during the log.
const SILENCE: u64 = 300_000_000_000;
/// The kernel of a client that closed reserves the port for this time (TIME_WAIT of Linux), in
/// nanoseconds. After a longer silence the port may belong to another connection.
const PORT_HELD: u64 = 60_000_000_000;
/// Number of other connections after which a client may use a port again. If the server closes
/// first, the client's port is free immediately. Systems assign 16,000 ports or more, in sequence
/// or at random.
const PORTS_TAKEN: u64 = 256;
/// Number of other connections after which a port is taken for another connection. Before that, a
/// pool that takes its connections in turn looks the same.
const PORTS_LEFT: u64 = 8_192;
/// Limit of clients whose connections are counted separately.
const CLIENTS: usize = 65_536;
/// Caveat for connections that were dropped.
const LET_GO: &str =
    "connections were dropped to limit memory: later exchanges on them count as other connections";
/// Caveat for requests that are not in the log.
const MISSING: &str = "requests are missing, as the positions of the others on their connections show: the log is filtered, sampled or cut, and they are not counted";

/// What identifies a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Key {
    /// The server's id, or a hash of it.
    Id(u64),
    /// The client's address and port.
    Port(IpAddr, u16),
}

/// The facts that the log shows about a connection.
#[derive(Debug)]
struct LogConnection {
    id: ConnectionId,
    last_end: u64,
    carried: u64,
    /// Requests with a position.
    placed: u32,
    least: u32,
    most: u32,
    first_seen: bool,
    /// Inferred: the connection was opened after the log's beginning, so its first request in the
    /// log is its first one.
    is_new: bool,
    /// The port may have been free, so this may be a new connection or the one before.
    may_be_same: bool,
    /// The port may have been free: the last request may be on another connection.
    may_be_another: bool,
    /// Number of connections of this client up to the last request.
    of_client: u64,
    certainty: Certainty,
}

impl LogConnection {
    /// Number of requests between the first and the last one that have no line.
    fn missing(&self) -> u64 {
        let span = (self.most + 1).saturating_sub(self.least);
        u64::from(span.saturating_sub(self.placed))
    }
}

/// Counts of lines by the evidence for their connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Evidence {
    pub(super) by_id: u64,
    pub(super) by_port: u64,
    pub(super) with_position: u64,
    pub(super) none: u64,
    /// Connections whose first request may have come before the log began.
    pub(super) maybe_older: u64,
    /// Connections that may be the one before on the same port.
    pub(super) maybe_same: u64,
    /// Requests that may be on another connection than the one before on the same port.
    pub(super) maybe_another: u64,
    /// Later requests whose position the connection with this id has passed. A connection that is
    /// new begins with its first request.
    pub(super) passed_positions: u64,
    /// Lines with times in whole seconds.
    pub(super) coarse: u64,
    /// Requests with a duration.
    pub(super) timed: u64,
}

/// The connections of a log, and of the logs that continue it.
#[derive(Default)]
pub(crate) struct LogConnections {
    live: HashMap<Key, LogConnection>,
    hasher: RandomState,
    /// Evidence of the log that is being read.
    pub(super) evidence: Evidence,
    let_go: u64,
    /// Requests that the positions of others on ended connections show, and that have no line.
    missing: u64,
    /// Start of this log or of the first log that it continues, in nanoseconds since 1970.
    since: Option<u64>,
    /// End of the last request.
    until: u64,
    /// The ids so far, if they are numbers.
    serials: Serials,
    /// Number of connections per client, if ports identify connections. Clients above the limit
    /// share one count (`None`).
    of_clients: HashMap<Option<IpAddr>, u64>,
}

/// Span of a request, in nanoseconds since 1970.
#[derive(Clone, Copy)]
struct Time {
    start: u64,
    end: u64,
}

impl LogConnections {
    /// Starts another log, which begins at this time. It continues the log before if it begins
    /// where that one ended.
    pub(super) fn begin(&mut self, at: Option<u64>) {
        self.evidence = Evidence::default();
        let goes_on = at.is_some_and(|at| at.abs_diff(self.until) <= SILENCE);
        if !goes_on {
            self.since = at;
            self.serials = Serials::default();
        }
    }

    /// Reads the state of the connections of the next lines, and drops it. The memory of all of
    /// them is then read at the same time.
    pub(super) fn expect<'l>(&self, lines: impl Iterator<Item = &'l Line<'l>>) {
        for key in lines.filter_map(|line| self.key(line)) {
            std::hint::black_box(self.live.get(&key).map(|live| live.last_end));
        }
    }

    /// Reads a line. Returns whether it was used.
    pub(super) fn take(&mut self, line: &Line<'_>, writer: &mut EventWriter<'_>) -> bool {
        let Some(time) = self.time(line) else {
            return false;
        };
        self.until = self.until.max(time.end);
        let key = self.key(line);
        let id = key.map(|key| self.connection(key, line, time, writer));
        if !line.is_request() {
            // a connection without a request: an ALB's connection log, or a client that closed
            // without a request
            return id.is_some();
        }
        let number = writer.next_exchange();
        let mut one = exchange(line, number, time.start, time.end, writer);
        match (key, id) {
            (Some(key), Some(_)) => self.carry(key, line, time, &mut one, writer),
            _ => {
                self.evidence.none += 1;
                writer.record(Event::Exchange(&one));
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

    /// Whether a connection that is first seen now was opened after the log began.
    ///
    /// Before `SILENCE` has passed, only an id shows that. The log of a pool that takes its open
    /// connections in turn looks like a log of new connections. Later it is inferred, and a numeric
    /// id must also be larger than all before.
    fn is_new(&mut self, key: Key, line: &Line<'_>, time: Time) -> bool {
        if line.opens {
            return true;
        }
        let is_late = self
            .since
            .is_some_and(|since| time.start.saturating_sub(since) > SILENCE);
        match key {
            Key::Id(number) if is_number(line) => self.serials.is_new(number, is_late),
            Key::Id(_) => is_late,
            // a dropped connection may return
            Key::Port(..) => is_late && self.let_go == 0,
        }
    }

    /// The connection of a line, recorded if it is new.
    fn connection(
        &mut self,
        key: Key,
        line: &Line<'_>,
        time: Time,
        writer: &mut EventWriter<'_>,
    ) -> ConnectionId {
        let mut before = None;
        let of_client = self.of_client(key);
        if let Some(live) = self.live.get_mut(&key) {
            let silence = time.start.saturating_sub(live.last_end);
            let others = of_client.saturating_sub(live.of_client);
            if !is_another(live, key, line, silence, others) {
                live.may_be_another = others >= PORTS_TAKEN;
                return live.id;
            }
            before = Some(silence);
            self.end(key, None, writer);
        }
        if self.live.len() >= MAX_LIVE {
            self.make_room(time.end, writer);
        }
        let mut connection = Connection::new(writer.next_connection(), writer.nanos(time.start));
        connection.origin = origin(line);
        connection.peer = line
            .client
            .map(|client| SocketAddr::new(client, line.port.unwrap_or(0)));
        connection.agent = line.agent.as_deref().and_then(product);
        connection.protocol = line.protocol;
        if line.secure == Some(true) {
            connection.tls = Some(Tls {
                version: line.tls,
                handshake: line.resumed.map(Handshake::of),
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
        // concurrent requests end in any order, so the first one may still follow
        let is_later_request = line.nth.is_some_and(|nth| nth > 1) && !multiplexes(line);
        let has_passed = is_later_request && before.is_some() && matches!(key, Key::Id(_));
        self.evidence.passed_positions += u64::from(has_passed);
        connection.open_before = has_passed || is_later_request && before.is_none() && !is_new;
        let of_client = self.of_client_mut(key).map_or(0, |count| {
            *count += 1;
            *count
        });
        let live = LogConnection {
            of_client,
            id: connection.id,
            last_end: time.end,
            carried: 0,
            placed: 0,
            least: u32::MAX,
            most: 0,
            first_seen: false,
            is_new,
            may_be_same,
            may_be_another: false,
            certainty: connection.certainty.clone(),
        };
        writer.record(Event::Opened(&connection));
        self.live.insert(key, live);
        connection.id
    }

    /// Number of connections of the client of `key` so far; 0 if ids identify connections.
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

    /// Records an exchange on its connection.
    fn carry(
        &mut self,
        key: Key,
        line: &Line<'_>,
        time: Time,
        one: &mut Exchange,
        writer: &mut EventWriter<'_>,
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
                live.placed += 1;
                live.least = live.least.min(nth);
                live.most = live.most.max(nth);
                live.first_seen |= nth == 1;
                one.ordinal = Some(nth);
                one.reuse = Some(Reuse::of_position(nth));
            }
            None if live.may_be_another => self.evidence.maybe_another += 1,
            None if live.carried > 1 => one.reuse = Some(Reuse::Reused),
            None if live.is_new => {
                one.reuse = Some(Reuse::Fresh);
                one.certainty = Certainty::Inferred(
                    "the connection was opened, or first seen, during the log: its first request there is taken for its first"
                        .into(),
                );
            }
            None if live.may_be_same => self.evidence.maybe_same += 1,
            // an earlier request may not be in the log
            None => self.evidence.maybe_older += 1,
        }
        if line.closes {
            one.close_sent_by = Some(Side::Server);
        }
        writer.record(Event::Exchange(one));
        if line.closes {
            self.end(key, Some(ClosePoint::AfterExchange), writer);
        }
    }

    /// Records the end of a connection.
    fn end(&mut self, key: Key, moment: Option<ClosePoint>, writer: &mut EventWriter<'_>) {
        let Some(live) = self.live.remove(&key) else {
            return;
        };
        self.missing += live.missing();
        let close = Close {
            at: writer.nanos(live.last_end),
            announced_by: moment.map(|_| Side::Server),
            moment,
            exchanges: Some(live.carried.max(u64::from(live.most))),
            ..Close::default()
        };
        writer.close(live.id, close);
    }

    /// Drops connections that were silent for long, or the quarter that was silent longest.
    fn make_room(&mut self, now: u64, writer: &mut EventWriter<'_>) {
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
            self.end(key, None, writer);
        }
    }

    /// Ends all connections; the logs are complete.
    pub(crate) fn finish(&mut self, writer: &mut EventWriter<'_>) {
        let let_go = (self.let_go, "too-many-connections", LET_GO);
        writer.caveats("", &[let_go]);
        let open: u64 = self.live.values().map(LogConnection::missing).sum();
        let missing = self.missing + open;
        if missing > 0 {
            writer.incomplete_requests("log-positions-missing", agreeing(missing, MISSING));
        }
        self.live.clear();
    }
}

/// Whether the connection's id is a number.
fn is_number(line: &Line<'_>) -> bool {
    let id = line.connection.as_deref();
    id.is_some_and(|id| id.parse::<u64>().is_ok())
}

/// Whether a line belongs to a new connection with a known id or port, or may belong to one. The
/// known connection was silent for `silence`, while the client opened `others`.
fn is_another(live: &LogConnection, key: Key, line: &Line<'_>, silence: u64, others: u64) -> bool {
    let is_port_held = silence <= PORT_HELD && others < PORTS_LEFT;
    match line.nth {
        // concurrent requests end in any order, so only the first one shows it
        Some(nth) if multiplexes(line) => nth == 1 && live.first_seen,
        Some(nth) => nth <= live.most,
        None => matches!(key, Key::Port(..)) && !is_port_held,
    }
}

fn multiplexes(line: &Line<'_>) -> bool {
    line.protocol.is_some_and(Protocol::has_streams)
}

/// The exchange of a line; times in nanoseconds since 1970.
pub(crate) fn exchange(
    line: &Line<'_>,
    id: u64,
    start: u64,
    end: u64,
    writer: &EventWriter<'_>,
) -> Exchange {
    let mut one = Exchange::new(id, writer.nanos(start));
    one.end = writer.nanos(end);
    one.method = line.method.as_deref().map(Method::new);
    one.target = line.target.as_deref().map(Target::new);
    one.status = line.status;
    one.bytes.body = line.sent.unwrap_or(0);
    if line.took.is_some() {
        one.spans.wait = Some(Span::new(one.at, one.end));
    }
    let (outcome, detail) = match (line.failure(), line.status) {
        (Some(LogFailure { kind, detail }), _) => (Outcome::Failed(kind), detail),
        (None, Some(_)) => return one,
        (None, None) => (Outcome::Unknown, "the log has no status".into()),
    };
    one.outcome = outcome;
    one.detail = Some(detail.into());
    one
}

/// The origin of a request; `None` unless both scheme and host are known.
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
