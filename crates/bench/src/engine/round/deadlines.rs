//! Time: when slots want to be woken, what has run out of time, and what happens after Ctrl-C.

use super::{Round, SWEEP};
use crate::engine::backend::Backend;
use crate::engine::slot::Phase;
use intact_client::State;
use intact_ledger::{Failure, Nanos};
use mio::Token;
use std::cmp::Reverse;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How often parked slots ask whether the other threads are through with their warm-up, in
/// nanoseconds.
const PARKED: u64 = 200_000;
/// How long a connection that is announced to close waits for the server's FIN, in nanoseconds.
const LINGER: u64 = 1_000_000_000;
/// How long exchanges in flight may go on after Ctrl-C, in nanoseconds.
const GRACE: u64 = 250_000_000;

impl<B: Backend> Round<'_, B> {
    /// `now`: the end of the last turn, which is exact enough for the next sweep.
    pub(super) fn time_to_wait(&self, swept: Nanos, now: Nanos) -> Duration {
        if !self.unfinished.is_empty() {
            return Duration::ZERO;
        }
        let sweep = swept.after(SWEEP);
        let mut until = sweep;
        if let Some(Reverse((wake, _))) = self.wakes.peek() {
            until = until.min(*wake);
        }
        if let Some(Reverse((timer, _))) = self.timers.peek() {
            until = until.min(*timer);
        }
        if self.warming_up == 0 && !self.parked.is_empty() {
            until = until.min(self.now().after(PARKED));
        }
        if until == sweep {
            return Duration::from_nanos(sweep.since(now));
        }
        self.engine.clock.until(until)
    }

    /// Slots whose time has come ask the closed loop again.
    pub(super) fn wake_up(&mut self, now: Nanos) {
        while let Some(&Reverse((wake, index))) = self.wakes.peek() {
            if wake > now {
                return;
            }
            self.wakes.pop();
            if self.slots[index].wake == Some(wake) {
                self.slots[index].wake = None;
                self.advance(index);
            }
        }
    }

    /// Has the slot woken then.
    pub(super) fn wake_at(&mut self, index: usize, wake: Nanos) {
        if self.slots[index].wake.replace(wake) != Some(wake) {
            self.wakes.push(Reverse((wake, index)));
        }
    }

    /// Ends what has run out of time, and everything some time after Ctrl-C.
    pub(super) fn sweep(&mut self, now: Nanos) {
        let stop = self.engine.gauge.stop.load(Ordering::Relaxed);
        if stop && self.stopped_at.is_none() {
            self.stopped_at = Some(now);
            for index in std::mem::take(&mut self.to_open) {
                self.slots[index].phase = Phase::Done;
                self.done += 1;
            }
        }
        self.give_up_waiting(now, stop);
        let abort = self
            .stopped_at
            .is_some_and(|stopped| now.since(stopped) >= GRACE);
        for index in 0..self.slots.len() {
            self.sweep_slot(index, now, stop, abort);
        }
        let round_over = self.done == self.slots.len();
        let patience = if round_over || abort {
            LINGER / 4
        } else {
            LINGER
        };
        let impatient: Vec<Token> = self
            .lingering
            .iter()
            .filter(|(_, (_, since))| now.since(*since) >= patience)
            .map(|(&token, _)| token)
            .collect();
        for token in impatient {
            if let Some((open, _)) = self.lingering.remove(&token) {
                self.close(token, *open, now);
            }
        }
    }

    /// Ends what the slot does if its time is up. A slot with nothing in flight may have to learn
    /// of the stop.
    fn sweep_slot(&mut self, index: usize, now: Nanos, stop: bool, abort: bool) {
        let timeout = self.task.variant_plan.timeout;
        let overdue = |since: Nanos| match now.since(since) >= timeout {
            true => Some(Failure::Timeout),
            false => abort.then_some(Failure::Aborted),
        };
        let slot = &mut self.slots[index];
        match &mut slot.phase {
            Phase::Dialing(dial, granted) => {
                if let Some(kind) = overdue(granted.due.at) {
                    // seen up to a sweep late, as the end of the request is
                    let took = now.since(dial.began()).saturating_add(SWEEP);
                    let has_time = kind == Failure::Timeout && took < timeout;
                    let connection = match has_time {
                        true => *dial.abandon(),
                        false => *dial.give_up(kind),
                    };
                    self.dial_failed(index, connection);
                }
            }
            Phase::Open(open) => match open.oldest() {
                Some(oldest) => {
                    if let Some(kind) = overdue(oldest) {
                        open.give_up(Some(kind), now, &mut self.engine.recorder);
                        self.advance(index);
                    }
                }
                // an open connection may wait for the pace, and one that is over for an event that
                // never comes
                None if stop || open.state() == State::Over => self.advance(index),
                None => {}
            },
            Phase::Vacant if stop => {
                slot.wake = None;
                self.advance(index);
            }
            Phase::Vacant | Phase::Done => {}
        }
    }
}
