//! Experiments: the axes and variants of a bench, the balanced random order of rounds, the schedule of an open loop, the
//! search for a highest rate, and the seeded generator.
//!
//! In the ledger an axis is open text, so that an older reader survives a new axis. [`AxisValues`] writes and reads the axes of a
//! bench; a value that it cannot read is an error, never a default. Must not run or time anything, and draws no seed of its own: the
//! caller passes one and records it in the run.

mod axes;
mod cache_use;
mod connection_axes;
mod open_loop;
pub mod order;
mod rate_search;
mod rng;

pub use axes::{
    Axes, AxisError, AxisValues, Load, NameLookup, TlsChoice, Variation, differing, variants,
};
pub use cache_use::{CacheUse, CacheUseError};
pub use connection_axes::{ConnectionAxes, ConnectionSettings, Period, RequestLimit};
pub use open_loop::{
    Arrivals, OpenLoop, RequestRate, Schedule, ScheduleLength, ScheduleSeries, WhenBusy,
};
pub use rate_search::{Ceiling, FreshRuns, RateInterval, RateSearch, SearchStep, StepOutcome};
pub use rng::Rng;
