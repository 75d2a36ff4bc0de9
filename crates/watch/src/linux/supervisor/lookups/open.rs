//! Lookups under way: questions and answers of one process for one name, brought together.
//!
//! Knows no sockets and no clock. Questions for several types of record of a name (A, AAAA) are one
//! lookup.

use intact_ledger::{Lookup, Nanos, Owner, Span};
use intact_wire::dns::Message;
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Questions for other types of record of a name that come within this time are of the same lookup,
/// in nanoseconds.
const TOGETHER: u64 = 5_000_000_000;
/// The same question again after this time is a retry; before it, it is a second lookup.
/// Nanoseconds.
const RETRY: u64 = 500_000_000;
/// How long a lookup that has all its answers waits for a sister question (Go asks for each type
/// apart). Nanoseconds.
const SETTLE: u64 = 20_000_000;
/// A lookup without an answer is given up after this time, in nanoseconds.
const PATIENCE: u64 = 10_000_000_000;
/// More types of record than a resolver asks for at once.
const MAX_KINDS: usize = 8;
/// Lookups that are followed at a time, and ended ones that are remembered.
const MAX: usize = 1024;
const MAX_PAST: usize = 64;
/// A connection this long after a lookup did not wait for it, in nanoseconds.
const WAITED: u64 = 1_000_000_000;

/// There is no server at that address.
pub(super) const UNREACHABLE: &str = "unreachable";

/// A question: the socket's cookie and the number in it.
pub(super) type PendingQuery = (u64, u16);

/// One lookup.
struct Open {
    name: Arc<str>,
    asker: Asker,
    since: u64,
    kinds: Vec<u16>,
    /// Questions without an answer.
    waiting: Vec<PendingQuery>,
    /// When the last answer came.
    last: Option<u64>,
    addresses: Vec<IpAddr>,
    ttl_s: Option<u32>,
    error: Option<&'static str>,
    /// An answer came and could not be read.
    unread: bool,
    /// It was known by an answer first: its questions are sent unseen.
    by_answer: bool,
    /// A connection was made from it.
    claimed: bool,
}

/// Who asks whom.
#[derive(Clone, Debug)]
pub(super) struct Asker {
    pub(super) owner: Option<Owner>,
    pub(super) server: SocketAddr,
}

impl Asker {
    pub(super) fn process(&self) -> u32 {
        self.owner.as_ref().map_or(0, |owner| owner.pid)
    }
}

/// All lookups.
#[derive(Default)]
pub(super) struct LookupsOpen {
    open: Vec<Open>,
    past: VecDeque<Open>,
}

impl LookupsOpen {
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// A question was sent.
    pub(super) fn ask(&mut self, asker: &Asker, question: PendingQuery, asked: &Message, at: u64) {
        let process = asker.process();
        let own = self.open.iter_mut().rev().find(|open| {
            let same = open.asker.process() == process && *open.name == *asked.name;
            let age = at.saturating_sub(open.since);
            let is_new = !open.kinds.contains(&asked.kind) && open.kinds.len() < MAX_KINDS;
            let is_retry = age >= RETRY && open.addresses.is_empty();
            same && age < TOGETHER && is_new || same && is_retry || open.waits_for(question)
        });
        if let Some(open) = own {
            open.kinds.push(asked.kind);
            if !open.waits_for(question) {
                open.waiting.push(question);
            }
            return;
        }
        if self.open.len() < MAX {
            let mut open = Open::new(asker, &asked.name, asked.kind, at);
            open.waiting.push(question);
            self.open.push(open);
        }
    }

    /// An answer came, to a question that was seen or, since `since`, to one that was not.
    pub(super) fn answer(
        &mut self,
        asker: &Asker,
        question: PendingQuery,
        answer: &Message,
        since: u64,
        at: u64,
    ) {
        let process = asker.process();
        let place = self
            .open
            .iter()
            .position(|open| open.waits_for(question) && *open.name == *answer.name)
            .or_else(|| {
                self.open.iter().rposition(|open| {
                    open.asker.process() == process
                        && *open.name == *answer.name
                        && !open.kinds.contains(&answer.kind)
                        && since.abs_diff(open.since) < RETRY
                })
            });
        let open = match place {
            Some(place) => &mut self.open[place],
            None if self.open.len() < MAX => {
                self.open
                    .push(Open::new(asker, &answer.name, answer.kind, since));
                let newest = self.open.len() - 1;
                let open = &mut self.open[newest];
                open.by_answer = true;
                open
            }
            None => return,
        };
        open.kinds.push(answer.kind);
        open.waiting.retain(|other| *other != question);
        open.last = Some(at);
        open.addresses.extend(answer.addresses());
        open.ttl_s = open.ttl_s.into_iter().chain(answer.ttl_s()).min();
        // a server that answers makes up for one that is not there
        let before = open.error.filter(|error| *error != UNREACHABLE);
        open.error = answer.error().or(before);
    }

    /// Something came on a socket and was gone before it could be read; or the way to the server is
    /// closed, `error`.
    pub(super) fn lose(&mut self, cookie: u64, error: Option<&'static str>, at: u64) {
        let of_socket = |question: &PendingQuery| question.0 == cookie;
        for open in &mut self.open {
            let Some(place) = open.waiting.iter().position(of_socket) else {
                continue;
            };
            open.last = Some(at);
            if error.is_none() {
                open.waiting.remove(place);
                open.unread = true;
                return;
            }
            open.waiting.retain(|question| !of_socket(question));
            open.error = open.error.or(error);
        }
    }

    /// Hands on lookups that are over; `awaits` says whether a process waits for a sister
    /// question's answer that was sent unseen at about that time.
    pub(super) fn settle(
        &mut self,
        now: u64,
        all: bool,
        awaits: impl Fn(u32, u64) -> bool,
        mut over: impl FnMut(Lookup),
    ) {
        let mut place = 0;
        while let Some(open) = self.open.get_mut(place) {
            let age = now.saturating_sub(open.since);
            let quiet = open.last.map(|last| now.saturating_sub(last));
            let is_answered = open.waiting.is_empty()
                && quiet.is_some_and(|quiet| quiet >= SETTLE)
                && !awaits(open.asker.process(), open.since);
            if !(all || is_answered || age > PATIENCE) {
                place += 1;
                continue;
            }
            let open = self.open.remove(place);
            if self.past.len() >= MAX_PAST {
                self.past.pop_front();
            }
            over(open.ended(now));
            self.past.push_back(open);
        }
    }

    /// Whether a question of this socket has no answer yet.
    pub(super) fn waits_on(&self, cookie: u64) -> bool {
        let mut waiting = self.open.iter().flat_map(|open| &open.waiting);
        waiting.any(|question| question.0 == cookie)
    }

    /// Whether a lookup of a process that sends its questions unseen began within that time of
    /// `since`.
    pub(super) fn is_part_of_lookup(&self, process: u32, since: u64, within: u64) -> bool {
        let mut all = self.open.iter().chain(&self.past);
        all.any(|open| {
            let is_near = open.since.abs_diff(since) < within;
            open.by_answer && open.asker.process() == process && is_near
        })
    }

    /// The lookup that a process's connection to an address waited for; each is claimed once.
    pub(super) fn claim(&mut self, process: u32, address: IpAddr, now: u64) -> Option<Span> {
        let past = self.past.iter_mut().rev();
        self.open.iter_mut().rev().chain(past).find_map(|open| {
            let last = open.last?;
            let is_meant = open.asker.process() == process
                && open.addresses.contains(&address)
                && now.saturating_sub(last) <= WAITED
                && !std::mem::replace(&mut open.claimed, true);
            is_meant.then(|| Span::new(Nanos(open.since), Nanos(last)))
        })
    }
}

impl Open {
    fn new(asker: &Asker, name: &str, kind: u16, since: u64) -> Open {
        Open {
            name: name.into(),
            asker: asker.clone(),
            since,
            kinds: vec![kind],
            waiting: Vec::new(),
            last: None,
            addresses: Vec::new(),
            ttl_s: None,
            error: None,
            unread: false,
            by_answer: false,
            claimed: false,
        }
    }

    fn waits_for(&self, question: PendingQuery) -> bool {
        self.waiting.contains(&question)
    }

    fn ended(&self, now: u64) -> Lookup {
        let answer = match self.error {
            _ if !self.addresses.is_empty() => Some(Ok(self.addresses.clone())),
            Some(error) => Some(Err(error.into())),
            None if self.unread => None,
            // the name is there, and has no address of these kinds
            None if self.last.is_some() => Some(Ok(Vec::new())),
            None => Some(Err("no answer".into())),
        };
        Lookup {
            variant: None,
            round: None,
            name: Some(self.name.clone()),
            span: Span::new(Nanos(self.since), Nanos(self.last.unwrap_or(now))),
            answer,
            ttl_s: self.ttl_s,
            resolver: Some(self.asker.server.to_string().into()),
            owner: self.asker.owner.clone(),
        }
    }
}

#[cfg(test)]
mod tests;
