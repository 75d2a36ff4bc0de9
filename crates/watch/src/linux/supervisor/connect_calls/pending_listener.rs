//! Keeps a program's connect genuinely under way until the real destination has responded.
//!
//! A listener whose accept queue is full drops SYNs silently, so a socket that connects to it stays
//! in SYN_SENT, as it would on the way to a distant host. When the destination has responded, a
//! socket of ours at the listener's own address connects to the program's port: a TCP simultaneous
//! open (RFC 9293 section 3.5) establishes both.

use intact_sys::address::loopback;
use intact_sys::socket;
use mio::net::TcpStream;
use socket2::{SockAddr, Socket};
use std::io;
use std::net::SocketAddr;

/// A listener whose accept queue is full.
pub(crate) struct PendingListener {
    _listener: Socket,
    _filler: Socket,
    address: SocketAddr,
}

/// Listeners that are kept for later.
const MAX_SPARE: usize = 64;

/// Full listeners for reuse.
#[derive(Default)]
pub(crate) struct PendingListeners {
    spare: Vec<PendingListener>,
}

impl PendingListeners {
    /// A listener of the family that the program's socket can reach.
    pub(crate) fn take(&mut self, v6: bool) -> io::Result<PendingListener> {
        let fitting = self
            .spare
            .iter()
            .position(|one| one.address.is_ipv6() == v6);
        match fitting {
            Some(place) => Ok(self.spare.swap_remove(place)),
            None => PendingListener::open(v6),
        }
    }

    /// Takes a listener back. One whose program must be refused is dropped instead.
    pub(crate) fn keep(&mut self, listener: PendingListener) {
        if self.spare.len() < MAX_SPARE {
            self.spare.push(listener);
        }
    }
}

impl PendingListener {
    fn open(v6: bool) -> io::Result<PendingListener> {
        let listener = shared_socket(loopback(v6))?;
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

    /// Begins to complete the connect of the socket that connects to us from `child`.
    pub(crate) fn complete(&self, child: SocketAddr) -> io::Result<TcpStream> {
        let socket = shared_socket(self.address)?;
        begin(&socket, child)?;
        Ok(TcpStream::from_std(socket.into()))
    }
}

/// A non-blocking socket at an address that may be bound more than once.
fn shared_socket(address: SocketAddr) -> io::Result<Socket> {
    let socket = socket::tcp_for(address)?;
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
    fn a_connect_is_under_way_until_it_is_completed() {
        for v6 in [false, true] {
            let mut listeners = PendingListeners::default();
            let listener = listeners.take(v6).unwrap();
            let program = socket::tcp_for(listener.address()).unwrap();
            begin(&program, listener.address()).unwrap();
            assert!(program.peer_addr().is_err());
            let child = program.local_addr().unwrap().as_socket().unwrap();
            let ours = listener.complete(child).unwrap();
            assert!(is_established(&ours));
            assert!(is_established(&TcpStream::from_std(program.into())));
            listeners.keep(listener);
            assert_eq!(listeners.spare.len(), 1);
        }
    }
}
