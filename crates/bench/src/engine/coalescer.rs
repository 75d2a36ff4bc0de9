//! Coalescing: where responses come one by one and too fast for a wake-up each, the loop waits a
//! little before it asks the kernel again. So one wake-up takes many responses, and one send
//! carries many requests. It saves most in HTTP/2.
//!
//! It must never slow down what it measures. A pause is at most a small part of the time of an
//! exchange. Below a rate at which wake-ups do not matter, there is none. Latency stays the
//! server's, because it ends at the kernel's receive timestamp; the time that responses wait here
//! is the client delay of their exchanges.

use intact_ledger::Nanos;
use std::time::Duration;

/// Fewer exchanges in flight are not worth gathering.
pub(crate) const LEAST_IN_FLIGHT: u64 = 32;
/// Answers a second on one thread from which wake-ups matter.
const LEAST_RATE: f64 = 50_000.0;
/// Pauses shorter than this cost more than they save, in nanoseconds.
const SHORTEST: f64 = 10_000.0;
/// The part of an exchange's latency that a pause may take.
const PART: f64 = 1.0 / 8.0;
/// How long the rate is taken over, in nanoseconds.
const WINDOW: u64 = 2_000_000;

/// How long pauses may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pauses {
    /// So short that the client delay stays below the latency. Worth it only if the kernel ends a
    /// pause when enough responses are there.
    Short,
    /// With several streams, where one send then carries many requests, or where the user wants it.
    Long,
}

impl Pauses {
    /// The longest pause, in nanoseconds: a socket's receive buffer must not run full.
    fn longest(self) -> f64 {
        match self {
            Pauses::Short => 60_000.0,
            Pauses::Long => 200_000.0,
        }
    }

    /// Responses that end a pause, of those in flight.
    fn batch(self, in_flight: u64) -> usize {
        match self {
            Pauses::Short => in_flight as usize / 3,
            Pauses::Long => in_flight as usize,
        }
    }
}

/// Decides how long to wait before the kernel is asked for more.
pub(crate) struct Coalescer {
    pauses: Pauses,
    batch: usize,
    in_flight: f64,
    since: Nanos,
    answers: u64,
    pause: Option<Duration>,
    used: bool,
}

impl Coalescer {
    /// For a thread that has up to `in_flight` exchanges under way; `None` where there is nothing
    /// to gain.
    pub(crate) fn new(pauses: Pauses, in_flight: u64, now: Nanos) -> Option<Coalescer> {
        (in_flight >= LEAST_IN_FLIGHT).then_some(Coalescer {
            pauses,
            batch: pauses.batch(in_flight),
            in_flight: in_flight as f64,
            since: now,
            answers: 0,
            pause: None,
            used: false,
        })
    }

    /// Records that a turn of the loop that ended `now` took this number of responses.
    pub(crate) fn turn(&mut self, answers: u64, now: Nanos) {
        self.answers += answers;
        let elapsed = now.since(self.since);
        if elapsed < WINDOW {
            return;
        }
        let per_ns = self.answers as f64 / elapsed as f64;
        self.pause = (per_ns * 1e9 >= LEAST_RATE)
            .then(|| self.in_flight / per_ns * PART)
            .map(|pause| pause.min(self.pauses.longest()))
            .filter(|&pause| pause >= SHORTEST)
            .map(|pause| Duration::from_nanos(pause.round() as u64));
        self.since = now;
        self.answers = 0;
    }

    /// How long to wait before the next turn, given how long there is time.
    pub(crate) fn pause(&mut self, room: Duration) -> Option<Duration> {
        let pause = self.pause.filter(|&pause| pause < room)?;
        self.used = true;
        Some(pause)
    }

    /// Responses that end a pause early, where the kernel can count them.
    pub(crate) fn batch(&self) -> usize {
        self.batch
    }

    /// Whether it has made the loop wait.
    pub(crate) fn was_used(&self) -> bool {
        self.used
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: Duration = Duration::from_millis(50);

    fn after(in_flight: u64, answers_per_ms: u64) -> Option<Duration> {
        let mut gather = Coalescer::new(Pauses::Long, in_flight, Nanos(0))?;
        for ms in 1..=4 {
            gather.turn(answers_per_ms, Nanos(ms * 1_000_000));
        }
        gather.pause(ROOM)
    }

    #[test]
    fn few_in_flight_and_slow_servers_are_read_at_once() {
        assert_eq!(after(31, 1_000), None);
        assert_eq!(after(256, 49), None);
    }

    #[test]
    fn a_pause_is_an_eighth_of_the_latency_at_most_and_bounded() {
        // 64 in flight at 160,000 a second take 400 us each
        assert_eq!(after(64, 160), Some(Duration::from_micros(50)));
        assert_eq!(after(10_000, 100), Some(Duration::from_micros(200)));
    }

    #[test]
    fn a_short_pause_is_bounded_and_ends_with_a_third_of_the_responses() {
        for (per_ms, us) in [(120, 60), (300, 26)] {
            let mut gather = Coalescer::new(Pauses::Short, 64, Nanos(0)).unwrap();
            gather.turn(2 * per_ms, Nanos(2_000_000));
            assert_eq!(gather.pause(ROOM).unwrap().as_micros(), us);
            assert_eq!(gather.batch(), 21);
        }
    }

    #[test]
    fn it_stops_when_answers_become_rare_and_leaves_timers_alone() {
        let mut gather = Coalescer::new(Pauses::Long, 64, Nanos(0)).unwrap();
        gather.turn(500, Nanos(2_000_000));
        assert!(gather.pause(ROOM).is_some());
        assert_eq!(gather.pause(Duration::from_micros(1)), None);
        gather.turn(0, Nanos(60_000_000));
        assert_eq!(gather.pause(ROOM), None);
        assert!(gather.was_used());
    }
}
