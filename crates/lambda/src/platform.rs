//! Drives a function: starts environments, invokes, freezes in between.

use crate::LambdaError;
use crate::environment::{Environment, Start};
use crate::freezer::Frozen;
use crate::plan::{Function, Place, Plan};
use crate::room::{Answer, Delivery, State};
use ledger::{Event, Fate, Invocation, Nanos, Row, Sink, Span};
use std::io;
use std::sync::mpsc::{self, Receiver, Sender};
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
    invocations: u64,
    rows: (Sender<Row>, Receiver<Row>),
}

/// An environment that is there, and how many invocations it has had.
struct Kept {
    environment: Environment,
    served: u64,
}

/// One that asks for its first event, or why it does not; and what that took.
struct Begun {
    number: u64,
    init: Span,
    environment: Result<Environment, String>,
}

impl<'a> Platform<'a> {
    /// A platform whose clock began at `start`.
    pub fn new(start: Instant, gate: &'a mut dyn Gate) -> Platform<'a> {
        Platform {
            start,
            gate,
            environments: 0,
            invocations: 0,
            rows: mpsc::channel(),
        }
    }

    /// Invokes the function as planned, in a new environment, and records each invocation as it ends, and what is seen of its
    /// connections; until all are done or `over` is asked and says so. Returns how many were made.
    ///
    /// Call it from a thread that lives on: the function ends with it.
    pub fn run(
        &mut self,
        function: &Function,
        plan: &Plan,
        place: Place,
        over: &dyn Fn() -> bool,
        sink: &mut dyn Sink,
    ) -> Result<u64, LambdaError> {
        let mut kept: Option<Kept> = None;
        let mut made = 0;
        while made < plan.invocations && !over() {
            made += 1;
            let here = kept
                .take()
                // one that ended after its answer is replaced
                .filter(|here| !here.environment.room.has_exited())
                .filter(|here| plan.cold_every.is_none_or(|every| here.served < every));
            let (mut here, init, frozen) = match here {
                Some(here) => {
                    let idle = plan.idle_before(made);
                    let frozen = self.rest(&here.environment, idle, plan.freeze, over)?;
                    (here, None, frozen)
                }
                None => {
                    let begun = self.begin(function, plan, place)?;
                    match begun.environment {
                        Ok(environment) => {
                            let served = 0;
                            let here = Kept {
                                environment,
                                served,
                            };
                            (here, Some(begun.init), None)
                        }
                        Err(words) => {
                            let fate = Fate::NoStart(words);
                            let one = self.told(begun.number, place, begun.init, fate);
                            self.record(&one, sink);
                            continue;
                        }
                    }
                }
            };
            let one = self.invoke(&mut here.environment, init, frozen, plan, place, function)?;
            let stays = matches!(
                one.fate,
                Fate::Answered(_) | Fate::Error(_) | Fate::Unanswered
            );
            self.record(&one, sink);
            here.served += 1;
            kept = stays.then_some(here);
        }
        // with its end the rest of what was seen is told
        drop(kept);
        self.pass_on(sink);
        Ok(made)
    }

    /// An invocation that found no environment.
    fn told(&mut self, environment: u64, place: Place, init: Span, fate: Fate) -> Invocation {
        self.invocations += 1;
        Invocation {
            id: self.invocations,
            variant: Some(place.variant),
            round: Some(place.round),
            environment,
            init: Some(init),
            frozen: None,
            at: init.end,
            end: init.end,
            fate,
            answered_again: 0,
        }
    }

    fn record(&mut self, one: &Invocation, sink: &mut dyn Sink) {
        self.pass_on(sink);
        sink.record(Event::Invocation(one));
    }

    fn pass_on(&mut self, sink: &mut dyn Sink) {
        while let Ok(row) = self.rows.1.try_recv() {
            sink.record(row.as_event());
        }
    }

    fn begin(
        &mut self,
        function: &Function,
        plan: &Plan,
        place: Place,
    ) -> Result<Begun, LambdaError> {
        self.environments += 1;
        let from = self.now();
        let mut environment = Environment::start(&Start {
            number: self.environments,
            place,
            function,
            plan,
            run: self.start,
            rows: self.rows.0.clone(),
        })?;
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
        let init = Span::new(from, self.now());
        let environment = match asked {
            Some(Ok(())) => Ok(environment),
            Some(Err(Some(words))) => Err(words),
            Some(Err(None)) => Err(format!(
                "{} before it asked for an event: {RUNTIME_CLIENTS}",
                environment.how_it_ended(function)?
            )),
            None => Err(format!(
                "it did not ask for an event within {:?}: {RUNTIME_CLIENTS}",
                plan.init_timeout
            )),
        };
        Ok(Begun {
            number: self.environments,
            init,
            environment,
        })
    }

    /// Lets the environment idle, frozen if that was asked for; it is thawed by the invocation.
    fn rest(
        &mut self,
        environment: &Environment,
        idle: Duration,
        freeze: bool,
        over: &dyn Fn() -> bool,
    ) -> Result<Option<(Frozen, Nanos)>, LambdaError> {
        if idle.is_zero() {
            return Ok(None);
        }
        let frozen = if freeze {
            let frozen = environment.freeze().map_err(LambdaError::Freezer)?;
            self.gate.close().map_err(LambdaError::Gate)?;
            Some((frozen, self.now()))
        } else {
            None
        };
        let began = Instant::now();
        while began.elapsed() < idle && !over() {
            let left = idle.saturating_sub(began.elapsed());
            std::thread::sleep(left.min(Duration::from_millis(100)));
        }
        Ok(frozen)
    }

    fn invoke(
        &mut self,
        environment: &mut Environment,
        init: Option<Span>,
        frozen: Option<(Frozen, Nanos)>,
        plan: &Plan,
        place: Place,
        function: &Function,
    ) -> Result<Invocation, LambdaError> {
        self.invocations += 1;
        let room = environment.room.clone();
        let unix = SystemTime::now().duration_since(UNIX_EPOCH);
        let mut at = Instant::now();
        room.offer(Delivery {
            id: format!("00000000-0000-4000-8000-{:012x}", self.invocations),
            body: plan.event.0.clone(),
            deadline_ms: (unix.unwrap_or_default() + plan.timeout).as_millis(),
        });
        let mut stood = None;
        if let Some((frozen, since)) = frozen {
            // a thawed function finds its event waiting, as on Lambda: the order in which it sees that and a FIN matters
            room.wait(Instant::now() + plan.timeout, |state| {
                (state.delivered || state.exited).then_some(())
            });
            self.gate.open().map_err(LambdaError::Gate)?;
            at = Instant::now();
            stood = Some(Span::new(since, self.at(at)));
            frozen.thaw().map_err(LambdaError::Freezer)?;
        }
        let (fate, end) = outcome(environment, at + plan.timeout, function)?;
        let again = room.wait(Instant::now(), |state| Some(state.again));
        Ok(Invocation {
            id: self.invocations,
            variant: Some(place.variant),
            round: Some(place.round),
            environment: environment.number,
            init,
            frozen: stood,
            at: self.at(at),
            end: self.at(end),
            fate,
            answered_again: again.unwrap_or(0),
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

/// What ends an invocation first: the answer, the process, or a function that goes on to the next event without one.
fn outcome(
    environment: &mut Environment,
    until: Instant,
    function: &Function,
) -> Result<(Fate, Instant), LambdaError> {
    let room = environment.room.clone();
    let said = room.wait(until, |state| {
        if let Some((answer, at)) = &state.answer {
            return Some((Some(answer.clone()), *at));
        }
        let gone = state.exited || (state.delivered && state.asking);
        gone.then(|| (None, Instant::now()))
    });
    let over = |state: &mut State| (state.asking || state.exited).then_some(());
    Ok(match said {
        None => (Fate::Timeout, Instant::now()),
        Some((None, end)) => match room.wait(end, |state| Some(state.exited)) {
            Some(true) => (Fate::Crash(environment.how_it_ended(function)?), end),
            _ => (Fate::Unanswered, end),
        },
        Some((Some(answer), end)) => {
            let fate = match answer {
                Answer::Response { bytes } => Fate::Answered(bytes),
                Answer::Error(words) => Fate::Error(words),
            };
            match room.wait(until, over) {
                // Lambda too takes a function for busy until it asks again
                None => (Fate::NeverAskedAgain, end),
                // the answer stands; the next invocation finds a new environment
                Some(()) => (fate, end),
            }
        }
    })
}
