//! Measures from the signal to the end of the process. Sends requests on kept and on new
//! connections at a low rate, and records each outcome.

use super::nanos;
use crate::context::ProbeContext;
use crate::line::{Answered, Line};
use crate::prober::{PendingDial, Probed, Prober};
use crate::progress::CheckError;
use crate::server_process::{EndSignal, ServerProcess};
use intact_client::{Plan, RequestSpec};
use intact_ledger::server_profile::{Drain, DrainConnection, DrainRequest, DrainRole};
use intact_ledger::{Failure, Nanos, Protocol, Side};
use std::sync::Arc;
use std::time::Duration;

/// The tag of the exchanges of a drain.
const TAG: &str = "drain";
/// The interval between requests on a used connection, and between new connections: at first, and
/// later.
const PERIOD: [Duration; 2] = [Duration::from_millis(100), Duration::from_millis(500)];
/// How long the shorter interval applies.
const DENSE: Duration = Duration::from_secs(3);
/// The delay of the first new connection after the signal.
const FIRST_NEW: Duration = Duration::from_millis(10);
/// How long to wait for the server's close after its announcement, as clients do.
const LINGER: Duration = Duration::from_secs(1);
/// How long to observe connections after the last process of the group ended. A response in this
/// time is from another process.
const AFTERMATH: Duration = Duration::from_millis(500);
/// The longest wait for killed processes to end.
const REAP: Duration = Duration::from_secs(5);
/// How often the state of the process is read.
const GLANCE: Duration = Duration::from_millis(5);

/// The maximum time between two steps.
pub(super) fn turns(limit: Duration) -> u32 {
    let all = limit + REAP + AFTERMATH;
    let dense = all.min(DENSE).as_millis() / PERIOD[0].as_millis();
    let sparse = all.saturating_sub(DENSE).as_millis() / PERIOD[1].as_millis();
    u32::try_from(dense + sparse).unwrap_or(u32::MAX / 16) + 2
}

/// A connection under measurement. Its record has the same index in [`Drain::connections`].
struct Member {
    /// Present until the connection is closed.
    line: Option<Line>,
    /// The time at which the request in flight was sent.
    sent_at: Option<Nanos>,
    /// The time at which the next request is due, on a used connection.
    due: Nanos,
}

/// The connections, their records, and the attempts to open new ones.
pub(super) struct Measurement {
    pub(super) drain: Drain,
    members: Vec<Member>,
    usual: RequestSpec,
    /// The plans of new connections, used in turn.
    plans: Vec<Arc<Plan>>,
    next_plan: usize,
    next_new: Nanos,
    /// Dials in progress, each with the index of its record.
    dials: Vec<PendingDial>,
    dialled: Vec<usize>,
    /// Whether the signal was sent.
    pub(super) is_signalled: bool,
}

impl Measurement {
    pub(super) fn new(
        drain: Drain,
        usual: RequestSpec,
        spoken: &[(Protocol, bool)],
        context: &ProbeContext<'_>,
    ) -> Probed<Measurement> {
        let mut plans = Vec::new();
        for &(version, _) in spoken {
            plans.push(context.plans.plan(version, None)?);
        }
        Ok(Measurement {
            drain,
            members: Vec::new(),
            usual,
            plans,
            next_plan: 0,
            next_new: Nanos(u64::MAX),
            dials: Vec::new(),
            dialled: Vec::new(),
            is_signalled: false,
        })
    }

    /// Adds an open connection.
    pub(super) fn add(&mut self, line: Line, http: Protocol, role: DrainRole) {
        self.add_member(line.connection().at, Some(line), http, role);
    }

    /// Adds a connection, or one that is dialled `at` this time.
    fn add_member(&mut self, at: Nanos, line: Option<Line>, http: Protocol, role: DrainRole) {
        self.drain.connections.push(DrainConnection {
            role,
            http,
            at,
            failed: None,
            announced_at: None,
            last_stream: None,
            ended: None,
        });
        self.members.push(Member {
            line,
            sent_at: None,
            due: Nanos(u64::MAX),
        });
    }

    /// Sends this request on each connection that must have a request in flight and has none.
    pub(super) fn send_in_flight(
        &mut self,
        prober: &mut Prober<'_>,
        request: &RequestSpec,
        nth: usize,
    ) -> Probed {
        let mut seen = 0;
        for at in 0..self.members.len() {
            let member = &self.members[at];
            if self.drain.connections[at].role != DrainRole::InFlight || member.sent_at.is_some() {
                continue;
            }
            seen += 1;
            if seen % nth == 0 {
                self.send(prober, at, request)?;
            }
        }
        Ok(())
    }

    /// Sends a request on a connection, if it accepts one.
    fn send(&mut self, prober: &mut Prober<'_>, at: usize, request: &RequestSpec) -> Probed {
        self.pump(prober, at);
        let member = &mut self.members[at];
        if let Some(line) = member.line.as_mut().filter(|line| line.is_usable())
            && member.sent_at.is_none()
        {
            member.sent_at = Some(prober.begin(line, request, true)?);
        }
        Ok(())
    }

    /// Sends the signal.
    pub(super) fn signal(
        &mut self,
        prober: &mut Prober<'_>,
        server: &mut dyn ServerProcess,
        signal: EndSignal,
    ) -> Probed {
        server.ask_to_end(signal).map_err(CheckError::Server)?;
        let at = prober.clock.now();
        self.drain.at = at;
        self.is_signalled = true;
        self.next_new = at.after(nanos(FIRST_NEW));
        // responses from before the signal do not belong to the drain
        self.drain.requests.clear();
        let roles = self.drain.connections.iter().map(|one| one.role);
        let used: Vec<usize> = roles
            .enumerate()
            .filter(|(_, role)| *role == DrainRole::Used)
            .map(|(at, _)| at)
            .collect();
        let step = nanos(PERIOD[0]) / used.len().max(1) as u64;
        for (nth, &member) in used.iter().enumerate() {
            self.members[member].due = at.after(step * nth as u64);
        }
        Ok(())
    }

    /// Records until the process has ended.
    pub(super) fn run(
        &mut self,
        prober: &mut Prober<'_>,
        server: &mut dyn ServerProcess,
    ) -> Probed {
        let kill_at = self.drain.at.after(self.drain.limit_ns);
        let give_up_at = kill_at.after(nanos(REAP));
        loop {
            prober.may_go_on()?;
            let more = self.pump_all(prober);
            self.drive_dials(prober)?;
            self.send_due(prober)?;
            let now = prober.clock.now();
            let is_left = self.look_at(server, now)?;
            if self.is_over(is_left, now) || now >= give_up_at {
                break;
            }
            if now >= kill_at && self.drain.process.killed_at.is_none() {
                server.kill().map_err(CheckError::Server)?;
                self.drain.process.killed_at = Some(now);
            }
            prober.observer.waiting(prober.clock.until(kill_at));
            if !more {
                prober.wait(now.after(nanos(GLANCE)))?;
                prober.drive(&mut self.dials);
            }
        }
        self.drain.over_at = prober.clock.now();
        Ok(())
    }

    /// Reads until then.
    pub(super) fn wait_until(&mut self, prober: &mut Prober<'_>, until: Nanos) -> Probed {
        while prober.clock.now() < until {
            prober.may_go_on()?;
            if !self.pump_all(prober) {
                prober.wait(until)?;
            }
        }
        Ok(())
    }

    /// Records the state of the process. Returns whether a process of its group is left.
    fn look_at(&mut self, server: &mut dyn ServerProcess, now: Nanos) -> Probed<bool> {
        let state = server.state().map_err(CheckError::Server)?;
        let process = &mut self.drain.process;
        let by_itself = process.killed_at.is_none();
        if process.status.is_none() && state.ended.is_some() {
            process.command_at = by_itself.then_some(now);
            process.status = state.ended;
        }
        if !state.is_left && by_itself {
            process.group_at.get_or_insert(now);
        }
        Ok(state.is_left)
    }

    /// Whether the measurement is over: the processes have ended, and the connections have ended or
    /// were observed for [`AFTERWARDS`].
    fn is_over(&self, is_left: bool, now: Nanos) -> bool {
        let process = &self.drain.process;
        if is_left {
            return false;
        }
        let all_ended = self.dials.is_empty() && self.members.iter().all(|one| one.line.is_none());
        let gone_at = process.group_at.or(process.killed_at).unwrap_or(now);
        all_ended || now >= gone_at.after(nanos(AFTERMATH))
    }

    fn pump_all(&mut self, prober: &mut Prober<'_>) -> bool {
        let mut more = false;
        for at in 0..self.members.len() {
            more |= self.pump(prober, at);
        }
        more
    }

    /// Reads the available bytes of a connection, and closes it if it has ended. Returns whether
    /// more may be available.
    fn pump(&mut self, prober: &mut Prober<'_>, at: usize) -> bool {
        let Some(line) = &mut self.members[at].line else {
            return false;
        };
        let (answered, more) = prober.pump(line, Some(TAG));
        let was_answered = answered.is_some();
        self.note(at, answered);
        let member = &self.members[at];
        let record = &self.drain.connections[at];
        let now = prober.clock.now();
        let is_idle = member.sent_at.is_none();
        let was_waited_for = |since: Nanos| now >= since.after(nanos(LINGER));
        let is_over = record.ended.is_some()
            || is_idle && record.announced_at.is_some_and(was_waited_for)
            || was_answered && record.role == DrainRole::New;
        if is_over && let Some(line) = self.members[at].line.take() {
            prober.close(line);
        }
        more
    }

    /// Records the state of a connection, and the exchange that ended on it.
    fn note(&mut self, at: usize, answered: Option<Answered>) {
        let member = &mut self.members[at];
        let record = &mut self.drain.connections[at];
        let Some(line) = &member.line else { return };
        record.last_stream = line.http.life().goaway_stream;
        if let Some(goaway) = line.http.life().goaway_at {
            record.announced_at.get_or_insert(goaway);
        }
        // a GOAWAY ends the use of a connection, and streams in flight continue
        if let Some(ended) = line.http.ended() {
            record.ended = line.ended().map(|(_, how)| (ended.at, how));
        }
        let Some(answered) = answered else { return };
        let exchange = &answered.exchange;
        let announced = line.http.life().announced_by == Some(Side::Server);
        if announced {
            record.announced_at.get_or_insert(exchange.end);
        }
        if let Some(sent_at) = member.sent_at.take()
            && (!self.is_signalled || exchange.end > self.drain.at)
        {
            self.drain.requests.push(DrainRequest {
                connection: at,
                sent_at,
                ended_at: exchange.end,
                outcome: exchange.outcome,
                status: exchange.status,
                announced,
            });
        }
    }

    /// Sends the requests that are due on kept connections, and opens a new connection if one is
    /// due.
    fn send_due(&mut self, prober: &mut Prober<'_>) -> Probed {
        let now = prober.clock.now();
        let period = PERIOD[usize::from(now.since(self.drain.at) >= nanos(DENSE))];
        let usual = self.usual.clone();
        for at in 0..self.members.len() {
            if now >= self.members[at].due {
                self.members[at].due = now.after(nanos(period));
                self.send(prober, at, &usual)?;
            }
        }
        if now >= self.next_new && !self.plans.is_empty() {
            self.next_new = now.after(nanos(period));
            let plan = self.plans[self.next_plan % self.plans.len()].clone();
            self.next_plan += 1;
            self.dialled.push(self.drain.connections.len());
            self.add_member(now, None, plan.protocol, DrainRole::New);
            self.dials.push(prober.dial(&plan));
        }
        Ok(())
    }

    /// Collects established dials, and sends a request on each.
    fn drive_dials(&mut self, prober: &mut Prober<'_>) -> Probed {
        let mut nth = 0;
        while nth < self.dials.len() {
            let is_late = prober.clock.now() >= self.dials[nth].deadline;
            let opened = match prober.opened(&mut self.dials[nth]) {
                None if !is_late => {
                    nth += 1;
                    continue;
                }
                opened => opened,
            };
            let pending = self.dials.swap_remove(nth);
            let at = self.dialled.swap_remove(nth);
            let opened =
                opened.unwrap_or_else(|| Err(prober.give_up_dial(pending, Failure::Timeout)));
            match opened {
                Ok(line) => {
                    self.members[at].line = Some(line);
                    let usual = self.usual.clone();
                    self.send(prober, at, &usual)?;
                }
                Err(connection) => {
                    self.drain.connections[at].failed = connection.failed.map(|one| one.kind);
                }
            }
        }
        Ok(())
    }

    /// Abandons the exchanges in flight, and closes every connection.
    pub(super) fn close_all(&mut self, prober: &mut Prober<'_>) {
        for pending in self.dials.drain(..) {
            prober.give_up_dial(pending, Failure::Aborted);
        }
        for at in 0..self.members.len() {
            let member = &mut self.members[at];
            let Some(line) = &mut member.line else {
                continue;
            };
            let answered = if member.sent_at.is_some() {
                line.give_up(Failure::Timeout, prober.clock.now());
                prober.take_answered(line, Some(TAG))
            } else {
                None
            };
            self.note(at, answered);
            if let Some(line) = self.members[at].line.take() {
                prober.close(line);
            }
        }
    }
}
