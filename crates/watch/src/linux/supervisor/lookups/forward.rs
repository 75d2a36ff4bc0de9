//! A lookup's datagrams on their way through us, for programs whose reads we cannot see beforehand
//! (Go).
//!
//! The program's socket is connected to one of ours and goes by the server's name; another of ours
//! is connected to the server. Datagrams pass unchanged, refusals as refusals. In the end the
//! program's socket is connected to the server itself.

use super::super::LOOKUP;
use super::super::address_table::RealAddresses;
use super::super::call_context::CallContext;
use super::open::UNREACHABLE;
use super::{Lookups, name_addresses};
use intact_sys::address::{loopback, on_socket, unmapped};
use intact_sys::credentials;
use intact_sys::socket;
use intact_wire::dns;
use mio::net::UdpSocket;
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use socket2::SockRef;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// The longest datagram, in bytes.
pub(super) const MAX_DATAGRAM: usize = 65_535;
/// Datagrams in a row; beyond that they are dropped, as UDP may.
const TURN: usize = 256;

/// Two sockets of ours between a program and a name server.
pub(super) struct Forward {
    near: UdpSocket,
    far: UdpSocket,
    /// What the program's socket would have for its own address.
    pub(super) local: SocketAddr,
}

/// Which way a datagram goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ForwardPath {
    /// To the server.
    Out,
    /// To the program.
    Back,
}

impl Forward {
    /// Puts itself between a program's socket and the server, to which `far` is connected.
    pub(super) fn between(
        program: &OwnedFd,
        v6: bool,
        server: SocketAddr,
        far: UdpSocket,
    ) -> io::Result<Forward> {
        let near = UdpSocket::bind(loopback(server.is_ipv6()))?;
        let local = far.local_addr()?;
        let program = SockRef::from(program);
        program.connect(&on_socket(near.local_addr()?, v6).into())?;
        let child = program.local_addr()?.as_socket();
        near.connect(unmapped(child.ok_or(io::ErrorKind::AddrNotAvailable)?))?;
        // until then any process could send to it; the program waits for us and has sent nothing
        while near.recv(&mut [0]).is_ok() {}
        Ok(Forward { near, far, local })
    }

    /// The higher of its descriptors.
    pub(super) fn last_descriptor(&self) -> RawFd {
        self.near.as_raw_fd().max(self.far.as_raw_fd())
    }

    pub(super) fn register(
        &mut self,
        registry: &Registry,
        near: Token,
        far: Token,
    ) -> io::Result<()> {
        registry.register(&mut self.near, near, Interest::READABLE)?;
        registry.register(&mut self.far, far, Interest::READABLE)
    }

    /// Passes on what there is one way, and shows it. An error is the server's refusal.
    pub(super) fn pass(
        &self,
        way: ForwardPath,
        scratch: &mut [u8],
        mut see: impl FnMut(&[u8]),
    ) -> io::Result<()> {
        let (from, to) = match way {
            ForwardPath::Out => (&self.near, &self.far),
            ForwardPath::Back => (&self.far, &self.near),
        };
        for _ in 0..TURN {
            let count = match from.recv(scratch) {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // the program is gone, and its socket with it
                Err(_) if way == ForwardPath::Out => return Ok(()),
                Err(error) => return Err(error),
            };
            see(&scratch[..count]);
            match to.send(&scratch[..count]) {
                // a lost datagram is what the protocol expects
                Err(error)
                    if way == ForwardPath::Out && error.kind() != io::ErrorKind::WouldBlock =>
                {
                    return Err(error);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The server has refused: the program's socket gets the error that the server would have
    /// caused.
    pub(super) fn refuse(self, program: &OwnedFd) {
        drop(self);
        // to a closed port: the kernel answers as the server's would
        let _ =
            SockRef::from(program).send_with_flags(&[0], libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL);
    }
}

/// A socket of ours that is connected to the server.
fn far_socket(server: SocketAddr) -> io::Result<UdpSocket> {
    let any = if server.is_ipv6() {
        Ipv6Addr::UNSPECIFIED.into()
    } else {
        Ipv4Addr::UNSPECIFIED.into()
    };
    let far = UdpSocket::bind(SocketAddr::new(any, 0))?;
    far.connect(server)?;
    Ok(far)
}

impl Lookups {
    /// Has the datagrams of a socket that we follow pass through us.
    pub(super) fn forward(
        &mut self,
        thread: u32,
        cookie: u64,
        v6: bool,
        cx: &mut CallContext,
    ) -> Option<()> {
        let asking = self.sockets.get_mut(&cookie)?;
        if !cx.is_here(&asking.copy, thread) || socket::is_steered(&asking.copy) {
            return None;
        }
        let server = asking.asker.server;
        let owner = credentials::owner_of(&asking.copy).ok();
        let far = cx
            .notifications
            .make_for(thread, owner, || far_socket(server))?;
        let mut forward = Forward::between(&asking.copy, v6, server, far.ok()?).ok()?;
        let registry = &cx.registry;
        let near = Token(LOOKUP + self.next_token);
        let far = Token(LOOKUP + self.next_token + 1);
        if forward.last_descriptor() >= cx.last_descriptor
            || forward.register(registry, near, far).is_err()
        {
            // the program's connect goes on to the kernel, which finds the socket as it was
            socket::disconnect(&asking.copy);
            return None;
        }
        let _ = registry.deregister(&mut SourceFd(&asking.copy.as_raw_fd()));
        self.tokens.remove(&asking.token);
        self.next_token += 2;
        self.tokens.insert(near, cookie);
        self.tokens.insert(far, cookie);
        asking.token = near;
        let ends = RealAddresses {
            local: forward.local,
            peer: server,
            v6,
        };
        asking.forward = Some(forward);
        cx.addresses.remember(cookie, ends);
        Some(())
    }

    /// Passes on what has come for a lookup.
    pub(super) fn pass_on(&mut self, cookie: u64, way: ForwardPath, cx: &CallContext) {
        let now = cx.record.now().0;
        let Lookups {
            sockets,
            open,
            named,
            scratch,
            ..
        } = self;
        let Some(asking) = sockets.get_mut(&cookie) else {
            return;
        };
        let Some(forward) = &asking.forward else {
            return;
        };
        scratch.resize(MAX_DATAGRAM, 0);
        let mut seen = Vec::new();
        let passed = forward.pass(way, scratch, |bytes| seen.extend(dns::parse(bytes)));
        asking.last = now;
        for message in seen {
            asking.named = true;
            let question = (cookie, message.header.id);
            if message.header.is_answer {
                open.answer(&asking.asker, question, &message, now, now);
                name_addresses(named, &message, now);
            } else {
                open.ask(&asking.asker, question, &message, now);
            }
        }
        if passed.is_err() {
            asking.named = true;
            open.lose(cookie, Some(UNREACHABLE), now);
            if let Some(forward) = asking.forward.take() {
                forward.refuse(&asking.copy);
            }
        }
    }
}
