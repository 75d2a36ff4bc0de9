//! Steps of an open loop whose loads are chosen one after another by their results: a search for
//! capacity, an overload.
//!
//! A step has its own connections and one or more windows. Must not choose a load or judge one: the
//! caller does.

use crate::closed_loop::ClosedLoop;
use crate::machine;
use crate::observer::{BenchError, BenchObserver};
use crate::open_loop::OpenLoop;
use crate::pace::Pace;
use crate::rounds::{Bench, RoundRunner};
use crate::windows::{LoadWindow, windows};
use intact_client::Clock;
use intact_experiment::{RequestRate, Schedule, ScheduleLength, ScheduleSeries, WhenBusy};
use intact_ledger::{Event, LoadStep, Round, RoundSchedule, Span, Tally};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What is run next.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadTurn {
    /// Index into the run's variants.
    pub variant: u32,
    /// What the observer is shown of it.
    pub words: String,
    /// Time without traffic before it.
    pub pause: Duration,
    /// Whether its connections are opened, and used once, before the first request is due.
    pub warm: bool,
    /// The windows, one after another without a gap.
    pub windows: Vec<LoadWindow>,
}

impl Bench {
    /// Measures the steps that `next_turn` chooses by what was counted so far; `None` ends the run.
    /// Each variant has an open loop; its rate and the length of the configuration have no effect.
    /// Network failures are in the tally; an error means that we could not observe.
    pub fn run_steps(
        self,
        clock: Clock,
        observer: &mut dyn BenchObserver,
        mut next_turn: impl FnMut(&Tally) -> Option<LoadTurn>,
    ) -> Result<Tally, BenchError> {
        let mut runner = self.runner(clock, observer)?;
        runner.recording.count_sockets();
        let able = runner.preflight()?;
        let mut next_round = 1;
        let mut step = 0;
        while !runner.stopped() && !able.is_empty() {
            let Some(turn) = next_turn(&runner.recording.tally) else {
                break;
            };
            runner.recording.observer.describe(&turn.words);
            if !able.contains(&(turn.variant as usize)) {
                break;
            }
            step += 1;
            runner.pause(turn.pause);
            next_round = runner.step(&turn, step, next_round)?;
            runner.recording.round_over();
        }
        if runner.stopped() {
            let words = "the run was interrupted: its last step is counted, and neither met nor missed the conditions";
            runner.recording.caveat("interrupted", words.to_owned());
        }
        Ok(runner.finish())
    }
}

impl RoundRunner<'_> {
    /// Waits without traffic, until the run is stopped.
    fn pause(&mut self, length: Duration) {
        let end = Instant::now() + length;
        while !self.stopped() && Instant::now() < end {
            let left = end.saturating_duration_since(Instant::now());
            std::thread::sleep(left.min(Duration::from_millis(50)));
            self.tick();
        }
    }

    /// Runs one step, and returns the round of the next one.
    fn step(&mut self, turn: &LoadTurn, step: u32, first: u32) -> Result<u32, BenchError> {
        let bench = self.bench;
        let variant = turn.variant as usize;
        let mut variant_plan = bench.variant_plans[variant].clone();
        if turn.warm {
            let open_loop = &mut Arc::make_mut(&mut variant_plan).open_loop;
            if let Some(open) = open_loop {
                open.when_busy = WhenBusy::Queue;
            }
        }
        let windows = windows(&turn.windows, first);
        let sockets_before = machine::sockets(self.recording.clock.now());
        let pace = |thread| self.pace_of(turn, thread, u64::from(step));
        let connections = variant_plan.concurrency;
        let tasks = self.tasks(&variant_plan, first, connections, pace, Some(&windows));
        let done = self.carry_out(tasks, (turn.variant, first))?;
        let all = done.round((turn.variant, first));
        let sockets = machine::round_sockets(sockets_before, self.recording.clock.now());
        let scheduled = done.work.scheduled;
        let start = scheduled.map_or(all.span.start, |due| due.start);
        let last = turn.windows.iter().rposition(|window| !window.warmup);
        let mut round = first;
        let mut begin = 0;
        // one that was interrupted has no figures
        for (nth, window) in turn.windows.iter().enumerate() {
            let end = begin + window.length.as_nanos() as u64;
            if !window.warmup && !self.stopped() {
                let due = Span::new(start.after(begin), start.after(end));
                let span = match Some(nth) == last {
                    true => Span::new(due.start, due.end.max(all.span.end)),
                    false => due,
                };
                let part = |cpu: Option<u64>| {
                    let share = span.nanos() as f64 / all.span.nanos().max(1) as f64;
                    cpu.map(|cpu| (cpu as f64 * share) as u64)
                };
                let record = Round {
                    round,
                    span,
                    load: Some(LoadStep {
                        step,
                        purpose: window.purpose,
                        rate: window.rate,
                        warm: turn.warm,
                    }),
                    schedule: Some(RoundSchedule {
                        due,
                        at_once: done.work.used as u32,
                    }),
                    client_cpu: part(done.work.cpu),
                    server_cpu: part(all.server_cpu),
                    machine: done.processors.between(span),
                    sockets: sockets.filter(|_| Some(nth) == last),
                    ..all.clone()
                };
                self.recording.record(Event::Round(&record));
            }
            if !window.warmup {
                let tally = &mut self.recording.tally;
                tally.cell(Some(turn.variant), Some(round)).pack();
                round += 1;
            }
            begin = end;
        }
        Ok(round)
    }

    fn pace_of(&self, turn: &LoadTurn, thread: (usize, usize), step: u64) -> Pace {
        let config = &self.bench.config;
        let arrivals = config.axes.load.arrivals;
        let mut begin = 0;
        let mut series = Vec::new();
        for (nth, window) in turn.windows.iter().enumerate() {
            let nanos = window.length.as_nanos() as u64;
            let seed = config
                .seed
                .wrapping_add((step << 32) + ((nth as u64) << 16));
            let rate = RequestRate::constant(window.rate);
            let length = ScheduleLength::Nanos(nanos);
            series.push((begin, Schedule::new(rate, arrivals, length, thread, seed)));
            begin += nanos;
        }
        let limits = self.limited(ClosedLoop::new(None, None), thread.1);
        let series = ScheduleSeries::new(series);
        Pace::Open(Box::new(OpenLoop::new(series, begin, limits)))
    }
}
