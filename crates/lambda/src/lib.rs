//! A function platform on this machine: it speaks the AWS Lambda Runtime API to a real runtime
//! client. An environment is one process. Its invocations follow one another, and between them it
//! is frozen.
//!
//! It measures and records the outcome of each invocation. It draws no conclusions and prints
//! nothing.
#![cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, reason = "the module of the platform uses it")
)]

mod caveats;
mod error;
mod event;
mod freeze_hook;
mod plan;
#[cfg(target_os = "linux")]
#[path = "linux/mod.rs"]
mod system;
#[cfg(not(target_os = "linux"))]
#[path = "unsupported.rs"]
mod system;

pub use error::LambdaError;
pub use event::Event;
pub use freeze_hook::{FreezeHook, NoGate};
pub use plan::{Freezer, Function, Plan, RunPosition, Watcher};
#[cfg(all(fuzzing, target_os = "linux"))]
#[doc(hidden)]
pub use system::fuzz;
pub use system::{Platform, follow};
