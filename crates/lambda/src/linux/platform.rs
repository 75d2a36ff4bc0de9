//! Drives a function: starts environments, invokes, freezes in between.

use super::environment::{Environment, Start};
use super::freezer::Frozen;
use super::mailbox::{Delivery, FunctionResponse, State};
use crate::plan::{Function, Plan, RunPosition};
use crate::{FreezeHook, LambdaError};
use intact_ledger::{Event, Invocation, InvocationOutcome, Nanos, Row, Sink, Span};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What may be missing where a process never asks.
const RUNTIME_CLIENTS: &str = "does it run a runtime client (pip install awslambdaric, npm install aws-lambda-ric, the crate lambda_runtime)?";

/// A platform on this machine.
pub struct Platform<'a> {
    start: Instant,
    gate: &'a mut dyn FreezeHook,
    environments: u64,
    invocations: u64,
    rows: (Sender<Row>, Receiver<Row>),
}

/// An environment that is there, and how many invocations it has had.
struct WarmEnvironment {
    environment: Environment,
    served: u64,
    /// Its start, until its first invocation.
    init: Option<Span>,
    /// How long it was meant to rest, in nanoseconds.
    rest: Option<u64>,
    /// While it rests, and since when.
    frozen: Option<(Frozen, Instant)>,
}

/// A started environment that has requested its first event, or the reason why it has not, with the
/// duration of the start.
struct StartResult {
    number: u64,
    init: Span,
    environment: Result<Environment, String>,
}

impl<'a> Platform<'a> {
    /// A platform whose clock began at `start`.
    pub fn new(start: Instant, gate: &'a mut dyn FreezeHook) -> Platform<'a> {
        Platform {
            start,
            gate,
            environments: 0,
            invocations: 0,
            rows: mpsc::channel(),
        }
    }

    /// Invokes the function as planned, in a new environment, until all invocations are done or
    /// `over` returns true. Records each invocation when it ends, and the rows of its connections.
    /// Returns the number of invocations.
    ///
    /// The function ends with the calling thread, so call this from a thread that continues.
    pub fn run(
        &mut self,
        function: &Function,
        plan: &Plan,
        place: RunPosition,
        over: &dyn Fn() -> bool,
        sink: &mut dyn Sink,
    ) -> Result<u64, LambdaError> {
        let mut kept: Vec<WarmEnvironment> = Vec::new();
        let (mut made, mut turn) = (0, 0);
        while made < plan.invocations && !over() {
            turn += 1;
            let together = plan.concurrency.clamp(1, plan.invocations - made);
            made += together;
            // replaces an environment that ended after its response, or that has had its number of
            // invocations
            kept.retain(|here| {
                !here.environment.room.has_exited()
                    && plan.cold_every.is_none_or(|every| here.served < every)
            });
            kept.truncate(together as usize);
            let rested = self.rest(&mut kept, plan, turn, over)?;
            let missing = together - kept.len() as u64;
            for begun in self.begin(missing, function, plan, place)? {
                match begun.environment {
                    Ok(environment) => kept.push(WarmEnvironment {
                        environment,
                        served: 0,
                        init: Some(begun.init),
                        rest: None,
                        frozen: None,
                    }),
                    Err(words) => {
                        let fate = InvocationOutcome::NoStart(words);
                        let one = self.outcome_row(begun.number, place, begun.init, fate);
                        self.record(&one, sink);
                    }
                }
            }
            let invoked = self.invoke(&mut kept, rested, function, plan, place)?;
            let mut stay = invoked.iter().map(|one| {
                matches!(
                    one.fate,
                    InvocationOutcome::Answered(_)
                        | InvocationOutcome::Error(_)
                        | InvocationOutcome::Unanswered
                )
            });
            kept.retain(|_| stay.next().unwrap_or(false));
            for one in &invoked {
                self.record(one, sink);
            }
        }
        // the remaining rows arrive when the environments end
        drop(kept);
        self.pass_on(sink);
        Ok(made)
    }

    /// The row of an invocation whose environment did not start.
    fn outcome_row(
        &mut self,
        environment: u64,
        place: RunPosition,
        init: Span,
        fate: InvocationOutcome,
    ) -> Invocation {
        self.invocations += 1;
        Invocation {
            id: self.invocations,
            variant: Some(place.variant),
            round: Some(place.round),
            environment,
            init: Some(init),
            frozen: None,
            rest: None,
            at: init.end,
            end: init.end,
            fate,
            duplicate_response: 0,
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

    /// Starts new environments concurrently, and waits until each requests its first event or
    /// fails.
    fn begin(
        &mut self,
        count: u64,
        function: &Function,
        plan: &Plan,
        place: RunPosition,
    ) -> Result<Vec<StartResult>, LambdaError> {
        let mut started = Vec::new();
        for _ in 0..count {
            self.environments += 1;
            let from = Instant::now();
            let environment = Environment::start(&Start {
                number: self.environments,
                place,
                function,
                plan,
                run: self.start,
                rows: self.rows.0.clone(),
            })?;
            started.push((from, environment));
        }
        let each = started.into_iter().map(|(from, mut environment)| {
            let number = environment.number;
            let asked = environment.room.wait(from + plan.init_timeout, |state| {
                if let Some(words) = state.init_error.take() {
                    return Some(Err(Some(words)));
                }
                let exited = state.exited.then_some(Err(None));
                state.asked.map(Ok).or(exited)
            });
            let end = asked.as_ref().and_then(|asked| asked.as_ref().ok());
            let init = Span::new(
                self.at(from),
                end.map_or_else(|| self.now(), |at| self.at(*at)),
            );
            let environment = match asked {
                Some(Ok(_)) => Ok(environment),
                Some(Err(Some(words))) => Err(words),
                Some(Err(None)) => Err(format!(
                    "{} before it {}",
                    environment.how_it_ended(function)?,
                    awaited(function)
                )),
                None => Err(format!(
                    "within {:?} it never {}",
                    plan.init_timeout,
                    awaited(function)
                )),
            };
            Ok(StartResult {
                number,
                init,
                environment,
            })
        });
        each.collect()
    }

    /// Lets the environments idle, frozen if the plan says so; the invocation thaws them. Returns
    /// whether a gate was closed.
    fn rest(
        &mut self,
        kept: &mut [WarmEnvironment],
        plan: &Plan,
        turn: u64,
        over: &dyn Fn() -> bool,
    ) -> Result<bool, LambdaError> {
        let asked = plan.idle_before(turn);
        if asked.is_zero() || kept.is_empty() {
            return Ok(false);
        }
        for here in &mut *kept {
            here.rest = u64::try_from(asked.as_nanos()).ok();
        }
        if plan.freezer.is_some() {
            for here in &mut *kept {
                let frozen = here.environment.freeze().map_err(LambdaError::Freezer)?;
                here.frozen = Some((frozen, Instant::now()));
            }
            self.gate.close().map_err(LambdaError::Gate)?;
        }
        let idle = asked.div_f64(plan.time_scale.max(f64::MIN_POSITIVE));
        let began = Instant::now();
        while began.elapsed() < idle && !over() {
            let left = idle.saturating_sub(began.elapsed());
            std::thread::sleep(left.min(Duration::from_millis(100)));
        }
        Ok(plan.freezer.is_some())
    }

    /// Invokes all environments at once, and waits for all.
    fn invoke(
        &mut self,
        kept: &mut [WarmEnvironment],
        rested: bool,
        function: &Function,
        plan: &Plan,
        place: RunPosition,
    ) -> Result<Vec<Invocation>, LambdaError> {
        let first = self.invocations + 1;
        let unix = SystemTime::now().duration_since(UNIX_EPOCH);
        let deadline_ms = (unix.unwrap_or_default() + plan.timeout).as_millis();
        let mut at = Instant::now();
        for here in &*kept {
            self.invocations += 1;
            here.environment.room.offer(Delivery {
                id: format!("00000000-0000-4000-8000-{:012x}", self.invocations),
                body: plan.event.0.clone(),
                deadline_ms,
            });
        }
        if rested {
            for here in kept.iter().filter(|here| here.frozen.is_some()) {
                // the event waits when the function is thawed, as on Lambda: it matters whether the
                // function sees the event or a FIN first
                here.environment.room.wait(at + plan.timeout, |state| {
                    (state.delivered || state.exited).then_some(())
                });
            }
            self.gate.open().map_err(LambdaError::Gate)?;
            at = Instant::now();
        }
        let mut spans = Vec::new();
        for here in &mut *kept {
            here.served += 1;
            let frozen = here.frozen.take();
            spans.push((here.init.take(), frozen.as_ref().map(|(_, since)| *since)));
            if let Some((frozen, _)) = frozen {
                let thawed = here.environment.thaw(frozen);
                thawed.map_err(LambdaError::Freezer)?;
            }
        }
        let until = at + plan.timeout;
        let outcomes = outcomes(kept, until, function);
        let each = (first..).zip(kept).zip(spans).zip(outcomes);
        each.map(|(((id, here), (init, since)), outcome)| {
            let (fate, end) = outcome?;
            let room = &here.environment.room;
            let again = room.wait(Instant::now(), |state| Some(state.again));
            Ok(Invocation {
                id,
                variant: Some(place.variant),
                round: Some(place.round),
                environment: here.environment.number,
                init,
                frozen: since.map(|since| Span::new(self.at(since), self.at(at))),
                rest: here.rest.take(),
                at: self.at(at),
                end: self.at(end),
                fate,
                duplicate_response: again.unwrap_or(0),
            })
        })
        .collect()
    }

    fn now(&self) -> Nanos {
        self.at(Instant::now())
    }

    fn at(&self, moment: Instant) -> Nanos {
        let since = moment.saturating_duration_since(self.start);
        Nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
    }
}

/// The step that a ready function has done, with a hint for a function that has not.
fn awaited(function: &Function) -> String {
    match function.serves {
        Some(_) => "listened: does it take its port from PORT, on 127.0.0.1?".to_owned(),
        None => format!("asked for an event: {RUNTIME_CLIENTS}"),
    }
}

/// Waits for the outcomes of the environments' invocations, for all at the same time.
fn outcomes(
    kept: &mut [WarmEnvironment],
    until: Instant,
    function: &Function,
) -> Vec<Result<(InvocationOutcome, Instant), LambdaError>> {
    std::thread::scope(|scope| {
        let waiting: Vec<_> = kept
            .iter_mut()
            .map(|here| scope.spawn(move || outcome(&mut here.environment, until, function)))
            .collect();
        let joined = waiting.into_iter().map(|one| match one.join() {
            Ok(outcome) => outcome,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        joined.collect()
    })
}

/// What ends an invocation first: its response, the end of the process, or a request for the next
/// event without a response.
fn outcome(
    environment: &mut Environment,
    until: Instant,
    function: &Function,
) -> Result<(InvocationOutcome, Instant), LambdaError> {
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
        None => (InvocationOutcome::Timeout, Instant::now()),
        Some((None, end)) => match room.wait(end, |state| Some(state.exited)) {
            Some(true) => (
                InvocationOutcome::Crash(environment.how_it_ended(function)?),
                end,
            ),
            _ => (InvocationOutcome::Unanswered, end),
        },
        Some((Some(answer), end)) => {
            let fate = match answer {
                FunctionResponse::Response { bytes } => InvocationOutcome::Answered(bytes),
                FunctionResponse::Error(words) => InvocationOutcome::Error(words),
            };
            match room.wait(until, over) {
                // on Lambda, too, a function is busy until it requests the next event
                None => (InvocationOutcome::NeverAskedAgain, end),
                // the response counts; the next invocation gets a new environment
                Some(()) => (fate, end),
            }
        }
    })
}
