//! A name server for one measurement: answers every query with one address and records the queries.
//!
//! DNS over UDP (RFC 1035), one question per message. It does not resolve names and has no zones.

use anyhow::Context;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// The record types that a lookup of an address asks for.
pub(super) const A: u16 = 1;
pub(super) const AAAA: u16 = 28;

/// The fixed part of a message.
const HEAD: usize = 12;
/// Longer messages are not questions.
const MAX_MESSAGE: usize = 512;

/// A question as it came.
#[derive(Clone, Debug)]
pub(super) struct DnsQuestion {
    pub(super) at: Instant,
    /// Lower case, without a dot at the end.
    pub(super) name: String,
    pub(super) kind: u16,
    /// The sender and its message id; a query that is sent again has the same id.
    from: (SocketAddr, u16),
}

/// A running name server. It runs until the process ends.
pub(super) struct NameServer {
    questions: Arc<Mutex<Vec<DnsQuestion>>>,
}

impl NameServer {
    /// Starts it; every name is `address`, for this number of seconds.
    pub(super) fn start(
        listen: SocketAddr,
        address: Ipv4Addr,
        ttl_s: u32,
    ) -> anyhow::Result<NameServer> {
        let socket = UdpSocket::bind(listen).with_context(|| format!("name server on {listen}"))?;
        let questions = Arc::new(Mutex::new(Vec::new()));
        let recorded = questions.clone();
        std::thread::spawn(move || {
            let mut buffer = [0; MAX_MESSAGE];
            while let Ok((count, from)) = socket.recv_from(&mut buffer) {
                let message = &buffer[..count];
                let Some((name, kind, end)) = question(message) else {
                    continue;
                };
                let asked = DnsQuestion {
                    at: Instant::now(),
                    name,
                    kind,
                    from: (from, u16::from_be_bytes([message[0], message[1]])),
                };
                let answer = answer(&message[..end], kind, address, ttl_s);
                let mut recorded = recorded.lock().unwrap_or_else(PoisonError::into_inner);
                if recorded
                    .iter()
                    .all(|one: &DnsQuestion| one.from != asked.from)
                {
                    recorded.push(asked);
                }
                drop(recorded);
                // a lost reply makes the client send its query again
                let _ = socket.send_to(&answer, from);
            }
        });
        Ok(NameServer { questions })
    }

    /// The questions so far, without those sent again.
    pub(super) fn questions(&self) -> Vec<DnsQuestion> {
        self.questions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// The name and type that a message asks for, and where the question ends.
fn question(message: &[u8]) -> Option<(String, u16, usize)> {
    let is_query = message.get(2)? & 0xf8 == 0;
    let questions = u16::from_be_bytes([*message.get(4)?, *message.get(5)?]);
    if !is_query || questions != 1 {
        return None;
    }
    let mut at = HEAD;
    let mut labels = Vec::new();
    loop {
        let length = usize::from(*message.get(at)?);
        at += 1;
        if length == 0 {
            break;
        }
        let label = message.get(at..at + length)?;
        labels.push(String::from_utf8_lossy(label).to_lowercase());
        at += length;
    }
    let kind = u16::from_be_bytes([*message.get(at)?, *message.get(at + 1)?]);
    // type and class
    let end = at + 4;
    (end <= message.len()).then(|| (labels.join("."), kind, end))
}

/// The reply to a message that is cut after its question: the address for type A, else no record.
fn answer(question: &[u8], kind: u16, address: Ipv4Addr, ttl_s: u32) -> Vec<u8> {
    let mut out = question.to_vec();
    // an authoritative answer; recursion is available, if it was desired
    out[2] = 0x84 | question[2] & 1;
    out[3] = 0x80;
    let has_address = u16::from(kind == A);
    out[6..8].copy_from_slice(&has_address.to_be_bytes());
    out[8..HEAD].fill(0);
    if kind == A {
        // the name is the question's, which begins after the head
        out.extend([0xc0, HEAD as u8]);
        out.extend(A.to_be_bytes());
        // of the Internet
        out.extend(1u16.to_be_bytes());
        out.extend(ttl_s.to_be_bytes());
        out.extend(4u16.to_be_bytes());
        out.extend(address.octets());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(kind: u16) -> Vec<u8> {
        let mut message = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\x01\x03Api\x04test\0".to_vec();
        message.extend(kind.to_be_bytes());
        message.extend(b"\0\x01");
        // an OPT record, as resolvers send it
        message.extend(b"\0\0\x29\x04\xd0\0\0\0\0\0\0");
        message
    }

    #[test]
    fn a_question_for_an_address_is_answered_with_it() {
        let message = query(A);
        let (name, kind, end) = question(&message).unwrap();
        assert_eq!((name.as_str(), kind), ("api.test", A));
        let out = answer(&message[..end], kind, Ipv4Addr::new(198, 18, 0, 1), 7);
        assert_eq!(out[..2], message[..2]);
        assert_eq!(out[4..12], [0, 1, 0, 1, 0, 0, 0, 0]);
        assert_eq!(
            out[end..],
            *b"\xc0\x0c\0\x01\0\x01\0\0\0\x07\0\x04\xc6\x12\0\x01"
        );
    }

    #[test]
    fn there_are_no_other_records() {
        let message = query(AAAA);
        let (_, kind, end) = question(&message).unwrap();
        let out = answer(&message[..end], kind, Ipv4Addr::LOCALHOST, 7);
        assert_eq!((out.len(), out[7], out[3] & 15), (end, 0, 0));
    }

    #[test]
    fn what_is_no_question_is_left_alone() {
        let message = query(A);
        for end in 0..HEAD + 14 {
            assert_eq!(question(&message[..end]), None, "{end}");
        }
        let mut answer = message;
        answer[2] |= 0x80;
        assert_eq!(question(&answer), None);
    }
}
