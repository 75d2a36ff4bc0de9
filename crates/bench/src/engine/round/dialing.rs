//! From a slot's wish to open to a connection in use: dials, their answers, their failures.

use super::exchanges::MOST_IDLE_TURNS;
use super::{Round, parts_of};
use crate::engine::backend::Backend;
use crate::engine::slot::{PendingExchange, Phase, next_generation};
use crate::machine::ProcessorWait;
use crate::open_loop::LATE;
use crate::variant_plan::VariantPlan;
use intact_client::{Dial, Due, Established, HttpConnection, Progress};
use intact_ledger::{Connection, ConnectionId, Event, Failure, Nanos, Outcome, Reuse, Sink};
use mio::Token;

/// The longest pause after failed dials, in nanoseconds.
const LONGEST_PAUSE: u64 = 1_000_000_000;

impl<B: Backend> Round<'_, B> {
    pub(super) fn dial(&mut self, index: usize, due: Due, warmup: bool) {
        let id = ConnectionId(self.engine.id());
        let slot = &mut self.slots[index];
        slot.generation = next_generation(slot.generation);
        slot.timer = None;
        slot.dials += 1;
        slot.idle_turns = 0;
        let token = self.token(index);
        let engine = &mut *self.engine;
        let (dial, progress) = Dial::start(
            &self.slots[index].variant_plan.plan,
            id,
            token,
            &mut engine.resolver,
            self.backend.registry(),
            &engine.clock,
        );
        let granted = PendingExchange {
            due: due.begun(dial.at()),
            warmup,
            waited: self.processor_wait.as_ref().and_then(ProcessorWait::read),
        };
        self.slots[index].phase = Phase::Dialing(Box::new(dial), granted);
        self.progress(index, progress);
    }

    /// `connected`: the poll says that the transport stands.
    pub(super) fn drive_dial(&mut self, index: usize, connected: bool) {
        let slot = &mut self.slots[index];
        let Phase::Dialing(dial, _) = &mut slot.phase else {
            return;
        };
        slot.idle_turns += 1;
        if slot.idle_turns > MOST_IDLE_TURNS {
            let connection = *dial.give_up(Failure::NoProgress);
            return self.dial_failed(index, connection);
        }
        // elsewhere a socket may be writable before it is connected
        if connected && cfg!(target_os = "linux") {
            dial.report_connected();
        }
        let progress = dial.ready(self.backend.registry());
        self.progress(index, progress);
    }

    pub(super) fn take_answers(&mut self) {
        while let Some(answer) = self.engine.resolver.answer() {
            let (index, generation) = parts_of(Token(answer.key as usize));
            let Some(slot) = self.slots.get_mut(index) else {
                continue;
            };
            // answers to dials that were given up in an earlier round come here too
            if slot.generation != generation {
                continue;
            }
            let Phase::Dialing(dial, _) = &mut slot.phase else {
                continue;
            };
            let progress = dial.resolved(answer, self.backend.registry());
            self.record_lookup(index);
            self.progress(index, progress);
        }
    }

    /// Records the lookup of a dial, if it is over and was not recorded.
    fn record_lookup(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        if let Phase::Dialing(dial, _) = &mut slot.phase
            && let Some(mut lookup) = dial.take_lookup()
        {
            lookup.variant = Some(slot.variant_plan.variant);
            lookup.round = Some(self.task.round);
            self.engine.recorder.record(Event::Lookup(&lookup));
        }
    }

    fn progress(&mut self, index: usize, progress: Progress) {
        match progress {
            Progress::Pending => {
                let token = self.token(index);
                if let Phase::Dialing(dial, _) = &self.slots[index].phase {
                    self.backend.watch_dial(token, dial);
                }
                self.arm(index);
            }
            Progress::Established(established) => self.open(index, *established),
            Progress::Failed(connection) => self.dial_failed(index, *connection),
        }
    }

    fn open(&mut self, index: usize, mut established: Established) {
        let Phase::Dialing(ref dial, mut granted) = self.slots[index].phase else {
            return;
        };
        let (began, variant_plan) = (dial.at(), self.slots[index].variant_plan.clone());
        let late = self.late_in_setup(&granted, began);
        granted.due.late_at_most += late;
        self.slots[index].late = granted.due.late + late;
        let connection = &mut established.connection;
        connection.variant = Some(variant_plan.variant);
        connection.round = Some(self.task.round);
        if variant_plan.plan.stamps && !established.stamped {
            self.engine.recorder.caveat(
                "no-kernel-stamps",
                "the kernel gave no receive timestamps: latency ends when the client read the response, and client delay is in it",
            );
        }
        // one whose first request goes early is recorded when the handshake is over
        if !established.is_early() {
            let opened = Event::Opened(&established.connection);
            self.engine.recorder.record(opened);
        }
        let VariantPlan {
            plan,
            detail,
            streams,
            ..
        } = &*variant_plan;
        let mut open = Box::new(HttpConnection::new(
            established,
            plan.protocol,
            *detail,
            *streams,
            self.blank_of(index),
        ));
        let id = self.engine.id();
        open.begin(
            &variant_plan.next_request(&mut self.turn, granted.warmup),
            id,
            granted.due,
            granted.warmup,
        );
        if let Some(ping) = variant_plan.life.ping {
            open.set_ping(ping, self.now());
        }
        let token = self.token(index);
        self.backend.open(token, &open);
        let slot = &mut self.slots[index];
        slot.failures = 0;
        slot.idle_turns = 0;
        slot.phase = Phase::Open(open);
        self.finish_opening(index);
        self.advance(index);
        self.arm(index);
    }

    /// What of a setup that began then may be the client's lateness: its waits for a processor. A
    /// client that would have kept connections, and is late, opens some because it has not yet
    /// read a response: then all of it.
    fn late_in_setup(&self, granted: &PendingExchange, began: Nanos) -> u64 {
        let Some(wait) = &self.processor_wait else {
            return 0;
        };
        let waited = wait.read().zip(granted.waited);
        let waited = waited.map_or(0, |(now, then)| now.saturating_sub(then));
        let is_late = granted.due.late_at_most + waited >= LATE;
        match self.task.variant_plan.keepalive && is_late {
            true => waited.max(self.now().since(began)),
            false => waited,
        }
    }

    pub(super) fn dial_failed(&mut self, index: usize, mut connection: Connection) {
        // one that took too long ends with its dial
        self.record_lookup(index);
        let Phase::Dialing(_, granted) = self.slots[index].phase else {
            return;
        };
        let token = self.token(index);
        self.backend.forget(token);
        connection.variant = Some(self.slots[index].variant_plan.variant);
        connection.round = Some(self.task.round);
        let now = self.now();
        let mut exchange = self.blank_of(index);
        let variant_plan = &self.slots[index].variant_plan;
        variant_plan
            .next_request(&mut self.turn, granted.warmup)
            .describe(&mut exchange);
        exchange.id = self.engine.id();
        exchange.connection = Some(connection.id);
        granted.due.note(&mut exchange);
        exchange.end = now;
        exchange.warmup = granted.warmup;
        exchange
            .spans
            .wait_for_setup(&connection.setup, granted.due.at);
        exchange.reuse = Some(Reuse::Fresh);
        if let Some(failed) = &connection.failed {
            exchange.outcome = Outcome::Failed(failed.kind);
            exchange.detail.clone_from(&failed.detail);
        }
        self.engine.recorder.record(Event::Opened(&connection));
        self.record_exchange(&exchange);
        self.finish_warm_up(index);
        let slot = &mut self.slots[index];
        slot.phase = Phase::Vacant;
        slot.failures += 1;
        // a dead target is not hammered
        let pause = (1_000_000u64 << slot.failures.min(10)).min(LONGEST_PAUSE);
        let wake = now.after(pause);
        self.slots[index].free_since = wake;
        self.wake_at(index, wake);
        self.finish_opening(index);
    }
}
