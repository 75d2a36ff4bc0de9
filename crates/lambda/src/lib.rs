//! A function platform on this machine: it speaks the AWS Lambda Runtime API to a real runtime client, one process to an
//! environment and one invocation after the other, and freezes the environment in between.
//!
//! It measures and tells what became of each invocation. It draws no conclusions and prints nothing.

mod adapter;
mod api;
mod caveats;
mod cgroup;
mod environment;
mod error;
mod event;
mod freezer;
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzz;
mod mailbox;
mod plan;
mod platform;
mod watcher;

pub use error::LambdaError;
pub use event::{Event, Shape};
pub use plan::{Freezer, Function, Plan, RunPosition};
pub use platform::{FreezeHook, NoGate, Platform};
pub use watcher::{Watcher, follow};
