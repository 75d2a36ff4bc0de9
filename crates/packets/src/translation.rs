//! Connections with two pairs of addresses, because a NAT or a load balancer stands between two
//! capture points.
//!
//! Both halves, or both copies, are one connection. The initial sequence number (RFC 9293 section
//! 3.4.1) and the client's port identify it. A device that changes these is not recognised.

use intact_wire::tcp::Segment;
use std::collections::HashMap;
use std::net::SocketAddr;

/// Longest time between the packets of one handshake, in nanoseconds.
const HANDSHAKE: u64 = 3_000_000_000;
/// Limit of handshakes and translations that are remembered.
const MAX_KNOWN: usize = 65_536;

/// The two addresses of a connection, the smaller one first.
pub(super) type Pair = (SocketAddr, SocketAddr);

/// The pair of two addresses, in either order.
pub(super) fn pair(one: SocketAddr, other: SocketAddr) -> Pair {
    (one.min(other), one.max(other))
}

/// The addresses of a connection's first packet.
#[derive(Clone, Copy, Debug)]
struct Ends {
    client: SocketAddr,
    server: SocketAddr,
    at: u64,
}

/// A second pair of addresses of a connection.
#[derive(Clone, Copy, Debug)]
struct Alias {
    /// The client's address in this pair.
    client: SocketAddr,
    /// The sequence number after the client's SYN.
    start: u32,
    first: Ends,
    seen_at: u64,
}

/// Connections with several pairs of addresses.
#[derive(Debug, Default)]
pub(super) struct Translations {
    /// First packets, by the client's port and the sequence number after its SYN.
    opened: HashMap<(u16, u32), Ends>,
    aliases: HashMap<Pair, Alias>,
    /// Number of connections with a second pair of addresses.
    pub(super) found: u64,
}

impl Translations {
    /// The addresses under which the connection of this segment is recorded: source and target.
    pub(super) fn resolve(
        &mut self,
        source: SocketAddr,
        target: SocketAddr,
        segment: &Segment<'_>,
    ) -> (SocketAddr, SocketAddr) {
        let key = pair(source, target);
        if segment.syn {
            self.take_syn(source, target, segment);
        }
        match self.aliases.get_mut(&key) {
            Some(alias) if source == alias.client => {
                alias.seen_at = segment.at;
                (alias.first.client, alias.first.server)
            }
            Some(alias) => {
                alias.seen_at = segment.at;
                (alias.first.server, alias.first.client)
            }
            None => (source, target),
        }
    }

    fn take_syn(&mut self, source: SocketAddr, target: SocketAddr, segment: &Segment<'_>) {
        let (client, server, start) = match segment.ack {
            None => (source, target, segment.seq.wrapping_add(1)),
            Some(ack) => (target, source, ack),
        };
        let key = pair(client, server);
        if self
            .aliases
            .get(&key)
            .is_some_and(|alias| alias.start != start)
        {
            // a new connection uses the addresses
            self.aliases.remove(&key);
        }
        let is_near = |ends: &&Ends| segment.at.abs_diff(ends.at) <= HANDSHAKE;
        let first = self.opened.get(&(client.port(), start)).filter(is_near);
        let Some(&first) = first else {
            if self.opened.len() >= MAX_KNOWN {
                self.opened.retain(|_, ends| is_near(&&*ends));
            }
            if self.opened.len() < MAX_KNOWN {
                let at = segment.at;
                self.opened
                    .insert((client.port(), start), Ends { client, server, at });
            }
            return;
        };
        if (first.client, first.server) == (client, server) || self.aliases.contains_key(&key) {
            return;
        }
        if self.aliases.len() >= MAX_KNOWN {
            let mut times: Vec<u64> = self.aliases.values().map(|alias| alias.seen_at).collect();
            let (_, median, _) = times.select_nth_unstable(MAX_KNOWN / 2);
            let median = *median;
            self.aliases.retain(|_, alias| alias.seen_at > median);
        }
        self.found += 1;
        let alias = Alias {
            client,
            start,
            first,
            seen_at: segment.at,
        };
        self.aliases.insert(key, alias);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    fn syn(seq: u32, ack: Option<u32>, at: u64) -> Segment<'static> {
        Segment {
            seq,
            ack,
            syn: true,
            at,
            ..Segment::default()
        }
    }

    #[test]
    fn an_answer_from_another_address_belongs_to_the_syn() {
        let [client, front, back] = ["10.0.0.1:4000", "10.9.0.1:80", "10.2.0.7:8080"].map(end);
        let mut known = Translations::default();
        assert_eq!(
            known.resolve(client, front, &syn(99, None, 1)),
            (client, front)
        );
        let answer = syn(7, Some(100), 2);
        assert_eq!(known.resolve(back, client, &answer), (front, client));
        let data = Segment::default();
        assert_eq!(known.resolve(back, client, &data), (front, client));
        assert_eq!(known.resolve(client, back, &data), (client, front));
        assert_eq!(known.found, 1);
        // the same ports in a new connection, without a translation
        let again = syn(5_000, None, 9);
        assert_eq!(known.resolve(client, back, &again), (client, back));
    }

    #[test]
    fn different_connections_are_not_joined() {
        let [client, front, back] = ["10.0.0.1:4000", "10.9.0.1:80", "10.2.0.7:8080"].map(end);
        let mut known = Translations::default();
        known.resolve(client, front, &syn(99, None, 1));
        for other in [syn(7, Some(101), 2), syn(7, Some(100), 2 + HANDSHAKE)] {
            assert_eq!(known.resolve(back, client, &other), (back, client));
        }
        assert_eq!(known.found, 0);
    }
}
