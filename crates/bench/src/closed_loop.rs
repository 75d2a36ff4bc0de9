//! Closed loop: the next exchange starts when the last is over, with limits on the rates. Also the
//! pace of an open loop's warm-up.

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

/// Closed loop: the next exchange starts when the last is over, until a number or a time is used
/// up. One per thread.
#[derive(Clone, Debug)]
pub(crate) struct ClosedLoop {
    left: Option<u64>,
    length: Option<u64>,
    until: Option<Nanos>,
    opening: Option<Limit>,
    starting: Option<Limit>,
}

/// A limit on how many may begin in a second: each keeps its distance from the last.
#[derive(Clone, Debug)]
struct Limit {
    interval: u64,
    next: Nanos,
}

impl ClosedLoop {
    /// `exchanges` to start, or nanoseconds to go on from the first measured start; whichever is
    /// used up first.
    pub(crate) fn new(exchanges: Option<u64>, nanos: Option<u64>) -> ClosedLoop {
        ClosedLoop {
            left: exchanges,
            length: nanos,
            until: None,
            opening: None,
            starting: None,
        }
    }

    /// At most `opening` new connections and `starting` exchanges a second, warm-up included, the
    /// next ones not before `earliest`.
    pub(crate) fn limited(
        mut self,
        opening: Option<f64>,
        starting: Option<f64>,
        earliest: Nanos,
    ) -> ClosedLoop {
        let limit = |per_second| Limit {
            interval: (1e9 / per_second) as u64,
            next: earliest,
        };
        self.opening = opening.map(limit);
        self.starting = starting.map(limit);
        self
    }

    /// Whether no measured exchange may start at `now` or later.
    pub(crate) fn is_over(&self, now: Nanos) -> bool {
        self.left == Some(0) || self.until.is_some_and(|until| now >= until)
    }

    /// Whether an exchange may start at `now`; [`Start::Now`] counts it as started.
    #[inline]
    pub(crate) fn next(&mut self, now: Nanos, next: NextExchange) -> Start {
        if self.until.is_some_and(|until| now >= until) || (!next.warmup && self.left == Some(0)) {
            return Start::Never;
        }
        let mut limits = [
            self.opening.as_mut().filter(|_| next.opens),
            self.starting.as_mut(),
        ];
        if let Some(later) = limits.iter().flatten().map(|limit| limit.next).max()
            && now < later
        {
            return Start::At(later);
        }
        for limit in limits.iter_mut().flatten() {
            limit.next = now.after(limit.interval);
        }
        if !next.warmup {
            if let Some(left) = &mut self.left {
                *left -= 1;
            }
            if self.until.is_none() {
                self.until = self.length.map(|length| now.after(length));
            }
        }
        Start::Now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEASURED: NextExchange = NextExchange {
        warmup: false,
        opens: false,
        free_since: Nanos(0),
        late_before: 0,
    };

    #[test]
    fn a_number_of_exchanges_is_used_up_by_measured_ones_only() {
        let mut closed = ClosedLoop::new(Some(2), None);
        let warmup = NextExchange {
            warmup: true,
            ..MEASURED
        };
        assert_eq!(closed.next(Nanos(0), warmup), Start::Now);
        assert_eq!(closed.next(Nanos(1), MEASURED), Start::Now);
        assert_eq!(closed.next(Nanos(2), MEASURED), Start::Now);
        assert_eq!(closed.next(Nanos(3), MEASURED), Start::Never);
    }

    #[test]
    fn time_runs_from_the_first_measured_start() {
        let mut closed = ClosedLoop::new(None, Some(10));
        assert_eq!(closed.next(Nanos(100), MEASURED), Start::Now);
        assert_eq!(closed.next(Nanos(109), MEASURED), Start::Now);
        assert_eq!(closed.next(Nanos(110), MEASURED), Start::Never);
    }

    #[test]
    fn new_connections_are_spread_and_reuse_is_not_held_up() {
        let mut closed = ClosedLoop::new(None, None).limited(Some(10.0), None, Nanos(0));
        let opens = NextExchange {
            opens: true,
            ..MEASURED
        };
        assert_eq!(closed.next(Nanos(0), opens), Start::Now);
        assert_eq!(closed.next(Nanos(1), opens), Start::At(Nanos(100_000_000)));
        assert_eq!(closed.next(Nanos(1), MEASURED), Start::Now);
        assert_eq!(closed.next(Nanos(100_000_000), opens), Start::Now);
    }

    #[test]
    fn exchanges_are_spread_and_both_limits_hold() {
        let mut closed = ClosedLoop::new(None, None).limited(Some(1.0), Some(10.0), Nanos(0));
        let opens = NextExchange {
            opens: true,
            ..MEASURED
        };
        assert_eq!(closed.next(Nanos(0), opens), Start::Now);
        assert_eq!(
            closed.next(Nanos(1), MEASURED),
            Start::At(Nanos(100_000_000))
        );
        assert_eq!(
            closed.next(Nanos(1), opens),
            Start::At(Nanos(1_000_000_000))
        );
        assert_eq!(closed.next(Nanos(100_000_000), MEASURED), Start::Now);
    }
}
