//! The engine threads at work: what they record goes to the tally and to the observer, who is shown
//! the position meanwhile. Must not know which tasks a run has.

use crate::config::Config;
use crate::crew::{Crew, WorkSummary};
use crate::engine::{Gauge, IoBackend, RoundResult, RoundTask};
use crate::machine;
use crate::observer::{BenchError, BenchObserver, Position};
use crate::processors::ProcessorCounts;
use intact_client::Clock;
use intact_ledger::{Caveat, Event, Nanos, Round, RoundSchedule, Sink, Span, Tally};
use std::sync::Arc;
use std::time::Duration;

/// How often the observer is shown the position, and rows are handed on.
const LOOK: Duration = Duration::from_millis(25);

/// What the threads did from start to end, and what was observed of the machine meanwhile.
pub(crate) struct TurnSummary {
    pub(crate) work: WorkSummary,
    threads: usize,
    /// Start and end.
    pub(crate) times: (Nanos, Nanos),
    pub(crate) processors: ProcessorCounts,
    /// CPU time of the server in nanoseconds; absent where it is not known.
    pub(crate) server_cpu: Option<u64>,
}

impl TurnSummary {
    /// It as the round of a variant.
    pub(crate) fn round(&self, (variant, round): (u32, u32)) -> Round {
        let work = &self.work;
        let span = work.span.unwrap_or(Span::new(self.times.0, self.times.1));
        Round {
            variant,
            round,
            span,
            load: None,
            schedule: work.scheduled.map(|due| RoundSchedule {
                due,
                at_once: work.used as u32,
            }),
            client_cpu: work.cpu.filter(|_| work.span.is_some()),
            client_threads: Some(self.threads as u32),
            server_cpu: self.server_cpu,
            machine: self.processors.between(span),
            sockets: None,
            client_memory: None,
            fresh_for_s: None,
            with_syn: None,
        }
    }
}

/// What a run records, and the threads that it comes from.
pub(crate) struct Recording<'a> {
    pub(crate) clock: Clock,
    pub(crate) observer: &'a mut dyn BenchObserver,
    pub(crate) tally: Tally,
    pub(crate) crew: Crew,
    server_pid: Option<u32>,
}

impl<'a> Recording<'a> {
    /// One of at most as many threads as the configuration has, for this number of connections.
    pub(crate) fn new(
        config: &Config,
        connections: usize,
        io: IoBackend,
        clock: Clock,
        gauge: &Arc<Gauge>,
        observer: &'a mut dyn BenchObserver,
    ) -> Result<Recording<'a>, BenchError> {
        let threads = connections.min(config.threads as usize).max(1);
        let policy = (config.keep, config.seed);
        Ok(Recording {
            clock,
            observer,
            tally: Tally::new(),
            crew: Crew::new(threads, io, policy, clock, gauge)?,
            server_pid: config.server_pid,
        })
    }

    /// Runs tasks to their end. Meanwhile it shows the position and passes on rows; `each` gets
    /// what a thread did.
    pub(crate) fn carry_out(
        &mut self,
        tasks: Vec<RoundTask>,
        position: impl Fn() -> Position,
        each: impl FnMut(&RoundResult),
    ) -> Result<TurnSummary, BenchError> {
        let server_before = self.server_pid.and_then(machine::process_cpu);
        let started = self.clock.now();
        let mut processors = ProcessorCounts::default();
        processors.count(started);
        let threads = tasks.len();
        let work = self.crew.start(tasks)?;
        while !work.is_finished() {
            self.take_rows(LOOK);
            self.observer.tick(position());
            processors.look(self.clock.now());
        }
        let work = self.crew.finish(work, &mut self.tally, each)?;
        processors.count(self.clock.now());
        while self.take_rows(Duration::ZERO) {}
        let server_after = self.server_pid.and_then(machine::process_cpu);
        Ok(TurnSummary {
            work,
            threads,
            times: (started, self.clock.now()),
            processors,
            server_cpu: machine::cpu_between(server_before, server_after),
        })
    }

    /// Passes on the next rows; whether there were some within this time.
    fn take_rows(&mut self, wait: Duration) -> bool {
        let batch = self.crew.rows(wait);
        batch.is_some_and(|batch| {
            self.observer.rows(&batch);
            true
        })
    }

    /// Adds an event to the tally, and shows its row to the observer.
    pub(crate) fn record(&mut self, event: Event<'_>) {
        self.tally.record(event);
        self.observer.rows(&[event.to_row()]);
    }

    pub(crate) fn count_sockets(&mut self) {
        if let Some(sockets) = machine::sockets(self.clock.now()) {
            self.record(Event::Sockets(&sockets));
        }
    }

    pub(crate) fn caveat(&mut self, id: &str, words: String) {
        let id = id.to_owned();
        self.record(Event::Caveat(&Caveat::new(id, words)));
    }

    /// Shows the observer what was counted so far.
    pub(crate) fn round_over(&mut self) {
        self.observer.round_over(&self.tally);
    }
}
