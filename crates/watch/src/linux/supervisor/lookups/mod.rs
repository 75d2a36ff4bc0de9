//! Look-ups of names, as the sockets tell that speak with name servers: a look at each answer before the program takes it.
//!
//! The sockets are the program's own, and nothing that they carry passes through us. Questions of the C libraries are seen
//! as they are sent; c-ares writes its unseen, and the answers tell what was asked. Programs that take answers with the
//! sender's address (`recvfrom`: the C libraries, c-ares) wait for our look; for others we look as soon as an answer comes,
//! and may come too late: then the look-up has no name. Only Go's datagrams pass through us ([`forward`]): it makes its own
//! system calls, and never asks who has sent an answer.

mod forward;
mod open;

use super::names::Ends;
use super::{LOOKUP, Supervisor};
use crate::Mode;
use crate::platform::sys::address::{self, Named, on_socket, unmapped};
use crate::platform::sys::notify::{Answer, Notice};
use crate::platform::sys::process::read_memory;
use crate::platform::sys::program;
use crate::platform::sys::socket::{self, Peeked};
use forward::{Forward, MAX_DATAGRAM, Way};
use ledger::{Lookup, Nanos, Owner, Row, Span};
use mio::unix::SourceFd;
use mio::{Interest, Token};
use open::{Asker, LookupsOpen, UNREACHABLE};
use socket2::SockRef;
use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;
use wire::dns::{self, Message, PORT};

/// The longest question that is looked at, in bytes.
const MAX_QUESTION: usize = 512;
/// The longest answer over UDP, in bytes.
const MAX_ANSWER: usize = 4096;
/// Questions that are sent in one call.
const MAX_AT_ONCE: usize = 2;
/// Sockets that a process connects to a name server within this time may be of one look-up, in nanoseconds: Go has one for
/// each type of record.
const BESIDE: u64 = 20_000_000;
/// A socket is let go this long after it was last heard of, in nanoseconds: a copy of it is all that we have.
const PATIENCE: u64 = 10_000_000_000;
/// The same for one whose answer was passed on or could not be read, in nanoseconds.
const LINGER: u64 = 1_000_000_000;
/// Sockets that are followed at a time.
const MAX: usize = 256;
/// Addresses whose names are remembered.
const MAX_NAMED: usize = 4096;
/// Answers of a socket that are remembered.
const MAX_ANSWERED: usize = 8;
/// How often look-ups under way are looked after.
const PACE: Duration = Duration::from_millis(25);

/// Sockets that speak with name servers, and the look-ups that they make.
#[derive(Default)]
pub(super) struct Lookups {
    sockets: HashMap<u64, Asking>,
    /// Cookies by token.
    tokens: HashMap<Token, u64>,
    next_token: usize,
    open: LookupsOpen,
    named: HashMap<IpAddr, Arc<str>>,
    /// When each process last began a look-up without a name.
    nameless: HashMap<u32, u64>,
    looked: u64,
    scratch: Vec<u8>,
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

    /// How soon they want to be looked after.
    pub(super) fn pace(&self) -> Option<Duration> {
        (!self.sockets.is_empty() || !self.open.is_empty()).then_some(PACE)
    }

    /// The name that an address was last found under.
    pub(super) fn name_of(&self, address: IpAddr) -> Option<Arc<str>> {
        self.named.get(&address).cloned()
    }

    /// What a process's connection to an address waited for; each look-up is claimed once.
    pub(super) fn claim(&mut self, process: u32, address: IpAddr, now: Nanos) -> Option<Span> {
        self.open.claim(process, address, now.0)
    }
}

impl Supervisor {
    /// A datagram socket is being connected.
    pub(super) fn connect_datagrams(
        &mut self,
        notice: &Notice,
        cookie: u64,
        copy: OwnedFd,
        local: SocketAddr,
        to: SocketAddr,
    ) -> Answer {
        let server = unmapped(to);
        self.let_asking_go(cookie);
        if server.port() != PORT {
            return Answer::Continue;
        }
        self.follow_asking(notice, cookie, copy, server);
        let is_bound = local.port() != 0 || !unmapped(local).ip().is_unspecified();
        if self.mode == Mode::Info || is_bound || !program::is_go(notice.thread) {
            return Answer::Continue;
        }
        match self.forward(cookie, local.is_ipv6()) {
            Some(()) => Answer::Value(0),
            None => Answer::Continue,
        }
    }

    /// Has the datagrams of a socket that we follow pass through us.
    fn forward(&mut self, cookie: u64, v6: bool) -> Option<()> {
        let asking = self.lookups.sockets.get_mut(&cookie)?;
        if socket::namespace(&asking.copy) != self.namespace || socket::is_steered(&asking.copy) {
            return None;
        }
        let server = asking.asker.server;
        let mut forward = Forward::between(&asking.copy, v6, server).ok()?;
        let registry = self.poll.registry();
        let near = Token(LOOKUP + self.lookups.next_token);
        let far = Token(LOOKUP + self.lookups.next_token + 1);
        if forward.last_descriptor() >= self.last_descriptor
            || forward.register(registry, near, far).is_err()
        {
            // the program's connect goes on to the kernel, which finds the socket as it was
            socket::disconnect(&asking.copy);
            return None;
        }
        let _ = registry.deregister(&mut SourceFd(&asking.copy.as_raw_fd()));
        self.lookups.tokens.remove(&asking.token);
        self.lookups.next_token += 2;
        self.lookups.tokens.insert(near, cookie);
        self.lookups.tokens.insert(far, cookie);
        asking.token = near;
        let ends = Ends {
            local: forward.local,
            peer: server,
            v6,
        };
        asking.forward = Some(forward);
        self.names.remember(cookie, ends);
        Some(())
    }

    /// Passes on what has come for a look-up.
    fn pass_on(&mut self, cookie: u64, way: Way) {
        let now = self.clock.now().0;
        let Lookups {
            sockets,
            open,
            named,
            scratch,
            ..
        } = &mut self.lookups;
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
            let question = (cookie, message.id);
            if message.is_answer {
                open.answer(&asking.asker, question, &message, now, now);
                name_addresses(named, &message);
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

    /// Follows a socket that speaks with a name server from now on.
    fn follow_asking(&mut self, notice: &Notice, cookie: u64, copy: OwnedFd, server: SocketAddr) {
        let owner = self.owner(notice.thread);
        let asker = Asker { owner, server };
        let now = self.clock.now().0;
        if let Some(asking) = self.lookups.sockets.get_mut(&cookie) {
            asking.asker = asker;
            asking.last = now;
            return;
        }
        if self.lookups.sockets.len() >= MAX {
            let oldest = self.lookups.sockets.iter();
            if let Some((&oldest, _)) = oldest.min_by_key(|(_, asking)| asking.last) {
                self.let_asking_go(oldest);
            }
        }
        let token = Token(LOOKUP + self.lookups.next_token);
        self.lookups.next_token += 1;
        let registered = self.poll.registry().register(
            &mut SourceFd(&copy.as_raw_fd()),
            token,
            Interest::READABLE,
        );
        // without it, answers are seen where the program asks for them with the sender's address
        if registered.is_ok() {
            self.lookups.tokens.insert(token, cookie);
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
        self.lookups.sockets.insert(cookie, asking);
    }

    /// The program asks for a name of a socket, as Go does once it waits for it: who has waited last is told first of what
    /// comes, so we wait anew.
    pub(super) fn look_before_program(&mut self, cookie: u64) {
        if let Some(asking) = self.lookups.sockets.get(&cookie)
            && asking.forward.is_none()
            && self.lookups.tokens.contains_key(&asking.token)
        {
            let registry = self.poll.registry();
            let descriptor = asking.copy.as_raw_fd();
            let mut source = SourceFd(&descriptor);
            let waits = registry
                .deregister(&mut source)
                .and_then(|()| registry.register(&mut source, asking.token, Interest::READABLE));
            if waits.is_err() {
                self.lookups.tokens.remove(&asking.token);
            }
        }
    }

    /// Lets a socket go; one of which nothing was read is a look-up without a name.
    fn let_asking_go(&mut self, cookie: u64) {
        let Some(asking) = self.lookups.sockets.remove(&cookie) else {
            return;
        };
        self.lookups.tokens.remove(&asking.token);
        if asking.forward.is_some() {
            self.lookups.tokens.remove(&Token(asking.token.0 + 1));
            self.names.forget(cookie);
            let server = on_socket(asking.asker.server, asking.v6);
            socket::disconnect(&asking.copy);
            let _ = SockRef::from(&asking.copy).connect(&server.into());
        } else {
            // the program holds the same socket: closing our copy would not end it
            let _ = self
                .poll
                .registry()
                .deregister(&mut SourceFd(&asking.copy.as_raw_fd()));
        }
        if asking.named {
            return;
        }
        let process = asking.asker.process();
        if self.lookups.nameless.len() >= MAX_NAMED {
            self.lookups.nameless.clear();
        }
        let before = self.lookups.nameless.insert(process, asking.since);
        let is_counted = before.is_some_and(|before| asking.since.abs_diff(before) < BESIDE)
            || self.lookups.open.is_beside(process, asking.since, BESIDE);
        if !is_counted {
            let end = asking.missed.unwrap_or(asking.since);
            self.record_lookup(Lookup {
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

    /// A short datagram with an address is being sent.
    pub(super) fn see_sendto(&mut self, notice: &Notice) -> Option<()> {
        let [descriptor, place, len, _, address, address_len] = notice.arguments;
        let server = self.name_server(notice.thread, address, address_len)?;
        let cookie = self.asking_with(notice, descriptor, Some(server))?;
        self.see_question(notice, place, len, cookie);
        Some(())
    }

    /// One or two datagrams are being sent at once.
    pub(super) fn see_sendmmsg(&mut self, notice: &Notice) -> Option<()> {
        const HEADER: usize = 64;
        let [descriptor, place, count, ..] = notice.arguments;
        let count = usize::try_from(count).ok()?.min(MAX_AT_ONCE);
        // struct mmsghdr: name, its length, the parts and their number, each in eight bytes
        let mut headers = [0; HEADER * MAX_AT_ONCE];
        let headers = &mut headers[..HEADER * count];
        read_memory(notice.thread, place, headers).ok()?;
        let word = |bytes: &[u8], at: usize| {
            let part = bytes.get(at..).and_then(|rest| rest.first_chunk());
            part.map_or(0, |part| u64::from_ne_bytes(*part))
        };
        for header in headers.chunks_exact(HEADER) {
            let (address, parts, count) = (word(header, 0), word(header, 16), word(header, 24));
            let server = match address {
                0 => None,
                _ => Some(self.name_server(notice.thread, address, word(header, 8))?),
            };
            let cookie = self.asking_with(notice, descriptor, server)?;
            if count == 0 {
                return None;
            }
            let mut part = [0; 16];
            read_memory(notice.thread, parts, &mut part).ok()?;
            self.see_question(notice, word(&part, 0), word(&part, 8), cookie);
        }
        Some(())
    }

    /// A datagram is to be taken with its sender's address: looks at it first.
    pub(super) fn see_recvfrom(&mut self, notice: &Notice) -> Option<()> {
        if self.lookups.sockets.is_empty() {
            return None;
        }
        let descriptor = notice.arguments[0] as i32;
        let copied = self.processes.copy_descriptor(notice.thread, descriptor);
        let cookie = socket::cookie(&copied.ok()?).ok()?;
        self.lookups.sockets.get_mut(&cookie)?.is_asked = true;
        self.look_at_answer(cookie);
        Some(())
    }

    /// Something came on a socket that speaks with a name server.
    pub(super) fn take_answer(&mut self, token: Token) {
        let Some(&cookie) = self.lookups.tokens.get(&token) else {
            return;
        };
        match self.lookups.sockets.get(&cookie) {
            Some(asking) if asking.forward.is_none() => self.look_at_answer(cookie),
            Some(asking) if asking.token == token => self.pass_on(cookie, Way::Out),
            _ => self.pass_on(cookie, Way::Back),
        }
    }

    fn look_at_answer(&mut self, cookie: u64) {
        let now = self.clock.now().0;
        let Lookups {
            sockets,
            open,
            named,
            ..
        } = &mut self.lookups;
        let Some(asking) = sockets.get_mut(&cookie) else {
            return;
        };
        let mut bytes = [0; MAX_ANSWER];
        match socket::peek(&asking.copy, &mut bytes) {
            Peeked::Bytes(count) => {
                let Some(answer) = dns::parse(&bytes[..count]).filter(|told| told.is_answer) else {
                    return;
                };
                asking.named = true;
                if asking.answered.contains(&answer.id) {
                    return;
                }
                if asking.answered.len() >= MAX_ANSWERED {
                    asking.answered.pop_front();
                }
                asking.answered.push_back(answer.id);
                let question = (cookie, answer.id);
                open.answer(&asking.asker, question, &answer, asking.last, now);
                name_addresses(named, &answer);
            }
            Peeked::Failed => {
                asking.named = true;
                open.lose(cookie, Some(UNREACHABLE), now);
            }
            Peeked::Nothing if asking.is_asked => {}
            Peeked::Nothing => {
                asking.missed = Some(now);
                open.lose(cookie, None, now);
            }
        }
    }

    /// The cookie of a socket that sends to a name server; one that is not connected to it is followed from now on.
    fn asking_with(
        &mut self,
        notice: &Notice,
        descriptor: u64,
        server: Option<SocketAddr>,
    ) -> Option<u64> {
        let copied = self
            .processes
            .copy_descriptor(notice.thread, descriptor as i32)
            .ok()?;
        let cookie = socket::cookie(&copied).ok()?;
        match server {
            Some(server) => self.follow_asking(notice, cookie, copied, server),
            None => {
                self.lookups.sockets.get(&cookie)?;
            }
        }
        Some(cookie)
    }

    fn name_server(&self, thread: u32, place: u64, len: u64) -> Option<SocketAddr> {
        let len = usize::try_from(len).ok()?.min(address::MAX_LEN);
        let mut bytes = [0; address::MAX_LEN];
        read_memory(thread, place, &mut bytes[..len]).ok()?;
        match address::parse(&bytes[..len])? {
            Named::Inet(server) if server.port() == PORT => Some(unmapped(server)),
            _ => None,
        }
    }

    fn see_question(&mut self, notice: &Notice, place: u64, len: u64, cookie: u64) {
        let mut bytes = [0; MAX_QUESTION];
        let Some(bytes) = usize::try_from(len)
            .ok()
            .and_then(|len| bytes.get_mut(..len))
        else {
            return;
        };
        let now = self.clock.now().0;
        if read_memory(notice.thread, place, bytes).is_ok()
            && let Some(asked) = dns::parse(bytes).filter(|message| !message.is_answer)
            && let Some(asking) = self.lookups.sockets.get_mut(&cookie)
        {
            asking.named = true;
            asking.last = now;
            asking.answered.retain(|id| *id != asked.id);
            let question = (cookie, asked.id);
            self.lookups.open.ask(&asking.asker, question, &asked, now);
        }
    }

    /// The process that a look-up or a connection is counted for.
    pub(super) fn process_of(owner: Option<&Owner>) -> u32 {
        owner.map_or(0, |owner| owner.pid)
    }

    fn record_lookup(&self, mut lookup: Lookup) {
        lookup.variant = self.place.map(|place| place.variant);
        lookup.round = self.place.map(|place| place.round);
        self.record(Row::Lookup(lookup));
    }

    /// Records look-ups that are over, or all, and lets go of sockets that have fallen silent.
    pub(super) fn settle_lookups(&mut self, all: bool) {
        let now = self.clock.now().0;
        let since_last = now.saturating_sub(self.lookups.looked);
        if !all && (self.lookups.pace().is_none() || u128::from(since_last) < PACE.as_nanos()) {
            return;
        }
        self.lookups.looked = now;
        let Lookups { open, sockets, .. } = &mut self.lookups;
        let mut over = Vec::new();
        let awaits = |process, since| {
            sockets.values().any(|asking| {
                let is_silent = !asking.named && asking.missed.is_none();
                is_silent
                    && asking.asker.process() == process
                    && asking.since.abs_diff(since) <= BESIDE
            })
        };
        open.settle(now, all, awaits, |lookup| over.push(lookup));
        for lookup in over {
            self.record_lookup(lookup);
        }
        let Lookups { open, sockets, .. } = &self.lookups;
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
            self.let_asking_go(cookie);
        }
    }
}

/// Remembers under which name addresses were found.
fn name_addresses(named: &mut HashMap<IpAddr, Arc<str>>, answer: &Message) {
    let name: Arc<str> = answer.name.as_str().into();
    for address in &answer.addresses {
        if named.len() >= MAX_NAMED {
            named.clear();
        }
        named.insert(*address, name.clone());
    }
}
