//! How much time searches may take: a quarter of one core, with a start.

use std::time::{Duration, Instant};

/// What can be spent at once.
const MOST: Duration = Duration::from_millis(100);
/// Time passes this many times as fast as it is earned.
const SHARE: u32 = 4;

/// Time that is earned by waiting and spent by searching.
pub(super) struct Budget {
    left: Duration,
    since: Instant,
}

impl Budget {
    pub(super) fn new(now: Instant) -> Budget {
        Budget {
            left: MOST,
            since: now,
        }
    }

    /// Spends time until now; how long to rest so that what was overspent is earned again.
    pub(super) fn spend(&mut self, began: Instant, now: Instant) -> Duration {
        let waited = began.saturating_duration_since(self.since);
        self.since = now;
        self.left = (self.left + waited / SHARE).min(MOST);
        let spent = now.saturating_duration_since(began);
        let owed = spent.saturating_sub(self.left);
        self.left = self.left.saturating_sub(spent);
        owed * SHARE
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
        assert_eq!(budget.spend(start, start + ms(60)), ms(0));
        assert_eq!(budget.spend(start + ms(60), start + ms(120)), ms(80));
        // rested for 80 ms, which earned 20
        assert_eq!(budget.spend(start + ms(200), start + ms(220)), ms(0));
        // a long pause earns no more than the start
        let later = start + ms(100_000);
        assert_eq!(budget.spend(later, later + ms(150)), ms(200));
    }
}
