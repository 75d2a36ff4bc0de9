//! Whether a side of a bench was saturated, so that a latency is mostly waiting and throughput is the figure to compare. Must not
//! compare variants.

use super::variant::VariantFacts;
use serde::Serialize;

/// The share of its processors from which the client is saturated.
const CLIENT_BUSY: f64 = 0.9;
/// The share of one processor from which the server is saturated.
const SERVER_BUSY: f64 = 0.95;
/// From how many requests at once queueing can be distinguished from scatter.
const LEAST_AT_ONCE: u64 = 4;
/// How many times as long as a lone request one takes that waits for the others.
const QUEUEING: f64 = 3.0;

/// The side that limits the throughput of a variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Saturation {
    /// The client used its threads' processors to the full.
    Client,
    /// The server used a processor to the full.
    Server,
    /// Requests take several times as long as a lone one: they wait for each other.
    Queueing,
}

impl Saturation {
    /// Judges by processor time where it is known, else by the latency without setup compared with that of a lone request.
    pub(super) fn of(variant: &VariantFacts) -> Option<Saturation> {
        if variant.client_busy.is_some_and(|busy| busy > CLIENT_BUSY) {
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

/// How many times as long a request takes as a lone one, without setup.
pub(super) fn slowdown(variant: &VariantFacts) -> Option<f64> {
    let latency = &variant.latency_without_setup_ms;
    let lone = variant.lone_ms.filter(|&lone| lone > 0.0)?;
    Some(latency.p50.or(latency.mean)? / lone)
}
