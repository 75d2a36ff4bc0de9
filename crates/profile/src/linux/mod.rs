//! Linux: samples of `perf_event_open`, unwound and named in this process.

mod code;
mod flame;
#[cfg(fuzzing)]
pub mod fuzz;
mod sampling;

pub use flame::flame_graph;
pub use sampling::Sampling;
