//! QUIC (RFC 9000), from outside: that a connection was opened, how long its handshake took, until when it was used. What it
//! carries cannot be seen.

use crate::scope::Scope;
use ledger::{
    Close, Closed, Connection, ConnectionBytes, DialFailure, Event, Failure, Probes, SetupPhase,
    Span, Transport,
};
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

/// The connections of a capture.
#[derive(Default)]
pub(super) struct Quic {
    live: HashMap<(SocketAddr, SocketAddr), Talk>,
    /// Connections told of.
    pub(super) told: u64,
}

/// One connection.
struct Talk {
    begun_at: u64,
    seen_at: u64,
    /// The client has shown that it has the server's keys.
    ready_at: Option<u64>,
    answered: bool,
    sent: u64,
    received: u64,
}

/// What kinds of packets are in a datagram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Kinds {
    initial: bool,
    /// A handshake packet, or one with a short head.
    later: bool,
}

impl Quic {
    /// Takes a UDP datagram; tells whether it belongs to a QUIC connection.
    pub(super) fn take(
        &mut self,
        source: SocketAddr,
        target: SocketAddr,
        bytes: &[u8],
        len: usize,
        at: u64,
        scope: &mut Scope<'_>,
    ) -> bool {
        if let Some(talk) = self.live.get_mut(&(target, source)) {
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
            if talk.ready_at.is_none() && talk.answered && kinds.later {
                talk.ready_at = Some(at);
            }
            return true;
        }
        if !kinds.initial || len < MIN_INITIAL {
            return false;
        }
        if self.live.len() >= MAX_LIVE {
            self.make_room(at, scope);
        }
        if self.live.len() < MAX_LIVE {
            let talk = Talk {
                begun_at: at,
                seen_at: at,
                ready_at: None,
                answered: false,
                sent: len as u64,
                received: 0,
            };
            self.live.insert(key, talk);
        }
        true
    }

    fn make_room(&mut self, now: u64, scope: &mut Scope<'_>) {
        let silent = |talk: &Talk| now.saturating_sub(talk.seen_at) > SILENCE;
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
    pub(super) fn finish(&mut self, now: u64, scope: &mut Scope<'_>) {
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

    fn end(&mut self, key: (SocketAddr, SocketAddr), over: bool, now: u64, scope: &mut Scope<'_>) {
        let Some(talk) = self.live.remove(&key) else {
            return;
        };
        let unanswered = !talk.answered;
        if unanswered && now.saturating_sub(talk.begun_at) < UNANSWERED {
            return;
        }
        let mut connection = Connection::new(scope.next_connection(), scope.nanos(talk.begun_at));
        connection.transport = Transport::Quic;
        (connection.local, connection.peer) = (Some(key.0), Some(key.1));
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
            let closed = Closed {
                connection: connection.id,
                variant: None,
                round: None,
                close: Close {
                    at: scope.nanos(talk.seen_at),
                    by: None,
                    how: None,
                    announced_by: None,
                    moment: None,
                    exchanges: None,
                    bytes: ConnectionBytes {
                        sent: talk.sent,
                        received: talk.received,
                    },
                    probes: Probes::default(),
                },
            };
            scope.record(Event::Closed(&closed));
        }
    }
}

/// Looks at the heads of the packets in a datagram: those with long heads say where the next begins (RFC 9000 section 17.2).
fn kinds(mut bytes: &[u8]) -> Kinds {
    let mut kinds = Kinds::default();
    while let Some(&first) = bytes.first() {
        if first & 0x40 == 0 {
            break;
        }
        if first & 0x80 == 0 {
            kinds.later = true;
            break;
        }
        let Some((kind, next)) = long_head(bytes) else {
            break;
        };
        match kind {
            Kind::Initial => kinds.initial = true,
            Kind::Handshake => kinds.later = true,
            Kind::EarlyData => {}
        }
        bytes = next;
    }
    kinds
}

enum Kind {
    Initial,
    EarlyData,
    Handshake,
}

fn long_head(bytes: &[u8]) -> Option<(Kind, &[u8])> {
    let version = u32::from_be_bytes(*bytes.get(1..)?.first_chunk()?);
    let kind = match (version, (bytes[0] >> 4) & 3) {
        (1, kind) => kind,
        // version 2 (RFC 9369) numbers them differently
        (0x6b33_43cf, kind) => kind.wrapping_sub(1) & 3,
        _ => return None,
    };
    let mut rest = bytes.get(5..)?;
    for _ in 0..2 {
        let len = usize::from(*rest.first()?);
        rest = rest.get(1 + len..)?;
    }
    let kind = match kind {
        0 => {
            let (token, after) = varint(rest)?;
            rest = after.get(usize::try_from(token).ok()?..)?;
            Kind::Initial
        }
        1 => Kind::EarlyData,
        2 => Kind::Handshake,
        _ => return None,
    };
    let (len, rest) = varint(rest)?;
    let next = rest.get(usize::try_from(len).ok()?..).unwrap_or_default();
    Some((kind, next))
}

/// A number of variable length (RFC 9000 section 16).
fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let len = 1 << (bytes.first()? >> 6);
    let (number, rest) = bytes.split_at_checked(len)?;
    let start = u64::from(number[0] & 0x3f);
    let value = number[1..]
        .iter()
        .fold(start, |value, &byte| value << 8 | u64::from(byte));
    Some((value, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn initial(after: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0xc3, 0, 0, 0, 1, 4, 1, 2, 3, 4, 0, 0, 0x44, 0x80];
        bytes.resize(bytes.len() + 0x480, 0xaa);
        bytes.extend_from_slice(after);
        bytes
    }

    #[test]
    fn packets_of_a_datagram_are_told_by_their_heads() {
        let alone = initial(&[]);
        let kinds_of = |initial, later| Kinds { initial, later };
        assert_eq!(kinds(&alone), kinds_of(true, false));
        let with_handshake = initial(&[0xe3, 0, 0, 0, 1, 0, 0, 2, 0xbb, 0xbb]);
        assert_eq!(kinds(&with_handshake), kinds_of(true, true));
        assert_eq!(kinds(&[0x43, 1, 2, 3]), kinds_of(false, true));
        assert_eq!(kinds(&[0x80; 1200]), kinds_of(false, false));
        for len in 0..with_handshake.len() {
            kinds(&with_handshake[..len]);
        }
    }
}
