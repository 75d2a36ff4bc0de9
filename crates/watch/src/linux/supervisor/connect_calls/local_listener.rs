//! The listener that the program's sockets are connected to when their destination has responded.

use intact_sys::address::unmapped;
use mio::net::{TcpListener, TcpStream};
use mio::{Interest, Registry, Token};
use socket2::SockRef;
use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

/// One listener, and the sockets whose arrival is awaited.
pub(crate) struct LocalListener {
    listener: TcpListener,
    address: SocketAddr,
    awaited: HashMap<SocketAddr, usize>,
    registered: bool,
}

impl LocalListener {
    pub(crate) fn open(v6: bool) -> io::Result<LocalListener> {
        let host = if v6 {
            Ipv6Addr::LOCALHOST.into()
        } else {
            Ipv4Addr::LOCALHOST.into()
        };
        let listener = TcpListener::bind(SocketAddr::new(host, 0))?;
        // sockets that it accepts have the option from the start
        SockRef::from(&listener).set_tcp_nodelay(true)?;
        Ok(LocalListener {
            address: listener.local_addr()?,
            listener,
            awaited: HashMap::new(),
            registered: false,
        })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// A call's socket has connected to us from this address.
    pub(crate) fn expect(&mut self, from: SocketAddr, call: usize) {
        self.awaited.insert(unmapped(from), call);
    }

    /// Takes the next socket that has arrived and is expected. All others are dropped: the machine's other processes can
    /// reach the listener too.
    pub(crate) fn accept(&mut self) -> Option<(usize, TcpStream)> {
        while !self.awaited.is_empty() {
            match self.listener.accept() {
                Ok((stream, from)) => {
                    if let Some(call) = self.awaited.remove(&unmapped(from)) {
                        return Some((call, stream));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        None
    }

    /// Wakes the loop for arrivals while any is awaited. On this machine nearly all arrive within the connect.
    pub(crate) fn listen(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        let wanted = !self.awaited.is_empty();
        if wanted == std::mem::replace(&mut self.registered, wanted) {
            return Ok(());
        }
        if wanted {
            registry.register(&mut self.listener, token, Interest::READABLE)
        } else {
            registry.deregister(&mut self.listener)
        }
    }
}

impl AsFd for LocalListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}
