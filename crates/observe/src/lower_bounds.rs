//! Connections whose number of requests is a lower bound, by the reason. Counts them, and
//! knows none of them.

use intact_ledger::Caveat;
use intact_wire::h2::MAX_STREAMS;

/// Why the number of a connection's requests is a lower bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LowerBound {
    /// They are inferred: overlapping streams cannot be distinguished.
    Inferred,
    /// More were open than are followed.
    TooManyOpen,
    /// No key decrypted the early data (0-RTT) that the server took.
    EarlyData,
}

/// How many connections there are, by the reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LowerBounds {
    inferred: u64,
    too_many_open: u64,
    early_data: u64,
}

impl LowerBounds {
    /// Counts a connection.
    pub fn add(&mut self, why: LowerBound) {
        match why {
            LowerBound::Inferred => self.inferred += 1,
            LowerBound::TooManyOpen => self.too_many_open += 1,
            LowerBound::EarlyData => self.early_data += 1,
        }
    }

    /// The caveats on a run with such connections.
    pub fn caveats(self) -> impl Iterator<Item = Caveat> {
        let inferred = format!(
            "HTTP/2 connections whose keys were not found: {}. Concurrent requests cannot be distinguished there, so the number of requests is a lower bound",
            self.inferred
        );
        let too_many = format!(
            "HTTP/2 connections with more than {MAX_STREAMS} requests without a response: {}. Further requests there are not counted",
            self.too_many_open
        );
        let early_data = format!(
            "Connections whose early data (0-RTT) were not decrypted: {}. The requests in them are not counted",
            self.early_data
        );
        let all = [
            (self.inferred, "requests-not-counted", inferred),
            (self.too_many_open, "requests-beyond-limit", too_many),
            (self.early_data, "requests-in-early-data", early_data),
        ];
        let found = all.into_iter().filter(|(connections, ..)| *connections > 0);
        found.map(|(_, id, words)| Caveat::incomplete_requests(id, words))
    }
}
