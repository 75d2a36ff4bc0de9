//! What every reader needs to write events: the sink, the time base, the next free ids.

use intact_ledger::{Caveat, Close, Closed, ConnectionId, Event, FingerprintKey, Nanos, Sink};
use intact_observe::KnownServers;
use intact_units::number;
use intact_wire::tls::decrypt::KeyLog;

/// A caveat about a limit of the result: the number of cases, its id, and the text after the
/// number.
pub(crate) type Limit<'a> = (u64, &'a str, &'a str);

/// What all inputs of an audit share.
pub(crate) struct RunState {
    /// The last id of a connection. Ids are unique over all inputs.
    pub(crate) connections: u64,
    /// The last id of an exchange.
    pub(crate) exchanges: u64,
    /// Whether a connection or an exchange was recorded. Not every id is used.
    pub(crate) any_recorded: bool,
    pub(crate) servers: KnownServers,
    pub(crate) key: FingerprintKey,
    /// TLS secrets that are known so far.
    pub(crate) keys: KeyLog,
    /// Nanosecond 0 of the run, in nanoseconds since 1970.
    pub(crate) base: u64,
}

/// Writes events to the sink.
pub(crate) struct EventWriter<'a> {
    pub(crate) sink: &'a mut dyn Sink,
    pub(crate) run: &'a mut RunState,
}

impl EventWriter<'_> {
    /// Converts nanoseconds since 1970 to the run's clock. A time before the base becomes 0.
    pub(crate) fn nanos(&self, wall: u64) -> Nanos {
        Nanos(wall.saturating_sub(self.run.base))
    }

    /// The id of the next connection, from 1.
    pub(crate) fn next_connection(&mut self) -> ConnectionId {
        self.run.connections += 1;
        ConnectionId(self.run.connections)
    }

    /// The id of the next exchange, from 1.
    pub(crate) fn next_exchange(&mut self) -> u64 {
        self.run.exchanges += 1;
        self.run.exchanges
    }

    /// Records one event.
    pub(crate) fn record(&mut self, event: Event<'_>) {
        self.run.any_recorded |= matches!(event, Event::Opened(_) | Event::Exchange(_));
        self.sink.record(event);
    }

    /// Records the end of a connection.
    pub(crate) fn close(&mut self, connection: ConnectionId, close: Close) {
        let closed = Closed {
            connection,
            variant: None,
            round: None,
            close,
        };
        self.record(Event::Closed(&closed));
    }

    /// Records each limit that was met with [`EventWriter::caveat`]; `subject` begins its sentence.
    pub(crate) fn caveats(&mut self, subject: &str, limits: &[Limit<'_>]) {
        for (count, id, words) in limits.iter().filter(|(count, ..)| *count > 0) {
            self.caveat(id, format!("{subject}{}", agreeing(*count, words)));
        }
    }

    /// Records each limit that was met with [`EventWriter::incomplete`]; `subject` begins its
    /// sentence.
    pub(crate) fn incompletes(&mut self, subject: &str, limits: &[Limit<'_>]) {
        for (count, id, words) in limits.iter().filter(|(count, ..)| *count > 0) {
            self.incomplete(id, format!("{subject}{}", agreeing(*count, words)));
        }
    }

    /// Records that requests are missing from the ledger, while all connections are in it.
    pub(crate) fn incomplete_requests(&mut self, id: &str, words: String) {
        self.sink
            .record(Event::Caveat(&Caveat::incomplete_requests(id, words)));
    }

    /// Records that connections are missing from the ledger, while all requests are in it.
    pub(crate) fn incomplete_connections(&mut self, id: &str, words: String) {
        self.sink
            .record(Event::Caveat(&Caveat::incomplete_connections(id, words)));
    }

    /// Records a limit of the result, while all traffic is in the ledger.
    pub(crate) fn caveat(&mut self, id: &str, words: String) {
        self.sink.record(Event::Caveat(&Caveat::new(id, words)));
    }

    /// Records that traffic is missing from the ledger, so counts are lower bounds.
    pub(crate) fn incomplete(&mut self, id: &str, words: String) {
        self.sink
            .record(Event::Caveat(&Caveat::incomplete(id, words)));
    }
}

/// `count` followed by `words`. The first two words are a noun and a verb in the plural; a count of
/// 1 makes both singular.
pub(crate) fn agreeing(count: u64, words: &str) -> String {
    let mut parts = words.splitn(3, ' ');
    let (Some(noun), Some(verb), Some(rest), 1) = (parts.next(), parts.next(), parts.next(), count)
    else {
        return format!("{} {words}", number::count(count));
    };
    let noun = noun.strip_suffix('s').unwrap_or(noun);
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
    }
}
