//! Joins Zeek's logs in order of time. Each log is ordered by ends, and does not refer to the
//! others.
//!
//! Connections are kept until they are recorded. Memory is bounded, and a caveat reports what that
//! costs.

use super::connection::ZeekConnection;
use super::record::{Field, Record};
use super::request::Request;
use super::service::Service;
use crate::event_writer::EventWriter;
use crate::format::Log;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;

/// Limit of connections that are known at the same time.
const MAX_TALKS: usize = 150_000;
/// Limit of requests that wait to be ordered. Zeek writes a line after the response, with the time
/// of the request.
const MAX_WAITING: usize = 32_768;
/// Limit of servers that are known to speak HTTP.
const MAX_SERVERS: usize = 65_536;
/// A connection without a known end is dropped after this silence. Nanoseconds.
const SILENCE: u64 = 300_000_000_000;

/// Caveat for connections that are not in `conn.log`.
const STRAYS: &str = "connections that conn.log does not have (still open when it was cut?): how these ended is not known";
/// Caveat for packets that Zeek lost.
const MISSED: &str =
    "connections Zeek did not see all bytes (missed_bytes): requests in these are not counted";

/// What is due at a time. At the same time, the end of a request comes before the end of its
/// connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Open,
    Answer,
    Close,
    Forget,
}

/// The state of all logs so far.
#[derive(Default)]
pub(crate) struct Joiner {
    /// Boxed, because the table has up to twice as many slots as it uses.
    talks: HashMap<u64, Box<ZeekConnection>>,
    due: BinaryHeap<Reverse<(u64, What, u64)>>,
    /// Requests with the keys of their connections, by time. At the same time, the first line comes
    /// first.
    waiting: BTreeMap<(u64, u64), (u64, Request)>,
    servers: HashSet<SocketAddr>,
    /// Which logs are among the inputs.
    given: [bool; 3],
    known: u64,
    /// Connections that were recorded before all their facts were known.
    hurried: u64,
    /// Requests on connections that are not in `conn.log`.
    strays: u64,
    requests: u64,
    unseen: u64,
    /// Connections with bytes that Zeek did not see.
    with_missing: u64,
}

impl Joiner {
    /// Starts a log of this kind.
    pub(super) fn begin(&mut self, log: Log) {
        self.given[log as usize] = true;
    }

    /// Whether any line was used.
    pub(super) fn knows_anything(&self) -> bool {
        self.known > 0
    }

    /// Reads a line. Returns whether it was used.
    pub(super) fn take(
        &mut self,
        log: Log,
        record: &Record<'_>,
        writer: &mut EventWriter<'_>,
    ) -> bool {
        let Some(uid) = record.text(Field::Uid) else {
            return false;
        };
        let key = key(uid);
        // recorded before all facts are known, the earliest first
        while self.talks.len() >= MAX_TALKS {
            self.hurried += 1;
            self.step(writer);
        }
        match log {
            Log::Connections => self.connection(key, record),
            Log::Tls => self.handshake(key, record),
            Log::Requests => self.request(key, record, writer),
        }
    }

    fn connection(&mut self, key: u64, record: &Record<'_>) -> bool {
        let Some(talk) = ZeekConnection::of(record) else {
            return false;
        };
        self.known += 1;
        if talk.service == Service::Other || self.talks.contains_key(&key) {
            return false;
        }
        if let (Service::Http | Service::Tls, Some(server)) = (talk.service, talk.server()) {
            self.note_server(server);
        }
        self.with_missing += u64::from(talk.missed > 0);
        self.due.push(Reverse((talk.start, What::Open, key)));
        self.talks.insert(key, Box::new(talk));
        true
    }

    fn handshake(&mut self, key: u64, record: &Record<'_>) -> bool {
        let Some(at) = record.start() else {
            return false;
        };
        self.known += 1;
        if !self.talks.contains_key(&key) {
            // no end is known so far
            self.due.push(Reverse((at, What::Open, key)));
            let talk = ZeekConnection::begun(at, record.ends());
            self.talks.insert(key, Box::new(talk));
        }
        if let Some(talk) = self.talks.get_mut(&key) {
            talk.secure(record);
        }
        true
    }

    fn request(&mut self, key: u64, record: &Record<'_>, writer: &mut EventWriter<'_>) -> bool {
        let Some(request) = Request::of(record, writer) else {
            return false;
        };
        self.known += 1;
        if let Some((_, server)) = request.ends {
            self.note_server(server);
        }
        let turn = (request.at, self.known);
        self.waiting.insert(turn, (key, request));
        if self.waiting.len() > MAX_WAITING {
            self.next_request(writer);
        }
        true
    }

    fn note_server(&mut self, server: SocketAddr) {
        if self.servers.len() < MAX_SERVERS {
            self.servers.insert(server);
        }
    }

    /// Assigns the earliest request to its connection.
    fn next_request(&mut self, writer: &mut EventWriter<'_>) {
        let Some(((at, _), (key, request))) = self.waiting.pop_first() else {
            return;
        };
        let before = Reverse((at, What::Answer, 0));
        while self.due.peek().is_some_and(|due| *due > before) {
            self.step(writer);
        }
        self.requests += 1;
        let talk = self.talks.entry(key).or_insert_with(|| {
            self.strays += 1;
            self.due
                .push(Reverse((at.saturating_add(SILENCE), What::Forget, key)));
            Box::new(ZeekConnection::begun(at, request.ends))
        });
        if !talk.is_recorded() {
            talk.open(writer);
        }
        if let Some(due) = talk.carry(request, writer) {
            self.due.push(Reverse((due, What::Answer, key)));
        }
    }

    /// Does the next due step; false if there is none.
    fn step(&mut self, writer: &mut EventWriter<'_>) -> bool {
        let Some(Reverse((at, what, key))) = self.due.pop() else {
            return false;
        };
        let Some(talk) = self.talks.get_mut(&key) else {
            return true;
        };
        match what {
            What::Open => {
                let served = talk
                    .server()
                    .is_some_and(|server| self.servers.contains(&server));
                if !talk.is_recorded() && talk.concerns_us(served) {
                    talk.open(writer);
                }
                let next = match talk.ended_at() {
                    Some(end) => (end, What::Close, key),
                    None => (at.saturating_add(SILENCE), What::Forget, key),
                };
                self.due.push(Reverse(next));
            }
            What::Answer => {
                if let Some(later) = talk.ask_at(at, writer) {
                    self.due.push(Reverse((later, What::Answer, key)));
                }
            }
            What::Forget if talk.seen_at.saturating_add(SILENCE) > at => {
                let later = talk.seen_at.saturating_add(SILENCE);
                self.due.push(Reverse((later, What::Forget, key)));
            }
            What::Close | What::Forget => {
                if let Some(talk) = self.talks.remove(&key) {
                    self.unseen += u64::from(talk.is_recorded() && talk.is_blind());
                    talk.close(writer);
                }
            }
        }
        true
    }

    /// Ends all connections; the logs are complete.
    pub(crate) fn finish(&mut self, writer: &mut EventWriter<'_>) {
        while !self.waiting.is_empty() {
            self.next_request(writer);
        }
        while self.step(writer) {}
        let [connections, _, requests] = self.given;
        if self.known == 0 {
            return;
        }
        if !connections {
            writer.incomplete(
                "zeek-without-connections",
                "without Zeek's conn.log the ends of connections are unknown, and connections without requests are missing. Pass it with the others: intact audit conn.log ssl.log http.log".to_owned(),
            );
        }
        if !requests && self.unseen > 0 {
            writer.caveat(
                "zeek-without-requests",
                "without Zeek's http.log the requests of a connection are unknown. It has the requests that are not encrypted; pass it with the others: intact audit conn.log ssl.log http.log".to_owned(),
            );
        }
        if self.requests > 0 {
            let taken_for = if connections {
                "latencies are unknown. A request counts as active until the next one on its connection or the end of the connection, at most 1 s"
            } else {
                "latencies are unknown"
            };
            writer.caveat(
                "log-without-durations",
                format!("Zeek's http.log does not contain how long a request took: {taken_for}"),
            );
        }
        let strays = if connections { self.strays } else { 0 };
        writer.incompletes("requests came on ", &[(strays, "zeek-strays", STRAYS)]);
        writer.incompletes("of ", &[(self.with_missing, "packets-missing", MISSED)]);
        if self.hurried > 0 {
            writer.caveat(
                "too-many-connections",
                "too many connections for the memory limit: some were recorded before all logs were read, so their later requests count as on other connections. Audit fewer hours per run".to_owned(),
            );
        }
    }
}

/// A hash of a `uid`. It is the same in every run, so the connection ids are, too.
fn key(uid: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    uid.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_request_comes_before_that_of_its_connection() {
        let mut due = BinaryHeap::from([
            Reverse((7, What::Close, 1)),
            Reverse((7, What::Open, 2)),
            Reverse((7, What::Answer, 1)),
        ]);
        let order: Vec<What> = std::iter::from_fn(|| due.pop())
            .map(|Reverse((_, what, _))| what)
            .collect();
        assert_eq!(order, [What::Open, What::Answer, What::Close]);
    }
}
