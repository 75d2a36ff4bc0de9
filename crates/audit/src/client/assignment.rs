//! Assigns the entries of a file to connections, by the best evidence that the file has.
//!
//! Without evidence, entries share as few connections as their overlap allows, and a caveat says
//! so.

use super::entry::Entry;
use super::lookups::lookups;
use super::places::{Left, Places};
use crate::event_writer::{EventWriter, agreeing};
use intact_ledger::{
    Certainty, Connection, ConnectionId, DialFailure, Event, Exchange, KeepAliveTerms, Nanos,
    Origin, Owner, Protocol, Reuse, Scheme, Setup, Side, Span, Tls, Transport,
};
use std::collections::HashMap;
use std::net::SocketAddr;

/// Caveat for entries that begin before the base.
const EARLY: &str =
    "entries began before the first ones in the file: its beginning stands for their start";

/// Caveat for connections without a setup in the file.
const UNKNOWN_AGE: &str = "connections have no setup in the file: they were opened ahead of their first request or before the recording, and count as opened";

/// Caveat for requests whose setup may be too short to show.
const HIDDEN_SETUPS: &str = "requests have 0 as the time for connecting, which may be a connection that opened within its step: reuse is unknown, and connections may be missing";

/// Number of steps of the time for connecting that even the shortest setup to an origin takes, if a
/// time of 0 shows that none took place.
const LONG_SETUP: u64 = 10;

/// The requests of one file.
pub(crate) struct Source<'a> {
    /// Entries that went over a network.
    pub(crate) entries: &'a [Entry],
    /// The program that wrote the file; empty if the file does not say.
    pub(crate) program: &'a str,
    /// Prefix of the ids of caveats.
    pub(crate) kind: &'static str,
    /// The remedy for missing evidence: a sentence without its full stop.
    pub(crate) better: &'static str,
    /// Its times have whole seconds only.
    pub(crate) is_coarse: bool,
    /// A DNS time above zero means a lookup. oha writes one for IP addresses, too.
    pub(crate) shows_lookups: bool,
    /// Prefix of the text of caveats.
    pub(crate) prefix: &'a str,
}

/// What identifies the connections of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Evidence {
    /// Ids of connections.
    Ids,
    /// Each entry shows whether it has time for connecting.
    Timings,
    /// Nothing.
    Nothing,
}

/// A connection that entries are assigned to: the facts that its first entry does not hold.
#[derive(Default)]
struct AssignedConnection {
    id: ConnectionId,
    /// Index of its first entry.
    entry: usize,
    at: Nanos,
    /// Its dial failed.
    failed: Option<DialFailure>,
    terms: KeepAliveTerms,
    open_before: bool,
    is_inferred: bool,
    multiplexes: bool,
    /// When its last request ended, in nanoseconds since 1970.
    free_at: u64,
    carried: u32,
    /// The file holds its setup.
    is_new: bool,
    /// When its setup ended, in nanoseconds since 1970.
    ready_at: u64,
    closing: bool,
}

impl AssignedConnection {
    /// What its requests so far leave of it.
    fn left(&self) -> Left {
        match (self.closing, self.multiplexes) {
            (true, _) => Left::Closing,
            (false, true) => Left::Shared,
            (false, false) => Left::FreeAt(self.free_at),
        }
    }

    fn new(id: ConnectionId, at: Nanos, (index, entry): (usize, &Entry)) -> AssignedConnection {
        AssignedConnection {
            id,
            entry: index,
            at,
            multiplexes: entry.protocol.is_some_and(Protocol::has_streams),
            ready_at: entry.at.saturating_add(entry.timings.before_send()),
            ..AssignedConnection::default()
        }
    }

    /// The connection as a row of the ledger.
    fn connection(&self, entries: &[Entry], has_runs: bool) -> Connection {
        let entry = &entries[self.entry];
        // nothing is shared between runs
        let number = entry.run + 1;
        let owner = has_runs.then(|| Owner {
            pid: number,
            command: format!("run {number}").into(),
        });
        let mut connection = Connection::new(self.id, self.at);
        if let Some(origin) = &entry.origin {
            let peer = |address| SocketAddr::new(address, origin.port);
            connection.peer = entry.address.map(peer);
            connection.tls = (origin.scheme == Scheme::Https).then(Tls::default);
            connection.origin = Some(origin.clone());
        }
        connection.agent.clone_from(&entry.agent);
        connection.server.clone_from(&entry.server);
        connection.protocol = entry.protocol;
        if entry.protocol == Some(Protocol::Http3) {
            connection.transport = Transport::Quic;
        }
        connection.failed.clone_from(&self.failed);
        if self.failed.is_none() {
            // consecutive, from the end of the blocked time on
            let mut step = steps(self.at);
            connection.setup = Setup {
                dns: step(entry.timings.dns),
                connect: step(entry.timings.connect),
                ssl: step(entry.timings.ssl),
            };
        }
        connection.terms = self.terms;
        connection.environment = owner.as_ref().map(|owner| owner.pid.into());
        connection.owner = owner;
        connection.open_before = self.open_before;
        if self.is_inferred {
            connection.certainty = why();
        }
        connection
    }
}

/// An entry with its connection: the facts that the entry does not hold. Small, because there is
/// one per entry.
struct Placement {
    id: u64,
    /// Index of the entry.
    entry: usize,
    /// End of the exchange.
    end: Nanos,
    connection: Option<ConnectionId>,
    reuse: Option<Reuse>,
    ordinal: Option<u32>,
    is_inferred: bool,
}

impl Placement {
    /// A request that used no connection that is known, or the one whose dial failed: it waited for
    /// that.
    fn unplaced(id: u64, entry: usize, end: Nanos, dial: Option<ConnectionId>) -> Placement {
        Placement {
            id,
            entry,
            end,
            connection: dial,
            reuse: dial.map(|_| Reuse::Fresh),
            ordinal: None,
            is_inferred: false,
        }
    }

    /// The exchange as a row of the ledger.
    fn exchange(&self, entries: &[Entry], writer: &EventWriter<'_>) -> Exchange {
        let entry = &entries[self.entry];
        let mut one = Exchange::new(self.id, writer.nanos(entry.at));
        let timings = &entry.timings;
        let mut phase = steps(one.at);
        one.spans.blocked = phase(timings.blocked);
        one.spans.dns = phase(timings.dns);
        one.spans.connect = phase(timings.connect);
        one.spans.ssl = phase(timings.ssl);
        one.spans.send = phase(timings.send);
        one.spans.wait = phase(timings.wait);
        one.spans.receive = phase(timings.receive);
        one.end = self.end;
        // the end of an entry from before the base was moved
        one.spans.keep_within(one.at, one.end);
        // two requests are the same only if method and target are known, and no body
        // distinguishes them
        let recognised = entry.method.as_ref().zip(entry.full_target.as_deref());
        one.fingerprint = recognised
            .filter(|_| entry.request_body.unwrap_or(0) == 0)
            .map(|(method, target)| writer.run.key.of(method.as_str(), target, b""));
        one.method = entry.method.clone();
        one.target = entry.target();
        one.status = entry.status;
        one.outcome = entry.outcome;
        one.terms = entry.terms;
        one.bytes.request_head = entry.request_head;
        one.bytes.request_body = entry.request_body.unwrap_or(0);
        one.bytes.head = entry.head;
        one.bytes.body = entry.body.unwrap_or(0);
        // some tools mix up sizes before and after decoding: a difference does not prove that a
        // body was left unread
        one.body.read = entry.body;
        one.close_sent_by = match (entry.client_closes, entry.server_closes) {
            (true, _) => Some(Side::Client),
            (false, true) => Some(Side::Server),
            (false, false) => None,
        };
        one.connection = self.connection;
        one.reuse = self.reuse;
        one.ordinal = self.ordinal;
        if self.is_inferred {
            one.certainty = why();
        }
        one
    }
}

/// Writes the entries to the ledger. Returns a description of the evidence.
pub(crate) fn record(source: &Source<'_>, writer: &mut EventWriter<'_>) -> String {
    let evidence = choose(source);
    let early = source
        .entries
        .iter()
        .filter(|entry| entry.at < writer.run.base);
    let early = (early.count() as u64, "input-out-of-order", EARLY);
    writer.caveats(source.prefix, &[early]);
    let has_runs = source.entries.iter().any(|entry| entry.run > 0);
    let mut layout = Assignment {
        has_runs,
        entries: source.entries,
        evidence,
        is_coarse: source.is_coarse,
        shows_connects: source.entries.iter().any(|entry| entry.timings.has_setup()),
        shortest_setups: shortest_setups(source.entries),
        hidden_setups: 0,
        laid: Vec::new(),
        by_id: HashMap::new(),
        by_origin: HashMap::new(),
    };
    let mut order: Vec<usize> = (0..source.entries.len()).collect();
    order.sort_by_key(|&at| source.entries[at].sent_at());
    let mut exchanges: Vec<Placement> = Vec::with_capacity(order.len());
    for at in order {
        exchanges.push(layout.lay(at, writer));
    }
    // openings ordered by start, requests by end: the order in which a producer observes them
    exchanges.sort_by_key(|exchange| exchange.end);
    let unsure = |laid: &&AssignedConnection| laid.carried > 0 && !laid.is_new && !laid.open_before;
    if evidence == Evidence::Ids && layout.shows_connects {
        let unsure = layout.laid.iter().filter(unsure).count() as u64;
        let id = format!("{}-unknown-age", source.kind);
        writer.caveats(source.prefix, &[(unsure, &id, UNKNOWN_AGE)]);
    }
    if layout.hidden_setups > 0 {
        let words = agreeing(layout.hidden_setups, HIDDEN_SETUPS);
        let id = format!("{}-coarse-connects", source.kind);
        writer.incomplete_connections(&id, format!("{}{words}", source.prefix));
    }
    let mut connections = layout.laid;
    connections.sort_by_key(|connection| connection.at);
    let mut connections = connections.iter().peekable();
    let lookups = match source.shows_lookups {
        true => lookups(source.entries, writer),
        false => Vec::new(),
    };
    let mut lookups = lookups.iter().peekable();
    for exchange in &exchanges {
        while let Some(connection) = connections.next_if(|connection| {
            connection.at <= exchange.end || Some(connection.id) == exchange.connection
        }) {
            let connection = connection.connection(source.entries, has_runs);
            writer.record(Event::Opened(&connection));
        }
        while let Some(lookup) = lookups.next_if(|lookup| lookup.span.end <= exchange.end) {
            writer.record(Event::Lookup(lookup));
        }
        let exchange = exchange.exchange(source.entries, writer);
        writer.record(Event::Exchange(&exchange));
    }
    for connection in connections {
        let connection = connection.connection(source.entries, has_runs);
        writer.record(Event::Opened(&connection));
    }
    for lookup in lookups {
        writer.record(Event::Lookup(lookup));
    }
    words(source, evidence, writer)
}

/// A description of the evidence. Missing evidence becomes a caveat.
fn words(source: &Source<'_>, evidence: Evidence, writer: &mut EventWriter<'_>) -> String {
    let Source {
        kind,
        prefix,
        better,
        ..
    } = source;
    let by = match source.program {
        "" => "an unknown tool",
        program => program,
    };
    let ids = source.entries.iter().filter(|entry| entry.id.is_some());
    let has_ids = ids.count();
    match evidence {
        Evidence::Ids => format!(
            "written by {by}; connections identified by `connection`, which {has_ids} of {} entries have",
            source.entries.len()
        ),
        Evidence::Timings => {
            let why = if has_ids > 0 {
                "`connection` holds the server's port and not a connection's id"
            } else {
                "it has no ids of connections"
            };
            writer.caveat(
                &format!("{kind}-without-ids"),
                format!(
                    "{prefix}{why}: reuse is inferred from the time for connecting, connections are the fewest that the overlap of requests allows"
                ),
            );
            format!("written by {by}; reuse inferred from the time for connecting: {why}")
        }
        Evidence::Nothing => {
            writer.incomplete_connections(
                &format!("{kind}-without-evidence"),
                format!(
                    "{prefix}no entry shows which connection carried the request, nor when one was opened. Connections \
                     are the fewest that the overlap of requests allows. {better}"
                ),
            );
            format!("written by {by}; nothing in it shows whether connections were reused")
        }
    }
}

/// Chooses the evidence that the fields of a file provide.
fn choose(source: &Source<'_>) -> Evidence {
    let port = |entry: &Entry| entry.origin.as_ref().map(|origin| origin.port.to_string());
    let mut with_id = source
        .entries
        .iter()
        .filter_map(|entry| Some((entry, entry.id.as_deref()?)))
        .peekable();
    let has_ids = with_id.peek().is_some();
    if has_ids && !with_id.all(|(entry, id)| port(entry).is_some_and(|port| id == port)) {
        return Evidence::Ids;
    }
    if source.entries.iter().any(|entry| entry.timings.has_setup()) {
        Evidence::Timings
    } else {
        Evidence::Nothing
    }
}

struct Assignment<'a> {
    entries: &'a [Entry],
    /// The file holds several runs, each with a new process: nothing was opened before.
    has_runs: bool,
    evidence: Evidence,
    is_coarse: bool,
    /// At least one entry has time for connecting, so that an entry without it means reuse.
    shows_connects: bool,
    /// Nanoseconds of the shortest setup, by run and origin.
    shortest_setups: HashMap<(u32, Option<&'a Origin>), u64>,
    /// Requests without a setup in the file that may have had one.
    hidden_setups: u64,
    laid: Vec<AssignedConnection>,
    /// By run and id.
    by_id: HashMap<(u32, &'a str), usize>,
    /// By run and origin.
    by_origin: HashMap<(u32, Option<&'a Origin>), Places>,
}

impl Assignment<'_> {
    fn lay(&mut self, index: usize, writer: &mut EventWriter<'_>) -> Placement {
        let entry = &self.entries[index];
        let id = writer.next_exchange();
        let end = writer.nanos(entry.ended_at().max(entry.at));
        if let Some(kind) = entry.outcome.failure()
            && let Some(phase) = entry.failed_in(kind)
        {
            let connection = self.fail(index, DialFailure::new(phase, kind), writer);
            return Placement::unplaced(id, index, end, Some(connection));
        }
        if entry.may_lack_connection {
            return Placement::unplaced(id, index, end, None);
        }
        let at = match self.find(index) {
            Some(at) => at,
            None => self.open(index, writer),
        };
        let has_id = self.evidence == Evidence::Ids && entry.id.is_some();
        let shows_connects = self.evidence != Evidence::Nothing && self.shows_connects;
        let hides_setup = !has_id && shows_connects && self.hides_setup(entry);
        self.hidden_setups += u64::from(hides_setup);
        let shows_reuse = has_id || (shows_connects && !hides_setup);
        let laid = &mut self.laid[at];
        laid.free_at = laid.free_at.max(entry.ended_at());
        laid.carried += 1;
        laid.closing |= entry.client_closes || entry.server_closes;
        let origin = self.entries[laid.entry].origin.as_ref();
        if let Some(places) = self.by_origin.get_mut(&(entry.run, origin)) {
            places.assign(at, laid.left());
        }
        let terms = &mut laid.terms;
        terms.timeout_s = entry.terms.timeout_s.or(terms.timeout_s);
        terms.max = entry.terms.max.or(terms.max);
        laid.is_new |= entry.timings.has_setup();
        let reuse = match laid.carried {
            _ if entry.timings.has_setup() => Some(Reuse::Fresh),
            _ if has_id && entry.used_before => Some(Reuse::Reused),
            0 | 1 if has_id && self.has_runs => Some(Reuse::Preconnected),
            // its connection was opened ahead, or carried requests before the file began
            0 | 1 => None,
            _ => shows_reuse.then_some(Reuse::Reused),
        };
        Placement {
            id,
            entry: index,
            end,
            connection: Some(laid.id),
            reuse,
            ordinal: (has_id && laid.is_new).then_some(laid.carried),
            is_inferred: !has_id,
        }
    }

    /// Whether a setup that the timings do not show may have taken place. It may not where the
    /// setups to this origin are much longer than the step of the times.
    fn hides_setup(&self, entry: &Entry) -> bool {
        let shortest = self
            .shortest_setups
            .get(&(entry.run, entry.origin.as_ref()));
        entry
            .hides_setup_below
            .is_some_and(|step| shortest.is_none_or(|shortest| *shortest < LONG_SETUP * step))
    }

    /// The known connection of an entry.
    fn find(&mut self, index: usize) -> Option<usize> {
        let entry = &self.entries[index];
        let sets_up = entry.timings.has_setup();
        if self.evidence == Evidence::Ids
            && let Some(id) = &entry.id
        {
            let known = self.by_id.get(&(entry.run, &**id)).copied();
            // streams wait for one setup together. An id that connects later is a new connection:
            // browsers count from 1 in each run
            return known.filter(|&at| !sets_up || entry.at < self.laid[at].ready_at);
        }
        if sets_up {
            return None;
        }
        let key = (entry.run, entry.origin.as_ref());
        let places = self.by_origin.get_mut(&key)?;
        let free = places.free_at(entry.sent_at());
        // times in whole seconds overlap where requests did not; an entry without connecting used
        // an existing connection
        let any = || {
            places
                .newest()
                .filter(|_| self.is_coarse && self.shows_connects)
        };
        free.or_else(any)
    }

    fn open(&mut self, index: usize, writer: &mut EventWriter<'_>) -> usize {
        let entry = &self.entries[index];
        let begun = writer.nanos(entry.at.saturating_add(entry.timings.blocked.unwrap_or(0)));
        let has_ids = self.evidence == Evidence::Ids;
        let mut laid = AssignedConnection::new(writer.next_connection(), begun, (index, entry));
        laid.open_before = has_ids && entry.used_before;
        laid.is_inferred = !has_ids || entry.id.is_none();
        let at = self.laid.len();
        self.laid.push(laid);
        if let Some(id) = &entry.id
            && has_ids
        {
            self.by_id.insert((entry.run, id), at);
        }
        let key = (entry.run, entry.origin.as_ref());
        let places = self.by_origin.entry(key).or_default();
        places.open(at);
        at
    }

    /// Records a failed dial, which is a connection, too.
    fn fail(
        &mut self,
        index: usize,
        failed: DialFailure,
        writer: &mut EventWriter<'_>,
    ) -> ConnectionId {
        let entry = &self.entries[index];
        let begun = writer.nanos(entry.at);
        let id = writer.next_connection();
        let mut laid = AssignedConnection::new(id, begun, (index, entry));
        laid.failed = Some(failed);
        self.laid.push(laid);
        id
    }
}

fn shortest_setups(entries: &[Entry]) -> HashMap<(u32, Option<&Origin>), u64> {
    let mut shortest = HashMap::new();
    for entry in entries {
        if let Some(setup) = entry.timings.setup() {
            let key = (entry.run, entry.origin.as_ref());
            let known = shortest.entry(key).or_insert(setup);
            *known = setup.min(*known);
        }
    }
    shortest
}

fn why() -> Certainty {
    Certainty::Inferred("the file does not say which connection carried a request".into())
}

/// Returns consecutive spans of the given lengths, from `at` on.
fn steps(mut at: Nanos) -> impl FnMut(Option<u64>) -> Option<Span> {
    move |nanos| {
        let span = Span::new(at, at.after(nanos?));
        at = span.end;
        Some(span)
    }
}
