//! Runs a scenario: clients arrive by the phases of the plan, or a number of them is there at all
//! times, in one round.

use super::client::Clients;
use super::error::ScenarioConfigError;
use super::limits::{Arrival, check_ends, clients_at_once, keep_polite};
use super::script::{Script, ScriptWriter, picked};
use crate::closed_loop::ClosedLoop;
use crate::config::{Config, ConfigError};
use crate::crew::share;
use crate::engine::{Gauge, IoBackend, RoundTask, WarmUp};
use crate::io_backend;
use crate::observer::{BenchError, BenchObserver, Position};
use crate::open_loop::OpenLoop;
use crate::pace::Pace;
use crate::recording::Recording;
use crate::variant_plan::VariantPlan;
use intact_client::Clock;
use intact_client::tls::Trust;
use intact_experiment::{RequestRate, Schedule, ScheduleLength, ScheduleSeries};
use intact_ledger::{ClientCounts, Event, Round, Run, Span, Tally, Variant};
use intact_scenario::{Phase, Plan};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The only round.
const ROUND: u32 = 1;

/// What will be sent, where it is known in advance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScenarioSize {
    /// Clients, on average; absent where the time decides.
    pub clients: Option<f64>,
    /// Requests, on average; absent where the time decides.
    pub requests: Option<f64>,
    /// How long clients arrive; absent where their number decides.
    pub time: Option<Duration>,
    /// Clients at once, at the most.
    pub at_once: u32,
    /// New connections a second, at the most; absent: as many as it takes.
    pub opening_per_s: Option<f64>,
}

/// A scenario that is ready to run.
pub struct Scenario {
    config: Config,
    plan: Plan,
    file: String,
    arrival: Arrival,
    at_once: u32,
    script: Arc<Script>,
    base: Arc<VariantPlan>,
    gauge: Arc<Gauge>,
}

impl Scenario {
    /// Checks plan and options, and formats all requests. `config` names the target; its lengths,
    /// rounds and method have no effect. `is_ours`: the target is the built-in server.
    pub fn new(
        mut config: Config,
        plan: Plan,
        file: &str,
        mut arrival: Arrival,
        is_ours: bool,
    ) -> Result<Scenario, ScenarioConfigError> {
        if let Some(agent) = &plan.user_agent {
            config.user_agent.clone_from(agent);
        }
        io_backend::check_scenario(config.io)?;
        let target = config.address().map_err(|error| match &plan.target {
            Some(target) => {
                ScenarioConfigError::at(file, target.line, format!("the target: {error}"))
            }
            None => error.into(),
        })?;
        if !is_ours && !config.is_local()? {
            keep_polite(&mut config, &plan, &mut arrival)?;
        }
        check_ends(&plan, file, &arrival)?;
        let at_once = clients_at_once(&plan, &arrival)?;
        let trust = Trust::load(&config.credentials.verify).map_err(ConfigError::from)?;
        let Some(choice) = config.axes.choices().into_iter().next() else {
            return Err(
                ConfigError::value("--http", "a scenario needs one version of HTTP").into(),
            );
        };
        let base = config.variant_plan(0, &choice, &trust, true)?;
        let writer = ScriptWriter {
            file,
            config: &config,
            choice,
            base: &base,
            target: &target,
        };
        let script = Arc::new(writer.script(&plan)?);
        Ok(Scenario {
            base: Arc::new(base),
            config,
            plan,
            file: file.to_owned(),
            arrival,
            at_once,
            script,
            gauge: Arc::new(Gauge::default()),
        })
    }

    /// What will be sent.
    pub fn size(&self) -> ScenarioSize {
        let phases = self.phases();
        let of_phases = self.plan.clients().map(|_| {
            let each = phases.iter().map(Phase::clients);
            each.sum::<f64>()
        });
        let most = self.arrival.clients.map(|most| most as f64);
        let clients = match (of_phases, most) {
            (Some(expected), most) => Some(most.map_or(expected, |most| expected.min(most))),
            (None, most) => most.or(self.closed_clients().map(|all| all as f64)),
        };
        let each = self.plan.mean_requests();
        ScenarioSize {
            clients,
            requests: clients.zip(each).map(|(clients, each)| clients * each),
            time: self.length(),
            at_once: self.at_once,
            opening_per_s: self.config.opening_per_s,
        }
    }

    /// The sessions, as the ledger names them.
    pub fn variants(&self) -> Vec<Variant> {
        let variants = picked(&self.plan).map(|session| Variant {
            name: session.name.clone(),
            axes: BTreeMap::from([
                ("session".to_owned(), session.name.clone()),
                ("weight".to_owned(), session.weight.to_string()),
            ]),
        });
        variants.collect()
    }

    /// What the outside may watch and stop.
    pub fn gauge(&self) -> Arc<Gauge> {
        self.gauge.clone()
    }

    /// Fills in what is known of the run.
    pub fn describe(&self, run: &mut Run) {
        self.config.describe(run);
        run.io = Some(io_backend::of_scenario(self.config.io));
        run.subject = Some(self.base.plan.origin.to_string());
        run.variants = self.variants();
        run.varied = vec!["session".to_owned()];
        run.scenario = Some(self.file.clone());
    }

    /// Runs it. Network failures are in the tally; an error means that we could not observe.
    pub fn run(self, clock: Clock, observer: &mut dyn BenchObserver) -> Result<Tally, BenchError> {
        let (io, at_once) = (IoBackend::Readiness, self.at_once as usize);
        let recording = Recording::new(&self.config, at_once, io, clock, &self.gauge, observer);
        let mut recording = recording?;
        let threads = recording.crew.len();
        for note in &self.plan.notes {
            let words = format!("{}:{}: {}", self.file, note.line, note.words);
            recording.caveat("scenario-note", words);
        }
        recording.count_sockets();
        let started = clock.now();
        let warm_up = Arc::new(WarmUp::new(0));
        let task = |thread: usize| self.task((thread, threads), clock, &warm_up);
        let tasks = (0..threads).map(task).collect();
        let mut counts = vec![ClientCounts::default(); self.script.sessions.len()];
        let position = || self.position(clock.now().since(started));
        let done = recording.carry_out(tasks, position, |one| {
            for (all, more) in counts.iter_mut().zip(&one.clients) {
                all.add(*more);
            }
        })?;
        // the sessions ran together: each has the bounds and the CPU time of all
        let mut round = done.round((0, ROUND));
        // an interrupted run ends before its schedule does
        round.span = Span::new(round.span.start, round.span.end.min(done.times.1));
        round.machine = done.processors.between(round.span);
        record_sessions(&round, &counts, &mut recording);
        if self.gauge.stop.load(Ordering::Relaxed) {
            let words = "the run was interrupted: clients that were under way did not finish";
            recording.caveat("interrupted", words.to_owned());
        }
        recording.count_sockets();
        recording.round_over();
        Ok(recording.tally)
    }

    fn task(&self, thread: (usize, usize), clock: Clock, warm_up: &Arc<WarmUp>) -> RoundTask {
        let of_thread = |all: u64| share(all, thread.0, thread.1);
        let at_once = of_thread(self.at_once.into()) as usize;
        let is_open = !self.plan.phases.is_empty();
        let seed = self.config.seed.wrapping_add((thread.0 as u64) << 48);
        let opening = self.config.opening_per_s;
        let opening = opening.map(|per_second| per_second / thread.1 as f64);
        let limits = ClosedLoop::new(None, None).limited(opening, None, clock.now());
        let clients = Clients::new(
            self.script.clone(),
            seed,
            limits,
            at_once,
            self.length().map(|length| length.as_nanos() as u64),
        );
        RoundTask {
            variant_plan: self.base.clone(),
            round: ROUND,
            // slots are added when clients arrive
            connections: if is_open { 1 } else { at_once },
            pace: self.pace(thread),
            warm_up: warm_up.clone(),
            clients: Some(Box::new(clients)),
            windows: None,
            turn: 0,
        }
    }

    /// When the clients of one thread arrive.
    fn pace(&self, thread: (usize, usize)) -> Pace {
        let of_thread = |all: u64| share(all, thread.0, thread.1);
        let phases = self.phases();
        if phases.is_empty() {
            let clients = self.closed_clients().map(of_thread);
            let nanos = self.arrival.time.map(|time| time.as_nanos() as u64);
            return Pace::Closed(ClosedLoop::new(clients, nanos));
        }
        let mut begin = 0;
        let mut series = Vec::new();
        for (nth, phase) in phases.iter().enumerate() {
            let nanos = phase.duration.as_nanos() as u64;
            let seed = self.config.seed.wrapping_add((nth as u64 + 1) << 32);
            let mut schedule = Schedule::new(
                RequestRate::constant(phase.rate),
                self.arrival.spacing,
                ScheduleLength::Nanos(nanos),
                thread,
                seed,
            );
            if let Some(most) = phase.max_clients {
                schedule = schedule.at_most(of_thread(most));
            }
            series.push((begin, schedule));
            begin += nanos;
        }
        let mut series = ScheduleSeries::new(series);
        if let Some(most) = self.arrival.clients {
            series = series.at_most(of_thread(most));
        }
        let limits = ClosedLoop::new(None, None);
        Pace::Open(Box::new(OpenLoop::new(series, begin, limits)))
    }

    /// The clients of a run without phases; absent where the time decides.
    fn closed_clients(&self) -> Option<u64> {
        let all = self.arrival.clients;
        all.or((self.arrival.time.is_none()).then_some(self.at_once.into()))
    }

    /// How long clients arrive; absent where their number decides.
    fn length(&self) -> Option<Duration> {
        match self.plan.phases.is_empty() {
            true => self.arrival.time,
            false => Some(self.phases().iter().map(|phase| phase.duration).sum()),
        }
    }

    /// The phases, cut off at the end of the time.
    fn phases(&self) -> Vec<Phase> {
        let mut left = self.arrival.time.unwrap_or(Duration::MAX);
        let mut phases = Vec::new();
        for phase in &self.plan.phases {
            let mut phase = phase.clone();
            phase.duration = phase.duration.min(left);
            left -= phase.duration;
            if !phase.duration.is_zero() {
                phases.push(phase);
            }
        }
        phases
    }

    fn position(&self, since: u64) -> Position {
        let left = self.length().map(|length| {
            let since = Duration::from_nanos(since);
            length.saturating_sub(since)
        });
        Position {
            round: ROUND,
            rounds: ROUND,
            variant: 0,
            turns: (0, 1),
            exchanges: self.gauge.exchanges.load(Ordering::Relaxed),
            left,
        }
    }
}

/// The bounds and the clients of each session.
fn record_sessions(round: &Round, counts: &[ClientCounts], recording: &mut Recording<'_>) {
    for (variant, counts) in counts.iter().enumerate() {
        let variant = variant as u32;
        let of_session = Round {
            variant,
            ..round.clone()
        };
        recording.record(Event::Round(&of_session));
        let cell = recording.tally.cell(Some(variant), Some(ROUND));
        cell.clients = Some(*counts);
        cell.pack();
    }
}
