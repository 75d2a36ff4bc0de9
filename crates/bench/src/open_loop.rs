//! Open loop: each exchange starts when it is due, if a connection is free.
//!
//! The queue is the part of the schedule that is due and not started, so it takes no memory.
//! Warm-up and new connections keep to the limits of a [`ClosedLoop`]. Must not wait or choose a
//! connection.

use crate::closed_loop::{ClosedLoop, NextExchange, Start};
use intact_client::Due;
use intact_experiment::ScheduleSeries;
use intact_ledger::{Nanos, Span};

/// The requests of one thread in one round, by the moments at which they are due.
#[derive(Clone, Debug)]
pub(crate) struct OpenLoop {
    schedule: ScheduleSeries,
    /// How long requests are due, in nanoseconds.
    length: u64,
    limits: ClosedLoop,
    start: Option<Nanos>,
    next: Option<Nanos>,
    last: Option<Nanos>,
    stopped: Option<Nanos>,
    lateness: Lateness,
}

/// The lateness from which a client may keep connections busy because of it, in nanoseconds.
pub(crate) const LATE: u64 = 1_000_000;
/// A wait for a connection may be the client's if its lateness is this part of the wait: one in
/// this many.
const WAIT: u64 = 10;

/// The client's lateness in a burst. Requests that are sent together because the client was late
/// wait for each other at the server. A server that gets all of them later by at most this time
/// responds later by at most this time.
#[derive(Clone, Copy, Debug, Default)]
struct Lateness {
    most: u64,
    /// Until when a server with room for twice the load still works on what came late.
    until: Nanos,
}

impl Lateness {
    /// Adds a request that starts `now`, this late. Returns the most that may matter to it.
    fn add(&mut self, late: u64, now: Nanos) -> u64 {
        if late >= self.most || now > self.until {
            *self = Lateness {
                most: late,
                until: now.after(late),
            };
        }
        self.most
    }
}

impl OpenLoop {
    /// A schedule of `length` nanoseconds. `limits` hold for warm-up and for new connections.
    pub(crate) fn new(
        schedule: impl Into<ScheduleSeries>,
        length: u64,
        limits: ClosedLoop,
    ) -> OpenLoop {
        OpenLoop {
            schedule: schedule.into(),
            length,
            limits,
            start: None,
            next: None,
            last: None,
            stopped: None,
            lateness: Lateness::default(),
        }
    }

    /// Whether the schedule has begun.
    pub(crate) fn has_begun(&self) -> bool {
        self.start.is_some()
    }

    /// Begins the schedule.
    pub(crate) fn begin(&mut self, start: Nanos) {
        self.start = Some(start);
        self.advance();
    }

    fn advance(&mut self) {
        let start = self.start.unwrap_or_default();
        self.last = self.next.or(self.last);
        self.next = self.schedule.next().map(|offset| start.after(offset));
    }

    /// When the next request is due, or was; absent before the start and after the last one.
    pub(crate) fn next_due(&self) -> Option<Nanos> {
        self.next
    }

    /// Whether all requests were started or taken.
    pub(crate) fn is_over(&self) -> bool {
        self.has_begun() && self.next.is_none()
    }

    /// Takes a request that was due at `until` or before, without starting it.
    pub(crate) fn take_due(&mut self, until: Nanos) -> Option<Nanos> {
        let due = self.next.filter(|due| *due <= until)?;
        self.advance();
        Some(due)
    }

    /// Ends the schedule: nothing that is due after `now` is taken.
    pub(crate) fn stop(&mut self, now: Nanos) {
        self.stopped = Some(now);
        self.next = None;
        self.start.get_or_insert(now);
    }

    /// The time in which requests were due.
    pub(crate) fn scheduled(&self) -> Option<Span> {
        let start = self.start?;
        let end = start.after(self.length).max(self.last.unwrap_or(start));
        Some(Span::new(start, self.stopped.unwrap_or(end).min(end)))
    }

    /// See [`crate::pace::Pace::next`].
    pub(crate) fn next(&mut self, now: Nanos, next: NextExchange) -> Start {
        if next.warmup {
            return self.limits.next(now, next);
        }
        let Some(due) = self.next else {
            return Start::Never;
        };
        if due > now {
            return Start::WhenDue;
        }
        match self.limits.next(now, next) {
            Start::Now => {}
            later => return later,
        }
        self.advance();
        let error = Span::new(due.max(next.free_since), now);
        let waited = next.free_since.since(due);
        let before = if waited > 0 { next.late_before } else { 0 };
        let late = self.lateness.add(error.nanos().max(before), now);
        // a client that is late finds connections busy that a punctual one would not
        let is_by_lateness = waited > 0 && before >= LATE && before >= waited / WAIT;
        Start::Due(Due {
            at: due,
            scheduling_error: Some(error),
            late_at_most: match is_by_lateness {
                true => late.max(waited + error.nanos()),
                false => late,
            },
            late,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use intact_experiment::{Arrivals, RequestRate, Schedule, ScheduleLength};

    const MS: u64 = 1_000_000;

    /// Ten requests a millisecond apart, from 100 ms on.
    fn begun() -> OpenLoop {
        let length = ScheduleLength::Nanos(10 * MS);
        let rate = RequestRate::constant(1_000.0);
        let schedule = Schedule::new(rate, Arrivals::Constant, length, (0, 1), 0);
        let mut open = OpenLoop::new(schedule, 10 * MS, ClosedLoop::new(None, None));
        open.begin(Nanos(100 * MS));
        open
    }

    fn reused(free_since: u64) -> NextExchange {
        NextExchange {
            warmup: false,
            opens: false,
            free_since: Nanos(free_since),
            late_before: 0,
        }
    }

    fn due(start: Start) -> (u64, u64, u64) {
        let Start::Due(due) = start else {
            panic!("{start:?}")
        };
        let error = due.scheduling_error.unwrap();
        (due.at.0, error.start.0, error.end.0)
    }

    #[test]
    fn the_client_is_late_from_when_a_connection_was_free_on() {
        let mut open = begun();
        assert_eq!(open.next(Nanos(99 * MS), reused(0)), Start::WhenDue);
        // free all along: all of the delay is the client's
        let first = open.next(Nanos(100 * MS + 7), reused(0));
        assert_eq!(due(first), (100 * MS, 100 * MS, 100 * MS + 7));
        // free since 105.5 ms: before that the request waited for the connection
        let second = open.next(Nanos(105 * MS + 600), reused(105 * MS + 500));
        assert_eq!(due(second), (101 * MS, 105 * MS + 500, 105 * MS + 600));
    }

    #[test]
    fn what_is_due_is_started_taken_or_left_by_a_stop_and_nothing_twice() {
        let mut open = begun();
        assert_eq!(open.take_due(Nanos(99 * MS)), None);
        assert_eq!(open.take_due(Nanos(103 * MS)), Some(Nanos(100 * MS)));
        let next = open.next(Nanos(103 * MS), reused(0));
        assert_eq!(due(next).0, 101 * MS);
        assert_eq!(open.take_due(Nanos(103 * MS)), Some(Nanos(102 * MS)));
        assert_eq!(open.take_due(Nanos(103 * MS)), Some(Nanos(103 * MS)));
        assert_eq!(open.take_due(Nanos(103 * MS)), None);
        assert!(!open.is_over());
        open.stop(Nanos(105 * MS));
        assert!(open.is_over());
        assert_eq!(open.next(Nanos(200 * MS), reused(0)), Start::Never);
        let scheduled = Span::new(Nanos(100 * MS), Nanos(105 * MS));
        assert_eq!(open.scheduled(), Some(scheduled));
    }

    #[test]
    fn requests_of_a_late_burst_may_wait_for_each_other() {
        let mut open = begun();
        let mut late_at_most = |now| {
            let Start::Due(due) = open.next(Nanos(now), reused(0)) else {
                panic!("not due")
            };
            due.late_at_most / MS
        };
        // due at 100, 101 and 102 ms, and sent together
        assert_eq!([104, 104, 104].map(|ms| late_at_most(ms * MS)), [4, 4, 4]);
        // due at 103 and 104, on time, while the burst is under way
        assert_eq!([104, 105].map(|ms| late_at_most(ms * MS)), [4, 4]);
        // due at 105 and 106, sent at 109: after the burst
        assert_eq!([109, 109].map(|ms| late_at_most(ms * MS)), [4, 4]);
        assert_eq!(late_at_most(114 * MS), 7);
        // due at 108, on a connection that a late request kept busy until 120
        let after_late = NextExchange {
            late_before: 5 * MS,
            ..reused(120 * MS)
        };
        let Start::Due(due) = open.next(Nanos(122 * MS), after_late) else {
            panic!("not due")
        };
        assert_eq!((due.late_at_most, due.late), (14 * MS, 5 * MS));
    }

    #[test]
    fn a_limit_on_new_connections_holds() {
        let mut open = begun();
        open.limits = ClosedLoop::new(None, None).limited(Some(1.0), None, Nanos(0));
        let opens = NextExchange {
            opens: true,
            ..reused(0)
        };
        assert_eq!(due(open.next(Nanos(100 * MS), opens)).0, 100 * MS);
        let later = Start::At(Nanos(1_100 * MS));
        assert_eq!(open.next(Nanos(101 * MS), opens), later);
        assert_eq!(due(open.next(Nanos(101 * MS), reused(0))).0, 101 * MS);
    }
}
