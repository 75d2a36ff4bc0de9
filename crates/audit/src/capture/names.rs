//! Look-ups of names: DNS over UDP (RFC 1035). Questions for A and AAAA that are open at the same time are one look-up.

use crate::scope::Scope;
use ledger::{Event, Lookup, Span};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// The port of a resolver.
pub(super) const PORT: u16 = 53;
/// Look-ups that are under way at once; more are not followed.
const MAX_OPEN: usize = 4096;
/// A question that is not answered for this long is given up. Nanoseconds.
const PATIENCE: u64 = 10_000_000_000;
/// Names that lead to names, and pointers in a compressed name, that are followed.
const MAX_HOPS: usize = 32;
/// Records that are read of one answer.
const MAX_RECORDS: u16 = 64;

const A: u16 = 1;
const AAAA: u16 = 28;

/// Who asks whom for what.
type Key = (IpAddr, SocketAddr, Arc<str>);

/// Look-ups under way.
#[derive(Default)]
pub(super) struct Names {
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

/// A message, as far as it matters here.
#[derive(Debug, PartialEq, Eq)]
struct Message {
    id: u16,
    is_answer: bool,
    code: u8,
    name: String,
    kind: u16,
    addresses: Vec<IpAddr>,
    ttl_s: Option<u32>,
}

impl Names {
    /// Takes a datagram from or to a resolver.
    pub(super) fn take(
        &mut self,
        source: SocketAddr,
        target: SocketAddr,
        bytes: &[u8],
        at: u64,
        scope: &mut Scope<'_>,
    ) {
        let Some(message) = parse(bytes) else { return };
        if !matches!(message.kind, A | AAAA) {
            return;
        }
        let (client, resolver) = if message.is_answer {
            (target, source)
        } else {
            (source, target)
        };
        let key = (client.ip(), resolver, Arc::from(message.name.as_str()));
        let question = (client.port(), message.id);
        if message.is_answer {
            self.answer(&key, question, message, at, scope);
        } else {
            self.ask(key, question, at, scope);
        }
    }

    fn ask(&mut self, key: Key, question: (u16, u16), at: u64, scope: &mut Scope<'_>) {
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
        message: Message,
        at: u64,
        scope: &mut Scope<'_>,
    ) {
        let Some(open) = self.open.get_mut(key) else {
            return;
        };
        open.questions.retain(|other| *other != question);
        open.addresses.extend(message.addresses);
        open.ttl_s = open.ttl_s.into_iter().chain(message.ttl_s).min();
        open.error = open.error.or(error(message.code));
        if open.questions.is_empty()
            && let Some(open) = self.open.remove(key)
        {
            tell(key, open, at, scope);
        }
    }

    /// Tells of look-ups that were never answered as failed.
    fn give_up(&mut self, now: u64, scope: &mut Scope<'_>) {
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
    pub(super) fn finish(&mut self, now: u64, scope: &mut Scope<'_>) {
        self.give_up(now, scope);
        self.open.clear();
    }
}

fn tell(key: &Key, open: Open, at: u64, scope: &mut Scope<'_>) {
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

/// The response codes of RFC 1035 section 4.1.1.
fn error(code: u8) -> Option<&'static str> {
    Some(match code {
        0 => return None,
        1 => "FORMERR",
        2 => "SERVFAIL",
        3 => "NXDOMAIN",
        4 => "NOTIMP",
        5 => "REFUSED",
        _ => "error",
    })
}

fn parse(bytes: &[u8]) -> Option<Message> {
    let u16_at = |at: usize| Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?));
    let flags = u16_at(2)?;
    // exactly one question, as everybody asks it
    if u16_at(4)? != 1 || flags & 0x7800 != 0 {
        return None;
    }
    let (name, mut at) = read_name(bytes, 12)?;
    let mut message = Message {
        id: u16_at(0)?,
        is_answer: flags & 0x8000 != 0,
        code: (flags & 0x0f) as u8,
        name,
        kind: u16_at(at)?,
        addresses: Vec::new(),
        ttl_s: None,
    };
    at += 4;
    if !message.is_answer {
        return Some(message);
    }
    for _ in 0..u16_at(6)?.min(MAX_RECORDS) {
        let Some((_, next)) = read_name(bytes, at) else {
            break;
        };
        let Some(head) = bytes.get(next..).and_then(|rest| rest.first_chunk::<10>()) else {
            break;
        };
        let kind = u16::from_be_bytes([head[0], head[1]]);
        let ttl = u32::from_be_bytes([head[4], head[5], head[6], head[7]]);
        let len = usize::from(u16::from_be_bytes([head[8], head[9]]));
        let Some(data) = bytes.get(next + 10..next + 10 + len) else {
            break;
        };
        let address = match (kind, data.len()) {
            (A, 4) => data.first_chunk::<4>().copied().map(IpAddr::from),
            (AAAA, 16) => data.first_chunk::<16>().copied().map(IpAddr::from),
            _ => None,
        };
        message.addresses.extend(address);
        message.ttl_s = Some(message.ttl_s.map_or(ttl, |least| least.min(ttl)));
        at = next + 10 + len;
    }
    Some(message)
}

/// A name in lower case, and where the bytes after it are.
fn read_name(bytes: &[u8], start: usize) -> Option<(String, usize)> {
    let mut name = String::new();
    let (mut at, mut after, mut hops) = (start, None, 0);
    loop {
        let len = *bytes.get(at)?;
        match len {
            0 => break,
            1..=63 => {
                let label = bytes.get(at + 1..at + 1 + usize::from(len))?;
                if !name.is_empty() {
                    name.push('.');
                }
                name.extend(
                    label
                        .escape_ascii()
                        .map(|byte| char::from(byte.to_ascii_lowercase())),
                );
                at += 1 + usize::from(len);
            }
            0xc0.. => {
                hops += 1;
                if hops > MAX_HOPS {
                    return None;
                }
                after = after.or(Some(at + 2));
                at = usize::from(len & 0x3f) << 8 | usize::from(*bytes.get(at + 1)?);
            }
            _ => return None,
        }
        if name.len() > 1024 {
            return None;
        }
    }
    Some((name, after.unwrap_or(at + 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUESTION: &[u8] = b"\x12\x34\x01\x00\0\x01\0\0\0\0\0\0\x03WWW\x07example\0\0\x01\0\x01";

    fn answer() -> Vec<u8> {
        let mut bytes = QUESTION.to_vec();
        bytes[2] = 0x81;
        bytes[7] = 1;
        bytes.extend(b"\xc0\x0c\0\x01\0\x01\0\0\x01\x2c\0\x04\xc0\0\x02\x07");
        bytes
    }

    #[test]
    fn a_question_and_its_answer_are_read() {
        let question = parse(QUESTION).unwrap();
        assert_eq!(
            (question.name.as_str(), question.is_answer),
            ("www.example", false)
        );
        let answer = parse(&answer()).unwrap();
        assert_eq!(answer.addresses, [IpAddr::from([192, 0, 2, 7])]);
        assert_eq!(answer.ttl_s, Some(300));
    }

    #[test]
    fn no_cut_and_no_loop_of_pointers_is_trouble() {
        let whole = answer();
        for len in 0..whole.len() {
            parse(&whole[..len]);
        }
        let mut looping = QUESTION.to_vec();
        looping[12..14].copy_from_slice(&[0xc0, 12]);
        assert_eq!(parse(&looping), None);
    }
}
