//! The load engine: many connections on an event loop, one loop per thread, nothing shared, no
//! allocation per exchange.
//!
//! An [`intact_client::HttpConnection`] speaks HTTP and sends. A [`round::Round`] keeps the time,
//! and decides when each connection is opened, used and closed. A [`backend::Backend`] waits for
//! the kernel and receives.

#[cfg(test)]
mod allocations;
mod backend;
mod coalescer;
#[cfg(target_os = "linux")]
mod completion;
mod pulse;
mod readiness;
mod round;
mod slot;
mod warm_up;

pub(crate) use coalescer::{LEAST_IN_FLIGHT, Pauses};
pub use pulse::{Progress, Pulse};
pub(crate) use warm_up::WarmUp;

use crate::io_backend::IoBackend;
use crate::load_steps::Windows;
use crate::pace::Pace;
use crate::recorder::Recorder;
use crate::scenario::Clients;
use crate::variant_plan::VariantPlan;
use intact_client::{Clock, Resolver};
use intact_ledger::{ClientCounts, Nanos, Span, Tally};
use readiness::Readiness;
use round::Round;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// What the engine shows to the outside while it runs.
#[derive(Debug, Default)]
pub struct Gauge {
    /// Exchanges that are over, failed ones included.
    pub exchanges: AtomicU64,
    /// Set to make the run end early, keeping what was measured.
    pub stop: AtomicBool,
    /// What each variant has done so far.
    pub pulse: Pulse,
}

/// What one thread is to do in one round.
pub(crate) struct RoundTask {
    /// The variant.
    pub(crate) variant_plan: Arc<VariantPlan>,
    /// The round; 0 is the preflight.
    pub(crate) round: u32,
    /// Connections of this thread.
    pub(crate) connections: usize,
    /// When exchanges start.
    pub(crate) pace: Pace,
    /// The warm-up of all threads, before which nothing is measured.
    pub(crate) warm_up: Arc<WarmUp>,
    /// The clients of a scenario, whose arrivals the pace has; absent outside of scenarios.
    pub(crate) clients: Option<Box<Clients>>,
    /// The windows of a step, each a round of its own; absent where all exchanges are of one
    /// round.
    pub(crate) windows: Option<Windows>,
    /// The first target that this thread sends.
    pub(crate) turn: usize,
}

/// What one thread did in one round.
pub(crate) struct RoundResult {
    /// Counts and histograms.
    pub(crate) tally: Tally,
    /// From the first measured start to the last end; absent when nothing was measured.
    pub(crate) span: Option<Span>,
    /// The part of it in which requests were due by a schedule; absent in a closed loop.
    pub(crate) scheduled: Option<Span>,
    /// Slots that dialed.
    pub(crate) used: usize,
    /// Connections whose first data went with the SYN, where that was asked for.
    pub(crate) with_syn: u64,
    /// CPU time of the thread over that span, in nanoseconds.
    pub(crate) cpu: Option<u64>,
    /// The simulated clients of each session.
    pub(crate) clients: Vec<ClientCounts>,
}

/// What the rounds of a thread have in common, whatever the back end.
pub(crate) struct EngineState {
    resolver: Resolver,
    clock: Clock,
    recorder: Recorder,
    gauge: Arc<Gauge>,
    thread: u32,
    next_id: u64,
    /// The next target of each variant that has several.
    turns: HashMap<u32, usize>,
}

impl EngineState {
    /// Shows what was done in the turn under way, which began to measure at `since`.
    fn publish(&self, variant: u32, round: u32, since: Option<Nanos>, now: Nanos) {
        let pulse = &self.gauge.pulse;
        if pulse.is_watched() && round > 0 {
            let nanos = since.map_or(0, |since| now.since(since));
            let progress = self.recorder.progress(variant, round, nanos);
            pulse.publish(self.thread.into(), variant, progress);
        }
    }

    fn id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }
}

/// The engine of one thread.
pub(crate) struct Engine {
    state: EngineState,
    readiness: Readiness,
    io: IoBackend,
}

impl Engine {
    /// An engine for thread number `thread`; ids of different threads do not meet.
    pub(crate) fn new(
        thread: u32,
        clock: Clock,
        recorder: Recorder,
        gauge: Arc<Gauge>,
        io: IoBackend,
    ) -> io::Result<Engine> {
        let readiness = Readiness::new()?;
        let resolver = Resolver::new(readiness.waker()?);
        Ok(Engine {
            state: EngineState {
                resolver,
                clock,
                recorder,
                gauge,
                thread,
                next_id: u64::from(thread) << 48,
                turns: HashMap::new(),
            },
            readiness,
            io,
        })
    }

    /// Lets the ids of this thread begin above these.
    pub(crate) fn count_ids_from(&mut self, first: u64) {
        self.state.next_id |= first;
    }

    /// Runs until the pace starts nothing more and nothing is in flight.
    pub(crate) fn run(&mut self, task: RoundTask) -> io::Result<RoundResult> {
        match self.io {
            IoBackend::Readiness => Round::new(&mut self.state, &mut self.readiness, task).run(),
            #[cfg(target_os = "linux")]
            IoBackend::Uring => {
                let poll = self.readiness.poll_mut();
                let mut completion = completion::Completion::new(task.connections, poll)?;
                Round::new(&mut self.state, &mut completion, task).run()
            }
        }
    }
}
