//! The listener that the program's sockets are connected to when their destination has responded.

use intact_sys::address::{loopback, unmapped};
use mio::net::{TcpListener, TcpStream};
use mio::{Interest, Registry, Token};
use socket2::SockRef;
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

/// Sockets of strangers that are dropped in a row.
const TURN: usize = 4096;

/// One listener, and the sockets whose arrival is awaited.
pub(crate) struct LocalListener {
    listener: TcpListener,
    address: SocketAddr,
    awaited: HashMap<SocketAddr, usize>,
    registered: bool,
    /// More sockets than a turn may drop were waiting.
    has_more: bool,
}

impl LocalListener {
    pub(crate) fn open(v6: bool) -> io::Result<LocalListener> {
        let listener = TcpListener::bind(loopback(v6))?;
        // sockets that it accepts have the option from the start
        SockRef::from(&listener).set_tcp_nodelay(true)?;
        Ok(LocalListener {
            address: listener.local_addr()?,
            listener,
            awaited: HashMap::new(),
            registered: false,
            has_more: false,
        })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// A call's socket has connected to us from this address.
    pub(crate) fn expect(&mut self, from: SocketAddr, call: usize) {
        self.awaited.insert(unmapped(from), call);
    }

    /// Takes the next socket that has arrived and is expected. All others are dropped: the
    /// machine's other processes can reach the listener too, but not from the address of a
    /// socket that is connected to it.
    pub(crate) fn accept(&mut self) -> Option<(usize, TcpStream)> {
        for _ in 0..TURN {
            if self.awaited.is_empty() {
                return None;
            }
            match self.listener.accept() {
                Ok((stream, from)) => {
                    if let Some(call) = self.awaited.remove(&unmapped(from)) {
                        return Some((call, stream));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
        self.has_more = true;
        None
    }

    /// Wakes the loop for arrivals while any is awaited. On this machine nearly all arrive within
    /// the connect.
    pub(crate) fn listen(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        let wanted = !self.awaited.is_empty();
        let was_registered = std::mem::replace(&mut self.registered, wanted);
        let has_more = std::mem::take(&mut self.has_more);
        let source = &mut self.listener;
        match (was_registered, wanted) {
            (false, true) => registry.register(source, token, Interest::READABLE),
            (true, false) => registry.deregister(source),
            // has what waits already reported again
            (true, true) if has_more => registry.reregister(source, token, Interest::READABLE),
            _ => Ok(()),
        }
    }
}

impl AsFd for LocalListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}
