//! The connections of the calls, kept or new, as `client` drives them. Knows no thread.

use super::{UpstreamConfig, WAKER};
use crate::server_tally::ServerTally;
use intact_client::clock::TimestampConverter;
use intact_client::{Clock, Detail, Dial, HttpConnection, Progress, Received, Resolver, State};
use intact_ledger::{
    ConnectionId, Event, Exchange, ExpectedStatus, Failure, Nanos, Outcome, Protocol, Sink,
};
use mio::{Events, Registry, Token};
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::oneshot;

/// Reads of a connection before the others have their turn.
const READS_PER_TURN: usize = 16;
/// Bytes of a read.
const BUFFER: usize = 64 * 1024;

/// The connections of the calls.
pub(super) struct Connections {
    config: UpstreamConfig,
    tally: Arc<ServerTally>,
    clock: Clock,
    registry: Registry,
    resolver: Resolver,
    slots: HashMap<usize, Slot>,
    /// Kept connections that carry no call, the last one used at the end.
    idle: Vec<usize>,
    /// Connections of which more can be read.
    unfinished: Vec<usize>,
    last_key: usize,
    buffer: Vec<u8>,
}

/// One connection, and who waits for it.
struct Slot {
    stage: Stage,
    waiter: Option<oneshot::Sender<Outcome>>,
}

enum Stage {
    Dialing(Box<Dial>),
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
    /// None yet. Events of `registry` and answers of `resolver` come to [`Connections::advance`].
    pub(super) fn new(
        config: UpstreamConfig,
        tally: Arc<ServerTally>,
        clock: Clock,
        registry: Registry,
        resolver: Resolver,
    ) -> Connections {
        Connections {
            config,
            tally,
            clock,
            registry,
            resolver,
            slots: HashMap::new(),
            idle: Vec::new(),
            unfinished: Vec::new(),
            last_key: WAKER.0,
            buffer: vec![0; BUFFER],
        }
    }

    /// Whether more can be read without an event.
    pub(super) fn has_more(&self) -> bool {
        !self.unfinished.is_empty()
    }

    /// Ends the connections of calls that were given up.
    pub(super) fn give_up(&mut self) {
        let is_awaited = |slot: &Slot| slot.waiter.as_ref().is_none_or(|one| !one.is_closed());
        self.slots.retain(|_, slot| is_awaited(slot));
    }

    /// Begins a call on a kept connection, else on a new one.
    pub(super) fn call(&mut self, waiter: oneshot::Sender<Outcome>) {
        while let Some(key) = self.idle.pop() {
            if let Some(slot) = self.slots.get_mut(&key)
                && let Stage::Open(http) = &mut slot.stage
            {
                slot.waiter = Some(waiter);
                send(http, &self.config, &self.clock);
                return;
            }
        }
        self.last_key += 1;
        let key = self.last_key;
        let (dial, progress) = Dial::start(
            &self.config.plan,
            ConnectionId(key as u64),
            key as u64,
            Token(key),
            &mut self.resolver,
            &self.registry,
            &self.clock,
        );
        let slot = Slot {
            stage: Stage::Dialing(Box::new(dial)),
            waiter: Some(waiter),
        };
        self.slots.insert(key, slot);
        self.progress(key, progress);
    }

    /// Takes what happened.
    pub(super) fn advance(&mut self, events: &Events) {
        let unfinished = std::mem::take(&mut self.unfinished);
        for key in unfinished {
            self.ready(key);
        }
        for event in events {
            if event.token() != WAKER {
                self.ready(event.token().0);
            }
        }
        while let Some(answer) = self.resolver.answer() {
            let key = answer.key as usize;
            if let Some(slot) = self.slots.get_mut(&key)
                && let Stage::Dialing(dial) = &mut slot.stage
            {
                let progress = dial.resolved(answer, &self.registry, &self.clock);
                self.progress(key, progress);
            }
        }
    }

    /// Something happened to this connection.
    fn ready(&mut self, key: usize) {
        let Some(slot) = self.slots.get_mut(&key) else {
            return;
        };
        match &mut slot.stage {
            Stage::Dialing(dial) => {
                let progress = dial.ready(&self.registry, &self.clock);
                self.progress(key, progress);
            }
            Stage::Open(_) => self.read(key),
        }
    }

    fn progress(&mut self, key: usize, progress: Progress) {
        match progress {
            Progress::Pending => {}
            Progress::Failed(connection) => {
                let kind = connection.failed.map(|failed| failed.kind);
                let outcome = Outcome::Failed(kind.unwrap_or(Failure::Unreachable));
                self.end(key, outcome);
            }
            Progress::Established(established) => {
                self.tally.called_on_new_connection();
                let Some(slot) = self.slots.get_mut(&key) else {
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
                send(&mut http, &self.config, &self.clock);
                slot.stage = Stage::Open(http);
                self.read(key);
            }
        }
    }

    /// Reads what is there, and ends the call if its response is complete.
    fn read(&mut self, key: usize) {
        let Some(Slot {
            stage: Stage::Open(http),
            ..
        }) = self.slots.get_mut(&key)
        else {
            return;
        };
        let (clock, mut last) = (&self.clock, LastOutcome::default());
        http.flush();
        http.receive_buffered(clock, &mut last);
        let mut reads = 0;
        while reads < READS_PER_TURN && http.ended().is_none() {
            let timestamps = TimestampConverter::read(clock);
            match http.receive(&mut self.buffer, clock, &timestamps, &mut last) {
                Received::Bytes { .. } => reads += 1,
                Received::Nothing | Received::Ended => break,
            }
        }
        if reads == READS_PER_TURN {
            self.unfinished.push(key);
        }
        let has_ended = http.ended().is_some();
        if has_ended {
            http.give_up(None, clock.now(), &mut last);
        }
        let is_kept = self.config.keepalive && !has_ended && http.state() == State::Ready;
        match last.0 {
            Some(outcome) if is_kept => {
                self.idle.push(key);
                if let Some(waiter) = self.slots.get_mut(&key).and_then(|slot| slot.waiter.take()) {
                    // the response may be gone
                    let _ = waiter.send(outcome);
                }
            }
            Some(outcome) => self.end(key, outcome),
            None if has_ended => self.end(key, Outcome::Failed(Failure::Closed)),
            None => {}
        }
    }

    /// Ends a connection, and the call that it carries.
    fn end(&mut self, key: usize, outcome: Outcome) {
        self.idle.retain(|idle| *idle != key);
        let Some(slot) = self.slots.remove(&key) else {
            return;
        };
        if let Stage::Open(http) = slot.stage {
            http.close(self.clock.now());
        }
        if let Some(waiter) = slot.waiter {
            // the response may be gone
            let _ = waiter.send(outcome);
        }
    }
}

/// Sends the request on an open connection. An error shows again in the next read.
fn send(http: &mut HttpConnection, config: &UpstreamConfig, clock: &Clock) {
    let number = http.exchanges() + 1;
    http.begin(&config.request, number, clock.now(), false);
    let _ = http.send(clock);
    http.flush();
}
