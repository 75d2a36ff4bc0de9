//! What every reader needs to write events: the sink, the time base, the next free ids.

use intact_ledger::{Caveat, Close, Closed, ConnectionId, Event, FingerprintKey, Nanos, Sink};
use intact_observe::{KnownServers, LowerBounds};
use intact_units::number;
use intact_wire::tls::decrypt::{KeyLog, SecretCheck};
use std::time::Instant;

/// A caveat about a limit of the result: the number of cases, its id, and the text after the
/// number.
pub type Limit<'a> = (u64, &'a str, &'a str);

/// What all inputs of an audit share.
pub struct RunState {
    /// The last id of a connection. Ids are unique over all inputs.
    pub connections: u64,
    /// The last id of an exchange.
    pub exchanges: u64,
    /// Whether a connection or an exchange was recorded. Not every id is used.
    pub any_recorded: bool,
    /// The products of servers that have been named.
    pub servers: KnownServers,
    /// The key of the fingerprints.
    pub key: FingerprintKey,
    /// TLS secrets that are known so far.
    pub keys: KeyLog,
    /// Where secrets come from while the connections run; `None`: `keys` has all of them.
    pub secrets: Option<Box<dyn SecretSource>>,
    /// Connections whose requests may be more.
    pub lower_bounds: LowerBounds,
    /// Nanosecond 0 of the run, in nanoseconds since 1970.
    pub base: u64,
}

/// Secrets of TLS that come while the connections run.
pub trait SecretSource {
    /// The lines of a key log for a connection that came since the last call.
    fn take(&mut self, client_random: &[u8; 32]) -> Vec<String>;

    /// Starts a search in the memory of a process.
    fn search(&mut self, process: u32, checks: Vec<SecretCheck>);

    /// Whether a search for the secrets of a connection is running.
    fn is_searching(&self, client_random: &[u8; 32]) -> bool;

    /// Waits until then for searches that are running.
    fn settle(&mut self, until: Instant);
}

/// Writes events to the sink.
pub struct EventWriter<'a> {
    /// Where rows go.
    pub sink: &'a mut dyn Sink,
    /// What all inputs share.
    pub run: &'a mut RunState,
}

impl EventWriter<'_> {
    /// Converts nanoseconds since 1970 to the run's clock. A time before the base becomes 0.
    pub fn nanos(&self, wall: u64) -> Nanos {
        Nanos(wall.saturating_sub(self.run.base))
    }

    /// The id of the next connection, from 1.
    pub fn next_connection(&mut self) -> ConnectionId {
        self.run.connections += 1;
        ConnectionId(self.run.connections)
    }

    /// The id of the next exchange, from 1.
    pub fn next_exchange(&mut self) -> u64 {
        self.run.exchanges += 1;
        self.run.exchanges
    }

    /// Records one event.
    pub fn record(&mut self, event: Event<'_>) {
        self.run.any_recorded |= matches!(event, Event::Opened(_) | Event::Exchange(_));
        self.sink.record(event);
    }

    /// Records the end of a connection.
    pub fn close(&mut self, connection: ConnectionId, close: Close) {
        let closed = Closed {
            connection,
            variant: None,
            round: None,
            close,
        };
        self.record(Event::Closed(&closed));
    }

    /// Records each limit that was met with [`EventWriter::caveat`]; `subject` begins its sentence.
    pub fn caveats(&mut self, subject: &str, limits: &[Limit<'_>]) {
        for (count, id, words) in limits.iter().filter(|(count, ..)| *count > 0) {
            self.caveat(id, format!("{subject}{}", agreeing(*count, words)));
        }
    }

    /// Records each limit that was met with [`EventWriter::incomplete`]; `subject` begins its
    /// sentence.
    pub fn incompletes(&mut self, subject: &str, limits: &[Limit<'_>]) {
        for (count, id, words) in limits.iter().filter(|(count, ..)| *count > 0) {
            self.incomplete(id, format!("{subject}{}", agreeing(*count, words)));
        }
    }

    /// Records that requests are missing from the ledger, while all connections are in it.
    pub fn incomplete_requests(&mut self, id: &str, words: String) {
        self.sink
            .record(Event::Caveat(&Caveat::incomplete_requests(id, words)));
    }

    /// Records that connections are missing from the ledger, while all requests are in it.
    pub fn incomplete_connections(&mut self, id: &str, words: String) {
        self.sink
            .record(Event::Caveat(&Caveat::incomplete_connections(id, words)));
    }

    /// Records a limit of the result, while all traffic is in the ledger.
    pub fn caveat(&mut self, id: &str, words: String) {
        self.sink.record(Event::Caveat(&Caveat::new(id, words)));
    }

    /// Records that traffic is missing from the ledger, so counts are lower bounds.
    pub fn incomplete(&mut self, id: &str, words: String) {
        self.sink
            .record(Event::Caveat(&Caveat::incomplete(id, words)));
    }
}

/// `count` followed by `words`. The first two words are a noun and a verb in the plural; a count of
/// 1 makes both singular.
pub fn agreeing(count: u64, words: &str) -> String {
    let mut parts = words.splitn(3, ' ');
    let (Some(noun), Some(verb), Some(rest), 1) = (parts.next(), parts.next(), parts.next(), count)
    else {
        return format!("{} {words}", number::count(count));
    };
    let noun = match noun.strip_suffix("ies") {
        Some(stem) => format!("{stem}y"),
        None => noun.strip_suffix('s').unwrap_or(noun).to_owned(),
    };
    let verb = match verb {
        "are" => "is",
        "were" => "was",
        "have" => "has",
        "lack" => "lacks",
        "use" => "uses",
        "carry" => "carries",
        other => other,
    };
    format!("1 {noun} {verb} {rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_of_one_has_the_singular() {
        let words = "connections were open before the capture began";
        assert_eq!(agreeing(2, words), format!("2 {words}"));
        assert_eq!(
            agreeing(1, words),
            "1 connection was open before the capture began"
        );
        assert_eq!(
            agreeing(1, "requests came on sockets"),
            "1 request came on sockets"
        );
        assert_eq!(agreeing(1, "entries began early"), "1 entry began early");
    }
}
