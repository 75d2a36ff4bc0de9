//! How much time of a processor searches may take: a quarter of one core, with a start. On a busy
//! machine a search takes longer, and costs the same.

use std::time::{Duration, Instant};

/// What can be spent at once.
const MOST: Duration = Duration::from_millis(100);
/// What can be owed; searches that would owe more are not made.
const MOST_OWED: Duration = Duration::from_millis(500);
/// Time passes this many times as fast as it is earned.
const SHARE: u32 = 4;

/// Time that is earned by waiting and spent by searching.
pub(super) struct Budget {
    left: Duration,
    owed: Duration,
    since: Instant,
}

impl Budget {
    pub(super) fn new(now: Instant) -> Budget {
        Budget {
            left: MOST,
            owed: Duration::ZERO,
            since: now,
        }
    }

    /// Whether a search may begin: rests may have been cut short, but not for ever.
    pub(super) fn allows(&mut self, now: Instant) -> bool {
        let earned = now.saturating_duration_since(self.since) / SHARE;
        self.since = now;
        let beyond = earned.saturating_sub(self.owed);
        self.owed = self.owed.saturating_sub(earned);
        self.left = (self.left + beyond).min(MOST);
        self.owed < MOST_OWED
    }

    /// Spends the processor's time of a search that has ended now; how long to rest so that what is
    /// owed is earned again.
    pub(super) fn spend(&mut self, spent: Duration, now: Instant) -> Duration {
        self.since = now;
        self.owed += spent.saturating_sub(self.left);
        self.left = self.left.saturating_sub(spent);
        self.owed * SHARE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_is_free_and_what_follows_takes_a_quarter_of_the_time() {
        let ms = Duration::from_millis;
        let start = Instant::now();
        let mut budget = Budget::new(start);
        let mut search = |from: u64, until: u64| {
            let (began, now) = (start + ms(from), start + ms(until));
            budget.allows(began).then(|| budget.spend(now - began, now))
        };
        assert_eq!(search(0, 60), Some(ms(0)));
        assert_eq!(search(60, 120), Some(ms(80)));
        // rested for 80 ms
        assert_eq!(search(200, 220), Some(ms(80)));
        // a rest that is cut short is owed on
        assert_eq!(search(220, 240), Some(ms(160)));
        assert_eq!(search(240, 740), Some(ms(2160)));
        assert_eq!(search(740, 800), None);
        // a long pause earns no more than the start
        assert_eq!(search(100_000, 100_150), Some(ms(200)));
    }
}
