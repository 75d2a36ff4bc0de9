//! Takes a `connect` of the program: what it names, on which socket, and whether it is for us. [`super::stages`] goes on from there.

use super::Supervisor;
use super::connect_call::{CallStage, ConnectCall, Dial, HOLD};
use super::pending_listener::begin;
use crate::Unwatched;
use crate::platform::filter::is_indirect_32;
use intact_ledger::{Connection, Nanos, Origin, Owner, Scheme};
use intact_sys::address::{self, AddressKind, unmapped};
use intact_sys::seccomp::{Notification, NotificationResponse};
use intact_sys::socket;
use mio::net::TcpStream;
use socket2::Socket;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Instant;

impl Supervisor {
    /// Takes a `connect`; `None`: it is answered later.
    pub(super) fn connect(&mut self, notice: &Notification) -> Option<NotificationResponse> {
        const UNTOUCHED: Option<NotificationResponse> = Some(NotificationResponse::Continue);
        let began = self.clock.now();
        let Some((named, socket)) = self.examine(notice) else {
            return UNTOUCHED;
        };
        let Ok(cookie) = socket::cookie(&socket) else {
            return UNTOUCHED;
        };
        let protocol = socket::protocol(&socket).unwrap_or(0);
        let (AddressKind::Inet(wanted), Some(local)) = (named, socket::local_address(&socket))
        else {
            self.names.forget(cookie);
            return UNTOUCHED;
        };
        if protocol != libc::IPPROTO_TCP {
            if protocol == libc::IPPROTO_UDP {
                return Some(self.connect_datagrams(notice, socket, wanted));
            }
            self.leave_other(protocol);
            return UNTOUCHED;
        }
        if let Some(number) = self.by_cookie.get(&cookie)
            && let Some(call) = self.calls.get_mut(number)
            && let CallStage::Held { .. } = call.stage
        {
            if self.listener.is_valid(call.dial.notice.id) {
                return Some(NotificationResponse::Error(libc::EALREADY));
            }
            // a signal interrupted the call, and the program makes it again
            call.dial.notice = *notice;
            return None;
        }
        if self.apart == Some(unmapped(wanted)) {
            return UNTOUCHED;
        }
        // connected, connecting or listening: the kernel has the right answer
        if !socket::is_idle(&socket) {
            return UNTOUCHED;
        }
        let socket = Socket::from(socket);
        if socket::namespace(&socket) != self.namespace {
            self.leave(Unwatched::OtherNamespace);
            return UNTOUCHED;
        }
        // what was read is the caller's only if it still waits
        if !self.listener.is_valid(notice.id) {
            return UNTOUCHED;
        }
        self.notice_replaced(cookie, &socket);
        let owner = self.owner(notice.thread);
        let about = self.about(wanted, began, owner);
        if socket::is_steered(&socket) {
            self.follow(notice, cookie, about, Unwatched::Steered);
            return UNTOUCHED;
        }
        socket::connect_at_once(&socket);
        let stands_in = stand_in(&socket, local, unmapped(wanted));
        let Some(far) = stands_in
            .ok()
            .filter(|far| far.as_raw_fd() < self.last_descriptor)
        else {
            self.follow(notice, cookie, about, Unwatched::NoRelay);
            return UNTOUCHED;
        };
        if let Err(error) = begin(&far, unmapped(wanted)) {
            let number = error.raw_os_error().unwrap_or(libc::ECONNREFUSED);
            self.record_failure(about, number);
            return Some(NotificationResponse::Error(number));
        }
        let far = TcpStream::from_std(far.into());
        let blocking = !socket.nonblocking().unwrap_or(false);
        let now = Instant::now();
        let mut dial = Dial {
            notice: *notice,
            cookie,
            v6: local.is_ipv6(),
            blocking,
            place: self
                .processes
                .place(notice.thread, notice.arguments[0] as i32, cookie),
            far,
            registered: false,
            decided: None,
            not_before: now + self.round_trip,
            deadline: None,
            began,
            about,
        };
        // on this machine it is decided already
        let is_decided = dial.look(now).is_some();
        let until = if blocking && !is_decided {
            socket::patience(&socket).map(|patience| now + patience)
        } else {
            Some(now + HOLD)
        };
        let number = self.next_call;
        self.next_call += 1;
        self.by_cookie.insert(cookie, number);
        let stage = CallStage::Held { socket, until };
        self.calls.insert(number, ConnectCall { dial, stage });
        self.guard(number, Supervisor::advance);
        None
    }

    /// What is known of a connection when the program asks for it.
    pub(super) fn about(
        &mut self,
        wanted: SocketAddr,
        began: Nanos,
        owner: Option<Owner>,
    ) -> Connection {
        let mut about = Connection::new(self.numbers.connection(), began);
        about.variant = self.place.map(|place| place.variant);
        about.round = self.place.map(|place| place.round);
        about.environment = self.place.and_then(|place| place.environment);
        about.peer = Some(unmapped(wanted));
        about.origin = Some(origin(unmapped(wanted)));
        about.owner = owner;
        self.note_lookup(&mut about);
        about
    }

    /// Counts a `connect` of a 32-bit program, which is left to the kernel.
    pub(super) fn count_connect_32(&mut self, notice: &Notification) -> Option<()> {
        let mut direct = *notice;
        if is_indirect_32(notice.call) {
            let mut words = [0; 12];
            let read = notice.read_memory(notice.arguments[1], &mut words);
            self.inspected(notice, read)?;
            for (argument, word) in direct.arguments.iter_mut().zip(words.chunks_exact(4)) {
                *argument = u64::from(u32::from_ne_bytes(*word.first_chunk()?));
            }
        }
        let (named, socket) = self.examine(&direct)?;
        if matches!(named, AddressKind::Inet(_))
            && socket::protocol(&socket).ok()? == libc::IPPROTO_TCP
        {
            self.census.count(socket::cookie(&socket).ok()?);
            self.leave(Unwatched::ThirtyTwoBits);
        }
        Some(())
    }

    /// The process that a call comes from.
    pub(super) fn owner(&mut self, thread: u32) -> Option<Owner> {
        let identity = self.processes.identify(thread)?;
        Some(Owner {
            pid: identity.process,
            command: identity.command,
        })
    }

    /// The lookup that a connection waited for is the first part of its setup, and gives it its name until a better one is
    /// known.
    fn note_lookup(&mut self, about: &mut Connection) {
        let Some(address) = about.peer.map(|peer| peer.ip()) else {
            return;
        };
        if let Some(origin) = &mut about.origin
            && let Some(name) = self.lookups.name_of(address)
        {
            origin.host = name;
        }
        let process = Supervisor::process_of(about.owner.as_ref());
        if let Some(span) = self.lookups.claim(process, address, about.at) {
            about.at = span.start;
            about.setup.dns = Some(span);
        }
    }

    /// The address that a `connect` names, and a copy of its socket; `None` where it is not for us.
    pub(super) fn examine(&mut self, notice: &Notification) -> Option<(AddressKind, OwnedFd)> {
        let [descriptor, place, len, ..] = notice.arguments;
        let len = usize::try_from(len as i32).ok()?.min(address::MAX_LEN);
        let mut bytes = [0; address::MAX_LEN];
        self.inspected(notice, notice.read_memory(place, &mut bytes[..len]))?;
        let named = address::parse(&bytes[..len])?;
        // of all other families only the request to disconnect concerns us
        let family = i32::from(u16::from_ne_bytes([bytes[0], bytes[1]]));
        if named == AddressKind::Other && (family != libc::AF_UNSPEC || self.names.is_empty()) {
            return None;
        }
        let copied = self
            .processes
            .copy_descriptor(notice.thread, descriptor as i32);
        Some((named, self.inspected(notice, copied)?))
    }

    /// Counts connections of a protocol that could carry HTTP and that we do not follow.
    pub(super) fn leave_other(&mut self, protocol: i32) {
        if protocol == libc::IPPROTO_MPTCP {
            self.leave(Unwatched::Multipath);
        }
    }
}

/// Where a connection leads, as long as only its address is known.
fn origin(peer: SocketAddr) -> Origin {
    Origin {
        scheme: Scheme::Tcp,
        host: peer.ip().to_string().into(),
        port: peer.port(),
    }
}

/// A socket of ours in the place of the program's, bound to the same address and port if that is bound.
fn stand_in(socket: &Socket, local: SocketAddr, to: SocketAddr) -> io::Result<Socket> {
    let far = socket::tcp_for(to)?;
    let local = unmapped(local);
    if local.port() != 0 {
        socket::share_address(socket, &far, local)?;
    } else if !local.ip().is_unspecified() {
        socket::bind_address(&far, local.ip())?;
    }
    Ok(far)
}
