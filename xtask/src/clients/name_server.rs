//! A name server for one measurement: answers every query with one address and records the queries.
//!
//! DNS over UDP (RFC 1035), one question per message. It does not resolve names and has no zones.

use anyhow::Context;
use intact_wire::dns::{self, ResponseContent};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

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
            let mut buffer = [0; dns::MAX_UDP];
            while let Ok((count, from)) = socket.recv_from(&mut buffer) {
                let message = &buffer[..count];
                let Some((name, kind, response)) = answer(message, address, ttl_s) else {
                    continue;
                };
                let asked = DnsQuestion {
                    at: Instant::now(),
                    name,
                    kind,
                    from: (from, u16::from_be_bytes([message[0], message[1]])),
                };
                let mut recorded = recorded.lock().unwrap_or_else(PoisonError::into_inner);
                if recorded
                    .iter()
                    .all(|one: &DnsQuestion| one.from != asked.from)
                {
                    recorded.push(asked);
                }
                drop(recorded);
                // a lost reply makes the client send its query again
                let _ = socket.send_to(&response, from);
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

/// The name and type that a message asks for, and the response: the address for type A, else no
/// record. `None` if the message is no question.
fn answer(message: &[u8], address: Ipv4Addr, ttl_s: u32) -> Option<(String, u16, Vec<u8>)> {
    let asked = dns::parse(message)?;
    let addresses = [address.into()];
    let content = ResponseContent::Addresses(&addresses, ttl_s);
    let response = dns::respond(message, content, dns::MAX_UDP)?;
    Some((asked.name, asked.kind, response))
}

#[cfg(test)]
mod tests {
    use super::*;
    use intact_wire::dns::{A, AAAA};

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
        let (name, kind, out) = answer(&message, Ipv4Addr::new(198, 18, 0, 1), 7).unwrap();
        assert_eq!((name.as_str(), kind), ("api.test", A));
        assert_eq!(out[..2], message[..2]);
        assert_eq!(out[4..12], [0, 1, 0, 1, 0, 0, 0, 0]);
        assert!(out.ends_with(b"\xc0\x0c\0\x01\0\x01\0\0\0\x07\0\x04\xc6\x12\0\x01"));
    }

    #[test]
    fn there_are_no_other_records() {
        let (_, kind, out) = answer(&query(AAAA), Ipv4Addr::LOCALHOST, 7).unwrap();
        assert_eq!((kind, out[7], out[3] & 15), (AAAA, 0, 0));
    }

    #[test]
    fn what_is_no_question_is_left_alone() {
        let message = query(A);
        for end in 0..26 {
            assert_eq!(
                answer(&message[..end], Ipv4Addr::LOCALHOST, 7),
                None,
                "{end}"
            );
        }
        let mut response = message;
        response[2] |= 0x80;
        assert_eq!(answer(&response, Ipv4Addr::LOCALHOST, 7), None);
    }
}
