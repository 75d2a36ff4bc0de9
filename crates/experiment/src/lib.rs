//! Experiments: axes and variants of a bench, the balanced random order of rounds, open-loop
//! schedules, the search for the highest rate, and the seeded generator.
//!
//! In the ledger an axis is text, so an older reader accepts a new axis. [`AxisValues`] writes and
//! reads the axes of a bench; an unknown value is an error, never a default. Must not run or time
//! anything. The caller passes the seed and records it in the run.

mod axes;
mod axis;
mod cache_use;
mod connection_axes;
mod open_loop;
pub mod order;
mod rate_search;
mod rng;

pub use axes::{
    Axes, AxisError, AxisValues, Load, NameLookup, TlsChoice, Variation, differing, reference_of,
    variants,
};
pub use axis::{AxisRow, AxisValue, Meaning, Reference};
pub use cache_use::CacheUse;
pub use connection_axes::{
    CONNECTION_AXES, ConnectionAxes, ConnectionSettings, Period, RequestLimit,
};
pub use open_loop::{
    Arrivals, OpenLoop, RequestRate, Schedule, ScheduleLength, ScheduleSeries, WhenBusy,
};
pub use rate_search::{Ceiling, FreshRuns, RateInterval, RateSearch, SearchStep, StepOutcome};
pub use rng::Rng;

/// Fewer rounds than this give no interval: the t interval is not to be trusted below it.
pub const MIN_ROUNDS: usize = 8;
