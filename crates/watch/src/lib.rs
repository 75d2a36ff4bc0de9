//! Runs a program unchanged and records every connection that it opens: no root, no proxy, no certificate, no code change.
//!
//! A seccomp filter asks us about `connect`. We connect to the real destination ourselves, give the program's own socket
//! the other end of a relay, and answer `getpeername` and `getsockname` as if nothing had happened. What passes through
//! the relay is read by the passive observers of `wire` and recorded as ledger events. `docs/internals/watch.md` has the
//! mechanism, `docs/reference/watch.md` every difference that a program could notice.
//!
//! This crate draws no conclusions and prints nothing. It must never take the program down: where it cannot follow, the
//! call goes on untouched and that is counted.
#![cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, reason = "the module of the platform uses it")
)]

mod config;
mod error;
mod mark;
mod outcome;

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

pub use config::{
    Config, FaultConfig, FaultHost, KeyLogging, Mode, Numbers, RunPosition, Streams, Terminal,
};
pub use error::WatchError;
pub use intact_client::Clock;
pub use mark::{Mark, Marker, Unfinished};
pub use outcome::{Cpu, Ended, Outcome, Unwatched};
pub use platform::{Subjects, follow, run, without_signals};

/// The names of the processes that wait for our end, however we end: one removes the key log, one answers calls from then on. They
/// are no part of the program.
pub const HELPERS: [&str; 2] = ["(intact-guard)", "(intact-heir)"];

/// Takes what is recorded; called from the relay's thread, so it must not block for long.
pub trait WatchSink: intact_ledger::Sink + Send {
    /// Called about once a second, for flushing files.
    fn tick(&mut self) {}

    /// A mark that [`Marker::request`] asked for: what the program received before is recorded.
    fn mark(&mut self, _mark: &Mark) {}
}
