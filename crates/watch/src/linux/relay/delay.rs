//! Bytes on the way over an emulated distance.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// What may be on the way in one direction, in bytes; then the sender waits, as it would for a
/// window.
const WINDOW: usize = 4 << 20;

/// One direction of an emulated distance.
pub(super) struct Delay {
    by: Duration,
    underway: VecDeque<(Instant, Vec<u8>)>,
    bytes: usize,
    end: Option<Instant>,
}

impl Delay {
    pub(super) fn new(by: Duration) -> Delay {
        Delay {
            by,
            underway: VecDeque::new(),
            bytes: 0,
            end: None,
        }
    }

    /// How many bytes are on their way.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether the sender must wait.
    pub(super) fn is_full(&self) -> bool {
        self.bytes >= WINDOW
    }

    /// Sends bytes on their way.
    pub(super) fn depart(&mut self, now: Instant, bytes: &[u8]) {
        self.bytes += bytes.len();
        self.underway.push_back((now + self.by, bytes.to_vec()));
    }

    /// Sends the end of the stream on its way.
    pub(super) fn depart_end(&mut self, now: Instant) {
        self.end.get_or_insert(now + self.by);
    }

    /// The next bytes that have arrived.
    pub(super) fn arrive(&mut self, now: Instant) -> Option<Vec<u8>> {
        let (due, _) = self.underway.front()?;
        if *due > now {
            return None;
        }
        let (_, bytes) = self.underway.pop_front()?;
        self.bytes -= bytes.len();
        Some(bytes)
    }

    /// Whether the end of the stream has arrived.
    pub(super) fn has_ended(&self, now: Instant) -> bool {
        self.underway.is_empty() && self.end.is_some_and(|due| due <= now)
    }

    /// When the next thing arrives.
    pub(super) fn next(&self) -> Option<Instant> {
        let first = self.underway.front().map(|(due, _)| *due);
        first.or(self.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_departs_arrives_in_order_after_the_delay() {
        let start = Instant::now();
        let ms = Duration::from_millis;
        let mut delay = Delay::new(ms(15));
        delay.depart(start, b"one");
        delay.depart(start + ms(5), b"two");
        delay.depart_end(start + ms(5));
        assert_eq!(delay.next(), Some(start + ms(15)));
        assert_eq!(delay.arrive(start + ms(14)), None);
        assert_eq!(delay.arrive(start + ms(15)).as_deref(), Some(&b"one"[..]));
        assert!(!delay.has_ended(start + ms(20)));
        assert_eq!(delay.arrive(start + ms(20)).as_deref(), Some(&b"two"[..]));
        assert!(delay.has_ended(start + ms(20)));
    }

    #[test]
    fn a_sender_that_does_not_stop_has_to_wait() {
        let start = Instant::now();
        let mut delay = Delay::new(Duration::from_secs(1));
        while !delay.is_full() {
            delay.depart(start, &[0; 65536]);
        }
        assert!(delay.bytes <= WINDOW);
        while delay.arrive(start + Duration::from_secs(1)).is_some() {}
        assert!(!delay.is_full());
    }
}
