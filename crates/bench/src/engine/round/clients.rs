//! The clients of a scenario: each has a slot, goes through its steps there, and closes its
//! connection at its end.
//!
//! The pace has the arrivals of clients instead of those of requests. Must not know where steps
//! come from.

use super::Round;
use crate::closed_loop::{NextExchange, Start};
use crate::engine::backend::Backend;
use crate::engine::slot::{Phase, Slot};
use crate::scenario::Todo;
use crate::variant_plan::VariantPlan;
use intact_client::{Due, State};
use intact_ledger::{Exchange, Nanos};
use std::sync::Arc;

impl<B: Backend> Round<'_, B> {
    /// What exchanges of the slot have in common when a connection begins.
    pub(super) fn blank_of(&self, index: usize) -> Exchange {
        match &self.task.clients {
            None => self.blank.clone(),
            Some(_) => self.slots[index]
                .variant_plan
                .blank_exchange(self.task.round),
        }
    }

    /// Whether a client that arrives may have a slot of its own if none is free.
    pub(super) fn may_add_slot(&self) -> bool {
        let clients = self.task.clients.as_ref();
        clients.is_some_and(|clients| self.slots.len() < clients.most)
    }

    /// A new slot for a client that has arrived.
    pub(super) fn add_slot(&mut self, is_over: bool) -> Option<usize> {
        if is_over || !self.may_add_slot() {
            return None;
        }
        self.slots
            .push(Slot::new(self.task.variant_plan.clone(), false));
        Some(self.slots.len() - 1)
    }

    /// Starts whatever the slot's client may start; without one, waits for the next.
    pub(super) fn advance_client(&mut self, index: usize) {
        loop {
            let now = self.now();
            let slot = &self.slots[index];
            match &slot.phase {
                Phase::Open(open) => match open.state() {
                    State::Busy => {
                        self.send(index, now);
                        return;
                    }
                    // in HTTP/2 no field says that the connection is to close
                    State::Ready if !(slot.variant_plan.request.closes && open.exchanges() > 0) => {
                    }
                    State::Ready | State::Over => {
                        self.put_away(index, now);
                        continue;
                    }
                },
                Phase::Vacant => {}
                Phase::Dialing(..) | Phase::Done => return,
            }
            let stopped = self.is_stopped();
            if !stopped && slot.wake.is_some_and(|wake| wake > now) {
                return;
            }
            if slot.client.is_none() {
                if !self.start_client(index, now, stopped) {
                    return;
                }
                continue;
            }
            if stopped || self.end_of(index).is_some_and(|end| now >= end) {
                self.end_client(index, now, !stopped);
                continue;
            }
            if !self.take_step(index, now) {
                return;
            }
        }
    }

    /// Gives the slot its next client. `false`: there is none now, or never.
    fn start_client(&mut self, index: usize, now: Nanos, stopped: bool) -> bool {
        self.begin_schedule(now);
        let next = NextExchange {
            warmup: false,
            opens: true,
            // where another slot could have been added, it need not have waited for this one
            free_since: match self.may_add_slot() {
                true => Nanos(0),
                false => self.free_since(index),
            },
            late_before: self.slots[index].late,
        };
        let start = match stopped {
            true => Start::Never,
            false => self.task.pace.next(now, next),
        };
        let due = match start {
            Start::Never => {
                self.finish(index);
                return false;
            }
            Start::At(wake) => {
                self.wake_at(index, wake);
                return false;
            }
            Start::WhenDue => {
                self.set_free(index);
                return false;
            }
            Start::Now => now.into(),
            Start::Due(due) => due,
        };
        if let Some(clients) = &mut self.task.clients {
            self.slots[index].client = Some(Box::new(clients.next_client(due)));
        }
        true
    }

    /// When a client of a session without an end leaves; absent for other clients.
    fn end_of(&self, index: usize) -> Option<Nanos> {
        let client = self.slots[index].client.as_ref()?;
        let length = self.task.clients.as_ref()?.length?;
        let begun = self.measured?.start;
        client.is_endless().then(|| begun.after(length))
    }

    /// The client leaves: its connection is closed. `finished`: it was through with its steps.
    fn end_client(&mut self, index: usize, now: Nanos, finished: bool) {
        self.put_away(index, now);
        let slot = &mut self.slots[index];
        slot.wake = None;
        slot.failures = 0;
        slot.free_since = now;
        if let (Some(clients), Some(client)) = (&mut self.task.clients, slot.client.take()) {
            clients.count(&client, finished);
        }
    }

    /// The next step of the client. `false`: it waits, or a request is on its way.
    fn take_step(&mut self, index: usize, now: Nanos) -> bool {
        let end = self.end_of(index);
        let slot = &mut self.slots[index];
        let (Some(clients), Some(client)) = (&mut self.task.clients, &mut slot.client) else {
            return false;
        };
        let opens = !matches!(slot.phase, Phase::Open(_));
        let (variant_plan, due) = match clients.todo(client) {
            Todo::Request(variant_plan) => (variant_plan, client.due(now)),
            Todo::Wait(nanos) => {
                let due = now.after(nanos);
                client.wait_until(due);
                // a client that is to leave does not wait for longer
                self.wake_at(index, end.map_or(due, |end| due.min(end)));
                return false;
            }
            Todo::End => {
                self.end_client(index, now, true);
                return true;
            }
        };
        if opens && let Start::At(later) = clients.limit_opening(now) {
            client.hold_back(variant_plan, later);
            self.wake_at(index, later);
            return false;
        }
        self.start_request(index, variant_plan, due, opens);
        // a dial may fail at once, and an exchange is sent by the next turn of the loop
        true
    }

    fn start_request(
        &mut self,
        index: usize,
        variant_plan: Arc<VariantPlan>,
        due: Due,
        opens: bool,
    ) {
        if let Some(client) = &mut self.slots[index].client {
            client.has_sent();
        }
        self.slots[index].variant_plan = variant_plan;
        self.begin_span(due.at);
        match opens {
            true => self.dial(index, due, false),
            false => self.exchange(index, due),
        }
    }
}
