//! Holds a sender up while the secrets of its connection are searched: what would have to be
//! dropped could never be read.
//!
//! It costs the program time, so it ends soon, whether the secrets come or not.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// How long the senders of a connection are held up in total. A search takes a second at most, and
/// another one may come before it.
const LONGEST: Duration = Duration::from_secs(2);
/// When to look again.
const STEP: Duration = Duration::from_millis(5);

/// The holds of one connection.
#[derive(Debug, Default)]
pub(super) struct Hold {
    is_held: Cell<bool>,
    /// Set by the first hold.
    until: Cell<Option<Instant>>,
}

impl Hold {
    /// Holds the sender up where the reader `is_crowded`, and it is not too late for that.
    pub(super) fn note(&self, is_crowded: bool, now: Instant) {
        if is_crowded && self.until.get().is_none() {
            self.until.set(Some(now + LONGEST));
        }
        let is_late = self.until.get().is_some_and(|until| now >= until);
        self.is_held.set(is_crowded && !is_late);
    }

    /// Whether the sender has to wait.
    pub(super) fn is_held(&self) -> bool {
        self.is_held.get()
    }

    /// When to look again, if the sender has to wait.
    pub(super) fn next(&self, now: Instant) -> Option<Instant> {
        self.is_held().then(|| now + STEP)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_is_held_up_while_the_reader_is_crowded_and_no_longer_than_the_limit() {
        let (hold, now) = (Hold::default(), Instant::now());
        hold.note(false, now);
        assert_eq!((hold.is_held(), hold.next(now)), (false, None));
        hold.note(true, now);
        assert_eq!(hold.next(now), Some(now + STEP));
        hold.note(false, now + STEP);
        assert!(!hold.is_held());
        hold.note(true, now + LONGEST - STEP);
        assert!(hold.is_held());
        // the limit is that of all holds together
        hold.note(true, now + LONGEST);
        assert!(!hold.is_held());
    }
}
