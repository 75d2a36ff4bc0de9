//! A simulated client: where it is in its session, and what it does next. Must not send or wait.

use super::script::{Op, Script};
use crate::closed_loop::{ClosedLoop, NextExchange, Start};
use crate::variant_plan::VariantPlan;
use intact_client::Due;
use intact_experiment::Rng;
use intact_ledger::{ClientCounts, Nanos, Span};
use intact_scenario::Wait;
use std::sync::Arc;

/// What a client does next.
pub(crate) enum Todo {
    /// Sends a request.
    Request(Arc<VariantPlan>),
    /// Waits this many nanoseconds.
    Wait(u64),
    /// Leaves.
    End,
}

/// When the next request of a client is due.
#[derive(Clone, Copy)]
enum Next {
    /// At once, after the last response.
    AtOnce,
    /// When the client arrived.
    Arrival(Due),
    /// After a wait.
    At(Nanos),
}

/// One simulated client.
pub(crate) struct Client {
    session: usize,
    at: usize,
    /// Repetitions left of the loops that it is in; absent: without an end.
    left: Vec<Option<u64>>,
    next: Next,
    /// A request that our limit on new connections holds back.
    held: Option<Arc<VariantPlan>>,
    has_sent: bool,
}

impl Client {
    /// Whether it repeats steps without an end.
    pub(crate) fn is_endless(&self) -> bool {
        self.left.contains(&None)
    }

    /// Its next request is due then.
    pub(crate) fn wait_until(&mut self, due: Nanos) {
        self.next = Next::At(due);
    }

    /// Our own limit holds the request back until then, so it is due then.
    pub(crate) fn hold_back(&mut self, request: Arc<VariantPlan>, until: Nanos) {
        self.held = Some(request);
        self.next = Next::At(until);
    }

    /// When the request that begins `now` was due.
    pub(crate) fn due(&self, now: Nanos) -> Due {
        match self.next {
            Next::AtOnce => now.into(),
            Next::Arrival(due) => due,
            Next::At(at) => Due {
                at,
                scheduling_error: Some(Span::new(at, now.max(at))),
                late_at_most: now.since(at),
                late: now.since(at),
            },
        }
    }

    /// It sends a request.
    pub(crate) fn has_sent(&mut self) {
        self.has_sent = true;
        self.next = Next::AtOnce;
    }
}

/// Separates the sequence of waits from that of sessions.
const WAITS: u64 = 0x77_6169_7473;

/// The clients of one thread.
pub(crate) struct Clients {
    script: Arc<Script>,
    /// Which session each client picks. Waits draw from their own sequence: the sessions of a seed
    /// do not depend on timing.
    choices: Rng,
    waits: Rng,
    /// Limits new connections, where they are limited.
    limits: ClosedLoop,
    /// Clients at once, at the most.
    pub(crate) most: usize,
    /// How long sessions without an end go on, in nanoseconds.
    pub(crate) length: Option<u64>,
    /// By session.
    pub(crate) counts: Vec<ClientCounts>,
}

impl Clients {
    /// The clients of a thread with a seed of its own.
    pub(super) fn new(
        script: Arc<Script>,
        seed: u64,
        limits: ClosedLoop,
        most: usize,
        length: Option<u64>,
    ) -> Clients {
        Clients {
            counts: vec![ClientCounts::default(); script.sessions.len()],
            script,
            choices: Rng::seeded(seed),
            waits: Rng::seeded(seed ^ WAITS),
            limits,
            most,
            length,
        }
    }

    /// A client that arrives: it picks a session by weight.
    pub(crate) fn next_client(&mut self, due: Due) -> Client {
        Client {
            session: self.script.pick(self.choices.unit()),
            at: 0,
            left: Vec::new(),
            next: Next::Arrival(due),
            held: None,
            has_sent: false,
        }
    }

    /// Counts a client that leaves.
    pub(crate) fn count(&mut self, client: &Client, finished: bool) {
        let counts = &mut self.counts[client.session];
        counts.started += u64::from(client.has_sent);
        counts.finished += u64::from(finished && client.has_sent);
    }

    /// Whether a connection may be opened.
    pub(crate) fn limit_opening(&mut self, now: Nanos) -> Start {
        let opens = NextExchange {
            warmup: false,
            opens: true,
            free_since: now,
            late_before: 0,
        };
        self.limits.next(now, opens)
    }

    /// The next step of a client.
    pub(crate) fn todo(&mut self, client: &mut Client) -> Todo {
        if let Some(held) = client.held.take() {
            return Todo::Request(held);
        }
        let ops = &self.script.sessions[client.session].ops;
        while let Some(op) = ops.get(client.at) {
            client.at += 1;
            match op {
                Op::Request(variant_plan) => return Todo::Request(variant_plan.clone()),
                Op::Wait(wait) => return Todo::Wait(nanos(*wait, &mut self.waits)),
                Op::Repeat(times) => client.left.push(*times),
                Op::Again(start) => match client.left.last_mut() {
                    Some(None) => client.at = *start,
                    Some(Some(left)) if *left > 1 => {
                        *left -= 1;
                        client.at = *start;
                    }
                    Some(Some(_)) | None => {
                        client.left.pop();
                    }
                },
            }
        }
        Todo::End
    }
}

/// How long this wait is.
fn nanos(wait: Wait, random: &mut Rng) -> u64 {
    let seconds = match wait {
        Wait::Constant(time) => return time.as_nanos() as u64,
        // the unit is below 1, so the logarithm is finite
        Wait::Exponential(mean) => -(1.0 - random.unit()).ln() * mean.as_secs_f64(),
        Wait::Uniform(low, high) => low.as_secs_f64() + random.unit() * (high - low).as_secs_f64(),
    };
    (seconds * 1e9) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn waits_have_their_distribution() {
        let mut random = Rng::seeded(1);
        let half = Duration::from_millis(500);
        assert_eq!(nanos(Wait::Constant(half), &mut random), 500_000_000);
        let mut mean = |wait: Wait| {
            let sum: f64 = (0..10_000).map(|_| nanos(wait, &mut random) as f64).sum();
            sum / 10_000.0 / 1e9
        };
        // a standard error of 5 ms
        let exponential = mean(Wait::Exponential(half));
        assert!((0.475..0.525).contains(&exponential), "{exponential}");
        let uniform = mean(Wait::Uniform(half, 3 * half));
        assert!((0.98..1.02).contains(&uniform), "{uniform}");
        for _ in 0..1_000 {
            let one = nanos(Wait::Uniform(half, 3 * half), &mut random);
            assert!((500_000_000..=1_500_000_000).contains(&one));
        }
    }
}
