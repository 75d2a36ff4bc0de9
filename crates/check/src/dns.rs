//! Questions to a name server, asked by our own hand: getaddrinfo tells neither TTL nor aliases.

use hickory_proto::op::{Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::{DNSClass, Name, RData, RecordType};
use intact_ledger::server_profile::NameAnswer;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// How long one try waits.
const PATIENCE: Duration = Duration::from_secs(1);
/// Tries.
const TRIES: u32 = 2;
/// The longest answer that is taken, in bytes.
const LONGEST: usize = 4096;
/// Aliases that are followed.
const MOST_ALIASES: usize = 16;

/// The first name server that the system is set to ask.
pub(crate) fn system_server() -> Option<SocketAddr> {
    server_in(&std::fs::read_to_string("/etc/resolv.conf").ok()?)
}

fn server_in(resolv_conf: &str) -> Option<SocketAddr> {
    resolv_conf
        .lines()
        .filter_map(|line| line.trim().strip_prefix("nameserver"))
        .find_map(|rest| rest.trim().parse::<IpAddr>().ok())
        .map(|server| SocketAddr::new(server, 53))
}

/// Asks for the addresses of one family; the error is in words.
pub(crate) fn ask(server: SocketAddr, name: &str, v6: bool) -> Result<NameAnswer, String> {
    let kind = if v6 { RecordType::AAAA } else { RecordType::A };
    let name = Name::from_ascii(format!("{}.", name.trim_end_matches('.')))
        .map_err(|error| error.to_string())?;
    let local: SocketAddr = if server.is_ipv6() {
        (std::net::Ipv6Addr::UNSPECIFIED, 0).into()
    } else {
        (std::net::Ipv4Addr::UNSPECIFIED, 0).into()
    };
    let words = |error: std::io::Error| error.to_string();
    let socket = UdpSocket::bind(local).map_err(words)?;
    socket.connect(server).map_err(words)?;
    let question = question(&name, kind);
    let bytes = question.to_vec().map_err(|error| error.to_string())?;
    let mut trouble = "no answer in time".to_owned();
    for _ in 0..TRIES {
        socket.send(&bytes).map_err(words)?;
        match answer(&socket, &question, &name, kind) {
            Ok(answer) => return answer,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) => trouble = error.to_string(),
        }
    }
    Err(trouble)
}

/// Waits for the answer to this question; what belongs to another one is let pass, because anybody may send to us.
fn answer(
    socket: &UdpSocket,
    question: &Message,
    name: &Name,
    kind: RecordType,
) -> std::io::Result<Result<NameAnswer, String>> {
    let mut buffer = [0; LONGEST];
    let until = Instant::now() + PATIENCE;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        socket.set_read_timeout(Some(left))?;
        let count = socket.recv(&mut buffer)?;
        if let Some(answer) = read(&buffer[..count], question, name, kind) {
            return Ok(answer);
        }
    }
}

fn question(name: &Name, kind: RecordType) -> Message {
    let mut query = Query::query(name.clone(), kind);
    query.set_query_class(DNSClass::IN);
    let mut message = Message::query();
    message.metadata.op_code = OpCode::Query;
    message.metadata.recursion_desired = true;
    message.add_query(query);
    message
}

/// Reads bytes as the answer to a question for the addresses of a name, as if its id were the one that was sent; for fuzzing.
pub fn read_any(bytes: &[u8], name: &str, v6: bool) -> Option<Result<NameAnswer, String>> {
    let kind = if v6 { RecordType::AAAA } else { RecordType::A };
    let name = Name::from_ascii(name).ok()?;
    let mut question = question(&name, kind);
    question.metadata.id = u16::from_be_bytes([*bytes.first()?, *bytes.get(1)?]);
    read(bytes, &question, &name, kind)
}

/// What an answer says; `None` where it does not belong to the question.
fn read(
    bytes: &[u8],
    question: &Message,
    name: &Name,
    kind: RecordType,
) -> Option<Result<NameAnswer, String>> {
    let message = Message::from_vec(bytes).ok()?;
    if message.metadata.id != question.metadata.id
        || message.metadata.message_type != MessageType::Response
    {
        return None;
    }
    if message.metadata.response_code != ResponseCode::NoError {
        return Some(Err(message.metadata.response_code.to_str().to_owned()));
    }
    let mut told = NameAnswer::default();
    let mut at = name.clone();
    let mut shortest: Option<u32> = None;
    // the records of a chain may come in any order, and a hostile one may lead in circles
    while told.aliases.len() < MOST_ALIASES {
        let next = message
            .answers
            .iter()
            .find_map(|record| match &record.data {
                RData::CNAME(alias) if record.name == at => Some((alias.0.clone(), record.ttl)),
                _ => None,
            });
        let Some((alias, ttl)) = next else { break };
        shortest = Some(shortest.map_or(ttl, |least| least.min(ttl)));
        told.aliases
            .push(alias.to_ascii().trim_end_matches('.').to_owned());
        at = alias;
    }
    for record in &message.answers {
        let address = match &record.data {
            RData::A(v4) if kind == RecordType::A => IpAddr::V4(v4.0),
            RData::AAAA(v6) if kind == RecordType::AAAA => IpAddr::V6(v6.0),
            _ => continue,
        };
        if record.name == at {
            shortest = Some(shortest.map_or(record.ttl, |least| least.min(record.ttl)));
            told.addresses.push(address);
        }
    }
    told.ttl_s = shortest;
    Some(Ok(told))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hickory_proto::rr::Record;
    use hickory_proto::rr::rdata::{A, CNAME};
    use proptest::prelude::*;

    fn name(text: &str) -> Name {
        Name::from_ascii(text).unwrap()
    }

    fn answer_with(records: Vec<Record>) -> (Message, Vec<u8>) {
        let question = question(&name("a."), RecordType::A);
        let mut answer = question.clone();
        answer.metadata.message_type = MessageType::Response;
        answer.answers = records;
        let bytes = answer.to_vec().unwrap();
        (question, bytes)
    }

    #[test]
    fn aliases_are_followed_and_the_smallest_ttl_is_told() {
        let (question, bytes) = answer_with(vec![
            Record::from_rdata(name("c."), 7, RData::A(A::new(192, 0, 2, 1))),
            Record::from_rdata(name("x."), 1, RData::A(A::new(192, 0, 2, 9))),
            Record::from_rdata(name("a."), 300, RData::CNAME(CNAME(name("b.")))),
            Record::from_rdata(name("b."), 60, RData::CNAME(CNAME(name("c.")))),
        ]);
        let told = read(&bytes, &question, &name("a."), RecordType::A)
            .unwrap()
            .unwrap();
        assert_eq!(told.aliases, ["b", "c"]);
        assert_eq!(told.addresses, ["192.0.2.1".parse::<IpAddr>().unwrap()]);
        assert_eq!(told.ttl_s, Some(7));
    }

    /// A name server that sends each of these for a question, its id in the first two bytes; how often it was asked.
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
    fn a_lost_question_is_asked_again_and_what_nobody_asked_for_is_let_pass() {
        let (_, mut good) = answer_with(vec![Record::from_rdata(
            name("a."),
            30,
            RData::A(A::new(192, 0, 2, 1)),
        )]);
        good[..2].fill(0);
        let mut foreign = good.clone();
        foreign[..2].fill(0xff);
        let junk = vec![0, 0, 7];
        let (server, asked) = scripted(vec![vec![], vec![foreign, junk, good]]);
        let told = ask(server, "a", false).unwrap();
        assert_eq!(told.ttl_s, Some(30));
        assert_eq!(told.addresses.len(), 1);
        assert_eq!(asked.join().unwrap(), 2);
    }

    #[test]
    fn a_name_that_is_not_there_is_an_error_in_words() {
        let (_, mut bytes) = answer_with(Vec::new());
        bytes[..2].fill(0);
        bytes[3] |= 3;
        let (server, asked) = scripted(vec![vec![bytes]]);
        assert_eq!(ask(server, "a", true).unwrap_err(), "Non-Existent Domain");
        assert_eq!(asked.join().unwrap(), 1);
    }

    #[test]
    fn aliases_in_a_circle_come_to_an_end() {
        let (question, bytes) = answer_with(vec![
            Record::from_rdata(name("a."), 1, RData::CNAME(CNAME(name("b.")))),
            Record::from_rdata(name("b."), 1, RData::CNAME(CNAME(name("a.")))),
        ]);
        let told = read(&bytes, &question, &name("a."), RecordType::A)
            .unwrap()
            .unwrap();
        assert_eq!(told.aliases.len(), MOST_ALIASES);
        assert!(told.addresses.is_empty());
    }

    #[test]
    fn an_answer_with_another_id_is_not_taken() {
        let (_, bytes) = answer_with(Vec::new());
        let mut other = question(&name("a."), RecordType::A);
        other.metadata.id = other.metadata.id.wrapping_add(1);
        let mut bytes = bytes;
        bytes[0] ^= 0xff;
        assert!(read(&bytes, &other, &name("a."), RecordType::A).is_none());
    }

    #[test]
    fn the_first_name_server_is_asked() {
        let text = "# nameserver 192.0.2.9\nsearch x\nnameserver 192.0.2.1\nnameserver ::1\n";
        assert_eq!(server_in(text), Some("192.0.2.1:53".parse().unwrap()));
        assert_eq!(server_in("options x"), None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let told = read_any(&bytes, "a.", false);
            prop_assert!(told.is_none() || bytes.len() >= 12, "a header has twelve bytes");
        }
    }
}
