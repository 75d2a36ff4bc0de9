//! QUIC (RFC 9000) without its content.
//!
//! Reports that a connection was opened, to which name, the duration of its handshake, and its last
//! packet. The encrypted content is never read.

use super::ladder::LadderSelection;
use super::ladder::{Ladder, LadderBuilder};
use super::translation::{Pair, pair};
use crate::event_writer::EventWriter;
use intact_ledger::{
    Close, Connection, ConnectionBytes, ConnectionId, DialFailure, Event, Failure, Origin, Scheme,
    SetupPhase, Span, Tls, Transport,
};
use intact_observe::authority::host_of;
use intact_wire::Side;
use intact_wire::quic::{Kind, QuicClientHello, packets};
use intact_wire::tls::ClientHello;
use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;

/// Limit of connections that are followed at the same time; more are counted only.
const MAX_LIVE: usize = 8192;
/// A connection ended after this silence, because idle timeouts are shorter. Nanoseconds.
const SILENCE: u64 = 60_000_000_000;
/// An Initial without an answer for this long has timed out. Nanoseconds.
const UNANSWERED: u64 = 3_000_000_000;
/// Limit of connections whose packets are kept at the same time.
const MAX_CLIMBING: usize = 64;
/// Minimum length of a client's first datagram, in bytes (RFC 9000 section 14.1).
const MIN_INITIAL: usize = 1200;
/// Port of HTTP/3 servers.
const PORT: u16 = 443;
/// The number of version 2 (RFC 9369).
const VERSION_2: u32 = 0x6b33_43cf;

/// The connections of a capture.
#[derive(Default)]
pub(super) struct Quic {
    live: HashMap<(SocketAddr, SocketAddr), QuicConnection>,
    wanted: Option<LadderSelection>,
    /// The packets of the selected connection.
    pub(super) ladder: Option<Box<Ladder>>,
    /// Number of connections whose packets are kept.
    climbing: usize,
    /// Number of connections that were recorded.
    pub(super) recorded: u64,
    /// Connections whose dial was open when the capture ended.
    pub(super) too_late: u64,
    /// Connections with only one direction in the capture.
    pub(super) one_direction: u64,
    /// Single first packets in captures without a packet from a server.
    pub(super) unheard: u64,
    hears_servers: bool,
    /// Packets that look like those of a connection whose start was not captured.
    pub(super) joined: u64,
    /// First packets of connections that were not followed, because memory is bounded.
    pub(super) untracked: u64,
    /// Connections of a version that is not read.
    pub(super) other_versions: HashSet<Pair>,
}

/// One connection.
#[derive(Default)]
struct QuicConnection {
    begun_at: u64,
    seen_at: u64,
    /// When the client first used keys that the server had to confirm.
    ready_at: Option<u64>,
    answered: bool,
    /// The client sent a packet that the server must answer.
    proceeds: bool,
    /// Number of datagrams that the client sent so far.
    datagrams: u32,
    sent: u64,
    received: u64,
    /// The client's hello, until it is complete or given up.
    greeting: Option<Box<QuicClientHello>>,
    tls: Option<Box<Tls>>,
    /// The packets of the connection. It gets its number when it ends; only then is it known
    /// whether the number is selected.
    ladder: Option<LadderBuilder>,
}

/// The kinds of packets in a datagram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Kinds {
    initial: bool,
    /// A handshake packet, or a packet with a short header.
    later: bool,
}

impl QuicConnection {
    /// Keeps the packets from now on.
    fn begin_ladder(&mut self, (client, server): (SocketAddr, SocketAddr), base: u64) {
        // the number follows at the end
        self.ladder = Some(LadderBuilder::new(ConnectionId(0), client, server, base));
    }

    /// Adds a datagram to the packets that are kept.
    fn climb(&mut self, from: Side, bytes: &[u8], len: usize, at: u64) {
        if let Some(ladder) = &mut self.ladder {
            let len = u32::try_from(len).unwrap_or(u32::MAX);
            ladder.datagram(from, bytes, len, at);
        }
    }

    /// Reads the hello from a datagram of the client.
    fn greet(&mut self, bytes: &[u8]) {
        let Some(greeting) = &mut self.greeting else {
            return;
        };
        if let Some(hello) = greeting.read(bytes) {
            self.tls = Some(Box::new(describe(&hello)));
        }
        if self.tls.is_some() || greeting.is_over() {
            self.greeting = None;
        }
    }
}

impl Quic {
    /// The connections of a capture, of which the packets of one may be wanted.
    pub(super) fn new(wanted: Option<LadderSelection>) -> Quic {
        Quic {
            wanted,
            ..Quic::default()
        }
    }

    /// Reads a UDP datagram. Returns whether it belongs to a QUIC connection or looks like one.
    pub(super) fn take(
        &mut self,
        source: SocketAddr,
        target: SocketAddr,
        bytes: &[u8],
        len: usize,
        at: u64,
        writer: &mut EventWriter<'_>,
    ) -> bool {
        if let Some(talk) = self.live.get_mut(&(target, source)) {
            self.hears_servers = true;
            talk.answered = true;
            talk.received += len as u64;
            talk.seen_at = at;
            talk.climb(Side::Server, bytes, len, at);
            return true;
        }
        let key = (source, target);
        if let Some(talk) = self.live.get(&key)
            && at.saturating_sub(talk.seen_at) > SILENCE
        {
            self.end(key, true, at, writer);
        }
        let kinds = kinds(bytes);
        if let Some(talk) = self.live.get_mut(&key) {
            talk.sent += len as u64;
            talk.seen_at = at;
            talk.climb(Side::Client, bytes, len, at);
            talk.greet(bytes);
            talk.proceeds |= kinds.later;
            talk.datagrams = talk.datagrams.saturating_add(1);
            if talk.ready_at.is_none() && talk.answered && kinds.later {
                talk.ready_at = Some(at);
            }
            return true;
        }
        let pair = pair(source, target);
        if self.other_versions.contains(&pair) {
            return true;
        }
        if source.port().min(target.port()) == PORT && has_other_version(bytes) {
            if self.other_versions.len() < MAX_LIVE {
                self.other_versions.insert(pair);
            }
            return true;
        }
        if !kinds.initial || len < MIN_INITIAL {
            // the bit that every packet of QUIC version 1 and 2 has set (RFC 9000 section 17.3.1)
            let is_fixed = bytes.first().is_some_and(|first| first & 0x40 != 0);
            let is_joined = is_fixed && source.port().min(target.port()) == PORT;
            self.joined += u64::from(is_joined);
            return is_joined;
        }
        if self.live.len() >= MAX_LIVE {
            self.make_room(at, writer);
        }
        if self.live.len() < MAX_LIVE {
            let mut talk = QuicConnection {
                begun_at: at,
                seen_at: at,
                datagrams: 1,
                greeting: Some(Box::default()),
                ..QuicConnection::default()
            };
            let is_kept = self.wanted.is_some() && self.climbing < MAX_CLIMBING;
            self.climbing += usize::from(is_kept);
            // a handshake whose other direction was not captured
            let is_answer = source.port() == PORT && target.port() != PORT;
            let (from, key) = match is_answer {
                true => (Side::Server, (target, source)),
                false => (Side::Client, key),
            };
            if is_kept {
                talk.begin_ladder(key, writer.run.base);
                talk.climb(from, bytes, len, at);
            }
            if is_answer {
                talk.answered = true;
                talk.received = len as u64;
            } else {
                talk.sent = len as u64;
                talk.greet(bytes);
            }
            self.live.insert(key, talk);
        } else {
            self.untracked += 1;
        }
        true
    }

    fn make_room(&mut self, now: u64, writer: &mut EventWriter<'_>) {
        for (_, key) in self.seen(|at| now.saturating_sub(at) > SILENCE) {
            self.end(key, true, now, writer);
        }
    }

    /// The connections whose last packets came at these times, ordered by them.
    fn seen(&self, at: impl Fn(u64) -> bool) -> Vec<(u64, (SocketAddr, SocketAddr))> {
        let live = self.live.iter().map(|(key, talk)| (talk.seen_at, *key));
        let mut seen: Vec<_> = live.filter(|(seen_at, _)| at(*seen_at)).collect();
        seen.sort_unstable();
        seen
    }

    /// Ends all connections; the captures are complete.
    pub(super) fn finish(&mut self, now: u64, writer: &mut EventWriter<'_>) {
        for (seen_at, key) in self.seen(|_| true) {
            self.end(key, now.saturating_sub(seen_at) > SILENCE, now, writer);
        }
    }

    fn end(
        &mut self,
        key: (SocketAddr, SocketAddr),
        over: bool,
        now: u64,
        writer: &mut EventWriter<'_>,
    ) {
        let Some(mut talk) = self.live.remove(&key) else {
            return;
        };
        let ladder = talk.ladder.take();
        self.climbing -= usize::from(ladder.is_some());
        let unanswered = !talk.answered;
        let is_one_way = talk.sent == 0 || unanswered && talk.proceeds;
        let unanswered = unanswered && !talk.proceeds;
        self.one_direction += u64::from(is_one_way);
        if unanswered && now.saturating_sub(talk.begun_at) < UNANSWERED {
            self.too_late += 1;
            return;
        }
        if unanswered && !self.hears_servers && talk.datagrams == 1 {
            self.unheard += 1;
            return;
        }
        let mut connection = Connection::new(writer.next_connection(), writer.nanos(talk.begun_at));
        connection.transport = Transport::Quic;
        let is_selected = match self.wanted {
            Some(LadderSelection::Number(number)) => connection.id.0 == number,
            Some(LadderSelection::First) => self.ladder.is_none(),
            None => false,
        };
        if let Some(builder) = ladder.filter(|_| is_selected) {
            let ladder = Ladder {
                connection: connection.id,
                ..builder.finish()
            };
            self.ladder = Some(Box::new(ladder));
        }
        (connection.local, connection.peer) = (Some(key.0), Some(key.1));
        if let Some(tls) = talk.tls {
            let name = tls.server_name.as_deref();
            connection.origin = name
                .and_then(|name| host_of(name.as_bytes()))
                .map(|host| Origin {
                    scheme: Scheme::Https,
                    host,
                    port: key.1.port(),
                });
            connection.tls = Some(*tls);
        }
        if unanswered {
            let timeout = DialFailure::new(SetupPhase::Connect, Failure::ConnectTimeout);
            connection.failed = Some(timeout);
        } else {
            self.recorded += 1;
        }
        if let Some(ready) = talk.ready_at {
            connection.setup.connect = Some(Span::new(connection.at, writer.nanos(ready)));
        }
        writer.record(Event::Opened(&connection));
        if over && !unanswered {
            let close = Close {
                at: writer.nanos(talk.seen_at),
                bytes: ConnectionBytes {
                    sent: talk.sent,
                    received: talk.received,
                    ..ConnectionBytes::default()
                },
                ..Close::default()
            };
            writer.close(connection.id, close);
        }
    }
}

/// Whether a datagram names a version of QUIC that is not read: a draft, or one from before the
/// standard (its version is text after the id of the connection).
fn has_other_version(bytes: &[u8]) -> bool {
    let is_of_google = bytes.get(9..11).is_some_and(|version| version == b"Q0");
    let version = bytes.get(1..5).and_then(|version| version.first_chunk());
    let is_long = bytes.first().is_some_and(|first| first & 0xc0 == 0xc0);
    let version = version
        .filter(|_| is_long)
        .map(|version| u32::from_be_bytes(*version));
    is_of_google || version.is_some_and(|version| !matches!(version, 0 | 1 | VERSION_2))
}

/// The kinds of packets in a datagram.
fn kinds(bytes: &[u8]) -> Kinds {
    let mut kinds = Kinds::default();
    for (kind, _) in packets(bytes) {
        match kind {
            Kind::Initial => kinds.initial = true,
            Kind::Handshake | Kind::Short => kinds.later = true,
            Kind::EarlyData | Kind::Retry | Kind::VersionNegotiation => {}
        }
    }
    kinds
}

/// What the client offered. Its hello is encrypted with public keys, the server's choice with
/// secret ones.
fn describe(hello: &ClientHello) -> Tls {
    let word = |name: &Vec<u8>| String::from_utf8_lossy(name).into();
    Tls {
        server_name: hello.server_name.as_deref().map(Into::into),
        alpn_offered: Some(hello.alpn.iter().map(word).collect()),
        resumption_offered: Some(hello.psk_identities > 0),
        ..Tls::default()
    }
}
