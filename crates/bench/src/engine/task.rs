//! What a thread is to do in a round, what it did, and what its rounds have in common.

use super::pulse::Pulse;
use super::warm_up::WarmUp;
use crate::pace::Pace;
use crate::recorder::Recorder;
use crate::scenario::Clients;
use crate::variant_plan::VariantPlan;
use crate::windows::Windows;
use intact_client::{Clock, Resolver};
use intact_ledger::{ClientCounts, Nanos, Span, Tally};
use std::collections::HashMap;
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
    pub(super) resolver: Resolver,
    pub(super) clock: Clock,
    pub(super) recorder: Recorder,
    pub(super) gauge: Arc<Gauge>,
    pub(super) thread: u32,
    pub(super) next_id: u64,
    /// The next target of each variant that has several.
    pub(super) turns: HashMap<u32, usize>,
}

impl EngineState {
    /// Shows what was done in the turn under way, which began to measure at `since`.
    pub(super) fn publish(&self, variant: u32, round: u32, since: Option<Nanos>, now: Nanos) {
        let pulse = &self.gauge.pulse;
        if pulse.is_watched() && round > 0 {
            let nanos = since.map_or(0, |since| now.since(since));
            let progress = self.recorder.progress(variant, round, nanos);
            pulse.publish(self.thread.into(), variant, progress);
        }
    }

    pub(super) fn id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }
}
