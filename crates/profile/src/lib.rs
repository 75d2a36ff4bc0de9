//! Samples the stacks of a process tree: its processor time by category, and as a flame graph.
//!
//! The kernel samples with the software clock of `perf_event_open`, without privileges if the
//! system allows this. This crate unwinds stacks with the unwind tables of the programs, so it
//! needs no frame pointers. Names come from symbol tables, `/proc/kallsyms`, and the lists of JIT
//! compilers (`/tmp/perf-PID.map`).
//!
//! This crate draws no conclusions and prints nothing. It counts and reports what it could not
//! observe.

#[cfg_attr(
    not(all(feature = "sampling", target_os = "linux")),
    allow(dead_code, reason = "only Linux has samples")
)]
mod cpu_category;
mod error;
mod profile;

#[cfg(not(all(
    feature = "sampling",
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
#[path = "unsupported.rs"]
mod platform;
#[cfg(all(
    feature = "sampling",
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
#[path = "linux/mod.rs"]
mod platform;

pub use cpu_category::CpuCategory;
pub use error::ProfileError;
#[cfg(all(fuzzing, feature = "sampling", target_os = "linux"))]
#[doc(hidden)]
pub use platform::fuzz;
pub use platform::{Sampling, flame_graph};
pub use profile::{Frame, Gap, Profile, SampleTarget, Stack};
