//! Drives a function: starts environments, invokes, freezes in between.

use crate::environment::Environment;
use crate::freezer::Frozen;
use crate::plan::{Function, Plan};
use crate::room::{Answer, Delivery};
use crate::{Invocation, LambdaError, Outcome};
use ledger::{Nanos, Span};
use std::io;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What may be missing where a process never asks.
const RUNTIME_CLIENTS: &str = "does it run a runtime client (pip install awslambdaric, npm install aws-lambda-ric, the crate lambda_runtime)?";

/// What is closed around a frozen function: on a link, nothing passes.
pub trait Gate {
    /// The function has been stopped.
    fn close(&mut self) -> io::Result<()>;
    /// It is about to go on.
    fn open(&mut self) -> io::Result<()>;
}

/// The kernel goes on answering for a frozen function.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoGate;

impl Gate for NoGate {
    fn close(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn open(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A platform on this machine.
pub struct Platform<'a> {
    start: Instant,
    gate: &'a mut dyn Gate,
    environments: u64,
    requests: u64,
}

impl<'a> Platform<'a> {
    /// A platform whose clock began at `start`.
    pub fn new(start: Instant, gate: &'a mut dyn Gate) -> Platform<'a> {
        Platform {
            start,
            gate,
            environments: 0,
            requests: 0,
        }
    }

    /// Invokes the function as planned, in a new environment, and hands over each invocation as it ends; until all are done or
    /// `over` is asked and says so. Returns how many were made.
    ///
    /// Call it from a thread that lives on: the function ends with it.
    pub fn run(
        &mut self,
        function: &Function,
        plan: &Plan,
        over: &dyn Fn() -> bool,
        done: &mut dyn FnMut(Invocation),
    ) -> Result<u64, LambdaError> {
        let mut environment: Option<(Environment, u64)> = None;
        for number in 1..=plan.invocations {
            if over() {
                return Ok(number - 1);
            }
            let idle = plan.idle_before(number);
            let kept = environment
                .take()
                // one that ended after its answer is replaced
                .filter(|(here, _)| !here.room.has_exited())
                .filter(|(_, served)| plan.cold_every.is_none_or(|every| *served < every));
            let (mut here, served, init, frozen) = match kept {
                Some((here, served)) => {
                    let frozen = self.rest(&here, idle, plan.freeze, over)?;
                    (here, served, None, frozen)
                }
                None => match self.begin(function, plan)? {
                    Ok((here, init)) => (here, 0, Some(init), None),
                    Err((environment, span, words)) => {
                        done(Invocation {
                            number,
                            environment,
                            frozen: None,
                            init: Some(span),
                            at: span.end,
                            end: span.end,
                            outcome: Outcome::NoStart(words),
                            answered_again: 0,
                        });
                        continue;
                    }
                },
            };
            let invocation = self.invoke(&mut here, number, init, frozen, plan)?;
            if invocation.outcome.leaves_environment() {
                environment = Some((here, served + 1));
            }
            done(invocation);
        }
        Ok(plan.invocations)
    }

    /// A new environment that asks for its first event; or the number, the time and the reason of one that does not.
    #[allow(clippy::type_complexity, reason = "named once, taken apart once")]
    fn begin(
        &mut self,
        function: &Function,
        plan: &Plan,
    ) -> Result<Result<(Environment, Span), (u64, Span, String)>, LambdaError> {
        self.environments += 1;
        let from = self.now();
        let mut environment = Environment::start(self.environments, function, plan)?;
        let until = Instant::now() + plan.init_timeout;
        let asked = environment.room.wait(until, |state| {
            if let Some(words) = state.init_error.take() {
                return Some(Err(Some(words)));
            }
            if state.asking {
                return Some(Ok(()));
            }
            state.exited.then_some(Err(None))
        });
        let span = Span::new(from, self.now());
        let words = match asked {
            Some(Ok(())) => return Ok(Ok((environment, span))),
            Some(Err(Some(words))) => words,
            Some(Err(None)) => format!(
                "{} before it asked for an event: {RUNTIME_CLIENTS}",
                environment.how_it_ended()
            ),
            None => format!(
                "it did not ask for an event within {:?}: {RUNTIME_CLIENTS}",
                plan.init_timeout
            ),
        };
        Ok(Err((self.environments, span, words)))
    }

    /// Lets the environment idle, frozen if that was asked for; it is thawed by the invocation.
    fn rest(
        &mut self,
        environment: &Environment,
        idle: Duration,
        freeze: bool,
        over: &dyn Fn() -> bool,
    ) -> Result<Option<(Frozen, Duration)>, LambdaError> {
        if idle.is_zero() {
            return Ok(None);
        }
        let frozen = if freeze {
            let frozen = environment.freeze().map_err(LambdaError::Freezer)?;
            self.gate.close().map_err(LambdaError::Gate)?;
            Some(frozen)
        } else {
            None
        };
        let began = Instant::now();
        while began.elapsed() < idle && !over() {
            let left = idle.saturating_sub(began.elapsed());
            std::thread::sleep(left.min(Duration::from_millis(100)));
        }
        Ok(frozen.map(|frozen| (frozen, began.elapsed())))
    }

    fn invoke(
        &mut self,
        environment: &mut Environment,
        number: u64,
        init: Option<Span>,
        frozen: Option<(Frozen, Duration)>,
        plan: &Plan,
    ) -> Result<Invocation, LambdaError> {
        self.requests += 1;
        let room = environment.room.clone();
        let id = format!("00000000-0000-4000-8000-{:012x}", self.requests);
        let unix = SystemTime::now().duration_since(UNIX_EPOCH);
        let mut at = Instant::now();
        room.offer(Delivery {
            id,
            body: plan.event.0.clone(),
            deadline_ms: (unix.unwrap_or_default() + plan.timeout).as_millis(),
        });
        let idle = frozen.as_ref().map(|(_, idle)| *idle);
        if let Some((frozen, _)) = frozen {
            // a thawed function finds its event waiting, as on Lambda: the order in which it sees that and a FIN matters
            room.wait(Instant::now() + plan.timeout, |state| {
                (state.delivered || state.exited).then_some(())
            });
            self.gate.open().map_err(LambdaError::Gate)?;
            at = Instant::now();
            frozen.thaw().map_err(LambdaError::Freezer)?;
        }
        let until = at + plan.timeout;
        // what ended it first: the answer, the process, or a function that goes on to the next event without one
        let said = room.wait(until, |state| {
            if let Some((answer, at)) = &state.answer {
                return Some((Some(answer.clone()), *at));
            }
            let gone = state.exited || (state.delivered && state.asking);
            gone.then(|| (None, Instant::now()))
        });
        let over = |state: &mut crate::room::State| {
            (state.asking || state.exited).then_some(state.exited && !state.asking)
        };
        let (outcome, end) = match said {
            None => (Outcome::Timeout, Instant::now()),
            Some((None, end)) => match room.wait(end, |state| Some(state.exited)) {
                Some(true) => (Outcome::Crashed(environment.how_it_ended()), end),
                _ => (Outcome::Unanswered, end),
            },
            Some((Some(answer), end)) => {
                let outcome = match answer {
                    Answer::Response { bytes } => Outcome::Answered(bytes),
                    Answer::Error(words) => Outcome::Error(words),
                };
                match room.wait(until, over) {
                    // Lambda too takes a function for busy until it asks again
                    None => (Outcome::NeverAskedAgain, end),
                    // the answer stands; the next invocation finds a new environment
                    Some(_) => (outcome, end),
                }
            }
        };
        let answered_again = room.wait(Instant::now(), |state| Some(state.again));
        Ok(Invocation {
            number,
            environment: environment.number,
            frozen: idle,
            init,
            at: self.at(at),
            end: self.at(end),
            outcome,
            answered_again: answered_again.unwrap_or(0),
        })
    }

    fn now(&self) -> Nanos {
        self.at(Instant::now())
    }

    fn at(&self, moment: Instant) -> Nanos {
        let since = moment.saturating_duration_since(self.start);
        Nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
    }
}
