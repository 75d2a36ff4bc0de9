//! The timers of connections: QUIC repeats what was lost, and acknowledges what it need not at
//! once. TCP leaves both to the kernel.
//!
//! A timer that moves later keeps its place in the heap, and is put there again when its old time
//! comes.

use super::{Round, parts_of};
use crate::engine::backend::{Backend, Hint};
use crate::engine::slot::Phase;
use intact_client::clock::TimestampConverter;
use intact_ledger::Nanos;
use mio::Token;
use std::cmp::Reverse;

impl<B: Backend> Round<'_, B> {
    /// Has the slot looked at when its connection wants it.
    #[inline]
    pub(super) fn arm(&mut self, index: usize) {
        let token = self.token(index).0;
        let slot = &mut self.slots[index];
        if let Some(at) = slot.phase.timer()
            && slot.timer.is_none_or(|before| at < before)
        {
            slot.timer = Some(at);
            self.timers.push(Reverse((at, token)));
        }
    }

    /// Looks at the connections whose time has come.
    pub(super) fn fire_timers(&mut self, bridge: &TimestampConverter) {
        if self.timers.is_empty() {
            return;
        }
        let now = self.now();
        while let Some(&Reverse((at, token))) = self.timers.peek() {
            if at > now {
                return;
            }
            self.timers.pop();
            self.fire(at, token, now, bridge);
        }
    }

    fn fire(&mut self, at: Nanos, token: usize, now: Nanos, bridge: &TimestampConverter) {
        let (index, generation) = parts_of(Token(token));
        let Some(slot) = self.slots.get_mut(index) else {
            return;
        };
        // of an earlier connection, or replaced by an earlier time
        if slot.generation != generation || slot.timer != Some(at) {
            return;
        }
        slot.timer = None;
        if slot.phase.timer().is_none_or(|timer| timer > now) {
            return self.arm(index);
        }
        if let Phase::Open(open) = &mut slot.phase {
            open.keep_time(now, &mut self.engine.recorder);
            self.drive_open(index, Hint::Open, bridge);
        } else {
            self.drive_dial(index, false);
        }
    }
}
