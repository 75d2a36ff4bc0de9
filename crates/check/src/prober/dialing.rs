//! Dials: a single one that blocks the caller, and several that progress while other connections
//! carry requests.

use super::{Prober, StopReason};
use crate::line::Line;
use crate::plans::is_local;
use intact_client::{Plan, Progress};
use intact_ledger::{Connection, Event, Failure, Nanos, Protocol};
use std::sync::Arc;

/// An open connection, or the record of a dial that failed.
pub(crate) type Opened = Result<Line, Box<Connection>>;

/// A dial in progress.
pub(crate) struct PendingDial {
    dial: intact_client::PendingDial,
    protocol: Protocol,
    /// Its deadline.
    pub(crate) deadline: Nanos,
}

impl Prober<'_> {
    /// Opens a connection. The inner error is a failed dial.
    pub(crate) fn open(&mut self, plan: &Arc<Plan>) -> Result<Opened, StopReason> {
        self.wait_for_turn(is_local(&plan.endpoint))?;
        let mut pending = self.dial(plan);
        loop {
            if let Some(opened) = self.opened(&mut pending) {
                return Ok(opened);
            }
            let stopped = self.may_go_on();
            if stopped.is_err() || self.clock.now() >= pending.deadline {
                let kind = match stopped {
                    Ok(()) => Failure::Timeout,
                    Err(_) => Failure::Aborted,
                };
                let connection = self.give_up_dial(pending, kind);
                return stopped.map(|()| Err(connection));
            }
            let timer = pending.dial.timer().unwrap_or(pending.deadline);
            self.wait(pending.deadline.min(self.over_at).min(timer))?;
            self.drive(std::slice::from_mut(&mut pending));
        }
    }

    /// Starts a dial without waiting.
    pub(crate) fn dial(&mut self, plan: &Arc<Plan>) -> PendingDial {
        let id = self.id();
        PendingDial {
            deadline: self.clock.now().after(self.timeout),
            dial: self.event_loop.dial(plan, id),
            protocol: plan.protocol,
        }
    }

    /// Advances dials by the events of the last wait.
    pub(crate) fn drive(&mut self, dials: &mut [PendingDial]) {
        let all = dials.iter_mut().map(|pending| &mut pending.dial);
        self.event_loop.advance(all);
        for lookup in dials.iter_mut().filter_map(|one| one.dial.take_lookup()) {
            self.observer.event(Event::Lookup(&lookup));
        }
    }

    /// Records the result of a finished dial, and returns it.
    pub(crate) fn opened(&mut self, pending: &mut PendingDial) -> Option<Opened> {
        match pending.dial.take_progress() {
            Progress::Established(established) => {
                // otherwise it is recorded after its handshake
                if !established.is_early() {
                    self.observer.event(Event::Opened(&established.connection));
                }
                Some(Ok(Line::new(*established, pending.protocol)))
            }
            Progress::Failed(connection) => {
                self.observer.event(Event::Opened(&connection));
                Some(Err(connection))
            }
            Progress::Pending => None,
        }
    }

    /// Abandons a dial, and returns its record.
    pub(crate) fn give_up_dial(&mut self, pending: PendingDial, kind: Failure) -> Box<Connection> {
        let connection = pending.dial.give_up(&self.clock, kind);
        self.observer.event(Event::Opened(&connection));
        connection
    }
}
