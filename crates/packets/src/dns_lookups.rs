//! Name lookups: DNS over UDP (RFC 1035).
//!
//! Open questions of one client for A and AAAA of a name are one lookup. A lookup without a
//! response failed only if its client received another response. Otherwise the capture may lack
//! that direction.

use crate::event_writer::EventWriter;
use intact_ledger::{Event, Lookup, Span};
use intact_wire::dns::{self, A, AAAA, Header, Message};
use std::collections::{HashMap, HashSet, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Limit of open lookups; more are not followed.
const MAX_OPEN: usize = 4096;
/// A question without an answer is dropped after this time, in nanoseconds.
const PATIENCE: u64 = 10_000_000_000;

/// Limit of answered questions that are remembered.
const MAX_ANSWERED: usize = 256;

/// Client, resolver and name of a lookup.
type Key = (IpAddr, SocketAddr, Arc<str>);

/// The open lookups.
#[derive(Default)]
pub(super) struct DnsLookups {
    open: HashMap<Key, Open>,
    /// Clients that received a response.
    answered: HashSet<IpAddr>,
    /// The last answered questions, by the client's address, port and message id, and the time of
    /// the answer. A capture on several interfaces may hold the copy of a question after that.
    last_answered: VecDeque<(SocketAddr, u16, u64)>,
    /// Number of lookups without a response, of clients without any response.
    pub(super) without_response: u64,
    /// Number of lookups whose response was cut off.
    pub(super) cut: u64,
}

#[derive(Default)]
struct Open {
    since: u64,
    /// Questions without an answer: port and message id.
    questions: Vec<(u16, u16)>,
    addresses: Vec<IpAddr>,
    ttl_s: Option<u32>,
    error: Option<&'static str>,
    /// A part of a response is missing.
    is_cut: bool,
}

impl DnsLookups {
    /// Reads a datagram to or from a resolver.
    pub(super) fn take(
        &mut self,
        source: SocketAddr,
        target: SocketAddr,
        bytes: &[u8],
        at: u64,
        writer: &mut EventWriter<'_>,
    ) {
        let Some(header) = Header::parse(bytes) else {
            return;
        };
        let (client, resolver) = if header.is_answer {
            (target, source)
        } else {
            (source, target)
        };
        if header.is_answer && self.answered.len() < MAX_OPEN {
            self.answered.insert(client.ip());
        }
        let message = dns::parse(bytes).filter(|message| matches!(message.kind, A | AAAA));
        let Some(message) = message else {
            return;
        };
        let key = (client.ip(), resolver, Arc::from(message.name.as_str()));
        let question = (client.port(), message.header.id);
        if message.header.is_answer {
            self.answer(&key, question, &message, at, writer);
        } else {
            self.ask(key, question, at, writer);
        }
    }

    fn ask(&mut self, key: Key, question: (u16, u16), at: u64, writer: &mut EventWriter<'_>) {
        let client = SocketAddr::new(key.0, question.0);
        let mut answered = self.last_answered.iter();
        if answered.any(|&(ip, id, until)| (ip, id) == (client, question.1) && at <= until) {
            return;
        }
        if let Some(open) = self.open.get_mut(&key) {
            // a repeated question is a retry
            if open.questions.len() < 16 && !open.questions.contains(&question) {
                open.questions.push(question);
            }
            return;
        }
        if self.open.len() >= MAX_OPEN {
            self.give_up(at, writer);
        }
        if self.open.len() < MAX_OPEN {
            let open = Open {
                since: at,
                questions: vec![question],
                ..Open::default()
            };
            self.open.insert(key, open);
        }
    }

    fn answer(
        &mut self,
        key: &Key,
        question: (u16, u16),
        message: &Message,
        at: u64,
        writer: &mut EventWriter<'_>,
    ) {
        let Some(open) = self.open.get_mut(key) else {
            return;
        };
        open.error = open.error.or(message.error());
        open.addresses.extend(message.addresses());
        open.ttl_s = open.ttl_s.into_iter().chain(message.ttl_s()).min();
        open.is_cut |= !message.is_whole;
        open.questions.retain(|other| *other != question);
        if self.last_answered.len() >= MAX_ANSWERED {
            self.last_answered.pop_front();
        }
        let client = SocketAddr::new(key.0, question.0);
        self.last_answered.push_back((client, question.1, at));
        if open.questions.is_empty()
            && let Some(open) = self.open.remove(key)
        {
            self.cut += u64::from(open.is_cut);
            record(key, open, at, writer);
        }
    }

    /// Records lookups whose time is over. They failed if the capture holds responses to the
    /// client.
    fn give_up(&mut self, now: u64, writer: &mut EventWriter<'_>) {
        let late: Vec<Key> = self
            .open
            .iter()
            .filter(|(_, open)| now.saturating_sub(open.since) > PATIENCE)
            .map(|(key, _)| key.clone())
            .collect();
        for key in late {
            if let Some(mut open) = self.open.remove(&key) {
                let mut until = open.since;
                if self.answered.contains(&key.0) {
                    open.error = open.error.or(Some("no answer"));
                    until += PATIENCE;
                } else {
                    self.without_response += 1;
                }
                record(&key, open, until, writer);
            }
        }
    }

    /// The capture is over.
    pub(super) fn finish(&mut self, now: u64, writer: &mut EventWriter<'_>) {
        self.give_up(now, writer);
        // the answers may come after the end of the capture
        let mut rest = std::mem::take(&mut self.open).into_iter();
        let unheard = rest
            .by_ref()
            .filter(|(key, _)| !self.answered.contains(&key.0));
        for (key, open) in unheard {
            self.without_response += 1;
            let at = open.since;
            record(&key, open, at, writer);
        }
    }
}

fn record(key: &Key, open: Open, at: u64, writer: &mut EventWriter<'_>) {
    let (_, resolver, name) = key;
    let answer = match open.error {
        Some(error) if open.addresses.is_empty() => Some(Err(error.into())),
        // addresses may be missing
        _ if open.is_cut => None,
        None if !open.questions.is_empty() => None,
        _ => Some(Ok(open.addresses)),
    };
    let lookup = Lookup {
        name: Some(name.clone()),
        span: Span::new(writer.nanos(open.since), writer.nanos(at)),
        answer,
        ttl_s: open.ttl_s,
        resolver: Some(resolver.ip().to_string().into()),
        ..Lookup::default()
    };
    writer.record(Event::Lookup(&lookup));
}
