//! When an idle HTTP/2 connection sends PING (RFC 9113 section 6.7), and when a missing reply shows
//! that the peer is gone.
//!
//! It has no clock and moves no bytes: the caller passes the time.

use intact_ledger::Nanos;
use std::time::Duration;

/// What to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beat {
    /// Nothing yet.
    Early,
    /// Send a PING.
    Ping,
    /// Nothing arrived since the last PING: the connection is dead.
    Dead,
}

/// The heartbeat of one connection.
#[derive(Clone, Debug)]
pub(super) struct Heartbeat {
    interval: u64,
    /// When something arrived or a PING was sent.
    since: Nanos,
    /// A PING was sent, and nothing arrived since.
    is_waiting: bool,
}

impl Heartbeat {
    /// A PING after each `interval` without anything from the peer.
    pub(super) fn new(interval: Duration, now: Nanos) -> Heartbeat {
        Heartbeat {
            interval: interval.as_nanos() as u64,
            since: now,
            is_waiting: false,
        }
    }

    /// When to look again.
    #[inline]
    pub(super) fn due(&self) -> Nanos {
        self.since.after(self.interval)
    }

    /// Something arrived from the peer.
    #[inline]
    pub(super) fn hear(&mut self, now: Nanos) {
        self.since = now;
        self.is_waiting = false;
    }

    /// What to do at `now`; a PING counts as sent.
    pub(super) fn beat(&mut self, now: Nanos) -> Beat {
        if now < self.due() {
            return Beat::Early;
        }
        self.since = now;
        match std::mem::replace(&mut self.is_waiting, true) {
            false => Beat::Ping,
            true => Beat::Dead,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_does_not_reply_is_dead_and_one_that_does_is_asked_again() {
        let mut heart = Heartbeat::new(Duration::from_nanos(10), Nanos(100));
        assert_eq!(heart.beat(Nanos(109)), Beat::Early);
        assert_eq!(heart.beat(Nanos(110)), Beat::Ping);
        assert_eq!(heart.beat(Nanos(115)), Beat::Early);
        heart.hear(Nanos(116));
        assert_eq!(heart.due(), Nanos(126));
        assert_eq!(heart.beat(Nanos(126)), Beat::Ping);
        assert_eq!(heart.beat(Nanos(136)), Beat::Dead);
    }
}
