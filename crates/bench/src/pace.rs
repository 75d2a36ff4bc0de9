//! When the next exchange may start. The engine asks; closed loop is one answer, open loop and think time will be others.

use intact_ledger::Nanos;

/// What the engine wants to do next.
#[derive(Clone, Copy, Debug)]
pub struct Wish {
    /// It would be left out of the figures, so it does not use up the round's budget.
    pub warmup: bool,
    /// It would open a connection.
    pub opens: bool,
}

/// The answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Start it.
    Now,
    /// Ask again at that time.
    At(Nanos),
    /// Nothing starts any more in this round.
    Over,
}

/// Decides when exchanges start. One per thread; nothing is shared.
pub trait Pace: Send {
    /// Whether an exchange may start at `now`; `Now` counts it as started.
    fn next(&mut self, now: Nanos, wish: Wish) -> Turn;
}

/// Closed loop: the next exchange starts when the last is over, until a number or a time is used up.
#[derive(Clone, Debug)]
pub struct ClosedLoop {
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

impl Limit {
    fn new(per_second: f64, earliest: Nanos) -> Limit {
        Limit {
            interval: (1e9 / per_second) as u64,
            next: earliest,
        }
    }
}

impl ClosedLoop {
    /// `exchanges` to start, or nanoseconds to go on from the first measured start; whichever is used up first.
    pub fn new(exchanges: Option<u64>, nanos: Option<u64>) -> ClosedLoop {
        ClosedLoop {
            left: exchanges,
            length: nanos,
            until: None,
            opening: None,
            starting: None,
        }
    }

    /// At most `per_second` new connections a second, the next not before `earliest`.
    pub fn limit_opening(mut self, per_second: f64, earliest: Nanos) -> ClosedLoop {
        self.opening = Some(Limit::new(per_second, earliest));
        self
    }

    /// At most `per_second` exchanges a second, warm-up included, the next not before `earliest`.
    pub fn limit_starting(mut self, per_second: f64, earliest: Nanos) -> ClosedLoop {
        self.starting = Some(Limit::new(per_second, earliest));
        self
    }
}

impl Pace for ClosedLoop {
    #[inline]
    fn next(&mut self, now: Nanos, wish: Wish) -> Turn {
        if self.until.is_some_and(|until| now >= until) || (!wish.warmup && self.left == Some(0)) {
            return Turn::Over;
        }
        let mut limits = [
            self.opening.as_mut().filter(|_| wish.opens),
            self.starting.as_mut(),
        ];
        if let Some(later) = limits.iter().flatten().map(|limit| limit.next).max()
            && now < later
        {
            return Turn::At(later);
        }
        for limit in limits.iter_mut().flatten() {
            limit.next = now.after(limit.interval);
        }
        if !wish.warmup {
            if let Some(left) = &mut self.left {
                *left -= 1;
            }
            if self.until.is_none() {
                self.until = self.length.map(|length| now.after(length));
            }
        }
        Turn::Now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEASURED: Wish = Wish {
        warmup: false,
        opens: false,
    };

    #[test]
    fn a_number_of_exchanges_is_used_up_by_measured_ones_only() {
        let mut pace = ClosedLoop::new(Some(2), None);
        let warmup = Wish {
            warmup: true,
            ..MEASURED
        };
        assert_eq!(pace.next(Nanos(0), warmup), Turn::Now);
        assert_eq!(pace.next(Nanos(1), MEASURED), Turn::Now);
        assert_eq!(pace.next(Nanos(2), MEASURED), Turn::Now);
        assert_eq!(pace.next(Nanos(3), MEASURED), Turn::Over);
    }

    #[test]
    fn time_runs_from_the_first_measured_start() {
        let mut pace = ClosedLoop::new(None, Some(10));
        assert_eq!(pace.next(Nanos(100), MEASURED), Turn::Now);
        assert_eq!(pace.next(Nanos(109), MEASURED), Turn::Now);
        assert_eq!(pace.next(Nanos(110), MEASURED), Turn::Over);
    }

    #[test]
    fn new_connections_are_spread_and_reuse_is_not_held_up() {
        let mut pace = ClosedLoop::new(None, None).limit_opening(10.0, Nanos(0));
        let opens = Wish {
            opens: true,
            ..MEASURED
        };
        assert_eq!(pace.next(Nanos(0), opens), Turn::Now);
        assert_eq!(pace.next(Nanos(1), opens), Turn::At(Nanos(100_000_000)));
        assert_eq!(pace.next(Nanos(1), MEASURED), Turn::Now);
        assert_eq!(pace.next(Nanos(100_000_000), opens), Turn::Now);
    }

    #[test]
    fn exchanges_are_spread_and_both_limits_hold() {
        let mut pace = ClosedLoop::new(None, None)
            .limit_opening(1.0, Nanos(0))
            .limit_starting(10.0, Nanos(0));
        let opens = Wish {
            opens: true,
            ..MEASURED
        };
        assert_eq!(pace.next(Nanos(0), opens), Turn::Now);
        assert_eq!(pace.next(Nanos(1), MEASURED), Turn::At(Nanos(100_000_000)));
        assert_eq!(pace.next(Nanos(1), opens), Turn::At(Nanos(1_000_000_000)));
        assert_eq!(pace.next(Nanos(100_000_000), MEASURED), Turn::Now);
    }
}
