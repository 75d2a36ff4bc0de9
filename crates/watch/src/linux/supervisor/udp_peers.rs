//! Peers that programs exchange datagrams with, other than name servers: HTTP/3 is among them, and
//! is not watched. Their addresses and numbers are kept, so that a page does not read as if there
//! were none. Must not read a datagram.
//!
//! The C library connects a UDP socket to each address of a name and sends nothing. So a socket
//! counts once it has received a datagram. Sockets that are not connected leave no trace here.

use super::named_counts::NamedCounts;
use intact_ledger::Caveat;
use intact_sys::socket;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// A first response comes within this time, or the socket does not count. The copy keeps the
/// socket's port until then.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often the sockets are looked at.
const PACE: Duration = Duration::from_millis(100);
/// Sockets that are looked at.
const MAX: usize = 128;

/// The peers of connected UDP sockets.
#[derive(Default)]
pub(super) struct UdpPeers {
    /// Sockets that have received nothing yet, by cookie.
    waiting: HashMap<u64, Waiting>,
    /// When they are looked at next.
    pub(super) due: Option<Instant>,
    /// Sockets by peer.
    sockets: NamedCounts<SocketAddr>,
}

struct Waiting {
    copy: OwnedFd,
    peer: SocketAddr,
    since: Instant,
}

impl UdpPeers {
    /// A socket is being connected to a peer.
    pub(super) fn connect(&mut self, cookie: u64, copy: OwnedFd, peer: SocketAddr) {
        let since = Instant::now();
        if self.waiting.len() < MAX || self.waiting.contains_key(&cookie) {
            self.waiting.insert(cookie, Waiting { copy, peer, since });
            self.due.get_or_insert(since + PACE);
        }
    }

    /// Counts sockets that have received something, once that is due.
    pub(super) fn look(&mut self) {
        let now = Instant::now();
        if self.due.is_none_or(|due| now < due) {
            return;
        }
        self.count_received();
        self.waiting.retain(|_, one| now - one.since < PATIENCE);
        self.due = (!self.waiting.is_empty()).then(|| now + PACE);
    }

    fn count_received(&mut self) {
        let UdpPeers {
            waiting, sockets, ..
        } = self;
        waiting.retain(|_, one| {
            let has_received = socket::has_received(&one.copy);
            if has_received {
                sockets.add(one.peer);
            }
            !has_received
        });
    }

    /// The caveat on a run with such peers.
    pub(super) fn caveat(&mut self) -> Option<Caveat> {
        self.count_received();
        let peers = self.sockets.list()?;
        Some(Caveat::new(
            Caveat::UDP,
            format!("UDP is not watched, and HTTP/3 uses it: {peers}"),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    /// A socket that is connected to `peer`, and a copy of it.
    fn connected(peers: &mut UdpPeers, cookie: u64, peer: &UdpSocket) -> UdpSocket {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = peer.local_addr().unwrap();
        socket.connect(address).unwrap();
        peers.connect(cookie, socket.try_clone().unwrap().into(), address);
        socket
    }

    #[test]
    fn a_socket_counts_once_it_has_received_a_datagram() {
        let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut peers = UdpPeers::default();
        let sockets: Vec<_> = (0..3)
            .map(|cookie| connected(&mut peers, cookie, &peer))
            .collect();
        sockets[0].send(b"unanswered").unwrap();
        for socket in &sockets[1..] {
            peer.send_to(b"x", socket.local_addr().unwrap()).unwrap();
            assert_eq!(socket.recv(&mut [0; 8]).unwrap(), 1);
        }
        peers.look();
        assert_eq!(peers.waiting.len(), 3, "the look is not due yet");
        let address = peer.local_addr().unwrap();
        let words = format!("UDP is not watched, and HTTP/3 uses it: {address} (2)");
        assert_eq!(peers.caveat().unwrap().message, words);
    }

    #[test]
    fn no_caveat_names_sockets_that_received_nothing() {
        let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut peers = UdpPeers::default();
        let socket = connected(&mut peers, 1, &peer);
        socket.send(b"unanswered").unwrap();
        assert_eq!(peers.caveat(), None);
    }
}
