//! Runs the variants in interleaved rounds: a preflight, then every variant in every round in
//! balanced random order.

use crate::closed_loop::ClosedLoop;
use crate::config::{Config, ConfigError, Length};
use crate::crew::share;
use crate::engine::{Gauge, IoBackend, Progress, RoundTask, WarmUp};
use crate::io_backend;
use crate::machine;
use crate::observer::{BenchError, BenchObserver, Position};
use crate::open_loop::OpenLoop;
use crate::pace::Pace;
use crate::recording::{Recording, TurnSummary};
use crate::response_cache::ResponseCache;
use crate::validation::{check, rounds_for};
use crate::variant_plan::VariantPlan;
use crate::windows::Windows;
use intact_client::Clock;
use intact_client::tls::Trust;
use intact_experiment::{Arrivals, MIN_ROUNDS, Schedule, ScheduleLength, variants};
use intact_ledger::{Cell, EngineIo, Event, Failure, Nanos, Run, Tally, Variant};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Where a bench of one variant and one round stands in a larger run.
#[derive(Clone, Debug)]
pub struct Place {
    /// Index into the variants of that run.
    pub variant: u32,
    /// The name of that variant.
    pub name: String,
    /// The round of that run, from 1.
    pub round: u32,
    /// The number of benches before it in that run, which keeps their ids apart.
    pub turn: u32,
}

/// The bits of an id that a bench uses of one thread; those of its thread begin 16 bits higher.
const IDS: u32 = 32;

/// A bench that is ready to run.
pub struct Bench {
    pub(crate) config: Config,
    pub(crate) variant_plans: Vec<Arc<VariantPlan>>,
    variants: Vec<Variant>,
    rounds: u32,
    /// The number of the first round.
    first_round: u32,
    first_id: u64,
    gauge: Arc<Gauge>,
    io: (IoBackend, EngineIo),
}

impl Bench {
    /// Checks the configuration and makes the variants.
    pub fn new(config: Config) -> Result<Bench, BenchError> {
        let choices = config.axes.choices();
        check(&config, &choices)?;
        let variants = variants(&choices, &config.axes.varied(), config.axes.variation);
        let trust = Trust::load(&config.credentials.verify).map_err(ConfigError::from)?;
        let mut variant_plans = Vec::new();
        for (variant, choice) in choices.iter().enumerate() {
            let variant_plan = config.variant_plan(variant as u32, choice, &trust, true)?;
            variant_plans.push(Arc::new(variant_plan));
        }
        let rounds = rounds_for(&config, &choices);
        let io = io_backend::choose(config.io, &variant_plans, config.threads)?;
        Ok(Bench {
            config,
            variant_plans,
            variants,
            rounds,
            first_round: 1,
            first_id: 0,
            gauge: Arc::new(Gauge::default()),
            io,
        })
    }

    /// The same bench as a part of a larger run: its rows and counts belong there.
    #[must_use]
    pub fn placed(mut self, place: &Place) -> Bench {
        for variant_plan in &mut self.variant_plans {
            Arc::make_mut(variant_plan).variant = place.variant;
        }
        for variant in &mut self.variants {
            variant.name.clone_from(&place.name);
        }
        self.first_round = place.round;
        self.first_id = u64::from(place.turn) << IDS;
        self
    }

    /// The variants, as the ledger names them.
    pub fn variants(&self) -> &[Variant] {
        &self.variants
    }

    /// Rounds that will be run.
    pub fn rounds(&self) -> u32 {
        self.rounds
    }

    /// The most requests that will be made, preflight and warm-up included, and the connections
    /// that they take if none ends early: each that does is replaced. Absent where time or chance
    /// decides.
    pub fn budget(&self) -> Option<(u64, u64)> {
        let mut requests = 0;
        let mut connections = 0;
        for variant_plan in &self.variant_plans {
            let exchanges = match (self.config.length, variant_plan.open_loop) {
                (Length::Exchanges(exchanges), _) => exchanges,
                (Length::Time(time), Some(open)) if open.arrivals == Arrivals::Constant => {
                    (open.rate.mean() * time.as_secs_f64()).ceil() as u64
                }
                (Length::Time(_), _) => return None,
            };
            let first = variant_plan.concurrency as u64 * u64::from(self.rounds);
            let again = variant_plan
                .life
                .requests
                .map_or(0, |most| exchanges / most);
            let (warmup, opened) = if variant_plan.keepalive {
                (first, first + again)
            } else {
                (0, exchanges)
            };
            requests += exchanges + warmup + 1;
            connections += opened + 1;
        }
        Some((requests, connections))
    }

    /// What the outside may watch and stop.
    pub fn gauge(&self) -> Arc<Gauge> {
        self.gauge.clone()
    }

    /// Fills in what a bench knows of its run.
    pub fn describe(&self, run: &mut Run) {
        self.config.describe(run);
        run.io = Some(self.io.1.clone());
        run.subject = Some(intact_ledger::redact::url(&self.config.target.url));
        run.variants = self.variants.clone();
        run.varied = self.config.axes.varied();
    }

    /// Measures. Network failures are in the tally; an error means that we could not observe.
    pub fn run(self, clock: Clock, observer: &mut dyn BenchObserver) -> Result<Tally, BenchError> {
        self.runner(clock, observer)?.run()
    }

    /// The runner of this bench, with engines for its variants.
    pub(crate) fn runner<'a>(
        &'a self,
        clock: Clock,
        observer: &'a mut dyn BenchObserver,
    ) -> Result<RoundRunner<'a>, BenchError> {
        let connections = self.variant_plans.iter().map(|one| one.concurrency);
        let most = connections.max().unwrap_or(1);
        let (config, gauge) = (&self.config, &self.gauge);
        let mut recording = Recording::new(config, most, self.io.0, clock, gauge, observer)?;
        recording.crew.count_ids_from(self.first_id);
        Ok(RoundRunner {
            bench: self,
            recording,
            turns: Turns::default(),
        })
    }
}

/// Leads the threads through the rounds.
pub(crate) struct RoundRunner<'a> {
    pub(crate) bench: &'a Bench,
    pub(crate) recording: Recording<'a>,
    turns: Turns,
}

/// How far a run is.
#[derive(Clone, Copy, Default)]
struct Turns {
    done: u32,
    all: u32,
    /// When the first turn of the first round began; absent during the preflight.
    measuring_since: Option<Nanos>,
    /// When the present turn began.
    turn_since: Nanos,
}

impl Turns {
    /// Where the run is now, in a round of a variant.
    fn position(&self, bench: &Bench, (variant, round): (u32, u32), now: Nanos) -> Position {
        let planned = match bench.config.length {
            Length::Time(time) => Some((time / bench.rounds).as_nanos() as u64),
            Length::Exchanges(_) => None,
        };
        let turns = (self.done, self.all);
        let left = self.measuring_since.and_then(|since| {
            let begun = self.turn_since.since(since);
            time_left(turns, begun, now.since(self.turn_since), planned)
        });
        Position {
            round,
            rounds: bench.rounds,
            variant,
            turns,
            exchanges: bench.gauge.exchanges.load(Ordering::Relaxed),
            left,
        }
    }
}

impl RoundRunner<'_> {
    fn run(&mut self) -> Result<Tally, BenchError> {
        self.recording.count_sockets();
        let able = self.preflight()?;
        self.foresee_ports(&able)?;
        let mut reached = 0;
        if !able.is_empty() {
            let order = intact_experiment::order::balanced(
                able.len(),
                self.bench.rounds as usize,
                self.bench.config.seed,
            );
            self.turns.all = (able.len() * order.len()) as u32;
            'rounds: for (round, variants) in order.iter().enumerate() {
                reached = round + 1;
                for &nth in variants {
                    if self.stopped() {
                        break 'rounds;
                    }
                    let turns = &mut self.turns;
                    turns.turn_since = self.recording.clock.now();
                    turns.measuring_since.get_or_insert(turns.turn_since);
                    self.turn(able[nth], round as u32 + 1)?;
                    self.turns.done += 1;
                }
                self.recording.round_over();
            }
        }
        if self.stopped() {
            let rounds = self.bench.rounds;
            let words = match reached {
                0 => "the run was interrupted before its first round".to_owned(),
                round => format!("the run was interrupted in round {round} of {rounds}"),
            };
            self.recording.caveat("interrupted", words);
        }
        Ok(self.finish())
    }

    /// What was counted, with the sockets at the end.
    pub(crate) fn finish(&mut self) -> Tally {
        self.recording.count_sockets();
        self.recording.round_over();
        std::mem::take(&mut self.recording.tally)
    }

    pub(crate) fn stopped(&self) -> bool {
        self.bench.gauge.stop.load(Ordering::Relaxed)
    }

    /// One exchange of each variant, up to three times, to find out before the load what cannot
    /// work.
    pub(crate) fn preflight(&mut self) -> Result<Vec<usize>, BenchError> {
        let mut able = Vec::new();
        for variant in 0..self.bench.variant_plans.len() {
            let mut failure = None;
            for _ in 0..3 {
                if self.stopped() {
                    return Ok(Vec::new());
                }
                failure = self.first_failure(variant)?;
                if failure.is_none() {
                    able.push(variant);
                    break;
                }
            }
            if let Some(kind) = failure {
                let words = format!(
                    "{}: left out, three first requests failed ({kind}: {})",
                    self.bench.variants[variant].name,
                    kind.words()
                );
                self.recording.caveat("variant-left-out", words);
            }
        }
        Ok(able)
    }

    /// Says beforehand when the connections to come will use up the ephemeral ports: TIME_WAIT
    /// holds each for 60 s.
    fn foresee_ports(&mut self, able: &[usize]) -> Result<(), BenchError> {
        let sockets = self.recording.tally.sockets.first();
        let Some(free) = sockets.and_then(|sockets| sockets.free_ports) else {
            return Ok(());
        };
        // loopback reuses its ports after a second (tcp_tw_reuse = 2)
        if self.bench.config.is_local()? {
            return Ok(());
        }
        for &variant in able {
            let variant_plan = &self.bench.variant_plans[variant];
            if variant_plan.keepalive {
                continue;
            }
            let latency = self
                .first_requests(variant)
                .merged(|key| key.outcome.is_ok())
                .and_then(|group| group.latency.mean());
            let Some(latency) = latency.filter(|&latency| latency > 0.0) else {
                continue;
            };
            let fastest = variant_plan.concurrency as f64 / (latency / 1e9);
            let requested = variant_plan.open_loop.map(|open| open.rate.mean());
            let fastest = requested.map_or(fastest, |rate| rate.min(fastest));
            let rate = self
                .bench
                .config
                .opening_per_s
                .map_or(fastest, |limit| limit.min(fastest));
            let all = match self.bench.config.length {
                Length::Exchanges(exchanges) => exchanges as f64,
                Length::Time(time) => rate * time.as_secs_f64(),
            };
            let held = (rate * 60.0).min(all);
            if held > free as f64 {
                self.recording.observer.warn(&format!(
                    "{}: about {rate:.0} new connections/s; TIME_WAIT holds each for 60 s, that is {held:.0} ports, {free} are free: expect no-free-port (a smaller -c or -n, or keep connections)",
                    self.bench.variants[variant].name
                ));
            }
        }
        Ok(())
    }

    /// Runs the preflight of one variant; what failed, if it did.
    fn first_failure(&mut self, variant: usize) -> Result<Option<Failure>, BenchError> {
        let before = self.successes(variant);
        self.turn(variant, 0)?;
        if self.successes(variant) > before || self.stopped() {
            return Ok(None);
        }
        let failed = self
            .first_requests(variant)
            .groups
            .iter()
            .rev()
            .find_map(|group| group.key.outcome.failure());
        Ok(Some(failed.unwrap_or(Failure::Aborted)))
    }

    fn successes(&mut self, variant: usize) -> u64 {
        let ok = self.first_requests(variant);
        let ok = ok.merged(|key| key.outcome.is_ok());
        ok.map_or(0, |group| group.count())
    }

    /// The counts of the preflight of one variant.
    fn first_requests(&mut self, variant: usize) -> &Cell {
        let variant = self.bench.variant_plans[variant].variant;
        self.recording.tally.cell(Some(variant), Some(0))
    }

    /// One variant in one round, on all threads that it needs.
    fn turn(&mut self, variant: usize, round: u32) -> Result<(), BenchError> {
        let bench = self.bench;
        let variant_plan = &bench.variant_plans[variant];
        let connections = if round == 0 {
            1
        } else {
            variant_plan.concurrency
        };
        let clock = self.recording.clock;
        self.recording.observer.turn(variant as u32, round);
        // to count the ports takes long where many are in use, so only one round has the count
        let counted = (round == 1).then(|| machine::sockets(clock.now()));
        let pace = |thread| self.pace(variant_plan, round, thread);
        let number = match round {
            0 => 0,
            round => bench.first_round + round - 1,
        };
        let tasks = self.tasks(variant_plan, number, connections, pace, None);
        let done = self.carry_out(tasks, (variant as u32, round))?;
        let mut record = done.round((variant_plan.variant, number));
        record.sockets = machine::round_sockets(counted.flatten(), clock.now());
        let cache = variant_plan.cache.as_deref();
        let is_fast_open = variant_plan.plan.socket.fast_open;
        record.with_syn = is_fast_open.then_some(done.work.with_syn);
        record.fresh_for_s = cache.and_then(ResponseCache::fresh_for_s);
        self.recording.record(Event::Round(&record));
        let tally = &mut self.recording.tally;
        let cell = tally.cell(Some(record.variant), Some(number));
        if bench.rounds as usize >= MIN_ROUNDS {
            cell.forget_slices();
        }
        cell.pack();
        if round > 0 {
            let progress = Progress::of(cell, record.span.nanos());
            bench.gauge.pulse.finish_turn(record.variant, &progress);
        }
        Ok(())
    }

    /// The tasks of a round with this number of connections, one for each thread that it needs.
    pub(crate) fn tasks(
        &self,
        variant_plan: &Arc<VariantPlan>,
        round: u32,
        connections: usize,
        pace: impl Fn((usize, usize)) -> Pace,
        windows: Option<&Windows>,
    ) -> Vec<RoundTask> {
        let threads = self.recording.crew.len().min(connections);
        let warms_up = variant_plan.warms_up(round);
        let warm_up = Arc::new(WarmUp::new(if warms_up { connections } else { 0 }));
        let task = |thread: usize| RoundTask {
            variant_plan: variant_plan.clone(),
            round,
            connections: share(connections as u64, thread, threads) as usize,
            pace: pace((thread, threads)),
            warm_up: warm_up.clone(),
            clients: None,
            windows: windows.cloned(),
            turn: variant_plan.targets.len() * thread / threads,
        };
        (0..threads).map(task).collect()
    }

    /// Runs tasks to their end as a round of a variant.
    pub(crate) fn carry_out(
        &mut self,
        tasks: Vec<RoundTask>,
        turn: (u32, u32),
    ) -> Result<TurnSummary, BenchError> {
        let (bench, clock, turns) = (self.bench, self.recording.clock, self.turns);
        let position = || turns.position(bench, turn, clock.now());
        self.recording.carry_out(tasks, position, |_| ())
    }

    /// Shows the observer where the run is.
    pub(crate) fn tick(&mut self) {
        let now = self.recording.clock.now();
        let position = self.turns.position(self.bench, (0, 0), now);
        self.recording.observer.tick(position);
    }

    /// When one of the threads starts exchanges.
    fn pace(&self, variant_plan: &VariantPlan, round: u32, thread: (usize, usize)) -> Pace {
        if round == 0 {
            return Pace::Closed(self.limited(ClosedLoop::new(Some(1), None), thread.1));
        }
        let config = &self.bench.config;
        let rounds = self.bench.rounds;
        let in_round = |all: u64| share(all, round as usize - 1, rounds as usize);
        let in_round_nanos = |all: Duration| (all / rounds).as_nanos() as u64;
        let Some(open) = variant_plan.open_loop else {
            let of_thread = |all: u64| share(in_round(all), thread.0, thread.1);
            let (exchanges, nanos) = match config.length {
                Length::Exchanges(all) => {
                    (Some(config.most.map_or(all, |most| all.min(most))), None)
                }
                Length::Time(all) => (config.most, Some(in_round_nanos(all))),
            };
            let closed = ClosedLoop::new(exchanges.map(of_thread), nanos);
            return Pace::Closed(self.limited(closed, thread.1));
        };
        // a ramp goes over all rounds, so that those of one number are alike in all variants
        let rate = open.rate.part(round - 1, rounds);
        let (length, nanos) = match config.length {
            Length::Exchanges(all) => {
                let nanos = in_round(all) as f64 / rate.mean() * 1e9;
                (ScheduleLength::Requests(in_round(all)), nanos as u64)
            }
            Length::Time(all) => {
                let nanos = in_round_nanos(all);
                (ScheduleLength::Nanos(nanos), nanos)
            }
        };
        let seed = config.seed.wrapping_add(u64::from(round) << 32);
        let schedule = Schedule::new(rate, open.arrivals, length, thread, seed);
        let limits = self.limited(ClosedLoop::new(None, None), thread.1);
        Pace::Open(Box::new(OpenLoop::new(schedule, nanos, limits)))
    }

    /// Adds the limits on rates, which the threads share.
    pub(crate) fn limited(&self, closed: ClosedLoop, threads: usize) -> ClosedLoop {
        let config = &self.bench.config;
        let each = |all: Option<f64>| all.map(|per_second| per_second / threads as f64);
        let (opening, starting) = (each(config.opening_per_s), each(config.requests_per_s));
        closed.limited(opening, starting, self.recording.clock.now())
    }
}

/// The time that the turns still take, `done` of `all` being over after `begun` nanoseconds and the
/// present one under way for `in_turn`. Before the first is over, each is taken for as long as
/// `planned`.
fn time_left(
    (done, all): (u32, u32),
    begun: u64,
    in_turn: u64,
    planned: Option<u64>,
) -> Option<Duration> {
    let each = begun.checked_div(u64::from(done)).or(planned)?;
    let left = (each * u64::from(all - done)).saturating_sub(in_turn);
    Some(Duration::from_nanos(left))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_is_that_of_the_turns_that_are_not_over() {
        let left = |turns, begun, in_turn, planned| {
            time_left(turns, begun, in_turn, planned).map(|left| left.as_nanos())
        };
        // one of 40 turns took 10, and the second is nearly over
        assert_eq!(left((1, 40), 10, 9, None), Some(381));
        assert_eq!(left((39, 40), 390, 4, Some(7)), Some(6));
        assert_eq!(left((39, 40), 390, 40, None), Some(0));
        assert_eq!(left((0, 40), 0, 5, Some(10)), Some(395));
        assert_eq!(left((0, 40), 0, 5, None), None);
    }
}
