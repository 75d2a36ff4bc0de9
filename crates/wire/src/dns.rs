//! Messages of the domain name system over UDP (RFC 1035 section 4), as far as an observer needs them: who is asked for,
//! which addresses come back, for how long. Speaks to no server.

use std::net::IpAddr;

/// Pointers in a compressed name that are followed.
const MAX_HOPS: usize = 32;
/// Records that are read of one answer.
const MAX_RECORDS: u16 = 64;
/// The longest name, in bytes as it is printed: escaped, up to four times the 255 of the wire.
const MAX_NAME: usize = 1024;

/// Where name servers listen.
pub const PORT: u16 = 53;
/// The type of an IPv4 address.
pub const A: u16 = 1;
/// The type of an IPv6 address.
pub const AAAA: u16 = 28;

/// A question, or the answer to one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The number by which an answer is known.
    pub id: u16,
    /// Whether it is one.
    pub is_answer: bool,
    /// The answer did not fit; it is asked for again over TCP.
    pub is_truncated: bool,
    /// The response code.
    pub code: u8,
    /// The name asked for, in lower case, without the final dot; bytes that are not ASCII are escaped.
    pub name: String,
    /// The type of record asked for, such as [`A`].
    pub kind: u16,
    /// The addresses of an answer, those of names that the name stands for included.
    pub addresses: Vec<IpAddr>,
    /// The smallest TTL of the answer's records, in seconds.
    pub ttl_s: Option<u32>,
}

impl Message {
    /// What the server could not do, in the words of RFC 1035 section 4.1.1.
    pub fn error(&self) -> Option<&'static str> {
        Some(match self.code {
            0 => return None,
            1 => "FORMERR",
            2 => "SERVFAIL",
            3 => "NXDOMAIN",
            4 => "NOTIMP",
            5 => "REFUSED",
            _ => "error",
        })
    }
}

/// Reads a plain query or its answer, with exactly one question; `None` for anything else. An answer that is cut short gives the
/// records before the cut.
pub fn parse(bytes: &[u8]) -> Option<Message> {
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
        is_truncated: flags & 0x0200 != 0,
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
        if name.len() > MAX_NAME {
            return None;
        }
    }
    Some((name, after.unwrap_or(at + 1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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

    #[test]
    fn a_refusal_has_its_name() {
        let mut refusal = answer();
        refusal[3] = 0x85;
        assert_eq!(parse(&refusal).unwrap().error(), Some("REFUSED"));
        assert_eq!(parse(&answer()).unwrap().error(), None);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            if let Some(message) = parse(&bytes) {
                prop_assert!(message.name.len() <= MAX_NAME);
                prop_assert!(message.addresses.len() <= usize::from(MAX_RECORDS));
            }
        }

        #[test]
        fn every_name_reads_back(name in "[a-z0-9-]{1,20}(\\.[a-z0-9-]{1,20}){0,5}") {
            let mut bytes = QUESTION[..12].to_vec();
            for label in name.split('.') {
                bytes.push(label.len() as u8);
                bytes.extend_from_slice(label.as_bytes());
            }
            bytes.extend_from_slice(&[0, 0, 28, 0, 1]);
            let read = parse(&bytes).unwrap();
            prop_assert_eq!((read.name, read.kind), (name, AAAA));
        }
    }
}
