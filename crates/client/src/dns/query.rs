//! Queries a name server directly, over UDP: getaddrinfo(3) reports neither TTL nor aliases.
//! Blocks; does not choose a server.

use intact_ledger::server_profile::NameAnswer;
use intact_wire::dns::{self, A, AAAA, Header, RecordData};
use std::hash::{BuildHasher, RandomState};
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// The longest accepted answer, in bytes.
const LONGEST: usize = 4096;
/// The maximum of aliases to follow.
const MOST_ALIASES: usize = 16;

/// A question for the addresses of a name.
struct Question {
    id: u16,
    /// In lower case, without the final dot.
    name: String,
    v6: bool,
}

/// Why a query has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// The name cannot be sent.
    #[error("a label of the name is empty or too long")]
    Name,
    /// Nothing came in time.
    #[error("no answer in time")]
    NoAnswer,
    /// The server answered with this code other than 0.
    #[error("{}", error(*.0))]
    Code(u8),
    /// The answer is longer than a datagram.
    #[error("the answer is longer than a datagram")]
    Truncated,
    /// The socket failed.
    #[error("{0}")]
    Socket(String),
}

impl From<std::io::Error> for QueryError {
    fn from(error: std::io::Error) -> QueryError {
        match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => QueryError::NoAnswer,
            _ => QueryError::Socket(error.to_string()),
        }
    }
}

/// The timeout and the number of queries to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// The timeout of one try.
    pub timeout: Duration,
    /// Tries.
    pub tries: u32,
}

/// The answer for one family.
pub type Answer = Result<NameAnswer, QueryError>;

/// Queries the addresses of several families at the same time. Each value of `v6` selects IPv6
/// (true) or IPv4; the answers are in the same order.
pub fn ask<const N: usize>(
    server: SocketAddr,
    name: &str,
    v6: [bool; N],
    patience: Patience,
) -> [Answer; N] {
    // the keys of the standard library's maps are random
    let id = RandomState::new().hash_one(name) as u16;
    let mut open = v6.map(|v6| OpenQuestion {
        question: Question {
            id: id.wrapping_add(u16::from(v6)),
            name: name.trim_end_matches('.').to_ascii_lowercase(),
            v6,
        },
        answer: None,
    });
    let asked = ask_open(server, &mut open, patience);
    let error = asked.err().unwrap_or(QueryError::NoAnswer);
    open.map(|one| one.answer.unwrap_or_else(|| Err(error.clone())))
}

/// A question and its answer, when that has arrived.
struct OpenQuestion {
    question: Question,
    answer: Option<Answer>,
}

/// Sends the unanswered queries and waits, until all have an answer or no try is left.
fn ask_open(
    server: SocketAddr,
    open: &mut [OpenQuestion],
    patience: Patience,
) -> Result<(), QueryError> {
    let local: SocketAddr = if server.is_ipv6() {
        (std::net::Ipv6Addr::UNSPECIFIED, 0).into()
    } else {
        (std::net::Ipv4Addr::UNSPECIFIED, 0).into()
    };
    let socket = UdpSocket::bind(local)?;
    socket.connect(server)?;
    let mut last_error = QueryError::NoAnswer;
    for _ in 0..patience.tries {
        for OpenQuestion { question, answer } in &*open {
            if answer.is_none() {
                let kind = if question.v6 { AAAA } else { A };
                let bytes = dns::query(question.id, &question.name, kind);
                socket.send(&bytes.ok_or(QueryError::Name)?)?;
            }
        }
        match receive(&socket, open, patience.timeout) {
            Ok(()) => return Ok(()),
            Err(error) => last_error = error.into(),
        }
    }
    Err(last_error)
}

/// Waits until each question has its answer. Other datagrams are ignored, because any process may
/// send one.
fn receive(
    socket: &UdpSocket,
    open: &mut [OpenQuestion],
    timeout: Duration,
) -> std::io::Result<()> {
    let mut buffer = [0; LONGEST];
    let until = Instant::now() + timeout;
    while open.iter().any(|one| one.answer.is_none()) {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        socket.set_read_timeout(Some(left))?;
        let count = socket.recv(&mut buffer)?;
        for OpenQuestion { question, answer } in &mut *open {
            if answer.is_none() {
                *answer = read(&buffer[..count], question);
            }
        }
    }
    Ok(())
}

/// Reads bytes as the answer to a question for the addresses of a name, with any id. For fuzzing.
pub fn read_any(bytes: &[u8], name: &str, v6: bool) -> Option<Answer> {
    let question = Question {
        id: Header::parse(bytes)?.id,
        name: name.trim_end_matches('.').to_owned(),
        v6,
    };
    read(bytes, &question)
}

/// The content of an answer; `None` if it does not belong to the question.
fn read(bytes: &[u8], question: &Question) -> Option<Answer> {
    let header = Header::parse(bytes)?;
    if header.id != question.id || !header.is_answer {
        return None;
    }
    if header.code != 0 {
        return Some(Err(QueryError::Code(header.code)));
    }
    if header.is_truncated {
        return Some(Err(QueryError::Truncated));
    }
    let message = dns::parse(bytes).filter(|message| message.is_whole)?;
    let mut found = NameAnswer::default();
    let mut at = question.name.as_str();
    let mut shortest: Option<u32> = None;
    let mut keep = |ttl: u32| shortest = Some(shortest.map_or(ttl, |least| least.min(ttl)));
    // the records of a chain may come in any order, and a hostile chain may be a cycle
    while found.aliases.len() < MOST_ALIASES {
        let next = message
            .records
            .iter()
            .find_map(|record| match &record.data {
                RecordData::Alias(alias) if record.name == at => Some((alias, record.ttl_s)),
                _ => None,
            });
        let Some((alias, ttl_s)) = next else { break };
        keep(ttl_s);
        found.aliases.push(alias.clone());
        at = alias;
    }
    for record in message.records.iter().filter(|record| record.name == at) {
        if let RecordData::Address(address) = record.data
            && address.is_ipv6() == question.v6
        {
            keep(record.ttl_s);
            found.addresses.push(address);
        }
    }
    found.ttl_s = shortest;
    Some(Ok(found))
}

/// The name of a response code (RFC 1035 section 4.1.1, RFC 2136 section 2.2).
fn error(code: u8) -> &'static str {
    match code {
        1 => "Form Error",
        2 => "Server Failure",
        3 => "Non-Existent Domain",
        4 => "Not Implemented",
        5 => "Query Refused",
        6 => "Name should not exist",
        7 => "RR Set should not exist",
        8 => "RR Set does not exist",
        9 => "Not authorized",
        10 => "Name not in zone",
        _ => "Unknown response code",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::IpAddr;

    const PATIENCE: Patience = Patience {
        timeout: Duration::from_secs(1),
        tries: 2,
    };

    fn question(id: u16) -> Question {
        Question {
            id,
            name: "a".to_owned(),
            v6: false,
        }
    }

    /// A record of a one-letter name: an address, or an alias of one letter.
    fn record(name: &str, ttl_s: u32, data: Result<[u8; 4], &str>) -> Vec<u8> {
        let wire = |name: &str| [&[1], name.as_bytes(), &[0]].concat();
        let (kind, data) = match data {
            Ok(address) => (A, address.to_vec()),
            Err(alias) => (dns::CNAME, wire(alias)),
        };
        let mut bytes = wire(name);
        bytes.extend(kind.to_be_bytes());
        bytes.extend([0, 1]);
        bytes.extend(ttl_s.to_be_bytes());
        bytes.extend((data.len() as u16).to_be_bytes());
        bytes.extend(data);
        bytes
    }

    /// The answer to question 0 for the addresses of `a`.
    fn answer_with(records: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = dns::query(0, "a", A).unwrap();
        bytes[2] |= 0x80;
        bytes[7] = records.len() as u8;
        bytes.extend(records.concat());
        bytes
    }

    #[test]
    fn aliases_are_followed_and_the_smallest_ttl_is_reported() {
        let bytes = answer_with(&[
            record("c", 7, Ok([192, 0, 2, 1])),
            record("x", 1, Ok([192, 0, 2, 9])),
            record("a", 300, Err("b")),
            record("b", 60, Err("c")),
        ]);
        let answer = read(&bytes, &question(0)).unwrap().unwrap();
        assert_eq!(answer.aliases, ["b", "c"]);
        assert_eq!(answer.addresses, ["192.0.2.1".parse::<IpAddr>().unwrap()]);
        assert_eq!(answer.ttl_s, Some(7));
    }

    /// A name server that sends all of these for a question, with its id in the first two bytes.
    /// Returns its address and the number of questions.
    fn scripted(answers: Vec<Vec<Vec<u8>>>) -> (SocketAddr, std::thread::JoinHandle<usize>) {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let serve = move || {
            let asked = answers.len();
            for answers in answers {
                let mut buffer = [0; 512];
                let (_, client) = socket.recv_from(&mut buffer).unwrap();
                for mut answer in answers {
                    for (byte, id) in answer.iter_mut().zip(&buffer[..2]) {
                        *byte ^= id;
                    }
                    socket.send_to(&answer, client).unwrap();
                }
            }
            asked
        };
        (address, std::thread::spawn(serve))
    }

    #[test]
    fn a_lost_question_is_asked_again_and_other_datagrams_are_ignored() {
        let good = answer_with(&[record("a", 30, Ok([192, 0, 2, 1]))]);
        let mut foreign = good.clone();
        foreign[..2].fill(0xff);
        let junk = vec![0, 0, 7];
        let (server, asked) = scripted(vec![vec![], vec![foreign, junk, good]]);
        let [answer] = ask(server, "a", [false], PATIENCE);
        let answer = answer.unwrap();
        assert_eq!(answer.ttl_s, Some(30));
        assert_eq!(answer.addresses.len(), 1);
        assert_eq!(asked.join().unwrap(), 2);
    }

    #[test]
    fn a_name_that_is_not_there_is_an_error_in_words() {
        let mut bytes = answer_with(&[]);
        bytes[3] |= 3;
        let (server, asked) = scripted(vec![vec![bytes]]);
        let [answer] = ask(server, "a", [true], PATIENCE);
        assert_eq!(answer.unwrap_err().to_string(), "Non-Existent Domain");
        assert_eq!(asked.join().unwrap(), 1);
    }

    #[test]
    fn aliases_in_a_circle_come_to_an_end() {
        let bytes = answer_with(&[record("a", 1, Err("b")), record("b", 1, Err("a"))]);
        let answer = read(&bytes, &question(0)).unwrap().unwrap();
        assert_eq!(answer.aliases.len(), MOST_ALIASES);
        assert!(answer.addresses.is_empty());
    }

    #[test]
    fn an_answer_with_another_id_is_not_taken() {
        let bytes = answer_with(&[]);
        assert!(read(&bytes, &question(0)).is_some());
        assert!(read(&bytes, &question(1)).is_none());
    }

    #[test]
    fn an_answer_that_is_cut_short_is_not_taken_and_an_error_without_a_question_is() {
        let bytes = answer_with(&[record("a", 30, Ok([192, 0, 2, 1]))]);
        assert!(read(&bytes[..bytes.len() - 1], &question(0)).is_none());
        let refused = [0, 0, 0x80, 5, 0, 0, 0, 0, 0, 0, 0, 0];
        let error = read(&refused, &question(0)).unwrap().unwrap_err();
        assert_eq!(error, QueryError::Code(5));
    }

    #[test]
    fn each_family_has_its_own_answer() {
        let four = answer_with(&[record("a", 30, Ok([192, 0, 2, 1]))]);
        let mut six = answer_with(&[]);
        six[3] |= 2;
        let (server, asked) = scripted(vec![vec![six], vec![four]]);
        let [six, four] = ask(server, "a", [true, false], PATIENCE);
        assert_eq!(six, Err(QueryError::Code(2)));
        assert_eq!(four.unwrap().ttl_s, Some(30));
        assert_eq!(asked.join().unwrap(), 2);
    }

    #[test]
    fn an_answer_that_did_not_fit_is_an_error() {
        let mut bytes = answer_with(&[]);
        bytes[2] |= 2;
        assert_eq!(read(&bytes, &question(0)), Some(Err(QueryError::Truncated)));
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let answer = read_any(&bytes, "a.", false);
            prop_assert!(answer.is_none() || bytes.len() >= 12, "a header has twelve bytes");
        }
    }
}
