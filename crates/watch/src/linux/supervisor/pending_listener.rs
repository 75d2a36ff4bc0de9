//! Keeps a program's connect genuinely under way until the real destination has answered.
//!
//! A listener whose accept queue is full drops SYNs without a word, so a socket that connects to it stays in SYN_SENT,
//! as it would on the way to a distant host. When the destination has answered, a socket of ours at the listener's own
//! address connects to the program's port: a TCP simultaneous open (RFC 9293 section 3.5) establishes both.

use intact_sys::socket;
use mio::net::TcpStream;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

/// One full listener.
pub(crate) struct PendingListener {
    _listener: Socket,
    _filler: Socket,
    address: SocketAddr,
}

/// Traps that are kept for later.
const MAX_SPARE: usize = 64;

/// Traps for reuse.
#[derive(Default)]
pub(crate) struct Traps {
    spare: Vec<PendingListener>,
}

impl Traps {
    /// A trap of the family that the program's socket can reach.
    pub(crate) fn take(&mut self, v6: bool) -> io::Result<PendingListener> {
        let fitting = self
            .spare
            .iter()
            .position(|trap| trap.address.is_ipv6() == v6);
        match fitting {
            Some(place) => Ok(self.spare.swap_remove(place)),
            None => PendingListener::set(v6),
        }
    }

    /// Takes a trap back. One whose victim must learn that nobody is there is dropped instead.
    pub(crate) fn keep(&mut self, trap: PendingListener) {
        if self.spare.len() < MAX_SPARE {
            self.spare.push(trap);
        }
    }
}

impl PendingListener {
    fn set(v6: bool) -> io::Result<PendingListener> {
        let any = if v6 {
            SocketAddr::from((Ipv6Addr::LOCALHOST, 0))
        } else {
            SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
        };
        let listener = shared_socket(any)?;
        listener.listen(0)?;
        let address = listener
            .local_addr()?
            .as_socket()
            .ok_or(io::ErrorKind::AddrNotAvailable)?;
        let filler = socket::tcp_for(address)?;
        begin(&filler, address)?;
        Ok(PendingListener {
            _listener: listener,
            _filler: filler,
            address,
        })
    }

    /// Where the program's socket is to connect to.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Begins to meet the socket that connects to us from `child`.
    pub(crate) fn complete(&self, child: SocketAddr) -> io::Result<TcpStream> {
        let socket = shared_socket(self.address)?;
        begin(&socket, child)?;
        Ok(TcpStream::from_std(socket.into()))
    }
}

/// A non-blocking socket at an address that may be bound more than once.
fn shared_socket(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM.nonblocking().cloexec(),
        Some(Protocol::TCP),
    )?;
    socket.set_reuse_port(true)?;
    socket.set_tcp_nodelay(true)?;
    socket.bind(&SockAddr::from(address))?;
    Ok(socket)
}

/// Begins a non-blocking connect.
pub(crate) fn begin(socket: &Socket, address: SocketAddr) -> io::Result<()> {
    match socket.connect(&SockAddr::from(address)) {
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(()),
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    fn is_established(stream: &TcpStream) -> bool {
        let deadline = Instant::now() + Duration::from_secs(5);
        while Instant::now() < deadline {
            if stream.peer_addr().is_ok() {
                return true;
            }
            std::thread::yield_now();
        }
        false
    }

    #[test]
    fn a_trapped_connect_is_under_way_until_it_is_met() {
        for v6 in [false, true] {
            let mut traps = Traps::default();
            let trap = traps.take(v6).unwrap();
            let victim = socket::tcp_for(trap.address()).unwrap();
            begin(&victim, trap.address()).unwrap();
            assert!(victim.peer_addr().is_err());
            let child = victim.local_addr().unwrap().as_socket().unwrap();
            let ours = trap.complete(child).unwrap();
            assert!(is_established(&ours));
            assert!(is_established(&TcpStream::from_std(victim.into())));
            traps.keep(trap);
            assert_eq!(traps.spare.len(), 1);
        }
    }
}
