//! Whether a side of a bench was saturated, so that a latency is mostly waiting and throughput is
//! the figure to compare. Must not compare variants.

use super::open_loop::OpenLoopFacts;
use super::variant::VariantFacts;
use intact_ledger::kinds;
use intact_reading::Reading;
use serde::Serialize;

/// The share of its processors from which the client is saturated.
const CLIENT_BUSY: f64 = 0.9;
/// The share of one processor from which the server is saturated.
const SERVER_BUSY: f64 = 0.95;
/// From how many requests at once queueing can be distinguished from scatter.
const LEAST_AT_ONCE: u64 = 4;
/// How many times as long as a lone request one takes that waits for the others.
const QUEUEING: f64 = 3.0;

kinds! {
    /// The side that limits the throughput of a variant.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum Saturation, words {
        /// The client used its threads' processors to the full, or was late for the schedule of an
        /// open loop and did not reach its rate.
        Client = "the client is saturated",
        /// The processors of the client's machine were busy, the client or the server waited for
        /// them, and an open loop did not reach its rate.
        Machine = "the machine is busy",
        /// The server used a processor to the full.
        Server = "the server is saturated",
        /// Requests take several times as long as a lone one: they wait for each other.
        Queueing = "requests wait for each other",
    }
}

impl Saturation {
    /// Judges by processor time where it is known, else by the latency without setup compared with
    /// that of a lone request.
    pub(super) fn of(variant: &VariantFacts) -> Option<Saturation> {
        if variant.client_is_busy() {
            return Some(Saturation::Client);
        }
        // a machine that others use says nothing about the client or the server
        let is_behind = |open: &OpenLoopFacts| !open.is_reached();
        if variant.open_loop.as_ref().is_some_and(is_behind) && variant.machine_is_limit() {
            return Some(Saturation::Machine);
        }
        let is_late = |open: &OpenLoopFacts| open.client_is_late() && !open.is_reached();
        if variant.open_loop.as_ref().is_some_and(is_late) {
            return Some(Saturation::Client);
        }
        if variant.server_busy.is_some_and(|busy| busy > SERVER_BUSY) {
            return Some(Saturation::Server);
        }
        let at_once = variant.concurrency * variant.streams;
        let slowdown = slowdown(variant).filter(|_| at_once >= LEAST_AT_ONCE)?;
        (slowdown >= QUEUEING).then_some(Saturation::Queueing)
    }
}

impl VariantFacts {
    /// Whether the client used its threads' processors to the full.
    pub(crate) fn client_is_busy(&self) -> bool {
        self.client_busy.is_some_and(|busy| busy > CLIENT_BUSY)
    }

    /// Whether the processors of the client's machine were the limit.
    pub(crate) fn machine_is_limit(&self) -> bool {
        let open = self.open_loop.as_ref();
        let is_delayed = open.is_some_and(OpenLoopFacts::client_may_be_late);
        let machine = self.machine.as_ref();
        machine.is_some_and(|machine| machine.is_limit(is_delayed))
    }
}

/// How many times as long a request takes as a lone one, at the least: without setup, and without
/// what the client may have made.
pub(super) fn slowdown(variant: &VariantFacts) -> Option<f64> {
    let latency = &variant.latency_without_setup_ms;
    let lone = variant.lone_ms.filter(|&lone| lone > 0.0)?;
    let least = |reading: &Reading| Some(reading.low()).filter(|low| low.is_finite());
    Some(least(&latency.p50).or(least(&latency.mean))? / lone)
}
