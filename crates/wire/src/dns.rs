//! Messages of the domain name system over UDP (RFC 1035 section 4): the question, and the records
//! of the answer. No I/O.

use std::net::IpAddr;

/// Limit of the pointers that are followed in a compressed name.
const MAX_HOPS: usize = 32;
/// Limit of the records that are read per answer.
const MAX_RECORDS: u16 = 256;
/// Limit of a name in bytes, as it is printed: escaped, up to four times the 255 bytes on the wire.
const MAX_NAME: usize = 1024;
/// The longest name on the wire, in bytes (RFC 1035 section 3.1).
const MAX_WIRE_NAME: usize = 255;
/// The length of a header, in bytes.
const HEADER: usize = 12;

/// Port of name servers.
pub const PORT: u16 = 53;
/// The type of an IPv4 address.
pub const A: u16 = 1;
/// The type of an alias.
pub const CNAME: u16 = 5;
/// The type of an IPv6 address.
pub const AAAA: u16 = 28;

/// The server could not do it.
pub const SERVFAIL: u8 = 2;
/// There is no such name.
pub const NXDOMAIN: u8 = 3;
/// The server does not want to.
pub const REFUSED: u8 = 5;
/// The longest message over UDP without extensions, in bytes.
pub const MAX_UDP: usize = 512;

/// The start of every message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The id that an answer repeats.
    pub id: u16,
    /// Whether the message is an answer.
    pub is_answer: bool,
    /// The answer did not fit; the client asks again over TCP.
    pub is_truncated: bool,
    /// The response code.
    pub code: u8,
    /// Operation 0: a standard query or its answer.
    is_query: bool,
    questions: u16,
    answers: u16,
}

impl Header {
    /// Reads the first 12 bytes of a message; `None` if there are fewer.
    pub fn parse(bytes: &[u8]) -> Option<Header> {
        let head: &[u8; HEADER] = bytes.first_chunk()?;
        let u16_at = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
        let flags = u16_at(2);
        Some(Header {
            id: u16_at(0),
            is_answer: flags & 0x8000 != 0,
            is_truncated: flags & 0x0200 != 0,
            code: (flags & 0x0f) as u8,
            is_query: flags & 0x7800 == 0,
            questions: u16_at(4),
            answers: u16_at(6),
        })
    }
}

/// A question, or its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its header.
    pub header: Header,
    /// The name in the question, in lower case, without the final dot. Bytes that are not ASCII
    /// are escaped.
    pub name: String,
    /// The type of record in the question, such as [`A`].
    pub kind: u16,
    /// The records of an answer, including those of aliases.
    pub records: Vec<Record>,
    /// All records are there: the bytes were not cut off.
    pub is_whole: bool,
}

/// A record of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The name that the record belongs to, in the form of [`Message::name`].
    pub name: String,
    /// Time to live in seconds.
    pub ttl_s: u32,
    /// Its content.
    pub data: RecordData,
}

/// The content of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordData {
    /// An address of the name.
    Address(IpAddr),
    /// The name that this name is an alias of.
    Alias(String),
    /// A record of another type.
    Other,
}

impl Message {
    /// The addresses of an answer.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        self.records.iter().filter_map(|record| match record.data {
            RecordData::Address(address) => Some(address),
            _ => None,
        })
    }

    /// The smallest TTL of the answer's records, in seconds.
    pub fn ttl_s(&self) -> Option<u32> {
        self.records.iter().map(|record| record.ttl_s).min()
    }

    /// The error of the server, as RFC 1035 section 4.1.1 names it.
    pub fn error(&self) -> Option<&'static str> {
        code_name(self.header.code)
    }
}

/// The name of a response code; `None` for 0, which is no error.
pub fn code_name(code: u8) -> Option<&'static str> {
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

/// Writes a question for records of this type. `None` for an invalid name: more than 255 bytes, or
/// a label that is empty or longer than 63 bytes.
pub fn query(id: u16, name: &str, kind: u16) -> Option<Vec<u8>> {
    let mut bytes = id.to_be_bytes().to_vec();
    // recursion desired; one question
    bytes.extend_from_slice(&[1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    for label in name.split('.') {
        if !(1..=63).contains(&label.len()) {
            return None;
        }
        bytes.push(label.len() as u8);
        bytes.extend_from_slice(label.as_bytes());
    }
    bytes.push(0);
    if bytes.len() - HEADER > MAX_WIRE_NAME {
        return None;
    }
    bytes.extend_from_slice(&kind.to_be_bytes());
    bytes.extend_from_slice(&CLASS_IN);
    Some(bytes)
}

/// What a response to a question says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseContent<'a> {
    /// The addresses of the name and their TTL in seconds; only addresses of the requested type are
    /// sent.
    Addresses(&'a [IpAddr], u32),
    /// A response code other than 0, such as [`SERVFAIL`].
    Error(u8),
}

/// Writes the response to a question in at most `limit` bytes. If the addresses do not fit, the
/// response has none and is marked as truncated. `None` if the bytes are not one question.
pub fn respond(question: &[u8], content: ResponseContent<'_>, limit: usize) -> Option<Vec<u8>> {
    // a name may point to bytes that a response does not repeat
    let is_same_name = |asked: &Message, bytes: &[u8]| {
        read_name(bytes, HEADER).is_some_and(|(name, _)| name == asked.name)
    };
    let asked = parse(question).filter(|asked| !asked.header.is_answer)?;
    let (_, end) = read_name(question, HEADER)?;
    let mut bytes = question.get(..end + 4)?.to_vec();
    // a response; recursion is available, and desired where it was
    bytes[2] = 0x80 | question[2] & 1;
    bytes[3] = 0x80;
    bytes[6..HEADER].fill(0);
    let (addresses, ttl_s) = match content {
        ResponseContent::Addresses(addresses, ttl_s) => (addresses, ttl_s),
        ResponseContent::Error(code) => {
            bytes[3] |= code & 0x0f;
            return is_same_name(&asked, &bytes).then_some(bytes);
        }
    };
    let (question_end, mut count) = (bytes.len(), 0u16);
    for address in addresses {
        let (kind, octets) = match address {
            IpAddr::V4(address) => (A, &address.octets()[..]),
            IpAddr::V6(address) => (AAAA, &address.octets()[..]),
        };
        if kind != asked.kind {
            continue;
        }
        count += 1;
        // the name of the question
        bytes.extend([0xc0, HEADER as u8]);
        bytes.extend(kind.to_be_bytes());
        bytes.extend(CLASS_IN);
        bytes.extend(ttl_s.to_be_bytes());
        bytes.extend((octets.len() as u16).to_be_bytes());
        bytes.extend(octets);
    }
    if bytes.len() > limit {
        bytes.truncate(question_end);
        bytes[2] |= 0x02;
        count = 0;
    }
    bytes[6..8].copy_from_slice(&count.to_be_bytes());
    is_same_name(&asked, &bytes).then_some(bytes)
}

/// The class of the internet, on the wire.
const CLASS_IN: [u8; 2] = [0, 1];

/// Parses a standard query or its answer, with exactly one question; `None` for other messages. If
/// an answer was cut off, it has the records before the cut.
pub fn parse(bytes: &[u8]) -> Option<Message> {
    let header = Header::parse(bytes)?;
    if header.questions != 1 || !header.is_query {
        return None;
    }
    let (name, at) = read_name(bytes, HEADER)?;
    let kind = u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?);
    let mut message = Message {
        header,
        name,
        kind,
        records: Vec::new(),
        is_whole: true,
    };
    let mut at = at + 4;
    if header.is_answer {
        for _ in 0..header.answers.min(MAX_RECORDS) {
            let Some((record, next)) = read_record(bytes, at) else {
                message.is_whole = false;
                break;
            };
            message.records.push(record);
            at = next;
        }
    }
    Some(message)
}

/// A record, and the offset after it.
fn read_record(bytes: &[u8], start: usize) -> Option<(Record, usize)> {
    let (name, at) = read_name(bytes, start)?;
    let head: &[u8; 10] = bytes.get(at..)?.first_chunk()?;
    let kind = u16::from_be_bytes([head[0], head[1]]);
    let at = at + head.len();
    let end = at + usize::from(u16::from_be_bytes([head[8], head[9]]));
    let data = bytes.get(at..end)?;
    let address = match (kind, data.len()) {
        (A, 4) => data.first_chunk::<4>().copied().map(IpAddr::from),
        (AAAA, 16) => data.first_chunk::<16>().copied().map(IpAddr::from),
        _ => None,
    };
    let data = match address {
        Some(address) => RecordData::Address(address),
        None if kind == CNAME => match read_name(bytes, at) {
            Some((alias, after)) if after <= end => RecordData::Alias(alias),
            _ => RecordData::Other,
        },
        None => RecordData::Other,
    };
    let ttl_s = u32::from_be_bytes([head[4], head[5], head[6], head[7]]);
    Some((Record { name, ttl_s, data }, end))
}

/// A name in lower case, and the offset after it.
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
            (question.name.as_str(), question.header.is_answer),
            ("www.example", false)
        );
        let answer = parse(&answer()).unwrap();
        assert!(answer.addresses().eq([IpAddr::from([192, 0, 2, 7])]));
        assert_eq!((answer.ttl_s(), answer.is_whole), (Some(300), true));
    }

    #[test]
    fn a_cut_is_reported_and_a_loop_of_pointers_is_refused() {
        let whole = answer();
        for len in 0..whole.len() {
            let cut = parse(&whole[..len]);
            assert!(cut.is_none_or(|message| !message.is_whole));
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

    #[test]
    fn an_alias_has_its_name() {
        let mut bytes = answer();
        bytes[7] = 2;
        bytes.extend(b"\xc0\x0c\0\x05\0\x01\0\0\0\x07\0\x04\x01b\xc0\x10");
        let alias = parse(&bytes).unwrap().records.pop().unwrap();
        assert_eq!(alias.data, RecordData::Alias("b.example".to_owned()));
        assert_eq!((alias.name.as_str(), alias.ttl_s), ("www.example", 7));
    }

    #[test]
    fn an_invalid_name_has_no_query() {
        assert_eq!(query(1, "a..b", A), None);
        assert_eq!(query(1, &"a".repeat(64), A), None);
        assert_eq!(query(1, &["a"; 128].join("."), A), None);
        assert!(query(1, &["a"; 127].join("."), A).is_some());
        assert_eq!(
            query(0x1234, "WWW.example", A).unwrap()[12..],
            QUESTION[12..]
        );
    }

    #[test]
    fn a_response_has_the_addresses_of_the_type_asked_for() {
        let all = ["192.0.2.7", "2001:db8::7", "192.0.2.8"].map(|text| text.parse().unwrap());
        let content = ResponseContent::Addresses(&all, 300);
        for (kind, wanted) in [
            (A, vec![all[0], all[2]]),
            (AAAA, vec![all[1]]),
            (CNAME, vec![]),
        ] {
            let question = query(0x1234, "www.example", kind).unwrap();
            let bytes = respond(&question, content, MAX_UDP).unwrap();
            let read = parse(&bytes).unwrap();
            assert_eq!((read.header.id, read.header.is_answer), (0x1234, true));
            assert_eq!((read.name.as_str(), read.kind), ("www.example", kind));
            assert_eq!(read.addresses().collect::<Vec<_>>(), wanted);
            assert_eq!(read.ttl_s(), (!wanted.is_empty()).then_some(300));
            assert_eq!((read.is_whole, read.error()), (true, None));
        }
    }

    #[test]
    fn a_response_is_an_error_truncated_or_not_given() {
        let question = query(7, "www.example", A).unwrap();
        for (code, name) in [
            (SERVFAIL, "SERVFAIL"),
            (NXDOMAIN, "NXDOMAIN"),
            (REFUSED, "REFUSED"),
        ] {
            let bytes = respond(&question, ResponseContent::Error(code), MAX_UDP).unwrap();
            assert_eq!(parse(&bytes).unwrap().error(), Some(name));
        }
        let many = [IpAddr::from([192, 0, 2, 7]); 40];
        let content = ResponseContent::Addresses(&many, 1);
        let short = parse(&respond(&question, content, MAX_UDP).unwrap()).unwrap();
        assert!(short.header.is_truncated && short.records.is_empty());
        let long = parse(&respond(&question, content, usize::MAX).unwrap()).unwrap();
        assert_eq!((long.header.is_truncated, long.records.len()), (false, 40));
        assert_eq!(respond(&answer(), content, MAX_UDP), None);
        assert_eq!(respond(b"", content, MAX_UDP), None);
    }

    proptest! {
        #[test]
        fn arbitrary_questions_have_responses_that_are_read(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            let content = ResponseContent::Addresses(&[IpAddr::V4(std::net::Ipv4Addr::LOCALHOST)], 7);
            if let Some(response) = respond(&bytes, content, MAX_UDP) {
                let read = parse(&response).unwrap();
                prop_assert!(read.header.is_answer && read.is_whole);
                prop_assert_eq!(read.name, parse(&bytes).unwrap().name);
            }
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            if let Some(message) = parse(&bytes) {
                prop_assert!(message.name.len() <= MAX_NAME);
                prop_assert!(message.records.len() <= usize::from(MAX_RECORDS));
            }
        }

        #[test]
        fn every_name_reads_back(name in "[a-z0-9-]{1,20}(\\.[a-z0-9-]{1,20}){0,5}") {
            let bytes = query(7, &name, AAAA).unwrap();
            let read = parse(&bytes).unwrap();
            prop_assert_eq!((read.name, read.kind), (name, AAAA));
        }
    }
}
