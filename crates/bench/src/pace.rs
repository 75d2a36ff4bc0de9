//! When exchanges start. A closed loop starts one after the last response, an open loop by a
//! schedule. Each thread has a pace per round.

use crate::closed_loop::ClosedLoop;
use crate::open_loop::OpenLoop;
use intact_client::Due;
use intact_ledger::Nanos;

/// The exchange that the engine would start next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NextExchange {
    /// It is outside of the figures, so it does not use up the round's budget.
    pub(crate) warmup: bool,
    /// It opens a connection.
    pub(crate) opens: bool,
    /// Since when its connection, or the place for one, has been free.
    pub(crate) free_since: Nanos,
    /// The most that the client's lateness may have kept its connection busy, in nanoseconds.
    pub(crate) late_before: u64,
}

/// When the next exchange starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// Now.
    Now,
    /// Now, and it was due earlier.
    Due(Due),
    /// Not before that time.
    At(Nanos),
    /// When the next one is due; until then the connection is free.
    WhenDue,
    /// Not in this round.
    Never,
}

/// When exchanges start.
#[derive(Clone, Debug)]
pub(crate) enum Pace {
    /// Each when the last is over.
    Closed(ClosedLoop),
    /// Each when it is due.
    Open(Box<OpenLoop>),
}

impl Pace {
    /// Whether exchanges are due by a schedule.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self, Pace::Open(_))
    }

    /// Whether an exchange may start at `now`; [`Start::Now`] and [`Start::Due`] count it as
    /// started.
    #[inline]
    pub(crate) fn next(&mut self, now: Nanos, next: NextExchange) -> Start {
        match self {
            Pace::Closed(closed) => closed.next(now, next),
            Pace::Open(open) => open.next(now, next),
        }
    }

    /// Whether no measured exchange may start at `now` or later. Counts nothing.
    pub(crate) fn is_over(&self, now: Nanos) -> bool {
        match self {
            Pace::Closed(closed) => closed.is_over(now),
            Pace::Open(_) => false,
        }
    }

    /// The open loop, if this is one.
    #[inline]
    pub(crate) fn open(&mut self) -> Option<&mut OpenLoop> {
        match self {
            Pace::Closed(_) => None,
            Pace::Open(open) => Some(open),
        }
    }
}
