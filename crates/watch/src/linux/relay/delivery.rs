//! Writes to a sink, and counts what a peer on this machine has received.
//!
//! TCP_INFO does not show what a RST acknowledges. On one machine that need not be known: bytes are
//! delivered within send(2), and a TCP that does not know the connection resets it before send(2)
//! returns. The peer's program cannot have sent that RST, if no other thread ran meanwhile.

use intact_sys::{process, socket};
use mio::net::TcpStream;
use std::io::{self, Write};

/// What the peer of a sink received.
#[derive(Default)]
pub(super) struct Delivery {
    /// The peer is on this machine.
    is_local: bool,
    /// Bytes that met a RST within send(2).
    refused: u64,
}

impl Delivery {
    /// To the peer of this sink.
    pub(super) fn to(sink: &TcpStream) -> Delivery {
        let ends = sink.local_addr().ok().zip(sink.peer_addr().ok());
        Delivery {
            is_local: ends.is_some_and(|(own, peer)| own.ip() == peer.ip()),
            refused: 0,
        }
    }

    /// Writes once.
    pub(super) fn write(&mut self, to: &mut TcpStream, bytes: &[u8]) -> io::Result<usize> {
        if !self.is_local {
            return to.write(bytes);
        }
        let switches = process::context_switches();
        let count = to.write(bytes)?;
        if socket::is_idle(to) && process::context_switches() == switches {
            self.refused += count as u64;
        }
        Ok(count)
    }

    /// How many of the bytes that were written the peer's TCP received; `None` if it is on another
    /// machine.
    pub(super) fn received(&self, written: u64) -> Option<u64> {
        self.is_local.then(|| written - self.refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::TcpListener;

    fn pair() -> (TcpStream, std::net::TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let own = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        own.set_nonblocking(true).unwrap();
        (TcpStream::from_std(own), listener.accept().unwrap().0)
    }

    #[test]
    fn what_a_tcp_without_the_connection_resets_was_not_received() {
        // a thread that was interrupted proves nothing, nor does a busy kernel, which delivers late
        let is_seen = (0..400).any(|nth| {
            std::thread::sleep(std::time::Duration::from_millis(nth / 20));
            let (mut own, peer) = pair();
            let mut delivery = Delivery::to(&own);
            drop(peer);
            assert_eq!(delivery.write(&mut own, b"request").unwrap(), 7);
            delivery.received(7) == Some(0)
        });
        assert!(is_seen);
    }

    #[test]
    fn what_a_program_resets_after_it_has_read_was_received() {
        let (mut own, mut peer) = pair();
        let mut delivery = Delivery::to(&own);
        assert_eq!(delivery.write(&mut own, b"request").unwrap(), 7);
        peer.read_exact(&mut [0; 7]).unwrap();
        socket::reset_on_close(&peer);
        drop(peer);
        assert!(own.read(&mut [0; 1]).is_err());
        assert_eq!(delivery.received(7), Some(7));
    }
}
