//! The state that the platform shares with the connections of the Runtime API: the pending event
//! and the response to it.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// An event on its way to a function.
#[derive(Clone, Debug)]
pub(crate) struct Delivery {
    pub(crate) id: String,
    pub(crate) body: Vec<u8>,
    /// Unix time in ms, for `Lambda-Runtime-Deadline-Ms`.
    pub(crate) deadline_ms: u128,
}

/// The function's response to an event.
#[derive(Clone, Debug)]
pub(crate) enum FunctionResponse {
    Response { bytes: u64 },
    Error(String),
}

#[derive(Debug, Default)]
pub(crate) struct State {
    /// The function waits for an event.
    pub(crate) asking: bool,
    /// When it first did.
    pub(crate) asked: Option<Instant>,
    offered: Option<Delivery>,
    current: Option<String>,
    /// The event has been written to the function's connection.
    pub(crate) delivered: bool,
    pub(crate) answer: Option<(FunctionResponse, Instant)>,
    pub(crate) again: u32,
    pub(crate) init_error: Option<String>,
    pub(crate) exited: bool,
    closed: bool,
}

/// Shared between the platform, the connections and the thread that waits for the process.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    state: Mutex<State>,
    changed: Condvar,
}

impl Mailbox {
    fn lock(&self) -> MutexGuard<'_, State> {
        // the state is plain data: valid after a panic elsewhere, too
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn update<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let result = change(&mut self.lock());
        self.changed.notify_all();
        result
    }

    /// Waits until `look` returns a value, at most until `until`; returns that value.
    pub(crate) fn wait<T>(
        &self,
        until: Instant,
        mut look: impl FnMut(&mut State) -> Option<T>,
    ) -> Option<T> {
        let mut state = self.lock();
        loop {
            if let Some(found) = look(&mut state) {
                return Some(found);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The platform has an event.
    pub(crate) fn offer(&self, delivery: Delivery) {
        self.update(|state| {
            state.answer = None;
            state.again = 0;
            state.delivered = false;
            state.offered = Some(delivery);
        });
    }

    /// Waits for the next event on behalf of a connection. `None`: no further event comes.
    pub(crate) fn next(&self) -> Option<Delivery> {
        self.update(|state| {
            state.asking = true;
            state.asked.get_or_insert_with(Instant::now);
        });
        let mut state = self.lock();
        loop {
            if state.closed {
                return None;
            }
            if let Some(delivery) = state.offered.take() {
                state.asking = false;
                state.current = Some(delivery.id.clone());
                return Some(delivery);
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Reports whether the event was written. If not, another connection may deliver it.
    pub(crate) fn delivered(&self, delivery: Delivery, written: bool) {
        self.update(|state| {
            if written {
                state.delivered = true;
            } else {
                state.current = None;
                state.offered = Some(delivery);
            }
        });
    }

    /// Stores a response that was complete at `at`. Returns whether one was expected.
    pub(crate) fn answer(&self, id: &str, answer: FunctionResponse, at: Instant) -> bool {
        self.update(|state| {
            let wanted = state.current.as_deref() == Some(id) && state.answer.is_none();
            if wanted {
                state.answer = Some((answer, at));
            } else {
                state.again += 1;
            }
            wanted
        })
    }

    pub(crate) fn init_error(&self, words: String) {
        self.update(|state| state.init_error = Some(words));
    }

    pub(crate) fn exited(&self) {
        self.update(|state| state.exited = true);
    }

    /// No further event is handed out.
    pub(crate) fn close(&self) {
        self.update(|state| state.closed = true);
    }

    pub(crate) fn has_exited(&self) -> bool {
        self.lock().exited
    }

    /// Whether the process ends in this time, or has.
    pub(crate) fn ends_within(&self, time: Duration) -> bool {
        self.wait(Instant::now() + time, |state| state.exited.then_some(()))
            .is_some()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock().closed
    }
}
