//! Where the programs of a process tree spend their processor time: samples of their stacks, what kind of work each is, and a
//! flame graph.
//!
//! The kernel samples (`perf_event_open` with its software clock, unprivileged where the system allows that); stacks are
//! unwound here by the programs' own unwind tables, so that they need no frame pointers; names come from symbol tables, the
//! kernel's list and the maps that JIT compilers write (`/tmp/perf-PID.map`).
//!
//! This crate draws no conclusions and prints nothing. What it could not see is counted and told.

mod cpu_category;
mod error;
mod profile;

#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
#[path = "unsupported.rs"]
mod platform;
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
#[path = "linux/mod.rs"]
mod platform;

pub use cpu_category::{CategoryShares, CpuCategory};
pub use error::ProfileError;
#[cfg(all(fuzzing, target_os = "linux"))]
#[doc(hidden)]
pub use platform::fuzz;
pub use platform::{SampleTarget, Sampling, flame_graph};
pub use profile::{Frame, Gap, Profile, Stack};
