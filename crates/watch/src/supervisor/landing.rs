//! Where the program's sockets are connected to when their destination has answered: one listener a family.

use crate::sys::address::unmapped;
use mio::event::Source;
use mio::net::{TcpListener, TcpStream};
use mio::{Interest, Registry, Token};
use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

/// One listener, and the sockets whose arrival is awaited.
pub(crate) struct Pad {
    listener: TcpListener,
    address: SocketAddr,
    awaited: HashMap<SocketAddr, usize>,
}

impl Pad {
    pub(crate) fn open(v6: bool) -> io::Result<Pad> {
        let host = if v6 {
            Ipv6Addr::LOCALHOST.into()
        } else {
            Ipv4Addr::LOCALHOST.into()
        };
        let listener = TcpListener::bind(SocketAddr::new(host, 0))?;
        Ok(Pad {
            address: listener.local_addr()?,
            listener,
            awaited: HashMap::new(),
        })
    }

    pub(crate) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        self.listener.register(registry, token, Interest::READABLE)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// A call's socket has connected to us from this address.
    pub(crate) fn expect(&mut self, from: SocketAddr, call: usize) {
        self.awaited.insert(unmapped(from), call);
    }

    /// Takes the next one that has arrived. Whoever is not expected (the listener is open to the machine) is turned away.
    pub(crate) fn accept(&mut self) -> Option<(usize, TcpStream)> {
        loop {
            match self.listener.accept() {
                Ok((stream, from)) => {
                    if let Some(call) = self.awaited.remove(&unmapped(from)) {
                        let _ = stream.set_nodelay(true);
                        return Some((call, stream));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
    }
}

impl AsFd for Pad {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}
