//! Predicts the duration of one request through a chain of services, by counting round trips.
//!
//! There are two counting rules. *As TCP does it*: the last packet of a handshake travels with the
//! next one, as on a measured link. *Packets in series*: each packet waits for the one before, as
//! in sequence diagrams on paper.
//!
//! The prediction is a mean, not a distribution. It assumes no queues and no packet loss.

#[cfg(not(feature = "schema"))]
#[macro_use]
extern crate intact_schema;
#[cfg(feature = "schema")]
#[macro_use]
extern crate schemars;

mod chain;
mod fit;
mod forecast;
mod predict;
mod remedy;
mod sequence;
mod source;

pub use chain::{Call, Chain, Http, Service, Tls};
pub use fit::{Fit, MeasuredCall, fit};
pub use forecast::{CallForecast, Forecast, Totals};
pub use predict::{CallPrediction, Counting, Prediction, Reuse, legs, predict};
pub use remedy::{Remedy, WhatIf, what_if};
pub use sequence::{Arrow, Sequence, sequence};
pub use source::{ChainError, parse};
