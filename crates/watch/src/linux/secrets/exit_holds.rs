//! Processes that are about to end while their memory is still to be looked at: their end waits,
//! for a moment.

use mio::Waker;
use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// Shared by the search, which looks, and the supervisor, which is asked about ends.
#[derive(Clone, Default)]
pub(crate) struct ExitHolds {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    hurried: Condvar,
    /// Of the supervisor's loop.
    waker: OnceLock<Arc<Waker>>,
}

#[derive(Default)]
struct State {
    /// How many connections of a process wait for its memory to be looked at.
    wanted: HashMap<u32, usize>,
    /// A process waits for its end.
    is_hurried: bool,
}

impl ExitHolds {
    /// Whom to wake when a process need not be held any longer.
    pub(crate) fn wake_by(&self, waker: Arc<Waker>) {
        let _ = self.shared.waker.set(waker);
    }

    /// Whether the process must not end yet; then the search makes haste.
    pub(crate) fn holds(&self, process: u32) -> bool {
        let mut state = self.lock();
        let held = state.wanted.contains_key(&process);
        if held {
            state.is_hurried = true;
            self.shared.hurried.notify_all();
        }
        held
    }

    /// Another connection of the process waits.
    pub(super) fn add(&self, process: u32) {
        *self.lock().wanted.entry(process).or_default() += 1;
    }

    /// This number of connections of the process do not wait any longer.
    pub(super) fn release(&self, process: u32, count: usize) {
        let mut state = self.lock();
        // a process that is still held reports it again when it is woken
        state.is_hurried = false;
        if let Some(wanted) = state.wanted.get_mut(&process) {
            *wanted = wanted.saturating_sub(count);
            if *wanted == 0 {
                state.wanted.remove(&process);
            }
        }
        drop(state);
        self.wake();
    }

    /// No process waits any longer.
    pub(super) fn release_all(&self) {
        let mut state = self.lock();
        state.wanted.clear();
        state.is_hurried = false;
        drop(state);
        self.wake();
    }

    /// Passes time, unless a process waits for its end.
    pub(super) fn rest(&self, time: Duration) {
        let waited = self
            .shared
            .hurried
            .wait_timeout_while(self.lock(), time, |state| !state.is_hurried);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.is_hurried = false;
    }

    fn wake(&self) {
        if let Some(waker) = self.shared.waker.get() {
            // a loop that has ended holds no process
            let _ = waker.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // counts are whole at any time
        let state = self.shared.state.lock();
        state.unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_held_until_all_of_its_connections_were_looked_for() {
        let holds = ExitHolds::default();
        assert!(!holds.holds(7));
        holds.add(7);
        holds.add(7);
        holds.add(8);
        holds.release(7, 1);
        assert!(holds.holds(7) && holds.holds(8));
        holds.release(7, 1);
        assert!(!holds.holds(7) && holds.holds(8));
        holds.release_all();
        assert!(!holds.holds(8));
    }

    #[test]
    fn the_search_does_not_rest_while_a_process_waits() {
        let holds = ExitHolds::default();
        holds.add(7);
        holds.holds(7);
        // would not end otherwise
        holds.rest(Duration::from_secs(1 << 20));
    }
}
