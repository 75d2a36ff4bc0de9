//! The windows of a step at set rates: each is a round of its own, and an exchange belongs to the
//! window in which it was due. Must not choose a rate.

use intact_ledger::{LoadPurpose, Nanos};
use std::sync::Arc;
use std::time::Duration;

/// A part of a step at one rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadWindow {
    /// Its purpose.
    pub purpose: LoadPurpose,
    /// Requests that fall due a second.
    pub rate: f64,
    /// How long they fall due.
    pub length: Duration,
    /// Whether its requests are warm-up. They belong to the round of the window that follows.
    pub warmup: bool,
}

/// Where the windows of a step end, and their rounds, for the threads that record.
#[derive(Clone, Debug)]
pub(crate) struct Windows {
    /// End in nanoseconds after the start, round, warm-up.
    ends: Arc<[(u64, u32, bool)]>,
}

impl Windows {
    /// The round and whether it is warm-up, of a request that was due this many nanoseconds after
    /// the start.
    pub(crate) fn of(&self, offset: u64) -> Option<(u32, bool)> {
        let within = self.ends.iter().find(|(end, ..)| offset < *end);
        let (_, round, warmup) = within.or(self.ends.last())?;
        Some((*round, *warmup))
    }
}

/// The windows as threads use them; the first measured one is round `first`.
pub(crate) fn windows(windows: &[LoadWindow], first: u32) -> Windows {
    let (mut end, mut round) = (0, first);
    let ends = windows.iter().map(|window| {
        end += window.length.as_nanos() as u64;
        let of = round;
        round += u32::from(!window.warmup);
        (end, of, window.warmup)
    });
    Windows {
        ends: ends.collect(),
    }
}

/// Where a schedule began, for the recorder of a thread.
#[derive(Clone, Debug)]
pub(crate) struct BegunWindows {
    windows: Windows,
    start: Nanos,
}

impl BegunWindows {
    /// The windows of a schedule that begins at `start`.
    pub(crate) fn new(windows: Windows, start: Nanos) -> BegunWindows {
        BegunWindows { windows, start }
    }

    /// The round of a request that was due then, and whether it is warm-up; absent before the
    /// start.
    pub(crate) fn of(&self, due: Nanos) -> Option<(u32, bool)> {
        let offset = due.0.checked_sub(self.start.0)?;
        self.windows.of(offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_belongs_to_the_window_in_which_it_was_due() {
        let window = |ms, warmup| LoadWindow {
            purpose: LoadPurpose::Search,
            rate: 100.0,
            length: Duration::from_millis(ms),
            warmup,
        };
        let all = [window(10, true), window(20, false), window(20, false)];
        let begun = BegunWindows::new(windows(&all, 7), Nanos(1_000));
        let of = |ms: f64| begun.of(Nanos(1_000 + (ms * 1e6) as u64));
        assert_eq!(begun.of(Nanos(999)), None);
        assert_eq!(of(0.0), Some((7, true)));
        assert_eq!(of(9.9), Some((7, true)));
        assert_eq!(of(10.0), Some((7, false)));
        assert_eq!(of(29.9), Some((7, false)));
        assert_eq!(of(30.0), Some((8, false)));
        assert_eq!(of(60.0), Some((8, false)));
    }
}
