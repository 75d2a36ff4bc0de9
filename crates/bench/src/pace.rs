//! When exchanges start. A closed loop starts one after the last response, an open loop by a
//! schedule. Each thread has a pace per round.

use crate::closed_loop::{ClosedLoop, NextExchange, Start};
use crate::open_loop::OpenLoop;
use intact_ledger::Nanos;

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
