//! The load engine: many connections on an event loop, one loop per thread, nothing shared, no allocation per exchange.
//!
//! An [`intact_client::HttpConnection`] speaks HTTP and moves the bytes of one connection. An [`Engine`] ([`readiness`]: epoll or
//! kqueue by `mio`) waits, keeps the time, and decides when each connection is opened, used and closed.

mod coalescer;
pub(crate) mod readiness;
mod slot;
mod warm_up;

pub(crate) use warm_up::WarmUp;

use crate::pace::Pace;
use crate::scenario::Clients;
use crate::variant_plan::VariantPlan;
use intact_ledger::{ClientCounts, Span, Tally};
use std::sync::Arc;

/// What one thread is to do in one round.
pub(crate) struct RoundTask {
    /// The variant.
    pub(crate) recipe: Arc<VariantPlan>,
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
    /// CPU time of the thread over that span, in nanoseconds.
    pub(crate) cpu: Option<u64>,
    /// The simulated clients of each session.
    pub(crate) clients: Vec<ClientCounts>,
}

/// Drives the connections of one thread through a round.
pub(crate) trait Engine {
    /// Runs until the pace starts nothing more and nothing is in flight.
    fn run(&mut self, assignment: RoundTask) -> std::io::Result<RoundResult>;
}
