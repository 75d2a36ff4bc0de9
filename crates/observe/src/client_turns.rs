//! The times of the client's bytes, to find which requests the server had acknowledged when it
//! ended the connection.
//!
//! It counts bytes of the transport, because requests within TLS have no offsets in them. Must not
//! keep more than a few turns.

use crate::Side;
use intact_ledger::Nanos;
use std::collections::VecDeque;

/// Limit of turns. Bytes that the server had not acknowledged at its end are in the last ones.
const MOST: usize = 16;

/// The turns of the client: the bytes that it sent between two pieces of the server's.
#[derive(Debug, Default)]
pub(crate) struct ClientTurns {
    /// Number of bytes before each turn, and its start.
    starts: VecDeque<(u64, Nanos)>,
    /// The last turn continues.
    is_open: bool,
}

/// The requests that the server's TCP had acknowledged when it ended the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Acknowledged {
    /// That was not observed.
    #[default]
    Unknown,
    /// All of them.
    All,
    /// Those that began before this time.
    Before(Nanos),
    /// Those that began before this time, and perhaps later ones.
    AtLeastBefore(Nanos),
}

impl ClientTurns {
    /// Records a piece `from` one side; the client had sent `sent_before` bytes before.
    pub(crate) fn note(&mut self, from: Side, sent_before: u64, at: Nanos) {
        if from == Side::Client && !self.is_open {
            if self.starts.len() == MOST {
                self.starts.pop_front();
            }
            self.starts.push_back((sent_before, at));
        }
        self.is_open = from == Side::Client;
    }

    /// The requests that an acknowledgement of this number of bytes covers. A turn counts as
    /// covered if one of its bytes is.
    pub(crate) fn acknowledged(&self, bytes: u64) -> Acknowledged {
        let open = self.starts.iter().find(|(before, _)| *before >= bytes);
        open.map_or(Acknowledged::All, |(_, at)| Acknowledged::Before(*at))
    }
}

impl Acknowledged {
    /// The same, if more may have been acknowledged.
    pub(crate) fn at_least(self) -> Acknowledged {
        match self {
            Acknowledged::Before(at) => Acknowledged::AtLeastBefore(at),
            other => other,
        }
    }

    /// Whether it covers a byte of a request that began at `started`.
    pub(crate) fn covers(self, started: Nanos) -> Option<bool> {
        match self {
            Acknowledged::Unknown => None,
            Acknowledged::All => Some(true),
            Acknowledged::Before(at) => Some(started < at),
            Acknowledged::AtLeastBefore(at) => (started < at).then_some(true),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Side::{Client, Server};

    #[test]
    fn an_acknowledgement_covers_the_turns_with_an_acknowledged_byte() {
        let mut turns = ClientTurns::default();
        for (from, before, at) in [
            (Client, 0, 1),
            (Client, 50, 2),
            (Server, 0, 3),
            (Client, 100, 4),
        ] {
            turns.note(from, before, Nanos(at));
        }
        let covers = |bytes: u64| {
            let acknowledged = turns.acknowledged(bytes);
            [1, 2, 4].map(|started| acknowledged.covers(Nanos(started)))
        };
        assert_eq!(covers(0), [Some(false); 3]);
        // the rest of a turn may have arrived with it
        assert_eq!(covers(50), [Some(true), Some(true), Some(false)]);
        assert_eq!(covers(100), [Some(true), Some(true), Some(false)]);
        assert_eq!(covers(101), [Some(true); 3]);
        let at_least = turns.acknowledged(50).at_least();
        assert_eq!(at_least.covers(Nanos(2)), Some(true));
        assert_eq!(at_least.covers(Nanos(4)), None);
        assert_eq!(Acknowledged::Unknown.covers(Nanos(1)), None);
    }

    #[test]
    fn only_the_last_turns_are_kept() {
        let mut turns = ClientTurns::default();
        for nth in 0..100 {
            turns.note(Client, nth * 10, Nanos(nth));
            turns.note(Server, nth * 10, Nanos(nth));
        }
        assert_eq!(turns.starts.len(), MOST);
        assert_eq!(turns.acknowledged(990).covers(Nanos(98)), Some(true));
        assert_eq!(turns.acknowledged(990).covers(Nanos(99)), Some(false));
    }
}
