//! Predicts what one request through a chain of services takes, by counting round trips.
//!
//! Two counting rules stand beside each other: *as TCP does it*, where the last packet of a handshake travels with what
//! follows, and *packets in series*, as sequence diagrams are drawn on paper. The first is what a measured link shows.
//!
//! Means only: a prediction is no distribution, queues do not grow in it, and nothing gets lost.

mod chain;
mod fit;
mod forecast;
mod predict;
mod remedy;
mod sequence;
mod source;

pub use chain::{Call, Chain, Http, Service, Tls};
pub use fit::{Fit, fit};
pub use forecast::{CallForecast, Forecast, Totals};
pub use predict::{CallPrediction, Counting, Prediction, Reuse, legs, predict};
pub use remedy::{Remedy, WhatIf, what_if};
pub use sequence::{Arrow, Sequence, sequence};
pub use source::{ChainError, parse};
