//! Dials: one that is waited for, and several that are driven on while other connections carry requests.

use super::{Prober, StopReason};
use crate::line::Line;
use crate::plans::is_local;
use intact_client::{Dial, Plan, Progress};
use intact_ledger::{Connection, ConnectionId, Event, Failure, Nanos, Protocol};
use mio::Token;
use std::sync::Arc;

/// An open connection, or the record of a dial that failed.
pub(crate) type Opened = Result<Line, Box<Connection>>;

/// A dial under way.
pub(crate) struct PendingDial {
    dial: Dial,
    progress: Progress,
    id: u64,
    protocol: Protocol,
    /// When it is given up.
    pub(crate) deadline: Nanos,
}

impl Prober<'_> {
    /// Opens a connection; the inner error is a dial that failed.
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
            self.wait(pending.deadline.min(self.over_at))?;
            self.drive(std::slice::from_mut(&mut pending));
        }
    }

    /// Starts a dial and does not wait for it.
    pub(crate) fn dial(&mut self, plan: &Arc<Plan>) -> PendingDial {
        let id = self.id();
        let deadline = self.clock.now().after(self.timeout);
        let (dial, progress) = Dial::start(
            plan,
            ConnectionId(id),
            id,
            Token(id as usize),
            &mut self.resolver,
            self.poll.registry(),
            &self.clock,
        );
        PendingDial {
            dial,
            progress,
            id,
            protocol: plan.protocol,
            deadline,
        }
    }

    /// Drives dials on by the events of the last wait.
    pub(crate) fn drive(&mut self, dials: &mut [PendingDial]) {
        for pending in &mut *dials {
            let token = Token(pending.id as usize);
            if self.events.iter().any(|event| event.token() == token) {
                pending.progress = pending.dial.ready(self.poll.registry(), &self.clock);
            }
        }
        while let Some(answer) = self.resolver.answer() {
            // answers to dials that were given up come here too
            let Some(pending) = dials.iter_mut().find(|pending| pending.id == answer.key) else {
                continue;
            };
            let registry = self.poll.registry();
            pending.progress = pending
                .dial
                .resolved(answer.addresses, registry, &self.clock);
            if let Some(lookup) = pending.dial.take_lookup() {
                self.observer.event(Event::Lookup(&lookup));
            }
        }
    }

    /// The result of a dial that is over, which is recorded.
    pub(crate) fn opened(&mut self, pending: &mut PendingDial) -> Option<Opened> {
        match std::mem::replace(&mut pending.progress, Progress::Pending) {
            Progress::Established(established) => {
                self.observer.event(Event::Opened(&established.connection));
                Some(Ok(Line::new(*established, pending.protocol)))
            }
            Progress::Failed(connection) => {
                self.observer.event(Event::Opened(&connection));
                Some(Err(connection))
            }
            Progress::Pending => None,
        }
    }

    /// Gives a dial up; what is recorded of it.
    pub(crate) fn give_up_dial(
        &mut self,
        mut pending: PendingDial,
        kind: Failure,
    ) -> Box<Connection> {
        let connection = pending.dial.give_up(&self.clock, kind);
        self.observer.event(Event::Opened(&connection));
        connection
    }
}
