//! Dials: a single one that blocks the caller, and several that progress while other connections
//! carry requests.

use super::{Probed, Prober, StopReason};
use crate::config::is_local;
use crate::line::Line;
use intact_client::{Plan, Progress};
use intact_ledger::server_profile::Outage;
use intact_ledger::{Connection, DialFailure, Event, Failure, Nanos, Protocol, SetupPhase, Span};
use std::sync::Arc;
use std::time::Duration;

/// How long a server that refuses a dial is tried again. A supervisor restarts most within that.
const RETURN: Duration = Duration::from_secs(2);
/// The interval between these dials.
const REDIAL: Duration = Duration::from_millis(250);

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
    /// Opens a connection. The inner error is a failed dial. If a server that has responded refuses
    /// the dial, it is tried again for [`RETURN`], and then the check ends.
    pub(crate) fn open(&mut self, plan: &Arc<Plan>) -> Probed<Opened> {
        let opened = self.open_once(plan)?;
        if self.listener != Some(is_quic(plan)) {
            return Ok(opened);
        }
        match opened {
            Err(refused) if refusal(&refused).is_some() => self.open_again(plan, &refused),
            opened => {
                self.note_accepted(&opened);
                Ok(opened)
            }
        }
    }

    /// From now on a refused dial in the transport of this version is an outage.
    pub(crate) fn expect_listener(&mut self, http: Protocol) {
        self.listener = Some(http == Protocol::Http3);
        self.accepted_at = self.clock.now();
    }

    fn note_accepted(&mut self, opened: &Opened) {
        if opened.is_ok() {
            self.accepted_at = self.clock.now();
        }
    }

    /// Dials again after a refusal, and records the outage.
    fn open_again(&mut self, plan: &Arc<Plan>, refused: &Connection) -> Probed<Opened> {
        let now = self.clock.now();
        if let Some(failed) = refusal(refused) {
            self.outages.push(Outage {
                requests: self.budget.spent(),
                failure: failed.kind,
                detail: failed.detail.as_deref().map(str::to_owned),
                began: Span::new(self.accepted_at, now),
                over_at: None,
            });
        }
        let until = now.after(RETURN.as_nanos() as u64);
        while self.clock.now() < until {
            self.wait_until(self.clock.now().after(REDIAL.as_nanos() as u64))?;
            let opened = self.open_once(plan)?;
            if opened
                .as_ref()
                .is_err_and(|failed| refusal(failed).is_some())
            {
                continue;
            }
            let now = self.clock.now();
            if let Some(outage) = self.outages.last_mut() {
                outage.over_at = Some(now);
            }
            self.note_accepted(&opened);
            return Ok(opened);
        }
        Err(StopReason::Gone)
    }

    fn open_once(&mut self, plan: &Arc<Plan>) -> Probed<Opened> {
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
            deadline: self.deadline(self.clock.now()),
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
        let connection = pending.dial.give_up(kind);
        self.observer.event(Event::Opened(&connection));
        connection
    }
}

fn is_quic(plan: &Plan) -> bool {
    plan.protocol == Protocol::Http3
}

/// The failure of a dial that the server's machine, or its network, refused. A timeout is none: a
/// server that is busy accepts late.
fn refusal(connection: &Connection) -> Option<&DialFailure> {
    let is_refused = |failed: &&DialFailure| {
        let is_kind = matches!(
            failed.kind,
            Failure::Refused | Failure::Unreachable | Failure::ConnectReset
        );
        // a server may reset a handshake of TLS that it does not support
        is_kind && failed.phase == SetupPhase::Connect
    };
    connection.failed.as_ref().filter(is_refused)
}
