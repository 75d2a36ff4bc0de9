//! When the client's bytes were sent, as far as it shows which requests the server had acknowledged at its end.
//!
//! It counts bytes of the transport, because requests within TLS have no place in those. Must not keep more than a few turns.

use crate::Side;
use intact_ledger::Nanos;
use std::collections::VecDeque;

/// Turns that are kept. What the server did not acknowledge at its end is in the last ones.
const MOST: usize = 16;

/// The turns of the client: bytes that it sent between two pieces of the server's.
#[derive(Debug, Default)]
pub(crate) struct ClientTurns {
    /// How many bytes went before, and when the turn began.
    starts: VecDeque<(u64, Nanos)>,
    /// The last turn goes on.
    is_open: bool,
}

/// Which requests the server's TCP had acknowledged when it ended the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Acknowledged {
    /// That was not observed.
    #[default]
    Unknown,
    /// All of them.
    All,
    /// Those that began earlier than this.
    Before(Nanos),
}

impl ClientTurns {
    /// Notes a piece `from` one side; the client had sent that number of bytes before.
    pub(crate) fn note(&mut self, from: Side, sent_before: u64, at: Nanos) {
        if from == Side::Client && !self.is_open {
            if self.starts.len() == MOST {
                self.starts.pop_front();
            }
            self.starts.push_back((sent_before, at));
        }
        self.is_open = from == Side::Client;
    }

    /// What an acknowledgement of that number of bytes covers. A turn of which a byte is covered counts as covered.
    pub(crate) fn acknowledged(&self, bytes: u64) -> Acknowledged {
        let open = self.starts.iter().find(|(before, _)| *before >= bytes);
        open.map_or(Acknowledged::All, |(_, at)| Acknowledged::Before(*at))
    }
}

impl Acknowledged {
    /// Whether it covers a byte of a request that began at `started`.
    pub(crate) fn covers(self, started: Nanos) -> Option<bool> {
        match self {
            Acknowledged::Unknown => None,
            Acknowledged::All => Some(true),
            Acknowledged::Before(at) => Some(started < at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Side::{Client, Server};

    #[test]
    fn an_acknowledgement_covers_the_turns_of_which_it_has_a_byte() {
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
        // the rest of a turn may have come with it
        assert_eq!(covers(50), [Some(true), Some(true), Some(false)]);
        assert_eq!(covers(100), [Some(true), Some(true), Some(false)]);
        assert_eq!(covers(101), [Some(true); 3]);
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
