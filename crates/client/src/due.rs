//! When an exchange is due, and when the client started it. Must not decide these times.

use intact_ledger::{Exchange, Nanos, Span};

/// When an exchange is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// The moment from which its latency counts.
    pub at: Nanos,
    /// The delay of the client in an open loop. It begins when the exchange is due and a
    /// connection is free, and ends when the client starts it.
    pub scheduling_error: Option<Span>,
    /// The most that the client's lateness may add to the latency of an open loop, in nanoseconds.
    pub late_at_most: u64,
    /// The same without waits for a connection.
    pub late: u64,
}

/// An exchange that starts when it is due.
impl From<Nanos> for Due {
    #[inline]
    fn from(at: Nanos) -> Due {
        Due {
            at,
            scheduling_error: None,
            late_at_most: 0,
            late: 0,
        }
    }
}

impl Due {
    /// The same exchange, begun at this moment. Outside of an open loop it is due then.
    #[inline]
    pub fn begun(self, at: Nanos) -> Due {
        match self.scheduling_error {
            None => Due::from(at),
            Some(error) => {
                let error = Span::new(error.start, at);
                Due {
                    scheduling_error: Some(error),
                    late_at_most: self.late_at_most.max(error.nanos()),
                    late: self.late.max(error.nanos()),
                    ..self
                }
            }
        }
    }

    /// Notes in a record with empty spans when the exchange was due, and the time until it began.
    #[inline]
    pub fn note(self, exchange: &mut Exchange) {
        exchange.at = self.at;
        exchange.scheduling_error = self.scheduling_error;
        exchange.late_at_most = self.scheduling_error.map(|_| self.late_at_most);
        exchange.spans.blocked = self
            .scheduling_error
            .map(|error| Span::new(self.at, error.end));
    }
}
