//! Opens connections and sends requests, one step at a time, on an event loop of its own. Each
//! request counts against the budget. The observer gets each event.

mod dialing;

pub(crate) use dialing::{Opened, PendingDial};

use crate::budget::Budget;
use crate::line::{Answered, Line};
use crate::progress::{CheckError, CheckProgress};
use intact_client::{Clock, EventLoop, RequestSpec};
use intact_ledger::server_profile::Outage;
use intact_ledger::{Event, Failure, Nanos};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// How often Ctrl-C is checked.
const GLANCE: Duration = Duration::from_millis(100);

/// How long to wait for a close that was announced.
const LINGER: Duration = Duration::from_secs(1);

/// The maximum of new connections per second to a remote server.
pub const CONNECTIONS_PER_S: u32 = 10;

/// Nanoseconds between two of them.
const SPACING: u64 = 1_000_000_000 / CONNECTIONS_PER_S as u64;

/// What a step of a probe leads to, unless the probe ends early.
pub(crate) type Probed<T = ()> = Result<T, StopReason>;

/// Why a probe ended early.
#[derive(Debug)]
pub(crate) enum StopReason {
    /// The user stopped the check.
    Stopped,
    /// The budget is used up.
    Spent,
    /// The time limit of the check is reached.
    OutOfTime,
    /// The server refuses connections, after it has responded.
    Gone,
    /// The check cannot run.
    Failed(CheckError),
}

impl<E: Into<CheckError>> From<E> for StopReason {
    fn from(error: E) -> StopReason {
        StopReason::Failed(error.into())
    }
}

/// Opens connections and sends requests, within the budget.
pub(crate) struct Prober<'a> {
    pub(crate) clock: Clock,
    pub(crate) observer: &'a mut dyn CheckProgress,
    pub(crate) budget: Budget,
    event_loop: EventLoop,
    /// The limit for one request, and for one dial, in nanoseconds.
    pub(crate) patience: Duration,
    last_id: u64,
    /// The earliest time of the next dial to a remote server.
    next_opening: Nanos,
    /// The time from which the next request may be sent.
    next_request: Nanos,
    /// The minimum interval between requests, in nanoseconds.
    request_spacing: u64,
    /// The deadline of the check. Idle waits extend it.
    over_at: Nanos,
    /// The transport in which the server has responded (`true`: QUIC); absent before that.
    listener: Option<bool>,
    /// The time of the last accepted connection in that transport.
    accepted_at: Nanos,
    /// Times in which the server refused dials.
    pub(crate) outages: Vec<Outage>,
}

impl<'a> Prober<'a> {
    /// A prober whose requests and dials may each take as long as `patience`.
    pub(crate) fn new(
        clock: Clock,
        patience: Duration,
        budget: Budget,
        observer: &'a mut dyn CheckProgress,
    ) -> io::Result<Prober<'a>> {
        Ok(Prober {
            clock,
            observer,
            budget,
            event_loop: EventLoop::new(clock)?,
            patience,
            last_id: 0,
            next_opening: Nanos(0),
            next_request: Nanos(0),
            request_spacing: 0,
            over_at: Nanos(u64::MAX),
            listener: None,
            accepted_at: Nanos(0),
            outages: Vec::new(),
        })
    }

    /// Sets the time limit of the check. Idle waits do not count.
    pub(crate) fn within(mut self, time: Duration) -> Prober<'a> {
        let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.over_at = self.clock.now().after(time);
        self
    }

    /// Fails if the user stopped the check or the time limit is reached.
    pub(crate) fn may_go_on(&self) -> Probed {
        if self.observer.stopped() {
            return Err(StopReason::Stopped);
        }
        if self.clock.now() >= self.over_at {
            return Err(StopReason::OutOfTime);
        }
        Ok(())
    }

    /// Sets the maximum of requests per second.
    pub(crate) fn at_most(mut self, requests_per_s: Option<f64>) -> Prober<'a> {
        // a float that is too large for the type becomes its largest value
        self.request_spacing = requests_per_s.map_or(0, |rate| (1e9 / rate).ceil() as u64);
        self
    }

    /// Waits until another connection may be opened. There is no wait for a server on this machine.
    pub(crate) fn wait_for_turn(&mut self, local: bool) -> Probed {
        // waits for the first request's slot before the dial: a later wait would count as time of
        // that request
        self.wait_until(self.next_request)?;
        if local {
            return Ok(());
        }
        self.wait_until(self.next_opening)?;
        self.next_opening = self.clock.now().after(SPACING);
        Ok(())
    }

    /// The earliest time of the next request; [`Prober::ask`] waits for it.
    pub(crate) fn next_request(&self) -> Nanos {
        self.next_request
    }

    fn wait_until(&mut self, turn: Nanos) -> Probed {
        while self.clock.now() < turn {
            self.may_go_on()?;
            self.wait(turn)?;
        }
        Ok(())
    }

    /// When a request or a dial that began at this time has failed.
    pub(crate) fn deadline(&self, begun: Nanos) -> Nanos {
        begun.after(u64::try_from(self.patience.as_nanos()).unwrap_or(u64::MAX))
    }

    /// The id of a connection or an exchange.
    pub(crate) fn id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    /// Sends a request and waits for its outcome.
    pub(crate) fn ask(
        &mut self,
        line: &mut Line,
        request: &RequestSpec,
        tag: Option<&str>,
    ) -> Probed<Answered> {
        self.exchange(line, request, tag, true)
    }

    /// Sends a request without waiting; [`Prober::pump`] reads the response. Returns the time of
    /// the send.
    pub(crate) fn begin(
        &mut self,
        line: &mut Line,
        request: &RequestSpec,
        send: bool,
    ) -> Probed<Nanos> {
        if !self.budget.take() {
            return Err(StopReason::Spent);
        }
        if send {
            self.wait_until(self.next_request)?;
        }
        line.sent_before = self.budget.spent().saturating_sub(1);
        let now = self.clock.now();
        self.next_request = now.after(self.request_spacing);
        let id = self.id();
        let request = Arc::new(request.format(line.protocol));
        line.begin(&request, id, &self.event_loop, self.clock.now(), !send);
        Ok(now)
    }

    /// Reads without waiting. Returns the exchange that ended, and whether more bytes may be
    /// available.
    pub(crate) fn pump(&mut self, line: &mut Line, tag: Option<&str>) -> (Option<Answered>, bool) {
        let more = line.pump(&mut self.event_loop);
        (self.take_answered(line, tag), more)
    }

    /// Records the exchange that ended, and returns it.
    pub(crate) fn take_answered(&mut self, line: &mut Line, tag: Option<&str>) -> Option<Answered> {
        if let Some(connection) = line.take_opened() {
            self.observer.event(Event::Opened(&connection));
        }
        let mut answered = line.answered.take()?;
        answered.exchange.tag = tag.map(Into::into);
        self.observer.event(Event::Exchange(&answered.exchange));
        Some(answered)
    }

    /// Waits for the outcome of a request; it is sent unless it was sent as early data.
    pub(crate) fn exchange(
        &mut self,
        line: &mut Line,
        request: &RequestSpec,
        tag: Option<&str>,
        send: bool,
    ) -> Probed<Answered> {
        self.may_go_on()?;
        let begun = self.begin(line, request, send)?;
        let due = vec![Some(self.deadline(begun))];
        let answered = self.finish(std::slice::from_mut(line), due, tag)?.pop();
        answered.flatten().ok_or(StopReason::Stopped)
    }

    /// Waits for the outcomes of the requests that were begun, each until it is `due`. Returns them
    /// by connection.
    pub(crate) fn finish(
        &mut self,
        lines: &mut [Line],
        mut due: Vec<Option<Nanos>>,
        tag: Option<&str>,
    ) -> Probed<Vec<Option<Answered>>> {
        let mut answers: Vec<Option<Answered>> = due.iter().map(|_| None).collect();
        loop {
            let mut more = false;
            for (nth, line) in lines.iter_mut().enumerate() {
                if due[nth].is_none() {
                    continue;
                }
                let (answered, is_more) = self.pump(line, tag);
                more |= is_more;
                due[nth] = due[nth].filter(|_| answered.is_none());
                answers[nth] = answered;
            }
            let Some(first_due) = due.iter().flatten().copied().min() else {
                return Ok(answers);
            };
            let now = self.clock.now();
            let stopped = self.may_go_on();
            let kind = match stopped {
                Ok(()) => Failure::Timeout,
                Err(_) => Failure::Aborted,
            };
            for (nth, line) in lines.iter_mut().enumerate() {
                if due[nth].is_some_and(|due| stopped.is_err() || now >= due) {
                    line.give_up(kind, now);
                    due[nth] = None;
                    answers[nth] = self.take_answered(line, tag);
                }
            }
            stopped?;
            if !more {
                let timer = lines.iter_mut().filter_map(Line::timer).min();
                let until = first_due.min(self.over_at);
                self.wait(timer.map_or(until, |timer| timer.min(until)))?;
            }
        }
    }

    /// Sends a request, waits for its outcome, and closes the connection.
    pub(crate) fn ask_once(&mut self, mut line: Line, request: &RequestSpec) -> Probed<Answered> {
        let answered = self.ask(&mut line, request, None);
        self.close(line);
        answered
    }

    /// Observes idle connections until the server has ended all of them, or until this time.
    pub(crate) fn listen(&mut self, lines: &mut [Line], until: Nanos) -> Probed {
        self.watch(lines, until, true)
    }

    /// Observes idle connections until this time.
    pub(crate) fn pause(&mut self, lines: &mut [Line], until: Nanos) -> Probed {
        self.watch(lines, until, false)
    }

    fn watch(&mut self, lines: &mut [Line], until: Nanos, leave: bool) -> Probed {
        let from = self.clock.now();
        let done = self.watch_until(lines, until, leave);
        let watched = self.clock.now().since(from);
        self.over_at = self.over_at.after(watched);
        done
    }

    fn watch_until(&mut self, lines: &mut [Line], until: Nanos, leave: bool) -> Probed {
        let is_over = |line: &Line| line.is_secondary || line.ended().is_some();
        loop {
            let mut more = false;
            for line in &mut *lines {
                more |= line.pump(&mut self.event_loop);
            }
            let now = self.clock.now();
            if now >= until || leave && lines.iter().all(is_over) {
                return Ok(());
            }
            if self.observer.stopped() {
                return Err(StopReason::Stopped);
            }
            self.observer.waiting(self.clock.until(until));
            if !more {
                let timer = lines.iter_mut().filter_map(Line::timer).min();
                self.wait(timer.map_or(until, |timer| timer.min(until)))?;
            }
        }
    }

    /// Waits for a close that the server announced, so that the ledger records who closed.
    pub(crate) fn linger(&mut self, line: &mut Line) -> Probed {
        let until = self.clock.now().after(LINGER.as_nanos() as u64);
        self.listen(std::slice::from_mut(line), until)
    }

    /// Closes a connection.
    pub(crate) fn close(&mut self, line: Line) {
        let closed = line.close(self.clock.now());
        self.observer.event(Event::Closed(&closed));
    }

    /// Waits for the next event.
    pub(crate) fn wait(&mut self, deadline: Nanos) -> Probed {
        let glance = self.clock.now().after(GLANCE.as_nanos() as u64);
        Ok(self.event_loop.wait(deadline.min(glance))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::probe_kind::ProbeKind;
    use intact_ledger::server_profile::ServerProfile;

    struct NullObserver;

    impl CheckProgress for NullObserver {
        fn event(&mut self, _: Event<'_>) {}
        fn stage(&mut self, _: ProbeKind, _: &ServerProfile) {}
        fn waiting(&mut self, _: Duration) {}
        fn stopped(&self) -> bool {
            false
        }
    }

    #[test]
    fn connections_to_another_machine_are_spaced() {
        let budget = Budget::of(&Config::new("http://h/").unwrap(), None);
        let clock = Clock::start();
        let mut null_observer = NullObserver;
        let mut prober =
            Prober::new(clock, Duration::from_secs(1), budget, &mut null_observer).unwrap();
        let from = clock.now();
        for _ in 0..3 {
            prober.wait_for_turn(false).unwrap();
        }
        assert!(clock.now().since(from) >= 2 * SPACING);
    }

    #[test]
    fn a_rate_becomes_the_time_between_requests() {
        let budget = Budget::of(&Config::new("http://h/").unwrap(), None);
        let spacing = |rate| {
            let mut null_observer = NullObserver;
            let prober =
                Prober::new(Clock::start(), Duration::ZERO, budget, &mut null_observer).unwrap();
            prober.at_most(rate).request_spacing
        };
        assert_eq!(spacing(None), 0);
        assert_eq!(spacing(Some(50.0)), 20_000_000);
        assert_eq!(spacing(Some(f64::MIN_POSITIVE)), u64::MAX);
    }
}
