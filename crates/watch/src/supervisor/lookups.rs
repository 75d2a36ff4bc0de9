//! Look-ups of names, as far as system calls tell: the questions of `sendto` and `sendmmsg` (the C libraries) with their
//! names, and sockets connected to a name server whose questions are written unseen (Go, c-ares) without.
//!
//! How long an answer took cannot be seen here: the span of such a look-up is empty.

use super::Supervisor;
use super::question;
use crate::sys::address::{self, Named, unmapped};
use crate::sys::notify::Notice;
use crate::sys::process::read_memory;
use crate::sys::socket;
use ledger::{Lookup, Nanos, Owner, Row, Span};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

/// Where name servers listen.
const PORT: u16 = 53;
/// Questions for several types of record of one name that come within this time are one look-up, in nanoseconds.
const TOGETHER: u64 = 5_000_000_000;
/// Sockets that a process connects to a name server within this time are taken for one look-up, in nanoseconds: Go has one
/// for each type of record.
const BESIDE: u64 = 20_000_000;
/// A socket that has asked nothing that we saw within this time writes its questions unseen, in nanoseconds.
const UNSEEN: u64 = 1_000_000_000;
/// More types of record than a resolver asks for at once.
const MAX_KINDS: usize = 8;
/// Sockets and look-ups that are remembered.
const MAX: usize = 4096;

/// Look-ups under way.
#[derive(Default)]
pub(super) struct Lookups {
    /// Sockets connected to a name server, by cookie.
    sockets: HashMap<u64, Connected>,
    /// The look-ups of each process by name: when they began, and the types of record asked for since.
    asked: HashMap<(u32, Arc<str>), (u64, Vec<u16>)>,
    /// When each process last began one without a name.
    nameless: HashMap<u32, u64>,
    /// When silent sockets were last looked for.
    looked: u64,
}

struct Connected {
    server: SocketAddr,
    at: u64,
    owner: Option<Owner>,
    asked: bool,
}

impl Lookups {
    /// Whether a question begins a look-up, or belongs to the one before.
    fn begins(&mut self, pid: u32, name: &Arc<str>, kind: u16, at: u64) -> bool {
        if self.asked.len() >= MAX {
            self.asked.clear();
        }
        let key = (pid, name.clone());
        let (since, kinds) = self.asked.entry(key).or_insert((at, Vec::new()));
        let is_new = kinds.is_empty()
            || kinds.contains(&kind)
            || kinds.len() >= MAX_KINDS
            || at.saturating_sub(*since) >= TOGETHER;
        if is_new {
            *since = at;
            kinds.clear();
        }
        kinds.push(kind);
        is_new
    }
}

impl Supervisor {
    /// A datagram socket is being connected.
    pub(super) fn connect_datagrams(&mut self, notice: &Notice, cookie: u64, to: SocketAddr) {
        self.lookups.sockets.remove(&cookie);
        if to.port() != PORT {
            return;
        }
        if self.lookups.sockets.len() >= MAX {
            self.record_unseen_lookups(true);
        }
        let owner = self.owner(notice.thread);
        let connected = Connected {
            server: unmapped(to),
            at: self.clock.now().0,
            owner,
            asked: false,
        };
        self.lookups.sockets.insert(cookie, connected);
    }

    /// A short datagram with an address is being sent.
    pub(super) fn see_sendto(&mut self, notice: &Notice) -> Option<()> {
        let [_, place, len, _, address, address_len] = notice.arguments;
        let server = self.name_server(notice.thread, address, address_len)?;
        self.see_question(notice, place, len, server);
        Some(())
    }

    /// One or two datagrams are being sent at once.
    pub(super) fn see_sendmmsg(&mut self, notice: &Notice) -> Option<()> {
        let [descriptor, place, ..] = notice.arguments;
        // struct msghdr: name, its length, the parts and their number, each in eight bytes
        let mut head = [0; 32];
        read_memory(notice.thread, place, &mut head).ok()?;
        let word = |bytes: &[u8], at: usize| {
            let part = bytes.get(at..).and_then(|rest| rest.first_chunk());
            part.map_or(0, |part| u64::from_ne_bytes(*part))
        };
        let (address, parts, count) = (word(&head, 0), word(&head, 16), word(&head, 24));
        let server = if address == 0 {
            let copied = self
                .processes
                .copy_descriptor(notice.thread, descriptor as i32);
            let cookie = socket::cookie(&copied.ok()?).ok()?;
            let connected = self.lookups.sockets.get_mut(&cookie)?;
            connected.asked = true;
            connected.server
        } else {
            self.name_server(notice.thread, address, word(&head, 8))?
        };
        if count == 0 {
            return None;
        }
        let mut part = [0; 16];
        read_memory(notice.thread, parts, &mut part).ok()?;
        self.see_question(notice, word(&part, 0), word(&part, 8), server);
        Some(())
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

    fn see_question(&mut self, notice: &Notice, place: u64, len: u64, server: SocketAddr) {
        let Ok(len) = usize::try_from(len) else {
            return;
        };
        let mut bytes = [0; question::MAX_LEN];
        let Some(bytes) = bytes.get_mut(..len) else {
            return;
        };
        if read_memory(notice.thread, place, bytes).is_ok()
            && let Some(asked) = question::parse(bytes)
        {
            let owner = self.owner(notice.thread);
            let at = self.clock.now().0;
            let pid = owner.as_ref().map_or(0, |owner| owner.pid);
            let name: Arc<str> = asked.name.into();
            if self.lookups.begins(pid, &name, asked.kind, at) {
                self.record_lookup(Some(name), at, server, owner);
            }
        }
    }

    fn record_lookup(
        &mut self,
        name: Option<Arc<str>>,
        at: u64,
        server: SocketAddr,
        owner: Option<Owner>,
    ) {
        self.record(Row::Lookup(Lookup {
            variant: self.place.map(|place| place.variant),
            round: self.place.map(|place| place.round),
            name,
            span: Span::new(Nanos(at), Nanos(at)),
            answer: None,
            ttl_s: None,
            resolver: Some(server.to_string().into()),
            owner,
        }));
    }

    /// Records look-ups whose questions were written unseen: of old sockets, or of all and forgets them.
    pub(super) fn record_unseen_lookups(&mut self, all: bool) {
        let now = self.clock.now().0;
        if !all && now.saturating_sub(self.lookups.looked) < UNSEEN {
            return;
        }
        self.lookups.looked = now;
        let mut silent = Vec::new();
        for connected in self.lookups.sockets.values_mut() {
            let is_due = all || now.saturating_sub(connected.at) > UNSEEN;
            if is_due && !std::mem::replace(&mut connected.asked, true) {
                silent.push((connected.at, connected.server, connected.owner.take()));
            }
        }
        if all {
            self.lookups.sockets.clear();
        }
        silent.sort_by_key(|(at, ..)| *at);
        for (at, server, owner) in silent {
            let pid = owner.as_ref().map_or(0, |owner: &Owner| owner.pid);
            if self.lookups.nameless.len() >= MAX {
                self.lookups.nameless.clear();
            }
            let before = self.lookups.nameless.insert(pid, at);
            if before.is_none_or(|before| at.saturating_sub(before) >= BESIDE) {
                self.record_lookup(None, at, server, owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_both_kinds_are_one_look_up_and_the_same_kind_again_is_another() {
        let mut lookups = Lookups::default();
        let (one, other): (Arc<str>, Arc<str>) = ("a.example".into(), "b.example".into());
        assert!(lookups.begins(1, &one, 1, 0));
        assert!(!lookups.begins(1, &one, 28, 10));
        assert!(lookups.begins(1, &one, 1, 20));
        assert!(lookups.begins(1, &other, 1, 20));
        assert!(lookups.begins(2, &one, 28, 20));
        assert!(!lookups.begins(1, &one, 28, 30));
        assert!(lookups.begins(1, &one, 65, 30 + TOGETHER));
    }
}
