//! QUIC (RFC 9000), from outside: that a connection was opened and to which name, how long its handshake took, until when it was
//! used. What it carries cannot be seen.

use crate::event_writer::EventWriter;
use intact_ledger::{
    Close, Connection, ConnectionBytes, DialFailure, Event, Failure, Origin, Probes, Scheme,
    SetupPhase, Span, Tls, Transport,
};
use intact_observe::authority::host_of;
use intact_wire::quic::{Kind, QuicClientHello, packets};
use intact_wire::tls::ClientHello;
use std::collections::HashMap;
use std::net::SocketAddr;

/// Connections that are followed at once; more are not.
const MAX_LIVE: usize = 8192;
/// A connection that was silent for this long is over: idle timeouts are shorter. Nanoseconds.
const SILENCE: u64 = 60_000_000_000;
/// An Initial that stayed without answer for this long was not answered in time. Nanoseconds.
const UNANSWERED: u64 = 3_000_000_000;
/// A client's first datagram is at least this long, in bytes (RFC 9000 section 14.1).
const MIN_INITIAL: usize = 1200;
/// Where servers of HTTP/3 listen.
const PORT: u16 = 443;

/// The connections of a capture.
#[derive(Default)]
pub(super) struct Quic {
    live: HashMap<(SocketAddr, SocketAddr), QuicConnection>,
    /// Connections told of.
    pub(super) told: u64,
    /// Connections that were about to be opened when the capture ended.
    pub(super) too_late: u64,
    /// Those of which one direction is in the capture.
    pub(super) one_direction: u64,
    /// Single first packets in a capture without a packet of any server.
    pub(super) unheard: u64,
    hears_servers: bool,
    /// Packets that look like those of a connection whose start is not in the capture.
    pub(super) joined: u64,
    /// First packets of connections that were not followed, to bound memory.
    pub(super) untracked: u64,
}

/// One connection.
struct QuicConnection {
    begun_at: u64,
    seen_at: u64,
    /// The client has shown that it has the server's keys.
    ready_at: Option<u64>,
    answered: bool,
    /// The client sent what needs an answer of the server.
    proceeds: bool,
    /// Datagrams of the client, in the beginning.
    datagrams: u32,
    sent: u64,
    received: u64,
    /// The client's hello, until it is whole or given up.
    greeting: Option<Box<QuicClientHello>>,
    tls: Option<Box<Tls>>,
}

/// What kinds of packets are in a datagram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Kinds {
    initial: bool,
    /// A handshake packet, or one with a short head.
    later: bool,
}

impl QuicConnection {
    /// Takes a datagram of the client.
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
    /// Takes a UDP datagram; returns whether it belongs to a QUIC connection, or looks like it.
    pub(super) fn take(
        &mut self,
        source: SocketAddr,
        target: SocketAddr,
        bytes: &[u8],
        len: usize,
        at: u64,
        scope: &mut EventWriter<'_>,
    ) -> bool {
        if let Some(talk) = self.live.get_mut(&(target, source)) {
            self.hears_servers = true;
            talk.answered = true;
            talk.received += len as u64;
            talk.seen_at = at;
            return true;
        }
        let key = (source, target);
        if let Some(talk) = self.live.get(&key)
            && at.saturating_sub(talk.seen_at) > SILENCE
        {
            self.end(key, true, at, scope);
        }
        let kinds = kinds(bytes);
        if let Some(talk) = self.live.get_mut(&key) {
            talk.sent += len as u64;
            talk.seen_at = at;
            talk.greet(bytes);
            talk.proceeds |= kinds.later;
            talk.datagrams = talk.datagrams.saturating_add(1);
            if talk.ready_at.is_none() && talk.answered && kinds.later {
                talk.ready_at = Some(at);
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
            self.make_room(at, scope);
        }
        if self.live.len() < MAX_LIVE {
            let mut talk = QuicConnection {
                begun_at: at,
                seen_at: at,
                ready_at: None,
                answered: false,
                proceeds: false,
                datagrams: 1,
                sent: 0,
                received: 0,
                greeting: Some(Box::default()),
                tls: None,
            };
            // of a handshake whose other direction is not in the capture
            if source.port() == PORT && target.port() != PORT {
                talk.answered = true;
                talk.received = len as u64;
                self.live.insert((target, source), talk);
            } else {
                talk.sent = len as u64;
                talk.greet(bytes);
                self.live.insert(key, talk);
            }
        } else {
            self.untracked += 1;
        }
        true
    }

    fn make_room(&mut self, now: u64, scope: &mut EventWriter<'_>) {
        let silent = |talk: &QuicConnection| now.saturating_sub(talk.seen_at) > SILENCE;
        let mut over: Vec<_> = self
            .live
            .iter()
            .filter(|(_, talk)| silent(talk))
            .map(|(key, talk)| (talk.seen_at, *key))
            .collect();
        over.sort_unstable();
        for (_, key) in over {
            self.end(key, true, now, scope);
        }
    }

    /// The capture is over.
    pub(super) fn finish(&mut self, now: u64, scope: &mut EventWriter<'_>) {
        let mut rest: Vec<_> = self
            .live
            .iter()
            .map(|(key, talk)| (talk.seen_at, *key))
            .collect();
        rest.sort_unstable();
        for (seen_at, key) in rest {
            self.end(key, now.saturating_sub(seen_at) > SILENCE, now, scope);
        }
    }

    fn end(
        &mut self,
        key: (SocketAddr, SocketAddr),
        over: bool,
        now: u64,
        scope: &mut EventWriter<'_>,
    ) {
        let Some(talk) = self.live.remove(&key) else {
            return;
        };
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
        let mut connection = Connection::new(scope.next_connection(), scope.nanos(talk.begun_at));
        connection.transport = Transport::Quic;
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
            connection.failed = Some(DialFailure {
                phase: SetupPhase::Connect,
                kind: Failure::ConnectTimeout,
                detail: None,
            });
        } else {
            self.told += 1;
        }
        if let Some(ready) = talk.ready_at {
            connection.setup.connect = Some(Span::new(connection.at, scope.nanos(ready)));
        }
        scope.record(Event::Opened(&connection));
        if over && !unanswered {
            let close = Close {
                at: scope.nanos(talk.seen_at),
                by: None,
                how: None,
                other_end: None,
                announced_by: None,
                moment: None,
                exchanges: None,
                bytes: ConnectionBytes {
                    sent: talk.sent,
                    received: talk.received,
                },
                probes: Probes::default(),
            };
            scope.close(connection.id, close);
        }
    }
}

/// What kinds of packets are in a datagram.
fn kinds(bytes: &[u8]) -> Kinds {
    let mut kinds = Kinds::default();
    for (kind, _) in packets(bytes) {
        match kind {
            Kind::Initial => kinds.initial = true,
            Kind::Handshake | Kind::Short => kinds.later = true,
            Kind::EarlyData => {}
        }
    }
    kinds
}

/// What the client asked for: its hello is encrypted with keys that anyone can make. What was chosen is not.
fn describe(hello: &ClientHello) -> Tls {
    let word = |name: &Vec<u8>| String::from_utf8_lossy(name).into();
    Tls {
        server_name: hello.server_name.as_deref().map(Into::into),
        alpn_offered: Some(hello.alpn.iter().map(word).collect()),
        resumption_offered: Some(hello.psk_identities > 0),
        ..Tls::default()
    }
}
