//! Lookups of names, read from the sockets that speak with name servers: each answer is read before
//! the program takes it.
//!
//! The sockets are the program's own, and nothing that they carry passes through us. Questions of
//! the C libraries are seen as they are sent; c-ares writes its questions unseen, and the answers
//! repeat them. Programs that take answers with the sender's address (`recvfrom`: the C libraries,
//! c-ares) wait for our look. For others we look as soon as an answer comes. Where that is too
//! late, the lookup has no name. Only Go's datagrams pass through us ([`forward`]): it
//! makes its own system calls, and never asks who has sent an answer.

mod answers;
mod forward;
mod open;
mod questions;

use super::LOOKUP;
use super::call_context::CallContext;
use crate::Mode;
use crate::platform::{program, wait_readable};
use forward::Forward;
use intact_ledger::{Connection, Dialled, Lookup, Nanos, Span};
use intact_sys::address::{on_socket, unmapped};
use intact_sys::seccomp::{Notification, NotificationResponse};
use intact_sys::socket;
use intact_wire::dns::{Message, PORT};
use mio::unix::SourceFd;
use mio::{Interest, Token};
use open::{Asker, LookupsOpen};
use socket2::SockRef;
use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

/// Sockets that a process connects to a name server within this time may be of one lookup, in
/// nanoseconds: Go has one for each type of record.
const SAME_LOOKUP: u64 = 20_000_000;
/// A socket is let go this long after it was last heard of, in nanoseconds: a copy of it is all
/// that we have.
const PATIENCE: u64 = 10_000_000_000;
/// The same for one whose answer was passed on or could not be read, in nanoseconds.
const LINGER: u64 = 1_000_000_000;
/// Sockets that are followed at a time.
const MAX: usize = 256;
/// Addresses whose names are remembered.
const MAX_NAMED: usize = 4096;
/// How often lookups under way are looked after.
const PACE: Duration = Duration::from_millis(25);

/// Sockets that speak with name servers, and the lookups that they make.
#[derive(Default)]
pub(super) struct Lookups {
    sockets: HashMap<u64, Asking>,
    /// Cookies by token.
    tokens: HashMap<Token, u64>,
    next_token: usize,
    open: LookupsOpen,
    named: HashMap<IpAddr, NamedAddress>,
    /// When each process last began a lookup without a name.
    nameless: HashMap<u32, u64>,
    looked: u64,
    scratch: Vec<u8>,
}

/// What lookups gave an address.
struct NamedAddress {
    name: Arc<str>,
    /// When the last one did.
    at: Nanos,
}

/// A socket that speaks with a name server.
struct Asking {
    copy: OwnedFd,
    token: Token,
    asker: Asker,
    /// Whether it is an IPv6 one.
    v6: bool,
    /// When it began to, and when it was last heard of.
    since: u64,
    last: u64,
    /// A question of it was seen, or an answer.
    named: bool,
    /// The numbers of the last answers: each is looked at more than once.
    answered: VecDeque<u16>,
    /// Something came, and was gone before it could be read.
    missed: Option<u64>,
    /// The program has us look before it takes an answer.
    is_asked: bool,
    /// Where its datagrams pass through us.
    forward: Option<Forward>,
}

impl Lookups {
    pub(super) fn follows_none(&self) -> bool {
        self.sockets.is_empty()
    }

    pub(super) fn follows(&self, cookie: u64) -> bool {
        self.sockets.contains_key(&cookie)
    }

    /// When an address was looked up for the last time.
    pub(super) fn looked_up(&self, address: IpAddr) -> Option<Nanos> {
        self.named.get(&address).map(|named| named.at)
    }

    /// How soon they want to be looked after.
    pub(super) fn pace(&self) -> Option<Duration> {
        (!self.sockets.is_empty() || !self.open.is_empty()).then_some(PACE)
    }

    /// The lookup that a connection waited for is the first part of its setup, and gives it its
    /// name until a better one is known. Each lookup is claimed once.
    pub(super) fn note(&mut self, about: &mut Connection) {
        let Some(address) = about.peer.map(|peer| peer.ip()) else {
            return;
        };
        let process = about.owner.as_ref().map_or(0, |owner| owner.pid);
        about.dialled = match self.named.get(&address) {
            Some(named) => Some(Dialled::Name(named.name.clone())),
            // the address may be the result of a lookup that could not be read
            None if self.nameless.contains_key(&process) => None,
            None => Some(Dialled::Address),
        };
        if let (Some(origin), Some(Dialled::Name(name))) = (&mut about.origin, &about.dialled) {
            origin.host = name.clone();
        }
        if let Some(span) = self.open.claim(process, address, about.at.0) {
            about.at = span.start;
            about.setup.dns = Some(span);
        }
    }

    /// A datagram socket is being connected.
    pub(super) fn connect(
        &mut self,
        notice: &Notification,
        copy: OwnedFd,
        to: SocketAddr,
        cx: &mut CallContext,
    ) -> NotificationResponse {
        let server = unmapped(to);
        let (Ok(cookie), Some(local)) = (socket::cookie(&copy), socket::local_address(&copy))
        else {
            return NotificationResponse::Continue;
        };
        self.release(cookie, cx);
        if server.port() != PORT {
            cx.notifications.release(cookie);
            cx.record.udp_peers.connect(cookie, copy, server);
            return NotificationResponse::Continue;
        }
        self.follow(notice, cookie, copy, server, cx);
        let is_bound = local.port() != 0 || !unmapped(local).ip().is_unspecified();
        if cx.mode == Mode::Passthrough || is_bound || !program::is_go(notice.thread) {
            return NotificationResponse::Continue;
        }
        match self.forward(notice.thread, cookie, local.is_ipv6(), cx) {
            Some(()) => NotificationResponse::Value(0),
            None => NotificationResponse::Continue,
        }
    }

    /// Follows a socket that speaks with a name server from now on.
    fn follow(
        &mut self,
        notice: &Notification,
        cookie: u64,
        copy: OwnedFd,
        server: SocketAddr,
        cx: &mut CallContext,
    ) {
        let owner = cx.notifications.owner(notice.thread);
        let asker = Asker { owner, server };
        let now = cx.record.now().0;
        if let Some(asking) = self.sockets.get_mut(&cookie) {
            asking.asker = asker;
            asking.last = now;
            return;
        }
        if self.sockets.len() >= MAX {
            let oldest = self.sockets.iter();
            if let Some((&oldest, _)) = oldest.min_by_key(|(_, asking)| asking.last) {
                self.release(oldest, cx);
            }
        }
        let token = Token(LOOKUP + self.next_token);
        self.next_token += 1;
        let registered = wait_readable(&cx.registry, &copy, token);
        // without it, answers are seen where the program asks for them with the sender's address
        if registered.is_ok() {
            self.tokens.insert(token, cookie);
        }
        let asking = Asking {
            token,
            asker,
            v6: socket::local_address(&copy).is_some_and(|local| local.is_ipv6()),
            copy,
            since: now,
            last: now,
            named: false,
            answered: VecDeque::new(),
            missed: None,
            is_asked: false,
            forward: None,
        };
        self.sockets.insert(cookie, asking);
    }

    /// The program asks for an address of a socket, as Go does once it waits for the socket. The
    /// kernel wakes the last waiter first, so we wait again.
    pub(super) fn look_before_program(&mut self, cookie: u64, cx: &CallContext) {
        if let Some(asking) = self.sockets.get(&cookie)
            && asking.forward.is_none()
            && self.tokens.contains_key(&asking.token)
        {
            let registry = &cx.registry;
            let descriptor = asking.copy.as_raw_fd();
            let mut source = SourceFd(&descriptor);
            let waits = registry
                .deregister(&mut source)
                .and_then(|()| registry.register(&mut source, asking.token, Interest::READABLE));
            if waits.is_err() {
                self.tokens.remove(&asking.token);
            }
        }
    }

    /// Releases a socket. If nothing was read from it, it counts as a lookup without a name.
    fn release(&mut self, cookie: u64, cx: &mut CallContext) {
        let Some(asking) = self.sockets.remove(&cookie) else {
            return;
        };
        self.tokens.remove(&asking.token);
        if asking.forward.is_some() {
            self.tokens.remove(&Token(asking.token.0 + 1));
            cx.addresses.forget(cookie);
            let server = on_socket(asking.asker.server, asking.v6);
            socket::disconnect(&asking.copy);
            let _ = SockRef::from(&asking.copy).connect(&server.into());
        } else {
            // the program holds the same socket: closing our copy would not end it
            let _ = cx
                .registry
                .deregister(&mut SourceFd(&asking.copy.as_raw_fd()));
        }
        if asking.named {
            return;
        }
        let process = asking.asker.process();
        if self.nameless.len() >= MAX_NAMED {
            self.nameless.clear();
        }
        let before = self.nameless.insert(process, asking.since);
        let is_counted = before.is_some_and(|before| asking.since.abs_diff(before) < SAME_LOOKUP)
            || self
                .open
                .is_part_of_lookup(process, asking.since, SAME_LOOKUP);
        if !is_counted {
            let end = asking.missed.unwrap_or(asking.since);
            cx.record.lookup(Lookup {
                variant: None,
                round: None,
                name: None,
                span: Span::new(Nanos(asking.since), Nanos(end)),
                answer: None,
                ttl_s: None,
                resolver: Some(asking.asker.server.to_string().into()),
                owner: asking.asker.owner,
            });
        }
    }

    /// Records lookups that are over, or all, and lets go of sockets that have fallen silent.
    pub(super) fn settle(&mut self, all: bool, cx: &mut CallContext) {
        let now = cx.record.now().0;
        let since_last = now.saturating_sub(self.looked);
        if !all && (self.pace().is_none() || u128::from(since_last) < PACE.as_nanos()) {
            return;
        }
        self.looked = now;
        let Lookups { open, sockets, .. } = self;
        let mut over = Vec::new();
        let awaits = |process, since| {
            sockets.values().any(|asking| {
                let is_silent = !asking.named && asking.missed.is_none();
                is_silent
                    && asking.asker.process() == process
                    && asking.since.abs_diff(since) <= SAME_LOOKUP
            })
        };
        open.settle(now, all, awaits, |lookup| over.push(lookup));
        for lookup in over {
            cx.record.lookup(lookup);
        }
        let Lookups { open, sockets, .. } = self;
        let mut silent: Vec<(u64, u64)> = sockets
            .iter()
            .filter(|(cookie, asking)| {
                let is_over = if asking.named {
                    asking.forward.is_some() && !open.waits_on(**cookie)
                } else {
                    asking.missed.is_some()
                };
                let patience = if is_over { LINGER } else { PATIENCE };
                all || now.saturating_sub(asking.last) > patience
            })
            .map(|(cookie, asking)| (asking.since, *cookie))
            .collect();
        silent.sort_unstable();
        for (_, cookie) in silent {
            self.release(cookie, cx);
        }
    }
}

/// Remembers under which name addresses were found.
fn name_addresses(named: &mut HashMap<IpAddr, NamedAddress>, answer: &Message, at: u64) {
    let name: Arc<str> = answer.name.as_str().into();
    for address in answer.addresses() {
        if named.len() >= MAX_NAMED {
            named.clear();
        }
        let (name, at) = (name.clone(), Nanos(at));
        named.insert(address, NamedAddress { name, at });
    }
}
