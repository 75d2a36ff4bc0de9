//! Lookups of names: DNS over UDP (RFC 1035). Questions for A and AAAA that are open at the same time are one lookup. A lookup
//! failed because there was no response only if its client received any: else the capture may lack that direction.

use crate::event_writer::EventWriter;
use intact_ledger::{Event, Lookup, Span};
use intact_wire::dns::{self, A, AAAA, Header, Message};
use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Lookups that are under way at once; more are not followed.
const MAX_OPEN: usize = 4096;
/// A question that is not answered for this long is given up. Nanoseconds.
const PATIENCE: u64 = 10_000_000_000;

/// Who asks whom for what.
type Key = (IpAddr, SocketAddr, Arc<str>);

/// Lookups under way.
#[derive(Default)]
pub(super) struct DnsLookups {
    open: HashMap<Key, Open>,
    /// Clients that received a response.
    answered: HashSet<IpAddr>,
    /// Lookups of which no response is in the capture, nor any other to the same client.
    pub(super) without_response: u64,
    /// Lookups of which the response was cut off.
    pub(super) cut: u64,
}

struct Open {
    since: u64,
    /// Questions without an answer, by port and number.
    questions: Vec<(u16, u16)>,
    addresses: Vec<IpAddr>,
    ttl_s: Option<u32>,
    error: Option<&'static str>,
    /// A part of a response is missing.
    is_cut: bool,
}

impl DnsLookups {
    /// Takes a datagram from or to a resolver.
    pub(super) fn take(
        &mut self,
        source: SocketAddr,
        target: SocketAddr,
        bytes: &[u8],
        at: u64,
        scope: &mut EventWriter<'_>,
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
            self.answer(&key, question, &message, at, scope);
        } else {
            self.ask(key, question, at, scope);
        }
    }

    fn ask(&mut self, key: Key, question: (u16, u16), at: u64, scope: &mut EventWriter<'_>) {
        if let Some(open) = self.open.get_mut(&key) {
            // the same question again is a retry of it
            if open.questions.len() < 16 && !open.questions.contains(&question) {
                open.questions.push(question);
            }
            return;
        }
        if self.open.len() >= MAX_OPEN {
            self.give_up(at, scope);
        }
        if self.open.len() < MAX_OPEN {
            let open = Open {
                since: at,
                questions: vec![question],
                addresses: Vec::new(),
                ttl_s: None,
                error: None,
                is_cut: false,
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
        scope: &mut EventWriter<'_>,
    ) {
        let Some(open) = self.open.get_mut(key) else {
            return;
        };
        open.error = open.error.or(message.error());
        open.addresses.extend(message.addresses());
        open.ttl_s = open.ttl_s.into_iter().chain(message.ttl_s()).min();
        open.is_cut |= !message.is_whole;
        open.questions.retain(|other| *other != question);
        if open.questions.is_empty()
            && let Some(open) = self.open.remove(key)
        {
            self.cut += u64::from(open.is_cut);
            record(key, open, at, scope);
        }
    }

    /// Records lookups without a response: as failed where the client's responses are in the capture.
    fn give_up(&mut self, now: u64, scope: &mut EventWriter<'_>) {
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
                record(&key, open, until, scope);
            }
        }
    }

    /// The capture is over.
    pub(super) fn finish(&mut self, now: u64, scope: &mut EventWriter<'_>) {
        self.give_up(now, scope);
        // the others may have been answered behind the end
        let mut rest = std::mem::take(&mut self.open).into_iter();
        let unheard = rest
            .by_ref()
            .filter(|(key, _)| !self.answered.contains(&key.0));
        for (key, open) in unheard {
            self.without_response += 1;
            let at = open.since;
            record(&key, open, at, scope);
        }
    }
}

fn record(key: &Key, open: Open, at: u64, scope: &mut EventWriter<'_>) {
    let (_, resolver, name) = key;
    let answer = match open.error {
        Some(error) if open.addresses.is_empty() => Some(Err(error.into())),
        // addresses may be missing
        _ if open.is_cut => None,
        None if !open.questions.is_empty() => None,
        _ => Some(Ok(open.addresses)),
    };
    let lookup = Lookup {
        variant: None,
        round: None,
        name: Some(name.clone()),
        span: Span::new(scope.nanos(open.since), scope.nanos(at)),
        answer,
        ttl_s: open.ttl_s,
        resolver: Some(resolver.ip().to_string().into()),
        owner: None,
    };
    scope.record(Event::Lookup(&lookup));
}
