//! The slots of an open loop: which are free, which takes the next request that is due, and what
//! happens to requests that none takes.
//!
//! The slot that was used last is taken first, as by most pools. One without a connection is taken
//! only if no open one is free.

use super::Round;
use crate::engine::backend::Backend;
use crate::engine::slot::Phase;
use crate::windows::BegunWindows;
use intact_ledger::{Failure, Nanos, Outcome, Span};
use std::time::Duration;

/// Why a request that was due has no connection.
const NEVER_SENT: &str = "never sent: no connection was free";

impl<B: Backend> Round<'_, B> {
    /// Begins the schedule of an open loop on this thread, at the start that all threads share.
    pub(super) fn begin_schedule(&mut self, now: Nanos) {
        let Some(open) = self.task.pace.open() else {
            return;
        };
        if !open.has_begun() {
            let start = self.task.warm_up.agree_start(now);
            open.begin(start);
            if let Some(windows) = self.task.windows.take() {
                let begun = BegunWindows::new(windows, start);
                self.engine.recorder.begin_windows(begun);
            }
            self.begin_span(start);
        }
    }

    /// The slot waits for the next request that is due.
    pub(super) fn set_free(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        if std::mem::replace(&mut slot.is_free, true) {
            return;
        }
        match slot.phase {
            Phase::Vacant => self.free.vacant.push(index),
            _ => self.free.open.push(index),
        }
        // it has nothing to dial yet
        if std::mem::take(&mut slot.is_opening) {
            self.opening -= 1;
        }
    }

    /// Since when the slot could have taken a request. While others are free too, no request had to
    /// wait for this one.
    pub(super) fn free_since(&self, index: usize) -> Nanos {
        match self.free.is_empty() {
            true => self.slots[index].free_since,
            false => Nanos(0),
        }
    }

    fn take_free(&mut self) -> Option<usize> {
        while let Some(index) = self.free.open.pop() {
            // the server may have closed it while it was free
            if matches!(self.slots[index].phase, Phase::Vacant) {
                self.free.vacant.push(index);
                continue;
            }
            return Some(index);
        }
        self.free.vacant.pop()
    }

    /// Starts the requests that are due, as long as slots are free. At the end of the schedule the
    /// free slots are done.
    pub(super) fn start_due(&mut self) {
        let Some(open) = self.task.pace.open() else {
            return;
        };
        let mut is_over = open.is_over();
        let now = self.now();
        while is_over || self.is_due(now) {
            let free = self.take_free();
            let Some(index) = free.or_else(|| self.add_slot(is_over)) else {
                return;
            };
            self.slots[index].is_free = false;
            // a slot that is taken at once has been free until now
            self.slots[index].free_since = Nanos(0);
            self.advance(index);
            is_over = self.task.pace.open().is_none_or(|open| open.is_over());
        }
    }

    fn is_due(&mut self, now: Nanos) -> bool {
        let next = self.task.pace.open().and_then(|open| open.next_due());
        next.is_some_and(|due| due <= now)
    }

    /// How long until a free slot has a request to start.
    pub(super) fn until_due(&mut self) -> Option<Duration> {
        let due = self.task.pace.open()?.next_due()?;
        (!self.free.is_empty() || self.may_add_slot()).then(|| self.engine.clock.until(due))
    }

    /// Gives up the requests that have waited for a connection longer than a request may take, or
    /// all that wait once the run is stopped. They are recorded as failed, not dropped.
    pub(super) fn give_up_waiting(&mut self, now: Nanos, stop: bool) {
        // a client that waits for a place is late, which its first request shows
        if self.task.clients.is_some() {
            if let Some(open) = self.task.pace.open().filter(|_| stop) {
                open.stop(now);
            }
            return;
        }
        let (until, kind) = match stop {
            true => (now, Failure::Aborted),
            false => (
                Nanos(now.0.saturating_sub(self.task.variant_plan.timeout)),
                Failure::Timeout,
            ),
        };
        while let Some(due) = self.task.pace.open().and_then(|open| open.take_due(until)) {
            let mut exchange = self.blank.clone();
            exchange.id = self.engine.id();
            exchange.at = due;
            exchange.end = now;
            exchange.spans.blocked = Some(Span::new(due, now));
            exchange.outcome = Outcome::Failed(kind);
            exchange.detail = Some(NEVER_SENT.into());
            self.record_exchange(&exchange);
        }
        if stop && let Some(open) = self.task.pace.open() {
            open.stop(now);
        }
    }
}
