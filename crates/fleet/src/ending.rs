//! Detects the end of a campaign: an empty queue that keeps finished messages, or the store's
//! confirmation.
//!
//! The counts of SQS are approximate and late: right after messages were sent they may be 0. So an
//! empty SQS queue needs confirmation. Either the store has a result for every message, or the
//! queue stayed empty for as long as AWS needs to settle.

use std::time::{Duration, Instant};

/// How long SQS's counts may lag: a minute, according to its documentation.
const SETTLED: Duration = Duration::from_secs(60);
/// Interval between two checks of the store.
const ASK: Duration = Duration::from_secs(2);

/// Detects the end of a campaign.
#[derive(Default)]
pub struct Ending {
    empty_since: Option<Instant>,
    asked: Option<Instant>,
}

impl Ending {
    /// Whether the campaign is over. `messages` is the queue's count, `remembers` whether the queue
    /// keeps finished messages. `is_complete` checks the store for the end of every message.
    pub fn is_over<E>(
        &mut self,
        left: u64,
        remembers: bool,
        now: Instant,
        is_complete: impl FnOnce() -> Result<bool, E>,
    ) -> Result<bool, E> {
        if left > 0 {
            *self = Ending::default();
            return Ok(false);
        }
        if remembers {
            return Ok(true);
        }
        let since = *self.empty_since.get_or_insert(now);
        if now.duration_since(since) >= SETTLED {
            return Ok(true);
        }
        if self
            .asked
            .is_some_and(|asked| now.duration_since(asked) < ASK)
        {
            return Ok(false);
        }
        self.asked = Some(now);
        is_complete()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_that_keeps_finished_messages_is_believed_and_another_is_checked_against_the_store() {
        let now = Instant::now();
        let never = || -> Result<bool, ()> { panic!("the store has nothing to say here") };
        let mut ending = Ending::default();
        assert_eq!(ending.is_over(3, false, now, never), Ok(false));
        assert_eq!(ending.is_over(0, true, now, never), Ok(true));
        assert_eq!(
            ending.is_over(0, false, now, || Ok::<_, ()>(true)),
            Ok(true)
        );
    }

    #[test]
    fn an_empty_queue_is_over_after_its_counts_have_settled() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let incomplete = || Ok::<_, ()>(false);
        let mut ending = Ending::default();
        let mut asked = 0;
        for second in 0..60 {
            let over = ending.is_over(0, false, at(second), || {
                asked += 1;
                incomplete()
            });
            assert_eq!(over, Ok(false), "second {second}");
        }
        assert_eq!(asked, 30);
        assert_eq!(ending.is_over(0, false, at(60), incomplete), Ok(true));
        // messages that appear later restart the wait
        assert_eq!(ending.is_over(1, false, at(61), incomplete), Ok(false));
        assert_eq!(ending.is_over(0, false, at(62), incomplete), Ok(false));
    }
}
