//! The event stream between producers and consumers.
//!
//! Producers pass borrowed [`Event`]s to a [`Sink`]; owned [`Row`]s are stored and read back. A
//! live view, a rule and a ledger writer are all sinks of the same stream; a batch is a replay.

use crate::connection::{Close, Connection, ConnectionId};
use crate::exchange::Exchange;
use crate::fault::FaultEvent;
use crate::invocation::Invocation;
use crate::load_step::LoadStep;
use crate::lookup::Lookup;
use crate::machine_use::MachineUse;
use crate::stack::CodeStack;
use crate::time::{Nanos, Span};
use serde::{Deserialize, Serialize};

/// The end of a connection, as an event.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Closed {
    /// The connection that ended.
    pub connection: ConnectionId,
    /// Index into the run's variants.
    pub variant: Option<u32>,
    /// The round that opened it.
    pub round: Option<u32>,
    /// The end.
    #[serde(flatten)]
    pub close: Close,
}

/// What an open loop adds to a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RoundSchedule {
    /// When requests were due.
    pub due: Span,
    /// Connections that were used at once, at the most.
    pub at_once: u32,
}

/// The bounds and the cost of one round of one variant.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Round {
    /// Index into the run's variants.
    pub variant: u32,
    /// The round, from 1; 0 is the preflight.
    pub round: u32,
    /// From the first start to the last end; in an open loop at least the time of the schedule.
    pub span: Span,
    /// The schedule of an open loop.
    pub schedule: Option<RoundSchedule>,
    /// Its load, where a search or an overload chose it.
    pub load: Option<LoadStep>,
    /// CPU time of the client, in nanoseconds.
    pub client_cpu: Option<u64>,
    /// The most memory that one process of the client had resident at a time, in bytes.
    pub client_memory: Option<u64>,
    /// Number of threads that drove its connections; absent: one.
    pub client_threads: Option<u32>,
    /// CPU time of the server, in nanoseconds.
    pub server_cpu: Option<u64>,
    /// What all processes of the client's machine did meanwhile; absent where that is not counted.
    pub machine: Option<MachineUse>,
    /// The sockets of the client's machine; absent where they were not counted.
    pub sockets: Option<RoundSockets>,
    /// How long a cache may use the response without a request (`max-age`), in seconds; absent
    /// where the server allows no such use, or where no fields were read.
    pub fresh_for_s: Option<u64>,
    /// Connections whose SYN carried data that the server accepted (RFC 7413); absent where the
    /// client did not ask for that.
    pub with_syn: Option<u64>,
}

impl Round {
    /// A closed loop of which only the bounds are known.
    pub fn new(variant: u32, round: u32, span: Span) -> Round {
        Round {
            variant,
            round,
            span,
            ..Round::default()
        }
    }
}

/// The sockets of the client's machine right before and right after a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RoundSockets {
    /// Before its first connection was opened.
    pub before: Sockets,
    /// After its last connection was closed.
    pub after: Sockets,
}

/// The state of the machine's sockets at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sockets {
    /// The time.
    pub at: Nanos,
    /// TCP sockets in TIME_WAIT, machine-wide.
    pub time_wait: u64,
    /// Ephemeral ports that no socket of this machine uses; absent if they cannot be counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free_ports: Option<u64>,
}

/// A limit on what the figures can show.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Caveat {
    /// A stable kebab-case id.
    pub id: String,
    /// The consequence for the reader, as a sentence.
    pub message: String,
    /// Whether traffic is missing from the ledger. Counts are then lower bounds, and a requirement
    /// that a larger count would fail does not pass.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub incomplete: bool,
    /// Every connection is in the ledger: only exchanges are missing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all_connections: bool,
    /// Every exchange is in the ledger: only connections are missing, or only inferred.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all_requests: bool,
}

impl Caveat {
    /// The id where programs connected to Unix sockets, which `watch` leaves alone.
    pub const UNIX_SOCKETS: &str = "unix-sockets";
    /// The id where programs exchanged datagrams, which `watch` leaves alone.
    pub const UDP: &str = "udp";

    /// The id where places in the code are not known.
    pub const PLACES_NOT_KNOWN: &str = "places-not-known";
    /// The id where places in the code were read of a part of the connections.
    pub const PLACES_SAMPLED: &str = "places-sampled";

    /// Whether it is about places in the code, which only a finding has.
    pub fn is_about_places(&self) -> bool {
        [Caveat::PLACES_NOT_KNOWN, Caveat::PLACES_SAMPLED].contains(&&*self.id)
    }

    /// A caveat on figures that are complete.
    pub fn new(id: impl Into<String>, words: impl Into<String>) -> Caveat {
        Caveat {
            id: id.into(),
            message: words.into(),
            incomplete: false,
            all_connections: false,
            all_requests: false,
        }
    }

    /// A caveat that reports missing traffic: counts are lower bounds.
    pub fn incomplete(id: impl Into<String>, words: impl Into<String>) -> Caveat {
        Caveat {
            incomplete: true,
            ..Caveat::new(id, words)
        }
    }

    /// A caveat that reports missing requests on connections that are all in the ledger.
    pub fn incomplete_requests(id: impl Into<String>, words: impl Into<String>) -> Caveat {
        Caveat {
            all_connections: true,
            ..Caveat::incomplete(id, words)
        }
    }

    /// A caveat that reports missing connections, while every request is in the ledger.
    pub fn incomplete_connections(id: impl Into<String>, words: impl Into<String>) -> Caveat {
        Caveat {
            all_requests: true,
            ..Caveat::incomplete(id, words)
        }
    }
}

/// One thing that happened, borrowed from the producer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event<'a> {
    /// A connection was opened, or a dial failed.
    Opened(&'a Connection),
    /// More facts about a connection that was recorded before; replaces the earlier record and
    /// counts nothing.
    Revised(&'a Connection),
    /// An exchange ended.
    Exchange(&'a Exchange),
    /// A connection ended.
    Closed(&'a Closed),
    /// A name was resolved.
    Lookup(&'a Lookup),
    /// A place in the code from which connections are opened; before the first of them.
    Stack(&'a CodeStack),
    /// A round of a variant ended.
    Round(&'a Round),
    /// The machine's sockets were counted.
    Sockets(&'a Sockets),
    /// An invocation of a function ended.
    Invocation(&'a Invocation),
    /// A fault of ours: planned, struck, or not applied.
    Fault(&'a FaultEvent),
    /// A limit of what the ledger can show.
    Caveat(&'a Caveat),
}

impl Event<'_> {
    /// The variant that the event belongs to, where there is one.
    pub fn variant(&self) -> Option<u32> {
        match self {
            Event::Opened(connection) | Event::Revised(connection) => connection.variant,
            Event::Exchange(exchange) => exchange.variant,
            Event::Closed(closed) => closed.variant,
            Event::Lookup(lookup) => lookup.variant,
            Event::Round(round) => Some(round.variant),
            Event::Fault(fault) => fault.variant(),
            Event::Sockets(_) | Event::Invocation(_) | Event::Stack(_) | Event::Caveat(_) => None,
        }
    }
}

/// One thing that happened, as stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Row {
    /// See [`Event::Opened`].
    Opened(Box<Connection>),
    /// See [`Event::Revised`].
    Revised(Box<Connection>),
    /// See [`Event::Exchange`].
    Exchange(Box<Exchange>),
    /// See [`Event::Closed`].
    Closed(Closed),
    /// See [`Event::Lookup`].
    Lookup(Lookup),
    /// See [`Event::Stack`].
    Stack(CodeStack),
    /// See [`Event::Round`].
    Round(Round),
    /// See [`Event::Sockets`].
    Sockets(Sockets),
    /// See [`Event::Invocation`].
    Invocation(Invocation),
    /// See [`Event::Fault`].
    Fault(Box<FaultEvent>),
    /// See [`Event::Caveat`].
    Caveat(Caveat),
}

impl Row {
    /// The row as an event.
    pub fn as_event(&self) -> Event<'_> {
        match self {
            Row::Opened(connection) => Event::Opened(connection),
            Row::Revised(connection) => Event::Revised(connection),
            Row::Exchange(exchange) => Event::Exchange(exchange),
            Row::Closed(closed) => Event::Closed(closed),
            Row::Lookup(lookup) => Event::Lookup(lookup),
            Row::Stack(stack) => Event::Stack(stack),
            Row::Round(round) => Event::Round(round),
            Row::Sockets(sockets) => Event::Sockets(sockets),
            Row::Invocation(invocation) => Event::Invocation(invocation),
            Row::Fault(fault) => Event::Fault(fault),
            Row::Caveat(caveat) => Event::Caveat(caveat),
        }
    }
}

impl Event<'_> {
    /// An owned copy.
    pub fn to_row(self) -> Row {
        match self {
            Event::Opened(connection) => Row::Opened(Box::new(connection.clone())),
            Event::Revised(connection) => Row::Revised(Box::new(connection.clone())),
            Event::Exchange(exchange) => Row::Exchange(Box::new(exchange.clone())),
            Event::Closed(closed) => Row::Closed(closed.clone()),
            Event::Lookup(lookup) => Row::Lookup(lookup.clone()),
            Event::Stack(stack) => Row::Stack(stack.clone()),
            Event::Round(round) => Row::Round(round.clone()),
            Event::Sockets(sockets) => Row::Sockets(*sockets),
            Event::Invocation(invocation) => Row::Invocation(invocation.clone()),
            Event::Fault(fault) => Row::Fault(Box::new(fault.clone())),
            Event::Caveat(caveat) => Row::Caveat(caveat.clone()),
        }
    }
}

/// Receives events.
pub trait Sink {
    /// Receives one event. The producer's loop calls it, so it must neither block nor fail.
    fn record(&mut self, event: Event<'_>);

    /// Announces the connections of the next events. A sink with the state of many connections
    /// reads it for all of these at the same time, instead of waiting for the memory of each.
    fn expect(&mut self, connections: &[ConnectionId]) {
        let _ = connections;
    }
}

/// Stores rows; for tests, small inputs and transfer between threads.
impl Sink for Vec<Row> {
    fn record(&mut self, event: Event<'_>) {
        self.push(event.to_row());
    }
}
