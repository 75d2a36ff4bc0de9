//! Whether responses take longer on reused connections than on new ones: two distributions
//! compared, the same for `bench`, `check` and observed traffic. Not every reused response has to
//! be slow: a delayed acknowledgement holds up some of them. Must not know who measured them.

use crate::statement::{Statement, Value, nanos, statement, text};
use intact_ledger::{Group, Histogram, Phase};

/// How much later than the median on new connections a response is late, in nanoseconds: delayed
/// acknowledgements begin at 40 ms on Linux, so that half of it is not noise.
const LATE: f64 = 15e6;
/// The same as a share of that median.
const LATE_SHARE: f64 = 0.1;
/// How much larger the share of late responses must be on reused connections.
const MORE: f64 = 0.25;
/// The probability of such a difference by chance, at most.
const BY_CHANCE: f64 = 0.05;
/// The same where each body comes a delayed acknowledgement after its header section.
const BY_CHANCE_IN_PARTS: f64 = 0.1;
/// Responses on new connections that it takes; fewer only where the delay is that of an
/// acknowledgement.
const FRESH: u64 = 3;
/// Delays of acknowledgements with the time around them, in nanoseconds.
const ACKNOWLEDGEMENT: std::ops::Range<f64> = 35e6..60e6;

/// The times that are compared.
const WITHOUT_SETUP: &str = "without setup";
const AFTER_FIRST_BYTE: &str = "from the first byte to the last";
const BEFORE_BODY: &str = "between header section and body";

/// The remedy.
pub const FIX: &str = "Set TCP_NODELAY at the server, and let it write header section and body with one call. A server that writes a response in small parts waits for an acknowledgement, which the client's kernel delays by about 40 ms. Requests in several parts suffer the same: set TCP_NODELAY at the client too";

/// How the requests that are compared followed each other. The first ones of many at once find a
/// shorter queue than the later ones, and a queue is no delay of a reused connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// One after the other.
    OneByOne,
    /// Several at once, each after the response before it.
    Several,
    /// By a schedule, so that the latency contains all waits.
    Scheduled,
}

/// Response times: a value in nanoseconds, and how often it occurred.
pub type Times = Vec<(u64, u64)>;

/// The delay of responses on reused connections.
#[derive(Clone, Debug, PartialEq)]
pub struct ReuseDelay {
    /// Which time was compared.
    of: &'static str,
    /// From which time on a response is late, in nanoseconds.
    late_from: f64,
    reused: Count,
    fresh: Count,
}

/// Responses of one kind.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Count {
    all: u64,
    late: u64,
    /// The median in nanoseconds.
    median: f64,
}

impl Count {
    fn of(times: &Times, late_from: f64, median: f64) -> Count {
        let late = times.iter().filter(|(value, _)| *value as f64 >= late_from);
        Count {
            all: total(times),
            late: late.map(|(_, count)| count).sum(),
            median,
        }
    }

    fn share(self) -> f64 {
        self.late as f64 / self.all as f64
    }
}

impl ReuseDelay {
    /// The delay, where responses on reused connections are later than chance explains.
    pub fn of(fresh: Times, reused: Times) -> Option<ReuseDelay> {
        ReuseDelay::by(fresh, reused, BY_CHANCE)
    }

    fn by(mut fresh: Times, mut reused: Times, by_chance: f64) -> Option<ReuseDelay> {
        fresh.sort_unstable();
        reused.sort_unstable();
        let (fresh_median, reused_median) = (median(&fresh)?, median(&reused)?);
        let late_from = fresh_median + LATE.max(fresh_median * LATE_SHARE);
        let delay = ReuseDelay {
            of: WITHOUT_SETUP,
            late_from,
            reused: Count::of(&reused, late_from, reused_median),
            fresh: Count::of(&fresh, late_from, fresh_median),
        };
        let is_enough = delay.fresh.all >= FRESH || delay.is_acknowledgement();
        let is_more = delay.reused.share() - delay.fresh.share() >= MORE;
        (is_enough && is_more && delay.by_chance() <= by_chance + f64::EPSILON.sqrt())
            .then_some(delay)
    }

    /// Whether the delay is that of an acknowledgement, and longer than the response itself takes.
    fn is_acknowledgement(&self) -> bool {
        let extra = self.reused.median - self.fresh.median;
        ACKNOWLEDGEMENT.contains(&extra) && extra > self.fresh.median
    }

    /// The same of two groups of complete exchanges: of the whole times without setup, else of the
    /// time after the first byte, in which no server works on the response any more.
    ///
    /// Of requests at once, a queue that fills explains less than the median on new connections.
    pub fn of_groups(fresh: &Group, reused: &Group, arrivals: Arrivals) -> Option<ReuseDelay> {
        let by_chance = match comes_in_parts(reused) {
            true => BY_CHANCE_IN_PARTS,
            false => BY_CHANCE,
        };
        let all = |group: &Group| times(&group.without_setup);
        let whole = ReuseDelay::by(all(fresh), all(reused), by_chance);
        let whole = whole.filter(|delay| match arrivals {
            Arrivals::OneByOne => true,
            Arrivals::Several => delay.is_acknowledgement(),
            Arrivals::Scheduled => false,
        });
        let of_phase = |(phase, of)| {
            let delay = ReuseDelay::of(times(fresh.phase(phase)), times(reused.phase(phase)))?;
            Some(ReuseDelay { of, ..delay })
        };
        let phases = [
            (Phase::Receive, AFTER_FIRST_BYTE),
            (Phase::HeadersToBody, BEFORE_BODY),
        ];
        whole.or_else(|| phases.into_iter().find_map(of_phase))
    }

    /// The probability that this number of late responses is on reused connections by chance
    /// (Fisher's exact test, one-sided).
    fn by_chance(&self) -> f64 {
        let late = self.reused.late + self.fresh.late;
        let all = self.reused.all + self.fresh.all;
        let most = late.min(self.reused.all);
        let choices =
            |from: u64, of: u64| ln_factorial(from) - ln_factorial(of) - ln_factorial(from - of);
        let ways = choices(all, late);
        let of = |reused_late: u64| {
            let ln = choices(self.reused.all, reused_late)
                + choices(self.fresh.all, late - reused_late)
                - ways;
            ln.exp()
        };
        (self.reused.late..=most).map(of).sum()
    }

    /// What is the case.
    pub fn claim(&self) -> Statement {
        statement!(
            "responses take longer on reused connections: {late} of {reused_requests} took {late_from} or more, of those on new ones {fresh_late} of {fresh_requests} ({of})",
            late = Value::Number(self.reused.late),
            reused_requests = Value::Number(self.reused.all),
            late_from = nanos(self.late_from),
            fresh_late = Value::Number(self.fresh.late),
            fresh_requests = Value::Number(self.fresh.all),
            of = text(self.of)
        )
    }

    /// What shows it.
    pub fn evidence(&self) -> Statement {
        statement!(
            "medians: {reused} on reused connections, {fresh} on new ones",
            reused = nanos(self.reused.median),
            fresh = nanos(self.fresh.median)
        )
    }
}

/// Whether each body comes a delayed acknowledgement after its header section.
fn comes_in_parts(reused: &Group) -> bool {
    let gaps = times(reused.phase(Phase::HeadersToBody));
    let is_delayed = |(nanos, _): &(u64, u64)| ACKNOWLEDGEMENT.contains(&(*nanos as f64));
    total(&gaps) == reused.count() && gaps.iter().all(is_delayed)
}

/// The values of a histogram, to its accuracy.
fn times(histogram: &Histogram) -> Times {
    let buckets = histogram.buckets();
    buckets
        .map(|(low, high, count)| (u64::midpoint(low, high), count))
        .collect()
}

fn total(times: &Times) -> u64 {
    times.iter().map(|(_, count)| count).sum()
}

fn median(sorted: &Times) -> Option<f64> {
    let middle = total(sorted) / 2;
    let mut below = 0;
    sorted.iter().find_map(|&(value, count)| {
        below += count;
        (below > middle).then_some(value as f64)
    })
}

/// The natural logarithm of `n!`: the sum for small `n`, else Stirling's series.
fn ln_factorial(n: u64) -> f64 {
    if n < 32 {
        return (2..=n).map(|one| (one as f64).ln()).sum();
    }
    let n = n as f64;
    n * n.ln() - n + 0.5 * (std::f64::consts::TAU * n).ln() + 1.0 / (12.0 * n)
}

#[cfg(test)]
mod tests {
    use super::*;
    use intact_ledger::{Cell, Exchange, Nanos, Span};

    const MS: u64 = 1_000_000;

    fn of(fresh: &[(u64, u64)], reused: &[(u64, u64)]) -> Option<ReuseDelay> {
        let nanos = |times: &[(u64, u64)]| -> Times {
            times.iter().map(|&(ms, count)| (ms * MS, count)).collect()
        };
        ReuseDelay::of(nanos(fresh), nanos(reused))
    }

    #[test]
    fn a_delay_of_some_responses_is_found() {
        // the delayed acknowledgement holds up 6 of 10: not every reused response is slower than
        // every fresh one
        let found = of(&[(1, 4), (2, 1)], &[(1, 4), (43, 6)]).unwrap();
        assert_eq!((found.reused.late, found.fresh.late), (6, 0));
        assert_eq!(
            &*found.claim(),
            "responses take longer on reused connections: 6 of 10 took 16.0 ms or more, of those on new ones 0 of 5 (without setup)"
        );
        assert!(
            of(&[(1, 5)], &[(1, 6), (43, 4)]).is_none(),
            "four may be chance"
        );
        assert!(of(&[(2, 20)], &[(44, 2_000)]).is_some());
    }

    #[test]
    fn one_fresh_response_is_enough_only_for_a_delayed_acknowledgement() {
        assert!(of(&[(1, 1)], &[(42, 50)]).is_some());
        assert!(
            of(&[(1, 1)], &[(90, 50)]).is_none(),
            "a log-in and its searches"
        );
        assert!(of(&[(1, 3)], &[(90, 50)]).is_some());
    }

    #[test]
    fn a_slow_first_request_does_not_hide_the_delay_after_the_first_byte() {
        let group = |wait: u64, receive: u64, count: u64| {
            let mut cell = Cell::new(None, None);
            for id in 0..count {
                let mut one = Exchange::new(id, Nanos(0));
                let ready = Nanos(wait * MS);
                one.end = Nanos((wait + receive) * MS);
                one.spans.wait = Some(Span::new(Nanos(0), ready));
                one.spans.receive = Some(Span::new(ready, one.end));
                cell.exchange(&one);
            }
            cell.merged(|_| true).unwrap()
        };
        let one_by_one = |fresh: &Group, reused: &Group| {
            ReuseDelay::of_groups(fresh, reused, Arrivals::OneByOne)
        };
        let found = one_by_one(&group(13, 0, 1), &group(0, 44, 19)).unwrap();
        assert!(
            found
                .claim()
                .ends_with("0 of 1 (from the first byte to the last)")
        );
        assert!(one_by_one(&group(13, 44, 1), &group(0, 44, 19)).is_none());
    }

    #[test]
    fn a_body_that_waits_for_an_acknowledgement_each_time_shows_it_in_ten_requests() {
        let group = |gap: u64, count: u64| {
            let mut cell = Cell::new(None, None);
            for id in 0..count {
                let mut one = Exchange::new(id, Nanos(0));
                let head = Nanos(MS);
                one.end = Nanos((1 + gap) * MS);
                one.spans.wait = Some(Span::new(Nanos(0), head));
                one.spans.headers_to_body = (gap > 0).then_some(Span::new(head, one.end));
                cell.exchange(&one);
            }
            cell.merged(|_| true).unwrap()
        };
        let is_found = |gap, reused| {
            let (fresh, reused) = (group(0, 1), group(gap, reused));
            ReuseDelay::of_groups(&fresh, &reused, Arrivals::OneByOne).is_some()
        };
        assert!(is_found(44, 9) && !is_found(44, 8));
        assert!(!is_found(70, 9));
    }

    #[test]
    fn a_queue_that_fills_is_no_delay_of_reused_connections() {
        // a server that works 8 ms on one request at a time, and 12 callers: the first of each
        // finds 0 to 11 others, the later ones always 11
        let filling: Vec<u64> = (1..=12).map(|nth| 8 * nth).collect();
        let group = |waits: &[u64]| {
            let mut cell = Cell::new(None, None);
            for (id, wait) in (0..).zip(waits) {
                let mut one = Exchange::new(id, Nanos(0));
                one.end = Nanos(wait * MS);
                one.spans.wait = Some(Span::new(Nanos(0), one.end));
                cell.exchange(&one);
            }
            cell.merged(|_| true).unwrap()
        };
        let (fresh, full) = (group(&filling), group(&[96; 200]));
        let found = |fresh: &Group, reused: &Group, arrivals| {
            ReuseDelay::of_groups(fresh, reused, arrivals).is_some()
        };
        assert!(!found(&fresh, &full, Arrivals::Several));
        assert!(!found(&fresh, &full, Arrivals::Scheduled));
        // a delayed acknowledgement is seen among several too
        let (quick, late) = (group(&[1; 12]), group(&[44; 200]));
        assert!(found(&quick, &late, Arrivals::Several));
        assert!(!found(&quick, &late, Arrivals::Scheduled));
    }

    #[test]
    fn times_that_spread_alike_are_no_delay() {
        let spread: Vec<(u64, u64)> = (0..40).map(|nth| (20 + 5 * nth, 5)).collect();
        assert!(of(&spread, &spread).is_none());
        assert!(of(&[(200, 40)], &[(215, 40)]).is_none(), "15 ms of 200 ms");
        assert!(of(&[(44, 40)], &[(44, 40)]).is_none());
        assert!(of(&[], &[(44, 40)]).is_none());
    }

    #[test]
    fn the_probability_is_that_of_the_hypergeometric_distribution() {
        let found = of(&[(1, 5)], &[(42, 10)]).unwrap();
        assert!((found.by_chance() - 1.0 / 3003.0).abs() < 1e-12);
        assert!((ln_factorial(32) - 81.557_959_456_115).abs() < 1e-6);
    }
}
