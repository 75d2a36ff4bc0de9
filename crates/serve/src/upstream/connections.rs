//! The connections of the calls, kept or new, as `client` drives them. Knows no thread.

use super::config::DEEPEST;
use super::{UpstreamConfig, Waiter};
use crate::server_tally::ServerTally;
use intact_client::{Clock, Detail, EventLoop, HttpConnection, PendingDial, Progress, State};
use intact_ledger::{Event, Exchange, ExpectedStatus, Failure, Nanos, Outcome, Protocol, Sink};
use mio::Waker;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;

/// How long a wait lasts without an event, in nanoseconds.
const LONGEST_WAIT: u64 = 60_000_000_000;

/// The connections of the calls.
pub(super) struct Connections {
    config: UpstreamConfig,
    tally: Arc<ServerTally>,
    clock: Clock,
    event_loop: EventLoop,
    slots: HashMap<u64, Slot>,
    /// Kept connections that carry no call, the last one used at the end.
    idle: Vec<u64>,
    /// Connections of which more can be read.
    unfinished: Vec<u64>,
    last_id: u64,
}

/// One connection, and who waits for it.
struct Slot {
    stage: Stage,
    waiter: Option<Waiter>,
}

enum Stage {
    Dialing(Box<PendingDial>),
    Open(Box<HttpConnection>),
}

/// Keeps the outcome of the exchange that ended.
#[derive(Default)]
struct LastOutcome(Option<Outcome>);

impl Sink for LastOutcome {
    fn record(&mut self, event: Event<'_>) {
        if let Event::Exchange(exchange) = event {
            let is_error = |status| ExpectedStatus::is_error(None, status);
            self.0 = Some(match exchange.outcome {
                Outcome::Ok if exchange.status.is_some_and(is_error) => {
                    Outcome::Failed(Failure::UnexpectedStatus)
                }
                outcome => outcome,
            });
        }
    }
}

impl Connections {
    /// None yet.
    pub(super) fn new(config: UpstreamConfig, tally: Arc<ServerTally>) -> io::Result<Connections> {
        let clock = Clock::start();
        Ok(Connections {
            config,
            tally,
            clock,
            event_loop: EventLoop::new(clock)?,
            slots: HashMap::new(),
            idle: Vec::new(),
            unfinished: Vec::new(),
            last_id: 0,
        })
    }

    /// Ends a wait from another thread.
    pub(super) fn waker(&self) -> Arc<Waker> {
        self.event_loop.waker()
    }

    /// Waits until [`Connections::advance`] has something to do, or it is woken.
    pub(super) fn wait(&mut self) -> io::Result<()> {
        let now = self.clock.now();
        // where more can be read at once, the orders have their turn in between
        let until = match self.unfinished.is_empty() {
            true => now.after(LONGEST_WAIT),
            false => now,
        };
        self.event_loop.wait(until)
    }

    /// Ends the connections of calls that were given up.
    pub(super) fn give_up(&mut self) {
        let is_awaited = |slot: &Slot| {
            slot.waiter
                .as_ref()
                .is_none_or(|one| !one.outcome_to.is_closed())
        };
        self.slots.retain(|_, slot| is_awaited(slot));
    }

    /// Begins a call on a kept connection, else on a new one.
    pub(super) fn call(&mut self, waiter: Waiter) {
        while let Some(id) = self.idle.pop() {
            if let Some(slot) = self.slots.get_mut(&id)
                && let Stage::Open(http) = &mut slot.stage
            {
                send(
                    http,
                    waiter.depth,
                    &self.config,
                    &self.clock,
                    &self.event_loop,
                );
                slot.waiter = Some(waiter);
                return;
            }
        }
        self.last_id += 1;
        let dial = self.event_loop.dial(&self.config.plan, self.last_id);
        let slot = Slot {
            stage: Stage::Dialing(Box::new(dial)),
            waiter: Some(waiter),
        };
        self.slots.insert(self.last_id, slot);
    }

    /// Takes what happened.
    pub(super) fn advance(&mut self) {
        let mut dialing = Vec::new();
        let dials = self.slots.iter_mut().filter_map(|(id, slot)| {
            let Stage::Dialing(dial) = &mut slot.stage else {
                return None;
            };
            dialing.push(*id);
            Some(&mut **dial)
        });
        self.event_loop.advance(dials);
        for id in dialing {
            if let Some(Stage::Dialing(dial)) = self.slots.get_mut(&id).map(|slot| &mut slot.stage)
            {
                let progress = dial.take_progress();
                self.progress(id, progress);
            }
        }
        let unfinished = std::mem::take(&mut self.unfinished);
        for id in unfinished.into_iter().chain(self.event_loop.ready()) {
            self.read(id);
        }
    }

    fn progress(&mut self, id: u64, progress: Progress) {
        match progress {
            Progress::Pending => {}
            Progress::Failed(connection) => {
                let kind = connection.failed.map(|failed| failed.kind);
                let outcome = Outcome::Failed(kind.unwrap_or(Failure::Unreachable));
                self.end(id, outcome);
            }
            Progress::Established(established) => {
                self.tally.called_on_new_connection();
                let Some(slot) = self.slots.get_mut(&id) else {
                    return;
                };
                let blank = Exchange::new(0, Nanos(0));
                let mut http = Box::new(HttpConnection::new(
                    *established,
                    Protocol::Http11,
                    Detail::Outcome,
                    1,
                    blank,
                ));
                let depth = slot.waiter.as_ref().map_or(0, |waiter| waiter.depth);
                send(
                    &mut http,
                    depth,
                    &self.config,
                    &self.clock,
                    &self.event_loop,
                );
                slot.stage = Stage::Open(http);
                self.read(id);
            }
        }
    }

    /// Reads what is there, and ends the call if its response is complete.
    fn read(&mut self, id: u64) {
        let Some(Slot {
            stage: Stage::Open(http),
            waiter,
        }) = self.slots.get_mut(&id)
        else {
            return;
        };
        let mut last = LastOutcome::default();
        if self.event_loop.read(http, &mut last) {
            self.unfinished.push(id);
        }
        let has_ended = http.ended().is_some();
        let is_kept = self.config.keepalive && !has_ended && http.state() == State::Ready;
        match last.0 {
            Some(outcome) if is_kept => {
                self.idle.push(id);
                if let Some(waiter) = waiter.take() {
                    // the response may be gone
                    let _ = waiter.outcome_to.send(outcome);
                }
            }
            Some(outcome) => self.end(id, outcome),
            None if has_ended => self.end(id, Outcome::Failed(Failure::Closed)),
            None => {}
        }
    }

    /// Ends a connection, and the call that it carries.
    fn end(&mut self, id: u64, outcome: Outcome) {
        self.idle.retain(|idle| *idle != id);
        let Some(slot) = self.slots.remove(&id) else {
            return;
        };
        if let Stage::Open(http) = slot.stage {
            http.close(self.clock.now());
        }
        if let Some(waiter) = slot.waiter {
            let _ = waiter.outcome_to.send(outcome);
        }
    }
}

/// Begins the request of a call.
fn send(
    http: &mut HttpConnection,
    depth: usize,
    config: &UpstreamConfig,
    clock: &Clock,
    event_loop: &EventLoop,
) {
    let number = http.exchanges() + 1;
    let request = &config.requests[depth.min(DEEPEST - 1)];
    http.begin(request, number, clock.now(), false);
    event_loop.send(http);
}
