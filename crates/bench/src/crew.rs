//! The engine threads of a run: started with a task each, joined when all are through. Must not
//! know what a run is.

use crate::config::RowPolicy;
use crate::engine::{Engine, Gauge, IoBackend, RoundResult, RoundTask};
use crate::machine;
use crate::observer::BenchError;
use crate::recorder::Recorder;
use intact_client::Clock;
use intact_ledger::{Row, Span, Tally};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Batches of rows that may wait before the engine has to.
const BATCHES: usize = 64;

/// The engines between two tasks, and the rows that leave them.
pub(crate) struct Crew {
    engines: Vec<Option<Engine>>,
    rows: Receiver<Vec<Row>>,
}

/// Engines at work.
pub(crate) struct Work(Vec<JoinHandle<(Engine, io::Result<RoundResult>)>>);

/// What all threads did.
pub(crate) struct WorkSummary {
    /// From the first measured start to the last end; absent when nothing was measured.
    pub(crate) span: Option<Span>,
    /// The part of it in which requests were due by a schedule.
    pub(crate) scheduled: Option<Span>,
    /// Slots that dialed.
    pub(crate) used: usize,
    /// Connections whose first data went with the SYN, where that was asked for.
    pub(crate) with_syn: u64,
    /// CPU time of the threads over their spans, in nanoseconds.
    pub(crate) cpu: Option<u64>,
}

impl Crew {
    /// Engines for this number of threads. They keep rows by the policy, sampled by the seed.
    pub(crate) fn new(
        threads: usize,
        io: IoBackend,
        (keep, seed): (RowPolicy, u64),
        clock: Clock,
        gauge: &Arc<Gauge>,
    ) -> io::Result<Crew> {
        let (sender, rows) = sync_channel(BATCHES);
        let engine = |thread: usize| {
            let recorder = Recorder::new(keep, seed.wrapping_add(thread as u64), sender.clone());
            Engine::new(thread as u32, clock, recorder, gauge.clone(), io).map(Some)
        };
        let engines = (0..threads).map(engine).collect::<io::Result<_>>()?;
        Ok(Crew { engines, rows })
    }

    /// Lets the ids of rows begin here, above those of an earlier bench of the same run.
    pub(crate) fn count_ids_from(&mut self, first: u64) {
        let engines = self.engines.iter_mut().flatten();
        engines.for_each(|engine| engine.count_ids_from(first));
    }

    /// How many engines there are.
    pub(crate) fn len(&self) -> usize {
        self.engines.len()
    }

    /// Starts one engine for each task.
    pub(crate) fn start(&mut self, tasks: Vec<RoundTask>) -> Result<Work, BenchError> {
        let mut work = Vec::new();
        for (thread, task) in tasks.into_iter().enumerate() {
            let engine = self.engines.get_mut(thread).and_then(Option::take);
            let mut engine = engine.ok_or(BenchError::Thread)?;
            let hand = thread::Builder::new()
                .name(format!("engine-{thread}"))
                .spawn(move || {
                    machine::sharpen_timer();
                    if task.pace.is_open() {
                        machine::wake_promptly();
                    }
                    let done = engine.run(task);
                    (engine, done)
                })?;
            work.push(hand);
        }
        Ok(Work(work))
    }

    /// Rows that are there, or come within `wait`.
    pub(crate) fn rows(&self, wait: Duration) -> Option<Vec<Row>> {
        self.rows.recv_timeout(wait).ok()
    }

    /// Ends the work, which is finished, and adds what was counted to `tally`. `each` gets what a
    /// thread did in addition.
    pub(crate) fn finish(
        &mut self,
        work: Work,
        tally: &mut Tally,
        mut each: impl FnMut(&RoundResult),
    ) -> Result<WorkSummary, BenchError> {
        let mut all = WorkSummary {
            span: None,
            scheduled: None,
            used: 0,
            with_syn: 0,
            cpu: Some(0),
        };
        for (thread, hand) in work.0.into_iter().enumerate() {
            let (engine, done) = hand.join().map_err(|_| BenchError::Thread)?;
            self.engines[thread] = Some(engine);
            let done = done?;
            tally.merge(&done.tally);
            each(&done);
            all.scheduled = widest(all.scheduled, done.scheduled);
            all.used += done.used;
            all.with_syn += done.with_syn;
            if let Some(mine) = done.span {
                all.span = widest(all.span, Some(mine));
                all.cpu = all.cpu.zip(done.cpu).map(|(all, mine)| all + mine);
            }
        }
        Ok(all)
    }
}

impl Work {
    /// Whether every engine is through.
    pub(crate) fn is_finished(&self) -> bool {
        self.0.iter().all(JoinHandle::is_finished)
    }
}

/// From the first start to the last end.
fn widest(one: Option<Span>, other: Option<Span>) -> Option<Span> {
    let both = one.zip(other);
    let both =
        both.map(|(one, other)| Span::new(one.start.min(other.start), one.end.max(other.end)));
    both.or(one).or(other)
}

/// The part of `whole` that falls to one of `parts`.
pub(crate) fn share(whole: u64, part: usize, parts: usize) -> u64 {
    let (part, parts) = (part as u64, parts as u64);
    whole / parts + u64::from(part < whole % parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up() {
        for (whole, parts) in [(10, 3), (2, 5), (0, 4), (100, 7)] {
            let sum: u64 = (0..parts).map(|part| share(whole, part, parts)).sum();
            assert_eq!(sum, whole);
        }
    }
}
