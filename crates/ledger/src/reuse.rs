//! Whether an exchange waited for a new connection, used a preconnected one, or reused one: the one
//! rule of all producers.

use crate::connection::Setup;
use crate::time::Nanos;

/// Nanoseconds from the end of a connection's setup to the first byte of its first request. Up to
/// this limit, the request counts as having waited for the setup. An observer does not see when the
/// client wanted the exchange. A client that connects for a request sends it within a few
/// milliseconds. A client that connects ahead has nothing to send yet.
pub const OPENED_AHEAD: u64 = 250_000_000;

/// Nanoseconds after the first request on a connection. HTTP/2 streams that begin within this time,
/// and before the first response, count as having waited for the same setup. A client with several
/// requests sends them together.
pub const TOGETHER: u64 = 5_000_000;

kinds! {
    json
    /// How an exchange relates to the setup of its connection.
    pub enum Reuse, as_str {
        /// It waited for a part of the setup.
        Fresh = "fresh",
        /// It was the first on a connection that was ready before the client needed it.
        Preconnected = "preconnected",
        /// An earlier exchange used the same connection, and this one did not wait for the setup.
        Reused = "reused",
    }
}

impl Reuse {
    /// The state of an exchange that `waited` for a part of the setup or did not, with the position
    /// `ordinal` (from 1) on its connection. `None` if neither the wait nor the position is known.
    pub fn of(waited: bool, ordinal: Option<u32>) -> Option<Reuse> {
        match (waited, ordinal) {
            (true, _) => Some(Reuse::Fresh),
            (false, Some(0 | 1)) => Some(Reuse::Preconnected),
            (false, Some(_)) => Some(Reuse::Reused),
            (false, None) => None,
        }
    }

    /// The state if only the position is known, as in a log: the first exchange counts as fresh.
    pub fn of_position(ordinal: u32) -> Reuse {
        if ordinal <= 1 {
            Reuse::Fresh
        } else {
            Reuse::Reused
        }
    }

    /// Whether an earlier exchange used the connection.
    pub fn is_reused(self) -> bool {
        self == Reuse::Reused
    }
}

impl Setup {
    /// When the last step ended; `None` if no step was observed.
    pub fn ready(&self) -> Option<Nanos> {
        self.ssl.or(self.connect).map(|span| span.end)
    }

    /// Whether the first request on the connection, sent at `sent`, waited for the setup. It did if
    /// at most [`OPENED_AHEAD`] passed between the two, or if no step of the setup was observed.
    pub fn is_awaited_at(&self, sent: Nanos) -> bool {
        self.ready()
            .is_none_or(|ready| sent.since(ready) <= OPENED_AHEAD)
    }
}

/// The first request and the first response on a connection. With them an observer decides which
/// exchanges waited for the setup. For every producer that does not see when the client wanted an
/// exchange.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetupWait {
    first_request: Option<Nanos>,
    first_response: Option<Nanos>,
}

impl SetupWait {
    /// Records the first byte of a request.
    pub fn note_request(&mut self, at: Nanos) {
        self.first_request.get_or_insert(at);
    }

    /// Records the first byte of a response.
    pub fn note_response(&mut self, at: Nanos) {
        self.first_response = Some(self.first_response.map_or(at, |first| first.min(at)));
    }

    /// Whether the exchange that began at `begun` waited for `setup`. The first on the connection
    /// did if it [followed](Setup::is_awaited_at) the setup closely. So did each stream
    /// (`is_stream`) that began within [`TOGETHER`] of the first and before any response.
    pub fn has_waited(&self, setup: &Setup, begun: Nanos, ordinal: u32, is_stream: bool) -> bool {
        let first = self.first_request.unwrap_or(begun);
        let is_before_response = self.first_response.is_none_or(|response| begun < response);
        let is_together = is_stream && is_before_response && begun.since(first) <= TOGETHER;
        (ordinal <= 1 || is_together) && setup.is_awaited_at(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Span;

    #[test]
    fn the_first_exchange_of_a_connection_is_never_reused() {
        assert_eq!(Reuse::of(true, Some(1)), Some(Reuse::Fresh));
        assert_eq!(Reuse::of(false, Some(1)), Some(Reuse::Preconnected));
        assert_eq!(Reuse::of(false, Some(2)), Some(Reuse::Reused));
    }

    #[test]
    fn streams_that_wait_for_one_handshake_are_all_fresh() {
        assert_eq!(Reuse::of(true, Some(32)), Some(Reuse::Fresh));
        assert_eq!(Reuse::of(true, None), Some(Reuse::Fresh));
    }

    #[test]
    fn without_a_position_an_exchange_that_did_not_wait_is_unknown() {
        assert_eq!(Reuse::of(false, None), None);
    }

    #[test]
    fn a_request_that_follows_the_setup_closely_waited_for_it() {
        let setup = Setup {
            connect: Some(Span::new(Nanos(0), Nanos(1_000))),
            ..Setup::default()
        };
        assert!(setup.is_awaited_at(Nanos(1_000 + OPENED_AHEAD)));
        assert!(!setup.is_awaited_at(Nanos(1_001 + OPENED_AHEAD)));
        assert!(Setup::default().is_awaited_at(Nanos(0)));
    }

    #[test]
    fn streams_wait_for_the_setup_only_with_the_first_and_before_a_response() {
        let setup = Setup {
            connect: Some(Span::new(Nanos(0), Nanos(1_000))),
            ..Setup::default()
        };
        let mut wait = SetupWait::default();
        wait.note_request(Nanos(2_000));
        let has_waited = |wait: &SetupWait, begun, is_stream| {
            wait.has_waited(&setup, Nanos(begun), 2, is_stream)
        };
        assert!(has_waited(&wait, 2_500, true));
        assert!(!has_waited(&wait, 2_500, false));
        assert!(!has_waited(&wait, 2_001 + TOGETHER, true));
        wait.note_response(Nanos(2_400));
        assert!(!has_waited(&wait, 2_500, true));
        assert!(wait.has_waited(&setup, Nanos(2_000), 1, false));
    }
}
