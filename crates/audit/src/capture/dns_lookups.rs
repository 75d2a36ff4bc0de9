//! Lookups of names: DNS over UDP (RFC 1035). Questions for A and AAAA that are open at the same time are one lookup.

use crate::event_writer::EventWriter;
use intact_ledger::{Event, Lookup, Span};
use intact_wire::dns::{self, A, AAAA, Message};
use std::collections::HashMap;
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
}

struct Open {
    since: u64,
    /// Questions without an answer, by port and number.
    questions: Vec<(u16, u16)>,
    addresses: Vec<IpAddr>,
    ttl_s: Option<u32>,
    error: Option<&'static str>,
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
        let Some(message) = dns::parse(bytes) else {
            return;
        };
        if !matches!(message.kind, A | AAAA) {
            return;
        }
        let (client, resolver) = if message.header.is_answer {
            (target, source)
        } else {
            (source, target)
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
        open.questions.retain(|other| *other != question);
        open.error = open.error.or(message.error());
        open.addresses.extend(message.addresses());
        open.ttl_s = open.ttl_s.into_iter().chain(message.ttl_s()).min();
        if open.questions.is_empty()
            && let Some(open) = self.open.remove(key)
        {
            tell(key, open, at, scope);
        }
    }

    /// Tells of lookups that were never answered as failed.
    fn give_up(&mut self, now: u64, scope: &mut EventWriter<'_>) {
        let late: Vec<Key> = self
            .open
            .iter()
            .filter(|(_, open)| now.saturating_sub(open.since) > PATIENCE)
            .map(|(key, _)| key.clone())
            .collect();
        for key in late {
            if let Some(mut open) = self.open.remove(&key) {
                open.error = open.error.or(Some("no answer"));
                let until = open.since + PATIENCE;
                tell(&key, open, until, scope);
            }
        }
    }

    /// The capture is over.
    pub(super) fn finish(&mut self, now: u64, scope: &mut EventWriter<'_>) {
        self.give_up(now, scope);
        self.open.clear();
    }
}

fn tell(key: &Key, open: Open, at: u64, scope: &mut EventWriter<'_>) {
    let (_, resolver, name) = key;
    let answer = match open.error {
        Some(error) if open.addresses.is_empty() => Err(error.into()),
        _ => Ok(open.addresses),
    };
    let lookup = Lookup {
        variant: None,
        round: None,
        name: Some(name.clone()),
        span: Span::new(scope.nanos(open.since), scope.nanos(at)),
        answer: Some(answer),
        ttl_s: open.ttl_s,
        resolver: Some(resolver.ip().to_string().into()),
        owner: None,
    };
    scope.record(Event::Lookup(&lookup));
}
