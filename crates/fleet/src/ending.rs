//! When a campaign is over: as soon as a queue that remembers finished messages is empty, or else when the store confirms it.
//!
//! SQS counts approximately and late: right after messages were sent it may say that there are none. So its "empty" counts when
//! the store has a result for every message, or when it has said so for as long as AWS needs to settle.

use std::time::{Duration, Instant};

/// How long SQS's counts may lag: a minute, by its documentation.
const SETTLED: Duration = Duration::from_secs(60);
/// How often the store is asked meanwhile.
const ASK: Duration = Duration::from_secs(2);

/// Watches for the end.
#[derive(Default)]
pub struct Ending {
    empty_since: Option<Instant>,
    asked: Option<Instant>,
}

impl Ending {
    /// Whether it is over, given the messages that the queue counts, and whether it remembers those that were done. `is_complete` asks
    /// the store whether every message has ended there.
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
    fn a_queue_that_remembers_is_believed_and_another_is_checked_against_the_store() {
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
    fn an_empty_queue_is_waited_on_until_its_counts_have_settled() {
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
        // messages that show up after all restart the wait
        assert_eq!(ending.is_over(1, false, at(61), incomplete), Ok(false));
        assert_eq!(ending.is_over(0, false, at(62), incomplete), Ok(false));
    }
}
